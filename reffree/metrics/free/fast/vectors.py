"""A document's vectors as the compiled loops take them, in memory that the next document reuses.

Fresh memory costs as much as what is put in it (one hypothesis of 500 units takes 1.9 ms instead of
0.6): the system clears it page by page when it is first written to.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Lock

import numpy as np
from llvmlite import binding  # type: ignore[import-untyped]

from reffree.metrics.free.inputs import MOST_EXPONENT, Given, rounding_of
from reffree.util.arrays import Floats
from reffree.util.compiling import njit

FEATURES = binding.get_host_cpu_features()

LANES = 8 if FEATURES.get("avx512f") else 4 if FEATURES.get("avx") else 2
"""Numbers in a register."""

VECTORISED = {"reassoc", "contract", "nsz"}
"""Sums in any order; everything else as written."""

KEPT = 2
"""Arrays kept at most: one document's vectors and tables."""

KEPT_BYTES = 1 << 25
"""Bytes of an array at most that is kept."""

spare: list[Floats] = []
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


SHORT = 2.0**-100
"""Vectors all shorter than this, or one longer than its inverse: squares may vanish or overflow."""


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
