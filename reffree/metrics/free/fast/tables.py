"""Look-ups of one document for the compiled loop, only as wide as its hypotheses need.

For an edge ``c`` (0 … n) and a unit ``i``:

* ``squared[c, i]``, ``distance[c, i]``: the signed sum of ``|x_i - x_j|²``, ``|x_i - x_j|`` from
  unit ``i`` outwards to the edge;
* ``sums[c, i]``: over the pairs of the units ``c … i``, with lengths ``w`` and ``a = 1 - cos``, the
  sums of ``|x_i - x_j|²``, ``a``, ``(w_i + w_j) a`` and ``w_i w_j a``.

Rows are edges, so that a segment's units lie side by side. A row holds only the units that some
hypothesis has in a segment that touches the edge: with one hypothesis some three segments, with
very many the whole document. All are sums of non-negative terms, so nothing cancels.

Where such tables do not fit into memory, only the edges that some of the given hypotheses have get
rows (`sweep_tables`), and the pairs between are measured, added up and forgotten, a tile of units
at a time. One hypothesis takes some 200 bytes per unit, whatever its segments' lengths. Every sum
has the same order, so scores are the same to the last bit; the time is that of measuring all pairs
again for every group of hypotheses that fits.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def,call-arg"

from __future__ import annotations

import math
from functools import partial
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from reffree.data.masses import Masses
from reffree.metrics.free.fast.distances import (
    TILE,
    VECTORISED,
    U,
    Vectors,
    kept_apart,
    measure_pairs,
    measure_tiles,
    take,
)
from reffree.metrics.free.published import ZERO_CENTROID
from reffree.util.arrays import Floats, Integers
from reffree.util.compiling import njit
from reffree.util.parallel import available_threads, in_threads

THREADED = 1 << 15
"""Entries of a table from which threads are worth starting."""

NEAR = 1e-6
"""Angles (1 - cos) below this are measured directly: differences cancel."""

UNLIKE = 1e-3
"""Vectors whose lengths differ by more than this factor have their angle measured directly."""

STRIPE = 2048
"""Units whose pairs with a tile are held at a time; `TILE` divides."""


class TableBand(NamedTuple):
    """Which units every edge's row holds, and where."""

    low: Integers  # (n + 1,) first unit
    high: Integers  # (n + 1,) after the last unit
    base: Integers  # (n + 1,) entry [c, i] is at base[c] + i
    size: int  # entries in all


class Tables(NamedTuple):
    """Look-ups of one document."""

    base: Integers  # (n + 1,) entry [c, i] of the next two is at base[c] + i
    top: Integers  # (n + 1,) entry [c, i] of the sums is at top[c] + i, where c <= i
    squared: Floats  # (size,)
    distance: Floats  # (size,)
    sums: Floats  # (spans, 4)
    length: Floats  # (n,) the vectors' lengths
    memory: Floats  # what all of them are parts of

    @property
    def spread(self) -> Floats:
        """Variance, cosine and pairwise dispersion of the units ``c … i`` at ``[base[c] + i]``."""
        spread = np.zeros((len(self.squared), 3))
        n = len(self.length)
        for c in range(n):
            stop = c + int(self.top[c + 1] - self.top[c]) + 1
            sums = self.sums[self.top[c] + c : self.top[c] + stop].T.copy()
            squares, angles, cosines, products = sums[:, 1:]
            weight, count = np.cumsum(self.length[c:stop])[1:], np.arange(2.0, stop - c + 1)
            disperse(squares, angles, cosines, products, weight, count)
            into = spread[self.base[c] + c + 1 : self.base[c] + stop]
            into[:, 0], into[:, 1], into[:, 2] = squares, cosines, angles
        return spread


def band_of(masses: Masses, n_units: int, known: TableBand | None = None) -> TableBand:
    """Units that share a segment or neighbouring ones with each edge, and the ``known`` band's."""
    edges = np.arange(n_units + 1)
    low, high = np.maximum(edges - 1, 0), np.minimum(edges + 1, n_units)
    if known is not None:
        low, high = known.low.copy(), known.high.copy()
    widen(masses, low, high)
    base, size = places(low, high)
    return TableBand(low, high, base, size)


def table_bytes(band: TableBand) -> int:
    """Return what the tables take, with what they are made from but the vectors."""
    n_spans = int((band.high - np.arange(len(band.high))).sum())
    return 8 * (2 * band.size + 5 * n_spans)


