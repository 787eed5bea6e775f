r"""How a corpus's vectors lie: all in one direction, in few dimensions, in an order that matters.

With unit vectors :math:`u`, the mean cosine over all pairs of different units is exact without
going through them, :math:`(\|\sum u\|^2 - \sum \|u\|^2) / (n (n - 1))`; drawing pairs at random
would only estimate it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from reffree.arrays import Floats

ALL_ALIKE = 1e-12
"""Variance of unit vectors up to this is rounding."""


@dataclass(frozen=True, slots=True)
class Shape:
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


def shape(documents: Iterable[Floats]) -> Shape:
    """Describe the `directions` of all documents' units, which are gone through once."""
    n, total, moments = 0, np.zeros(1), np.zeros((1, 1))
    gains = []
    for rows in documents:
        n += len(rows)
        total = total + rows.sum(0)
        moments = moments + rows.T @ rows  # (d, d)
        gains.append(_consecutive_gain(rows))
    covariance = moments / n - np.outer(total / n, total / n)
    variance = float(np.trace(covariance))
    return Shape(
        _mean_cosine(total, float(np.trace(moments)), n) if n > 1 else None,
        np.array(gains),
        # Without eigenvalues: their sum is the trace, that of their squares the squared norm.
        variance**2 / float((covariance**2).sum()) if variance > ALL_ALIKE else None,
    )


def _consecutive_gain(rows: Floats) -> float:
    n = len(rows)
    if n < 3:
        return np.nan
    consecutive = float(np.einsum("id,id->", rows[1:], rows[:-1])) / (n - 1)
    return consecutive - _mean_cosine(rows.sum(0), float((rows**2).sum()), n)


def _mean_cosine(total: Floats, squares: float, n: int) -> float:
    return (float(total @ total) - squares) / (n * (n - 1))
