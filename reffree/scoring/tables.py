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


def table_bytes(band: Band) -> int:
    """Return what the tables take, with the squared distances they are made from."""
    return 8 * 6 * band.size


def build_tables(vectors: Floats, rounding: float, band: Band) -> Tables:
    """Make the look-ups.

    Args:
        vectors: (n, d), contiguous, largest component about 1.
        rounding: squared distance, relative to squared lengths, that rounding alone can make.
        band: what is needed.
    """
    norm, own = np.empty(len(vectors)), np.empty(len(vectors))
    centred = np.empty_like(vectors)
    _centre(vectors, centred, norm, own)
    size = band.size
    pairs = np.empty(size)
    for start in range(0, len(vectors), TILE):
        stop = min(start + TILE, len(vectors))
        columns = slice(start, int(band.high[stop - 1]))
        products = centred[start:stop] @ centred[columns].T
        _measure(products, vectors, norm, own, rounding, start, *band[:3], pairs)
    squared, distance, spread = np.empty(size), np.empty(size), np.empty((size, 3))
    below = (pairs, *band[:3], squared, distance)
    above = (pairs, vectors, norm, rounding, *band[:3], squared, distance, spread)
    if size < THREADED:
        _sum_below(*below)
        _sum_above(*above)
    else:
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(_sum_below, *below)
            _sum_above(*above)
            other.result()
    return Tables(band.base, squared, distance, spread)


@njit(cache=True, nogil=True)
def _reach(masses, first, last):
    """Widen every unit's reach: from the previous segment's start to the next one's end."""
    for h in range(masses.shape[0]):
        before, start = 0, 0
        s = 0
        while s < masses.shape[1] and masses[h, s] > 0:
            stop = start + masses[h, s]
            after = stop
            if s + 1 < masses.shape[1]:
                after += masses[h, s + 1]
            for i in range(start, stop):
                first[i] = min(first[i], before)
                last[i] = max(last[i], after)
            before, start = start, stop
            s += 1


@njit(cache=True, nogil=True, fastmath=VECTORISED)
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


@njit(cache=True, nogil=True, fastmath=VECTORISED)
def _measure(products, x, norm, own, rounding, start, low, high, base, pairs):
    """Squared distances of a tile: near pairs directly, 0 where rounding makes them."""
    row = np.empty(products.shape[1])
    for r in range(products.shape[0]):
        i = start + r
        at, width = base[i] + start, high[i] - start
        pairs[at + r] = 0.0
        is_near = False
        for j in range(r + 1, width):
            scale = own[i] + own[start + j]
            row[j] = scale - 2.0 * products[r, j]
            is_near |= row[j] < NEAR * scale
        if is_near:
            for j in range(r + 1, width):
                if row[j] < NEAR * (own[i] + own[start + j]):
                    row[j] = 0.0
                    for k in range(x.shape[1]):
                        difference = x[i, k] - x[start + j, k]
                        row[j] += difference * difference
        squared_norm = norm[i] * norm[i]
        for j in range(r + 1, width):
            c = start + j
            noise = rounding * (squared_norm + norm[c] * norm[c])
            row[j] = row[j] if row[j] > noise else 0.0
            pairs[at + j] = row[j]
        for j in range(r + 1, width):
            pairs[base[start + j] + i] = row[j]


@njit(cache=True, nogil=True, fastmath=VECTORISED)
def _sum_below(pairs, low, high, base, squared, distance):
    """Sums from every unit to the edges after it."""
    n = len(base) - 1
    running = np.zeros(n)
    running_distance = np.zeros(n)
    for c in range(n):
        at, to = base[c], base[c + 1]
        for i in range(low[c + 1], c + 1):
            running[i] += pairs[at + i]
            running_distance[i] += math.sqrt(pairs[at + i])
            squared[to + i] = running[i]
            distance[to + i] = running_distance[i]


