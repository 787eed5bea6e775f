"""Documents drawn with replacement, the unit that varies independently, and intervals over them.

Every interval is made around the estimate it belongs to, and holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reffree.util.arrays import Booleans, Floats, ratio

Counts = NDArray[np.uint8] | Floats
"""How often each document occurs in each resample, (resamples, documents)."""

RESAMPLES = 1000
CONFIDENCE = 0.95
MIN_DOCUMENTS = 5
RESAMPLED_AT_ONCE = 1 << 22

MAX_UNDEFINED = 1 - CONFIDENCE
"""Beyond this share of undefined resamples an interval would hang on what they left out."""


class Interval(NamedTuple):
    """A 95 % interval with the two-sided p of 0, at most .05 where it leaves out 0."""

    low: float
    high: float
    p: float


def resampled_documents(
    n_documents: int, rng: np.random.Generator, resamples: int = RESAMPLES
) -> NDArray[np.uint8]:
    """Draw documents: how often each occurs in each resample, (resamples, documents)."""
    uniform = np.full(n_documents, 1 / n_documents)
    counts = np.empty((resamples, n_documents), np.uint8)
    for rows in portions(resamples, RESAMPLED_AT_ONCE // n_documents):
        counts[rows] = rng.multinomial(n_documents, uniform, size=rows.stop - rows.start)
    return counts


def portions(n_rows: int, at_once: int) -> list[slice]:
    """Cut rows into slices of so many, at least one, so that memory stays bounded."""
    step = max(1, at_once)
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


class DocumentBootstrap:
    """The same resamples of a corpus's documents for every system and metric: `percentiles`."""

    def __init__(
        self, n_documents: int, rng: np.random.Generator, resamples: int = RESAMPLES
    ) -> None:
        """Draw the resamples."""
        self._counts = resampled_documents(n_documents, rng, resamples)

    def interval(
        self, mean: float | None, values: Floats, weights: Floats | None = None
    ) -> tuple[float, float] | None:
        """95 % interval of the (weighted) mean over documents of ``values``, NaN left out.

        None with fewer than `MIN_DOCUMENTS` defined documents, where it would mean nothing.
        """
        is_defined = ~np.isnan(values)
        weight = np.where(is_defined, 1.0 if weights is None else weights, 0.0)
        counts = np.stack([np.where(is_defined, values, 0.0) * weight, weight], axis=1)
        return self.pooled_interval(mean, counts, is_defined, lambda x: ratio(x[:, 0], x[:, 1]))

    def median_interval(self, median: float | None, values: Floats) -> tuple[float, float] | None:
        """95 % interval of the median over documents of ``values``, NaN left out; as `interval`."""
        if median is None or (~np.isnan(values)).sum() < MIN_DOCUMENTS:
            return None
        resampled = medians(values[None], self._counts)[:, 0]
        return percentiles(median, resampled[~np.isnan(resampled)])

    def pooled_interval(
        self,
        value: float | None,
        counts: Floats,
        defined: Booleans,
        measure: Callable[[Floats], Floats],
    ) -> tuple[float, float] | None:
        """95 % interval of the value that ``measure`` gives counts (documents, c) summed over them.

        None with fewer than `MIN_DOCUMENTS` defined documents; the counts of the others are 0.
        """
        if value is None or defined.sum() < MIN_DOCUMENTS:
            return None
        rows = portions(len(self._counts), RESAMPLED_AT_ONCE // len(counts))
        values = measure(np.concatenate([self._counts[some] @ counts for some in rows]))
        values = values[~np.isnan(values)]
        return percentiles(value, values) if len(values) else None


def medians(values: Floats, counts: Counts | Floats) -> Floats:
    """Medians over documents of ``values`` (systems, documents), NaN left out.

    Document ``d`` occurs ``counts[r, d]`` times in row ``r``; NaN where none is left. Of the middle
    two it is the mean.

    >>> medians(np.array([[1.0, 5.0, np.nan, 2.0]]), np.array([[1, 1, 1, 1], [1, 2, 9, 1]]))
    array([[2. ],
           [3.5]])
    """
    found = np.full((len(counts), len(values)), np.nan)
    for s, row in enumerate(values):
        order = np.argsort(row)[: int((~np.isnan(row)).sum())]  # NaN comes last
        if not len(order):
            continue
        ordered = row[order]
        for rows in portions(len(counts), RESAMPLED_AT_ONCE // len(order)):
            reached = counts[rows][:, order].astype(np.int64).cumsum(1)  # (r, d)
            total = reached[:, -1]
            odd = total % 2
            # Documents before the lower of the middle two, and before the upper.
            low = (2 * reached < (total + odd)[:, None]).sum(1)
            high = (2 * reached < (total + 2 - odd)[:, None]).sum(1)
            last = len(order) - 1
            middle = (ordered[np.minimum(low, last)] + ordered[np.minimum(high, last)]) / 2
            found[rows, s] = np.where(total > 0, middle, np.nan)
    return found


def percentiles(value: float, resampled: Floats) -> tuple[float, float]:
    """Ends of the middle 95 % of resampled values (r,), none NaN, and of the value itself."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return min(value, float(low)), max(value, float(high))


def percentile_interval(value: float, resampled: Floats) -> tuple[float, float] | None:
    """Take the `percentiles` of resampled values (r,), NaN left out; None where too many are NaN.

    For means over documents, which resampling leaves where they are.
    """
    defined = _defined(resampled)
    return None if defined is None else percentiles(value, defined)


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
    p = (1 + int((np.abs(defined - value) >= abs(value)).sum())) / (1 + len(defined))
    return Interval(max(limits[0], value - reach), min(limits[1], value + reach), p)


def centred(value: float, resampled: Floats, limits: tuple[float, float]) -> Interval | None:
    r"""Middle 95 % of resampled values, moved so that their median falls on the value.

    For a statistic that is its own target: what resampling does to it on average says nothing
    about it. With :math:`\theta^*` the values so moved,

    .. math:: p = \min\big(1,\; 2\,(1 + \min(\#\{\theta^* \le 0\}, \#\{\theta^* \ge 0\}))
        / (1 + \#\theta^*)\big)
    """
    defined = _defined(resampled)
    if defined is None:
        return None
    median = float(np.median(defined))
    low, high = percentiles(median, defined)
    moved = value + (defined - median)
    beyond = min(int((moved <= 0).sum()), int((moved >= 0).sum()))
    return Interval(
        max(limits[0], value - (median - low)),
        min(limits[1], value + (high - median)),
        min(1.0, 2 * (1 + beyond) / (1 + len(moved))),
    )


def _defined(resampled: Floats) -> Floats | None:
    """Resampled values that are defined, or None where too few are."""
    is_undefined = np.isnan(resampled)
    return None if is_undefined.mean() > MAX_UNDEFINED else resampled[~is_undefined]
