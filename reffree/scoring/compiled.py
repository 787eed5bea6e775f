"""The five metrics as one compiled loop per hypothesis: the CPU's fast path.

With the tables of a document (`reffree.scoring.tables`) a hypothesis costs a few look-ups per unit,
whatever the embedding size, and hypotheses are shared out over threads. The definitions are those
of the torch modules, which score everything else; tests hold the two together.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from reffree.masses import Masses
from reffree.parallel import over_rows
from reffree.scoring.metrics import COMPILED
from reffree.scoring.pairs import rounding_of
from reffree.scoring.segrefree import ALL_SINGLE, EQUAL_CENTROIDS
from reffree.scoring.tables import (
    VECTORISED,
    Band,
    Tables,
    band_of,
    build_tables,
    table_bytes,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SAFE_EXPONENT = 100
"""Powers of two of the largest component within which squares neither overflow nor vanish."""

SMALL = 1 << 24
"""Bytes of tables that are made without asking how much memory there is."""

THREADED = 1 << 18
"""Hypotheses × units from which threads are worth starting."""


class CompiledDocument:
    """One document's tables, made when first needed and as wide as needed."""

    def __init__(self, document: Tensor) -> None:
        """Take the vectors to float64; the caller's tensor is not touched."""
        x = document.detach().double()
        largest = max(abs(float(bound)) for bound in torch.aminmax(x))
        exponent = math.frexp(largest)[1]
        if abs(exponent) > SAFE_EXPONENT:
            # Scores do not depend on scale: by a power of two, nothing overflows, no bit is lost.
            x = torch.ldexp(x, torch.tensor(-max(-1000, min(exponent, 1000))))
        self.vectors: Floats = np.ascontiguousarray(x.numpy())
        self.rounding = rounding_of(document.dtype)
        self.band: Band | None = None
        self.tables: Tables | None = None

    def prepare(self, masses: Masses, memory: Callable[[], int]) -> bool:
        """Make tables that hold every look-up of these hypotheses, unless they are too large.

        ``memory`` is asked only for tables that are not small.
        """
        band = band_of(masses, len(self.vectors), self.band)
        if self.band is None or band.size > self.band.size:
            needed = table_bytes(band, self.vectors.size)
            if needed > SMALL and needed > memory():
                return False
            self.tables = None  # before the larger ones are made
            self.tables = build_tables(self.vectors, self.rounding, band)
            self.band = band
        return True

    def score(self, masses: Masses, threads: int) -> tuple[Floats, Integers]:
        """Score hypotheses given as masses padded with zeros at the end, after `prepare`.

        Returns:
            Raw scores (hypotheses, `COMPILED`), NaN where undefined or without a boundary, and the
            pairs that SegReFree left out.
        """
        if self.tables is None:
            raise RuntimeError("no tables: call prepare first")
        tables = self.tables
        scores = np.empty((len(masses), len(COMPILED)))
        left_out = np.zeros(len(masses), dtype=np.int64)
        shares = 1 if masses.shape[0] * len(self.vectors) < THREADED else threads

        def work(rows: slice) -> None:
            _score(masses[rows], scores[rows], left_out[rows], *tables)

        over_rows(work, len(masses), shares)
        return scores, left_out


@njit(cache=True, nogil=True, error_model="numpy")
def _score(masses, scores, left_out, base, squared, distance, spread):
    edges = np.zeros(masses.shape[1] + 1, dtype=np.int64)
    work = np.empty((masses.shape[1], 8))  # per segment
    units = np.empty((3, len(base)))
    for h in range(masses.shape[0]):
        n_segments = 0
        while n_segments < masses.shape[1] and masses[h, n_segments] > 0:
            edges[n_segments + 1] = edges[n_segments] + masses[h, n_segments]
            n_segments += 1
        if n_segments == 1:
            scores[h] = math.nan
            continue
        _arp(edges, n_segments, base, spread, work, scores[h])
        _silhouette(edges, n_segments, base, distance, units, scores[h])
        left_out[h] = _segrefree(edges, n_segments, base, squared, spread, units, work, scores[h])


