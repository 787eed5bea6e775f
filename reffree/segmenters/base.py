"""What a segmenter is, what it works on, and what the methods share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncoderSpec
from reffree.segmenters.selection import Candidates, Rule, select_share, select_top
from reffree.util.arrays import Floats, check_finite, to_plain_floats
from reffree.util.errors import InputError
from reffree.util.naming import check_options
from reffree.util.seeds import rng_for
from reffree.util.words import Language, Lexicon, Terms

Wanted = Literal["auto", "gold", "mean"] | int | None
"""Boundaries to find: so many; as many as gold has in the document, or on average over the corpus;
or (auto, None) as the method sees fit."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What segmenters may look at; gold only where the method says so."""

    corpus: Corpus
    seed: int = 0
    embeddings: Sequence[NDArray[np.generic]] | None = None  # one array per document
    encoder: EncoderSpec | None = None  # that made them
    device: str = "auto"  # for methods that run a model themselves
    candidates: Sequence[Candidates] | None = None  # gaps that may become boundaries, else all
    advance: Callable[[int], None] = lambda steps: None  # told of steps done before the last

    def candidates_of(self, document: int) -> Candidates | None:
        """Gaps of a document, by its number, that may become boundaries; None for all."""
        return None if self.candidates is None else self.candidates[document]

    def rng(self, document: str, method: str) -> np.random.Generator:
        """Random numbers of one method on one document, whatever else the corpus holds."""
        return rng_for(self.seed, method, document)

    def gold_segments(self, method: str) -> list[float]:
        """Segments that gold has in every document, for oracles; refuses to go on without gold.

        With several annotators it is their mean.
        """
        found = []
        for document in self.corpus.documents:
            if not document.references:
                raise InputError(
                    f"no gold for {method}, which takes its number of boundaries from it",
                    expected="gold in every document",
                    remedy="choose a method that needs none, such as random:p=0.1",
                    place=document.place,
                )
            found.append(sum(map(len, document.references)) / len(document.references))
        return found

    def n_boundaries(self, k: Wanted, method: str) -> list[int | None]:
        """Boundaries to find in each document, no more than gaps; None for the method to say."""
        if k is None or k == "auto":
            return [None] * len(self.corpus)
        if k == "gold":
            return [round(segments) - 1 for segments in self.gold_segments(method)]
        if k == "mean":
            segments = self.gold_segments(method)
            k = round(sum(segments) / len(segments)) - 1
        return [min(k, len(document.units) - 1) for document in self.corpus]

    def vectors(self, method: str) -> Iterator[NDArray[np.generic]]:
        """Every document's vectors as given, checked."""
        if self.embeddings is None or len(self.embeddings) != len(self.corpus):
            given = "no" if self.embeddings is None else f"{len(self.embeddings)}"
            raise InputError(
                f"{given} embeddings for {method}",
                expected=f"{len(self.corpus)}, one array for every document",
                remedy="embed the corpus first",
            )
        for document, vectors in zip(self.corpus, self.embeddings, strict=True):
            x = to_plain_floats(np.asarray(vectors))
            if x.ndim != 2 or len(x) != len(document.units):
                raise InputError(
                    f"embeddings of shape {x.shape}",
                    expected=f"{len(document.units)} rows, one for every unit",
                    remedy="encode the document again",
                    place=document.place,
                )
            check_finite(x, document.place)
            yield x

    def terms(self, language: Language) -> Iterator[Terms]:
        """Terms of every document, one after the other."""
        lexicon = Lexicon(language)
        return (lexicon.terms(document.units) for document in self.corpus.documents)


class Segmenter(ABC):
    """A method with its options; frozen dataclasses extend it."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_options(self)
        k, density = getattr(self, "k", None), getattr(self, "density", None)
        if k is not None and density is not None:
            raise InputError(
                f"density = {density} and k = {k}",
                expected="one of the two",
                remedy="leave out the other",
            )

    @property
    def needs_embeddings(self) -> bool:
        """Whether `Inputs.embeddings` must be there."""
        return False

    @property
    def encoders(self) -> tuple[EncoderSpec, ...]:
        """Encoders of networks that it was trained on: the vectors must be theirs."""
        return ()

    @property
    def n_steps(self) -> int:
        """Steps that progress is shown in."""
        return 1

    @property
    def needs_gold(self) -> bool:
        """Whether gold says how many boundaries to find."""
        return getattr(self, "k", None) in ("gold", "mean")

    def check(self, corpus: Corpus, encoder: EncoderSpec | None) -> None:
        """Refuse what cannot be segmented, before anything is encoded.

        ``encoder`` is what will make the vectors; None where that is not known, or needs none.
        """
        if self.needs_gold:
            Inputs(corpus).gold_segments(self.name)

    @abstractmethod
    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document, in the order of the corpus."""


class GapScorer(Segmenter):
    """A method with a score per gap, higher = more of a boundary, from which any rule can select.

    ``gives_probabilities`` says that scores are comparable over documents and corpora;
    ``heeds_candidates`` that the method's own selection keeps to `Inputs.candidates`. Options that
    all of them understand: ``k`` boundaries, a ``density`` of boundaries per gap, and ``min_gap``,
    units between two.
    """

    __slots__ = ()
    gives_probabilities: ClassVar[bool] = False
    heeds_candidates: ClassVar[bool] = True

    @abstractmethod
    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Score each of the ``n - 1`` gaps of every document."""

    def selection_rule(self) -> Rule:
        """Return how boundaries are selected where neither their number nor density is given."""
        raise NotImplementedError

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Score every gap, then select."""
        k: Wanted = getattr(self, "k", None)
        density: float | None = getattr(self, "density", None)
        min_gap: int = getattr(self, "min_gap", 1)
        wanted = inputs.n_boundaries(k, self.name)
        rule = self.selection_rule() if k is None and density is None else None
        found = []
        for d, scores in enumerate(self.boundary_scores(inputs)):
            candidates, number = inputs.candidates_of(d), wanted[d]
            if rule is not None:
                found.append(rule(scores, candidates))
            elif number is not None:
                found.append(select_top(scores, number, min_gap, candidates))
            else:
                found.append(select_share(scores, density or 0.0, min_gap, candidates))
        return tuple(found)


def to_scale(vectors: ArrayLike) -> tuple[Floats, int]:
    """Bring the largest component to about 1, and return the power of two that was divided by.

    No bit is lost, and squares neither overflow nor vanish.
    """
    x = np.asarray(vectors, dtype=np.float64)
    exponent = int(np.frexp(np.abs(x).max(initial=0.0))[1])
    return np.ldexp(x, -exponent), exponent


def directions(x: Floats) -> Floats:
    """Bring rows to length 1, but for zeros."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1.0)


def rises(scores: Floats) -> tuple[Floats, Floats]:
    """How far scores rise from each one to the left and to the right, as long as none falls."""

    def peaks(scores: Floats) -> Floats:
        """Score reached from each one by going left for as long as they do not fall."""
        falls_at_once = np.concatenate([[True], scores[:-1] < scores[1:]])[: len(scores)]
        top = np.maximum.accumulate(np.where(falls_at_once, np.arange(len(scores)), 0))
        return scores[top]

    return peaks(scores) - scores, peaks(scores[::-1])[::-1] - scores
