"""The five metrics of a hypothesis by look-ups, as one compiled loop; see `compiled`.

The definitions are those of the torch modules.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from reffree.compiling import njit
from reffree.scoring.pairs_kernel import VECTORISED, U
from reffree.scoring.segrefree import ALL_SINGLE, EQUAL_CENTROIDS
from reffree.scoring.tables_kernel import disperse

FAR = 1e300
"""Stands for the distance to a segment that is not there."""


@njit(cache=True, nogil=True, error_model="numpy")
def score_hypotheses(
    masses, scores, within, left_out, parts, base, top, squared, distance, sums, length
):
    """Fill a row of ``scores`` in the order of `COMPILED` and a count for every row of masses.

    ``within`` gets the sum of squared distances to the segments' centroids; ``parts``, unless it
    is empty, the segments' scores (hypotheses, `COMPILED`, segments), which must be NaN before.
    """
    edges = np.zeros(masses.shape[1] + 1, dtype=np.int64)
    sets = np.empty((6, 2 * masses.shape[1]))
    segments = np.empty((5, masses.shape[1]))
    for h in range(masses.shape[0]):
        n_segments = 0
        while n_segments < masses.shape[1] and masses[h, n_segments] > 0:
            edges[n_segments + 1] = edges[n_segments] + masses[h, n_segments]
            n_segments += 1
        if n_segments == 1:
            for column in range(scores.shape[1]):
                scores[h, column] = math.nan
            within[h] = math.nan
            continue
        cut = edges[: n_segments + 1]
        _arp(cut, top, sums, length, sets, scores[h])
        n_multiple, squares = _units(cut, base, top, squared, distance, sums, segments, scores[h])
        within[h] = squares
        left_out[h] = _segrefree(cut, top, sums, segments, n_multiple, scores[h])
        if len(parts) > 0:
            _keep_parts(sets, segments, n_segments, parts[h])


@njit(cache=True, nogil=True, error_model="numpy")
def _keep_parts(sets, segments, n_segments, parts):
    """Scores of a hypothesis's segments, from what its own score was made of."""
    n = n_segments - 1
    for column, row in ((0, 0), (1, 3), (2, 2), (3, 1)):
        for s in range(n):
            parts[column, s] = _proximity(sets[row, s], sets[row, n + s])
    for s in range(n_segments):
        parts[4, s] = parts[5, s] = segments[3, s]
        if segments[4, s] >= 0.0:
            parts[6, s] = segments[4, s]


