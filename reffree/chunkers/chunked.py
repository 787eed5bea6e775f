"""Texts cut by chunkers: a corpus of their units with one system per chunker, and chunks' sizes."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy as np

from reffree.chunkers.base import Chunker, Span, quote_error
from reffree.chunkers.blocks import KINDS, Block, blocks_of, units_of
from reffree.chunkers.spans import SnapReport, snap, trimmed
from reffree.data.corpus import Corpus, Document
from reffree.util.errors import InputError, Place, ReffreeError, located
from reffree.util.naming import spelling_of
from reffree.util.progress import Progress, no_progress

AT_CAP = 0.95
"""A chunk is at the cap from this share of it on."""

CUT = ("sentences", *KINDS)
"""What is counted as cut: sentences, and the blocks of a text."""

Parts = Mapping[str, Sequence[Span]]


@dataclass(frozen=True)
class PlainText:
    """A document before it is split into units, or one of a corpus, whose units are given."""

    id: str
    text: str
    place: Place
    document: Document | None = None

    @classmethod
    def of(cls, document: Document) -> PlainText:
        """Join a document's units by line breaks."""
        return cls(document.id, "\n".join(document.units), document.place, document)

    @cached_property
    def blocks(self) -> list[Block]:
        """Its headings, code, tables, lists and prose."""
        return blocks_of(self.text)

    def units(self, language: str) -> list[Block]:
        """Return the units that were given, as prose, else its sentences and other parts."""
        if self.document is None:
            return units_of(self.text, self.blocks, language, "reffree chunks")
        ends = accumulate((len(unit) + 1 for unit in self.document.units), initial=0)
        spans = trimmed(self.text, [(a, b - 1) for a, b in pairwise(ends)])
        return [Block("prose", *span) for span in spans]


@dataclass(frozen=True, slots=True)
class ChunkReport:
    """What became of one chunker's chunks: where it cut each text, and what snapping did."""

    cuts: tuple[Sequence[Span], ...]
    snap: SnapReport
    seconds: float  # of cutting, without loading what cuts


def chunked(
    texts: Sequence[PlainText],
    units: Sequence[Sequence[Block]],
    chunkers: Sequence[Chunker],
    progress: Progress = no_progress,
) -> tuple[Corpus, dict[str, ChunkReport]]:
    """Make a corpus of texts' units, chunk the texts, and say of every chunker what that took.

    Systems that a corpus came with are left out: chunkers alone are compared.
    """
    spans = [[unit.span for unit in each] for each in units]
    corpus = Corpus(
        tuple(
            replace(text.document, systems={})
            if text.document
            else Document.build(text.id, [text.text[a:b] for a, b in each], place=text.place)
            for text, each in zip(texts, spans, strict=True)
        )
    )
    reports = {}
    with progress("Chunking", len(texts) * len(chunkers)) as advance:
        for chunker in chunkers:
            name, total, spent = spelling_of(chunker), SnapReport(), 0.0
            if chunker.package is not None:
                cut_text(chunker, PlainText("warm-up", "It is loaded. So it runs.", Place()))
            cuts, segmentations = [], {}
            for text, each in zip(texts, spans, strict=True):
                start = time.perf_counter()
                cuts.append(cut_text(chunker, text))
                spent += time.perf_counter() - start
                with located(replace(text.place, system=name, document=text.id)):
                    segmentations[text.id], report = snap(cuts[-1], each)
                total += report
                advance(1)
            corpus = corpus.with_system(name, segmentations)
            reports[name] = ChunkReport(tuple(cuts), total, spent)
    return corpus, reports


def cut_text(chunker: Chunker, text: PlainText) -> Sequence[Span]:
    """Chunk one text; whatever goes wrong is told with its place."""
    place = replace(text.place, system=spelling_of(chunker), document=text.id)
    try:
        return chunker(text.text)
    except InputError as error:
        if str(error.place):
            raise
        with located(place):
            raise
    except ReffreeError:
        raise
    except Exception as error:  # whatever a library or the user's code raises
        raise InputError(
            f"{quote_error(error)} from the chunker",
            expected="chunks",
            remedy="try the chunker on this text by itself",
            place=place,
        ) from error


def characters_a_chunk(chunker: Chunker, texts: Sequence[PlainText]) -> float:
    """Return the characters of all texts by the number of chunks."""
    n_chunks = sum(len(cut_text(chunker, text)) for text in texts)
    return sum(len(text.text) for text in texts) / max(1, n_chunks)


def check_sized(chunker: Chunker) -> None:
    """Refuse a chunker that has no size to choose."""
    if chunker.sized_by is None:
        raise InputError(
            f"{spelling_of(chunker)}, which has no size to choose",
            expected="a chunker with chunk_size or max_tokens",
            remedy="leave it out, or score it as it is",
        )


def with_size(chunker: Chunker, size: int) -> Chunker:
    """Return the chunker with another size, in its own measure."""
    return cast(Chunker, replace(cast(Any, chunker), **{str(chunker.sized_by): size}))


def with_characters(chunker: Chunker, texts: Sequence[PlainText], characters: float) -> Chunker:
    """Return the chunker with the size at which texts have that many characters a chunk.

    The larger its size, the fewer chunks: the size is found by halving; of two neighbours the one
    that comes nearer.
    """
    check_sized(chunker)
    least = max(1, getattr(chunker, "chunk_overlap", 0))
    low, high = least, max(least + 1, *(len(text.text) for text in texts))
    while high - low > 1:
        middle = (low + high) // 2
        if characters_a_chunk(with_size(chunker, middle), texts) < characters:
            low = middle
        else:
            high = middle
    ends = [with_size(chunker, low), with_size(chunker, high)]
    return min(ends, key=lambda each: abs(characters_a_chunk(each, texts) - characters))


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
        row[f"{unit}_p95"] = int(np.percentile(sizes, 95, method="inverted_cdf")) if sizes else None
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
