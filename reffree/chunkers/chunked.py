"""Texts cut by chunkers: a corpus of their sentences with one system per chunker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from reffree.chunkers.base import Chunker, Span, said_by
from reffree.chunkers.sizes import ChunkSizes
from reffree.chunkers.snap import SnapReport, snap
from reffree.chunkers.spans import trimmed
from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.data.sentences import LIBRARY, sentence_spans
from reffree.util.errors import InputError, Place, ReffreeError, located
from reffree.util.naming import spelling_of

SENTENCES = LIBRARY


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
    """What became of one chunker's chunks over all texts."""

    snap: SnapReport = field(default_factory=SnapReport)
    sizes: ChunkSizes = field(default_factory=ChunkSizes)
    texts: tuple[str, ...] = ()  # of the chunks

    def __add__(self, other: ChunkReport) -> ChunkReport:
        """Put two reports together."""
        return ChunkReport(
            self.snap + other.snap, self.sizes + other.sizes, self.texts + other.texts
        )


def chunked(
    texts: Sequence[PlainText], chunkers: Sequence[Chunker], language: str = "en"
) -> tuple[Corpus, dict[str, ChunkReport]]:
    """Split texts into sentences, chunk them, and say of every chunker what that took."""
    spans = [text.units(language) for text in texts]
    corpus = Corpus(
        tuple(
            text.document
            or Document.build(text.id, [text.text[a:b] for a, b in units], place=text.place)
            for text, units in zip(texts, spans, strict=True)
        )
    )
    reports = {}
    for chunker in chunkers:
        name = spelling_of(chunker)
        total = ChunkReport()
        segmentations: dict[str, Segmentation] = {}
        for text, units in zip(texts, spans, strict=True):
            segmentations[text.id], report = _segment(chunker, text, units)
            total += report
        corpus = corpus.with_system(name, segmentations)
        reports[name] = total
    return corpus, reports


def _segment(
    chunker: Chunker, text: PlainText, units: Sequence[Span]
) -> tuple[Segmentation, ChunkReport]:
    """Chunk one text, and say what that took."""
    chunks = cut_text(chunker, text)
    with located(replace(text.place, system=spelling_of(chunker), document=text.id)):
        segmentation, report = snap(chunks, units)
    sizes = ChunkSizes.of(chunker, text.text, chunks)
    cut = tuple(text.text[start:end] for start, end in chunks)
    return segmentation, ChunkReport(report, sizes, cut)


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
            f"{said_by(error)} from the chunker",
            expected="chunks",
            remedy="try the chunker on this text by itself",
            place=place,
        ) from error


def sentences(text: str, language: str = "en") -> list[Span]:
    """Split with sentencex; spans carry no whitespace at their ends, and none is empty.

    Abbreviations are those of the language; one that sentencex does not know is split by the rules
    of a related language or of English.
    """
    return sentence_spans(text, language, "reffree chunkers")
