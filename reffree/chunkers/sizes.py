"""How large chunks are, and which parts of a text they cut apart."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from reffree.chunkers.base import Chunker, Span
from reffree.chunkers.blocks import KINDS, Block

AT_CAP = 0.95
"""A chunk is at the cap from this share of it on."""

CUT = ("sentences", *KINDS)
"""What is counted as cut: sentences, and the blocks of a text."""

Parts = Mapping[str, Sequence[Span]]


def parts_of(text: str, blocks: Sequence[Block], units: Sequence[Block]) -> Parts:
    """Return where sentences, code, tables and lists are, and headings with what is below them."""
    found: dict[str, list[Span]] = {kind: [] for kind in CUT}
    found["sentences"] = [unit.span for unit in units if unit.kind == "prose"]
    for kind, start, end in blocks:
        if kind == "headings":
            below = text[end:]
            lead = len(below) - len(below.lstrip())
            if lead < len(below):
                found[kind].append((start, end + lead + 1))
        elif kind in KINDS:
            found[kind].append((start, end))
    return found


def n_cut(chunks: Sequence[Span], parts: Sequence[Span]) -> int:
    """Return how many parts no chunk holds whole; chunks are in the order of their starts.

    >>> n_cut([(0, 10), (10, 20)], [(2, 9), (8, 12)])
    1
    """
    starts = [start for start, _ in chunks]
    reached = [0, *accumulate((end for _, end in chunks), max)]
    return sum(reached[bisect_right(starts, start)] < end for start, end in parts)


def measure_chunks(
    chunker: Chunker,
    texts: Sequence[str],
    cuts: Sequence[Sequence[Span]],
    parts: Sequence[Parts],
    tokens: Sequence[int] | None = None,
    limit: int | None = None,
) -> dict[str, float | int | None]:
    """Return sizes of the chunks of all texts, and how many parts there are and are cut.

    ``tokens`` are the chunks' numbers of tokens, text after text, if they were counted, and
    ``limit`` how many the encoder reads.
    """
    chunks = [text[a:b] for text, cut in zip(texts, cuts, strict=True) for a, b in cut]
    row: dict[str, float | int | None] = {"chunks": len(chunks)}
    row["per_document"] = len(chunks) / len(texts)
    for unit, sizes in (("characters", [len(chunk) for chunk in chunks]), ("tokens", tokens)):
        row[f"{unit}_mean"] = sum(sizes) / len(sizes) if sizes else None
        row[f"{unit}_p95"] = percentile(sizes, 95)
        row[f"{unit}_max"] = max(sizes, default=None) if sizes else None
    row["over_limit"] = _share([n > limit for n in tokens]) if tokens and limit else None
    cap = chunker.cap
    row["at_cap"] = _share([chunker.size(c) >= AT_CAP * cap for c in chunks]) if cap else None
    for kind in CUT:
        row[kind] = sum(len(each[kind]) for each in parts)
        cut_apart = (n_cut(cut, each[kind]) for cut, each in zip(cuts, parts, strict=True))
        row[f"{kind}_cut"] = sum(cut_apart)
    return row


def _share(found: Sequence[bool]) -> float | None:
    return round(sum(found) / len(found), 6) if found else None


def percentile(sizes: Sequence[int] | None, percent: int) -> int | None:
    """Return the smallest size that so many percent of all do not exceed; None without any.

    >>> percentile([5, 1, 3, 2, 4], 50), percentile([7], 95), percentile([], 50)
    (3, 7, None)
    """
    if not sizes:
        return None
    return sorted(sizes)[max(0, math.ceil(percent / 100 * len(sizes)) - 1)]
