"""What each boundary does for a score, and where one more or one less would do better.

Everything here is the difference of two losses: those of a hypothesis and of its neighbours, which
have one boundary less, one moved by a few units, or one more. A hypothesis has some more neighbours
than its document has units. They are laid out a part at a time, so memory does not grow with their
number; time does, with the square of the units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reffree.data.masses import MadeMasses, Masses
from reffree.data.segmentation import Segmentation
from reffree.metrics.free.engine import score_documents
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.result import FreeMetric, Unsegmented
from reffree.metrics.registry import spelling
from reffree.util.arrays import Floats, Integers

if TYPE_CHECKING:
    import torch

    from reffree.metrics.free.inputs import Array

MAX_SHIFT = 3


@dataclass(frozen=True, slots=True)
class BoundaryEffect:
    """One boundary of a hypothesis."""

    at: int  # units before it
    contribution: float | None  # loss without it minus loss with it: positive if it helps
    best_shift: int  # within ±3 units and between its neighbours; 0 if no move helps
    shift_gain: float  # by how much that move lowers the loss


@dataclass(frozen=True, slots=True)
class Addition:
    """The best place for one more boundary."""

    at: int
    gain: float  # by how much it lowers the loss; negative if every place would harm


@dataclass(frozen=True, slots=True)
class Explanation:
    """One hypothesis under one metric."""

    boundaries: tuple[BoundaryEffect, ...]
    addition: Addition | None  # None where every unit already is a segment


def explain_document(
    embeddings: Array,
    hypotheses: Sequence[Segmentation],
    metrics: Sequence[FreeMetric],
    *,
    unsegmented: Unsegmented = "neutral",
    device: torch.device | str | None = None,
    memory: int | None = None,
    name: str = "0",
    reading: Reading | None = None,
) -> list[dict[str, Explanation]]:
    """Explain every hypothesis of one document under every metric.

    ``memory`` is as for `score_documents`.
    """
    neighbours = _Neighbours(hypotheses)
    scores = score_documents(
        [embeddings],
        [neighbours],
        metrics,
        unsegmented=unsegmented,
        device=device,
        memory=memory,
        names=[name],
        readings=None if reading is None else [reading],
    )
    explanations: list[dict[str, Explanation]] = [{} for _ in hypotheses]
    for metric in metrics:
        losses = metric.losses(scores[spelling(metric)][0].on_host().documents)
        for i, part in enumerate(np.split(losses, neighbours.ends[:-1])):
            explanations[i][spelling(metric)] = _explain(neighbours.changes[i], part)
    return explanations


class _Neighbours(MadeMasses):
    """Every hypothesis itself, then without each boundary, each move, each addition."""

    def __init__(self, hypotheses: Sequence[Segmentation]) -> None:
        self.n_segments = max(len(hypothesis) for hypothesis in hypotheses) + 1
        self._hypotheses = hypotheses
        self.changes = [_changes(hypothesis) for hypothesis in hypotheses]
        self.ends = np.cumsum([changes.shape[1] for changes in self.changes]).tolist()

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, rows: slice) -> Masses:
        first, last, _ = rows.indices(len(self))
        masses = np.zeros((last - first, self.n_segments), dtype=np.int64)
        for hypothesis, changes, end in zip(self._hypotheses, self.changes, self.ends, strict=True):
            start = end - changes.shape[1]
            low, high = max(first, start), min(last, end)
            if low < high:
                cleared, added = changes[:, low - start : high - start]
                n = hypothesis.n_units
                ends = np.empty((high - low, len(hypothesis) + 1), dtype=np.int64)
                ends[:, :-1] = [*hypothesis.boundaries, n]
                ends[:, :-1][ends[:, :-1] == cleared[:, None]] = n
                ends[:, -1] = np.where(added > 0, added, n)
                ends.sort(axis=1)  # what is gone stands at the end, where it has no units
                masses[low - first : high - first, : ends.shape[1]] = np.diff(ends, prepend=0)
        return masses


def _changes(hypothesis: Segmentation) -> Integers:
    """Each neighbour's boundary that is gone and the one that is new, 0 for none: (2, h)."""
    n, at = hypothesis.n_units, hypothesis.boundaries
    edges = [0, *at, n]
    changes = [(0, 0), *((place, 0) for place in at)]
    for before, place, after in zip(edges, at, edges[2:], strict=False):
        low, high = max(before + 1, place - MAX_SHIFT), min(after, place + MAX_SHIFT + 1)
        changes += [(place, other) for other in range(low, high) if other != place]
    changes += [(0, place) for place in sorted({*range(1, n)} - {*at})]
    return np.array(changes, dtype=np.int64).T


def _explain(changes: Integers, losses: Floats) -> Explanation:
    """Compare a hypothesis's loss, the first one, with those after each change."""
    cleared, added = changes
    gains = losses[0] - losses
    is_move = (cleared > 0) & (added > 0)
    best: dict[int, tuple[int, float]] = {}  # of each boundary: shift and gain
    for place, other, gain in zip(*(x[is_move].tolist() for x in (*changes, gains)), strict=True):
        if gain > best.get(place, (0, 0.0))[1]:
            best[place] = (other - place, gain)
    is_removal = (cleared > 0) & (added == 0)
    contributions = (losses - losses[0])[is_removal].tolist()
    boundaries = tuple(
        BoundaryEffect(place, None if math.isnan(x) else x, *best.get(place, (0, 0.0)))
        for place, x in zip(cleared[is_removal].tolist(), contributions, strict=True)
    )
    gains = np.where((cleared == 0) & (added > 0), gains, np.nan)
    if np.isnan(gains).all():
        return Explanation(boundaries, None)
    top = int(np.nanargmax(gains))
    return Explanation(boundaries, Addition(int(added[top]), float(gains[top])))
