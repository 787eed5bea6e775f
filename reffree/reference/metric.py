"""What a gold-based metric is: counts that add up over documents, and a value made of them."""

from __future__ import annotations

from dataclasses import Field
from typing import Any, ClassVar, Protocol

import numpy as np

from reffree.arrays import Floats
from reffree.reference.pairs import Given, Pairs, is_single
from reffree.statistics.losses import Direction

Result = float | None | Floats
"""Of one pair a number, None where undefined; of several an array, NaN where undefined."""


class GoldMetric(Protocol):
    """A metric with its options; frozen dataclasses implement it.

    One that says ``pooled = True`` has only the pooled value over a corpus.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def name(self) -> str:
        """Registered name."""
        ...

    @property
    def direction(self) -> Direction:
        """Which way is better."""
        ...

    @property
    def undefined(self) -> str:
        """Why a document may have no value."""
        ...

    def counts(self, pairs: Pairs) -> Floats:
        """Count what the value is made of: (pairs, c), each column additive over documents."""
        ...

    def value(self, counts: Floats) -> Floats:
        """Value of each row of counts, (…, c) to (…,); NaN where it is undefined.

        Of one document's counts this is its value (averaged over documents: macro), of counts
        summed over documents the pooled value (micro).
        """
        ...

    def __hash__(self) -> int: ...


def count_pairs(metric: GoldMetric, pairs: Pairs) -> Floats:
    """Counts of all pairs, a part at a time to bound memory."""
    parts = [(rows, metric.counts(part)) for rows, part in pairs.chunks()]
    counts = np.empty((len(pairs), parts[0][1].shape[1]))
    for rows, part in parts:
        counts[rows] = part
    return counts


def evaluate(metric: GoldMetric, hypothesis: Given, reference: Given) -> Result:
    """Value of one pair, None where undefined; of several, an array, NaN where undefined."""
    return evaluate_pairs(metric, Pairs.of(hypothesis, reference), hypothesis, reference)


def evaluate_pairs(metric: GoldMetric, pairs: Pairs, hypothesis: Given, reference: Given) -> Result:
    """Evaluate pairs made of the two that were given, which say whether it is one or several."""
    values = metric.value(count_pairs(metric, pairs))
    if not (is_single(hypothesis) and is_single(reference)):
        return values
    return None if np.isnan(values[0]) else float(values[0])


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """``numerator / denominator``, NaN where the denominator is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)
