"""Scoring by torch, for devices but CPUs: as many documents at a time as their memory holds.

Every metric is a function of sums over segments of five pair values, with ``w`` the lengths:

=============  ==================================================================
squared        ``|x_i - x_j|²``
distance       ``|x_i - x_j|``
angle          ``a_ij = 1 - cos(x_i, x_j)`` = half the squared distance of the unit vectors
weighted       ``(w_i + w_j) a_ij``
product        ``w_i w_j a_ij``
=============  ==================================================================

and of the lengths themselves, by the two kinds of look-ups of `fast.tables`. Distances are measured
difference by difference, in float64: dot products would cancel where vectors are near. Units that
agree to within the rounding of their own type are identical, at distance exactly 0: the same
sentence encoded in two batches says nothing about a boundary.

Letters, here and in the whole room: ``b`` documents, ``h`` hypotheses, ``n`` units (padded),
``s`` segments (padded), ``d`` dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import psutil
import torch
from torch import Tensor
from torch.nn.functional import pad

from reffree.data.masses import Masses, hypothesis_width
from reffree.metrics.free.inputs import MOST_EXPONENT, check_finite, rounding_of
from reffree.metrics.free.result import Pool, Pooled, RawScores, document_pool
from reffree.metrics.registry import spelling
from reffree.util.arrays import Integers

if TYPE_CHECKING:
    from reffree.metrics.free.engine import Task

PAIR_BYTES = 96
"""Bytes per pair of units that are alive at the peak, while look-ups are made."""

COMPONENT_BYTES = 32
"""Bytes per component of a vector that are alive at the peak."""

UNIT_BYTES = 192
"""Bytes per hypothesis and unit that are alive at the peak, while metrics are computed."""

SEGMENT_BYTES = 288
"""Bytes per hypothesis and segment, likewise."""

LEAST_MEMORY = 1 << 20
"""Bytes below which a device whose memory is full is given up."""

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


class Layout:
    """``h`` hypotheses, each over one of the batch's documents."""

    def __init__(self, document: Integers, masses: Masses, n_units: int, exponent: Tensor) -> None:
        """Turn masses, padded with zeros at the end of each row, into edges."""
        edges = np.pad(masses, ((0, 0), (1, 0))).cumsum(1)
        both = np.concatenate([document[:, None], edges], axis=1)
        sent = send(torch.from_numpy(both), exponent.device)
        self.document = sent[:, 0]  # (h,) index of the hypothesis's document in the batch
        # (h, s + 1) units before each segment; the document's length from the last on
        self.edges = sent[:, 1:].contiguous()
        self.exponent = exponent[self.document]  # (h,) vectors were divided by 2 to this power
        self.length = self.edges[:, -1]  # (h,) units of the document
        self.masses = self.edges.diff(dim=1)  # (h, s) units of each segment, 0 in the padding
        self.is_segment = self.masses > 0  # (h, s)
        self.n_segments = self.is_segment.sum(1)  # (h,)
        self.following = pad(self.masses[:, 1:], (0, 1))  # (h, s) units of the next, 0 without one
        self.previous = pad(self.masses[:, :-1], (1, 0))  # (h, s) of the one before
        self.has_successor = self.following > 0  # (h, s) those that ARP scores
        unit = torch.arange(n_units, device=self.edges.device)
        self.unit = unit.expand(len(self.edges), -1).contiguous()  # (h, n) index of each unit
        # (h, n) segment of each unit; ``s`` in the padding
        self.segment = torch.searchsorted(self.edges[:, 1:].contiguous(), self.unit, right=True)

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
            [send(document.detach(), device).double() for document in documents], batch_first=True
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
            # [c, i] over the pairs of i with c … i - 1
            before = pairs.triu(1).flip(1).cumsum(1).flip(1)
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
                places = (rows * (n + 1) + layout.edge(place) for place in EDGES[name])
                first, last = (torch.take(self._edges[value], p * n + layout.unit) for p in places)
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


