"""What a gold-based metric is: counts that add up over documents, and a value made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar, Self

import numpy as np

from reffree.metrics.gold.pairs import Pairs, Segmentations, is_single
from reffree.metrics.registry import Metric
from reffree.statistics.losses import Direction, as_loss
from reffree.util.arrays import Floats, Integers, ratio

MetricValue = float | Floats | None
"""Of one pair a number, None where undefined; of several an array, NaN where undefined."""


Golds = Callable[[], Iterable[Pairs]]
"""Every gold of a corpus, as pairs of it with itself; to be gone through as often as needed."""


@dataclass(frozen=True, slots=True)
class GoldMetric(Metric):
    """A metric with its options, which are the fields; called with segmentations, it is its value.

    >>> from reffree.metrics.gold.windows import Pk
    >>> Pk(k=3)([5, 5], [2, 3, 5])
    0.2857142857142857
    """

    needs = frozenset({"gold"})
    direction: ClassVar[Direction] = "higher"
    pooled: ClassVar[bool] = False  # whether over a corpus it has only the pooled value
    divided: ClassVar[tuple[int, int]] = (0, 1)  # the counts whose ratio the value is

    def __call__(
        self,
        hypothesis: Segmentations,
        reference: Segmentations,
        units: Sequence[str] | None = None,
    ) -> MetricValue:
        """Evaluate one pair or several.

        Either side is one segmentation (masses or a `Segmentation`), several, a matrix of masses
        padded with zeros, or a boolean matrix with a column per gap; one stands for as many as the
        other has. ``units`` is the text of the document they are of, for metrics that read it.
        What a metric takes from a corpus, it takes from the references given.
        """
        pairs = Pairs.of(hypothesis, reference, units)
        settled = self.over(lambda: [Pairs(pairs.reference, pairs.reference, pairs.units)])
        values = settled.value(count_pairs(settled, pairs))
        if not (is_single(hypothesis) and is_single(reference)):
            return values
        return None if np.isnan(values[0]) else float(values[0])

    def losses(self, raw: Floats) -> Floats:
        """Turn values so that lower is better."""
        return as_loss(raw, self.direction)

    def shown(self, raw: float) -> float:
        """Return what tables show: the value."""
        return raw

    def over(self, golds: Golds) -> Self:
        """Settle what is taken from a whole corpus; most metrics take nothing."""
        return self

    def counts(self, pairs: Pairs) -> Floats:
        """Count what the value is made of: (pairs, c), each column additive over documents."""
        raise NotImplementedError

    def value(self, counts: Floats) -> Floats:
        """Value of each row of counts, (…, c) to (…,), NaN where undefined: the ratio of two.

        Of one document's counts this is its value (averaged over documents: macro), of counts
        summed over documents the pooled value (micro).
        """
        return ratio(*(counts[..., place] for place in self.divided))


def as_function(metric: type[GoldMetric]) -> Callable[..., MetricValue]:
    """Make a function of hypothesis, reference and, by name, the metric's options."""

    def function(
        hypothesis: Segmentations,
        reference: Segmentations,
        units: Sequence[str] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> MetricValue:
        return metric(**options)(hypothesis, reference, units)

    function.__name__ = function.__qualname__ = metric.name
    function.__doc__ = metric.__doc__
    *sides, units, _ = signature(function).parameters.values()
    options = [units, *signature(metric).parameters.values()]
    by_name = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in options]
    function.__dict__["__signature__"] = Signature([*sides, *by_name])
    return function


def count_pairs(metric: GoldMetric, pairs: Pairs) -> Floats:
    """Counts of all pairs, a part at a time to bound memory."""
    parts = [(rows, metric.counts(part)) for rows, part in pairs.chunks()]
    counts = np.empty((len(pairs), parts[0][1].shape[1]))
    for rows, part in parts:
        counts[rows] = part
    return counts


def columns(*parts: Floats | Integers) -> Floats:
    """One row of counts per pair."""
    return np.stack(parts, axis=1).astype(np.float64)
