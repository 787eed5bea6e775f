"""Agreement of two metrics over the systems' scores on the whole corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reffree.seeds import rng_for
from reffree.study.bootstrap import MIN_DOCUMENTS
from reffree.study.statistics.coefficients import MIN_SYSTEMS, correlation
from reffree.study.statistics.estimate import Estimate, Extent, estimated, undefined
from reffree.study.statistics.expected import expected_scores
from reffree.study.statistics.pairwise import (
    AnyFloats,
    NormalP,
    permutation_p,
    sign_flips,
    soft_pairwise_accuracy,
)
from reffree.study.statistics.scores import Counts, Floats, MetricScores

CorpusMeasure = Literal["pearson", "spearman", "kendall", "spa"]


class CorpusLevel:
    """System scores of metrics, over the corpus and over its resamples."""

    def __init__(self, metrics: Mapping[str, MetricScores], counts: Counts, seed: int) -> None:
        """Score the corpus; resamples are scored when they are asked for."""
        self._metrics = metrics
        self._counts = counts
        self._seed = seed
        everything = np.ones((1, counts.shape[1]))
        self.scores = {name: metric.over(everything)[0] for name, metric in metrics.items()}
        self._resampled: dict[str, Floats] = {}
        self._p: dict[str, Floats] = {}
        self._flips: NDArray[np.int8] | None = None
        self._drawn: tuple[tuple[str, ...], Floats] = ((), np.empty(0))

    def kept(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Systems (s,) with a score under all these metrics."""
        scores = np.stack([self.scores[name] for name in names])
        kept: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(scores))
        return kept

    def estimate(self, names: tuple[str, ...], measure: CorpusMeasure) -> Estimate:
        """Agreement of the first metric, or of the first less that of the second, with the last."""
        kept = self.kept(names)
        extent = Extent(int(kept.sum()), self._n_shared(names, kept), self._counts.shape[1])
        if extent.systems < MIN_SYSTEMS:
            return undefined(f"fewer than {MIN_SYSTEMS} systems with a score", extent)
        for name in names:
            if np.ptp(self.scores[name][kept]) == 0:
                return undefined(f"{name} gives all systems the same score", extent)
        if measure == "spa":
            value = agreement([self._p_values(name, kept) for name in names], measure)
        else:
            value = agreement([self.scores[name][kept] for name in names], measure)
        if np.isnan(value):
            return undefined("two systems have no document in common", extent)
        is_difference = len(names) == 3
        if extent.systems <= len(names):
            reason = f"fewer than {len(names) + 1} systems with a score"
            return estimated(
                float(value), None, extent, is_difference=is_difference, ci_reason=reason
            )
        has_interval = extent.documents >= MIN_DOCUMENTS
        resampled = self._over_resamples(names, measure, kept, extent) if has_interval else None
        return estimated(float(value), resampled, extent, is_difference=is_difference)

    def _over_resamples(
        self,
        names: tuple[str, ...],
        measure: CorpusMeasure,
        kept: NDArray[np.bool_],
        extent: Extent,
    ) -> Floats:
        """Agreement (r,) of draws of the expected scores; NaN where a system has no score."""
        point = np.stack([self.scores[name][kept] for name in names])
        resampled = np.stack([self._resampled_scores(name)[:, kept] for name in names])
        is_scored = np.logical_and.reduce(~np.isnan(resampled), axis=(0, 2))  # (r,)
        values = np.full(len(is_scored), np.nan)
        if not is_scored.any():
            return values
        resampled = resampled[:, is_scored]
        if self._drawn[0] != names:
            # Measures of the same metrics follow one another, and share the draws.
            rng = rng_for(self._seed, "expected scores")
            self._drawn = (names, expected_scores(point, resampled, extent.documents, rng))
        draws = self._drawn[1]
        if measure == "spa":
            values[is_scored] = self._expected_spa(names, kept, draws, resampled - point[:, None])
        else:
            values[is_scored] = agreement(list(draws), measure)
        return values

    def _expected_spa(
        self, names: Sequence[str], kept: NDArray[np.bool_], draws: Floats, noise: Floats
    ) -> Floats:
        """Expectation (r,) of soft pairwise accuracy when documents are sampled again.

        p-values are of scores with noise, so each draw gets that of another resample, once added
        and once subtracted.
        """
        p = [NormalP(self._metrics[name].contributions[kept]) for name in names]
        other = np.roll(noise, 1, axis=1)
        sides = [
            agreement([p_of.of(x) for p_of, x in zip(p, draws + sign * other, strict=True)], "spa")
            for sign in (1, -1)
        ]
        mean: Floats = np.mean(sides, axis=0)
        return mean

    def _p_values(self, name: str, kept: NDArray[np.bool_]) -> Floats:
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

    def _n_shared(self, names: Sequence[str], kept: NDArray[np.bool_]) -> int:
        """Documents that take part in a kept system's score under every metric."""
        has = [~np.isnan(self._metrics[name].contributions[kept]) for name in names]
        return int(np.logical_and.reduce(has).any(0).sum())


def agreement(sides: Sequence[AnyFloats], measure: CorpusMeasure) -> Floats:
    """Agreement of the first with the last, less that of the second if there are three."""
    *others, gold = sides
    measured = [_measured(side, gold, measure) for side in others]
    return measured[0] if len(measured) == 1 else measured[0] - measured[1]


def _measured(x: AnyFloats, y: AnyFloats, measure: CorpusMeasure) -> Floats:
    if measure == "spa":
        return soft_pairwise_accuracy(x, y)
    return correlation(x.astype(np.float64), y.astype(np.float64), measure)
