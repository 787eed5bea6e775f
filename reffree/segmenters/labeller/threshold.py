"""The decision rule of labellers, and the threshold it goes by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reffree.arrays import Floats, Integers
from reffree.reference.windows import Pk
from reffree.segmentation import Segmentation
from reffree.selection import select_above

MOST_THRESHOLDS = 200


def segment_above(scores: Floats, threshold: float) -> Segmentation:
    """Put a boundary in every gap whose probability is at least the threshold."""
    return select_above(scores, threshold, min_gap=1)


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


def find_pk_threshold(
    scores: Sequence[Floats], gold: Sequence[Segmentation]
) -> tuple[float, float | None]:
    """Return the threshold of the lowest mean Pk over documents, and that Pk.

    Of several the highest; one half where no document has a Pk. At least one boundary is left in
    all documents together: a threshold that finds none would be of no use, though Pk may like it.
    """
    candidates = candidate_thresholds(scores)
    values = []
    for each, reference in zip(scores, gold, strict=True):
        if len(each):
            values.append(np.asarray(Pk()(each >= candidates[:, None], reference)))
    defined = [value for value in values if not np.isnan(value).any()]
    if not defined:
        return 0.5, None
    means = np.mean(defined, axis=0)
    best = int(np.argmin(means))
    return float(candidates[best]), float(means[best])


def _spread(n: int) -> Integers:
    """Return places 0 … n - 1, or `MOST_THRESHOLDS` of them that lie ever farther apart."""
    if n <= MOST_THRESHOLDS:
        return np.arange(n)
    return np.unique(np.geomspace(1, n, MOST_THRESHOLDS).round().astype(np.int64)) - 1
