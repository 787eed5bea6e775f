"""Look-ups of one document for the compiled loop, only as wide as its hypotheses need.

For an edge ``c`` (0 … n) and a unit ``i``:

* ``squared[c, i]``, ``distance[c, i]``: the signed sum of ``|x_i - x_j|²``, ``|x_i - x_j|`` from
  unit ``i`` outwards to the edge;
* ``spread[c, i]``: the variance, cosine and pairwise dispersions of the units ``c … i``.

Rows are edges, so that a segment's units lie side by side. A row holds only the units that some
hypothesis has in a segment that touches the edge: with one hypothesis some three segments, with
very many the whole document. All are sums of non-negative terms, so nothing cancels.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reffree.masses import Masses
from reffree.scoring.arp import ZERO_CENTROID
from reffree.scoring.pairs import NEAR

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

VECTORISED = {"reassoc", "contract", "nsz"}
"""Sums in any order; everything else as written."""

TILE = 64
"""Units whose dot products are taken together."""

THREADED = 1 << 15
"""Entries of a table from which its two halves are worth two threads."""

UNLIKE = 1e-3
"""Vectors whose lengths differ by more than this factor have their angle measured directly."""


class Band(NamedTuple):
    """Which units every edge's row holds, and where."""

    low: Integers  # (n + 1,) first unit
    high: Integers  # (n + 1,) after the last unit
    base: Integers  # (n + 1,) entry [c, i] is at base[c] + i
    size: int  # entries in all


class Tables(NamedTuple):
    """Look-ups of one document."""

    base: Integers
    squared: Floats  # (size,)
    distance: Floats  # (size,)
    spread: Floats  # (size, 3)


def band_of(masses: Masses, n_units: int, known: Band | None = None) -> Band:
    """Find the units that share a segment or neighbouring ones with each edge.

    Never narrower than the ``known`` band.
    """
    first, last = np.arange(n_units), np.arange(1, n_units + 1)
    _reach(masses, first, last)
    edges = np.arange(n_units + 1)
    # Both ends of a unit's reach move right with the unit.
    low = np.searchsorted(last, edges, side="left")
    high = np.searchsorted(first, edges, side="right")
    if known is not None:
        low, high = np.minimum(low, known.low), np.maximum(high, known.high)
    start = np.concatenate([[0], np.cumsum(high - low)])
    return Band(low, high, start[:-1] - low, int(start[-1]))


def table_bytes(band: Band, n_components: int) -> int:
    """Return what the tables take, with what they are made from."""
    return 8 * (6 * band.size + n_components + TILE * len(band.low))


def build_tables(vectors: Floats, rounding: float, band: Band) -> Tables:
    """Make the look-ups.

    Args:
        vectors: (n, d), contiguous, largest component about 1.
        rounding: squared distance, relative to squared lengths, that rounding alone can make.
        band: what is needed.
    """
    low, high, base, size = band
    n, d = vectors.shape
    # One allocation: large arrays get large pages, and far fewer faults.
    whole = np.empty(6 * size + n * d + TILE * n)
    squared, distance = whole[:size], whole[size : 2 * size]
    spread = whole[2 * size : 5 * size].reshape(size, 3)
    pairs, scratch = whole[5 * size : 6 * size], whole[6 * size :]
    centred, scratch = scratch[: n * d].reshape(n, d), scratch[n * d :]
    norm, own = np.empty(n), np.empty(n)
    _centre(vectors, centred, norm, own)
    for start in range(0, n, TILE):
        stop = min(start + TILE, n)
        others = centred[start : int(high[stop - 1])]
        products = scratch[: (stop - start) * len(others)].reshape(stop - start, len(others))
        np.matmul(centred[start:stop], others.T, out=products)
        _measure(products, vectors, norm, own, rounding, start, high, base, pairs)
    below = (pairs, low, base, squared, distance)
    above = (pairs, vectors, norm, rounding, high, base, squared, distance, spread)
    if size < THREADED:
        _sum_below(*below)
        _sum_above(*above)
    else:
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(_sum_below, *below)
            _sum_above(*above)
            other.result()
    return Tables(base, squared, distance, spread)


