"""Where boundaries lie, how many there are, and how segments nest: Coen's three readings.

Coen, "When F1 Fails: Granularity-Aware Evaluation for Dialogue Topic Segmentation". They are read
together: `reffree.reference.failure_modes` names what they say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from reffree.arrays import Floats
from reffree.bounds import check_whole
from reffree.masses import Masses
from reffree.reference.matching import matched_boundaries
from reffree.reference.metric import ratio
from reffree.reference.pairs import Pairs
from reffree.statistics.losses import Direction


def n_boundaries(masses: Masses) -> NDArray[np.int64]:
    """Boundaries of each row: one less than its segments."""
    count: NDArray[np.int64] = (masses > 0).sum(1) - 1
    return count


def columns(*parts: NDArray[np.int64]) -> Floats:
    """One row of counts per pair."""
    return np.stack(parts, axis=1).astype(np.float64)


def f_measure(precision: Floats, recall: Floats) -> Floats:
    """Harmonic mean under the empty-set rules of appendix A; NaN stands for an empty set.

    Neither side has a boundary: 1. Only one has: the other's rate is 0, and so is F.
    """
    both_empty = np.isnan(precision) & np.isnan(recall)
    p, r = np.nan_to_num(precision), np.nan_to_num(recall)
    return np.where(both_empty, 1.0, np.nan_to_num(ratio(2 * p * r, p + r)))


def near(marks: Tensor, w: int) -> Tensor:
    """Whether a boundary lies at most ``w`` from each place, (p, width + 1)."""
    reach = min(w, marks.shape[1])
    running = pad(marks, (reach + 1, reach)).cumsum(1, dtype=torch.int32)
    span = 2 * reach + 1
    return running[:, span:] != running[:, :-span]


def largest_overlaps(pieces: Tensor, wholes: Tensor, n_units: Tensor) -> Tensor:
    """Units of each piece inside the whole that holds most of it, summed over the pieces.

    Both are boundaries (p, width + 1) of the same documents.
    """
    units = torch.arange(pieces.shape[1] - 1, dtype=torch.int32, device=pieces.device)
    pieces, wholes = pieces[:, :-1], wholes[:, :-1]
    # Between two boundaries of either kind a piece and a whole overlap: count from the last one on.
    starts = torch.where(pieces | wholes, units, 0).cummax(1).values
    lengths = torch.where(units < n_units[:, None], units - starts + 1, 0)
    piece = pieces.cumsum(1)
    largest = torch.zeros_like(lengths).scatter_reduce_(1, piece, lengths, "amax")
    return largest.sum(1)


@dataclass(frozen=True, slots=True)
class F1:
    """F of the boundaries both sides have: 2·|P ∩ G| / (|P| + |G|).

    Coen §6, with the empty-set rules of appendix A: 1 where neither side has a boundary, 0 where
    only one has. Range [0, 1]. Never undefined.
    """

    name: ClassVar[str] = "f1"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "it never is"

    def counts(self, pairs: Pairs) -> Floats:
        """Common, hypothesis and reference boundaries."""
        both = pairs.marks(pairs.hypothesis) & pairs.marks(pairs.reference)
        common = both.sum(1, dtype=torch.int32).numpy()
        return columns(common, n_boundaries(pairs.hypothesis), n_boundaries(pairs.reference))

    def value(self, counts: Floats) -> Floats:
        """Harmonic mean of precision and recall."""
        common, hypothesis, reference = np.moveaxis(counts, -1, 0)
        return f_measure(ratio(common, hypothesis), ratio(common, reference))


@dataclass(frozen=True, slots=True)
class WF1:
    """F of the boundaries with one of the other side at most ``w`` units away (W-F1).

    Coen §6.1 and appendix A. Precision is the share of hypothesis boundaries near a reference
    boundary, recall the share of reference boundaries near a hypothesis boundary: one boundary may
    serve several. 1 where neither side has a boundary, 0 where only one has. Range [0, 1]. Never
    undefined. The paper's corpus figure is the mean over documents.
    """

    w: int = 1
    name: ClassVar[str] = "w_f1"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "it never is"

    def __post_init__(self) -> None:
        """Refuse a negative window."""
        check_whole("w", self.w)

    def counts(self, pairs: Pairs) -> Floats:
        """Hypothesis boundaries, near ones and all; reference boundaries, near ones and all."""
        hypothesis, reference = pairs.marks(pairs.hypothesis), pairs.marks(pairs.reference)
        return columns(
            (hypothesis & near(reference, self.w)).sum(1, dtype=torch.int32).numpy(),
            n_boundaries(pairs.hypothesis),
            (reference & near(hypothesis, self.w)).sum(1, dtype=torch.int32).numpy(),
            n_boundaries(pairs.reference),
        )

    def value(self, counts: Floats) -> Floats:
        """Harmonic mean of precision and recall."""
        near_h, hypothesis, near_r, reference = np.moveaxis(counts, -1, 0)
        return f_measure(ratio(near_h, hypothesis), ratio(near_r, reference))


@dataclass(frozen=True, slots=True)
class WF1OneToOne:
    """F of a maximum matching of boundaries at most ``w`` units apart, each used once.

    Coen, appendices A and G: 2·|M| / (|P| + |G|). 1 where neither side has a boundary, 0 where only
    one has. Range [0, 1], never above `WF1`. Never undefined.
    """

    w: int = 1
    name: ClassVar[str] = "w_f1_one_to_one"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "it never is"

    def __post_init__(self) -> None:
        """Refuse a negative window."""
        check_whole("w", self.w)

    def counts(self, pairs: Pairs) -> Floats:
        """Matched, hypothesis and reference boundaries."""
        matched = matched_boundaries(pairs, self.w)
        return columns(matched, n_boundaries(pairs.hypothesis), n_boundaries(pairs.reference))

    def value(self, counts: Floats) -> Floats:
        """Harmonic mean of precision and recall."""
        matched, hypothesis, reference = np.moveaxis(counts, -1, 0)
        return f_measure(ratio(matched, hypothesis), ratio(matched, reference))


@dataclass(frozen=True, slots=True)
class Bor:
    """Boundary over-segmentation ratio: hypothesis boundaries / reference boundaries.

    Coen §6.2. Range [0, ∞); above 1 the hypothesis is finer than the reference, below coarser.
    Over a corpus always pooled, Σ / Σ, as the paper's tables print it. Undefined without a
    reference boundary.
    """

    name: ClassVar[str] = "bor"
    direction: ClassVar[Direction] = "toward_1"
    undefined: ClassVar[str] = "the reference has no boundary"
    pooled: ClassVar[bool] = True

    def counts(self, pairs: Pairs) -> Floats:
        """Hypothesis and reference boundaries."""
        return columns(n_boundaries(pairs.hypothesis), n_boundaries(pairs.reference))

    def value(self, counts: Floats) -> Floats:
        """Hypothesis boundaries per reference boundary."""
        return ratio(counts[..., 0], counts[..., 1])


@dataclass(frozen=True, slots=True)
class Purity:
    """Σ over hypothesis segments of their largest overlap with a reference segment, / n.

    Coen §6.3 and appendix B. Range (0, 1]; 1 where no hypothesis segment crosses a reference
    boundary. Never falls when boundaries are added to the hypothesis (appendix C). Weighted by
    units within a document; the paper's corpus figure is the mean over documents. Never undefined.
    """

    name: ClassVar[str] = "purity"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "it never is"

    def counts(self, pairs: Pairs) -> Floats:
        """Units in their segment's largest overlap, and all."""
        marks = pairs.marks(pairs.hypothesis), pairs.marks(pairs.reference)
        overlaps = largest_overlaps(*marks, torch.from_numpy(pairs.n_units))
        return columns(overlaps.numpy(), pairs.n_units)

    def value(self, counts: Floats) -> Floats:
        """Share of the units."""
        return ratio(counts[..., 0], counts[..., 1])


@dataclass(frozen=True, slots=True)
class Coverage:
    """Σ over reference segments of their largest overlap with a hypothesis segment, / n.

    Coen §6.3 and appendix B. Range (0, 1]; 1 where no reference segment is cut. Never rises when
    boundaries are added to the hypothesis (appendix C). Weighted as `Purity`. Never undefined.
    """

    name: ClassVar[str] = "coverage"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "it never is"

    def counts(self, pairs: Pairs) -> Floats:
        """Units in their segment's largest overlap, and all."""
        marks = pairs.marks(pairs.reference), pairs.marks(pairs.hypothesis)
        overlaps = largest_overlaps(*marks, torch.from_numpy(pairs.n_units))
        return columns(overlaps.numpy(), pairs.n_units)

    def value(self, counts: Floats) -> Floats:
        """Share of the units."""
        return ratio(counts[..., 0], counts[..., 1])
