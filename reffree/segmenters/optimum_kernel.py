"""The dynamic programmes of `optimum` as compiled loops.

``n`` counts units. A segment is known by its end ``c`` (units before that) and its length ``l``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats
from reffree.compiling import njit

Integers = NDArray[np.int32]


@njit(cache=True, nogil=True, error_model="numpy")
def least_costs(cost: Floats, k_max: int) -> Integers:
    """``[k, j]``: where the last segment starts in the cheapest cut of the units up to ``j``.

    Args:
        cost: (n, n) ``[i, j]`` of the segment of the units ``i … j``.
        k_max: largest number of boundaries, less than ``n``; there is a row for each.
    """
    n = len(cost)
    least = np.full((k_max + 1, n), np.inf)
    start = np.zeros((k_max + 1, n), dtype=np.int32)
    least[0] = cost[0]
    for i in range(1, n):
        for k in range(1, min(k_max, i) + 1):
            _lower(least[k, i:], start[k, i:], least[k - 1, i - 1], cost[i, i:], i)
    return start


@njit(cache=True, nogil=True, error_model="numpy")
def _lower(least: Floats, start: Integers, before: float, cost: Floats, i: int) -> None:
    for j in range(len(least)):
        value = before + cost[j]
        start[j] = i if value < least[j] else start[j]
        least[j] = value if value < least[j] else least[j]


@njit(cache=True, nogil=True, error_model="numpy")
def proximities(dispersion: Floats) -> Floats:
    """``[b, cut]``: ARP's relative proximity at the boundary ``b``, ``cut`` units compared.

    Args:
        dispersion: (n, n) ``[i, j]`` of the units ``i … j``, to the power that is compared.
    """
    n = len(dispersion)
    found = np.zeros((n, n + 1))
    for b in range(2, n):
        for cut in range(2, min(b, 2 * (n - b)) + 1):
            intra = dispersion[b - cut, b - 1]
            inter = dispersion[b - (cut + 1) // 2, b + cut // 2 - 1]
            if inter + intra > 0.0:
                found[b, cut] = (inter - intra) / (inter + intra)
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def best_sums(proximity: Floats, penalty: float, total: Floats, via: Integers) -> None:
    """Best sum of proximities, less ``penalty`` for each, of any number of boundaries.

    Args:
        proximity: (n, n + 1) of `proximities`.
        penalty: what every boundary costs.
        total: (n + 1, n + 1) ``[c, l]`` of the units before ``c`` if the last segment has ``l`` of
            them; to be filled.
        via: ``[c, l]`` length of the segment before it; to be filled.
    """
    n = len(proximity)
    ends, farther, came = np.empty(n + 1), np.empty(n + 1), np.empty((2, n + 1), dtype=np.int32)
    total[:] = -np.inf
    for c in range(1, n + 1):
        total[c, c] = 0.0
    for b in range(1, n):
        _extend(total[b], proximity[b], b, n - b, farther, came[1], ends, came[0])
        for size in range(1, n - b + 1):
            total[b + size, size] = ends[size] - penalty
            via[b + size, size] = came[0, size]


@njit(cache=True, nogil=True, error_model="numpy")
def best_sums_of(
    proximity: Floats,
    first: tuple[int, int],
    stop: int,
    k: int,
    marked: int,
    total: Floats,
    place: Integers,
) -> None:
    """Best sum of the proximities of ``k`` boundaries, and what stands at the ``marked`` one.

    Args:
        proximity: (n, n + 1) of `proximities`.
        first: start and end of the first segment; an end of 0 leaves it free.
        stop: end of the last segment.
        k: number of boundaries.
        marked: one of them, from 1.
        total: (n + 1, n + 1) ``[c, l]`` of the units before ``c`` if the last segment has ``l`` of
            them; to be filled.
        place: ``[c, l]`` the segment after the marked boundary, as ``c (n + 1) + l``; to be filled.
    """
    n = len(proximity)
    ends, farther, came = np.empty(n + 1), np.empty(n + 1), np.empty((2, n + 1), dtype=np.int32)
    start, end = first
    for c in range(start + 1, stop + 1):
        total[c, : c - start + 1] = -np.inf
        if end in (0, c):
            total[c, c - start] = 0.0
    for boundary in range(1, k + 1):
        # From right to left: a row is read before any of its entries is written.
        for b in range(stop - 1, start, -1):
            _extend(total[b], proximity[b], b - start, stop - b, farther, came[1], ends, came[0])
            for size in range(1, stop - b + 1):
                total[b + size, size] = ends[size]
                if boundary == marked:
                    place[b + size, size] = (b + size) * (n + 1) + size
                else:
                    place[b + size, size] = place[b, came[0, size]]
        for c in range(start + 1, stop + 1):
            total[c, c - start] = -np.inf  # the first segment is over


@njit(cache=True, nogil=True, error_model="numpy")
def _extend(
    before: Floats,
    proximity: Floats,
    longest: int,
    room: int,
    farther: Floats,
    farther_from: Integers,
    ends: Floats,
    via: Integers,
) -> None:
    """Best sums of all segmentations with a boundary here, by the length of the segment after it.

    A segment of ``m`` units before the boundary and one of ``l`` after it score
    ``proximity[min(2l, m)]``. So for every ``l`` the best is among the ``m`` up to ``2l``, each
    with a score of its own, and those above, all with the score of ``2l``: two running maxima.

    Args:
        before: ``[m]`` best sum so far if the segment before has ``m`` units.
        proximity: ``[cut]`` at the boundary.
        longest: largest ``m``; the least is 2.
        room: largest ``l``.
        farther: workspace.
        farther_from: workspace.
        ends: ``[l]`` best sum; to be filled.
        via: ``[l]`` the ``m`` it comes from; to be filled.
    """
    top, top_from = -math.inf, 0
    for m in range(longest, 2, -1):
        if before[m] > top:
            top, top_from = before[m], m
        farther[m], farther_from[m] = top, top_from
    near, near_from, m = -math.inf, 0, 2
    for size in range(1, room + 1):
        while m <= min(2 * size, longest):
            if before[m] + proximity[m] > near:
                near, near_from = before[m] + proximity[m], m
            m += 1
        ends[size], via[size] = near, near_from
        if m <= longest and farther[m] + proximity[2 * size] > near:
            ends[size], via[size] = farther[m] + proximity[2 * size], farther_from[m]
