r"""Diagnosis of vectors: twins, returns to a topic, one direction for all.

*Twins* are units with the same text, or nearly the same vector, in another segment of their
document: no segmentation can tell them apart.

*Semantic returns* are segments that come back to an earlier topic, or to one that is still to come:

.. math:: margin_i = \max_{|j - i| > 1} \cos(c_i, c_j) - \max_{|j - i| = 1} \cos(c_i, c_j)

over the centroids :math:`c` of a document's segments. A margin above 0 is a return: the segment is
closer to one that is no neighbour than to its neighbours. Metrics that hold a segment against its
neighbours never see that other segment.

*Anisotropy*: with unit vectors :math:`u`, the mean cosine over all pairs of different units is
exact without going through them, :math:`(\|\sum u\|^2 - \sum \|u\|^2) / (n (n - 1))`; drawing pairs
at random would only estimate it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reffree.statistics.resampling import portions
from reffree.util.arrays import Booleans, Floats, Integers

THRESHOLD = 0.95
"""Cosine of a near twin. Sentence encoders put the same words with other punctuation or one other
function word above it, and paraphrases, which may well belong to one topic, below."""

EQUAL_COSINE = 1e-9
"""Cosines this little below the threshold have reached it: the rest is rounding."""

EQUAL_MARGIN = 1e-6
"""Margins up to this are ties: what vectors in single precision cannot tell apart."""

ALL_ALIKE = 1e-12
"""Variance of unit vectors up to this is rounding."""

ROWS_AT_ONCE = 256
"""Rows whose cosines with all others are held at a time, so that no table of all pairs is."""


def directions(x: NDArray[np.generic]) -> Floats:
    """Rows scaled to length one, so that inner products are cosines; rows of zeros stay zeros.

    >>> directions(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    rows: Floats = x.astype(np.float64)
    # The largest entry is divided out first: squares of very large or small numbers overflow.
    largest = np.abs(rows).max(1, keepdims=True)
    np.divide(rows, largest, out=rows, where=largest > 0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, length, out=rows, where=length > 0)
    return rows


def exact_twins(units: Sequence[str], segment: Integers) -> Booleans:
    """Whether each unit's very text occurs in another segment as well."""
    segments: dict[str, set[int]] = {}
    for text, s in zip(units, segment.tolist(), strict=True):
        segments.setdefault(text, set()).add(s)
    return np.array([len(segments[text]) > 1 for text in units])


def near_twins(rows: Floats, segment: Integers, threshold: float = THRESHOLD) -> Booleans:
    """Whether each unit has one of cosine ``threshold`` or more in another segment.

    ``rows`` are `directions` of the units, ``segment`` the number of each unit's segment. Rows of
    zeros are nobody's twin, as the threshold is above 0.
    """
    found = np.zeros(len(rows), dtype=bool)
    for at in portions(len(rows), ROWS_AT_ONCE):
        is_elsewhere = segment[at, None] != segment
        found[at] = ((rows[at] @ rows.T >= threshold - EQUAL_COSINE) & is_elsewhere).any(1)
    return found


def semantic_returns(rows: Floats, masses: Sequence[int]) -> tuple[Floats, Floats]:
    """Compare every segment's nearest non-neighbour with its nearest neighbour.

    Of segments with a neighbour and a segment that is none: from 3 segments on, then all but one.

    Args:
        rows: `directions` of the units: every unit counts alike in its centroid.
        masses: of the document's segments.

    Returns:
        Their margins, returns above `EQUAL_MARGIN`; and the probability that the nearest segment is
        no neighbour if the order of segments says nothing, 1 - neighbours/(N - 1).
    """
    n = len(masses)
    if n < 3:
        return np.empty(0), np.empty(0)
    starts = np.cumsum([0, *masses[:-1]])
    sums = np.add.reduceat(rows, starts)
    # What is left of vectors that cancel out is rounding, not a direction.
    is_zero = np.linalg.norm(sums, axis=1) <= 1e-12 * np.array(masses)
    centroids = directions(np.where(is_zero[:, None], 0.0, sums))
    at = np.arange(n)
    farther = np.empty(n)
    for some in portions(n, ROWS_AT_ONCE):
        is_beside = np.abs(at[some, None] - at) <= 1  # itself, too
        farther[some] = np.where(is_beside, -np.inf, centroids[some] @ centroids.T).max(1)
    beside = np.einsum("id,id->i", centroids[1:], centroids[:-1])
    neighbour = np.maximum(np.append(-np.inf, beside), np.append(beside, -np.inf))
    has_both = np.isfinite(farther)
    neighbours = np.where((at == 0) | (at == n - 1), 1, 2)
    return (farther - neighbour)[has_both], (1 - neighbours / (n - 1))[has_both]


@dataclass(frozen=True, slots=True)
class VectorShape:
    r"""Cosines and dimensions of a corpus's vectors.

    Attributes:
        random_cosine: mean cosine of two different units of the corpus, None with one unit.
        consecutive_gain: per document, mean cosine of consecutive units minus that of any two
            units of the document; NaN below 3 units, where both are the same.
        effective_dimension: participation ratio :math:`(\sum λ)^2 / \sum λ^2` of the eigenvalues
            of the unit vectors' covariance, from 1 to the number of dimensions; None where all
            units are alike.
    """

    random_cosine: float | None
    consecutive_gain: Floats
    effective_dimension: float | None

    @classmethod
    def of(cls, documents: Iterable[Floats]) -> VectorShape:
        """Describe the `directions` of all documents' units, which are gone through once."""
        n, total, moments = 0, np.zeros(1), np.zeros((1, 1))
        gains = []
        for rows in documents:
            n += len(rows)
            total = total + rows.sum(0)
            moments = moments + rows.T @ rows  # (d, d)
            gain = np.nan
            if len(rows) > 2:
                consecutive = float(np.einsum("id,id->", rows[1:], rows[:-1])) / (len(rows) - 1)
                gain = consecutive - _mean_cosine(rows.sum(0), float((rows**2).sum()), len(rows))
            gains.append(gain)
        covariance = moments / n - np.outer(total / n, total / n)
        variance = float(np.trace(covariance))
        return cls(
            _mean_cosine(total, float(np.trace(moments)), n) if n > 1 else None,
            np.array(gains),
            # Without eigenvalues: their sum is the trace, that of their squares the squared norm.
            variance**2 / float((covariance**2).sum()) if variance > ALL_ALIKE else None,
        )


def _mean_cosine(total: Floats, squares: float, n: int) -> float:
    return (float(total @ total) - squares) / (n * (n - 1))
