"""Intervals by resampling documents, the unit that varies independently."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats

RESAMPLES = 1000
CONFIDENCE = 0.95
MIN_DOCUMENTS = 5
RESAMPLED_AT_ONCE = 1 << 22


class DocumentBootstrap:
    """The same resamples of a corpus's documents for every system and metric.

    Percentile intervals, each of which holds its estimate (`percentiles`); seeded, so the same
    corpus and seed give the same interval.
    """

    def __init__(
        self, n_documents: int, rng: np.random.Generator, resamples: int = RESAMPLES
    ) -> None:
        """Draw how often each document occurs in each resample."""
        uniform = np.full(n_documents, 1 / n_documents)
        step = max(1, RESAMPLED_AT_ONCE // n_documents)
        sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
        self._counts = [
            rng.multinomial(n_documents, uniform, size=size).astype(np.uint8) for size in sizes
        ]

    def interval(
        self, mean: float | None, values: Floats, weights: Floats | None = None
    ) -> tuple[float, float] | None:
        """95 % interval of the (weighted) mean over documents of ``values``, NaN left out.

        None with fewer than `MIN_DOCUMENTS` defined documents, where it would mean nothing.
        """
        defined = ~np.isnan(values)
        if mean is None or defined.sum() < MIN_DOCUMENTS:
            return None
        weight = np.where(defined, 1.0 if weights is None else weights, 0.0)
        weighted = np.where(defined, values, 0.0) * weight
        totals = np.concatenate([counts @ weighted for counts in self._counts])
        sizes = np.concatenate([counts @ weight for counts in self._counts])
        return percentiles(mean, totals[sizes > 0] / sizes[sizes > 0])

    def pooled_interval(
        self,
        value: float | None,
        counts: Floats,
        defined: NDArray[np.bool_],
        measure: Callable[[Floats], Floats],
    ) -> tuple[float, float] | None:
        """95 % interval of the value that ``measure`` gives counts (documents, c) summed over them.

        None with fewer than `MIN_DOCUMENTS` defined documents; the counts of the others are 0.
        """
        if value is None or defined.sum() < MIN_DOCUMENTS:
            return None
        values = measure(np.concatenate([drawn @ counts for drawn in self._counts]))
        values = values[~np.isnan(values)]
        return percentiles(value, values) if len(values) else None


def percentiles(value: float, resampled: Floats) -> tuple[float, float]:
    """Ends of the middle 95 % of resampled values (r,), none NaN, and of the value itself.

    An interval holds its estimate: where resampling moves a statistic past it, the interval
    reaches as far as the estimate.
    """
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return min(value, float(low)), max(value, float(high))
