"""Pair values between units, summed over segments by a few look-ups: for devices but CPUs.

Every metric is a function of sums over segments of five pair values, with ``w`` the lengths:

=============  ==================================================================
squared        ``|x_i - x_j|²``
distance       ``|x_i - x_j|``
angle          ``a_ij = 1 - cos(x_i, x_j)`` = half the squared distance of the unit vectors
weighted       ``(w_i + w_j) a_ij``
product        ``w_i w_j a_ij``
=============  ==================================================================

and of the lengths themselves. As for the compiled loop, there are two kinds of look-ups, rows of
edges ``c`` by columns of units ``i``: the signed sum over the units from ``i`` outwards to the
edge, and the sum over all pairs of the units ``c … i``. Both add terms that are not negative: no
dispersion is the small difference of two large numbers. Distances are measured difference by
difference, in float64: dot products would cancel where vectors are near. Units that agree to within
the rounding of their own type are identical, at distance exactly 0: the same sentence encoded in
two batches says nothing about a boundary.

Letters, here and in the whole room: ``b`` documents, ``h`` hypotheses, ``n`` units (padded),
``s`` segments (padded), ``d`` dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from reffree.metrics.free.inputs import MOST_EXPONENT, rounding_of

UnitSpan = Literal["own", "previous", "next"]
"""Segments a unit is held against: its own and those beside it."""

SetName = Literal["segment", "both", "intra", "inter"]
"""Sets of units for every segment: itself, with the next one, and ARP's two (eq. 13-16)."""

PairValue = Literal["squared", "distance", "angle", "weighted", "product", "length"]
Request = tuple[PairValue, UnitSpan | SetName]
"""A value, summed for every unit over a segment or, for every segment, over the pairs of a set."""

Sums = dict[Request, Tensor]
"""(h, n) for segments beside units, (h, s) for sets, 0 where there is none."""

EDGES: dict[UnitSpan | SetName, tuple[int, int]] = {
    "previous": (-1, 0),
    "own": (0, 1),
    "next": (1, 2),
}
"""From which edge to which a unit's values are summed: see `Layout.edge`."""


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


class LookUps:
    """The documents of one batch as padded vectors, and sums of their pair values.

    Scores do not depend on scale, so each document is first divided by a power of two near its
    largest component: nothing overflows and no bit is lost.
    """

    def __init__(
        self, documents: list[Tensor], device: torch.device, requests: Iterable[Request]
    ) -> None:
        """Copy to float64 on the device and add up; the caller's tensors are not touched."""
        padded = torch.nn.utils.rnn.pad_sequence(
            [send(document.detach(), device).double() for document in documents],
            batch_first=True,
        )
        exponent = torch.frexp(padded.abs().amax((1, 2))).exponent
        self.exponent = exponent.clamp(-MOST_EXPONENT, MOST_EXPONENT)  # (b,)
        self.vectors = padded * power_of_two(-self.exponent)[:, None, None]  # (b, n, d)
        self.length = self.vectors.square().sum(2).sqrt()  # (b, n)
        self.n_units = self.vectors.shape[1]
        types = [str(document.dtype).removeprefix("torch.") for document in documents]
        rounding = torch.tensor([rounding_of(name) for name in types], dtype=torch.float64)
        self._rounding = send(rounding, device)[:, None]
        self.requests = sorted(set(requests))
        by_unit = {value for value, name in self.requests if name in EDGES}
        by_set = {value for value, name in self.requests if name not in EDGES}
        self._edges: dict[PairValue, Tensor] = {}  # (b, n + 1, n) sums from a unit to an edge
        self._sets: dict[PairValue, Tensor] = {}  # (b, n, n) over the pairs of units from … to
        for value, pairs in self._pair_values(by_unit | by_set):
            before = (
                pairs.triu(1).flip(1).cumsum(1).flip(1)
            )  # [c, i] over the pairs of i with c … i - 1
            if value in by_unit:
                after = pairs.tril(-1).cumsum(1)
                self._edges[value] = pad(after, (0, 0, 1, 0)) - pad(before, (0, 0, 0, 1))
            if value in by_set:
                self._sets[value] = before.cumsum(2)
        if "length" in by_set:
            each = self.length[:, None].expand(-1, self.n_units, -1).triu()
            self._sets["length"] = each.cumsum(2)

    def sums(self, layout: Layout) -> Sums:
        """Look up every request for every hypothesis."""
        n, sums = self.n_units, {}
        rows = layout.document[:, None]
        for value, name in self.requests:
            if name in EDGES:
                first, last = (
                    torch.take(
                        self._edges[value],
                        (rows * (n + 1) + layout.edge(place)) * n + layout.unit,
                    )
                    for place in EDGES[name]
                )
                sums[value, name] = last - first
            else:
                start, stop = layout.places(name)  # type: ignore[arg-type]
                index = (rows * n + start) * n + (stop - 1).clamp(min=0)
                found = torch.take(self._sets[value], index)
                sums[value, name] = torch.where(stop > start, found, 0.0)
        return sums

    def _pair_values(self, values: set[PairValue]) -> Iterator[tuple[PairValue, Tensor]]:
        """Values of all pairs, (b, n, n) each; what was given may be overwritten after its turn."""
        w = self.length
        if values & {"squared", "distance"}:
            squared = _squared_distances(self.vectors)
            scale = w.square() * self._rounding
            squared.masked_fill_(squared <= scale[:, :, None] + scale[:, None], 0.0)
            if "squared" in values:
                yield "squared", squared
            if "distance" in values:
                yield "distance", squared.sqrt_()
            del squared
        if values & {"angle", "weighted", "product"}:
            # A zero vector has no direction: its cosine with anything is 0.
            is_zero = w == 0
            angle = _squared_distances(self.vectors / torch.where(is_zero, 1.0, w)[:, :, None])
            angle = angle.div_(2.0)
            angle.masked_fill_(angle <= self._rounding[:, :, None], 0.0)
            angle.masked_fill_(is_zero[:, :, None] | is_zero[:, None], 1.0)
            if "angle" in values:
                yield "angle", angle
            if "weighted" in values:
                yield "weighted", (w[:, :, None] + w[:, None]).mul_(angle)
            if "product" in values:
                yield "product", angle.mul_(w[:, :, None]).mul_(w[:, None])


def _squared_distances(x: Tensor) -> Tensor:
    """Squared distances of the vectors (b, n, d) of each document: (b, n, n)."""
    exact = "donot_use_mm_for_euclid_dist"
    return torch.cdist(x, x, compute_mode=exact).square_()


def power_of_two(exponent: Tensor) -> Tensor:
    """2 to whole numbers within ±1000, exactly, whatever a device's own function rounds."""
    return ((exponent.long() + 1023) << 52).view(torch.float64)


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to a device; the host does not wait for it."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the second dimension where ``mask`` holds; 0 where it never does."""
    return torch.where(mask, values, 0.0).sum(1) / mask.sum(1).clamp(min=1)
