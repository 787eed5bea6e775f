"""The decision rule of labellers, and the threshold it goes by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reffree.data.segmentation import Segmentation
from reffree.metrics.gold.granularity import F1
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.gold.windows import Pk
from reffree.segmenters.labeller.description import Criterion
from reffree.util.arrays import Floats, Integers

MOST_THRESHOLDS = 200
CRITERIA: dict[Criterion, GoldMetric] = {"pk": Pk(), "f1": F1()}


def candidate_thresholds(scores: Sequence[Floats]) -> Floats:
    """Return thresholds to choose from, highest first: halfway between neighbouring scores.

    The first leaves one boundary in all documents together, each further one more, up to one in
    every gap; of many, `MOST_THRESHOLDS` whose numbers of boundaries grow by a constant factor.
    Equal scores are not parted.

    >>> candidate_thresholds([np.array([0.9, 0.1]), np.array([0.5])]).tolist()
    [0.7, 0.3, 0.05]
    """
    pooled = np.unique(np.concatenate([np.zeros(1), *scores]))[::-1]  # ends in 0
    halfway: Floats = (pooled[:-1] + pooled[1:]) / 2
    return halfway[_spread(len(halfway))]


def mean_values(
    criterion: Criterion,
    scores: Sequence[Floats],
    gold: Sequence[Segmentation],
    thresholds: Floats,
) -> Floats | None:
    """Return the mean of a metric over documents at every threshold; None where it has no value.

    A document with one unit, or too short for a window, has none and is left out.
    """
    values = [
        np.asarray(CRITERIA[criterion](each >= thresholds[:, None], reference))
        for each, reference in zip(scores, gold, strict=True)
        if len(each)
    ]
    defined = [value for value in values if not np.isnan(value).any()]
    return np.mean(defined, axis=0) if defined and len(thresholds) else None


def find_best_threshold(
    criterion: Criterion, scores: Sequence[Floats], gold: Sequence[Segmentation]
) -> float:
    """Return the threshold of the lowest mean Pk, or highest mean F1, over documents.

    Of several the highest; one half where no document has a value. At least one boundary is left in
    all documents together: a threshold that finds none would be of no use, though Pk may like it.
    """
    thresholds = candidate_thresholds(scores)
    means = mean_values(criterion, scores, gold, thresholds)
    if means is None:
        return 0.5
    is_loss = CRITERIA[criterion].direction == "lower"
    return float(thresholds[np.argmin(means if is_loss else -means)])


def _spread(n: int) -> Integers:
    """Return places 0 … n - 1, or `MOST_THRESHOLDS` of them that lie ever farther apart."""
    if n <= MOST_THRESHOLDS:
        return np.arange(n)
    return np.unique(np.geomspace(1, n, MOST_THRESHOLDS).round().astype(np.int64)) - 1
