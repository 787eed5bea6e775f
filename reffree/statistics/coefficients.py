"""Agreement of metrics, and of judges: coefficients of many pairs of score vectors at once.

Correlations, and how surely, and in which documents, both metrics prefer the same of two systems.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from reffree.statistics.paired import TIE, swaps_of
from reffree.statistics.resampling import Counts, portions
from reffree.util.arrays import Booleans, Floats, Integers, ratio

AnyFloats = NDArray[np.float32] | NDArray[np.float64]
Coefficient = Literal["pearson", "spearman", "kendall"]

COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)

MIN_SYSTEMS = 3
"""Two systems correlate perfectly or not at all."""

AT_ONCE = 1 << 21

THRESHOLDS = 256
"""Tie thresholds tried in each resample; all of them are tried on the corpus itself."""

LOWEST, STEPS = -6, 2048


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
    # Systems first and contiguous: comparing whole rows is many times faster.
    sides = [np.ascontiguousarray(np.moveaxis(v, -1, 0)) for v in (x, y)]
    if coefficient == "kendall":
        products, x_size, y_size = _signs(*sides)
    else:
        a, b = (_deviations(v) if coefficient == "pearson" else _ranks(v) for v in sides)
        products, x_size, y_size = ((u * v).sum(0) for u, v in ((a, b), (a, a), (b, b)))
    is_defined = ((~is_missing).sum(-1) >= MIN_SYSTEMS) & _varies(x) & _varies(y)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = products / np.sqrt(x_size * y_size)
    defined: Floats = np.where(is_defined, values.clip(-1, 1), np.nan)[()]
    return defined


def _deviations(x: Floats) -> Floats:
    """Deviations from the mean in units of the largest, so that tiny squares do not vanish."""
    n = np.maximum((~np.isnan(x)).sum(0), 1)
    centred = np.nan_to_num(x - np.nansum(x, axis=0) / n)
    size = np.abs(centred).max(0, initial=0.0)
    scaled: Floats = centred / np.where(size > 0, size, 1.0)
    return scaled


def _ranks(x: Floats) -> Floats:
    """Average ranks, doubled and centred: of each system the sum of its signs against all."""
    ranks = np.empty(x.shape)
    for i, row in enumerate(x):
        ranks[i] = _compared(row, x).sum(0, dtype=np.int32)
    return ranks


def _signs(x: Floats, y: Floats) -> Floats:
    """Concordant less discordant pairs, pairs not tied under x, and under y."""
    found = np.zeros((3, *x.shape[1:]))
    for i in range(len(x) - 1):
        a, b = (_compared(v[i], v[i + 1 :]) for v in (x, y))
        found += [(u * v).sum(0, dtype=np.int32) for u, v in ((a, b), (a, a), (b, b))]
    return found


def _compared(one: Floats, others: Floats) -> NDArray[np.int8]:
    """Signs of differences of one system's scores from others'; 0 where either is NaN."""
    signs: NDArray[np.int8] = (one > others).view(np.int8) - (one < others).view(np.int8)
    return signs


def _varies(x: Floats) -> Booleans:
    """Rows whose defined values are not all equal."""
    low = np.where(np.isnan(x), np.inf, x).min(-1, initial=np.inf)
    varies: Booleans = low < np.where(np.isnan(x), -np.inf, x).max(-1, initial=-np.inf)
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


@cache
def normal_steps() -> NDArray[np.float32]:
    """Return the normal distribution in steps.

    A look-up is ten times faster and errs by 1e-4 at most.
    """
    from scipy.special import ndtr

    steps = LOWEST + (0.5 + np.arange(-2 * LOWEST * STEPS)) / STEPS
    return np.asarray(ndtr(steps), dtype=np.float32)


def sign_flips(n_documents: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Signs (n, documents): -1 where two systems swap a document.

    All :math:`2^D` up to 12 documents, 10,000 random ones beyond. One such matrix serves all
    metrics and pairs of systems.
    """
    return 1 - 2 * np.concatenate([*swaps_of(n_documents, rng)])


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
        for rows in portions(len(flips), AT_ONCE // max(gaps.shape)):
            flipped = flips[rows].astype(np.float64) @ gaps  # (n, p)
            credit += (flipped < observed - slack).sum(0) / 2
            credit += (flipped <= observed + slack).sum(0) / 2
        made.append(np.where(is_common.any(0), credit / len(flips), np.nan))
    return np.concatenate(made)


def normal_p(contributions: Floats, scores: Floats) -> NDArray[np.float32]:
    r"""Approximate `permutation_p` (pairs, r) for scores (r, systems); ½ where they are equal.

    The sum with flipped signs has mean 0 and variance :math:`\sum_d \delta_d^2 = n(s^2 + g^2)`,
    with g the mean and s the standard deviation of the pair's differences over its n documents.
    Taken as normal, and with the difference of any two scores for g,
    :math:`p_{ij} = \Phi(g \sqrt{n / (s^2 + g^2)})`.
    """
    made = [
        (is_common.sum(0), gaps.sum(0), (gaps**2).sum(0))
        for gaps, is_common in _gaps(contributions)
    ]
    n, sums, squares = (np.concatenate(each) for each in zip(*made, strict=True))
    known = np.maximum(n, 1)
    variance = (squares / known - (sums / known) ** 2).clip(min=0).astype(np.float32)
    first, second = np.triu_indices(len(contributions), 1)
    score = np.ascontiguousarray(scores.T, dtype=np.float32)  # (s, r)
    gap = score[first] - score[second]
    spread = gap * gap
    spread += variance[:, None]
    gap /= np.sqrt(np.maximum(spread, np.finfo(np.float32).tiny))
    gap *= np.sqrt(n).astype(np.float32)[:, None]
    gap -= LOWEST
    gap *= STEPS
    p: NDArray[np.float32] = normal_steps().take(gap.astype(np.int32), mode="clip")
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


def _gaps(contributions: Floats) -> Iterator[tuple[Floats, Booleans]]:
    """Differences of pairs of systems (documents, p) and where both are defined, some at a time."""
    n_systems, n_documents = contributions.shape
    first, second = np.triu_indices(n_systems, 1)  # the order of itertools.combinations
    for some in portions(len(first), AT_ONCE // n_documents):
        gaps = (contributions[first[some]] - contributions[second[some]]).T
        is_common = ~np.isnan(gaps)
        yield np.where(is_common, gaps, 0.0), is_common


class TieCalibratedAccuracy:
    r"""Pairwise accuracy with tie calibration (``acc_eq``), averaged over documents.

    .. math:: \mathrm{acc}_{eq} = \max_\varepsilon \frac{1}{D} \sum_d
        \frac{C_d(\varepsilon) + T_d(\varepsilon)}{\text{pairs}_d}

    :math:`C` counts the pairs of systems both metrics order alike, :math:`T` those tied under both;
    :math:`|x_i - x_j| \le \varepsilon` is a tie under x, equality under y. Deutsch, Foster and
    Freitag (2023), "Ties Matter"; WMT's ``KendallWithTiesOpt`` averaged by item. The threshold is
    searched over 0 and all distances; of several best ones the smallest is taken. Range [0, 1].
    A document with fewer than two defined systems is undefined.
    """

    def __init__(self, x: Floats, y: Floats) -> None:
        """Find the threshold for losses (systems, documents)."""
        first, second = np.triu_indices(len(x), 1)
        x_gap, y_gap = (v[first] - v[second] for v in (x, y))  # (p, d)
        is_pair = ~np.isnan(x_gap) & ~np.isnan(y_gap)
        n_pairs = is_pair.sum(0)
        share = np.where(n_pairs > 0, 1 / np.maximum(n_pairs, 1), np.nan)  # (d,)
        signs_x, signs_y = np.sign(x_gap), np.sign(y_gap)
        is_right = is_pair & (signs_x == signs_y)
        self._untied = is_right.sum(0) * share  # accuracy at threshold 0
        tied = (is_pair & (signs_y == 0)).astype(np.float64)
        change = (tied - is_right) * share
        pair, document = np.nonzero(is_pair & (signs_x != 0) & (change != 0))
        distance = np.abs(x_gap[pair, document])
        order = np.argsort(distance, kind="stable")
        # Pairs that change a document's accuracy when they become a tie, nearest first.
        self._document = document[order]
        self._distance = distance[order]
        self._change = change[pair, document][order]
        self._is_last = np.append(np.diff(self._distance) != 0, True)[: len(order)]
        n_defined = max(1, int((n_pairs > 0).sum()))
        gained = np.append(0.0, np.cumsum(self._change)[self._is_last] / n_defined)
        best = int(np.argmax(gained > gained.max() - 1e-12))
        self.epsilon = float(np.append(0.0, self._distance[self._is_last])[best])

    @property
    def documents(self) -> Floats:
        """Accuracy (documents,) at the calibrated threshold, NaN where undefined."""
        return self._at(np.array([self.epsilon]))[:, 0]

    def over(self, counts: Counts) -> Floats:
        """Accuracy (r,) over resampled documents, the threshold calibrated anew in each.

        It is searched over `THRESHOLDS` quantiles of the distances, 0 and the corpus's own.
        """
        distances = self._distance[self._is_last]
        picked = np.linspace(0, len(distances) - 1, min(THRESHOLDS, len(distances)))
        grid = np.unique([0.0, self.epsilon, *distances[picked.round().astype(np.intp)]])
        best: Floats = mean_over(counts, self._at(grid)).max(1)
        return best

    def _at(self, thresholds: Floats) -> Floats:
        """Accuracy (documents, thresholds) of ascending thresholds."""
        width = len(thresholds) + 1  # the last column is of pairs no threshold ties
        column = np.searchsorted(thresholds, self._distance)
        size = len(self._untied) * width
        changes = np.bincount(self._document * width + column, self._change, minlength=size)
        gained = changes.reshape(-1, width)[:, :-1].cumsum(1)
        accuracy: Floats = self._untied[:, None] + gained
        return accuracy


def mean_over(counts: Counts, values: Floats) -> Floats:
    """Means (r, k) of columns (documents, k) over resampled documents; rows are NaN or not."""
    defined = ~np.isnan(values).any(1)
    times = counts.astype(np.float64)[:, defined]
    return ratio(times @ values[defined], times.sum(1, keepdims=True))
