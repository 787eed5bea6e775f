"""Where boundaries lie, how many there are, and how segments nest: Coen's three readings.

Coen, "When F1 Fails: Granularity-Aware Evaluation for Dialogue Topic Segmentation". They are read
together: `reffree.metrics.gold.failure_modes` names what they say.
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


def f_measure(precision: Floats, recall: Floats) -> Floats:
    """Harmonic mean under the empty-set rules of appendix A; NaN stands for an empty set.

    Neither side has a boundary: 1. Only one has: the other's rate is 0, and so is F.
    """
    both_empty = np.isnan(precision) & np.isnan(recall)
    p, r = np.nan_to_num(precision), np.nan_to_num(recall)
    return np.where(both_empty, 1.0, np.nan_to_num(ratio(2 * p * r, p + r)))


def overlap_counts(pairs: Pairs, pieces: Masses, wholes: Masses) -> Floats:
    """Units in their piece's largest overlap with a whole, and all."""
    overlaps = np.zeros(len(pairs), dtype=np.int64)
    _sum_overlaps(pieces.cumsum(1), wholes.cumsum(1), pairs.n_units, overlaps)
    return columns(overlaps, pairs.n_units)


def count_matches(pairs: Pairs, w: int) -> Integers:
    """Pairs of boundaries at most ``w`` apart in a maximum matching."""
    matched = np.zeros(len(pairs), dtype=np.int64)
    _match(pairs.hypothesis.cumsum(1), pairs.reference.cumsum(1), pairs.n_units, w, matched)
    return matched


@dataclass(frozen=True, slots=True)
class F1(GoldMetric):
    """F of the boundaries both sides have: 2·|P ∩ G| / (|P| + |G|).

    Coen §6, with the empty-set rules of appendix A: 1 where neither side has a boundary, 0 where
    only one has. Range [0, 1]. Never undefined.
    """

    name = "f1"

    def counts(self, pairs: Pairs) -> Floats:
        """Common, hypothesis and reference boundaries."""
        return columns(count_matches(pairs, 0), *pairs.n_boundaries)

    def value(self, counts: Floats) -> Floats:
        """Harmonic mean of precision and recall."""
        common, hypothesis, reference = np.moveaxis(counts, -1, 0)
        return f_measure(ratio(common, hypothesis), ratio(common, reference))


@dataclass(frozen=True, slots=True)
class WF1(GoldMetric):
    """F of the boundaries with one of the other side at most ``w`` units away (W-F1).

    Coen §6.1 and appendix A. Precision is the share of hypothesis boundaries near a reference
    boundary, recall the share of reference boundaries near a hypothesis boundary: one boundary may
    serve several. 1 where neither side has a boundary, 0 where only one has. Range [0, 1]. Never
    undefined. The paper's corpus figure is the mean over documents.

    >>> WF1()([5, 5], [4, 2, 4])
    1.0
    """

    w: Annotated[int, Bounds(0)] = 1
    name = "w_f1"

    def counts(self, pairs: Pairs) -> Floats:
        """Hypothesis boundaries, near ones and all; reference boundaries, near ones and all."""
        ends = pairs.hypothesis.cumsum(1), pairs.reference.cumsum(1)
        near_h, near_r = np.zeros((2, len(pairs)), dtype=np.int64)
        _count_near(*ends, pairs.n_units, self.w, near_h)
        _count_near(*ends[::-1], pairs.n_units, self.w, near_r)
        return columns(near_h, pairs.n_boundaries[0], near_r, pairs.n_boundaries[1])

    def value(self, counts: Floats) -> Floats:
        """Harmonic mean of precision and recall."""
        near_h, hypothesis, near_r, reference = np.moveaxis(counts, -1, 0)
        return f_measure(ratio(near_h, hypothesis), ratio(near_r, reference))


@dataclass(frozen=True, slots=True)
class WF1OneToOne(F1):
    """F of a maximum matching of boundaries at most ``w`` units apart, each used once.

    Coen, appendices A and G: 2·|M| / (|P| + |G|). 1 where neither side has a boundary, 0 where only
    one has. Range [0, 1], never above `WF1`. Never undefined.
    """

    w: Annotated[int, Bounds(0)] = 1
    name = "w_f1_one_to_one"

    def counts(self, pairs: Pairs) -> Floats:
        """Matched, hypothesis and reference boundaries."""
        return columns(count_matches(pairs, self.w), *pairs.n_boundaries)


