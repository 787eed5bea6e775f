"""Cheapest paths through the gaps of a document as compiled loops: the arithmetic of `textseg`.

Segments are taken by their first unit, from left to right. The costs of all that start at a unit
are found by adding one term after the other, and at once lower the costs of the paths to their
ends, so no table of all segments is needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats, Integers
from reffree.compiling import njit

Gaps = NDArray[np.int64] | NDArray[np.int32]


@njit(cache=True, nogil=True, error_model="numpy")
def cheapest_path(ids: Integers, n_distinct: int, edges: Integers) -> Integers:
    """For each gap, the one before it on the cheapest path; ties go to the longest last segment."""
    n = len(edges) - 1
    costs, counts = np.empty(n), np.zeros(n_distinct, dtype=np.int64)
    tables = _tables(len(ids), n_distinct)
    least = np.full(n + 1, np.inf)
    least[0] = 0.0
    came_from = np.zeros(n + 1, dtype=np.int64)
    for start in range(n):
        row = costs[: n - start]
        _fill_costs(ids, edges, start, tables, counts, row)
        _lower(least[start + 1 :], came_from[start + 1 :], least[start], row, start)
    return came_from


@njit(cache=True, nogil=True, error_model="numpy")
def cheapest_path_of(ids: Integers, n_distinct: int, edges: Integers, k: int) -> Integers:
    """Gaps on the cheapest path over ``k`` of them; ties go to the longest last segments."""
    n = len(edges) - 1
    costs, counts = np.empty(n), np.zeros(n_distinct, dtype=np.int64)
    tables = _tables(len(ids), n_distinct)
    least = np.full((k + 2, n + 1), np.inf)  # [m, g]: of m segments up to gap g
    least[0, 0] = 0.0
    came_from = np.zeros((k + 2, n + 1), dtype=np.int32)
    for start in range(n):
        row = costs[: n - start]
        _fill_costs(ids, edges, start, tables, counts, row)
        # The segment is the m-th: as many units as segments before it, and as many after it.
        for m in range(max(1, k + 2 - (n - start)), min(k, start) + 2):
            ends = slice(start + 1, n - (k + 1 - m) + 1)
            _lower(least[m, ends], came_from[m, ends], least[m - 1, start], row, start)
    gaps = np.empty(k, dtype=np.int64)
    gap = n
    for m in range(k + 1, 1, -1):
        gap = came_from[m, gap]
        gaps[m - 2] = gap
    return gaps


@njit(cache=True, nogil=True, error_model="numpy")
def _tables(n_terms: int, n_distinct: int) -> tuple[Floats, Floats]:
    """f·log(f + 1) of a term's count and m·log(m + distinct terms) of a segment's length."""
    numbers = np.arange(n_terms + 1).astype(np.float64)
    return numbers * np.log(numbers + 1), numbers * np.log(np.maximum(numbers + n_distinct, 1))


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_costs(
    ids: Integers,
    edges: Integers,
    start: int,
    tables: tuple[Floats, Floats],
    counts: Integers,
    costs: Floats,
) -> None:
    """Costs of the segments from unit ``start`` to each later one."""
    of_count, of_length = tables
    prior = np.log(max(1, len(ids)))
    known = 0.0
    counts[:] = 0
    for j in range(len(costs)):
        for term in ids[edges[start + j] : edges[start + j + 1]]:
            known += of_count[counts[term] + 1] - of_count[counts[term]]
            counts[term] += 1
        costs[j] = prior + of_length[edges[start + j + 1] - edges[start]] - known


@njit(cache=True, nogil=True, error_model="numpy")
def _lower(least: Floats, came_from: Gaps, before: float, costs: Floats, start: int) -> None:
    """Put a last segment after a path, wherever that is cheaper."""
    for j in range(len(least)):
        cost = before + costs[j]
        if cost < least[j]:
            least[j] = cost
            came_from[j] = start
