"""Agreement of two metrics over the systems' scores on the whole corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats
from reffree.seeds import rng_for
from reffree.statistics.coefficients import MIN_SYSTEMS, Coefficient, correlation
from reffree.statistics.estimate import (
    TOO_FEW_DOCUMENTS,
    Estimate,
    Extent,
    estimated,
    undefined,
    without_interval,
)
from reffree.statistics.expected import expected_scores
from reffree.statistics.intervals import (
    Interval,
    centred,
    symmetric,
)
from reffree.statistics.losses import Counts, SystemLosses
from reffree.statistics.pairwise import (
    AnyFloats,
    NormalP,
    permutation_p,
    sign_flips,
    soft_pairwise_accuracy,
)
from reffree.statistics.resampling import MIN_DOCUMENTS, percentiles

CorpusMeasure = Literal["pearson", "spearman", "kendall", "spa"]
Kept = NDArray[np.bool_]
Names = tuple[str, ...]


class CorpusLevel:
    """System scores of metrics, over the corpus and over its resamples."""

    def __init__(self, metrics: Mapping[str, SystemLosses], counts: Counts, seed: int) -> None:
        """Score the corpus; resamples are scored when they are asked for."""
        self._metrics = metrics
        self._counts = counts
        self._seed = seed
        everything = np.ones((1, counts.shape[1]))
        self.scores = {name: metric.over(everything)[0] for name, metric in metrics.items()}
        self._resampled: dict[str, Floats] = {}
        self._p: dict[str, Floats] = {}
        self._flips: NDArray[np.int8] | None = None
        self._expected: tuple[Names, Floats] = ((), np.empty(0))

    def kept(self, names: Sequence[str]) -> Kept:
        """Systems (s,) with a score under all these metrics."""
        scores = np.stack([self.scores[name] for name in names])
        kept: Kept = np.logical_and.reduce(~np.isnan(scores))
        return kept

    def estimate(self, names: Names, measure: CorpusMeasure) -> Estimate:
        """Agreement of the first metric, or of the first less that of the second, with the last."""
        kept = self.kept(names)
        shared = self._n_shared(names, kept)
        extent = Extent(int(kept.sum()), shared, self._counts.shape[1] - shared)
        if extent.systems < MIN_SYSTEMS:
            return undefined(f"fewer than {MIN_SYSTEMS} systems with a score", extent)
        for name in names:
            if np.ptp(self.scores[name][kept]) == 0:
                return undefined(f"{name} gives all systems the same score", extent)
        value = self._value(names, measure, kept)
        if np.isnan(value):
            return undefined("two systems have no document in common", extent)
        if extent.documents < MIN_DOCUMENTS:
            return without_interval(value, TOO_FEW_DOCUMENTS, extent)
        resampled = np.stack([self._resampled_scores(name)[:, kept] for name in names])
        # A resample without a score of every system would compare other systems.
        resampled[:, np.isnan(resampled).any((0, 2))] = np.nan
        if measure == "spa":
            found, over = self._spa_interval(names, value, kept, resampled)
            return estimated(value, found, over, extent, is_difference=len(names) == 3)
        over = _difference(list(resampled), measure)
        limit = float(len(names) - 1)
        found = symmetric(value, over, (-limit, limit))
        made = estimated(value, found, over, extent, is_difference=len(names) == 3)
        if found is None or len(names) == 3:
            return made
        noiseless, (low, high) = self._noiseless(names, measure, kept, resampled, over)
        if measure != "pearson":
            low, high = min(low, found.low), max(high, found.high)
        return replace(made, noiseless=noiseless, noiseless_ci=(low, high))

    def _value(self, names: Names, measure: CorpusMeasure, kept: Kept) -> float:
        if measure == "spa":
            return float(_difference([self._p_values(name, kept) for name in names], measure))
        return float(_difference([self.scores[name][kept] for name in names], measure))

    def _noiseless(
        self, names: Names, measure: Coefficient, kept: Kept, resampled: Floats, over: Floats
    ) -> tuple[float, tuple[float, float]]:
        """Agreement that the systems' expected scores have: the median of draws, and its interval.

        The draws are those of `expected_scores`, which take expected scores for normal over
        systems. Ranks of systems in clusters do not forgive that, so the interval of a rank
        coefficient is joined with that of the value. A draw in which a metric expects no
        differences between systems might have any correlation: such draws count as the lowest and
        the highest in turn.
        """
        is_scored = ~np.isnan(over)
        drawn = _difference(
            list(self._expected_scores(names, kept, resampled[:, is_scored])), measure
        )
        is_free = np.isnan(drawn)
        drawn[is_free] = np.where(np.arange(is_free.sum()) % 2, 1.0, -1.0)
        median = float(np.median(drawn))
        return median, percentiles(median, drawn)

    def _expected_scores(self, names: Names, kept: Kept, resampled: Floats) -> Floats:
        """Draw expected scores; measures of the same metrics follow one another and share them."""
        if self._expected[0] != names:
            point = np.stack([self.scores[name][kept] for name in names])
            rng = rng_for(self._seed, "expected scores")
            drawn = expected_scores(point, resampled, self._n_shared(names, kept), rng)
            self._expected = (names, drawn)
        return self._expected[1]

    def _spa_interval(
        self, names: Names, value: float, kept: Kept, resampled: Floats
    ) -> tuple[Interval | None, Floats]:
        """Interval of the expectation over corpora of as many documents; resampled values (r,)."""
        p = [
            NormalP(self._metrics[name].contributions[kept]).of(scores)
            for name, scores in zip(names, np.nan_to_num(resampled), strict=True)
        ]
        over = np.where(np.isnan(resampled).any((0, 2)), np.nan, _difference(p, "spa"))
        limits = (0.0, 1.0) if len(names) == 2 else (-1.0, 1.0)
        return centred(value, over, limits), over

    def _p_values(self, name: str, kept: Kept) -> Floats:
        """p-values of the pairs of kept systems."""
        if name not in self._p:
            if self._flips is None:
                self._flips = sign_flips(self._counts.shape[1], rng_for(self._seed, "sign flips"))
            self._p[name] = permutation_p(self._metrics[name].contributions, self._flips)
        first, second = np.triu_indices(len(kept), 1)
        return self._p[name][kept[first] & kept[second]]

    def _resampled_scores(self, name: str) -> Floats:
        if name not in self._resampled:
            self._resampled[name] = self._metrics[name].over(self._counts)
        return self._resampled[name]

    def _n_shared(self, names: Sequence[str], kept: Kept) -> int:
        """Documents that take part in a kept system's score under every metric."""
        has = [~np.isnan(self._metrics[name].contributions[kept]) for name in names]
        return int(np.logical_and.reduce(has).any(0).sum())


def _difference(sides: Sequence[AnyFloats], measure: CorpusMeasure) -> Floats:
    """Agreement of the first with the last, less that of the second if there are three."""
    *others, gold = sides
    measured = [_agreement(side, gold, measure) for side in others]
    return measured[0] if len(measured) == 1 else measured[0] - measured[1]


def _agreement(x: AnyFloats, y: AnyFloats, measure: CorpusMeasure) -> Floats:
    if measure == "spa":
        return soft_pairwise_accuracy(x, y)
    return correlation(x.astype(np.float64), y.astype(np.float64), measure)
