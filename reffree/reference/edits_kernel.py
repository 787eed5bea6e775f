"""Cheapest edits that turn one segmentation's boundaries into another's, compiled, pair by pair.

Boundaries in the same place match and are set aside. The others are aligned in order: one of the
hypothesis is deleted, one of the reference inserted, or one shifted to the other. With f(i, j) the
cost of the first i against the first j, d units between the last two of them,

    f(i, j) = min(f(i - 1, j) + deletion, f(i, j - 1) + insertion, f(i - 1, j - 1) + shift · d)

where the last is open up to a distance only, the reach. Keeping the order costs nothing: uncrossed,
two shifts are no longer, neither together nor the longer one. Out of reach a row of f is a straight
line and need not be worked out, so the time is linear in the boundaries for any fixed reach.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reffree.arrays import Floats, Integers
from reffree.compiling import njit
from reffree.parallel import THREADED, available_threads, over_rows
from reffree.reference.pairs import Pairs


class Edits(NamedTuple):
    """What was found for each pair."""

    hypothesis: Integers  # boundaries of the hypothesis
    reference: Integers  # boundaries of the reference
    matched: Integers  # boundaries in the same place
    shifted: Integers  # boundaries of the hypothesis shifted to one of the reference
    cost: Floats


def cheapest_edits(
    pairs: Pairs, *, insertion: float, deletion: float, shift: float, reach: int
) -> Edits:
    """Edits of least cost; of equally cheap ones the fewest, which have the most shifts."""
    counted = np.empty((len(pairs), 4), dtype=np.int64)
    cost = np.empty(len(pairs))
    costs = (float(insertion), float(deletion), float(shift))
    hypotheses, references = pairs.rows()

    def work(rows: slice) -> None:
        _edit(hypotheses[rows], references[rows], costs, reach, counted[rows], cost[rows])

    is_much = hypotheses.size + references.size >= THREADED
    over_rows(work, len(pairs), available_threads() if is_much else 1)
    hypothesis, reference, matched, shifted = counted.T
    return Edits(hypothesis, reference, matched, shifted, cost)


@njit(cache=True, nogil=True)
def _edit(hypothesis, reference, costs, reach, counted, cost):
    """Fill ``counted`` with the first four columns of `Edits` and ``cost`` with the fifth."""
    extra = np.empty(hypothesis.shape[1], dtype=np.int64)
    missing = np.empty(reference.shape[1], dtype=np.int64)
    row = np.empty(reference.shape[1])
    shifts = np.empty(reference.shape[1], dtype=np.int64)
    for p in range(len(hypothesis)):
        n_extra, n_missing, common = _set_apart(hypothesis[p], reference[p], extra, missing)
        counted[p, 0] = n_extra + common
        counted[p, 1] = n_missing + common
        counted[p, 2] = common
        cost[p], counted[p, 3] = _align(
            extra[:n_extra], missing[:n_missing], costs, reach, row, shifts
        )


@njit(cache=True, nogil=True)
def _set_apart(hypothesis, reference, extra, missing):
    """Write down the boundaries of one side only; return how many there are, and common ones."""
    n_extra, n_missing, common = 0, 0, 0
    i, j = 0, 0
    end, other = hypothesis[0], reference[0]
    while True:
        if end < other:
            extra[n_extra] = end
            n_extra += 1
            i += 1
            end += hypothesis[i]
        elif other < end:
            missing[n_missing] = other
            n_missing += 1
            j += 1
            other += reference[j]
        else:
            i += 1
            j += 1
            if i == len(hypothesis) or hypothesis[i] == 0:  # and so has the reference ended
                return n_extra, n_missing, common
            common += 1
            end += hypothesis[i]
            other += reference[j]


@njit(cache=True, nogil=True)
def _align(extra, missing, costs, reach, cost, shifts):
    """Least cost, and the most shifts at that cost; ``cost`` and ``shifts`` hold a row of f."""
    insertion, deletion, shift = costs
    first, last = 0, 0  # missing[first:last] is within reach of the boundary in hand
    cost[0], shifts[0] = 0.0, 0
    for place in extra:
        while last < len(missing) and missing[last] <= place + reach:
            cost[last + 1] = cost[last] + insertion
            shifts[last + 1] = shifts[last]
            last += 1
        while first < last and missing[first] < place - reach:
            first += 1
        before, shifts_before = cost[first], shifts[first]
        cost[first] += deletion
        for j in range(first, last):
            least, most = before + shift * abs(place - missing[j]), shifts_before + 1
            before, shifts_before = cost[j + 1], shifts[j + 1]
            least, most = _better(least, most, before + deletion, shifts_before)
            least, most = _better(least, most, cost[j] + insertion, shifts[j])
            cost[j + 1], shifts[j + 1] = least, most
    return cost[last] + insertion * (len(missing) - last), shifts[last]


@njit(cache=True, nogil=True)
def _better(cost, shifts, other_cost, other_shifts):
    if other_cost < cost or (other_cost == cost and other_shifts > shifts):
        return other_cost, other_shifts
    return cost, shifts
