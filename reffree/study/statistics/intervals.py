"""Resampled documents, the unit that varies independently, and intervals over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reffree.study.bootstrap import CONFIDENCE, RESAMPLES
from reffree.study.statistics.scores import Floats

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


def percentile_interval(resampled: Floats) -> tuple[float, float] | None:
    """Middle 95 % of resampled values (r,), NaN left out; None where too many are NaN."""
    found = percentile(resampled)
    return (found.low, found.high) if found else None


def percentile(resampled: Floats) -> Interval | None:
    r"""Middle 95 % of resampled values (r,), NaN left out; None where too many are NaN.

    .. math:: p = \min\big(1,\; 2\,(1 + \min(\#\{\theta^* \le 0\}, \#\{\theta^* \ge 0\}))
        / (1 + \#\theta^*)\big)
    """
    defined = _defined(resampled)
    if defined is None:
        return None
    low, high = _bounds(defined)
    beyond = min(int((defined <= 0).sum()), int((defined >= 0).sum()))
    return Interval(low, high, min(1.0, 2 * (1 + beyond) / (1 + len(defined))))


def symmetric(value: float, resampled: Floats, limit: float) -> Interval | None:
    r"""Value ± the larger distance to the ends of the percentile interval.

    Resampled values that lie to one side of the value are biased, and so, about as much, is the
    value itself: the symmetric interval reaches as far to the other side. Cut at ± ``limit``.

    .. math:: p = (1 + \#\{|\theta^* - \hat\theta| \ge |\hat\theta|\}) / (1 + \#\theta^*)
    """
    defined = _defined(resampled)
    if defined is None:
        return None
    low, high = _bounds(defined)
    reach = max(value - low, high - value)
    beyond = int((np.abs(defined - value) >= abs(value)).sum())
    p = (1 + beyond) / (1 + len(defined))
    return Interval(max(-limit, value - reach), min(limit, value + reach), p)


def centred(value: float, resampled: Floats, limits: tuple[float, float]) -> Interval | None:
    r"""Percentile interval moved so that the resampled values' mean falls on the value.

    For a statistic that is its own target: what resampling does to its mean says nothing about it.

    .. math:: p = (1 + \#\{|\theta^* - \bar\theta^*| \ge |\hat\theta|\}) / (1 + \#\theta^*)
    """
    defined = _defined(resampled)
    if defined is None:
        return None
    moved = defined - defined.mean()
    low, high = _bounds(moved)
    beyond = int((np.abs(moved) >= abs(value)).sum())
    p = (1 + beyond) / (1 + len(defined))
    return Interval(max(limits[0], value + low), min(limits[1], value + high), p)


def hull(first: Interval | None, second: Interval | None) -> Interval | None:
    """Smallest interval that holds both; None where one is missing."""
    if first is None or second is None:
        return None
    low, high = min(first.low, second.low), max(first.high, second.high)
    return Interval(low, high, max(first.p, second.p))


def _defined(resampled: Floats) -> Floats | None:
    is_undefined = np.isnan(resampled)
    return None if is_undefined.mean() > MAX_UNDEFINED else resampled[~is_undefined]


def _bounds(values: Floats) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
