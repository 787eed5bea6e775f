"""Texts cut by chunkers: a corpus of their units with one system per chunker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from reffree.chunkers.base import Chunker, Span, quote_error
from reffree.chunkers.blocks import Block
from reffree.chunkers.snap import SnapReport, snap
from reffree.chunkers.texts import PlainText
from reffree.data.corpus import Corpus, Document
from reffree.util.errors import InputError, Place, ReffreeError, located
from reffree.util.naming import spelling_of
from reffree.util.progress import Progress, no_progress


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
    """Make a corpus of texts' units, chunk the texts, and say of every chunker what that took."""
    spans = [[unit.span for unit in each] for each in units]
    corpus = Corpus(
        tuple(
            text.document
            or Document.build(text.id, [text.text[a:b] for a, b in each], place=text.place)
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
