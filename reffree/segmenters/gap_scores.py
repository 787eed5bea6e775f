"""Methods that give every gap between units a score, so that their density can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from reffree.errors import OptionError
from reffree.naming import spelling_of
from reffree.segmentation import Segmentation
from reffree.segmenters.base import Inputs
from reffree.segmenters.depth import Depth
from reffree.segmenters.scorer.scorer import Scorer
from reffree.segmenters.segment import parse_segmenter
from reffree.segmenters.texttiling import TextTiling
from reffree.selection import select_above

CHANCE = "random"
"""Uniform scores: where a curve must lie that knows nothing of the text."""

Scored = Depth | TextTiling | Scorer
"""Methods with a score per gap."""

Taken = tuple[tuple[int, float], ...]
"""Boundaries of a document with their scores, in order."""


@dataclass(frozen=True, slots=True)
class GapScores:
    """One method on a corpus: every boundary that spacing leaves room for, scored from 0 to 1."""

    name: str
    n_units: tuple[int, ...]
    boundaries: tuple[Taken, ...]
    own: tuple[Segmentation, ...] | None  # as the method segments by itself; chance does not

    def above(self, threshold: float) -> tuple[Segmentation, ...]:
        """Select as `reffree.selection.select_above` does, in every document.

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


def parse_scored_method(text: str) -> Scored | None:
    """Read a method's name and options; None stands for chance."""
    if text == CHANCE:
        return None
    method = parse_segmenter(text)
    if not isinstance(method, Scored):
        raise OptionError(
            f"the method {text!r}, which gives no score per gap",
            expected=f"{', '.join(kind.name for kind in get_args(Scored))} or {CHANCE}",
            remedy="segment the corpus with it first: it then appears as a point",
        )
    return method


def gap_scores(method: Scored | None, inputs: Inputs, min_gap: int) -> GapScores:
    r"""Score every gap of every document, and keep what non-maximum suppression leaves.

    The scores of ``scorer`` are probabilities and stay as they are. Depths and random numbers have
    no such scale, so they are replaced by ranks: the share of all boundaries that spacing leaves
    room for, over the corpus, with a lower score. A threshold of .6 then takes the highest 40 % of
    them, and the lowest depth, which is no valley, is never taken. Ranks change neither the order
    of boundaries nor the curve over densities, only where on it the thresholds lie.
    """
    if method is None:
        scores = tuple(
            inputs.rng(document.id, "uniform scores").random(len(document.units) - 1)
            for document in inputs.corpus
        )
    else:
        scores = method.boundary_scores(inputs)
    taken = [
        tuple((b, float(each[b - 1])) for b in select_above(each, -np.inf, min_gap).boundaries)
        for each in scores
    ]
    return GapScores(
        CHANCE if method is None else spelling_of(method),
        tuple(len(document.units) for document in inputs.corpus),
        tuple(taken if isinstance(method, Scorer) else _ranks(taken)),
        None if method is None else method(inputs),
    )


def _ranks(taken: Sequence[Taken]) -> list[Taken]:
    """Replace scores by the share of all of them that are lower."""
    pooled = np.sort([score for document in taken for _, score in document])
    size = max(1, len(pooled))
    return [
        tuple((b, float(np.searchsorted(pooled, score)) / size) for b, score in document)
        for document in taken
    ]
