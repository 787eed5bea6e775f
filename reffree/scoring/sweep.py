"""Look-ups of hypotheses whose tables do not fit into memory.

`reffree.scoring.tables` holds a row for every edge of a document. Here only the edges that some of
the given hypotheses have get rows, and the pairs between are measured, added up and forgotten, a
tile of units at a time. One hypothesis takes some 200 bytes per unit, whatever its segments'
lengths. Every sum has the order it has there, so scores are the same to the last bit; the time is
that of measuring all pairs again for every group of hypotheses that fits.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from reffree.arrays import Integers
from reffree.masses import Masses
from reffree.parallel import together
from reffree.scoring import sweep_kernel as kernel
from reffree.scoring.pairs_kernel import TILE
from reffree.scoring.tables import Tables, band_of, places
from reffree.scoring.vectors import Vectors
from reffree.scoring.workspace import take

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
        kernel.find_rows(masses, low, high, after)
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
            measured = (x, length, vectors.rounding, start, stop)
            together(
                [
                    partial(
                        kernel.measure_stripe,
                        *measured,
                        first,
                        min(first + share, right),
                        left,
                        pairs,
                        turned,
                    )
                    for first in range(left, right, share)
                ]
            )
            kernel.sum_forwards(
                start, stop, left, right, turned, found, squared, distance, forwards
            )
            kernel.sum_backwards(
                *(start, stop, left, right, pairs, x, length, vectors.rounding),
                *(found, tables, running, spans),
            )
    return Tables(rows.base, rows.top, *tables, length, memory)
