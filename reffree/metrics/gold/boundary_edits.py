"""Metrics made of the cheapest edits that turn a hypothesis's boundaries into the reference's.

Two definitions of what edits cost: boundary edit distance, where near misses cost part of an edit,
and the generalised Hamming distance. Both are found in the same way. Boundaries in the same place
match and are set aside. The others are aligned in order: one of the hypothesis is deleted, one of
the reference inserted, or one shifted to the other. With f(i, j) the cost of the first i against
the first j, d units between the last two of them,

    f(i, j) = min(f(i - 1, j) + deletion, f(i, j - 1) + insertion, f(i - 1, j - 1) + shift · d)

where the last is open up to a distance only, the reach. Keeping the order costs nothing: uncrossed,
two shifts are no longer, neither together nor the longer one. Out of reach a row of f is a straight
line and need not be worked out, so the time is linear in the boundaries for any fixed reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from reffree.data.masses import Masses
from reffree.metrics.gold.metric import GoldMetric, columns
from reffree.metrics.gold.pairs import Pairs
from reffree.util.arrays import Floats, Integers, ratio
from reffree.util.bounds import Bounds
from reffree.util.compiling import njit

Costs = tuple[float, float, float]
"""Of an insertion, a deletion, and a shift by one unit."""


def cheapest_edits(pairs: Pairs, costs: Costs, reach: int) -> tuple[Integers, Floats]:
    """Number of each pair's cheapest edits and matches, of equal ones the fewest, and the cost."""
    pieces, cost = np.empty(len(pairs), dtype=np.int64), np.empty(len(pairs))
    pairs.each(lambda h, r, rows: _edit(h, r, costs, reach, pieces[rows], cost[rows]))
    return pieces, cost


@dataclass(frozen=True, slots=True)
class BoundaryEditDistance(GoldMetric):
    """What the metrics of boundary edit distance share (Fournier 2013): option, edits, credit.

    Boundaries in the same place match, before anything else. The others are shifted by d < n_t
    units at a cost of d / n_t (the default n_t = 2: one unit, 1/2), or added or deleted at a cost
    of 1, such that the sum of costs is least; of equally cheap ways the one with fewest edits.
    """

    n_t: Annotated[int, Bounds(1)] = 2

    def edits(self, pairs: Pairs) -> tuple[Integers, Floats]:
        """Count additions, deletions, shifts and matches together, and say what they cost."""
        n_t = float(self.n_t)  # costs in units of 1 / n_t, so that sums are whole numbers
        reach = min(self.n_t - 1, pairs.width)
        pieces, cost = cheapest_edits(pairs, (n_t, n_t, 1.0), reach)
        return pieces, cost / self.n_t


@dataclass(frozen=True, slots=True)
class BoundarySimilarity(BoundaryEditDistance):
    r"""Boundary similarity B of Fournier (2013).

    .. math:: B = 1 - (|A| + \sum_T d / n_t) / (|A| + |T| + |M|)

    with additions and deletions A, shifts T and matches M. Range 0 to 1, and 1 where both are
    unsegmented: never undefined. Symmetric. Pooled, documents without any boundary add nothing.
    Departs from segeval only for n_t > 2, where segeval takes shifts greedily, shortest first.

    >>> BoundarySimilarity()([3, 2, 5], [2, 3, 5])
    0.75
    """

    name = "boundary_similarity"

    def counts(self, pairs: Pairs) -> Floats:
        """Numerator and denominator of each pair, (pairs, 2)."""
        pieces, cost = self.edits(pairs)
        return columns(pieces - cost, pieces)

    def value(self, counts: Floats) -> Floats:
        """Similarity; where there is nothing to compare, both sides are alike."""
        return np.where(counts[..., 1] > 0, BoundaryEditDistance.value(self, counts), 1.0)


@dataclass(frozen=True, slots=True)
class SegmentationSimilarity(BoundarySimilarity):
    r"""Segmentation similarity S of Fournier and Inkpen (2012), as restated in Fournier (2013).

    .. math:: S = 1 - (|A| + \sum_T d / n_t) / (n - 1)

    with additions and deletions A and shifts T. Range 0 to 1, and 1 where both are unsegmented,
    hence also for one unit, which leaves no place for a boundary: never undefined. Symmetric.
    """

    name = "segmentation_similarity"

    def counts(self, pairs: Pairs) -> Floats:
        """Numerator and denominator of each pair, (pairs, 2)."""
        places = pairs.n_units - 1
        return columns(places - self.edits(pairs)[1], places)


