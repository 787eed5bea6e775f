"""Segmenters that look for nothing but a good score: what a metric can be made to say.

They read no topics, only the metric they are judged by. A metric that ranks them above gold can be
gamed. `Optimal` is the most there is to gain under ``sag``, and under ARP without one-unit
segments; with these, which ARP invites, `Greedy` often gains more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np
import psutil
import torch
from numpy.typing import NDArray

from reffree.arrays import Floats
from reffree.errors import InputError
from reffree.masses import Masses, masses_from_gaps
from reffree.scoring.arp import Arp
from reffree.scoring.compiled import CompiledDocument
from reffree.scoring.engine import HYPOTHESIS_ELEMENTS
from reffree.scoring.expected import Expected
from reffree.scoring.inputs import check_embeddings
from reffree.scoring.layout import Layout
from reffree.scoring.metrics import COMPILED, PairMetric, parse_metric, parse_metrics, spelling
from reffree.scoring.pairs import TABLE_ELEMENTS, Units
from reffree.scoring.sag import Sag
from reffree.segmentation import Segmentation
from reffree.segmenters.base import Inputs
from reffree.segmenters.embedded import boundaries_wanted, check_wanted, vectors_of
from reffree.segmenters.optimum import TIE, highest_proximity, least_squares

Gaps = NDArray[np.bool_]

TABLE_BYTES = 64
"""Bytes per entry of a table of pairs that are alive while it is made."""


@dataclass(frozen=True, slots=True)
class Greedy:
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
        """Refuse unknown metrics and numbers of boundaries that are none."""
        check_wanted(self.k, self.name)
        if isinstance(parse_metric(self.metric), Expected):
            raise InputError(
                f"metric = {self.metric}",
                expected="a metric without a posterior",
                remedy="take the method posterior, whose segmentations have the least expected Pk",
            )

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document on its own."""
        wanted = boundaries_wanted(self.k, inputs, self.name)
        metric = cast("PairMetric", parse_metrics([self.metric], inputs.seed)[0])
        found = []
        for vectors, k in zip(vectors_of(inputs, self.name), wanted, strict=True):
            losses = _Losses(vectors, metric)
            gaps = _grow(losses, len(vectors) - 1, k)
            if self.climb:
                gaps = _climb(losses, gaps, is_free=k is None)
            found.append(_segmentation(gaps))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Optimal:
    r"""The lowest loss there is under ``sag`` or an ARP, with ``k`` boundaries or any number.

    ``sag``: of all segmentations. With ``k`` boundaries the lowest loss has the least sum of
    squares within segments, a sum over segments, found by dynamic programming, which is what
    ``changepoint:kernel=linear,min_size=1`` finds; without ``k`` the best of these for all ``k``.

    ``arp_std``, ``arp_cos``, ``arp_pair``: of all segmentations without one-unit segments, but for
    the last, which may have one: the score of others depends on the whole document (eq. 16). The
    score at a boundary depends on the lengths of the segments before and after it through
    :math:`min(2 m_{i+1}, m_i)` alone, so pairs of neighbours are searched in :math:`n^2` steps per
    boundary. Without ``k`` the mean is maximised by fractional programming (Dinkelbach 1967).

    Fewer boundaries than ``k`` where no more fit. Without ``k``, none if any would score below
    neutral. Silhouette and SegReFree are left out: the score of a segment depends on both its
    neighbours, four edges at a time, and that takes of the order of :math:`n^4` steps.
    """

    metric: str = "sag"
    k: Literal["gold"] | int | None = None
    name: ClassVar[str] = "optimal"
    needs_embeddings: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse metrics that cannot be searched, and numbers of boundaries that are none."""
        check_wanted(self.k, self.name)
        if not isinstance(parse_metric(self.metric), (Sag, Arp)):
            raise InputError(
                f"metric = {self.metric}",
                expected="sag, arp_std, arp_cos or arp_pair",
                remedy=f"write greedy:metric={self.metric} for a good one, if not the best",
            )

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document on its own."""
        wanted = boundaries_wanted(self.k, inputs, self.name)
        (metric,) = parse_metrics([self.metric], inputs.seed)
        found = []
        for i, (vectors, k) in enumerate(zip(vectors_of(inputs, self.name), wanted, strict=True)):
            n, place = len(vectors), inputs.corpus[i].place
            if n < 2 or k == 0:
                boundaries: list[int] = []
            elif isinstance(metric, Arp):
                boundaries = highest_proximity(vectors, metric, k, place)
            else:
                boundaries = least_squares(vectors, metric, k, place)
            found.append(Segmentation.from_boundaries(boundaries, n))
        return tuple(found)


