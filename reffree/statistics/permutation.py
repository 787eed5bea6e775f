"""Whether two metrics correlate differently with a third: swap them at random and see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats
from reffree.statistics.coefficients import Coefficient, correlation
from reffree.statistics.significance import TIE

Swap = Literal["systems", "both"]

SWAPS: tuple[Swap, ...] = get_args(Swap)
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
    This holds its level only where the metrics differ by nothing but noise that is independent
    from document to document. Where one of them favours certain systems throughout, as metrics
    do, swapping documents averages that away and far too many differences become significant
    (``benchmarks/interval_coverage.py``); it is here for comparison with published figures.

    Cells that only one of the two metrics has are left out of both, and systems without any cell
    or gold score left.

    Args:
        first: contributions (systems, documents) of the one metric, NaN where undefined.
        second: those of the other.
        gold: scores (systems,) of the gold metric.
        coefficient: which correlation.
        rng: draws the coins.
        swap: what is swapped.
        permutations: how many.
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
        return PermutationTest(
            None, None, None, permutations, 0, n_systems, left_out, "a correlation is undefined"
        )
    widened = np.sqrt(n_systems / (n_systems - 1)) * gap.sum(1)
    step = max(1, SWAPPED_AT_ONCE // max(n_documents, n_systems))
    drawn = []
    for start in range(0, permutations, step):
        size = min(step, permutations - start)
        systems = 1.0 - 2.0 * rng.integers(0, 2, size=(size, n_systems))
        if swap == "systems":
            drawn.append(difference(systems * widened))
        else:
            documents = 1.0 - 2.0 * rng.integers(0, 2, size=(size, n_documents))
            drawn.append(difference(systems * (documents @ gap.T)))
    null = np.concatenate(drawn)
    is_undefined = np.isnan(null)
    slack = TIE * 2
    two_sided = is_undefined | (np.abs(null) >= abs(observed) - slack)
    greater = is_undefined | (null >= observed - slack)
    return PermutationTest(
        difference=observed,
        p=(1 + int(two_sided.sum())) / (1 + permutations),
        p_greater=(1 + int(greater.sum())) / (1 + permutations),
        permutations=permutations,
        undefined=int(is_undefined.sum()),
        systems=n_systems,
        left_out=left_out,
    )


def _standardised(values: Floats, is_cell: NDArray[np.bool_]) -> Floats:
    """z-scores over all cells; 0 elsewhere, and everywhere if they are all equal."""
    cells = values[is_cell]
    spread = cells.std() if len(cells) and np.ptp(cells) > 0 else 0.0
    if not spread:
        return np.zeros_like(values)
    return np.where(is_cell, (values - cells.mean()) / spread, 0.0)