@dataclass(frozen=True)
class TorchScores:
    """Scores of some hypotheses by one metric."""

    segments: Tensor  # (h, s) NaN where a segment has no score
    documents: Tensor  # (h,) NaN where a document has none
    left_out: Tensor  # (h,)

    @classmethod
    def from_segments(cls, segments: Tensor, is_defined: Tensor) -> TorchScores:
        """Average the defined segments of each document (eq. 4)."""
        segments = torch.where(is_defined, segments, torch.nan)
        documents = pool_tensor(segments, is_defined, "mean")
        return cls(segments, documents, torch.zeros_like(documents))


def pool_tensor(segments: Tensor, masses: Tensor, pool: Pool) -> Tensor:
    """Pool the scores of segments as `pooling.pool_segments` does, wherever they are."""
    is_defined = ~segments.isnan()
    count = is_defined.sum(1)
    if pool == "median":
        ordered = pad(segments.sort(1).values, (0, 1), value=torch.nan)  # NaN comes last
        low, high = ((count - 1).clamp(min=0) // 2)[:, None], (count // 2)[:, None]
        middle = (ordered.gather(1, low) + ordered.gather(1, high))[:, 0] / 2
        return torch.where(count > 0, middle, torch.nan)
    weights = torch.where(is_defined, masses if pool == "length" else 1.0, 0.0)
    total = (weights * segments.nan_to_num(0.0)).sum(1)
    return torch.where(count > 0, total / weights.sum(1), torch.nan)


def free_memory(device: torch.device) -> int:
    """Bytes that are free on a device, those among them that torch holds; of the host for others.

    >>> free_memory(torch.device("cpu")) > 0
    True
    """
    if device.type not in ("cuda", "xpu"):
        return int(psutil.virtual_memory().available)
    module = torch.get_device_module(device)
    free, _ = module.mem_get_info(device)
    return int(free + module.memory_reserved(device) - module.memory_allocated(device))


class TorchTask:
    """What is to be scored on one device by metrics made of pair sums, and in what memory."""

    def __init__(self, device: torch.device, task: Task, metrics: Sequence[Any]) -> None:
        """Take a quarter of what is free on the device, unless told."""
        self.device, self.task = device, task
        self.metrics = metrics  # with ``requests`` and ``from_sums``, as `Arp` has them
        # Half for look-ups, a quarter each for vectors and hypotheses.
        self.memory = task.limit or free_memory(device) // 4

    def score(
        self, chosen: Sequence[int]
    ) -> Iterator[tuple[list[int], dict[str, list[RawScores]]]]:
        """Score documents: those done together, and by metric the scores of each.

        A document that has no place on the device, whatever is scored beside it, is left out. Where
        memory is full all the same, half as much is tried, and so on.
        """
        self._check_finite(chosen)
        pending = list(self._batches(chosen))
        while pending:
            batch = pending.pop(0)
            try:
                scored = self.score_batch(batch)
            except torch.OutOfMemoryError:
                scored = {}  # what holds the tensors that were made is gone with the exception
            if scored:
                yield batch, scored
                continue
            if self.device.type in ("cuda", "xpu"):
                torch.get_device_module(self.device).empty_cache()
            if len(batch) > 1:
                pending[:0] = [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
            elif self.memory >= LEAST_MEMORY:
                self.memory //= 2
                pending.insert(0, batch)

    def _check_finite(self, chosen: Sequence[int]) -> None:
        """Refuse NaN and infinity; waits once for all that is not on the host."""
        there = [i for i in chosen if self.task.documents[i].device not in ("cpu", "meta")]
        sums = [self.task.documents[i].vectors.detach().sum(dtype=torch.float64) for i in there]
        found = dict(zip(there, torch.stack(sums).tolist() if sums else [], strict=True))
        for i in chosen:
            if not math.isfinite(found.get(i, math.nan)):
                check_finite(self.task.documents[i], self.task.names[i])

    def _batches(self, chosen: Sequence[int]) -> Iterator[list[int]]:
        """Group documents of similar length that have a place together."""
        batch: list[int] = []
        for i in sorted(chosen, key=lambda i: (len(self.task.documents[i]), i)):
            n, d = self.task.documents[i].vectors.shape
            if not self._holds(1, n, d):
                continue
            is_alike = not batch or self.task.documents[batch[0]].vectors.shape[1] == d
            if batch and not (is_alike and self._holds(len(batch) + 1, n, d)):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def _holds(self, count: int, n_units: int, dimensions: int) -> bool:
        """Whether so many documents have a place together."""
        pairs, components = count * n_units**2, count * n_units * dimensions
        return 2 * PAIR_BYTES * pairs <= self.memory >= 4 * COMPONENT_BYTES * components

    def score_batch(self, batch: list[int]) -> dict[str, list[RawScores]]:
        """Score documents together: by metric, the scores of each.

        Nothing is read back from the device: the host only lays out hypotheses and says what is to
        be done.
        """
        requests = chain.from_iterable(metric.requests for metric in self.metrics)
        documents = [self.task.documents[i].as_tensor() for i in batch]
        look_ups = LookUps(documents, self.device, requests)
        width = max(hypothesis_width(self.task.hypotheses[i]) for i in batch)
        found: dict[str, list[RawScores]] = {spelling(metric): [] for metric in self.metrics}
        for slots, masses in self._parts(batch, look_ups.n_units, width):
            layout = Layout(slots, masses, look_ups.n_units, look_ups.exponent)
            sums = look_ups.sums(layout)
            for metric in self.metrics:
                found[spelling(metric)].append(self._scores(metric, layout, sums))
        counts = [len(self.task.hypotheses[i]) for i in batch]
        by_document = {}
        for name, parts in found.items():
            columns = [
                torch.split(torch.cat([getattr(part, field) for part in parts]), counts)
                for field in ("documents", "weights", "left_out", "segments")
            ]
            by_document[name] = [RawScores(*each) for each in zip(*columns, strict=True)]
        return by_document

    def _scores(self, metric: Any, layout: Layout, sums: Sums) -> RawScores:  # noqa: ANN401
        """Score the hypotheses laid out by one metric, those without a boundary by the policy."""
        scores = metric.from_sums(layout, sums)
        documents, segments = scores.documents, scores.segments
        if isinstance(metric, Pooled) and metric.pool_n != "mean":
            documents = pool_tensor(segments, layout.masses, metric.pool_n)
        weights = torch.ones_like(documents)
        if document_pool(metric) == "length":
            weights = layout.length.double()
        raw = metric.orientation.unsegmented(self.task.unsegmented)
        documents = torch.where(layout.n_segments == 1, raw, documents)
        if not self.task.keep_segments:  # nor a view that would keep all of them
            segments = segments.new_empty(len(documents), 0)
        return RawScores(documents, weights, scores.left_out, segments)

    def _parts(
        self, batch: list[int], n_units: int, width: int
    ) -> Iterator[tuple[Integers, Masses]]:
        """Hypotheses that are scored together: the place of each one's document, and masses."""
        step = max(1, self.memory // (4 * (UNIT_BYTES * n_units + SEGMENT_BYTES * width)))
        pending: list[tuple[int, Masses]] = []
        for slot, i in enumerate(batch):
            for start in range(0, max(1, len(self.task.hypotheses[i])), step):
                masses = self.task.masses(i, start, start + step)
                if pending and sum(len(m) for _, m in pending) + len(masses) > step:
                    yield _stack(pending, width)
                    pending = []
                pending.append((slot, masses))
        yield _stack(pending, width)


def _stack(parts: list[tuple[int, Masses]], width: int) -> tuple[Integers, Masses]:
    """Put masses of several documents under one another, with each row's document."""
    slots = np.repeat([slot for slot, _ in parts], [len(masses) for _, masses in parts])
    padded = [np.pad(masses, ((0, 0), (0, width - masses.shape[1]))) for _, masses in parts]
    return slots, np.concatenate(padded)


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
