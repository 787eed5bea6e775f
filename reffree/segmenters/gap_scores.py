"""Scores per gap between units, of methods or from elsewhere, so that density can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Vectors, corpus_vectors
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.segmenters.base import GapScorer, Inputs
from reffree.segmenters.segment import (
    SEGMENTERS,
    are_probabilities,
    parse_segmenter,
    refuse_dropped,
)
from reffree.segmenters.selection import Candidates, StaticSelection, select_above
from reffree.segmenters.trained.folder import trained_encoding
from reffree.util.arrays import Floats
from reffree.util.declare import declared
from reffree.util.errors import OptionError
from reffree.util.naming import spelling_of
from reffree.util.progress import Progress, no_progress

CHANCE = "random"
"""Uniform scores: where a curve must lie that knows nothing of the text."""

Taken = tuple[tuple[int, float], ...]
"""Boundaries of a document with their scores, in order."""


@dataclass(frozen=True, slots=True)
class GapScores:
    """One method on a corpus: every boundary that spacing leaves room for, scored from 0 to 1."""

    name: str
    n_units: tuple[int, ...]
    boundaries: tuple[Taken, ...]
    own: tuple[Segmentation, ...] | None  # as the method segments by itself; chance does not
    is_ranked: bool = False  # scores are ranks over the corpus, not the method's own

    def above(self, threshold: float) -> tuple[Segmentation, ...]:
        """Select as `reffree.segmenters.selection.select_above` does, in every document.

        It goes down from the highest score, so a lower threshold only adds boundaries.
        """
        return tuple(
            Segmentation.from_boundaries([b for b, s in taken if s >= threshold], n)
            for taken, n in zip(self.boundaries, self.n_units, strict=True)
        )

    def nearest(self, n_boundaries: int) -> float:
        """Return the threshold whose number of boundaries over the corpus is nearest to this.

        Of two equally near ones the higher threshold, with fewer boundaries.
        """
        taken = np.sort([s for document in self.boundaries for _, s in document])[::-1]
        thresholds = np.concatenate([[np.inf], np.unique(taken)[::-1]])
        found = np.searchsorted(-taken, -thresholds, side="right")  # boundaries at each threshold
        return float(thresholds[np.argmin(np.abs(found - n_boundaries))])


def parse_scored_method(text: str) -> GapScorer | None:
    """Read a method's name and options; None stands for chance."""
    if text == CHANCE:
        return None
    method = parse_segmenter(text)
    if not isinstance(method, GapScorer):
        known = [name for name, kind in SEGMENTERS.items() if issubclass(kind, GapScorer)]
        raise OptionError(
            f"the method {text!r}, which gives no score per gap",
            expected=f"{', '.join(known)} or {CHANCE}",
            remedy="segment the corpus with it first: it then appears as a point",
        )
    return method


@declared
def boundary_scores(
    corpus: Corpus,
    method: str,
    *,
    seed: int = 0,
    embeddings: Vectors | None = None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> dict[str, list[float]]:
    """Return a method's score of every gap, by document id; ``random`` gives uniform scores.

    What `reffree.formats.write_scores` writes and `reffree.segment` takes as ``scores``.
    """
    parsed = parse_scored_method(method)
    options = EncoderOptions(**encoding)
    if parsed is not None and embeddings is None:
        options = trained_encoding(options, parsed.encoders)
    refuse_dropped(options)
    inputs = Inputs(corpus, seed, device=options.device)
    if parsed is not None and parsed.needs_embeddings:
        embedded = corpus_vectors(corpus, embeddings, options, progress)
        inputs = Inputs(corpus, seed, embedded.vectors, embedded.spec, options.device)
    found = raw_scores(parsed, inputs)
    return {d.id: scores.tolist() for d, scores in zip(corpus, found, strict=True)}


def raw_scores(method: GapScorer | None, inputs: Inputs) -> tuple[Floats, ...]:
    """Score every gap on the method's own scale; None stands for chance."""
    if method is not None:
        return method.boundary_scores(inputs)
    return tuple(
        inputs.rng(document.id, "uniform scores").random(len(document.units) - 1)
        for document in inputs.corpus
    )


def gap_scores(method: GapScorer | None, inputs: Inputs, min_gap: int) -> GapScores:
    """Score every gap of every document, and keep what non-maximum suppression leaves.

    Probabilities stay as they are. Depths and random numbers have no such scale, so they are
    replaced by ranks: the share of all boundaries that spacing leaves room for, over the corpus,
    with a lower score. A threshold of .6 then takes the highest 40 % of them, and the lowest depth,
    which is no valley, is never taken.
    """
    name = CHANCE if method is None else spelling_of(method)
    is_ranked = method is None or not method.gives_probabilities
    # A rule that does not keep to the candidates has no operating point among them.
    heeds = inputs.candidates is None or (method is not None and method.heeds_candidates)
    own = None if method is None or not heeds else method(inputs)
    return _spaced(name, raw_scores(method, inputs), inputs.candidates, min_gap, own, is_ranked)


def gap_scores_of(
    name: str, scores: Sequence[Floats], candidates: Sequence[Candidates] | None, min_gap: int
) -> GapScores:
    """Do the same with scores that are given: ranks, unless all lie between 0 and 1.

    Those that do have the paper's operating point, .5; ranks have none.
    """
    is_ranked = not are_probabilities(scores)
    own = None if is_ranked else StaticSelection(gap=min_gap)(scores, candidates)
    return _spaced(name, scores, candidates, min_gap, own, is_ranked)


def _spaced(
    name: str,
    scores: Sequence[Floats],
    candidates: Sequence[Candidates] | None,
    min_gap: int,
    own: tuple[Segmentation, ...] | None,
    is_ranked: bool,
) -> GapScores:
    masks = [None] * len(scores) if candidates is None else candidates
    found = [
        [(b, float(each[b - 1])) for b in select_above(each, -np.inf, min_gap, mask).boundaries]
        for each, mask in zip(scores, masks, strict=True)
    ]
    if is_ranked:  # by the share of all scores that are lower
        pooled = np.sort([score for document in found for _, score in document])
        size = max(1, len(pooled))
        found = [[(b, float(np.searchsorted(pooled, s)) / size) for b, s in each] for each in found]
    n_units = tuple(len(each) + 1 for each in scores)
    return GapScores(name, n_units, tuple(map(tuple, found)), own, is_ranked)
