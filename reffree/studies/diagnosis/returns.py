r"""Segments that come back to an earlier topic, or to one that is still to come.

.. math:: margin_i = \max_{|j - i| > 1} \cos(c_i, c_j) - \max_{|j - i| = 1} \cos(c_i, c_j)

over the centroids :math:`c` of a document's segments. A margin above 0 is a semantic return: the
segment is closer to one that is no neighbour than to its neighbours. Metrics that hold a segment
against its neighbours never see that other segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reffree.arrays import Booleans, Floats
from reffree.studies.diagnosis.directions import directions
from reffree.studies.diagnosis.flat_index import flat_index

TIE = 1e-6
"""Margins up to this are ties: what the search's single precision cannot tell apart."""

NEAREST = 8
"""Segments asked for. Four hold one that is no neighbour: itself and two neighbours are the others.
The rest is for ties that are settled in double precision."""


@dataclass(frozen=True, slots=True)
class Returns:
    """Segments with a neighbour and a segment that is none: from 3 segments on, then all but one.

    ``chance`` is the probability that the nearest segment is no neighbour if the order of segments
    says nothing: 1 - neighbours/(N - 1).
    """

    margins: Floats
    chance: Floats

    @property
    def is_return(self) -> Booleans:
        """Which of them are returns."""
        return self.margins > TIE


def semantic_returns(rows: Floats, masses: Sequence[int]) -> Returns:
    """Compare every segment's nearest non-neighbour with its nearest neighbour.

    Args:
        rows: `directions` of the units: every unit counts alike in its centroid.
        masses: of the document's segments.
    """
    n = len(masses)
    if n < 3:
        return Returns(np.empty(0), np.empty(0))
    starts = np.cumsum([0, *masses[:-1]])
    sums = np.add.reduceat(rows, starts)
    # What is left of vectors that cancel out is rounding, not a direction.
    is_zero = np.linalg.norm(sums, axis=1) <= 1e-12 * np.array(masses)
    centroids = directions(np.where(is_zero[:, None], 0.0, sums))
    with flat_index(centroids) as index:
        _, nearest = index.search(centroids.astype(np.float32), min(n, NEAREST))  # (n, k)
    at = np.arange(n)
    cosines = np.einsum("id,ikd->ik", centroids, centroids[nearest])
    farther = np.where(np.abs(nearest - at[:, None]) > 1, cosines, -np.inf).max(1)
    beside = np.einsum("id,id->i", centroids[1:], centroids[:-1])
    neighbour = np.maximum(np.append(-np.inf, beside), np.append(beside, -np.inf))
    has_both = np.isfinite(farther)
    neighbours = np.where((at == 0) | (at == n - 1), 1, 2)
    return Returns((farther - neighbour)[has_both], (1 - neighbours / (n - 1))[has_both])
