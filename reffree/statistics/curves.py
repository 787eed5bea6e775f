"""A loss against the strength of a perturbation: its scale, its band over seeds, its monotony."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reffree.arrays import Floats
from reffree.errors import InputError
from reffree.statistics.coefficients import MIN_SYSTEMS, correlation
from reffree.statistics.resampling import CONFIDENCE, percentiles


@dataclass(frozen=True, slots=True)
class Band:
    """Mean over seeds with the range of the middle 95 % of them, per strength; NaN where none.

    The range holds the mean.
    """

    mean: Floats  # (k,)
    low: Floats  # (k,)
    high: Floats  # (k,)
    n_seeds: Floats  # (k,) seeds with a loss


@dataclass(frozen=True, slots=True)
class Monotonicity:
    """Spearman's correlation of loss with strength."""

    value: float | None  # of the mean curve
    reason: str | None  # why it is undefined
    mean: float | None  # over the seeds' own curves
    band: tuple[float, float] | None  # middle 95 % of the seeds' own curves
    n_seeds: int
    undefined: int  # seeds whose own curve is undefined


def min_max(losses: Floats) -> Floats:
    """Scale each curve (…, k) to [0, 1]; a constant curve has no scale and becomes NaN.

    >>> min_max(np.array([[2.0, 4.0, 3.0], [1.0, 1.0, 1.0]])).tolist()
    [[0.0, 1.0, 0.5], [nan, nan, nan]]
    """
    curves = np.asarray(losses, dtype=np.float64)
    low = np.where(np.isnan(curves), np.inf, curves).min(-1, keepdims=True, initial=np.inf)
    high = np.where(np.isnan(curves), -np.inf, curves).max(-1, keepdims=True, initial=-np.inf)
    span = np.where(high > low, high - low, np.nan)
    return (curves - np.where(high > low, low, 0.0)) / span


def band(losses: Floats) -> Band:
    """Mean and middle 95 % over seeds of losses (seeds, k), NaN left out."""
    curves = np.asarray(losses, dtype=np.float64)
    n = (~np.isnan(curves)).sum(0)
    bounds = np.full((3, curves.shape[1]), np.nan)
    tail = (1 - CONFIDENCE) / 2
    has = n > 0
    bounds[0, has] = np.nanmean(curves[:, has], axis=0)
    bounds[1:, has] = np.nanquantile(curves[:, has], [tail, 1 - tail], axis=0)
    mean, low, high = bounds
    return Band(mean, np.minimum(low, mean), np.maximum(high, mean), n.astype(np.float64))


def monotonicity(strengths: Floats, losses: Floats) -> Monotonicity:
    r"""How monotonically a loss grows with strength: Spearman's coefficient, range [-1, 1].

    Args:
        strengths: (k,).
        losses: (seeds, k), or (k,) for one seed; NaN where undefined.

    ``value`` is that of the mean over seeds; the band is of the seeds' own coefficients. Undefined
    with fewer than three strengths with a loss or where the curve is constant.
    """
    x = np.asarray(strengths, dtype=np.float64)
    curves = np.atleast_2d(np.asarray(losses, dtype=np.float64))
    if x.ndim != 1 or curves.ndim != 2 or curves.shape[1] != len(x):
        raise InputError(
            f"losses of shape {np.shape(losses)} for {len(x)} strengths",
            expected="(seeds, strengths)",
            remedy="give one loss per seed and strength",
        )
    averaged = band(curves).mean
    value = float(correlation(x, averaged, "spearman"))
    own = correlation(x, curves, "spearman")  # (seeds,)
    own = own[~np.isnan(own)]
    mean = float(own.mean()) if len(own) else None
    reason = None
    if np.isnan(value):
        too_few = int((~np.isnan(averaged)).sum()) < MIN_SYSTEMS
        reason = f"fewer than {MIN_SYSTEMS} strengths with a loss" if too_few else "constant curve"
    return Monotonicity(
        value=None if reason else value,
        reason=reason,
        mean=mean,
        band=None if mean is None else percentiles(mean, own),
        n_seeds=len(curves),
        undefined=len(curves) - len(own),
    )
