"""Whether one metric correlates better with a third than another does.

Permutation tests, Williams' test, and p-values adjusted for a family of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from reffree.statistics.coefficients import Coefficient, correlation
from reffree.statistics.paired import TIE
from reffree.statistics.resampling import portions
from reffree.util.arrays import Booleans, Floats

Swap = Literal["systems", "both"]

PERMUTATIONS = 1000
SWAPPED_AT_ONCE = 1 << 21


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """The first metric's correlation with the gold metric against the second's."""

    difference: float | None  # first - second, on the cells both metrics have
    p: float | None  # two-sided
    p_greater: float | None  # one-sided: the first correlates better
    permutations: int
    undefined: int  # permutations without a correlation; they count as extreme
    systems: int
    left_out: int  # losses only one of the two metrics has
    reason: str | None = None


def permutation_test(
    first: Floats,
    second: Floats,
    gold: Floats,
    coefficient: Coefficient,
    rng: np.random.Generator,
    *,
    swap: Swap = "systems",
    permutations: int = PERMUTATIONS,
) -> PermutationTest:
    r"""Swap two metrics at random and correlate again (Deutsch, Dror and Roth 2021, 2104.00054).

    Both metrics' contributions are standardised, each by its mean and standard deviation over all
    cells (a cell is a system on a document). The statistic is the difference of the correlations,
    over systems, of mean contributions with the gold metric's scores, and

    .. math:: p = (1 + \#\{|\Delta^*| \ge |\Delta|\}) / (1 + \#\text{permutations})

    (one-sided without the absolute values). What is swapped says what may vary:

    ``systems`` (PERM-SYSTEMS): a fair coin for every system; heads swap all its cells. Null
    hypothesis: of any such system, the two metrics could as well have changed places.
    Standardising takes one of the S degrees of freedom of the differences between the metrics,
    so they are widened by :math:`\sqrt{S / (S - 1)}`.

    ``both`` (PERM-BOTH): a coin for every document as well; cells of drawn systems are swapped,
    then those of drawn documents, so a cell changes sides where exactly one of its coins says so.
    Where one of the metrics favours certain systems throughout, as metrics do, that is averaged
    away and far too many differences become significant (``benchmarks/interval_coverage.py``); it
    is here for comparison with published figures.

    ``first`` and ``second`` are contributions (systems, documents), NaN where undefined, ``gold``
    scores (systems,). Cells that only one of the two metrics has are left out of both, and systems
    without any cell or gold score left.
    """
    is_cell = ~np.isnan(first) & ~np.isnan(second)
    left_out = int((np.isnan(first) != np.isnan(second)).sum())
    is_kept = is_cell.any(1) & ~np.isnan(gold)
    x, y = (_standardised(v[is_kept], is_cell[is_kept]) for v in (first, second))
    cells, gold = is_cell[is_kept].sum(1), gold[is_kept]  # (s,)
    n_systems, n_documents = x.shape
    mean, gap = ((x + y) / 2).sum(1), (x - y) / 2

    def difference(signs: Floats) -> Floats:
        """Statistic (n,) where mean contributions are ``mean ± signs`` (n, s)."""
        one, other = ((mean + side * signs) / cells for side in (1, -1))
        return correlation(one, gold, coefficient) - correlation(other, gold, coefficient)

    observed = float(difference(gap.sum(1)[None])[0])
    if np.isnan(observed):
        reason = "a correlation is undefined"
        return PermutationTest(None, None, None, permutations, 0, n_systems, left_out, reason)
    widened = np.sqrt(n_systems / (n_systems - 1)) * gap.sum(1)
    drawn = []
    for rows in portions(permutations, SWAPPED_AT_ONCE // max(n_documents, n_systems)):
        size = rows.stop - rows.start
        systems = 1.0 - 2.0 * rng.integers(0, 2, size=(size, n_systems))
        if swap == "systems":
            drawn.append(difference(systems * widened))
        else:
            documents = 1.0 - 2.0 * rng.integers(0, 2, size=(size, n_documents))
            drawn.append(difference(systems * (documents @ gap.T)))
    null = np.concatenate(drawn)
    is_undefined = np.isnan(null)
    two_sided = is_undefined | (np.abs(null) >= abs(observed) - 2 * TIE)
    greater = is_undefined | (null >= observed - 2 * TIE)
    return PermutationTest(
        difference=observed,
        p=(1 + int(two_sided.sum())) / (1 + permutations),
        p_greater=(1 + int(greater.sum())) / (1 + permutations),
        permutations=permutations,
        undefined=int(is_undefined.sum()),
        systems=n_systems,
        left_out=left_out,
    )


@dataclass(frozen=True, slots=True)
class WilliamsTest:
    """Whether the first correlation with the shared variable differs from the second."""

    t: float | None
    p: float | None  # two-sided
    p_greater: float | None  # one-sided: the first is the larger
    n: int
    reason: str | None = None


def williams(r_first: float, r_second: float, r_between: float, n: int) -> WilliamsTest:
    r"""Compare correlations of two variables with a third, all over the same ``n`` systems.

    .. math:: t_{n-3} = (r_1 - r_2) \sqrt{\frac{(n - 1)(1 + r_{12})}
        {2K\frac{n - 1}{n - 3} + \frac{(r_1 + r_2)^2}{4}(1 - r_{12})^3}},\quad
        K = 1 - r_1^2 - r_2^2 - r_{12}^2 + 2 r_1 r_2 r_{12}

    Williams (1959); Steiger (1980), eq. (7). Signed correlations: losses are oriented alike, so a
    negative one is bad and its sign is kept. Made for Pearson's coefficient of independent normal
    draws; it sees the systems as the sample and takes their scores as exact. Undefined with fewer
    than four systems, an undefined correlation or a perfect ``r_between``.
    """
    reason = None
    if np.isnan([r_first, r_second, r_between]).any():
        reason = "a correlation is undefined"
    elif n < 4:
        reason = "fewer than 4 systems"
    elif abs(r_between) >= 1 - 1e-12:
        reason = "the two metrics correlate perfectly"
    if reason:
        return WilliamsTest(None, None, None, n, reason)
    k = 1 - r_first**2 - r_second**2 - r_between**2 + 2 * r_first * r_second * r_between
    mean = (r_first + r_second) / 2
    # Rounding may make the determinant of a correlation matrix negative.
    spread = 2 * max(k, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - r_between) ** 3
    if spread == 0:
        return WilliamsTest(None, None, None, n, "the test's variance is 0")
    from scipy.special import stdtr

    t = float((r_first - r_second) * np.sqrt((n - 1) * (1 + r_between) / spread))
    return WilliamsTest(t, 2 * float(stdtr(n - 3, -abs(t))), float(stdtr(n - 3, -t)), n)


def _standardised(values: Floats, is_cell: Booleans) -> Floats:
    """z-scores over all cells; 0 elsewhere, and everywhere if they are all equal."""
    cells = values[is_cell]
    spread = cells.std() if len(cells) and np.ptp(cells) > 0 else 0.0
    if not spread:
        return np.zeros_like(values)
    return np.where(is_cell, (values - cells.mean()) / spread, 0.0)


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values (Benjamini and Hochberg 1995): reject where at most the level.

    An undefined p (None) stays undefined and is not part of the family.

    >>> benjamini_hochberg([0.01, None, 0.04, 0.03])
    [0.03, None, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control

    defined = [p for p in p_values if p is not None]
    adjusted = iter(false_discovery_control(defined).tolist() if defined else [])
    return [None if p is None else next(adjusted) for p in p_values]
