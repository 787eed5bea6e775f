"""Where every unit of every hypothesis stands: padded index tensors, built once per batch.

Letters, here and in the whole room: ``b`` documents, ``h`` hypotheses, ``n`` units (padded),
``s`` segments (padded), ``d`` dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

UnitSpan = Literal["own", "previous", "next"]
"""Segments a unit is held against: its own and those beside it."""

SetName = Literal["segment", "both", "intra", "inter"]
"""Sets of units for every segment: itself, with the next one, and ARP's two (eq. 13-16)."""


@dataclass(frozen=True)
class Layout:
    """``h`` hypotheses, each over one of the batch's documents."""

    document: Tensor  # (h,) index of the hypothesis's document in the batch
    edges: Tensor  # (h, s + 1) units before each segment; the document's length from the last on
    exponent: Tensor  # (h,) the document's vectors were divided by 2 to this power
    n_units: int  # n, the padded length

    @classmethod
    def pack(
        cls,
        document: NDArray[np.int64],
        masses: NDArray[np.int64],
        n_units: int,
        exponent: Tensor,
    ) -> Layout:
        """Turn masses, padded with zeros at the end of each row, into edges."""
        edges = np.pad(masses, ((0, 0), (1, 0))).cumsum(1)
        both = np.concatenate([document[:, None], edges], axis=1)
        sent = send(torch.from_numpy(both), exponent.device)
        return cls(sent[:, 0], sent[:, 1:].contiguous(), exponent[sent[:, 0]], n_units)

    @cached_property
    def masses(self) -> Tensor:
        """Units per segment, 0 in the padding."""
        return self.edges.diff(dim=1)  # (h, s)

    @cached_property
    def length(self) -> Tensor:
        """Units of each hypothesis's document."""
        return self.edges[:, -1]  # (h,)

    @cached_property
    def is_segment(self) -> Tensor:
        """False in the padding."""
        return self.masses > 0  # (h, s)

    @cached_property
    def n_segments(self) -> Tensor:
        """Segments of each hypothesis."""
        return self.is_segment.sum(1)  # (h,)

    @cached_property
    def following(self) -> Tensor:
        """Units of the next segment, 0 where there is none."""
        return pad(self.masses[:, 1:], (0, 1))  # (h, s)

    @cached_property
    def previous(self) -> Tensor:
        """Units of the segment before, 0 where there is none."""
        return pad(self.masses[:, :-1], (1, 0))  # (h, s)

    @cached_property
    def has_successor(self) -> Tensor:
        """True for every segment but the last: those that ARP scores."""
        return self.following > 0  # (h, s)

    @cached_property
    def unit(self) -> Tensor:
        """Index of each unit, on every row."""
        index = torch.arange(self.n_units, device=self.edges.device)
        return index.expand(len(self.edges), -1).contiguous()  # (h, n)

    @cached_property
    def segment(self) -> Tensor:
        """Segment of each unit; ``s`` in the padding."""
        return torch.searchsorted(self.edges[:, 1:].contiguous(), self.unit, right=True)  # (h, n)

    def at_unit(self, per_segment: Tensor) -> Tensor:
        """Carry a per-segment value to the segment's units."""
        return per_segment.gather(1, self.segment.clamp(max=per_segment.shape[1] - 1))  # (h, n)

    def edge(self, place: int) -> Tensor:
        """Edges around each unit: 0 and 1 are its segment's own, -1 and 2 those beyond, (h, n).

        Where there is no segment on that side, the own edge; the document's length in the padding.
        """
        return self.edges.gather(1, (self.segment + place).clamp(0, self.edges.shape[1] - 1))

    def segment_sum(self, per_unit: Tensor) -> Tensor:
        """Sum over the units of each segment, 0 in the padding."""
        inside = torch.where(self.unit < self.length[:, None], per_unit, 0.0)
        return pad(inside.cumsum(1), (1, 0)).gather(1, self.edges).diff(dim=1)  # (h, s)

    def places(self, name: SetName) -> tuple[Tensor, Tensor]:
        """Units ``[start, stop)`` of a set for every segment, (h, s) each; 0, 0 without such a set.

        Around a boundary ARP compares ``cut = min(2 m[i+1], m[i])`` units, the left ``ceil(cut/2)``
        and the right ``floor(cut/2)``; a one-unit segment is held against one unit on each side
        (ARP paper, eq. 13-16).
        """
        start, stop = self.edges[:, :-1], self.edges[:, 1:]
        cut = torch.minimum(2 * self.following, self.masses)
        is_there = self.has_successor
        match name:
            case "segment":
                is_there = self.is_segment
            case "both":
                stop = stop + self.following
            case "intra":
                start = stop - cut
            case "inter":
                right = torch.where(self.masses == 1, 1, cut // 2)
                start, stop = stop - (cut + 1) // 2, stop + right
        return torch.where(is_there, start, 0), torch.where(is_there, stop, 0)


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to a device; the host does not wait for it."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the second dimension where ``mask`` holds; 0 where it never does."""
    return torch.where(mask, values, 0.0).sum(1) / mask.sum(1).clamp(min=1)
