"""What each boundary does for a score, and where one more or one less would do better.

Everything here is the difference of two losses: those of a hypothesis and of its neighbours, which
have one boundary less, one moved by a few units, or one more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from reffree.masses import Masses, stack_masses
from reffree.scoring.engine import Unsegmented, score_documents
from reffree.scoring.metrics import Metric, spelling
from reffree.segmentation import Segmentation

if TYPE_CHECKING:
    from reffree.scoring.inputs import Array

MAX_SHIFT = 3
GAP_ELEMENTS = 1 << 25
"""Neighbours × units laid out at a time."""

Floats = NDArray[np.float64]


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
    metrics: Sequence[Metric],
    *,
    unsegmented: Unsegmented = "neutral",
    device: torch.device | None = None,
    memory: int | None = None,
    name: str = "0",
) -> list[dict[str, Explanation]]:
    """Explain every hypothesis of one document under every metric."""
    neighbours = [list(_neighbours(hypothesis)) for hypothesis in hypotheses]
    matrices = [matrix for parts in neighbours for matrix in parts]
    scores = score_documents(
        [embeddings],
        [stack_masses(matrices)],
        metrics,
        unsegmented=unsegmented,
        device=device,
        memory=memory,
        names=[name],
    )
    ends = np.cumsum([sum(map(len, parts)) for parts in neighbours])[:-1]
    explanations: list[dict[str, Explanation]] = [{} for _ in hypotheses]
    for metric in metrics:
        raw = scores[spelling(metric)].documents[0].cpu().numpy()
        losses = metric.orientation.offset + metric.orientation.slope * raw
        for i, part in enumerate(np.split(losses, ends)):
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


def _neighbours(hypothesis: Segmentation) -> Iterator[Masses]:
    """Return the hypothesis itself, then without each boundary, each move, each addition."""
    n = hypothesis.n_units
    own = np.zeros(n, dtype=bool)  # [g] a boundary before unit g
    own[list(hypothesis.boundaries)] = True
    at = np.array(hypothesis.boundaries, dtype=np.int64)
    moves, free = _places(hypothesis)
    # Each neighbour is the hypothesis with one gap cleared and one set; gap 0 stands for none.
    cleared = np.array([0, *at, *(at[b] for b, _ in moves), *([0] * len(free))], dtype=np.int64)
    added = np.array([0, *([0] * len(at)), *(p for _, p in moves), *free], dtype=np.int64)
    step = max(1, GAP_ELEMENTS // n)
    for start in range(0, len(cleared), step):
        rows = np.arange(len(cleared[start : start + step]))
        gaps = np.tile(own, (len(rows), 1))
        gaps[rows, cleared[start : start + step]] = False
        gaps[rows, added[start : start + step]] = True
        gaps[:, 0] = True  # the document's start opens the first segment
        yield masses_from_starts(gaps)


def masses_from_starts(starts: NDArray[np.bool_]) -> Masses:
    """Turn rows of 'this unit starts a segment' into masses, padded with zeros."""
    n_rows, n = starts.shape
    counts = starts.sum(1)
    edges = np.full((n_rows, int(counts.max()) + 1), n, dtype=np.int64)
    edges[np.arange(edges.shape[1]) < counts[:, None]] = np.nonzero(starts)[1]
    return np.diff(edges, axis=1)


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
