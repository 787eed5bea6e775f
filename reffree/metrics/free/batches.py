"""Documents scored together by torch, as many at a time as a device's memory holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import torch
from torch import Tensor
from torch.nn.functional import pad

from reffree.data.masses import Masses, hypothesis_width
from reffree.metrics.free.inputs import check_finite
from reffree.metrics.free.pairs import Layout, LookUps, Sums
from reffree.metrics.free.pooling import Pool, Pooled, document_pool
from reffree.metrics.free.result import RawScores
from reffree.util.arrays import Integers
from reffree.util.naming import spelling_of

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


Scored = tuple[list[int], dict[str, list[RawScores]]]
"""Documents that were scored together, and by metric the scores of each."""


@dataclass
class TorchTask:
    """What is to be scored on one device by metrics made of pair sums, and in what memory."""

    device: torch.device
    task: Task
    metrics: Sequence[Any]  # with ``requests`` and ``from_sums``, as `Arp` has them
    memory: int = field(init=False)  # half for look-ups, a quarter each for vectors and hypotheses

    def __post_init__(self) -> None:
        """Take a quarter of what is free on the device, unless told."""
        self.memory = self.task.limit or free_memory(self.device) // 4

    def holds(self, count: int, n_units: int, dimensions: int) -> bool:
        """Whether so many documents have a place together."""
        pairs, components = count * n_units**2, count * n_units * dimensions
        return 2 * PAIR_BYTES * pairs <= self.memory >= 4 * COMPONENT_BYTES * components

    def score(self, chosen: Sequence[int]) -> Iterator[Scored]:
        """Score documents: those done together, and by metric the scores of each.

        A document that has no place on the device, whatever is scored beside it, is left out. Where
        memory is full all the same, half as much is tried, and so on.
        """
        self._check_finite(chosen)
        pending = list(self._batches(chosen))
        while pending:
            batch = pending.pop(0)
            scored = self._try(batch)
            if scored is not None:
                yield batch, scored
            elif len(batch) > 1:
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
            if not self.holds(1, n, d):
                continue
            is_alike = not batch or self.task.documents[batch[0]].vectors.shape[1] == d
            if batch and not (is_alike and self.holds(len(batch) + 1, n, d)):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def _try(self, batch: list[int]) -> dict[str, list[RawScores]] | None:
        """Scores of a batch; None if the device's memory does not hold it."""
        try:
            return self.score_batch(batch)
        except torch.OutOfMemoryError:
            pass  # what holds the tensors that were made is gone with the exception
        if self.device.type in ("cuda", "xpu"):
            torch.get_device_module(self.device).empty_cache()
        return None

    def score_batch(self, batch: list[int]) -> dict[str, list[RawScores]]:
        """Score documents together: by metric, the scores of each.

        Nothing is read back from the device: the host only lays out hypotheses and says what is to
        be done.
        """
        requests = chain.from_iterable(metric.requests for metric in self.metrics)
        documents = [self.task.documents[i].as_tensor() for i in batch]
        look_ups = LookUps(documents, self.device, requests)
        width = max(hypothesis_width(self.task.hypotheses[i]) for i in batch)
        found: dict[str, list[RawScores]] = {spelling_of(metric): [] for metric in self.metrics}
        for slots, masses in self._parts(batch, look_ups.n_units, width):
            layout = Layout.pack(slots, masses, look_ups.n_units, look_ups.exponent)
            sums = look_ups.sums(layout)
            for metric in self.metrics:
                found[spelling_of(metric)].append(self._scores(metric, layout, sums))
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
