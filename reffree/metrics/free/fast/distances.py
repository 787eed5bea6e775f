"""A document's vectors as the compiled loops take them, and loops that measure their distances.

Every sum has one order, which depends on the document alone: not on the hypotheses that are scored
together, not on threads, not on memory. So loops whose elements may be done several at a time or
singly, as it happens, round every operation as written; only sums over the components of a vector
and over the units of a segment, which are always done whole, are in the order that is fastest.

Dot products are taken of four vectors with four others at once, all sums in registers. Compilers
use half of a wide register for this unless told; told, they are as fast as a linear algebra
library, whose last bits depend on threads and on what else is multiplied. Here a product has one
order of sums, which depends on the vectors' size and the processor alone.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg"

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Lock

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from reffree.metrics.free.inputs import MOST_EXPONENT, Given, rounding_of
from reffree.util.arrays import Floats
from reffree.util.compiling import njit

FEATURES = binding.get_host_cpu_features()

LANES = 8 if FEATURES.get("avx512f") else 4 if FEATURES.get("avx") else 2
"""Numbers in a register."""

VECTORISED = {"reassoc", "contract", "nsz"}
"""Sums in any order; everything else as written."""

BLOCK = 4
"""Vectors on either side of a block of dot products: each number read is used so many times."""

TILE = 64
"""Units by units whose dot products are taken together: both stay in the cache; `BLOCK` divides."""

PANEL = 512
"""Dimensions at most whose products are added up before the next ones': what the cache holds."""

NEAR = 1e-4
"""Pairs nearer than this (squared, relative) are measured directly: dot products cancel."""

U = np.uint64
"""Indices without a sign: loops over several parts of one array vectorise."""

SHORT = 2.0**-100
"""Vectors all shorter than this, or one longer than its inverse: squares may vanish or overflow."""

KEPT = 2
"""Arrays kept at most: one document's vectors and tables."""

KEPT_BYTES = 1 << 25
"""Bytes of an array at most that is kept."""

spare: list[Floats] = []
"""Memory that the next document reuses: fresh memory costs as much as what is put in it (one
hypothesis of 500 units takes 1.9 ms instead of 0.6), as the system clears it page by page."""
_one_at_a_time = Lock()


def take(size: int) -> Floats:
    """Return an array of at least ``size`` numbers, whatever they are."""
    with _one_at_a_time:
        fitting = [k for k, memory in enumerate(spare) if len(memory) >= size]
        if fitting:
            return spare.pop(min(fitting, key=lambda k: len(spare[k])))
    return np.empty(size)


def give_back(memory: Floats) -> None:
    """Keep an array that nobody reads any more; of too many, the largest."""
    if memory.nbytes <= KEPT_BYTES:
        with _one_at_a_time:
            spare.append(memory)
            if len(spare) > KEPT:
                spare.pop(min(range(len(spare)), key=lambda k: len(spare[k])))


@dataclass(frozen=True, slots=True)
class Vectors:
    """Float64 rows padded with zeros to whole registers, measured."""

    rows: Floats  # (n, width) aligned
    length: Floats  # (n,) of each vector
    rounding: float  # squared distance, relative to squared lengths, that rounding alone can make
    exponent: int  # the rows are the vectors given, divided by 2 to this power
    memory: Floats  # what the rows are part of

    @classmethod
    def of(cls, document: Given) -> Vectors:
        """Take the vectors to float64; the caller's are not touched."""
        given = np.ascontiguousarray(document.on_host(), dtype=np.float64)
        n, d = given.shape
        # Rows that start where registers' worth of memory does are read twice as fast.
        width = -(-d // LANES) * LANES
        memory = take(n * width + LANES)
        start = -(memory.__array_interface__["data"][0] // memory.itemsize) % LANES
        rows = memory[start : start + n * width].reshape(n, width)
        length, exponent = np.empty(n), 0
        longest = take_vectors(given, rows, length)
        if not SHORT < longest < 1 / SHORT:
            # Scores do not depend on scale: by a power of two, nothing overflows, no bit is lost.
            found = math.frexp(float(np.abs(given).max()))[1]
            exponent = max(-MOST_EXPONENT, min(found, MOST_EXPONENT))
            take_vectors(np.ldexp(given, -exponent), rows, length)
        return cls(rows, length, rounding_of(document.dtype), exponent, memory)

    def __len__(self) -> int:
        return len(self.rows)

    def discard(self) -> None:
        """Give the memory to the next document; the rows must not be read any more."""
        give_back(self.memory)


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


@intrinsic
def kept_apart(typing_context):
    """Called in a function, keep it out of those that call it.

    A sum in any order is then compiled once, to one order, whoever asks for it.
    """

    def mark(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), mark


@intrinsic
def multiply_blocks(typing_context, x, rows, columns, width, products):
    """Fill ``products`` (16,) from vectors that start at ``rows`` and ``columns`` of ``x``.

    ``width`` numbers of each, a multiple of `LANES`; fastest at addresses that registers divide.
    """
    signature = types.void(x, rows, columns, width, products)
    return signature, _multiply_blocks


def _multiply_blocks(context, builder, signature, arguments):
    numbers, rows, columns, width, products = arguments
    start = context.make_array(signature.args[0])(context, builder, numbers).data
    into = context.make_array(signature.args[4])(context, builder, products).data
    index, number = ir.IntType(64), ir.DoubleType()
    register = ir.VectorType(number, LANES)
    pairs = [(r, c) for r in range(BLOCK) for c in range(BLOCK)]
    sums = [cgutils.alloca_once_value(builder, ir.Constant(register, None)) for _ in pairs]

    def load(places, which, k):
        place = builder.add(builder.extract_value(places, which), k)
        loaded = builder.load(builder.bitcast(builder.gep(start, [place]), register.as_pointer()))
        loaded.align = 8
        return loaded

    # In one step where the processor has it, always or never.
    fused = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(register, [register] * 3), f"llvm.fmuladd.v{LANES}f64"
    )
    zero, step = ir.Constant(index, 0), ir.Constant(index, LANES)
    with cgutils.for_range_slice(builder, zero, width, step) as (k, _):
        left = [load(rows, which, k) for which in range(BLOCK)]
        right = [load(columns, which, k) for which in range(BLOCK)]
        for total, (r, c) in zip(sums, pairs, strict=True):
            builder.store(builder.call(fused, [left[r], right[c], builder.load(total)]), total)
    for place, total in enumerate(sums):
        result = _added_up(builder, builder.load(total))
        builder.store(result, builder.gep(into, [ir.Constant(index, place)]))
    return context.get_dummy_value()


def _added_up(builder, total):
    """Sum of a register's numbers, halves onto each other."""
    lanes = LANES
    while lanes > 1:
        lanes //= 2
        index = ir.VectorType(ir.IntType(32), lanes)
        low, high = (
            builder.shuffle_vector(
                total, total, ir.Constant(index, list(range(first, first + lanes)))
            )
            for first in (0, lanes)
        )
        total = builder.fadd(low, high)
    return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))


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
