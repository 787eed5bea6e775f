"""Compiled loops of `reffree.scoring.sweep`: look-ups of a few edges, without all pairs at once.

Sums have the order they have in `tables_kernel`, so they are the same to the last bit.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from reffree.compiling import njit
from reffree.scoring.pairs_kernel import TILE, U, measure_tiles
from reffree.scoring.tables_kernel import extend, turn_again, turns


@njit(cache=True, nogil=True, error_model="numpy")
def find_rows(masses, low, high, after):
    """Find what is looked up: units ``low … high`` of edges, spans from units to ``after``.

    Rows start out empty: ``low`` and ``high`` 0, ``after`` the unit itself.
    """
    n = len(low) - 1
    edges = np.zeros(masses.shape[1] + 1, dtype=np.int64)
    for h in range(masses.shape[0]):
        n_segments = 0
        while n_segments < masses.shape[1] and masses[h, n_segments] > 0:
            edges[n_segments + 1] = edges[n_segments] + masses[h, n_segments]
            n_segments += 1
        if n_segments == 1:
            continue
        for s in range(n_segments + 1):
            edge = edges[s]
            first, last = edges[max(0, s - 2)], edges[min(n_segments, s + 2)]
            low[edge] = min(low[edge], first) if high[edge] > 0 else first
            high[edge] = max(high[edge], last)
            if edge < n:
                after[edge] = max(after[edge], last)
        for s in range(n_segments - 1):
            stop = edges[s + 1]
            cut = min(2 * (edges[s + 2] - stop), stop - edges[s])
            left, right = stop - (cut + 1) // 2, stop + max(1, cut // 2)
            after[left] = max(after[left], right)
            after[stop - cut] = max(after[stop - cut], stop)


@njit(cache=True, nogil=True, error_model="numpy")
def measure_stripe(x, length, rounding, start, stop, first, last, origin, pairs, turned):
    """Squared distances of a tile's units with the units ``first … last``.

    Into ``pairs[i - start, j - origin]`` and ``turned[j - origin, i - start]``; 0 for units that do
    not come later.
    """
    n = len(x)
    everywhere = np.full(n, n)
    products = np.empty((TILE, TILE))
    for left in range(first, last, TILE):
        right = min(left + TILE, last)
        measure_tiles(x, length, rounding, start, stop, left, right, everywhere, products)
        for i in range(start, stop):
            for j in range(left, right):
                pair = products[i - start, j - left] if j > i else 0.0
                pairs[i - start, j - origin] = turned[j - origin, i - start] = pair


@njit(cache=True, nogil=True, error_model="numpy")
def sum_forwards(start, stop, left, right, turned, rows, squared, distance, running):
    """Sums from a tile's units to the edges after them, kept where they are looked up."""
    low, high, _, base, _ = rows
    squares, distances = running[0], running[1]
    for j in range(left, right):
        pair = turned[j - left]
        for i in range(stop - start):
            squares[i] += pair[i]
            distances[i] += math.sqrt(pair[i])
        edge = j + 1
        for i in range(max(start, low[edge]), min(stop, high[edge], edge)):
            squared[base[edge] + i] = squares[i - start]
            distance[base[edge] + i] = distances[i - start]


@njit(cache=True, nogil=True, error_model="numpy")
def sum_backwards(
    start, stop, left, right, pairs, x, length, rounding, rows, tables, running, sums
):
    """Sums to a tile's units from the units after them, and of the spans that start there.

    ``running``: of every unit so far, down to the tile; ``sums``: of the spans, up to ``left``.
    """
    low, high, after, base, top = rows
    squared, distance, spans = tables
    flat, turn = pairs.reshape(pairs.size), np.empty(right - left)
    for a in range(stop - 1, start - 1, -1):
        first = max(left, a + 1)
        at = (a - start) * pairs.shape[1] + first - left
        count = right - first
        if count > 0:
            if turns(flat, U(at), length, U(a), U(first), U(count), turn):
                turn_again(x, length, rounding, a, first, turn[:count])
            extend(flat, U(at), turn, length, U(a), U(first), U(count), running)
            _extend_distances(flat[at : at + count], running[4, first:right])
        if left == start and low[a] <= a < high[a]:
            squared[base[a] + a] = distance[base[a] + a] = 0.0
        for j in range(first, min(right, high[a])):
            squared[base[a] + j] = 0.0 - running[0, j]
            distance[base[a] + j] = 0.0 - running[4, j]
        if after[a] > a:
            into = sums[a - start]
            if left == start:
                into[:] = 0.0
                spans[top[a] + a] = 0.0
            for j in range(first, min(right, after[a])):
                for k in range(4):
                    into[k] += running[k, j]
                    spans[top[a] + j, k] = into[k]


@njit(cache=True, nogil=True, error_model="numpy")
def _extend_distances(pair, distances):
    for j in range(len(pair)):
        distances[j] += math.sqrt(pair[j])