def build_tables(vectors: Vectors, band: TableBand, threads: int | None = None) -> Tables:
    """Make the look-ups that the band says, on as many threads as processors unless told."""
    n, x, length, rounding = len(vectors), vectors.rows, vectors.length, vectors.rounding
    top, n_spans = places(np.arange(n + 1), band.high)
    sizes = (band.size, band.size, 4 * n_spans, n_spans)
    memory = take(sum(sizes))
    parts = pairwise(accumulate(sizes, initial=0))
    squared, distance, sums, pairs = (memory[a:b] for a, b in parts)
    sums = sums.reshape(n_spans, 4)
    where = (band.low, band.high, band.base, top)
    share = 1 if band.size < THREADED else threads or available_threads()
    measured = (share, x, length, rounding, where, pairs, squared)
    in_threads([partial(measure_pairs, first, *measured) for first in range(share)])
    to_edges = partial(sum_to_edges, pairs, where, squared, distance)
    over_spans = partial(sum_spans, pairs, x, length, rounding, where, sums)
    in_threads([to_edges, over_spans], threads=share)
    return Tables(band.base, top, squared, distance, sums, length, memory)


def places(low: Integers, high: Integers) -> tuple[Integers, int]:
    """Rows of different lengths in one array: what to add to an index, and all their length."""
    ends = np.cumsum(high - low)
    return ends - high, int(ends[-1])


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
def widen(masses, low, high):
    """Widen every edge's units to those of all segments beside it and of their neighbours."""
    n = len(low) - 1
    for h in range(masses.shape[0]):
        before, start, s = 0, 0, 0
        if masses[h, 0] == n:
            continue  # without a boundary nothing is looked up
        while start < n:
            stop = start + masses[h, s]
            after = stop + masses[h, s + 1] if stop < n else stop
            low[stop] = min(low[stop], before)
            high[start] = max(high[start], after)
            before, start, s = start, stop, s + 1
    # Both move right with the edge, so what is said of a segment's end holds for all of it.
    for c in range(n - 1, -1, -1):
        low[c] = min(low[c], low[c + 1])
    for c in range(1, n + 1):
        high[c] = max(high[c], high[c - 1])


@njit(cache=True, nogil=True, error_model="numpy")
def sum_to_edges(pairs, band, squared, distance):
    """Running sums from every unit to the edges after it, then to those before it."""
    low, high, base, top = band
    n = len(low) - 1
    for c in range(n):
        first = low[c + 1]
        before, after = squared[base[c] + first : base[c] + c], squared[base[c + 1] + first :]
        near, far = distance[base[c] + first : base[c] + c], distance[base[c + 1] + first :]
        for i in range(len(before)):
            pair = after[i]
            after[i] = before[i] + pair
            far[i] = near[i] + math.sqrt(pair)
        squared[base[c + 1] + c] = 0.0
        distance[base[c + 1] + c] = 0.0
    for a in range(n - 1, -1, -1):
        first, stop = a + 1, high[a]
        pair = pairs[top[a] + first : top[a] + stop]
        before, after = squared[base[a] + first :], squared[base[a + 1] + first :]
        far, near = distance[base[a] + first :], distance[base[a + 1] + first :]
        for i in range(len(pair)):
            before[i] = after[i] - pair[i]
            far[i] = near[i] - math.sqrt(pair[i])
        squared[base[a] + a] = 0.0
        distance[base[a] + a] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def sum_spans(pairs, x, length, rounding, band, sums):
    """Sums over the pairs of every span: see `Tables`."""
    _, high, _, top = band
    n = len(x)
    running = np.zeros((4, n))  # from each unit to the span's start
    turn = np.empty(n)
    for a in range(n - 1, -1, -1):
        first, count, at = a + 1, high[a] - a - 1, top[a] + a + 1
        if turns(pairs, U(at), length, U(a), U(first), U(count), turn):
            turn_again(x, length, rounding, a, first, turn[:count])
        extend(pairs, U(at), turn, length, U(a), U(first), U(count), running)
        for k in range(4):
            sums[at - 1, k] = 0.0
        _add_up(running, U(first), U(count), sums, U(at))


