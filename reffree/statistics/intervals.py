"""Resampled documents, the unit that varies independently, and intervals over them.

Every interval is made around the estimate it belongs to, and holds it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats
from reffree.statistics.resampling import CONFIDENCE, RESAMPLES, percentiles

MAX_UNDEFINED = 1 - CONFIDENCE
"""Beyond this share of undefined resamples an interval would hang on what they left out."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval with the two-sided p of 0, at most .05 where it leaves out 0."""

    low: float
    high: float
    p: float


def resampled_documents(
    n_documents: int, rng: np.random.Generator, resamples: int = RESAMPLES
) -> NDArray[np.uint8]:
    """How often each document occurs in each resample, (resamples, documents)."""
    uniform = np.full(n_documents, 1 / n_documents)
    return rng.multinomial(n_documents, uniform, size=resamples).astype(np.uint8)


def percentile_interval(value: float, resampled: Floats) -> tuple[float, float] | None:
    """Ends of `percentile`."""
    found = percentile(value, resampled)
    return (found.low, found.high) if found else None


def percentile(value: float, resampled: Floats) -> Interval | None:
    r"""Middle 95 % of resampled values (r,), reaching as far as the value (`percentiles`).

    For means over documents, which resampling leaves where they are. NaN is left out; None where
    too many are NaN.

    .. math:: p = \min\big(1,\; 2\,(1 + \min(\#\{\theta^* \le 0\}, \#\{\theta^* \ge 0\}))
        / (1 + \#\theta^*)\big)
    """
    defined = _defined(resampled)
    if defined is None:
        return None
    return Interval(*percentiles(value, defined), _tails(defined))


def symmetric(value: float, resampled: Floats, limits: tuple[float, float]) -> Interval | None:
    r"""Value ± the larger distance to the ends of the middle 95 % of resampled values.

    Resampled values that lie to one side of the value are biased, and so, about as much, is the
    value itself: the symmetric interval reaches as far to the other side.

    .. math:: p = (1 + \#\{|\theta^* - \hat\theta| \ge |\hat\theta|\}) / (1 + \#\theta^*)
    """
    defined = _defined(resampled)
    if defined is None:
        return None
    low, high = percentiles(value, defined)
    reach = max(value - low, high - value)
    beyond = int((np.abs(defined - value) >= abs(value)).sum())
    return _around(value, reach, reach, limits, (1 + beyond) / (1 + len(defined)))


def centred(value: float, resampled: Floats, limits: tuple[float, float]) -> Interval | None:
    r"""Middle 95 % of resampled values, moved so that their median falls on the value.

    For a statistic that is its own target: what resampling does to it on average says nothing
    about it. Its p is that of `percentile`, of the values so moved.
    """
    defined = _defined(resampled)
    if defined is None:
        return None
    median = float(np.median(defined))
    low, high = percentiles(median, defined)
    p = _tails(value + (defined - median))
    return _around(value, median - low, high - median, limits, p)


def _defined(resampled: Floats) -> Floats | None:
    is_undefined = np.isnan(resampled)
    return None if is_undefined.mean() > MAX_UNDEFINED else resampled[~is_undefined]


def _tails(values: Floats) -> float:
    """Two-sided p of 0: twice the smaller share of values on one side of it."""
    beyond = min(int((values <= 0).sum()), int((values >= 0).sum()))
    return min(1.0, 2 * (1 + beyond) / (1 + len(values)))


def _around(
    value: float, down: float, up: float, limits: tuple[float, float], p: float
) -> Interval:
    """Reach so far down and up, neither below 0, from a value inside the limits."""
    return Interval(max(limits[0], value - down), min(limits[1], value + up), p)