@njit(cache=True, nogil=True, error_model="numpy")
def _arp(edges, top, sums, length, sets, out):
    """Rows of ``sets``: `disperse`'s arguments; first every boundary's inter, then its intra.

    They become variances, mean angles, cosine dispersions and standard deviations.
    """
    n = len(edges) - 2
    n_multiple = 0
    for s in range(n):
        start, stop, after = edges[s], edges[s + 1], edges[s + 2]
        cut = min(2 * (after - stop), stop - start)
        _look_up(stop - (cut + 1) // 2, stop + max(1, cut // 2), top, sums, length, sets, s)
        _look_up(stop - cut, stop, top, sums, length, sets, n + s)
        n_multiple += cut > 1
    squares, angles, cosines = sets[0, : 2 * n], sets[1, : 2 * n], sets[2, : 2 * n]
    roots, count = sets[3, : 2 * n], sets[5, : 2 * n]
    disperse(squares, angles, cosines, roots, sets[4, : 2 * n], count)
    for i in range(2 * n):
        roots[i] = math.sqrt(squares[i])
    if n_multiple < n:
        for values in (squares, roots, cosines, angles):
            _substitute(values[:n], values[n:], count[n:], n_multiple)
    out[0] = _mean_proximity(squares)
    out[1] = _mean_proximity(roots)
    out[2] = _mean_proximity(cosines)
    out[3] = _mean_proximity(angles)


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _look_up(start, stop, top, sums, length, sets, column):
    at = top[start] + stop - 1
    for row in range(4):
        sets[row, column] = sums[at, row]
    weight = 0.0
    for i in range(U(start), U(stop)):
        weight += length[i]
    sets[4, column] = weight
    sets[5, column] = stop - start


@njit(cache=True, nogil=True, error_model="numpy")
def _substitute(inter, intra, count, n_multiple):
    """Give one-unit segments, whose count is 1, an intra (eq. 16)."""
    multiple, single = 0.0, 0.0
    for s in range(len(count)):
        if count[s] > 1.0:
            multiple += intra[s]
        else:
            single += inter[s]
    value = multiple / n_multiple if n_multiple else single / len(count)
    for s in range(len(count)):
        if count[s] == 1.0:
            intra[s] = value


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _mean_proximity(dispersion):
    n = len(dispersion) // 2
    inter, intra = dispersion[:n], dispersion[n:]
    total = 0.0
    for s in range(n):
        total += _proximity(inter[s], intra[s])
    return total / n


@njit(cache=True, nogil=True, error_model="numpy")
def _proximity(inter, intra):
    both = inter + intra
    return (inter - intra) / (both if both > 0.0 else 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _units(edges, base, top, squared, distance, sums, segments, out):
    """Silhouette; rows of ``segments``: SegReFree's dispersion, variance, units; silhouette.

    Returns how many segments have several units, as the others have no dispersion yet, and the
    squared distances to the centroids, summed over all units.
    """
    n_segments = len(edges) - 1
    over_segments, over_units, squares, n_multiple = 0.0, 0.0, 0.0, 0
    for s in range(n_segments):
        start, stop = edges[s], edges[s + 1]
        m = stop - start
        segments[0, s], segments[1, s], segments[2, s], segments[3, s] = 0.0, 0.0, m, 0.0
        if m == 1:
            continue
        n_multiple += 1
        share = 1.0 / m
        own = sums[top[start] + stop - 1, 0] * share
        squares += own
        segments[1, s] = variance = own * share
        low, high = base[start] + start, base[stop] + start
        before, left, left_gap = low, 0.0, FAR
        if s > 0:
            before, left, left_gap = base[edges[s - 1]] + start, 1.0 / (start - edges[s - 1]), 0.0
        after, right, right_gap = high, 0.0, FAR
        if s < n_segments - 1:
            after, right, right_gap = base[edges[s + 2]] + start, 1.0 / (edges[s + 2] - stop), 0.0
        places = (U(before), U(low), U(high), U(after))
        shares = (left, left_gap, right, right_gap, 1.0 / (m - 1.0), share, variance)
        contrast, spread = _segment(distance, squared, U(m), places, shares)
        over_units += contrast
        segments[3, s] = contrast * share
        over_segments += segments[3, s]
        segments[0, s] = spread * share / (1.0 - math.sqrt(share))
    out[4] = over_segments / n_segments
    out[5] = over_units / edges[n_segments]
    return n_multiple, squares


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _segment(distance, squared, m, places, shares):
    """Silhouettes and distances to the centroid, summed over the units of a segment."""
    before, low, high, after = places
    left, left_gap, right, right_gap, own, share, variance = shares
    contrast, spread = 0.0, 0.0
    for i in range(m):
        start, stop = distance[low + i], distance[high + i]
        a = (stop - start) * own
        to_left = (start - distance[before + i]) * left + left_gap
        to_right = (distance[after + i] - stop) * right + right_gap
        b = to_left if to_left < to_right else to_right
        largest = a if a > b else b
        contrast += (b - a) / (largest if largest > 0.0 else 1.0)
        square = (squared[high + i] - squared[low + i]) * share - variance
        spread += math.sqrt(square if square > 0.0 else 0.0)
    return contrast, spread


@njit(cache=True, nogil=True, error_model="numpy")
def _segrefree(edges, top, sums, segments, n_multiple, out):
    """Row 4 of ``segments`` becomes every segment's score, negative where it has none."""
    n = len(edges) - 1
    if n_multiple == 0:
        out[6] = ALL_SINGLE
        segments[4, :n] = ALL_SINGLE
        return 0
    dispersion, variance, mass = segments[0, :n], segments[1, :n], segments[2, :n]
    total = 0.0
    for s in range(n):
        total += dispersion[s]
    for s in range(n):
        if mass[s] == 1.0:
            dispersion[s] = total / n_multiple
    left_out, defined, total = 0, 0, 0.0
    previous = -1.0
    for s in range(n):
        ratio = -1.0  # with the next segment; negative where there is none
        if s < n - 1:
            m, k = mass[s], mass[s + 1]
            both = sums[top[edges[s]] + edges[s + 2] - 1, 0]
            within = variance[s] * (m * m) + variance[s + 1] * (k * k)
            cross = (both - within) / (m * k)
            gap = cross - variance[s] - variance[s + 1]
            if gap > EQUAL_CENTROIDS * cross:
                ratio = (dispersion[s] + dispersion[s + 1]) / math.sqrt(gap)
            else:
                left_out += 1
        segments[4, s] = worst = max(previous, ratio)
        total += max(0.0, worst)
        defined += worst >= 0.0
        previous = ratio
    out[6] = total / defined if defined else math.nan
    return left_out