@dataclass(frozen=True, slots=True)
class Bor(GoldMetric):
    """Boundary over-segmentation ratio: hypothesis boundaries / reference boundaries.

    Coen §6.2. Range [0, ∞); above 1 the hypothesis is finer than the reference, below coarser.
    Over a corpus always pooled, Σ / Σ, as the paper's tables print it. Undefined without a
    reference boundary.
    """

    name = "bor"
    direction = "toward_1"
    undefined = "the reference has no boundary"
    pooled = True

    def counts(self, pairs: Pairs) -> Floats:
        """Hypothesis and reference boundaries."""
        return columns(*pairs.n_boundaries)


@dataclass(frozen=True, slots=True)
class Purity(GoldMetric):
    """Σ over hypothesis segments of their largest overlap with a reference segment, / n.

    Coen §6.3 and appendix B. Range (0, 1]; 1 where no hypothesis segment crosses a reference
    boundary. Never falls when boundaries are added to the hypothesis (appendix C). Weighted by
    units within a document; the paper's corpus figure is the mean over documents. Never undefined.

    >>> Purity()([9, 1], [5, 5])
    0.6
    """

    name = "purity"

    def counts(self, pairs: Pairs) -> Floats:
        """Units in their segment's largest overlap, and all."""
        return overlap_counts(pairs, pairs.hypothesis, pairs.reference)


@dataclass(frozen=True, slots=True)
class Coverage(GoldMetric):
    """Σ over reference segments of their largest overlap with a hypothesis segment, / n.

    Coen §6.3 and appendix B. Range (0, 1]; 1 where no reference segment is cut. Never rises when
    boundaries are added to the hypothesis (appendix C). Weighted as `Purity`. Never undefined.
    """

    name = "coverage"

    def counts(self, pairs: Pairs) -> Floats:
        """Units in their segment's largest overlap, and all."""
        return overlap_counts(pairs, pairs.reference, pairs.hypothesis)


@njit(cache=True)
def _match(
    hypothesis: Integers, reference: Integers, n_units: Integers, w: int, matched: Integers
) -> None:
    """Count the pairs of a maximum matching of boundaries at most ``w`` apart, row by row.

    Walk both rows at once: of two boundaries too far apart, the earlier has no partner left.
    Matching the earliest two that are near is optimal, for all windows are equally wide: any
    maximum matching can be exchanged into one that has this pair.
    """
    for row in range(len(matched)):
        i = j = 0
        # The last end of a row is the document's and stands for none.
        while hypothesis[row, i] < n_units[row] and reference[row, j] < n_units[row]:
            gap = hypothesis[row, i] - reference[row, j]
            if abs(gap) <= w:
                matched[row] += 1
            if gap <= w:
                i += 1
            if gap >= -w:
                j += 1


# Rows of ends, whose last is the document's and stands for no boundary.


@njit(cache=True)
def _count_near(
    ends: Integers, others: Integers, n_units: Integers, w: int, found: Integers
) -> None:
    """Count the boundaries of each row that have one of the other row at most ``w`` away."""
    for row in range(len(found)):
        i = j = 0
        n = n_units[row]
        while ends[row, i] < n:
            while others[row, j] < min(n, ends[row, i] - w):
                j += 1
            found[row] += others[row, j] < n and others[row, j] <= ends[row, i] + w
            i += 1


@njit(cache=True)
def _sum_overlaps(pieces: Integers, wholes: Integers, n_units: Integers, found: Integers) -> None:
    """Sum over the pieces of each row the units inside the whole that holds most of them."""
    for row in range(len(found)):
        i = j = start = 0
        while start < n_units[row]:
            largest = 0
            end = pieces[row, i]
            while start < end:
                stop = min(end, wholes[row, j])
                largest = max(largest, stop - start)
                start = stop
                j += wholes[row, j] == stop
            found[row] += largest
            i += 1
