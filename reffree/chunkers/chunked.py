"""Texts cut by chunkers: a corpus of their sentences with one system per chunker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reffree.chunkers.base import Chunker, Span, said_by
from reffree.chunkers.snap import SnapReport, snap
from reffree.corpus import Corpus, Document
from reffree.errors import InputError, Place, ReffreeError, located
from reffree.naming import spelling_of
from reffree.segmentation import Segmentation
from reffree.sentences import LIBRARY, sentence_spans

SENTENCES = LIBRARY


@dataclass(frozen=True, slots=True)
class PlainText:
    """A document before it is split into sentences."""

    id: str
    text: str
    place: Place


def chunked(
    texts: Sequence[PlainText], chunkers: Sequence[Chunker], language: str = "en"
) -> tuple[Corpus, dict[str, SnapReport]]:
    """Split texts into sentences, chunk them, and return what snapping did for every chunker."""
    spans = [sentences(text.text, language) for text in texts]
    corpus = Corpus(
        tuple(
            Document.build(text.id, [text.text[a:b] for a, b in units], place=text.place)
            for text, units in zip(texts, spans, strict=True)
        )
    )
    reports = {}
    for chunker in chunkers:
        name = spelling_of(chunker)
        total = SnapReport()
        segmentations: dict[str, Segmentation] = {}
        for text, units in zip(texts, spans, strict=True):
            segmentations[text.id], report = _segment(chunker, name, text, units)
            total += report
        corpus = corpus.with_system(name, segmentations)
        reports[name] = total
    return corpus, reports


def _segment(
    chunker: Chunker, name: str, text: PlainText, units: Sequence[Span]
) -> tuple[Segmentation, SnapReport]:
    """Chunk one text; whatever goes wrong is told with its place."""
    place = replace(text.place, system=name, document=text.id)
    try:
        return snap(chunker(text.text), units)
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
