"""What the lexical segmenters share: the terms of a corpus, and how many boundaries to find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from reffree.bounds import check_whole
from reffree.corpus import Corpus
from reffree.errors import InputError
from reffree.segmenters.base import Inputs
from reffree.words import STOP_WORDS, Language, Lexicon, Terms

BoundaryCount = Literal["auto", "gold"] | int
"""What the method finds, as many as gold has, or so many in every document."""


def terms_of(corpus: Corpus, language: Language) -> Iterator[Terms]:
    """Terms of every document, one after the other."""
    lexicon = Lexicon(language)
    return (lexicon.terms(document.units) for document in corpus.documents)


def check_language(language: str) -> None:
    """Refuse a language without stop words or a stemmer."""
    if language not in STOP_WORDS:
        raise InputError(
            f"language = {language}",
            expected=", ".join(STOP_WORDS),
            remedy="leave it out for english, or choose a method that works on embeddings",
        )


def check_count(k: BoundaryCount, method: str) -> None:
    """Refuse what is no number of boundaries."""
    if k not in ("auto", "gold"):
        remedy = f"write {method}:k=gold or {method}:k=5, or leave it out for auto"
        check_whole("k", k, remedy=remedy)


def wanted_boundaries(inputs: Inputs, k: BoundaryCount, method: str) -> list[int | None]:
    """Boundaries of each document, no more than gaps; None where the method finds their number."""
    if k == "gold":
        return [len(gold) - 1 for gold in inputs.gold(method)]
    if k == "auto":
        return [None] * len(inputs.corpus)
    return [min(k, len(document.units) - 1) for document in inputs.corpus]
