"""The exact search for boundaries as a compiled loop: the CPU's fast path of `search`.

For every unit in turn, all segments that start there lower the costs of their ends, for every
number of boundaries: operations on neighbouring numbers, which processors do several at a time.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from reffree.arrays import Floats, Integers
from reffree.compiling import njit
from reffree.parallel import over_rows


def largest_gains_of(squared: Floats, orders: Integers, k_max: int, threads: int) -> Floats:
    """Gain of the best segmentation with ``k = 0 … k_max`` boundaries of units in several orders.

    Args:
        squared: (n, n) squared distances.
        orders: (shuffles, m) units of each order.
        k_max: largest number of boundaries, less than ``m``.
        threads: to share the orders out to.

    Returns:
        (shuffles, k_max + 1) gains.
    """
    gains = np.empty((len(orders), k_max + 1))

    def work(rows: slice) -> None:
        _search(squared, orders[rows], gains[rows])

    over_rows(work, len(orders), threads)
    return gains


@njit(cache=True, nogil=True, error_model="numpy")
def add_rows(rows, total):
    """Add rows to a total, one after the other."""
    for row in rows:
        for k in range(len(total)):
            total[k] += row[k]


@njit(cache=True, nogil=True, error_model="numpy")
def sum_pairs(squared):
    """Sum over the pairs of units of a matrix of squared distances."""
    total = 0.0
    for i in range(len(squared)):
        row = 0.0
        for j in range(i):
            row += squared[i, j]
        total += row
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _search(squared, orders, gains):
    m, k_max = orders.shape[1], gains.shape[1] - 1
    cost = np.empty((m, m))  # [i, j]: of the segment of the units i … j
    least = np.empty((k_max + 1, m))  # [k, j]: of the units up to j with k boundaries
    for h in range(len(orders)):
        _fill_costs(squared, orders[h], cost)
        least[:] = np.inf
        least[0] = cost[0]
        for i in range(1, m):
            for k in range(1, min(k_max, i) + 1):
                _lower(least[k, i:], least[k - 1, i - 1], cost[i, i:])
        for k in range(k_max + 1):
            gains[h, k] = least[0, m - 1] - least[k, m - 1]


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_costs(squared, order, cost):
    """Squared distances to the centroid: the pairs' squared distances over the units."""
    m = len(order)
    to_later = np.zeros(m)  # [j]: Σ squared distances of j to the units i … j - 1
    for i in range(m - 1, -1, -1):
        row, later = squared[order[i]], order[i + 1 :]
        running = to_later[i + 1 :]
        for j in range(len(later)):
            running[j] += row[later[j]]
        pairs = 0.0
        cost[i, i] = 0.0
        segment = cost[i, i + 1 :]
        for j in range(len(later)):
            pairs += running[j]
            segment[j] = pairs
        for j in range(len(later)):
            segment[j] /= j + 2.0


@njit(cache=True, nogil=True, error_model="numpy")
def _lower(least, before, cost):
    """Put a last segment after the units before it, wherever that is cheaper."""
    for j in range(len(least)):
        value = before + cost[j]
        least[j] = value if value < least[j] else least[j]
