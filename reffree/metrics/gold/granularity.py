"""Where boundaries lie, how many there are, and how segments nest: Coen's three readings.

Coen, "When F1 Fails: Granularity-Aware Evaluation for Dialogue Topic Segmentation". They are read
together: `failure_mode` names what they say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from reffree.data.masses import Masses
from reffree.metrics.gold.metric import GoldMetric, columns
from reffree.metrics.gold.pairs import Pairs
from reffree.util.arrays import Floats, Integers, ratio
from reffree.util.bounds import Bounds
from reffree.util.compiling import njit
from reffree.util.errors import mistake


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


def match_counts(pairs: Pairs, w: int) -> Floats:
    """Boundaries in a maximum matching of those at most ``w`` apart, and those of either side."""
    matched = np.zeros(len(pairs), dtype=np.int64)
    _match(pairs.hypothesis.cumsum(1), pairs.reference.cumsum(1), pairs.n_units, w, matched)
    return columns(matched, *pairs.n_boundaries)


@dataclass(frozen=True, slots=True)
class F1(GoldMetric):
    """F of the boundaries both sides have: 2·|P ∩ G| / (|P| + |G|).

    Coen §6, with the empty-set rules of appendix A: 1 where neither side has a boundary, 0 where
    only one has. Range [0, 1]. Never undefined.
    """

    name = "f1"

    def counts(self, pairs: Pairs) -> Floats:
        """Common, hypothesis and reference boundaries."""
        return match_counts(pairs, 0)

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
        return match_counts(pairs, self.w)


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


MEANINGS: dict[str, str] = {
    "calibrated": "boundaries agree in place and number",
    "oversegmentation": "finer than the reference, whose boundaries it finds",
    "granularity mismatch": "far more boundaries than the reference, mostly inside its segments",
    "undersegmentation": "coarser than the reference, whose segments it keeps whole",
    "detection failure": "as many boundaries as the reference, in other places",
    "unclassified": "a combination that is none of the five regimes of Coen's Table 2",
}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What "high", "< 1", "≈ 1" and "≫ 1" mean in Coen's Table 2, which gives no numbers.

    The defaults part the cases that the paper names in words:

    * W-F1: what it calls oversegmentation has .612 and more (Table 4, Table 9), what it calls
      coarser than gold .584 and less (Table 4, Table 10): high from .6.
    * BOR: "≈ 1" is said of .97 to 1.13 (Tables 3, 4 and 8), "≫ 1" of 1.88 and more, "< 1" of .81
      and less (Tables 4, 5 and 10): sparse below .9, dense above 1.5.
    * Purity and coverage: called high from .896 on (Table 10), called lower for the baselines with
      matched density, which reach .884 (Table 3): high from .89.
    """

    high_w_f1: float = 0.6
    sparse_bor: float = 0.9
    dense_bor: float = 1.5
    high_overlap: float = 0.89

    def __post_init__(self) -> None:
        """Refuse bounds of BOR that leave no room for 1."""
        if not 0 < self.sparse_bor <= 1 <= self.dense_bor:
            found = f"BOR sparse below {self.sparse_bor} and dense above {self.dense_bor}"
            remedy = "leave both out for their defaults"
            raise mistake(None, found, "0 < sparse_bor ≤ 1 ≤ dense_bor", remedy)


@dataclass(frozen=True, slots=True)
class FailureMode:
    """A row of Coen's Table 2, why it was chosen, and by which thresholds."""

    label: str  # one of `MEANINGS`
    explanation: str
    thresholds: Thresholds


def failure_mode(
    w_f1: float,
    bor: float | None,
    purity: float,
    coverage: float,
    thresholds: Thresholds | None = None,
) -> FailureMode:
    """Name the regime of Coen's Table 2 (§6.4) that the four figures of a corpus fall into.

    A combination outside the table, or an undefined BOR, is ``unclassified``.

    >>> failure_mode(w_f1=0.767, bor=2.53, purity=0.962, coverage=0.651).label
    'oversegmentation'
    """
    limits = thresholds or Thresholds()
    if bor is None or math.isnan(bor):
        return FailureMode("unclassified", "BOR is undefined without reference boundaries", limits)
    found = w_f1 >= limits.high_w_f1
    pure, covering = purity >= limits.high_overlap, coverage >= limits.high_overlap
    label = "unclassified"
    if bor > limits.dense_bor and pure:
        label = "oversegmentation" if found else "granularity mismatch"
    elif bor < limits.sparse_bor and covering and not found:
        label = "undersegmentation"
    elif limits.sparse_bor <= bor <= limits.dense_bor:
        if found and pure and covering:
            label = "calibrated"
        elif not (found or pure or covering):
            label = "detection failure"
    density = "< 1" if bor < limits.sparse_bor else "≫ 1" if bor > limits.dense_bor else "≈ 1"
    readings = [
        _reading("W-F1", w_f1, limits.high_w_f1),
        f"BOR {bor:.2f} is {density} (≈ 1 from {limits.sparse_bor:g} to {limits.dense_bor:g})",
        _reading("purity", purity, limits.high_overlap),
        _reading("coverage", coverage, limits.high_overlap),
    ]
    return FailureMode(label, f"{MEANINGS[label]}: {', '.join(readings)}", limits)


def _reading(name: str, value: float, high: float) -> str:
    return f"{name} {value:.3f} is {'high' if value >= high else 'low'} (high from {high:g})"


# Rows of ends, whose last is the document's and stands for no boundary.


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
        while hypothesis[row, i] < n_units[row] and reference[row, j] < n_units[row]:
            gap = hypothesis[row, i] - reference[row, j]
            if abs(gap) <= w:
                matched[row] += 1
            if gap <= w:
                i += 1
            if gap >= -w:
                j += 1


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
