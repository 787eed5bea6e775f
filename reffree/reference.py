"""Gold-based metrics for users, as in ``reffree.reference.pk(hypothesis, reference, k=3)``.

A metric is a class with its options, ``Pk(k=3)(hypothesis, reference)``, and a function of both,
``pk(hypothesis, reference, k=3)``; `GoldMetric.__call__` says what they take and return.

>>> from reffree.reference import pk, windowdiff
>>> pk([5, 5], [2, 3, 5]), windowdiff([[5, 5], [10]], [2, 3, 5], k=2)
(0.25, array([0.25, 0.5 ]))
"""

from __future__ import annotations

from collections.abc import Callable

from reffree.metrics.gold.agreement import agreement as agreement
from reffree.metrics.gold.alignment import align as align
from reffree.metrics.gold.granularity import failure_mode as failure_mode
from reffree.metrics.gold.metric import MetricValue, as_function
from reffree.metrics.gold.sed import align_segments as align_segments
from reffree.metrics.gold.sed import sed as sed
from reffree.metrics.registry import GOLD_METRICS


def __dir__() -> list[str]:
    """List the functions, also those not made yet."""
    return sorted({*GOLD_METRICS, "agreement", "align", "align_segments", "failure_mode"})


def __getattr__(name: str) -> Callable[..., MetricValue]:
    """Make the function of a metric when it is first named."""
    if name not in GOLD_METRICS:
        raise AttributeError(f"module 'reffree.reference' has no attribute {name!r}")
    globals()[name] = function = as_function(GOLD_METRICS[name])
    return function
