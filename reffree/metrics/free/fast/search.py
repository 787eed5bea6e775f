r"""What a search for boundaries gains on the same units in random order.

With :math:`W` the within-segment sum of squared distances to the centroids, the gain of a
segmentation is :math:`W_0 - W`, where :math:`W_0` has no boundary. `search_document` gives, for
every number of boundaries ``k``, the largest gain any ``k`` boundaries reach, averaged over
shuffles.

The search is exact: least cost of the first ``j`` units with ``k`` boundaries, from the least costs
with ``k - 1``. A segment costs the sum of its pairs' squared distances over its units, so positive
terms only are added. One pass gives every ``k`` and costs ``n² k``: for every unit in turn, all
segments that start there lower the costs of their ends, for every number of boundaries, operations
on neighbouring numbers, which processors do several at a time.

Documents of more than `WHOLE` units take the exact search for up to `ANCHOR` boundaries. Beyond
these, the shuffled units are cut into windows of at most `WHOLE` units, and the gain over chance is
read at the same rate of boundaries per unit. Windows miss a few per cent at low rates; what they
miss at `ANCHOR` boundaries is known, shrinks about as ``1/k``, and is made up for. On 1,000 to
1,200 units (Gaussian vectors of 2 and 384 dimensions, MiniLM vectors of Choi's texts and of a
meeting) with 96 shuffles the gain over chance is then within 0.5 % of the exact search on the same
shuffles (up to 100 boundaries), and within 1.3 % on others, which is what shuffles leave open.
Above `LONGEST` units the search for few boundaries runs in windows, too, of at most `LONGEST`
units. There the gain over chance is too low, by up to a third with 1 boundary per window, 11 % with
2.5, 6 % with 5, 4 % with 10 and 3 % with 20.

Every sum has one order: the gains of ``k`` boundaries follow from the vectors, the shuffles and the
seed, to the last bit, whatever else is searched and on how many threads. At a time the search holds
two tables of at most `LONGEST` × `LONGEST` entries for each thread (64 MiB).
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from reffree.metrics.free.fast.distances import measure_square, sum_to_mean
from reffree.metrics.free.fast.vectors import Vectors
from reffree.util.arrays import Floats, Integers
from reffree.util.compiling import njit
from reffree.util.parallel import in_threads, over_rows

WHOLE = 512
"""Documents up to this many units are searched exactly whatever the number of boundaries."""

LONGEST = 2048
"""Documents up to this many units are searched exactly for up to `ANCHOR` boundaries."""

ANCHOR = 32
"""Boundaries from which documents longer than `WHOLE` are searched in windows."""

SHUFFLES_AT_ONCE = 128
"""Orders of the units that are drawn before they are searched."""


class Searched(NamedTuple):
    """What a search found in one document, on the scale of its vectors as they are held."""

    whole: float  # W0
    gains: Floats  # (k_max + 1,) mean over shuffles of the largest gain


def search_document(vectors: Vectors, k_max: int, *, n_shuffles: int, seed: int) -> Searched:
    """Mean over shuffles of the largest gain that ``k`` boundaries reach, ``k = 0 … k_max``.

    The shuffles follow from ``seed`` and the number of units alone.

    >>> units = Vectors.of(torch.tensor([[0.0], [0.0], [1.0], [1.0]]))
    >>> search_document(units, 3, n_shuffles=64, seed=0).gains.round(2).tolist()
    [0.0, 0.5, 0.81, 1.0]
    """
    n = len(vectors)
    k = np.arange(k_max + 1, dtype=np.float64)
    few = min(k_max, ANCHOR)
    if n <= LONGEST:
        squared = _square(vectors, torch.get_num_threads())
        whole = sum_pairs(squared) / n
        if n <= WHOLE:
            return Searched(whole, _mean_gains(squared, min(k_max, n - 1), n_shuffles, seed))
        exact = _mean_gains(squared, few, n_shuffles, seed)
        excess = exact / (whole or 1.0) - k[: few + 1] / (n - 1)
    else:
        whole = float(sum_to_mean(vectors.rows))
        if whole <= vectors.rounding * float(np.square(vectors.length).sum()):
            whole = 0.0
        excess = _window_excess(vectors, LONGEST, few, n_shuffles, seed)
    if k_max > ANCHOR:
        rough = _window_excess(vectors, WHOLE, k_max, n_shuffles, seed)
        at_anchor = float(rough[ANCHOR])
        missed = (excess[-1] - at_anchor) / (at_anchor if at_anchor > 0 else 1.0)
        many = rough * (1 + missed * ANCHOR / np.maximum(k, ANCHOR))
        excess = np.concatenate([excess, many[ANCHOR + 1 :]])
    return Searched(whole, (k / (n - 1) + excess) * whole)


def _square(vectors: Vectors, threads: int) -> Floats:
    """Squared distances of all units."""
    squared = np.empty((len(vectors), len(vectors)))
    args = (vectors.rows, vectors.length, vectors.rounding, squared)
    in_threads([partial(measure_square, first, threads, *args) for first in range(threads)])
    return squared


def _mean_gains(squared: Floats, k_max: int, n_shuffles: int, seed: int) -> Floats:
    """Mean over shuffles of the largest gains, (k_max + 1,)."""
    total = np.zeros(k_max + 1)
    rng = np.random.default_rng([seed, len(squared)])
    for first in range(0, n_shuffles, SHUFFLES_AT_ONCE):
        count = min(SHUFFLES_AT_ONCE, n_shuffles - first)
        orders = np.stack([rng.permutation(len(squared)) for _ in range(count)])
        for gains in largest_gains(squared, orders, k_max, torch.get_num_threads()):
            total += gains
    return total / n_shuffles


def _window_excess(
    vectors: Vectors, most_units: int, k_max: int, n_shuffles: int, seed: int
) -> Floats:
    """Gain over chance, as a fraction of ``W0``, from windows of the shuffled document.

    At least as many windows are searched as there are shuffles.
    """
    n = len(vectors)
    n_windows = -(-n // most_units)
    size = n // n_windows
    k_window = -(-k_max * (size - 1) // (n - 1))
    in_order = np.arange(size)[None]

    def search(window: Integers) -> Floats:
        part = vectors[window]
        squared = _square(part, 1)
        part.discard()
        gains = largest_gains(squared, in_order, k_window, 1)[0]
        return np.append(gains, sum_pairs(squared) / size)

    n_orders = -(-n_shuffles // n_windows)
    total = np.zeros(k_window + 2)
    rng = np.random.default_rng([seed, n])
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for _ in range(n_orders):
            windows = rng.permutation(n)[: n_windows * size].reshape(n_windows, size)
            for found in pool.map(search, windows):
                total += found
    gains, whole = total[:-1] / (n_orders * n_windows), total[-1] / (n_orders * n_windows)
    k = np.arange(k_max + 1, dtype=np.float64)
    chance = np.arange(k_window + 1) / (size - 1)
    excess = gains / (whole if whole > 0 else 1.0) - chance  # (k_window + 1,)
    place = k * (size - 1) / (n - 1)
    below = place.astype(np.int64)
    above = np.minimum(below + 1, k_window)
    between: Floats = excess[below] + (place - below) * (excess[above] - excess[below])
    return between  # (k_max + 1,)


def largest_gains(squared: Floats, orders: Integers, k_max: int, threads: int) -> Floats:
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
