"""Segment alignments of many pairs, compiled: the batched path of `reffree.reference.alignment`.

Two segments overlap in one span or none, so the overlapping pairs of segments are the spans between
neighbouring boundaries of either side, and one merge from left to right meets them all. Of a
segment's spans the longest is the closest; among equals, the one that lies in the shorter segment
has the higher Jaccard index. Both are whole numbers, so ties are exact.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reffree.compiling import njit
from reffree.parallel import THREADED, available_threads, over_rows
from reffree.reference.pairs import Pairs


def count_edges(pairs: Pairs) -> NDArray[np.float64]:
    """Sum of the Jaccard indices of each pair's edges, and their number: (pairs, 2)."""
    counts = np.empty((len(pairs), 2))
    hypotheses, references = pairs.rows()

    def work(rows: slice) -> None:
        _count(hypotheses[rows], references[rows], counts[rows])

    is_much = hypotheses.size + references.size >= THREADED
    over_rows(work, len(pairs), available_threads() if is_much else 1)
    return counts


@njit(cache=True, nogil=True)
def _count(hypothesis, reference, counts):
    most = hypothesis.shape[1] + reference.shape[1]
    units = np.empty(most, dtype=np.int64)  # of each span, left to right
    h_of = np.empty(most, dtype=np.int64)  # its segment of the hypothesis
    r_of = np.empty(most, dtype=np.int64)  # and of the reference
    h_best = np.empty(most, dtype=np.int64)  # the span each segment has with its closest
    r_best = np.empty(most, dtype=np.int64)
    for p in range(len(counts)):
        h_masses, r_masses = hypothesis[p], reference[p]
        n_spans = _choose(h_masses, r_masses, units, h_of, r_of, h_best, r_best)
        counts[p] = 0.0
        for s in range(n_spans):
            h, r = h_of[s], r_of[s]
            if h_best[h] == s or r_best[r] == s:
                counts[p, 0] += units[s] / (h_masses[h] + r_masses[r] - units[s])
                counts[p, 1] += 1.0


@njit(cache=True, nogil=True)
def _choose(h_masses, r_masses, units, h_of, r_of, h_best, r_best):
    """List the spans and choose one for every segment; return how many spans there are."""
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
    return s
