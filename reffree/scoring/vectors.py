"""A document's vectors as the compiled loops take them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reffree.arrays import Floats
from reffree.scoring.dots_kernel import LANES
from reffree.scoring.pairs import rounding_of
from reffree.scoring.pairs_kernel import take_vectors
from reffree.scoring.workspace import give_back, take

SHORT = 2.0**-100
"""Vectors all shorter than this, or one longer than its inverse: squares may vanish or overflow."""

MOST_EXPONENT = 1000
"""Powers of two by which vectors are scaled at most."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Float64 rows padded with zeros to whole registers, measured."""

    rows: Floats  # (n, width) aligned
    length: Floats  # (n,) of each vector
    rounding: float  # squared distance, relative to squared lengths, that rounding alone can make
    exponent: int  # the rows are the vectors given, divided by 2 to this power
    memory: Floats  # what the rows are part of

    @classmethod
    def of(cls, document: Tensor) -> Vectors:
        """Take the vectors to float64; the caller's tensor is not touched."""
        # Not by torch, which would start threads for a tenth of a millisecond's work.
        known = document.detach().cpu()
        known = known.float() if known.dtype == torch.bfloat16 else known
        given = np.ascontiguousarray(known.numpy(), dtype=np.float64)
        n, d = given.shape
        rows, memory = _aligned(n, -(-d // LANES) * LANES)
        length, exponent = np.empty(n), 0
        longest = take_vectors(given, rows, length)
        if not SHORT < longest < 1 / SHORT:
            # Scores do not depend on scale: by a power of two, nothing overflows, no bit is lost.
            found = math.frexp(float(np.abs(given).max()))[1]
            exponent = max(-MOST_EXPONENT, min(found, MOST_EXPONENT))
            take_vectors(np.ldexp(given, -exponent), rows, length)
        return cls(rows, length, rounding_of(document.dtype), exponent, memory)

    def __getitem__(self, units: NDArray[np.int64]) -> Vectors:
        """Some of the units, in any order."""
        rows, memory = _aligned(len(units), self.rows.shape[1])
        np.take(self.rows, units, axis=0, out=rows)
        return Vectors(rows, self.length[units], self.rounding, self.exponent, memory)

    def __len__(self) -> int:
        return len(self.rows)

    def discard(self) -> None:
        """Give the memory to the next document; the rows must not be read any more."""
        give_back(self.memory)


def _aligned(n: int, width: int) -> tuple[Floats, Floats]:
    """Rows that start where registers' worth of memory does: they are read twice as fast."""
    memory = take(n * width + LANES)
    start = -(memory.__array_interface__["data"][0] // memory.itemsize) % LANES
    return memory[start : start + n * width].reshape(n, width), memory
