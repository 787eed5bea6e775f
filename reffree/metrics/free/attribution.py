"""What each boundary does for a score, and where one more or one less would do better.

Everything here is the difference of two losses: those of a hypothesis and of its neighbours, which
have one boundary less, one moved by a few units, or one more. A hypothesis has some more neighbours
than its document has units. They are laid out a part at a time, so memory does not grow with their
number; time does, with the square of the units.
"""

from __future__ import annotations

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
            explanations[i][spelling(metric)] = _explain(hypotheses[i], part)
    return explanations


def _places(hypothesis: Segmentation) -> tuple[list[tuple[int, int]], list[int]]:
    """Moves ``(boundary, position)`` and free gaps, in the order they are scored."""
    edges = [0, *hypothesis.boundaries, hypothesis.n_units]
    moves = [
        (b, position)
        for b in range(len(hypothesis) - 1)
        for position in range(edges[b + 1] - MAX_SHIFT, edges[b + 1] + MAX_SHIFT + 1)
        if edges[b] < position < edges[b + 2] and position != edges[b + 1]
    ]
    taken = set(hypothesis.boundaries)
    free = [position for position in range(1, hypothesis.n_units) if position not in taken]
    return moves, free


class _Neighbours(MadeMasses):
    """Every hypothesis itself, then without each boundary, each move, each addition."""

    def __init__(self, hypotheses: Sequence[Segmentation]) -> None:
        self.n_segments = max(len(hypothesis) for hypothesis in hypotheses) + 1
        self._hypotheses = hypotheses
        self._changes = [_changes(hypothesis) for hypothesis in hypotheses]
        self.ends = np.cumsum([changes.shape[1] for changes in self._changes]).tolist()

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, rows: slice) -> Masses:
        first, last, _ = rows.indices(len(self))
        masses = np.zeros((last - first, self.n_segments), dtype=np.int64)
        for hypothesis, changes, end in zip(
            self._hypotheses, self._changes, self.ends, strict=True
        ):
            start = end - changes.shape[1]
            low, high = max(first, start), min(last, end)
            if low < high:
                made = _neighbour_masses(hypothesis, *changes[:, low - start : high - start])
                masses[low - first : high - first, : made.shape[1]] = made
        return masses


def _neighbour_masses(hypothesis: Segmentation, cleared: Integers, added: Integers) -> Masses:
    """Masses of a hypothesis without one boundary and with another, a row each; 0 for none."""
    n = hypothesis.n_units
    ends = np.empty((len(cleared), len(hypothesis) + 1), dtype=np.int64)
    ends[:, :-1] = [*hypothesis.boundaries, n]
    ends[:, :-1][ends[:, :-1] == cleared[:, None]] = n
    ends[:, -1] = np.where(added > 0, added, n)
    ends.sort(axis=1)  # what is gone stands at the end, where it has no units
    return np.diff(ends, axis=1, prepend=0)


def _changes(hypothesis: Segmentation) -> Masses:
    """Each neighbour's boundary that is gone and the one that is new, 0 for none: (2, h)."""
    at = hypothesis.boundaries
    moves, free = _places(hypothesis)
    cleared = [0, *at, *(at[b] for b, _ in moves), *([0] * len(free))]
    added = [0, *([0] * len(at)), *(position for _, position in moves), *free]
    return np.array([cleared, added], dtype=np.int64)


def _explain(hypothesis: Segmentation, losses: Floats) -> Explanation:
    moves, free = _places(hypothesis)
    at = hypothesis.boundaries
    own, removed = losses[0], losses[1 : 1 + len(at)]
    moved = losses[1 + len(at) : 1 + len(at) + len(moves)]
    best = {b: (0, 0.0) for b in range(len(at))}
    for (b, position), loss in zip(moves, moved, strict=True):
        if own - loss > best[b][1]:
            best[b] = (position - at[b], float(own - loss))
    boundaries = tuple(
        BoundaryEffect(
            at=place,
            contribution=None if np.isnan(without - own) else float(without - own),
            best_shift=best[b][0],
            shift_gain=best[b][1],
        )
        for b, (place, without) in enumerate(zip(at, removed, strict=True))
    )
    gains = own - losses[1 + len(at) + len(moves) :]
    if not gains.size or np.isnan(gains).all():
        return Explanation(boundaries, None)
    top = int(np.nanargmax(gains))
    return Explanation(boundaries, Addition(free[top], float(gains[top])))
