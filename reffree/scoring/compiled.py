"""The five metrics as one compiled loop per hypothesis: the CPU's fast path.

The tables of one document make everything else a look-up:

* for every unit, running sums of distances outwards from it, as in `reffree.scoring.pairs`;
* for every span of units, the sums over its pairs that dispersions are made of.

All are sums of non-negative terms, so nothing cancels. A hypothesis then costs a few look-ups per
unit, whatever the embedding size, and hypotheses are shared out over threads. The definitions are
those of the torch modules, which score everything else; tests hold the two together.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reffree.scoring.arp import ZERO_CENTROID
from reffree.scoring.metrics import COMPILED
from reffree.scoring.pairs import NEAR, Units
from reffree.scoring.segrefree import ALL_SINGLE, EQUAL_CENTROIDS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TABLES = 7
"""Tables of n × (n + 1) numbers that are held per document."""


class Tables(NamedTuple):
    """Look-ups of one document; rows of the span tables are ends, columns starts."""

    squared_rows: Floats  # [i, c] signed sum of |x_i - x_j|² from i to c
    distance_rows: Floats  # the same of |x_i - x_j|
    squared: Floats  # [b, a] Σ over pairs in [a, b) of |x_i - x_j|²
    angle: Floats  # of 1 - cos
    weighted: Floats  # of (w_i + w_j)(1 - cos), w the vectors' lengths
    product: Floats  # of w_i w_j (1 - cos)
    weight: Floats  # Σ over units in [a, b) of w


def table_bytes(n_units: int) -> int:
    """Return what the tables of a document take, with the two matrices they are made from."""
    return (TABLES + 2) * 8 * (n_units + 1) ** 2


def build_tables(units: Units) -> Tables:
    """Make the look-ups of a single document."""
    x = units.vectors[0].numpy()
    centred = units.centred[0]
    gram = (centred @ centred.T).numpy()
    n = len(x)
    # One allocation: large arrays get large pages, and far fewer faults.
    filled = list(np.zeros((TABLES, n + 1, n + 1)))
    _fill(gram, x, units.norm[0].numpy(), float(units.rounding[0]), *filled)
    return Tables(*filled)


def score_masses(tables: Tables, masses: Integers, threads: int) -> tuple[Floats, Integers]:
    """Score hypotheses given as masses padded with zeros at the end.

    Returns:
        Raw scores (hypotheses, `COMPILED`), NaN where undefined or without a boundary, and the
        pairs that SegReFree left out.
    """
    scores = np.empty((len(masses), len(COMPILED)))
    left_out = np.zeros(len(masses), dtype=np.int64)
    parts = np.array_split(np.arange(len(masses)), max(1, min(threads, len(masses))))
    spans = [(int(part[0]), int(part[-1]) + 1) for part in parts if len(part)]

    def work(span: tuple[int, int]) -> None:
        _score(masses[slice(*span)], scores[slice(*span)], left_out[slice(*span)], *tables)

    if len(spans) == 1:
        work(spans[0])
    else:
        with ThreadPoolExecutor(len(spans)) as pool:
            list(pool.map(work, spans))
    return scores, left_out


@njit(cache=True, nogil=True)
def _measure(gram, x, norm, rounding):
    """Squared distances: from the Gram matrix, near pairs directly, 0 where rounding makes them."""
    n, d = x.shape
    pairs = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            scale = gram[i, i] + gram[j, j]
            value = scale - 2.0 * gram[i, j]
            if value < NEAR * scale:
                value = 0.0
                for k in range(d):
                    difference = x[i, k] - x[j, k]
                    value += difference * difference
            if value <= rounding * (norm[i] * norm[i] + norm[j] * norm[j]):
                value = 0.0
            pairs[i, j] = value
            pairs[j, i] = value
    return pairs


@njit(cache=True, nogil=True)
def _fill(
    gram, x, norm, rounding, squared_rows, distance_rows, squared, angle, weighted, product, weight
):
    n = len(x)
    pairs = _measure(gram, x, norm, rounding)
    for i in range(n):
        running, distance = 0.0, 0.0
        for c in range(i, n):
            running += pairs[i, c]
            distance += math.sqrt(pairs[i, c])
            squared_rows[i, c + 1] = running
            distance_rows[i, c + 1] = distance
        running, distance = 0.0, 0.0
        turned, sided, twofold = 0.0, 0.0, 0.0
        weight[i + 1, i] = norm[i]
        for c in range(i - 1, -1, -1):
            value = pairs[i, c]
            running += value
            distance += math.sqrt(value)
            squared_rows[i, c] = -running
            distance_rows[i, c] = -distance
            both = norm[i] * norm[c]
            turn = 1.0  # a zero vector has no direction
            if both > 0.0:
                difference = norm[i] - norm[c]
                turn = (value - difference * difference) / (2.0 * both)
                if turn < NEAR:
                    turn = _turn(x, i, c, norm)
                    if turn <= rounding:
                        turn = 0.0
            turned += turn
            sided += (norm[i] + norm[c]) * turn
            twofold += both * turn
            squared[i + 1, c] = squared[i, c] + running
            angle[i + 1, c] = angle[i, c] + turned
            weighted[i + 1, c] = weighted[i, c] + sided
            product[i + 1, c] = product[i, c] + twofold
            weight[i + 1, c] = weight[i, c] + norm[i]


@njit(cache=True, nogil=True)
def _turn(x, i, j, norm):
    """Half the squared distance of two directions, measured directly."""
    total = 0.0
    for k in range(x.shape[1]):
        difference = x[i, k] / norm[i] - x[j, k] / norm[j]
        total += difference * difference
    return total / 2.0


@njit(cache=True, nogil=True)
def _cos_dispersion(a, b, weighted, product, weight):
    """See `reffree.scoring.arp.ArpCos.dispersion`."""
    total = weight[b, a]
    if total <= 0.0:
        return 1.0
    beta = 2.0 * product[b, a] / (total * total)
    if 1.0 - beta <= ZERO_CENTROID:
        return 1.0
    alpha = weighted[b, a] / ((b - a) * total)
    centroid = math.sqrt(1.0 - beta)
    return max(0.0, (alpha - beta / (1.0 + centroid)) / centroid)


@njit(cache=True, nogil=True)
def _arp(edges, n_segments, tables, out):
    squared, angle, weighted, product, weight = tables
    inter = np.empty((n_segments - 1, 4))
    intra = np.empty((n_segments - 1, 4))
    multiple = np.zeros(4)
    single = np.zeros(4)
    n_multiple = 0
    for s in range(n_segments - 1):
        start, stop, after = edges[s], edges[s + 1], edges[s + 2]
        cut = min(2 * (after - stop), stop - start)
        left, right = (cut + 1) // 2, cut // 2
        if cut == 1:
            right = 1
        a, b = stop - left, stop + right
        size = b - a
        variance = squared[b, a] / (size * size)
        inter[s, 0] = variance
        inter[s, 1] = math.sqrt(variance)
        inter[s, 2] = _cos_dispersion(a, b, weighted, product, weight)
        inter[s, 3] = 2.0 * angle[b, a] / (size * (size - 1))
        if cut > 1:
            a = stop - cut
            variance = squared[stop, a] / (cut * cut)
            intra[s, 0] = variance
            intra[s, 1] = math.sqrt(variance)
            intra[s, 2] = _cos_dispersion(a, stop, weighted, product, weight)
            intra[s, 3] = 2.0 * angle[stop, a] / (cut * (cut - 1))
            n_multiple += 1
            multiple += intra[s]
        else:
            intra[s, 0] = -1.0
            single += inter[s]
    substitute = multiple / n_multiple if n_multiple else single / (n_segments - 1)
    total = np.zeros(4)
    for s in range(n_segments - 1):
        if intra[s, 0] < 0.0:
            intra[s] = substitute
        for m in range(4):
            x, y = inter[s, m], intra[s, m]
            if x + y > 0.0:
                total[m] += (x - y) / (x + y)
    out[:4] = total / (n_segments - 1)


@njit(cache=True, nogil=True)
def _silhouette(edges, n_segments, distance_rows, out):
    over_segments, over_units = 0.0, 0.0
    for s in range(n_segments):
        start, stop = edges[s], edges[s + 1]
        if stop - start == 1:
            continue
        before = edges[s - 1] if s > 0 else start
        after = edges[s + 2] if s < n_segments - 1 else stop
        own_scale = 1.0 / (stop - start - 1)
        before_scale = 1.0 / max(1, start - before)
        after_scale = 1.0 / max(1, after - stop)
        total = 0.0
        for i in range(start, stop):
            low, high = distance_rows[i, start], distance_rows[i, stop]
            a = (high - low) * own_scale
            b = math.inf
            if s > 0:
                b = (low - distance_rows[i, before]) * before_scale
            if s < n_segments - 1:
                b = min(b, (distance_rows[i, after] - high) * after_scale)
            largest = max(a, b)
            if largest > 0.0:
                total += (b - a) / largest
        over_units += total
        over_segments += total / (stop - start)
    out[4] = over_segments / n_segments
    out[5] = over_units / edges[n_segments]


@njit(cache=True, nogil=True)
def _segrefree(edges, n_segments, squared_rows, squared, out):
    dispersion = np.zeros(n_segments)
    n_multiple = 0
    for s in range(n_segments):
        start, stop = edges[s], edges[s + 1]
        m = stop - start
        if m > 1:
            variance = squared[stop, start] / (m * m)
            total = 0.0
            for i in range(start, stop):
                q = (squared_rows[i, stop] - squared_rows[i, start]) / m - variance
                total += math.sqrt(max(0.0, q))
            dispersion[s] = total / m / (1.0 - 1.0 / math.sqrt(m))
            n_multiple += 1
    if n_multiple == 0:
        out[6] = ALL_SINGLE
        return 0
    others = dispersion.sum() / n_multiple
    for s in range(n_segments):
        if edges[s + 1] - edges[s] == 1:
            dispersion[s] = others
    left_out, defined, total = 0, 0, 0.0
    previous = -1.0
    for s in range(n_segments):
        ratio = -1.0  # with the next segment; negative where there is none
        if s < n_segments - 1:
            gap = _centroid_gap(edges[s], edges[s + 1], edges[s + 2], squared)
            if gap > 0.0:
                ratio = (dispersion[s] + dispersion[s + 1]) / math.sqrt(gap)
            else:
                left_out += 1
        worst = max(previous, ratio)
        total += max(0.0, worst)
        defined += worst >= 0.0
        previous = ratio
    out[6] = total / defined if defined else math.nan
    return left_out


@njit(cache=True, nogil=True)
def _centroid_gap(a, b, c, squared):
    """Squared distance between the centroids of [a, b) and [b, c); 0 where they are equal."""
    m, k = b - a, c - b
    cross = (squared[c, a] - squared[b, a] - squared[c, b]) / (m * k)
    gap = cross - squared[b, a] / (m * m) - squared[c, b] / (k * k)
    return gap if gap > EQUAL_CENTROIDS * cross else 0.0


@njit(cache=True, nogil=True)
def _score(
    masses,
    scores,
    left_out,
    squared_rows,
    distance_rows,
    squared,
    angle,
    weighted,
    product,
    weight,
):
    edges = np.zeros(masses.shape[1] + 1, dtype=np.int64)
    spans = (squared, angle, weighted, product, weight)
    for h in range(masses.shape[0]):
        n_segments = 0
        while n_segments < masses.shape[1] and masses[h, n_segments] > 0:
            edges[n_segments + 1] = edges[n_segments] + masses[h, n_segments]
            n_segments += 1
        if n_segments == 1:
            scores[h] = math.nan
            continue
        _arp(edges, n_segments, spans, scores[h])
        _silhouette(edges, n_segments, distance_rows, scores[h])
        left_out[h] = _segrefree(edges, n_segments, squared_rows, squared, scores[h])