@njit(cache=True, nogil=True, error_model="numpy")
def _reach(masses, first, last):
    """Widen every unit's reach: from the previous segment's start to the next one's end."""
    n = len(first)
    for h in range(masses.shape[0]):
        before, start, s = 0, 0, 0
        while start < n:
            stop = start + masses[h, s]
            after = stop + masses[h, s + 1] if stop < n else stop
            first[stop - 1] = min(first[stop - 1], before)
            last[start] = max(last[start], after)
            before, start, s = start, stop, s + 1
    # Both move right with the unit, so what is said of a segment's end holds for all of it.
    for i in range(n - 2, -1, -1):
        first[i] = min(first[i], first[i + 1])
    for i in range(1, n):
        last[i] = max(last[i], last[i - 1])


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _centre(x, centred, norm, own):
    """Subtract the mean; lengths of the vectors as they are, squared lengths of what remains."""
    n, d = x.shape
    mean = np.zeros(d)
    for i in range(n):
        total = 0.0
        for k in range(d):
            mean[k] += x[i, k]
            total += x[i, k] * x[i, k]
        norm[i] = math.sqrt(total)
    mean /= n
    for i in range(n):
        total = 0.0
        for k in range(d):
            centred[i, k] = x[i, k] - mean[k]
            total += centred[i, k] * centred[i, k]
        own[i] = total


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _measure(products, x, norm, own, rounding, start, high, base, pairs):
    """Squared distances of a tile: near pairs directly, 0 where rounding makes them."""
    for r in range(products.shape[0]):
        i = start + r
        first, stop = i + 1, high[i]
        pairs[base[i] + i] = 0.0
        # Slices, because loops from 0 to a length vectorise.
        row = pairs[base[i] + first : base[i] + stop]
        product, own_of, norm_of = products[r, r + 1 :], own[first:stop], norm[first:stop]
        is_near = False
        for j in range(len(row)):
            scale = own[i] + own_of[j]
            row[j] = scale - 2.0 * product[j]
            is_near |= row[j] < NEAR * scale
        if is_near:
            for j in range(len(row)):
                if row[j] < NEAR * (own[i] + own_of[j]):
                    row[j] = _squared_distance(x[i], x[first + j])
        length = norm[i] * norm[i]
        for j in range(len(row)):
            noise = rounding * (length + norm_of[j] * norm_of[j])
            row[j] = row[j] if row[j] > noise else 0.0
        for j in range(len(row)):
            pairs[base[first + j] + i] = row[j]


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _squared_distance(a, b):
    total = 0.0
    for k in range(len(a)):
        difference = a[k] - b[k]
        total += difference * difference
    return total


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _sum_below(pairs, low, base, squared, distance):
    """Sums from every unit to the edges after it."""
    n = len(base) - 1
    running = np.zeros((2, n))
    for c in range(n):
        first, stop = low[c + 1], c + 1
        pair = pairs[base[c] + first : base[c] + stop]
        to_squared = squared[base[c + 1] + first : base[c + 1] + stop]
        to_distance = distance[base[c + 1] + first : base[c + 1] + stop]
        total, total_distance = running[0, first:stop], running[1, first:stop]
        for i in range(len(pair)):
            total[i] += pair[i]
            total_distance[i] += math.sqrt(pair[i])
            to_squared[i] = total[i]
            to_distance[i] = total_distance[i]


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _sum_above(pairs, x, norm, rounding, high, base, squared, distance, spread):
    """Sums from every unit to the edges before it, and dispersions of all spans."""
    n = len(x)
    running = np.zeros((5, n))  # squared, distance, angle, both lengths · angle, their product · it
    # The same over all pairs of a span, but in the place of distances its units' lengths.
    within = (np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n))
    turn = np.empty(n)
    for a in range(n - 1, -1, -1):
        at, first, stop = base[a], a + 1, high[a]
        squared[at + a] = 0.0
        distance[at + a] = 0.0
        spread[at + a] = 0.0
        pair, turned, length = pairs[at + first : at + stop], turn[first:stop], norm[first:stop]
        _turns(pair, x, norm, rounding, a, turned)
        total, to_units = running[0, first:stop], running[1, first:stop]
        angle, weighted, product = (
            running[2, first:stop],
            running[3, first:stop],
            running[4, first:stop],
        )
        to_squared = squared[at + first : at + stop]
        to_distance = distance[at + first : at + stop]
        for i in range(len(pair)):
            total[i] += pair[i]
            to_units[i] += math.sqrt(pair[i])
            angle[i] += turned[i]
            weighted[i] += (norm[a] + length[i]) * turned[i]
            product[i] += norm[a] * length[i] * turned[i]
            to_squared[i] = -total[i]
            to_distance[i] = -to_units[i]
        into = spread[at + first : at + stop]
        _disperse(total, angle, weighted, product, length, norm[a], within, into)


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _disperse(total, angle, weighted, product, length, own_length, within, spread):
    """Dispersions of the spans that start at one unit, from what each further unit adds."""
    squares, angles, both, products, weights = within
    running = (0.0, 0.0, 0.0, 0.0, own_length)
    for i in range(len(length)):
        running = (
            running[0] + total[i],
            running[1] + angle[i],
            running[2] + weighted[i],
            running[3] + product[i],
            running[4] + length[i],
        )
        squares[i], angles[i], both[i], products[i], weights[i] = running
    _cosine_dispersions(weights, both, products, len(length))
    for i in range(len(length)):
        m = i + 2.0
        squares[i] /= m * m
        angles[i] /= m * (m - 1.0) / 2.0
    for i in range(len(length)):
        spread[i, 0] = squares[i]
        spread[i, 1] = both[i]
        spread[i, 2] = angles[i]


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _turns(pair, x, norm, rounding, a, turn):
    """``1 - cos`` of unit ``a`` with the units after it; 1 where one has no direction."""
    is_hard = False
    own, length = norm[a], norm[a + 1 : a + 1 + len(pair)]
    for i in range(len(pair)):
        both, difference = own * length[i], own - length[i]
        angle = (pair[i] - difference * difference) / (2.0 * both if both > 0.0 else 1.0)
        turn[i] = angle if both > 0.0 else 1.0
        is_hard |= turn[i] < NEAR
        is_hard |= min(own, length[i]) < UNLIKE * max(own, length[i])
    if is_hard:
        for i in range(len(pair)):
            shorter, longer = min(own, length[i]), max(own, length[i])
            if shorter > 0.0 and (turn[i] < NEAR or shorter < UNLIKE * longer):
                turn[i] = _squared_distance(x[a] / own, x[a + 1 + i] / length[i]) / 2.0
                if turn[i] <= rounding:
                    turn[i] = 0.0


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _cosine_dispersions(weight, weighted, product, count):
    """See `reffree.scoring.arp.ArpCos.dispersion`; ``weighted`` becomes the dispersion.

    Several short loops without branches, because those vectorise.
    """
    for i in range(count):
        total = weight[i] if weight[i] > 0.0 else 1.0
        weighted[i] /= total * (i + 2.0)
        product[i] *= 2.0 / (total * total)
    for i in range(count):
        beta, alpha = product[i], weighted[i]
        centroid = math.sqrt(max(1.0 - beta, ZERO_CENTROID))
        weighted[i] = max(0.0, (alpha - beta / (1.0 + centroid)) / centroid)
    for i in range(count):
        value = weighted[i] if 1.0 - product[i] > ZERO_CENTROID else 1.0
        weighted[i] = value if weight[i] > 0.0 else 1.0
