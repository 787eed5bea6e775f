"""Metrics made of the cheapest edits that turn a hypothesis's boundaries into the reference's.

`reffree.reference.edits_kernel` finds those edits. Two definitions of what they cost: boundary edit
distance, where near misses cost part of an edit, and the generalised Hamming distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reffree.arrays import Floats, Integers
from reffree.bounds import check_number, check_whole
from reffree.reference.edits_kernel import Edits, cheapest_edits
from reffree.reference.metric import ratio
from reffree.reference.pairs import Pairs
from reffree.statistics.losses import Direction


@dataclass(frozen=True, slots=True)
class BoundaryEditDistance:
    """What the metrics of boundary edit distance share (Fournier 2013): option, edits, credit.

    Boundaries in the same place match, before anything else. The others are shifted by d < n_t
    units at a cost of d / n_t (the default n_t = 2: one unit, 1/2), or added or deleted at a cost
    of 1, such that the sum of costs is least; of equally cheap ways the one with fewest edits.
    """

    n_t: int = 2

    def __post_init__(self) -> None:
        check_whole("n_t", self.n_t, 1)

    def edits(self, pairs: Pairs) -> Edits:
        """Cheapest edits, an addition at n_t and a shift at d, so that sums are whole numbers."""
        reach = min(self.n_t - 1, pairs.width)
        return cheapest_edits(pairs, insertion=self.n_t, deletion=self.n_t, shift=1, reach=reach)

    def credit(self, edits: Edits) -> Floats:
        """1 for every match and 1 - d / n_t for every shift."""
        # An addition has no credit and costs 1, a shift or a match has what is left of 1.
        credit: Floats = _pieces(edits) - edits.cost / self.n_t
        return credit


@dataclass(frozen=True, slots=True)
class BoundarySimilarity(BoundaryEditDistance):
    r"""Boundary similarity B of Fournier (2013).

    .. math:: B = 1 - (|A| + \sum_T d / n_t) / (|A| + |T| + |M|)

    with additions and deletions A, shifts T and matches M. Range 0 to 1, and 1 where both are
    unsegmented: never undefined. Symmetric. Pooled, documents without any boundary add nothing.
    Departs from segeval only for n_t > 2, where segeval takes shifts greedily, shortest first.
    """

    name: ClassVar[str] = "boundary_similarity"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "it never is"

    def counts(self, pairs: Pairs) -> Floats:
        """Numerator and denominator of each pair, (pairs, 2)."""
        edits = self.edits(pairs)
        return np.stack([self.credit(edits), _pieces(edits)], axis=1)

    def value(self, counts: Floats) -> Floats:
        """Similarity of each row of counts."""
        return _one_of_nothing(counts[..., 0], counts[..., 1])


@dataclass(frozen=True, slots=True)
class SegmentationSimilarity(BoundaryEditDistance):
    r"""Segmentation similarity S of Fournier and Inkpen (2012), as restated in Fournier (2013).

    .. math:: S = 1 - (|A| + \sum_T d / n_t) / (n - 1)

    with additions and deletions A and shifts T. Range 0 to 1, and 1 where both are unsegmented,
    hence also for one unit, which leaves no place for a boundary: never undefined. Symmetric.
    """

    name: ClassVar[str] = "segmentation_similarity"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "it never is"

    def counts(self, pairs: Pairs) -> Floats:
        """Numerator and denominator of each pair, (pairs, 2)."""
        places = pairs.n_units - 1
        return np.stack([places - self.edits(pairs).cost / self.n_t, places], axis=1)

    def value(self, counts: Floats) -> Floats:
        """Similarity of each row of counts."""
        return _one_of_nothing(counts[..., 0], counts[..., 1])


@dataclass(frozen=True, slots=True)
class BedPrecision(BoundaryEditDistance):
    r"""Precision with credit for near misses, by boundary edit distance.

    .. math:: P = (|M| + \sum_T (1 - d / n_t)) / |B_{hypothesis}|

    with matches M and shifts T. After the confusion matrix of Fournier (2013), but each boundary
    counts once below the line and a near miss is credited 1 - d / n_t above it (definitions, bed);
    segeval credits d / n_t, and its precision always equals its recall. Range 0 to 1.
    """

    name: ClassVar[str] = "bed_precision"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "the hypothesis has no boundary"

    def counts(self, pairs: Pairs) -> Floats:
        """Credit and boundaries of the hypothesis, (pairs, 2)."""
        edits = self.edits(pairs)
        return np.stack([self.credit(edits), edits.hypothesis], axis=1)

    def value(self, counts: Floats) -> Floats:
        """Precision of each row of counts."""
        return ratio(counts[..., 0], counts[..., 1])


@dataclass(frozen=True, slots=True)
class BedRecall(BoundaryEditDistance):
    r"""Recall with credit for near misses, by boundary edit distance.

    .. math:: R = (|M| + \sum_T (1 - d / n_t)) / |B_{reference}|

    The counterpart of `BedPrecision`, with the same departures. Range 0 to 1.
    """

    name: ClassVar[str] = "bed_recall"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "the reference has no boundary"

    def counts(self, pairs: Pairs) -> Floats:
        """Credit and boundaries of the reference, (pairs, 2)."""
        edits = self.edits(pairs)
        return np.stack([self.credit(edits), edits.reference], axis=1)

    def value(self, counts: Floats) -> Floats:
        """Recall of each row of counts."""
        return ratio(counts[..., 0], counts[..., 1])


@dataclass(frozen=True, slots=True)
class Bed(BoundaryEditDistance):
    r"""F-measure of `BedPrecision` and `BedRecall`.

    .. math:: F = 2 PR / (P + R) = 2 (|M| + \sum_T (1 - d/n_t)) / (|B_{hyp.}| + |B_{ref.}|)

    Range 0 to 1. Where one side has no boundary, P or R is undefined and F is 0.
    """

    name: ClassVar[str] = "bed"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "neither the hypothesis nor the reference has a boundary"

    def counts(self, pairs: Pairs) -> Floats:
        """Twice the credit, and the boundaries of both sides, (pairs, 2)."""
        edits = self.edits(pairs)
        return np.stack([2 * self.credit(edits), edits.hypothesis + edits.reference], axis=1)

    def value(self, counts: Floats) -> Floats:
        """F-measure of each row of counts."""
        return ratio(counts[..., 0], counts[..., 1])


@dataclass(frozen=True, slots=True)
class Ghd:
    """Generalised Hamming distance of Bookstein, Kulyukin and Raita (2002).

    The least cost of turning the hypothesis's boundaries into the reference's, where a boundary is
    inserted, deleted, or shifted at ``shift`` for each unit; defaults as in nltk. Range 0 to
    infinity, not divided by anything: never undefined. Pooled: the mean over documents. The time
    is linear in the boundaries unless ``shift`` is so small that shifts reach far.
    """

    insertion: float = 2.0
    deletion: float = 2.0
    shift: float = 1.0

    name: ClassVar[str] = "ghd"
    direction: ClassVar[Direction] = "lower"
    undefined: ClassVar[str] = "it never is"

    def __post_init__(self) -> None:
        for name in ("insertion", "deletion", "shift"):
            check_number(name, getattr(self, name), 0)

    def counts(self, pairs: Pairs) -> Floats:
        """Distance and number of each pair, (pairs, 2)."""
        both = self.insertion + self.deletion
        # A shift that costs more than to delete and insert is never needed.
        reach = pairs.width if self.shift * pairs.width <= both else int(both / self.shift)
        edits = cheapest_edits(
            pairs,
            insertion=self.insertion,
            deletion=self.deletion,
            shift=self.shift,
            reach=reach,
        )
        return np.stack([edits.cost, np.ones(len(pairs))], axis=1)

    def value(self, counts: Floats) -> Floats:
        """Distance of each row of counts, per document."""
        return ratio(counts[..., 0], counts[..., 1])


def _pieces(edits: Edits) -> Integers:
    """Additions, deletions, shifts and matches together."""
    return edits.hypothesis + edits.reference - edits.matched - edits.shifted


def _one_of_nothing(numerator: Floats, denominator: Floats) -> Floats:
    """Similarity where there may be nothing to compare, which makes both sides alike."""
    return np.where(denominator > 0, ratio(numerator, denominator), 1.0)
