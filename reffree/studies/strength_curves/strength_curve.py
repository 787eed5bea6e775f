"""How one metric's loss goes with the strength of a perturbation: curve, tests, documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reffree.statistics.coefficients import correlation
from reffree.statistics.curves import SeedBand, band, mean_defined, min_max, monotonicity
from reffree.statistics.losses import Direction, SystemLosses
from reffree.statistics.paired import holm, paired_tests
from reffree.statistics.resampling import MIN_DOCUMENTS, Counts, percentile_interval
from reffree.util.arrays import Floats
from reffree.util.seeds import rng_for

Strength = int | float
"""Boundaries (units for transposition), or with a point a share of the boundaries."""

ALPHA = 0.05

EQUAL = 1e-9
"""Relative to the largest loss: a document's curve falls only by more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthCurve:
    """One metric under one kind of perturbation of a corpus; the first strength is none at all."""

    corpus: str
    kind: str
    metric: str
    role: str  # reference-free, gold-based or sentinel
    direction: Direction
    strengths: tuple[Strength, ...]  # 0 first
    raw: SeedBand  # of the losses
    scaled: SeedBand  # the same, mapped so that the mean curve goes from 0 (best) to 1 (worst)
    rho: float | None  # Spearman of loss with strength, of the mean curve
    rho_ci: tuple[float, float] | None  # 95 % over documents
    rho_seeds: float | None  # mean over the seeds' own curves
    rho_documents: float | None  # mean over the documents' own curves
    monotone: float | None  # share of documents whose own curve rises and never falls
    documents: int  # whose own curve has at least three losses and is not constant
    fewest: int  # documents behind the point of the curve that has the fewest
    most: int
    first: Strength | None  # that is worse than none
    out_of_reach: bool  # too few documents for any strength to be found worse

    @classmethod
    def of(
        cls,
        losses: SystemLosses,
        at: NDArray[np.intp],
        counts: Counts,
        seed: int,
        *,
        corpus: str,
        kind: str,
        metric: str,
        role: str,
        direction: Direction,
        strengths: tuple[Strength, ...],
    ) -> StrengthCurve:
        r"""Describe the curve of systems ``at`` (seeds, strengths) with ``strengths``, 0 first.

        The curve is the mean over seeds of the systems' losses. Its Spearman correlation with
        strength has an interval over documents (cluster bootstrap, ``counts``). A document's own
        curve is its mean loss over seeds, at each strength. The first strength that is worse is the
        smallest at which the documents' mean losses over seeds exceed the unperturbed ones in the
        paired permutation test, p corrected for the number of strengths (Holm) and at most `ALPHA`.
        """
        x = np.array(strengths, dtype=np.float64)
        curves = losses.over(np.ones((1, losses.values.shape[1])))[0][at]  # (seeds, k)
        raw = band(curves)
        rho, rho_seeds = monotonicity(x, curves)
        by_document = mean_defined(losses.values[at], 0).T  # (documents, k)
        own = correlation(x, by_document, "spearman")  # (documents,)
        has_own = ~np.isnan(own)
        behind = (~np.isnan(by_document)).sum(0)
        first, out_of_reach = _first_worse(losses, at, seed)
        return cls(
            corpus=corpus,
            kind=kind,
            metric=metric,
            role=role,
            direction=direction,
            strengths=strengths,
            raw=raw,
            scaled=_scaled(raw),
            rho=rho,
            rho_ci=_interval(rho, losses, at, x, counts),
            rho_seeds=rho_seeds,
            rho_documents=float(own[has_own].mean()) if has_own.any() else None,
            monotone=float(_never_falls(by_document[has_own]).mean()) if has_own.any() else None,
            documents=int(has_own.sum()),
            fewest=int(behind.min()),
            most=int(behind.max()),
            first=None if first is None else strengths[first],
            out_of_reach=out_of_reach,
        )

    @property
    def rises(self) -> bool:
        """Whether the interval leaves no doubt that loss and strength go together."""
        return self.rho_ci is not None and self.rho_ci[0] > 0

    @property
    def falls(self) -> bool:
        """Whether it leaves no doubt that they go opposite ways."""
        return self.rho_ci is not None and self.rho_ci[1] < 0

    @property
    def never_falls(self) -> bool:
        """Whether the mean curve is monotone, as far as it is defined."""
        return not (np.diff(self.raw.mean[~np.isnan(self.raw.mean)]) < 0).any()


def _scaled(raw: SeedBand) -> SeedBand:
    """Map the mean curve onto [0, 1] and its band alike; the band may reach beyond."""
    best = np.fmin.reduce(raw.mean)
    span = np.fmax.reduce(raw.mean) - best
    factor = 1 / span if span > 0 else np.nan
    low, high = ((bound - best) * factor for bound in (raw.low, raw.high))
    return SeedBand(min_max(raw.mean), low, high, raw.n_seeds)


def _interval(
    rho: float | None,
    losses: SystemLosses,
    at: NDArray[np.intp],
    strengths: Floats,
    counts: Counts,
) -> tuple[float, float] | None:
    """95 % of the curve's coefficient over resampled documents; None where that means nothing."""
    if rho is None or (~np.isnan(losses.values[at[0, 0]])).sum() < MIN_DOCUMENTS:
        return None
    curves = mean_defined(losses.over(counts)[:, at], 1)  # (r, k)
    return percentile_interval(rho, correlation(strengths, curves, "spearman"))


def _never_falls(curves: Floats) -> NDArray[np.bool_]:
    """Which curves (documents, k) never fall below what they had reached, NaN left out."""
    slack = EQUAL * np.fmax.reduce(np.abs(curves), axis=None)
    falls: NDArray[np.bool_] = (curves < np.fmax.accumulate(curves, axis=1) - slack).any(1)
    return ~falls


def _first_worse(losses: SystemLosses, at: NDArray[np.intp], seed: int) -> tuple[int | None, bool]:
    """Return the number of the first strength whose losses exceed the unperturbed ones."""
    values = mean_defined(losses.contributions[at], 0)  # (k, documents)
    pairs = [(j, 0) for j in range(1, len(values))]
    rng = rng_for(seed, "first worse")
    tests = paired_tests(values, np.ones_like(values), pairs, rng)
    tested = [(j, test) for (j, _), test in zip(pairs, tests, strict=True) if test.p is not None]
    if not tested:
        return None, True
    corrected = holm([test.p or 0.0 for _, test in tested])
    out_of_reach = len(tested) * min(test.smallest_p for _, test in tested) > ALPHA
    for (j, test), p in zip(tested, corrected, strict=True):
        if p <= ALPHA and (test.difference or 0.0) > 0:
            return j, False
    return None, out_of_reach
