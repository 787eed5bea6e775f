"""Segment alignment: every segment with its closest of the other side, and how well they match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from statistics import fmean

import numpy as np

from reffree.data.masses import Masses
from reffree.data.segmentation import Segmentation
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.gold.pairs import Pairs, is_single
from reffree.util.arrays import Floats
from reffree.util.compiling import njit
from reffree.util.errors import mistake

Measure = Callable[[range, range], float]
"""Of two segments, each the range of its units; source first, then target."""


@dataclass(frozen=True, slots=True)
class Alignment(GoldMetric):
    r"""A: mean Jaccard index of the edges of the maximum likelihood alignment.

    .. math:: A = \sum_{(x, y) \in MLA} \frac{|x \cap y|}{|x \cup y|} \Big/ |MLA|

    Ocampo Diaz & Ouyang 2022, Section 3, with its intersect ratio as closeness: `align` returns the
    edges. Range 1/n (one segment against n) to 1 (only of equal segmentations), higher is better,
    the same with hypothesis and reference swapped. Always defined. Pooled over documents it is the
    mean over all their edges. Settled in docs/definitions.md: an edge that both its
    segments ask for counts once, as in the authors' code; the paper's formula leaves it open.

    >>> Alignment()([5, 5], [2, 3, 5])
    0.6666666666666666
    """

    name = "alignment"

    def counts(self, pairs: Pairs) -> Floats:
        """Sum of the edges' Jaccard indices, and the number of edges."""
        counts = np.empty((len(pairs), 2))
        pairs.each(lambda h, r, rows: _count(h, r, counts[rows]))
        return counts


@dataclass(frozen=True, slots=True)
class Edge:
    """Two overlapping segments, at least one of which is the other's closest."""

    hypothesis: int  # place of the segment among those of the hypothesis, from 0
    reference: int  # likewise
    from_hypothesis: float | None  # its closeness to the other, None where it is closer to a third
    from_reference: float | None  # likewise
    weight: float  # how well the two match


def intersect_ratio(source: range, target: range) -> float:
    """Share of the source that lies in the target."""
    return _shared(source, target) / len(source)


def jaccard(source: range, target: range) -> float:
    """Shared units by units in either."""
    shared = _shared(source, target)
    return shared / (len(source) + len(target) - shared)


def align(
    hypothesis: Segmentation | Sequence[int],
    reference: Segmentation | Sequence[int],
    closeness: Measure = intersect_ratio,
    weight: Measure = jaccard,
) -> tuple[Edge, ...]:
    """Maximum likelihood alignment of two segmentations (Ocampo Diaz & Ouyang 2022, Figure 7).

    Every segment, the source, is aligned to the overlapping segment of the other side, the target,
    that it is closest to; of equally close ones to that of the higher Jaccard index, then to the
    leftmost. With the defaults the mean weight of the edges, from left to right, is `Alignment`.

    ``closeness`` says how close a source is to a target, ``weight`` how well it matches: an edge
    that both its segments ask for is one edge, with the mean of its weights in both directions.

    >>> for edge in align([5, 5], [2, 3, 5]):
    ...     print(edge.hypothesis, edge.reference, edge.from_hypothesis, edge.from_reference)
    0 0 None 1.0
    0 1 0.6 1.0
    1 2 1.0 1.0
    """
    if not (is_single(hypothesis) and is_single(reference)):
        expected, remedy = "one hypothesis and one reference", "align one pair at a time"
        raise mistake(None, "several segmentations", expected, remedy)
    pair = Pairs.of(hypothesis, reference)
    h_segments, r_segments = (
        [range(*span) for span in pairwise(accumulate(masses[0].tolist(), initial=0))]
        for masses in (pair.hypothesis, pair.reference)
    )
    overlaps, h, r = [], 0, 0
    while h < len(h_segments) and r < len(r_segments):
        overlaps.append((h, r))
        h_stop, r_stop = h_segments[h].stop, r_segments[r].stop
        h += h_stop <= r_stop
        r += r_stop <= h_stop
    h_closest = _closest(h_segments, r_segments, overlaps, closeness)
    r_closest = _closest(r_segments, h_segments, [(r, h) for h, r in overlaps], closeness)
    edges = []
    for h, r in overlaps:
        from_hypothesis, from_reference = h_closest.get((h, r)), r_closest.get((r, h))
        weights = []
        if from_hypothesis is not None:
            weights.append(weight(h_segments[h], r_segments[r]))
        if from_reference is not None:
            weights.append(weight(r_segments[r], h_segments[h]))
        if weights:
            edges.append(Edge(h, r, from_hypothesis, from_reference, fmean(weights)))
    return tuple(edges)


def _closest(
    sources: Sequence[range],
    targets: Sequence[range],
    overlaps: Sequence[tuple[int, int]],
    closeness: Measure,
) -> dict[tuple[int, int], float]:
    """Each source with the target it is aligned to, and how close they are."""
    closest = {}
    for source, group in groupby(overlaps, key=itemgetter(0)):
        x = sources[source]
        near = [(closeness(x, targets[t]), jaccard(x, targets[t]), t) for _, t in group]
        best = max(near, key=itemgetter(0, 1))  # of equals, max takes the first: the leftmost
        closest[source, best[2]] = best[0]
    return closest


def _shared(one: range, other: range) -> int:
    """Units in both."""
    return max(0, min(one.stop, other.stop) - max(one.start, other.start))


@njit(cache=True, nogil=True)
def _count(hypothesis: Masses, reference: Masses, counts: Floats) -> None:
    """Fill in the counts of `Alignment`.

    Two segments overlap in one span or none, so the overlapping pairs of segments are the spans
    between neighbouring boundaries of either side, and one merge from left to right meets them
    all. Of a segment's spans the longest is the closest; among equals, the one that lies in the
    shorter segment has the higher Jaccard index. Both are whole numbers, so ties are exact.
    """
    most = hypothesis.shape[1] + reference.shape[1]
    units = np.empty(most, dtype=np.int64)  # of each span, left to right
    h_of = np.empty(most, dtype=np.int64)  # its segment of the hypothesis
    r_of = np.empty(most, dtype=np.int64)  # and of the reference
    h_best = np.empty(most, dtype=np.int64)  # the span each segment has with its closest
    r_best = np.empty(most, dtype=np.int64)
    for p in range(len(counts)):
        h_masses, r_masses = hypothesis[p], reference[p]
        s, h, r = 0, 0, 0
        h_left, r_left = h_masses[0], r_masses[0]  # units of the two segments not yet listed
        h_units, r_units = 0, 0  # in the best span so far
        while h_left > 0:
            span = min(h_left, r_left)
            units[s], h_of[s], r_of[s] = span, h, r
            if span > h_units or (span == h_units and r_masses[r] < r_masses[r_of[h_best[h]]]):
                h_units, h_best[h] = span, s
            if span > r_units or (span == r_units and h_masses[h] < h_masses[h_of[r_best[r]]]):
                r_units, r_best[r] = span, s
            s += 1
            h_left -= span
            r_left -= span
            if h_left == 0:
                h, h_units = h + 1, 0
                h_left = h_masses[h] if h < len(h_masses) else 0
            if r_left == 0:
                r, r_units = r + 1, 0
                r_left = r_masses[r] if r < len(r_masses) else 0
        counts[p] = 0.0
        for i in range(s):
            h, r = h_of[i], r_of[i]
            if h_best[h] == i or r_best[r] == i:
                counts[p, 0] += units[i] / (h_masses[h] + r_masses[r] - units[i])
                counts[p, 1] += 1.0
