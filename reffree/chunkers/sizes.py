"""How large chunks are, and which parts of a Markdown text they cut apart."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import accumulate

from reffree.chunkers.base import Chunker, Span

AT_CAP = 0.95
"""A chunk is at the cap from this share of it on."""

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
RULE = re.compile(r"\s*(?:\|\s*)?:?-+:?\s*(?:\|\s*:?-+:?\s*)*(?:\|\s*)?")

Parts = dict[str, list[Span]]
KINDS = ("fences", "tables", "headings")


def parts_of(text: str) -> Parts:
    r"""Find fenced code, tables, and headings with the start of what is below them.

    >>> parts_of("# A\n\nText.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")["tables"]
    [(12, 41)]
    """
    found: Parts = {kind: [] for kind in KINDS}
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    i = 0
    while i < len(lines):
        line, last = lines[i], i
        if opening := FENCE.match(line):
            closing = re.compile(rf" {{0,3}}{re.escape(opening[1])}{opening[1][0]}*\s*")
            rest = range(i + 1, len(lines))
            last = next((j for j in rest if closing.fullmatch(lines[j])), len(lines) - 1)
            found["fences"].append((starts[i], starts[last] + len(lines[last].rstrip())))
        elif "|" in line and i + 1 < len(lines) and _is_rule(lines[i + 1]):
            while last + 1 < len(lines) and "|" in lines[last + 1]:
                last += 1
            found["tables"].append((starts[i], starts[last] + len(lines[last].rstrip())))
        elif HEADING.match(line):
            below = next((j for j in range(i + 1, len(lines)) if lines[j].strip()), None)
            if below is not None:
                indent = len(lines[below]) - len(lines[below].lstrip())
                found["headings"].append((starts[i], starts[below] + indent + 1))
        i = last + 1
    return found


def _is_rule(line: str) -> bool:
    return "|" in line and "-" in line and RULE.fullmatch(line) is not None


def n_cut(chunks: Sequence[Span], parts: Sequence[Span]) -> int:
    """Return how many parts no chunk holds whole.

    >>> n_cut([(0, 10), (10, 20)], [(2, 9), (8, 12)])
    1
    """
    return sum(not any(a <= start and end <= b for a, b in chunks) for start, end in parts)


def measure_chunks(
    chunker: Chunker,
    texts: Sequence[str],
    cuts: Sequence[Sequence[Span]],
    tokens: Sequence[int] | None = None,
) -> dict[str, float | int | None]:
    """Return sizes of the chunks of all texts, and how many parts there are and are cut.

    ``tokens`` are the chunks' numbers of tokens, text after text, if they were counted.
    """
    chunks = [text[a:b] for text, cut in zip(texts, cuts, strict=True) for a, b in cut]
    row: dict[str, float | int | None] = {"chunks": len(chunks)}
    for unit, sizes in (("characters", [len(chunk) for chunk in chunks]), ("tokens", tokens)):
        row |= {f"{unit}_p{percent}": percentile(sizes, percent) for percent in (50, 95)}
        row[f"{unit}_max"] = max(sizes, default=None) if sizes else None
    cap = chunker.cap
    full = [chunker.size(chunk) >= AT_CAP * cap for chunk in chunks] if cap else []
    row["at_cap"] = round(sum(full) / len(full), 6) if full else None
    parts = [parts_of(text) for text in texts]
    for kind in KINDS:
        row[kind] = sum(len(each[kind]) for each in parts)
        cut_apart = (n_cut(cut, each[kind]) for cut, each in zip(cuts, parts, strict=True))
        row[f"{kind}_cut"] = sum(cut_apart)
    return row


def percentile(sizes: Sequence[int] | None, percent: int) -> int | None:
    """Return the smallest size that so many percent of all do not exceed; None without any.

    >>> percentile([5, 1, 3, 2, 4], 50), percentile([7], 95), percentile([], 50)
    (3, 7, None)
    """
    if not sizes:
        return None
    return sorted(sizes)[max(0, math.ceil(percent / 100 * len(sizes)) - 1)]
