"""How surely a metric calls one system better than another, and whether two metrics agree on it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reffree.arrays import Floats
from reffree.statistics.significance import EXACT_DOCUMENTS, SWAPS, TIE

AnyFloats = NDArray[np.float32] | NDArray[np.float64]

AT_ONCE = 1 << 21

LOWEST, STEPS = -6, 2048
NORMAL = ndtr(LOWEST + (0.5 + np.arange(-2 * LOWEST * STEPS)) / STEPS).astype(np.float32)
"""The normal distribution in steps; a look-up is ten times faster and errs by 1e-4 at most."""


def sign_flips(n_documents: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Signs (n, documents): -1 where two systems swap a document.

    All :math:`2^D` up to 12 documents, 10,000 random ones beyond. One such matrix serves all
    metrics and pairs of systems.
    """
    if n_documents <= EXACT_DOCUMENTS:
        every = (np.arange(2**n_documents)[:, None] >> np.arange(n_documents)) & 1
        bits = every.astype(np.int8)
    else:
        bits = rng.integers(0, 2, size=(SWAPS, n_documents), dtype=np.int8)
    return 1 - 2 * bits


def permutation_p(contributions: Floats, flips: NDArray[np.int8]) -> Floats:
    r"""One-sided p (pairs,) that the first system of each pair is better (has the lower loss).

    With :math:`\delta_d` the difference of the two systems' contributions on a document where both
    are defined and :math:`t = \sum_d \delta_d`, signs :math:`s` flipped at random give

    .. math:: p_{ij} = \frac{\#\{\sum_d s_d\delta_d < t\} +
        \tfrac12\#\{\sum_d s_d\delta_d = t\}}{\#s}

    Ties count half, so that :math:`p_{ij} + p_{ji} = 1`, the order of systems does not matter and
    two equal systems get ½. NaN for a pair without a common document. Pairs are in the order of
    `itertools.combinations`.
    """
    made = []
    for gaps, is_common in _gaps(contributions):
        observed = gaps.sum(0)  # (p,)
        slack = TIE * np.abs(gaps).sum(0)
        credit = np.zeros(gaps.shape[1])
        step = max(1, AT_ONCE // max(gaps.shape))
        for start in range(0, len(flips), step):
            flipped = flips[start : start + step].astype(np.float64) @ gaps  # (n, p)
            credit += (flipped < observed - slack).sum(0) / 2
            credit += (flipped <= observed + slack).sum(0) / 2
        made.append(np.where(is_common.any(0), credit / len(flips), np.nan))
    return np.concatenate(made)


class NormalP:
    r"""Approximate `permutation_p` as a function of the systems' scores.

    The sum with flipped signs has mean 0 and variance :math:`\sum_d \delta_d^2 = n(s^2 + g^2)`,
    with g the mean and s the standard deviation of the pair's differences over its n documents.
    Taken as normal, and with the difference of any two scores for g,
    :math:`p_{ij} = \Phi(g \sqrt{n / (s^2 + g^2)})`.
    """

    def __init__(self, contributions: Floats) -> None:
        """Find how far each pair's differences spread over documents."""
        made = [(gaps, is_common.sum(0)) for gaps, is_common in _gaps(contributions)]
        n = np.concatenate([size for _, size in made])
        self._root_n = np.sqrt(n).astype(np.float32)
        squares = np.concatenate([(gaps**2).sum(0) for gaps, _ in made])
        sums = np.concatenate([gaps.sum(0) for gaps, _ in made])
        known = np.maximum(n, 1)
        self._variance = (squares / known - (sums / known) ** 2).clip(min=0).astype(np.float32)
        self._first, self._second = np.triu_indices(len(contributions), 1)

    def of(self, scores: Floats) -> NDArray[np.float32]:
        """One-sided p (pairs, r) of scores (r, systems); ½ where they are equal."""
        score = np.ascontiguousarray(scores.T, dtype=np.float32)  # (s, r)
        gap = score[self._first] - score[self._second]
        spread = gap * gap
        spread += self._variance[:, None]
        gap /= np.sqrt(np.maximum(spread, np.finfo(np.float32).tiny))
        gap *= self._root_n[:, None]
        gap -= LOWEST
        gap *= STEPS
        p: NDArray[np.float32] = NORMAL.take(gap.astype(np.int32), mode="clip")
        return p


def soft_pairwise_accuracy(p_x: AnyFloats, p_y: AnyFloats) -> Floats:
    r"""Agreement of p-values over pairs of systems, (pairs, …) to (…,).

    .. math:: \mathrm{SPA} = 1 - \binom{S}{2}^{-1} \sum_{i<j} |p^x_{ij} - p^y_{ij}|

    Thompson et al. (2024), "Improving Statistical Significance in Human Evaluation of Automatic
    Metrics via Soft Pairwise Accuracy"; WMT's ``pce``. Range [0, 1], ½ for a metric that is never
    sure against one that always is. NaN where a pair has no p-value.
    """
    accuracy: Floats = 1 - np.abs(p_x - p_y).mean(0, dtype=np.float64)
    return accuracy


def _gaps(contributions: Floats) -> Iterator[tuple[Floats, NDArray[np.bool_]]]:
    """Differences of pairs of systems (documents, p) and where both are defined, some at a time."""
    n_systems, n_documents = contributions.shape
    first, second = np.triu_indices(n_systems, 1)  # the order of itertools.combinations
    step = max(1, AT_ONCE // n_documents)
    for start in range(0, len(first), step):
        i, j = first[start : start + step], second[start : start + step]
        gaps = (contributions[i] - contributions[j]).T
        is_common = ~np.isnan(gaps)
        yield np.where(is_common, gaps, 0.0), is_common