@njit(cache=True, nogil=True, error_model="numpy")
def turns(pairs, at, length, unit, first, count, turn):
    """``1 - cos`` of a unit with others, 1 without direction; whether to measure some directly."""
    is_hard = False
    own = length[unit]
    for i in range(count):
        other = length[first + i]
        both, difference = own * other, own - other
        angle = (pairs[at + i] - difference * difference) / (2.0 * both if both > 0.0 else 1.0)
        angle = angle if both > 0.0 else 1.0
        turn[i] = angle
        shorter, longer = (own, other) if own < other else (other, own)
        is_hard |= angle < NEAR
        is_hard |= shorter < UNLIKE * longer
    return is_hard


@njit(cache=True, nogil=True, error_model="numpy")
def turn_again(x, length, rounding, unit, first, turn):
    """Measure small angles, and those of vectors of unlike lengths."""
    own, length_of = length[unit], length[first : first + len(turn)]
    for i in range(len(turn)):
        shorter, longer = min(own, length_of[i]), max(own, length_of[i])
        if shorter > 0.0 and (turn[i] < NEAR or shorter < UNLIKE * longer):
            value = _angle(x[unit], x[first + i], 1.0 / own, 1.0 / length_of[i])
            turn[i] = value if value > rounding else 0.0


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _angle(a, b, scale_a, scale_b):
    """Half the squared distance of two vectors brought to length 1."""
    kept_apart()
    total = 0.0
    for k in range(len(a)):
        difference = a[k] * scale_a - b[k] * scale_b
        total += difference * difference
    return total / 2.0


@njit(cache=True, nogil=True, error_model="numpy")
def extend(pairs, at, turn, length, unit, first, count, running):
    """Add a unit to the sums of those after it."""
    own = length[unit]
    squared, angle, weighted, product = running[0], running[1], running[2], running[3]
    for i in range(count):
        other = length[first + i]
        squared[first + i] += pairs[at + i]
        angle[first + i] += turn[i]
        weighted[first + i] += (own + other) * turn[i]
        product[first + i] += own * other * turn[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_up(running, first, count, sums, at):
    """Sums over spans, from what each further unit adds."""
    squared, angle, weighted, product = running[0], running[1], running[2], running[3]
    total = (0.0, 0.0, 0.0, 0.0)
    for i in range(count):
        k = first + i
        squares, angles = total[0] + squared[k], total[1] + angle[k]
        total = (squares, angles, total[2] + weighted[k], total[3] + product[k])
        into = sums[at + i]
        into[0], into[1], into[2], into[3] = total


@njit(cache=True, nogil=True, error_model="numpy")
def disperse(squared, angle, weighted, product, weight, count):
    """Sums over the pairs of spans of ``count`` units become dispersions, in place.

    Variances, mean angles and, in the place of ``weighted``, cosine dispersions: see
    `ArpCos.dispersion`. Short loops without branches, because those vectorise.
    """
    for i in range(len(count)):
        m, total = count[i], weight[i]
        share, inverse = 1.0 / m, 1.0 / (total if total > 0.0 else 1.0)
        squared[i] *= share * share
        angle[i] *= 2.0 * share / (m - 1.0 if m > 1.0 else 1.0)
        weighted[i] *= inverse * share
        product[i] *= 2.0 * inverse * inverse
    for i in range(len(count)):
        alpha, beta = weighted[i], product[i]
        rest = 1.0 - beta
        centroid = math.sqrt(rest if rest > ZERO_CENTROID else ZERO_CENTROID)
        value = (alpha * (1.0 + centroid) - beta) / (centroid * (1.0 + centroid))
        value = value if value > 0.0 else 0.0
        value = value if rest > ZERO_CENTROID else 1.0
        weighted[i] = value if weight[i] > 0.0 else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def fill_edges(masses, edges):
    """Write where the segments of a row of masses end, behind a first 0; return their number."""
    n_segments = 0
    while n_segments < len(masses) and masses[n_segments] > 0:
        edges[n_segments + 1] = edges[n_segments] + masses[n_segments]
        n_segments += 1
    return n_segments


@njit(cache=True, nogil=True, error_model="numpy")
def find_rows(masses, low, high, after):
    """Find what is looked up: units ``low … high`` of edges, spans from units to ``after``.

    Rows start out empty: ``low`` and ``high`` 0, ``after`` the unit itself.
    """
    n = len(low) - 1
    edges = np.zeros(masses.shape[1] + 1, dtype=np.int64)
    for h in range(masses.shape[0]):
        n_segments = fill_edges(masses[h], edges)
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