@njit(cache=True, nogil=True, fastmath=VECTORISED)
def _sum_above(pairs, x, norm, rounding, low, high, base, squared, distance, spread):
    """Sums from every unit to the edges before it, and dispersions of all spans."""
    n = len(x)
    running = np.zeros((5, n))  # squared, distance, angle, both lengths · angle, their product · it
    within = np.empty((5, n))  # over all pairs of a span; in the place of distance, the lengths
    turn = np.empty(n)
    shares = np.empty((n, 2))  # by the number of units: 1 / m², 1 / pairs
    for i in range(1, n):
        shares[i, 0] = 1.0 / ((i + 1.0) * (i + 1.0))
        shares[i, 1] = 2.0 / ((i + 1.0) * i)
    for a in range(n - 1, -1, -1):
        at, stop = base[a], high[a]
        squared[at + a] = 0.0
        distance[at + a] = 0.0
        spread[at + a] = 0.0
        _turns(pairs, x, norm, rounding, a, stop, at, turn)
        for i in range(a + 1, stop):
            value = pairs[at + i]
            running[0, i] += value
            running[1, i] += math.sqrt(value)
            running[2, i] += turn[i]
            running[3, i] += (norm[a] + norm[i]) * turn[i]
            running[4, i] += norm[a] * norm[i] * turn[i]
            squared[at + i] = -running[0, i]
            distance[at + i] = -running[1, i]
        total, weight, angle, weighted, product = 0.0, norm[a], 0.0, 0.0, 0.0
        for i in range(a + 1, stop):
            total += running[0, i]
            weight += norm[i]
            angle += running[2, i]
            weighted += running[3, i]
            product += running[4, i]
            within[0, i] = total
            within[1, i] = weight
            within[2, i] = angle
            within[3, i] = weighted
            within[4, i] = product
        for i in range(a + 1, stop):
            m = i + 1.0 - a
            within[0, i] *= shares[i - a, 0]
            within[2, i] *= shares[i - a, 1]
            within[1, i] = _cosine_dispersion(m, within[1, i], within[3, i], within[4, i])
        for i in range(a + 1, stop):
            spread[at + i, 0] = within[0, i]
            spread[at + i, 1] = within[1, i]
            spread[at + i, 2] = within[2, i]


@njit(cache=True, nogil=True, fastmath=VECTORISED)
def _turns(pairs, x, norm, rounding, a, stop, at, turn):
    """``1 - cos`` of unit ``a`` with the units after it; 1 where one has no direction."""
    is_hard = False
    for i in range(a + 1, stop):
        both = norm[a] * norm[i]
        difference = norm[a] - norm[i]
        turn[i] = (pairs[at + i] - difference * difference) / (2.0 * both) if both > 0.0 else 1.0
        is_hard |= turn[i] < NEAR
        is_hard |= min(norm[a], norm[i]) < UNLIKE * max(norm[a], norm[i])
    if is_hard:
        for i in range(a + 1, stop):
            shorter, longer = min(norm[a], norm[i]), max(norm[a], norm[i])
            if shorter > 0.0 and (turn[i] < NEAR or shorter < UNLIKE * longer):
                turn[i] = 0.0
                for k in range(x.shape[1]):
                    difference = x[a, k] / norm[a] - x[i, k] / norm[i]
                    turn[i] += difference * difference / 2.0
                if turn[i] <= rounding:
                    turn[i] = 0.0


@njit(cache=True, nogil=True, inline="always")
def _cosine_dispersion(m, weight, weighted, product):
    """See `reffree.scoring.arp.ArpCos.dispersion`; without branches, so that it vectorises."""
    total = weight if weight > 0.0 else 1.0
    beta = 2.0 * product / (total * total)
    is_directed = (weight > 0.0) & (1.0 - beta > ZERO_CENTROID)
    centroid = math.sqrt(1.0 - beta if is_directed else 1.0)
    alpha = weighted / (m * total)
    dispersion = max(0.0, (alpha - beta / (1.0 + centroid)) / centroid)
    return dispersion if is_directed else 1.0