@dataclass(frozen=True, slots=True)
class BedPrecision(BoundaryEditDistance):
    r"""Precision with credit for near misses, by boundary edit distance.

    .. math:: P = (|M| + \sum_T (1 - d / n_t)) / |B_{hypothesis}|

    with matches M and shifts T. After the confusion matrix of Fournier (2013), but each boundary
    counts once below the line and a near miss is credited 1 - d / n_t above it
    (docs/definitions.md); segeval credits d / n_t, and its precision always equals its recall.
    Range 0 to 1.
    """

    name = "bed_precision"
    undefined = "the hypothesis has no boundary"

    def counts(self, pairs: Pairs) -> Floats:
        """Credit, 1 for a match and 1 - d / n_t for a shift; boundaries of both, (pairs, 3)."""
        return columns(np.subtract(*self.edits(pairs)), *pairs.n_boundaries)


@dataclass(frozen=True, slots=True)
class BedRecall(BedPrecision):
    r"""Recall with credit for near misses, by boundary edit distance.

    .. math:: R = (|M| + \sum_T (1 - d / n_t)) / |B_{reference}|

    The counterpart of `BedPrecision`, with the same departures. Range 0 to 1.
    """

    name = "bed_recall"
    undefined = "the reference has no boundary"
    divided = (0, 2)


@dataclass(frozen=True, slots=True)
class Bed(BedPrecision):
    r"""F-measure of `BedPrecision` and `BedRecall`.

    .. math:: F = 2 PR / (P + R) = 2 (|M| + \sum_T (1 - d/n_t)) / (|B_{hyp.}| + |B_{ref.}|)

    Range 0 to 1. Where one side has no boundary, P or R is undefined and F is 0.
    """

    name = "bed"
    undefined = "neither the hypothesis nor the reference has a boundary"

    def value(self, counts: Floats) -> Floats:
        """Twice the credit per boundary of either side."""
        return ratio(2 * counts[..., 0], counts[..., 1] + counts[..., 2])


@dataclass(frozen=True, slots=True)
class Ghd(GoldMetric):
    """Generalised Hamming distance of Bookstein, Kulyukin and Raita (2002).

    The least cost of turning the hypothesis's boundaries into the reference's, where a boundary is
    inserted, deleted, or shifted at ``shift`` for each unit; defaults as in nltk. Range 0 to
    infinity, not divided by anything: never undefined. Pooled: the mean over documents. The time
    is linear in the boundaries unless ``shift`` is so small that shifts reach far.
    """

    insertion: Annotated[float, Bounds(0)] = 2.0
    deletion: Annotated[float, Bounds(0)] = 2.0
    shift: Annotated[float, Bounds(0)] = 1.0

    name = "ghd"
    direction = "lower"

    def counts(self, pairs: Pairs) -> Floats:
        """Distance and number of each pair, (pairs, 2)."""
        both = self.insertion + self.deletion
        # A shift that costs more than to delete and insert is never needed.
        reach = pairs.width if self.shift * pairs.width <= both else int(both / self.shift)
        costs = (float(self.insertion), float(self.deletion), float(self.shift))
        return columns(cheapest_edits(pairs, costs, reach)[1], np.ones(len(pairs)))


@njit(cache=True, nogil=True)
def _edit(
    hypothesis: Masses, reference: Masses, costs: Costs, reach: int, pieces: Integers, cost: Floats
) -> None:
    """Fill in the ``pieces`` and the ``cost`` of `cheapest_edits`."""
    extra = np.empty(hypothesis.shape[1], dtype=np.int64)
    missing = np.empty(reference.shape[1], dtype=np.int64)
    row = np.empty(reference.shape[1])
    shifts = np.empty(reference.shape[1], dtype=np.int64)
    for p in range(len(hypothesis)):
        n_extra, n_missing, common = _set_apart(hypothesis[p], reference[p], extra, missing)
        cost[p], shifted = _align(extra[:n_extra], missing[:n_missing], costs, reach, row, shifts)
        pieces[p] = n_extra + n_missing + common - shifted


@njit(cache=True, nogil=True)
def _set_apart(
    hypothesis: Integers, reference: Integers, extra: Integers, missing: Integers
) -> tuple[int, int, int]:
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
def _align(
    extra: Integers, missing: Integers, costs: Costs, reach: int, cost: Floats, shifts: Integers
) -> tuple[float, int]:
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
def _better(cost: float, shifts: int, other_cost: float, other_shifts: int) -> tuple[float, int]:
    """Return the lower cost; of equal ones, that with more shifts."""
    if other_cost < cost or (other_cost == cost and other_shifts > shifts):
        return other_cost, other_shifts
    return cost, shifts
