"""Texts cut by chunkers: a corpus of their sentences with one system per chunker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, cast

from reffree.chunkers.base import Chunker, Span, quote_error
from reffree.chunkers.snap import SnapReport, snap
from reffree.chunkers.spans import trimmed
from reffree.data.corpus import Corpus, Document
from reffree.data.sentences import sentence_spans
from reffree.util.errors import InputError, Place, ReffreeError, located
from reffree.util.naming import spelling_of


@dataclass(frozen=True, slots=True)
class PlainText:
    """A document before it is split into sentences, or one of a corpus, whose units are given."""

    id: str
    text: str
    place: Place
    document: Document | None = None

    @classmethod
    def of(cls, document: Document) -> PlainText:
        """Join a document's units by line breaks."""
        return cls(document.id, "\n".join(document.units), document.place, document)

    def units(self, language: str) -> list[Span]:
        """Return spans of the units that were given, else of sentences."""
        if self.document is None:
            return sentences(self.text, language)
        ends = accumulate(len(unit) + 1 for unit in self.document.units)
        starts = [0, *ends]
        return trimmed(self.text, [(a, b - 1) for a, b in pairwise(starts)])


@dataclass(frozen=True, slots=True)
class ChunkReport:
    """What became of one chunker's chunks: where it cut each text, and what snapping did."""

    cuts: tuple[Sequence[Span], ...]
    snap: SnapReport


def chunked(
    texts: Sequence[PlainText], chunkers: Sequence[Chunker], language: str = "en"
) -> tuple[Corpus, dict[str, ChunkReport]]:
    """Split texts into sentences, chunk them, and say of every chunker what that took."""
    units = [text.units(language) for text in texts]
    corpus = Corpus(
        tuple(
            text.document
            or Document.build(text.id, [text.text[a:b] for a, b in spans], place=text.place)
            for text, spans in zip(texts, units, strict=True)
        )
    )
    reports = {}
    for chunker in chunkers:
        name, total = spelling_of(chunker), SnapReport()
        cuts, segmentations = [], {}
        for text, spans in zip(texts, units, strict=True):
            cuts.append(cut_text(chunker, text))
            with located(replace(text.place, system=name, document=text.id)):
                segmentations[text.id], report = snap(cuts[-1], spans)
            total += report
        corpus = corpus.with_system(name, segmentations)
        reports[name] = ChunkReport(tuple(cuts), total)
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


def sentences(text: str, language: str = "en") -> list[Span]:
    """Split with sentencex; spans carry no whitespace at their ends, and none is empty.

    Abbreviations are those of the language; one that sentencex does not know is split by the rules
    of a related language or of English.
    """
    return sentence_spans(text, language, "reffree chunks")


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
