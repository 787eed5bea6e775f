"""Where every unit of every hypothesis stands: padded index tensors, built once per batch.

Letters, here and in the whole room: ``b`` documents, ``h`` hypotheses, ``n`` units (padded),
``s`` segments (padded), ``d`` dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor


SpanName = Literal["own", "previous", "next", "intra", "inter_left", "inter_right"]


class ColumnRange(NamedTuple):
    """For every unit the columns ``[low, high)`` it is compared with; empty where it has none."""

    low: Tensor  # (h, n)
    high: Tensor  # (h, n)


@dataclass(frozen=True)
class Layout:
    """``h`` hypotheses, each over one of the batch's documents."""

    document: Tensor  # (h,) index of the hypothesis's document in the batch
    edges: Tensor  # (h, s + 1) units before each segment; the document's length from the last on
    n_segments: Tensor  # (h,)
    n_units: int  # n, the padded length

    @classmethod
    def pack(
        cls,
        document: NDArray[np.int64],
        masses: NDArray[np.int64],
        n_units: int,
        device: torch.device,
    ) -> Layout:
        """Turn masses, padded with zeros at the end of each row, into edges."""
        import torch

        edges = np.pad(masses, ((0, 0), (1, 0))).cumsum(1)
        return cls(
            document=torch.from_numpy(document).to(device),
            edges=torch.from_numpy(edges).to(device),
            n_segments=torch.from_numpy((masses > 0).sum(1)).to(device),
            n_units=n_units,
        )

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
    def has_successor(self) -> Tensor:
        """True for every segment but the last: those that ARP scores."""
        import torch

        index = torch.arange(self.masses.shape[1], device=self.edges.device)
        return index < self.n_segments[:, None] - 1  # (h, s)

    @cached_property
    def unit(self) -> Tensor:
        """Index of each unit, on every row."""
        import torch

        index = torch.arange(self.n_units, device=self.edges.device)
        return index.expand(len(self.edges), -1).contiguous()  # (h, n)

    @cached_property
    def segment(self) -> Tensor:
        """Segment of each unit; ``s`` in the padding."""
        import torch

        inner = self.edges[:, 1:].contiguous()
        return torch.searchsorted(inner, self.unit, right=True)  # (h, n)

    def at_unit(self, per_segment: Tensor, shift: int = 0) -> Tensor:
        """Carry a per-segment value to the units of the segment ``shift`` places further back."""
        s = per_segment.shape[1]
        return per_segment.gather(1, (self.segment - shift).clamp(0, s - 1))  # (h, n)

    def segment_sum(self, per_unit: Tensor, shift: int = 0) -> Tensor:
        """Sum over the units of each segment, filed under the segment ``shift`` places back.

        Padded units, and units filed before the first segment, must carry 0.
        """
        s = self.masses.shape[1]
        total = per_unit.new_zeros(len(per_unit), s + 1)
        index = (self.segment - shift).clamp(min=0)
        return total.scatter_add_(1, index, per_unit)[:, :s]  # (h, s)

    @cached_property
    def arp_windows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Units compared around each boundary: ``cut``, and how many left and right of it.

        ``cut = min(2 m[i+1], m[i])``, left ``ceil(cut/2)``, right ``floor(cut/2)``; a one-unit
        segment is held against one unit on each side (ARP paper, eq. 13-16).
        """
        import torch

        following = torch.nn.functional.pad(self.masses[:, 1:], (0, 1))  # (h, s)
        cut = torch.minimum(2 * following, self.masses)
        left = (cut + 1) // 2
        right = torch.where(self.masses == 1, 1, cut // 2)
        return tuple(torch.where(self.has_successor, x, 0) for x in (cut, left, right))  # type: ignore[return-value]

    def span(self, name: SpanName) -> ColumnRange:
        """Columns each unit's pair values are summed over; empty for units without that role."""
        return self._spans[name]

    @cached_property
    def _spans(self) -> dict[SpanName, ColumnRange]:
        import torch

        start = self.at_unit(self.edges[:, :-1])
        stop = self.at_unit(self.edges[:, 1:])
        before = torch.where(self.segment > 0, self.at_unit(self.edges[:, :-1], shift=1), start)
        after = self.at_unit(self.edges[:, 1:], shift=-1)  # the last segment's own stop at the end
        cut, left, right = self.arp_windows
        own_cut, own_left, own_right = map(self.at_unit, (cut, left, right))
        back_left = torch.where(self.segment > 0, self.at_unit(left, shift=1), 0)
        back_right = torch.where(self.segment > 0, self.at_unit(right, shift=1), 0)
        u = self.unit
        is_unit = u < self.length[:, None]
        return {
            "own": self._where(is_unit, start, stop),
            "previous": self._where(is_unit, before, start),
            "next": self._where(is_unit, stop, after),
            "intra": self._where(is_unit & (u >= stop - own_cut), stop - own_cut, stop),
            "inter_left": self._where(
                is_unit & (u >= stop - own_left), stop - own_left, stop + own_right
            ),
            "inter_right": self._where(
                is_unit & (u < start + back_right), start - back_left, start + back_right
            ),
        }

    def _where(self, has_role: Tensor, low: Tensor, high: Tensor) -> ColumnRange:
        import torch

        return ColumnRange(
            torch.where(has_role, low, self.unit), torch.where(has_role, high, self.unit)
        )
