"""A loss against the strength of a perturbation: its scale, its band over seeds, its monotony."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reffree.statistics.coefficients import correlation
from reffree.statistics.resampling import CONFIDENCE
from reffree.util.arrays import Floats
from reffree.util.errors import InputError


@dataclass(frozen=True, slots=True)
class SeedBand:
    """Mean over seeds with the range of the middle 95 % of them, per strength; NaN where none.

    The range holds the mean.
    """

    mean: Floats  # (k,)
    low: Floats  # (k,)
    high: Floats  # (k,)
    n_seeds: Floats  # (k,) seeds with a loss


def mean_defined(values: Floats, axis: int) -> Floats:
    """Mean along an axis without NaN; NaN where there is nothing else."""
    defined = ~np.isnan(values)
    n = defined.sum(axis)
    total = np.where(defined, values, 0.0).sum(axis)
    means: Floats = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    return means


def band(losses: Floats) -> SeedBand:
    """Mean and middle 95 % over seeds of losses (seeds, k), NaN left out."""
    curves = np.asarray(losses, dtype=np.float64)
    n = (~np.isnan(curves)).sum(0)
    bounds = np.full((3, curves.shape[1]), np.nan)
    tail = (1 - CONFIDENCE) / 2
    has = n > 0
    bounds[0, has] = np.nanmean(curves[:, has], axis=0)
    bounds[1:, has] = np.nanquantile(curves[:, has], [tail, 1 - tail], axis=0)
    mean, low, high = bounds
    return SeedBand(mean, np.minimum(low, mean), np.maximum(high, mean), n.astype(np.float64))


def monotonicity(strengths: Floats, losses: Floats) -> tuple[float | None, float | None]:
    """How monotonically a loss grows with strength: Spearman's coefficient, range [-1, 1].

    Args:
        strengths: (k,).
        losses: (seeds, k), NaN where undefined.

    Returns:
        That of the mean over seeds, None with fewer than three strengths with a loss or where the
        curve is constant; and the mean of the seeds' own coefficients, None where none is defined.
    """
    if losses.shape[1:] != strengths.shape:
        raise InputError(
            f"losses of shape {losses.shape} for {len(strengths)} strengths",
            expected="(seeds, strengths)",
            remedy="give one loss per seed and strength",
        )
    value = float(correlation(strengths, band(losses).mean, "spearman"))
    own = correlation(strengths, losses, "spearman")  # (seeds,)
    own = own[~np.isnan(own)]
    return None if np.isnan(value) else value, float(own.mean()) if len(own) else None
