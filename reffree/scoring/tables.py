"""Look-ups of one document for the compiled loop, only as wide as its hypotheses need.

For an edge ``c`` (0 … n) and a unit ``i``:

* ``squared[c, i]``, ``distance[c, i]``: the signed sum of ``|x_i - x_j|²``, ``|x_i - x_j|`` from
  unit ``i`` outwards to the edge;
* ``sums[c, i]``: over the pairs of the units ``c … i``, with lengths ``w`` and ``a = 1 - cos``, the
  sums of ``|x_i - x_j|²``, ``a``, ``(w_i + w_j) a`` and ``w_i w_j a``.

Rows are edges, so that a segment's units lie side by side. A row holds only the units that some
hypothesis has in a segment that touches the edge: with one hypothesis some three segments, with
very many the whole document. All are sums of non-negative terms, so nothing cancels.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from reffree.arrays import Floats, Integers
from reffree.masses import Masses
from reffree.parallel import available_threads, together
from reffree.scoring import tables_kernel as kernel
from reffree.scoring.pairs_kernel import measure_pairs
from reffree.scoring.vectors import Vectors
from reffree.scoring.workspace import take

THREADED = 1 << 15
"""Entries of a table from which threads are worth starting."""


class Band(NamedTuple):
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
            kernel.disperse(squares, angles, cosines, products, weight, count)
            into = spread[self.base[c] + c + 1 : self.base[c] + stop]
            into[:, 0], into[:, 1], into[:, 2] = squares, cosines, angles
        return spread


def band_of(masses: Masses, n_units: int, known: Band | None = None) -> Band:
    """Find the units that share a segment or neighbouring ones with each edge.

    Never narrower than the ``known`` band.
    """
    edges = np.arange(n_units + 1)
    low, high = np.maximum(edges - 1, 0), np.minimum(edges + 1, n_units)
    if known is not None:
        low, high = known.low.copy(), known.high.copy()
    kernel.widen(masses, low, high)
    base, size = places(low, high)
    return Band(low, high, base, size)


def table_bytes(band: Band) -> int:
    """Return what the tables take, with what they are made from but the vectors."""
    n_units = len(band.low) - 1
    n_spans = int((band.high - np.arange(n_units + 1)).sum())
    return 8 * (2 * band.size + 5 * n_spans)


def build_tables(vectors: Vectors, band: Band, threads: int | None = None) -> Tables:
    """Make the look-ups that the band says.

    On ``threads``, as many as there are processors by default.
    """
    n, x, length, rounding = len(vectors), vectors.rows, vectors.length, vectors.rounding
    top, n_spans = places(np.arange(n + 1), band.high)
    sizes = (band.size, band.size, 4 * n_spans, n_spans)
    memory = take(sum(sizes))
    ends = list(accumulate(sizes, initial=0))
    squared, distance, sums, pairs = (memory[a:b] for a, b in pairwise(ends))
    sums = sums.reshape(n_spans, 4)
    where = (band.low, band.high, band.base, top)
    share = 1 if band.size < THREADED else threads or available_threads()

    def measure(first: int) -> None:
        measure_pairs(first, share, x, length, rounding, where, pairs, squared)

    together([partial(measure, first) for first in range(share)])
    sum_up = [
        partial(kernel.sum_to_edges, pairs, where, squared, distance),
        partial(kernel.sum_spans, pairs, x, length, rounding, where, sums),
    ]
    together(sum_up, threads=share)
    return Tables(band.base, top, squared, distance, sums, length, memory)


def places(low: Integers, high: Integers) -> tuple[Integers, int]:
    """Rows of different lengths in one array: what to add to an index, and all their length."""
    ends = np.cumsum(high - low)
    return ends - high, int(ends[-1])