class _Losses:
    """Losses of many segmentations of one document; its tables are made once."""

    def __init__(self, vectors: NDArray[np.generic], metric: PairMetric) -> None:
        self._metric = metric
        self._document = check_embeddings(vectors, "0")
        is_compiled = spelling(metric) in COMPILED
        self._compiled = CompiledDocument(self._document) if is_compiled else None
        self._memory = psutil.virtual_memory().available // 8
        self._units: Units | None = None

    def __call__(self, gaps: Gaps) -> Floats:
        """Losses of rows of boundaries, infinite where undefined."""
        masses = masses_from_gaps(gaps)
        orientation = self._metric.orientation
        neutral = math.nan if orientation.neutral is None else orientation.neutral
        raw = np.where(gaps.any(1), self._raw(masses), neutral)
        losses = orientation.offset + orientation.slope * raw
        return np.where(np.isnan(losses), np.inf, losses)

    def _raw(self, masses: Masses) -> Floats:
        if self._compiled is not None and self._compiled.prepare(masses, lambda: self._memory):
            scores = self._compiled.score(masses, torch.get_num_threads())
            return scores.raw[:, COMPILED.index(spelling(self._metric))]
        if self._units is None:
            # Whole tables if they fit, because only those are kept from call to call.
            table_elements = max(TABLE_ELEMENTS, self._memory // TABLE_BYTES)
            self._units = Units([self._document], torch.device("cpu"), table_elements)
        units, parts = self._units, []
        step = max(1, HYPOTHESIS_ELEMENTS // units.n_units)
        for start in range(0, len(masses), step):
            part = masses[start : start + step]
            document = np.zeros(len(part), dtype=np.int64)
            layout = Layout.pack(document, part, units.n_units, torch.device("cpu"))
            sums = units.row_sums(layout, self._metric.requests)
            parts.append(self._metric(units, layout, sums).documents.numpy())
        return np.concatenate(parts)


def _grow(losses: _Losses, n_gaps: int, k: int | None) -> Gaps:
    """Add the best boundary, ``k`` times or while that lowers the loss."""
    gaps = np.zeros(n_gaps, dtype=bool)
    loss = losses(gaps[None])[0]
    for _ in range(n_gaps if k is None else min(k, n_gaps)):
        trials = _flipped(gaps, np.flatnonzero(~gaps)[:, None])
        found = losses(trials)
        best = _first_lowest(found)
        if k is None and not _is_lower(found[best], loss):
            break
        gaps, loss = trials[best], found[best]
    return gaps


def _climb(losses: _Losses, gaps: Gaps, *, is_free: bool) -> Gaps:
    """Make the best small change for as long as one lowers the loss."""
    loss = losses(gaps[None])[0]
    while True:
        trials = _changes(gaps, is_free=is_free)
        if not len(trials):
            return gaps
        found = losses(trials)
        best = _first_lowest(found)
        if not _is_lower(found[best], loss):
            return gaps
        gaps, loss = trials[best], found[best]


def _changes(gaps: Gaps, *, is_free: bool) -> Gaps:
    """Every boundary moved within its neighbours; if free, also one more and one less."""
    taken = np.flatnonzero(gaps)
    edges = [-1, *taken.tolist(), len(gaps)]
    moves = [
        (edges[b], place)
        for b in range(1, len(edges) - 1)
        for place in range(edges[b - 1] + 1, edges[b + 1])
        if place != edges[b]
    ]
    parts = [_flipped(gaps, np.array(moves, dtype=np.int64).reshape(-1, 2))]
    if is_free:
        parts.append(_flipped(gaps, np.flatnonzero(~gaps)[:, None]))
        parts.append(_flipped(gaps, taken[:, None]))
    return np.concatenate(parts)


def _flipped(gaps: Gaps, places: NDArray[np.int64]) -> Gaps:
    """One row of boundaries for every row of places, these turned over."""
    trials = np.tile(gaps, (len(places), 1))
    trials[np.arange(len(places))[:, None], places] ^= True
    return trials


def _first_lowest(losses: Floats) -> int:
    lowest = losses.min()
    margin = TIE * max(1.0, abs(lowest)) if np.isfinite(lowest) else 0.0
    return int(np.argmax(losses <= lowest + margin))


def _is_lower(loss: float, than: float) -> bool:
    return loss < than and (math.isinf(than) or than - loss > TIE * max(1.0, abs(than)))


def _segmentation(gaps: Gaps) -> Segmentation:
    return Segmentation.from_boundaries((np.flatnonzero(gaps) + 1).tolist(), len(gaps) + 1)
