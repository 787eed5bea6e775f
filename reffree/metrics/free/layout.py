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

from reffree.metrics.free.arithmetic import power_of_two
from reffree.util.arrays import Integers

if TYPE_CHECKING:
    import torch
    from torch import Tensor


UnitSpan = Literal["own", "previous", "next"]
"""Segments a unit is held against: its own and those beside it."""

SetName = Literal["segment", "both", "intra", "inter"]
"""Sets of units for every segment: itself, with the next one, and ARP's two (eq. 13-16)."""


class Places(NamedTuple):
    """Units ``[start, stop)`` for every segment; none where it has no such set."""

    start: Tensor  # (h, s)
    stop: Tensor  # (h, s)


@dataclass(frozen=True)
class Layout:
    """``h`` hypotheses, each over one of the batch's documents."""

    document: Tensor  # (h,) index of the hypothesis's document in the batch
    edges: Tensor  # (h, s + 1) units before each segment; the document's length from the last on
    n_units: int  # n, the padded length
    on_host: Integers  # the edges, where they can be read without waiting

    @classmethod
    def pack(
        cls,
        document: NDArray[np.int64],
        masses: NDArray[np.int64],
        n_units: int,
        device: torch.device,
    ) -> Layout:
        """Turn masses, padded with zeros at the end of each row, into edges."""
        edges = np.pad(masses, ((0, 0), (1, 0))).cumsum(1)
        both = sent(np.concatenate([document[:, None], edges], axis=1), device)
        return cls(both[:, 0], both[:, 1:].contiguous(), n_units, edges)

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
    def has_successor(self) -> Tensor:
        """True for every segment but the last: those that ARP scores."""
        return self.following > 0  # (h, s)

    @cached_property
    def following(self) -> Tensor:
        """Units of the next segment, 0 where there is none."""
        import torch

        return torch.nn.functional.pad(self.masses[:, 1:], (0, 1))  # (h, s)

    @cached_property
    def previous(self) -> Tensor:
        """Units of the segment before, 0 where there is none."""
        import torch

        return torch.nn.functional.pad(self.masses[:, :-1], (1, 0))  # (h, s)

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

    @cached_property
    def is_unit(self) -> Tensor:
        """False in the padding."""
        return self.unit < self.length[:, None]  # (h, n)

    def at_unit(self, per_segment: Tensor) -> Tensor:
        """Carry a per-segment value to the segment's units."""
        return per_segment.gather(1, self.segment.clamp(max=per_segment.shape[1] - 1))  # (h, n)

    def edge(self, place: int, units: slice) -> Tensor:
        """Edges around some units: 0 and 1 are their segment's own, -1 and 2 those beyond.

        Where there is no segment on that side, the own edge; the document's length in the padding.
        """
        last = self.edges.shape[1] - 1
        return self.edges.gather(1, (self.segment[:, units] + place).clamp(0, last))

    def segment_sum(self, per_unit: Tensor, largest: Tensor | float) -> Tensor:
        """Sum over the units of each segment, 0 in the padding.

        Numbers of at most ``largest`` (h,) are added as whole ones, so in any order: of 62 bits,
        less those of the document's length and of the largest.
        """
        import torch

        bits = 62 - torch.frexp(self.length * largest + 1.0).exponent
        scale = power_of_two(bits)[:, None]  # (h, 1)
        whole = torch.where(self.is_unit, per_unit * scale, 0.0).round().long()
        sums = torch.nn.functional.pad(whole.cumsum(1), (1, 0))  # (h, n + 1)
        return sums.gather(1, self.edges).diff(dim=1) / scale  # (h, s)

    def places(self, name: SetName) -> Places:
        """Units of a set for every segment."""
        return self._places[name]

    @cached_property
    def arp_windows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Units compared around each boundary: ``cut``, and how many left and right of it.

        ``cut = min(2 m[i+1], m[i])``, left ``ceil(cut/2)``, right ``floor(cut/2)``; a one-unit
        segment is held against one unit on each side (ARP paper, eq. 13-16).
        """
        import torch

        cut = torch.minimum(2 * self.following, self.masses)
        return cut, (cut + 1) // 2, torch.where(self.masses == 1, 1, cut // 2)

    @cached_property
    def _places(self) -> dict[SetName, Places]:
        start, stop = self.edges[:, :-1], self.edges[:, 1:]
        cut, left, right = self.arp_windows
        return {
            "segment": self._where(self.is_segment, start, stop),
            "both": self._where(self.has_successor, start, stop + self.following),
            "intra": self._where(self.has_successor, stop - cut, stop),
            "inter": self._where(self.has_successor, stop - left, stop + right),
        }

    def _where(self, is_there: Tensor, start: Tensor, stop: Tensor) -> Places:
        import torch

        return Places(torch.where(is_there, start, 0), torch.where(is_there, stop, 0))

    @cached_property
    def reach(self) -> tuple[Integers, Integers]:
        """For every unit, before and after which units no hypothesis holds anything against it.

        Both move right with the unit. Hypotheses without a boundary are left out.
        """
        edges = self.on_host[self.on_host[:, 1] < self.on_host[:, -1]]
        low, high = np.arange(self.n_units), np.arange(1, self.n_units + 1)
        if edges.size:
            around = np.pad(edges, ((0, 0), (1, 1)), mode="edge")
            before, start, stop, after = (around[:, k : k + edges.shape[1] - 1] for k in range(4))
            is_segment = stop > start
            np.minimum.at(low, stop[is_segment] - 1, before[is_segment])
            np.maximum.at(high, start[is_segment], after[is_segment])
        return np.minimum.accumulate(low[::-1])[::-1], np.maximum.accumulate(high)

    @cached_property
    def last_units(self) -> tuple[Integers, Integers]:
        """The first and the last unit that may end any set of each segment: (s,) both rising."""
        edges = self.on_host
        stop = edges[:, 1:]
        after = np.concatenate([edges[:, 2:], edges[:, -1:]], axis=1)
        return np.minimum.accumulate(stop.min(0)[::-1] - 1)[::-1], np.maximum.accumulate(
            after.max(0) - 1
        )


def sent(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """Copy an array to a device; the host does not wait for it."""
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
