"""Compiled loops that measure a document's vectors and their pairs.

Every sum has one order, which depends on the document alone: not on the hypotheses that are scored
together, not on threads, not on memory. So loops whose elements may be done several at a time or
singly, as it happens, round every operation as written; only sums over the components of a vector
and over the units of a segment, which are always done whole, are in the order that is fastest.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def,call-arg"

from __future__ import annotations

import math

import numpy as np

from reffree.compiling import njit
from reffree.scoring.dots_kernel import BLOCK, kept_apart, multiply_blocks

VECTORISED = {"reassoc", "contract", "nsz"}
"""Sums in any order; everything else as written."""

TILE = 64
"""Units by units whose dot products are taken together: both stay in the cache; `BLOCK` divides."""

PANEL = 512
"""Dimensions at most whose products are added up before the next ones': what the cache holds."""

NEAR = 1e-4
"""Pairs nearer than this (squared, relative) are measured directly: dot products cancel."""

U = np.uint64
"""Indices without a sign: loops over several parts of one array vectorise."""


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def take_vectors(given, x, length):
    """Copy vectors into rows padded with zeros, and measure them; returns the longest length."""
    longest = 0.0
    for i in range(len(x)):
        row, into, total = given[i], x[i], 0.0
        for k in range(len(row)):
            into[k] = row[k]
            total += row[k] * row[k]
        for k in range(len(row), len(into)):
            into[k] = 0.0
        length[i] = math.sqrt(total)
        longest = max(longest, length[i])
    return longest


@njit(cache=True, nogil=True, error_model="numpy")
def measure_pairs(first_tile, step, x, length, rounding, band, pairs, squared):
    """Squared distances of every ``step``-th tile row of units with the units after them.

    Into ``pairs[i, j]`` and, for the edge after ``j``, into ``squared[j + 1, i]``.
    """
    low, high, base, top = band
    n = len(x)
    products = np.empty((TILE, TILE))
    for start in range(first_tile * TILE, n, step * TILE):
        stop = min(start + TILE, n)
        for left in range(start, high[stop - 1], TILE):
            right = min(left + TILE, high[stop - 1])
            measure_tiles(x, length, rounding, start, stop, left, right, high, products)
            for i in range(start, stop):
                for j in range(max(left, i + 1), min(right, high[i])):
                    pairs[top[i] + j] = products[i - start, j - left]
            for j in range(left, right):
                at = base[j + 1]
                for i in range(max(start, low[j + 1]), min(stop, j)):
                    squared[at + i] = products[i - start, j - left]


@njit(cache=True, nogil=True, error_model="numpy")
def measure_square(first_tile, step, x, length, rounding, squared):
    """Squared distances of every ``step``-th tile row of units with all units after them.

    Into ``squared[i, j]`` and ``squared[j, i]``.
    """
    n = len(x)
    everywhere = np.full(n, n)
    products = np.empty((TILE, TILE))
    for start in range(first_tile * TILE, n, step * TILE):
        stop = min(start + TILE, n)
        for left in range(start, n, TILE):
            right = min(left + TILE, n)
            measure_tiles(x, length, rounding, start, stop, left, right, everywhere, products)
            for i in range(start, stop):
                squared[i, i] = 0.0
                for j in range(max(left, i + 1), right):
                    squared[i, j] = squared[j, i] = products[i - start, j - left]


@njit(cache=True, nogil=True, error_model="numpy")
def measure_tiles(x, length, rounding, start, stop, left, right, high, products):
    """Squared distances of the units of one tile with those of another after them."""
    _multiply(x, start, stop, left, right, high, products)
    for i in range(start, stop):
        begin, end = max(left, i + 1), min(right, high[i])
        if begin < end:
            _settle(products[i - start, begin - left : end - left], x, length, rounding, i, begin)


@njit(cache=True, nogil=True, error_model="numpy")
def _multiply(x, start, stop, left, right, high, products):
    """Dot products of two tiles, where they are needed, some dimensions at a time."""
    n, d = x.shape
    flat, block = x.reshape(x.size), np.empty(BLOCK * BLOCK)
    for panel in range(0, d, PANEL):
        width = min(PANEL, d - panel)
        for i in range(start, stop, BLOCK):
            rows = _places(i, n, d, panel)
            for j in range(max(left, i), min(right, high[min(i + BLOCK, stop) - 1]), BLOCK):
                multiply_blocks(flat, rows, _places(j, n, d, panel), width, block)
                for r in range(BLOCK):
                    into = products[i - start + r, j - left : j - left + BLOCK]
                    for c in range(BLOCK):
                        before = 0.0 if panel == 0 else into[c]
                        into[c] = before + block[r * BLOCK + c]


@njit(cache=True, nogil=True, error_model="numpy")
def _places(i, n, d, panel):
    """Where a block's vectors start; beyond the last unit, that of the last."""
    last = n - 1
    return (
        i * d + panel,
        min(i + 1, last) * d + panel,
        min(i + 2, last) * d + panel,
        min(i + 3, last) * d + panel,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(product, x, length, rounding, i, first):
    """Dot products become squared distances: near pairs directly, 0 where rounding makes them."""
    own, length_of = length[i] * length[i], length[first : first + len(product)]
    is_near = False
    for j in range(len(product)):
        scale = own + length_of[j] * length_of[j]
        value = scale - 2.0 * product[j]
        is_near |= value < NEAR * scale
        product[j] = value if value > rounding * scale else 0.0
    if is_near:
        for j in range(len(product)):
            scale = own + length_of[j] * length_of[j]
            if product[j] < NEAR * scale:
                value = squared_distance(x[i], x[first + j])
                product[j] = value if value > rounding * scale else 0.0


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def squared_distance(a, b):
    """Sum of squared differences."""
    kept_apart()
    total = 0.0
    for k in range(len(a)):
        difference = a[k] - b[k]
        total += difference * difference
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def sum_to_mean(x):
    """Squared distances of all vectors to their mean, summed."""
    mean = np.zeros(x.shape[1])
    for i in range(len(x)):
        mean += x[i]
    mean /= len(x)
    total = 0.0
    for i in range(len(x)):
        total += squared_distance(x[i], mean)
    return total
