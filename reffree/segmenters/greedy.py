"""``greedy``: a segmenter that looks for nothing but a good score under any reference-free metric.

Like `reffree.segmenters.optimal` it reads no topics, only the metric it is judged by: a metric that
ranks it above gold can be gamed. Under ARP with one-unit segments, which ARP invites, it often
gains more than ``optimal``, which has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import psutil
from numpy.typing import NDArray

from reffree.data.masses import Masses, masses_from_gaps
from reffree.data.segmentation import Segmentation
from reffree.metrics.free.engine import score_documents
from reffree.metrics.free.expected import Expected
from reffree.metrics.free.fast.document import CompiledDocument
from reffree.metrics.free.inputs import check_embeddings
from reffree.metrics.free.result import FreeMetric
from reffree.metrics.registry import COMPILED, FREE_METRICS, parse_metric, parse_metrics, spelling
from reffree.segmenters.base import Inputs, Segmenter
from reffree.segmenters.optimal import TIE
from reffree.util.arrays import Booleans, Floats, Integers
from reffree.util.errors import InputError


@dataclass(frozen=True, slots=True)
class Greedy(Segmenter):
    """Step by step to a low loss under any reference-free ``metric``.

    Boundaries are added one at a time, each where the loss is lowest then: ``k`` of them or,
    without ``k``, until none would lower it. With ``climb`` the best of all small changes follows,
    for as long as one lowers the loss: a boundary moved to another gap between its neighbours and,
    without ``k``, one more or one less. Of equal losses the first in this order and from left to
    right wins. An undefined loss is higher than any other, and so is that of no boundary where the
    metric has no neutral value. Fewer boundaries than ``k`` only where there are fewer gaps.
    """

    metric: str = "arp_pair"
    k: Literal["gold"] | int | None = None
    climb: bool = True
    name: ClassVar[str] = "greedy"
    needs_embeddings: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse unknown metrics, and those that have a segmentation of their own."""
        Segmenter.__post_init__(self)
        if isinstance(parse_metric(self.metric, FREE_METRICS), Expected):
            raise InputError(
                f"metric = {self.metric}",
                expected="a metric without a posterior",
                remedy="take the method posterior, whose segmentations have the least expected Pk",
            )

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document on its own."""
        wanted = inputs.n_boundaries(self.k, self.name)
        (metric,) = parse_metrics([self.metric], inputs.seed)
        found = []
        for vectors, k in zip(inputs.vectors(self.name), wanted, strict=True):
            losses = _Losses(vectors, metric)
            gaps = np.zeros(len(vectors) - 1, dtype=bool)
            steps = len(gaps) if k is None else min(k, len(gaps))
            gaps = _descend(losses, gaps, _one_more, steps, is_forced=k is not None)
            if self.climb:
                changes = _moves if k is not None else _changes
                gaps = _descend(losses, gaps, changes)
            boundaries = (np.flatnonzero(gaps) + 1).tolist()
            found.append(Segmentation.from_boundaries(boundaries, len(vectors)))
        return tuple(found)


class _Losses:
    """Losses of many segmentations of one document; its tables are made once."""

    def __init__(self, vectors: NDArray[np.generic], metric: FreeMetric) -> None:
        self._metric = metric
        self._vectors = check_embeddings(vectors, "0")
        self._document = CompiledDocument(self._vectors)
        self._memory = psutil.virtual_memory().available // 8

    def __call__(self, gaps: Booleans) -> Floats:
        """Losses of rows of boundaries, infinite where undefined."""
        masses = masses_from_gaps(gaps)
        orientation = self._metric.orientation
        neutral = math.nan if orientation.neutral is None else orientation.neutral
        raw = np.where(gaps.any(1), self._raw(masses), neutral)
        losses = orientation.offset + orientation.slope * raw
        return np.where(np.isnan(losses), np.inf, losses)

    def _raw(self, masses: Masses) -> Floats:
        name = spelling(self._metric)
        if name not in COMPILED:
            (scored,) = score_documents([self._vectors], [masses], [self._metric]).values()
            losses: Floats = scored[0].on_host().documents
            return losses
        scores = self._document.score_all([lambda: masses], lambda: self._memory)
        return scores.raw[:, COMPILED.index(name)]


def _descend(
    losses: _Losses,
    gaps: Booleans,
    changes: Callable[[Booleans], Booleans],
    steps: float = math.inf,
    *,
    is_forced: bool = False,
) -> Booleans:
    """Make the best change, as often as told and, unless forced, while one lowers the loss."""
    loss = losses(gaps[None])[0]
    while steps > 0 and len(trials := changes(gaps)):
        found = losses(trials)
        lowest = found.min()
        margin = TIE * max(1.0, abs(lowest)) if np.isfinite(lowest) else 0.0
        best = int(np.argmax(found <= lowest + margin))
        if not (is_forced or _is_lower(found[best], loss)):
            break
        gaps, loss, steps = trials[best], found[best], steps - 1
    return gaps


def _one_more(gaps: Booleans) -> Booleans:
    """Put a boundary into every gap without one."""
    return _flipped(gaps, np.flatnonzero(~gaps)[:, None])


def _moves(gaps: Booleans) -> Booleans:
    """Move every boundary within its neighbours."""
    edges = [-1, *np.flatnonzero(gaps).tolist(), len(gaps)]
    moves = [
        (edges[b], place)
        for b in range(1, len(edges) - 1)
        for place in range(edges[b - 1] + 1, edges[b + 1])
        if place != edges[b]
    ]
    return _flipped(gaps, np.array(moves, dtype=np.int64).reshape(-1, 2))


def _changes(gaps: Booleans) -> Booleans:
    """Every boundary moved, one more, or one less."""
    fewer = _flipped(gaps, np.flatnonzero(gaps)[:, None])
    return np.concatenate([_moves(gaps), _one_more(gaps), fewer])


def _flipped(gaps: Booleans, places: Integers) -> Booleans:
    """One row of boundaries for every row of places, these turned over."""
    trials = np.tile(gaps, (len(places), 1))
    trials[np.arange(len(places))[:, None], places] ^= True
    return trials


def _is_lower(loss: float, than: float) -> bool:
    return loss < than and (math.isinf(than) or than - loss > TIE * max(1.0, abs(than)))
