"""Look-ups of hypotheses whose tables do not fit into memory.

`tables` holds a row for every edge of a document. Here only the edges that some of the given
hypotheses have get rows, and the pairs between are measured, added up and forgotten, a tile of
units at a time. One hypothesis takes some 200 bytes per unit, whatever its segments' lengths. Every
sum has the order it has there, so scores are the same to the last bit; the time is that of
measuring all pairs again for every group of hypotheses that fits.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from functools import partial
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from reffree.data.masses import Masses
from reffree.metrics.free.fast.distances import TILE, U, Vectors, measure_tiles, take
from reffree.metrics.free.fast.tables import Tables, band_of, extend, places, turn_again, turns
from reffree.util.arrays import Integers
from reffree.util.compiling import njit
from reffree.util.parallel import in_threads

STRIPE = 2048
"""Units whose pairs with a tile are held at a time; `TILE` divides."""


class Rows(NamedTuple):
    """What some hypotheses look up, and where it stands."""

    low: Integers  # (n + 1,) an edge's row holds the units low …
    high: Integers  # (n + 1,) … high; none where that is 0
    after: Integers  # (n + 1,) spans from the unit to those before this one; none if it is itself
    base: Integers  # (n + 1,) see `Tables`
    top: Integers  # (n + 1,)
    size: int
    n_spans: int

    @classmethod
    def of(cls, masses: Masses, n_units: int) -> Rows:
        """Find the rows of hypotheses."""
        low, high = np.zeros((2, n_units + 1), dtype=np.int64)
        units = np.arange(n_units + 1)
        after = units.copy()
        find_rows(masses, low, high, after)
        base, size = places(low, high)
        top, n_spans = places(units, after)
        return cls(low, high, after, base, top, size, n_spans)

    @property
    def bytes(self) -> int:
        """What the tables take, with what they are made from."""
        return 8 * (2 * self.size + 4 * self.n_spans + 10 * len(self.low) + 2 * TILE * STRIPE)


def fitting_groups(masses: Masses, n_units: int, memory: int) -> list[slice]:
    """Cut hypotheses into runs whose rows fit into memory; one alone is never cut."""
    waiting, groups = [slice(0, len(masses))], []
    while waiting:
        group = waiting.pop()
        count = group.stop - group.start
        if count > 1 and Rows.of(masses[group], n_units).bytes > memory:
            middle = group.start + count // 2
            waiting += [slice(middle, group.stop), slice(group.start, middle)]
        else:
            groups.append(group)
    return groups


def sweep_tables(vectors: Vectors, masses: Masses, threads: int) -> Tables:
    """Make the look-ups of these hypotheses."""
    n, x, length = len(vectors), vectors.rows, vectors.length
    rows = Rows.of(masses, n)
    sizes = (rows.size, rows.size, 4 * rows.n_spans)
    memory = take(sum(sizes))
    squared, distance, sums = (memory[a:b] for a, b in pairwise(accumulate(sizes, initial=0)))
    tables = (squared, distance, sums.reshape(rows.n_spans, 4))
    reach = band_of(masses, n).high
    found = tuple(rows[:5])
    running, spans = np.zeros((5, n)), np.empty((TILE, 4))
    pairs, turned = np.empty((TILE, STRIPE)), np.empty((STRIPE, TILE))
    for start in range((n - 1) // TILE * TILE, -1, -TILE):
        stop = min(start + TILE, n)
        forwards = np.zeros((2, TILE))
        last = max(int(reach[stop - 1]), stop)
        for left in range(start, last, STRIPE):
            right = min(left + STRIPE, last)
            share = -(-(right - left) // (threads * TILE)) * TILE
            measure = partial(measure_stripe, x, length, vectors.rounding, start, stop)
            parts = [(first, min(first + share, right)) for first in range(left, right, share)]
            in_threads([partial(measure, *part, left, pairs, turned) for part in parts])
            sum_forwards(start, stop, left, right, turned, found, squared, distance, forwards)
            sum_backwards(
                *(start, stop, left, right, pairs, x, length, vectors.rounding),
                *(found, tables, running, spans),
            )
    return Tables(rows.base, rows.top, *tables, length, memory)


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
    """Squared distances of a tile's units with later units ``first … last``, both ways round."""
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
            running[4, first:right] += np.sqrt(flat[at : at + count])
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
