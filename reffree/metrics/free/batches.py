"""Documents scored together by torch, as many and as much at a time as a device's memory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import cast

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from reffree.data.masses import Masses
from reffree.metrics.free.layout import Layout
from reffree.metrics.free.metrics import PairMetric, spelling
from reffree.metrics.free.pairs import Units
from reffree.metrics.free.pooling import Pooled, document_pool, needs_segments, pool_segments
from reffree.metrics.free.result import RawScores, Unsegmented
from reffree.util.errors import InputError, Place, counted

PAIR_BYTES = 96
"""Bytes per pair of units that are alive at the peak, while look-ups are made."""

COMPONENT_BYTES = 96
"""Bytes per component of a vector that are alive at the peak, while it is cut into digits."""

UNIT_BYTES = 192
"""Bytes per hypothesis and unit that are alive at the peak, while metrics are computed."""

SEGMENT_BYTES = 288
"""Bytes per hypothesis and segment, likewise."""

LEAST_MEMORY = 1 << 20
"""Bytes below which a device whose memory is full is given up."""

CPU_PAIRS = 1 << 22
"""Pairs of units at a time on CPUs, whose caches are small."""

CPU_HYPOTHESES = 1 << 20
"""Hypotheses × units at a time on CPUs."""


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


@dataclass
class Budget:
    """What scoring on a device may take, less each time that it proves too much."""

    device: torch.device
    memory: int  # bytes: half for look-ups, a quarter each for vectors and for hypotheses

    @classmethod
    def of(cls, device: torch.device, limit: int | None) -> Budget:
        """A quarter of what is free on the device, unless told."""
        return cls(device, limit or free_memory(device) // 4)

    @property
    def pairs(self) -> int:
        """Pairs of units whose look-ups are made together."""
        fitting = max(1, self.memory // (2 * PAIR_BYTES))
        return min(fitting, CPU_PAIRS) if self.device.type == "cpu" else fitting

    def holds(self, count: int, n_units: int, dimensions: int) -> bool:
        """Whether so many documents have a place together."""
        components = count * n_units * dimensions
        return count * n_units**2 <= self.pairs and components <= (
            self.memory // (4 * COMPONENT_BYTES)
        )

    def hypotheses(self, n_units: int, n_segments: int) -> int:
        """How many hypotheses of so many units and segments are scored together."""
        each = UNIT_BYTES * n_units + SEGMENT_BYTES * n_segments
        fitting = self.memory // (4 * each)
        if self.device.type == "cpu":
            fitting = min(fitting, CPU_HYPOTHESES // n_units)
        return max(1, fitting)

    def halve(self, n_units: int, name: str) -> None:
        """Take half from now on, after the device's memory was full; refuse if that is nothing."""
        if self.memory < LEAST_MEMORY:
            raise InputError(
                f"{counted(n_units, 'unit')} that have no place in the memory of "
                f"{self.device}, even one hypothesis at a time",
                expected="a device with more free memory",
                remedy="end other programs that use it, or score with --device cpu",
                place=Place(document=name),
            )
        self.memory //= 2
        if self.device.type in ("cuda", "xpu"):
            torch.get_device_module(self.device).empty_cache()


def similar_documents(
    documents: Sequence[Tensor], chosen: Iterable[int], budget: Budget
) -> Iterator[list[int]]:
    """Group documents of similar length that have a place together."""
    batch: list[int] = []
    for i in sorted(chosen, key=lambda i: (len(documents[i]), i)):
        n, d = documents[i].shape
        first = documents[batch[0]] if batch else documents[i]
        same = (d, documents[i].device) == (first.shape[1], first.device)
        if batch and not (same and budget.holds(len(batch) + 1, n, d)):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


Parts = Iterable[tuple[NDArray[np.int64], Masses]]
"""Hypotheses some at a time: the number of each one's document in the batch, and masses."""


def score_batch(
    documents: list[Tensor],
    parts: Callable[[int], Parts],
    n_segments: int,
    metrics: Sequence[PairMetric],
    budget: Budget,
    *,
    unsegmented: Unsegmented,
    keep_segments: bool,
    progress: Callable[[int], None],
) -> dict[str, list[RawScores]]:
    """Score documents together: by metric, the scores of every part.

    ``parts`` gives the hypotheses, at most so many at a time, of ``n_segments`` at most. Nothing is
    read back from the device: the host only lays out hypotheses and says what is to be done.
    """
    units = Units(documents, budget.device, pairs=budget.pairs)
    found: dict[str, list[RawScores]] = {spelling(metric): [] for metric in metrics}
    requests = list(chain.from_iterable(metric.requests for metric in metrics))
    for slots, masses in parts(budget.hypotheses(units.n_units, n_segments)):
        layout = Layout.pack(slots, masses, units.n_units, budget.device)
        sums = units.sums(layout, requests)
        is_single = layout.n_segments == 1
        for metric in metrics:
            scores = metric(units, layout, sums)
            if needs_segments(metric):
                pool = cast(Pooled, metric).pool_n
                pooled = pool_segments(scores.segments, layout.masses, pool)
                scores = replace(scores, documents=pooled)
            if document_pool(metric) == "length":
                scores = replace(scores, weights=layout.length.double())
            raw = metric.orientation.unsegmented(unsegmented)
            scored = torch.where(is_single, raw, scores.documents)
            segments = scores.segments  # not a view that would keep all of them
            segments = segments if keep_segments else segments.new_empty(len(slots), 0)
            found[spelling(metric)].append(replace(scores, documents=scored, segments=segments))
        progress(len(slots))
    return found


class Told:
    """Tell how many hypotheses were done, though some are done again."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        """Pass on to ``progress`` what it does not know yet."""
        self.progress = progress
        self.told = 0  # in this attempt
        self.known = 0  # of attempts that failed, not yet done again

    def __call__(self, done: int) -> None:
        """Some more were done."""
        self.told += done
        known = min(done, self.known)
        self.known -= known
        if done > known:
            self.progress(done - known)

    def again(self) -> None:
        """What was told since the last attempt will be done again."""
        self.known += self.told
        self.told = 0

    def kept(self) -> None:
        """What was told stays."""
        self.told = 0


def by_document(
    pieces: list[RawScores], counts: list[int], device: torch.device
) -> Iterator[RawScores]:
    """Cut the scores of a batch, which come in pieces, into those of its documents."""
    if not pieces:
        empty = torch.empty(0, dtype=torch.float64, device=device)
        pieces = [RawScores(empty, empty, empty, empty[:, None])]
    width = max(piece.segments.shape[1] for piece in pieces)
    columns = [
        [piece.documents for piece in pieces],
        [piece.weights for piece in pieces],
        [piece.left_out for piece in pieces],
        [pad(x.segments, (0, width - x.segments.shape[1]), value=torch.nan) for x in pieces],
    ]
    split = [torch.split(torch.cat(column), counts) for column in columns]
    return (RawScores(*fields) for fields in zip(*split, strict=True))
