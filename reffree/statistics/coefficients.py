"""Correlation coefficients of many pairs of score vectors at once; agreement of judges."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from reffree.util.arrays import Floats, Integers

Coefficient = Literal["pearson", "spearman", "kendall"]

COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)

MIN_SYSTEMS = 3
"""Two systems correlate perfectly or not at all."""


def correlation(x: Floats, y: Floats, coefficient: Coefficient) -> Floats:
    r"""Correlate rows of scores over their last axis, (…, systems) to (…,).

    All three are Daniels' (1944) general coefficient

    .. math:: \Gamma = \sum_{ij} a_{ij} b_{ij} \Big/
        \sqrt{\textstyle\sum_{ij} a_{ij}^2 \sum_{ij} b_{ij}^2}

    with :math:`a_{ij} = x_i - x_j` (Pearson), the difference of average ranks (Spearman) or
    :math:`\operatorname{sign}(x_i - x_j)` (Kendall's tau-b). Range [-1, 1]. A system with NaN on
    either side is left out of its row. NaN with fewer than `MIN_SYSTEMS` systems or where either
    side is constant.

    >>> losses = np.array([1.0, 2.0, 3.0, 3.0]), np.array([1.0, 3.0, 2.0, 4.0])
    >>> float(correlation(*losses, "kendall").round(3))
    0.548
    """
    x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    is_missing = np.isnan(x) | np.isnan(y)
    x, y = (np.where(is_missing, np.nan, v) for v in (x, y))
    sums = (
        _distances if coefficient == "pearson" else _ranks if coefficient == "spearman" else _signs
    )
    # Systems first and contiguous: comparing whole rows is many times faster.
    products, x_size, y_size = sums(*(np.ascontiguousarray(np.moveaxis(v, -1, 0)) for v in (x, y)))
    is_defined = ((~is_missing).sum(-1) >= MIN_SYSTEMS) & _varies(x) & _varies(y)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = products / np.sqrt(x_size * y_size)
    defined: Floats = np.where(is_defined, values.clip(-1, 1), np.nan)[()]
    return defined


def _distances(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums of products of deviations from the mean: of x and y, of x, of y; systems come first."""
    a, b = _deviations(x), _deviations(y)
    return (a * b).sum(0), (a * a).sum(0), (b * b).sum(0)


def _deviations(x: Floats) -> Floats:
    """Deviations from the mean in units of the largest, so that tiny squares do not vanish."""
    n = np.maximum((~np.isnan(x)).sum(0), 1)
    centred = np.nan_to_num(x - np.nansum(x, axis=0) / n)
    size = np.abs(centred).max(0, initial=0.0)
    scaled: Floats = centred / np.where(size > 0, size, 1.0)
    return scaled


def _ranks(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """As `_distances`, of average ranks: system i's, doubled and centred, is its sum of signs."""
    a, b = np.empty(x.shape), np.empty(y.shape)
    for i in range(len(x)):
        a[i], b[i] = (_compared(v[i], v).sum(0, dtype=np.int32) for v in (x, y))
    return (a * b).sum(0), (a * a).sum(0), (b * b).sum(0)


def _signs(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Concordant less discordant pairs, pairs not tied under x, and under y."""
    found = np.zeros((3, *x.shape[1:]))
    for i in range(len(x) - 1):
        a, b = (_compared(v[i], v[i + 1 :]) for v in (x, y))
        found += [(u * v).sum(0, dtype=np.int32) for u, v in ((a, b), (a, a), (b, b))]
    return found[0], found[1], found[2]


def _compared(one: Floats, others: Floats) -> NDArray[np.int8]:
    """Signs of differences of one system's scores from others'; 0 where either is NaN."""
    signs: NDArray[np.int8] = (one > others).view(np.int8) - (one < others).view(np.int8)
    return signs


def _varies(x: Floats) -> NDArray[np.bool_]:
    """Rows whose defined values are not all equal."""
    low = np.where(np.isnan(x), np.inf, x).min(-1, initial=np.inf)
    high = np.where(np.isnan(x), -np.inf, x).max(-1, initial=-np.inf)
    varies: NDArray[np.bool_] = low < high
    return varies


def fleiss_kappa(votes: Integers) -> float | None:
    """Fleiss' (1971) κ of votes for each category, (items, categories).

    (P - P_e)/(1 - P_e), with P the mean over items of the share of pairs of votes that agree, and
    P_e the sum of the categories' squared shares of all votes. Items may have different numbers of
    votes; those with fewer than two are left out. None without any, and where all votes are for one
    category.

    >>> round(fleiss_kappa(np.array([[0, 3], [3, 0], [2, 1]])), 6)
    0.55
    """
    votes = np.asarray(votes, dtype=np.float64)
    votes = votes[votes.sum(1) > 1]
    if not len(votes):
        return None
    n = votes.sum(1)
    agree = float((((votes * (votes - 1)).sum(1)) / (n * (n - 1))).mean())
    chance = float(((votes.sum(0) / votes.sum()) ** 2).sum())
    return None if chance == 1 else (agree - chance) / (1 - chance)