@njit(cache=True, nogil=True, error_model="numpy")
def _arp(edges, n_segments, base, spread, work, out):
    """Columns 0 to 3 of ``work``: inter of std p = 2, p = 1, cos, pair; 4 to 7: intra."""
    multiple = np.zeros(4)
    single = np.zeros(4)
    n_multiple = 0
    for s in range(n_segments - 1):
        start, stop, after = edges[s], edges[s + 1], edges[s + 2]
        cut = min(2 * (after - stop), stop - start)
        left, right = (cut + 1) // 2, cut // 2
        if cut == 1:
            right = 1
        at = base[stop - left] + stop + right - 1
        work[s, 0] = spread[at, 0]
        work[s, 1] = math.sqrt(spread[at, 0])
        work[s, 2] = spread[at, 1]
        work[s, 3] = spread[at, 2]
        if cut > 1:
            at = base[stop - cut] + stop - 1
            work[s, 4] = spread[at, 0]
            work[s, 5] = math.sqrt(spread[at, 0])
            work[s, 6] = spread[at, 1]
            work[s, 7] = spread[at, 2]
            n_multiple += 1
            for m in range(4):
                multiple[m] += work[s, 4 + m]
        else:
            work[s, 4] = -1.0
            for m in range(4):
                single[m] += work[s, m]
    substitute = multiple / n_multiple if n_multiple else single / (n_segments - 1)
    total = np.zeros(4)
    for s in range(n_segments - 1):
        is_single = work[s, 4] < 0.0
        for m in range(4):
            inter = work[s, m]
            intra = substitute[m] if is_single else work[s, 4 + m]
            if inter + intra > 0.0:
                total[m] += (inter - intra) / (inter + intra)
    for m in range(4):
        out[m] = total[m] / (n_segments - 1)


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _silhouette(edges, n_segments, base, distance, units, out):
    """Rows of ``units``: a, b and the weight of each unit; segments are short, so divide later."""
    n = edges[n_segments]
    for s in range(n_segments):
        start, stop = edges[s], edges[s + 1]
        share = 1.0 / (stop - start)
        if stop - start == 1:
            units[0, start], units[1, start], units[2, start] = 0.0, 0.0, 0.0
            continue
        low, high = base[start], base[stop]
        own = 1.0 / (stop - start - 1)
        # Either neighbour as a sum between two edges; a missing one repeats the other.
        if s > 0:
            from_left, to_left, left = base[edges[s - 1]], low, 1.0 / (start - edges[s - 1])
        if s < n_segments - 1:
            from_right, to_right, right = high, base[edges[s + 2]], 1.0 / (edges[s + 2] - stop)
        if s == 0:
            from_left, to_left, left = from_right, to_right, right
        if s == n_segments - 1:
            from_right, to_right, right = from_left, to_left, left
        to_low, to_high = distance[low + start : low + stop], distance[high + start : high + stop]
        left_low = distance[from_left + start : from_left + stop]
        left_high = distance[to_left + start : to_left + stop]
        right_low = distance[from_right + start : from_right + stop]
        right_high = distance[to_right + start : to_right + stop]
        to_own, to_next, weight = units[0, start:], units[1, start:], units[2, start:]
        # Slices, because loops from 0 to a length vectorise.
        for i in range(len(to_low)):
            to_own[i] = (to_high[i] - to_low[i]) * own
            before, after = left_high[i] - left_low[i], right_high[i] - right_low[i]
            to_next[i] = min(before * left, after * right)
            weight[i] = share
    over_segments, over_units = 0.0, 0.0
    for i in range(n):
        a, b = units[0, i], units[1, i]
        largest = max(a, b)
        value = (b - a) / (largest if largest > 0.0 else 1.0)
        over_units += value
        over_segments += value * units[2, i]
    out[4] = over_segments / n_segments
    out[5] = over_units / n


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _segment_dispersions(edges, n_segments, base, squared, spread, units, work):
    """Column 0 of ``work``: SegReFree's dispersion; row 0 of ``units``: distances to centroids."""
    for s in range(n_segments):
        start, stop = edges[s], edges[s + 1]
        low, high = base[start], base[stop]
        share, variance = 1.0 / (stop - start), spread[low + stop - 1, 0]
        to_low, to_high = squared[low + start : low + stop], squared[high + start : high + stop]
        own = units[0, start:]
        for i in range(len(to_low)):
            own[i] = (to_high[i] - to_low[i]) * share - variance
    for i in range(edges[n_segments]):
        units[0, i] = math.sqrt(max(0.0, units[0, i]))
    n_multiple, all_multiple = 0, 0.0
    for s in range(n_segments):
        m = edges[s + 1] - edges[s]
        if m > 1:
            own = units[0, edges[s] : edges[s + 1]]
            total = 0.0
            for i in range(len(own)):
                total += own[i]
            work[s, 0] = total / m / (1.0 - 1.0 / math.sqrt(m))
            all_multiple += work[s, 0]
            n_multiple += 1
    for s in range(n_segments):
        if n_multiple and edges[s + 1] - edges[s] == 1:
            work[s, 0] = all_multiple / n_multiple
    return n_multiple


@njit(cache=True, nogil=True, error_model="numpy")
def _segrefree(edges, n_segments, base, squared, spread, units, work, out):
    if _segment_dispersions(edges, n_segments, base, squared, spread, units, work) == 0:
        out[6] = ALL_SINGLE
        return 0
    left_out, defined, total = 0, 0, 0.0
    previous = -1.0
    for s in range(n_segments):
        ratio = -1.0  # with the next segment; negative where there is none
        if s < n_segments - 1:
            gap = _centroid_gap(edges[s], edges[s + 1], edges[s + 2], base, spread)
            if gap > 0.0:
                ratio = (work[s, 0] + work[s + 1, 0]) / math.sqrt(gap)
            else:
                left_out += 1
        worst = max(previous, ratio)
        total += max(0.0, worst)
        defined += worst >= 0.0
        previous = ratio
    out[6] = total / defined if defined else math.nan
    return left_out


@njit(cache=True, nogil=True, error_model="numpy")
def _centroid_gap(a, b, c, base, spread):
    """Squared distance between the centroids of [a, b) and [b, c); 0 where they are equal."""
    m, k = b - a, c - b
    first, second = spread[base[a] + b - 1, 0], spread[base[b] + c - 1, 0]
    both = spread[base[a] + c - 1, 0] * ((m + k) * (m + k))
    cross = (both - first * (m * m) - second * (k * k)) / (m * k)
    gap = cross - first - second
    return gap if gap > EQUAL_CENTROIDS * cross else 0.0
