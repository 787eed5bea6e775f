"""``optimal`` and ``greedy``: segmenters that look for nothing but a good reference-free score.

They read no topics, only the metric they are judged by: one that ranks them above gold can be
gamed. ``optimal`` is the best there is under a metric that can be searched exactly; under ARP with
one-unit segments, which ARP invites, ``greedy`` often gains more, as ``optimal`` has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import psutil
from numpy.typing import NDArray

from reffree.data.masses import masses_from_gaps
from reffree.data.segmentation import Segmentation
from reffree.metrics.free.engine import score_documents
from reffree.metrics.free.expected import Expected
from reffree.metrics.free.fast.document import CompiledDocument
from reffree.metrics.free.fast.tables import TableBand, build_tables, table_bytes
from reffree.metrics.free.inputs import check_embeddings
from reffree.metrics.free.published import Arp
from reffree.metrics.free.result import FreeMetric
from reffree.metrics.registry import COMPILED, FREE_METRICS, parse_metric, parse_metrics, spelling
from reffree.segmenters.base import Inputs, Segmenter
from reffree.util.arrays import Booleans, Floats
from reffree.util.compiling import njit
from reffree.util.errors import InputError, Place, counted

Integers = NDArray[np.int32]

TIE = 1e-9
"""Scores that differ by less, relative to the larger of them and 1, are equal."""


@dataclass(frozen=True, slots=True)
class Optimal(Segmenter):
    r"""The lowest loss there is under an ARP, with ``k`` boundaries or any number.

    It is the best of all segmentations without one-unit segments, but for the last, which may have
    one: the score of others depends on the whole document (eq. 16). The score at a boundary depends
    on the lengths of the segments before and after it through :math:`min(2 m_{i+1}, m_i)` alone, so
    pairs of neighbours are searched in :math:`n^2` steps per boundary. Without ``k`` the mean is
    maximised by fractional programming (Dinkelbach 1967). Fewer boundaries than ``k`` where no more
    fit. Without ``k``, none if any would score below neutral.
    """

    metric: str = "arp_pair"
    k: Literal["gold"] | int | None = None
    name: ClassVar[str] = "optimal"
    needs_embeddings: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Segmenter.__post_init__(self)
        metric = parse_metric(self.metric, FREE_METRICS)
        if not isinstance(metric, Arp) or metric.pool_n != "mean":
            raise InputError(
                f"metric = {self.metric}",
                expected="arp_std, arp_cos or arp_pair, by the mean over segments",
                remedy=f"write greedy:metric={self.metric} for a good one, if not the best",
            )

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        wanted = inputs.n_boundaries(self.k, self.name)
        (metric,) = parse_metrics([self.metric], inputs.seed)
        column = ("arp_std", "arp_cos", "arp_pair").index(metric.name)
        found = []
        for i, (vectors, k) in enumerate(zip(inputs.vectors(self.name), wanted, strict=True)):
            n, boundaries = len(vectors), list[int]()
            if n > 1 and k != 0:
                dispersion = _spread(vectors, column, inputs.corpus[i].place)
                if spelling(metric) == "arp_std:p=1":
                    dispersion = np.sqrt(dispersion)  # the table has the variance
                table = proximities(dispersion)
                if k is None:
                    boundaries = _best_mean(table)
                else:
                    work = np.empty((n + 1, n + 1)), np.zeros((n + 1, n + 1), dtype=np.int32)
                    most = min(k, (n - 1) // 2)
                    boundaries = [start for start, _ in _path(table, work, None, None, most)]
            found.append(Segmentation.from_boundaries(boundaries, n))
        return tuple(found)


def _best_mean(proximity: Floats) -> list[int]:
    """Boundaries with the highest mean proximity of all; none if it is not above 0."""
    n = len(proximity)
    total = np.empty((n + 1, n + 1))
    via = np.zeros((n + 1, n + 1), dtype=np.int32)
    mean, boundaries = 0.0, []
    while n > 2:
        # Whoever beats the mean so far in sum has a higher mean.
        best_sums(proximity, mean, total, via)
        size, end = int(np.argmax(total[n, 1:n])) + 1, n
        gain, found = float(total[n, size]), []
        while size < end:
            end, size = end - size, int(via[end, size])
            found.append(end)
        if not gain > TIE:
            break
        mean, boundaries = mean + gain / len(found), found
    return boundaries[::-1]


def _path(
    proximity: Floats,
    work: tuple[Floats, Integers],
    first: tuple[int, int] | None,
    last: tuple[int, int] | None,
    k: int,
) -> Iterator[tuple[int, int]]:
    """Segments after each of ``k`` boundaries between two segments, known or not.

    One search finds the segment in the middle, and each half is searched again (Hirschberg 1975):
    some twice the time, but no table for every boundary.
    """
    n = len(proximity)
    if k == 0 or (k == 1 and last is not None):
        yield from [last] if k and last is not None else []
        return
    middle = max(1, k // 2)
    total, place = work
    stop = n if last is None else last[1]
    best_sums_of(proximity, first or (0, 0), stop, k, middle, total, place)
    size = int(np.argmax(total[n, 1:n])) + 1 if last is None else last[1] - last[0]
    end, length = divmod(int(place[stop, size]), n + 1)
    found = (end - length, end)
    yield from _path(proximity, work, first, found, middle)
    yield from _path(proximity, work, found, (stop - size, stop), k - middle)


def _spread(vectors: NDArray[np.generic], column: int, place: Place) -> Floats:
    """``[i, j]``: variance, cosine or pairwise dispersion of the units ``i … j``, 0 for j < i."""
    n = len(vectors)
    edges = np.arange(n + 1)
    everything = TableBand(np.zeros_like(edges), np.full_like(edges, n), edges * n, n * (n + 1))
    needed = table_bytes(everything) + 8 * vectors.size
    if needed > psutil.virtual_memory().available // 2:
        raise InputError(
            f"{counted(n, 'unit')}, for which a search needs {needed / 1e9:.0f} GB",
            expected="a document whose tables take half of the free memory at most",
            remedy="write --method greedy, or split the document",
            place=place,
        )
    document = CompiledDocument(check_embeddings(vectors, "0"))
    tables = build_tables(document.vectors, everything)
    return np.triu(tables.spread.reshape(n + 1, n, 3)[:n, :, column])


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
        Segmenter.__post_init__(self)
        if isinstance(parse_metric(self.metric, FREE_METRICS), Expected):
            raise InputError(
                f"metric = {self.metric}",
                expected="a metric without a posterior",
                remedy="take the method posterior, whose segmentations have the least expected Pk",
            )

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        wanted = inputs.n_boundaries(self.k, self.name)
        (metric,) = parse_metrics([self.metric], inputs.seed)
        found = []
        for vectors, k in zip(inputs.vectors(self.name), wanted, strict=True):
            losses = _losses(vectors, metric)
            gaps = np.zeros(len(vectors) - 1, dtype=bool)
            steps = len(gaps) if k is None else k
            gaps = _descend(losses, gaps, [_one_more], steps, is_forced=k is not None)
            if self.climb:
                changes = [_moves, _one_more, _one_less] if k is None else [_moves]
                gaps = _descend(losses, gaps, changes)
            boundaries = (np.flatnonzero(gaps) + 1).tolist()
            found.append(Segmentation.from_boundaries(boundaries, len(vectors)))
        return tuple(found)


def _losses(vectors: NDArray[np.generic], metric: FreeMetric) -> Callable[[Booleans], Floats]:
    """Losses of rows of boundaries of one document, infinite where undefined; tables made once."""
    x, name = check_embeddings(vectors, "0"), spelling(metric)
    document = CompiledDocument(x)
    memory = psutil.virtual_memory().available // 8
    orientation = metric.orientation
    neutral = math.nan if orientation.neutral is None else orientation.neutral

    def losses(gaps: Booleans) -> Floats:
        masses = masses_from_gaps(gaps)
        if name in COMPILED:
            scores = document.score_all([lambda: masses], lambda: memory)
            raw = scores.raw[:, COMPILED.index(name)]
        else:
            (scored,) = score_documents([x], [masses], [metric]).values()
            raw = scored[0].on_host().documents
        found = orientation.offset + orientation.slope * np.where(gaps.any(1), raw, neutral)
        return np.where(np.isnan(found), np.inf, found)

    return losses


def _descend(
    losses: Callable[[Booleans], Floats],
    gaps: Booleans,
    changes: Sequence[Callable[[Booleans], Booleans]],
    steps: float = math.inf,
    *,
    is_forced: bool = False,
) -> Booleans:
    """Make the best change, as often as told and, unless forced, while one lowers the loss.

    A change turns over the gaps of one row, two where a boundary moves and else one.
    """
    loss = losses(gaps[None])[0]
    while steps > 0:
        rows = np.concatenate([change(gaps) for change in changes])
        if not len(rows):
            break
        found = losses(gaps ^ rows)
        lowest = found.min()
        margin = TIE * max(1.0, abs(lowest)) if np.isfinite(lowest) else 0.0
        best = int(np.argmax(found <= lowest + margin))
        is_lower = found[best] < loss and (
            math.isinf(loss) or loss - found[best] > TIE * max(1.0, abs(loss))
        )
        if not (is_forced or is_lower):
            break
        gaps, loss, steps = gaps ^ rows[best], found[best], steps - 1
    return gaps


def _one_more(gaps: Booleans) -> Booleans:
    """Put a boundary into every gap without one."""
    return np.eye(len(gaps), dtype=bool)[~gaps]


def _one_less(gaps: Booleans) -> Booleans:
    return np.eye(len(gaps), dtype=bool)[gaps]


def _moves(gaps: Booleans) -> Booleans:
    """Move every boundary within its neighbours."""
    edges = [-1, *np.flatnonzero(gaps).tolist(), len(gaps)]
    moves = [
        (edges[b], place)
        for b in range(1, len(edges) - 1)
        for place in range(edges[b - 1] + 1, edges[b + 1])
        if place != edges[b]
    ]
    trials = np.zeros((len(moves), len(gaps)), dtype=bool)
    for trial, places in zip(trials, moves, strict=True):
        trial[[*places]] = True
    return trials


# The dynamic programmes. n counts units; a segment is known by its end c (units before that) and
# its length l.


@njit(cache=True, nogil=True, error_model="numpy")
def proximities(dispersion: Floats) -> Floats:
    """``[b, cut]``: ARP's relative proximity at the boundary ``b``, ``cut`` units compared.

    From the dispersion ``[i, j]`` of the units ``i … j``, to the power that is compared.
    """
    n = len(dispersion)
    found = np.zeros((n, n + 1))
    for b in range(2, n):
        for cut in range(2, min(b, 2 * (n - b)) + 1):
            intra = dispersion[b - cut, b - 1]
            inter = dispersion[b - (cut + 1) // 2, b + cut // 2 - 1]
            if inter + intra > 0.0:
                found[b, cut] = (inter - intra) / (inter + intra)
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def best_sums(proximity: Floats, penalty: float, total: Floats, via: Integers) -> None:
    """Best sum of proximities, less ``penalty`` for each, of any number of boundaries.

    To be filled: ``total[c, l]`` of the units before ``c`` if the last segment has ``l`` of them,
    and ``via[c, l]``, the length of the segment before it.
    """
    n = len(proximity)
    ends, farther, came = np.empty(n + 1), np.empty(n + 1), np.empty((2, n + 1), dtype=np.int32)
    total[:] = -np.inf
    for c in range(1, n + 1):
        total[c, c] = 0.0
    for b in range(1, n):
        _extend(total[b], proximity[b], b, n - b, farther, came[1], ends, came[0])
        for size in range(1, n - b + 1):
            total[b + size, size] = ends[size] - penalty
            via[b + size, size] = came[0, size]


@njit(cache=True, nogil=True, error_model="numpy")
def best_sums_of(
    proximity: Floats,
    first: tuple[int, int],
    stop: int,
    k: int,
    marked: int,
    total: Floats,
    place: Integers,
) -> None:
    """Best sum of the proximities of ``k`` boundaries, and what stands at the ``marked`` one.

    ``first`` is the start and end of the first segment, an end of 0 leaving it free, ``stop`` the
    end of the last one. To be filled: ``total[c, l]`` of the units before ``c`` if the last segment
    has ``l`` of them, and ``place[c, l]``, the segment after the marked one, ``c (n + 1) + l``.
    """
    n = len(proximity)
    ends, farther, came = np.empty(n + 1), np.empty(n + 1), np.empty((2, n + 1), dtype=np.int32)
    start, end = first
    for c in range(start + 1, stop + 1):
        total[c, : c - start + 1] = -np.inf
        if end in (0, c):
            total[c, c - start] = 0.0
    for boundary in range(1, k + 1):
        # From right to left: a row is read before any of its entries is written.
        for b in range(stop - 1, start, -1):
            _extend(total[b], proximity[b], b - start, stop - b, farther, came[1], ends, came[0])
            for size in range(1, stop - b + 1):
                total[b + size, size] = ends[size]
                if boundary == marked:
                    place[b + size, size] = (b + size) * (n + 1) + size
                else:
                    place[b + size, size] = place[b, came[0, size]]
        for c in range(start + 1, stop + 1):
            total[c, c - start] = -np.inf  # the first segment is over


@njit(cache=True, nogil=True, error_model="numpy")
def _extend(
    before: Floats,
    proximity: Floats,
    longest: int,
    room: int,
    farther: Floats,
    farther_from: Integers,
    ends: Floats,
    via: Integers,
) -> None:
    """Fill ``ends``, the best sums with a boundary here, by the length of the segment after it.

    A segment of ``m`` units before the boundary, 2 to ``longest``, and one of ``l`` after it, up to
    ``room``, score ``proximity[min(2l, m)]``. So for every ``l`` the best is among the ``m`` up to
    ``2l``, each with a score of its own, and those above, all with the score of ``2l``: two running
    maxima. ``via`` gets the ``m`` that each comes from; ``farther`` is workspace.
    """
    top, top_from = -math.inf, 0
    for m in range(longest, 2, -1):
        if before[m] > top:
            top, top_from = before[m], m
        farther[m], farther_from[m] = top, top_from
    near, near_from, m = -math.inf, 0, 2
    for size in range(1, room + 1):
        while m <= min(2 * size, longest):
            if before[m] + proximity[m] > near:
                near, near_from = before[m] + proximity[m], m
            m += 1
        ends[size], via[size] = near, near_from
        if m <= longest and farther[m] + proximity[2 * size] > near:
            ends[size], via[size] = farther[m] + proximity[2 * size], farther_from[m]
