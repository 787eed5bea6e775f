"""Compiled loops that add up a document's look-ups; see `reffree.scoring.tables`."""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def,call-arg"

from __future__ import annotations

import math

import numpy as np

from reffree.compiling import njit
from reffree.scoring.arp import ZERO_CENTROID
from reffree.scoring.dots_kernel import kept_apart
from reffree.scoring.pairs import NEAR
from reffree.scoring.pairs_kernel import VECTORISED, U

UNLIKE = 1e-3
"""Vectors whose lengths differ by more than this factor have their angle measured directly."""


@njit(cache=True, nogil=True, error_model="numpy")
def widen(masses, low, high):
    """Widen every edge's units to those of all segments beside it and of their neighbours."""
    n = len(low) - 1
    for h in range(masses.shape[0]):
        before, start, s = 0, 0, 0
        if masses[h, 0] == n:
            continue  # without a boundary nothing is looked up
        while start < n:
            stop = start + masses[h, s]
            after = stop + masses[h, s + 1] if stop < n else stop
            low[stop] = min(low[stop], before)
            high[start] = max(high[start], after)
            before, start, s = start, stop, s + 1
    # Both move right with the edge, so what is said of a segment's end holds for all of it.
    for c in range(n - 1, -1, -1):
        low[c] = min(low[c], low[c + 1])
    for c in range(1, n + 1):
        high[c] = max(high[c], high[c - 1])


@njit(cache=True, nogil=True, error_model="numpy")
def sum_to_edges(pairs, band, squared, distance):
    """Running sums from every unit to the edges after it, then to those before it."""
    low, high, base, top = band
    n = len(low) - 1
    for c in range(n):
        first = low[c + 1]
        before, after = squared[base[c] + first : base[c] + c], squared[base[c + 1] + first :]
        near, far = distance[base[c] + first : base[c] + c], distance[base[c + 1] + first :]
        for i in range(len(before)):
            pair = after[i]
            after[i] = before[i] + pair
            far[i] = near[i] + math.sqrt(pair)
        squared[base[c + 1] + c] = 0.0
        distance[base[c + 1] + c] = 0.0
    for a in range(n - 1, -1, -1):
        first, stop = a + 1, high[a]
        pair = pairs[top[a] + first : top[a] + stop]
        before, after = squared[base[a] + first :], squared[base[a + 1] + first :]
        far, near = distance[base[a] + first :], distance[base[a + 1] + first :]
        for i in range(len(pair)):
            before[i] = after[i] - pair[i]
            far[i] = near[i] - math.sqrt(pair[i])
        squared[base[a] + a] = 0.0
        distance[base[a] + a] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def sum_spans(pairs, x, length, rounding, band, sums):
    """Sums over the pairs of every span: see `reffree.scoring.tables.Tables`."""
    _, high, _, top = band
    n = len(x)
    running = np.zeros((4, n))  # from each unit to the span's start
    turn = np.empty(n)
    for a in range(n - 1, -1, -1):
        first, count, at = a + 1, high[a] - a - 1, top[a] + a + 1
        if turns(pairs, U(at), length, U(a), U(first), U(count), turn):
            turn_again(x, length, rounding, a, first, turn[:count])
        extend(pairs, U(at), turn, length, U(a), U(first), U(count), running)
        for k in range(4):
            sums[at - 1, k] = 0.0
        _add_up(running, U(first), U(count), sums, U(at))


@njit(cache=True, nogil=True, error_model="numpy")
def turns(pairs, at, length, unit, first, count, turn):
    """``1 - cos`` of a unit with ``count`` others; 1 where one has no direction.

    Returns whether some of them have to be measured directly.
    """
    is_hard = False
    own = length[unit]
    for i in range(count):
        other = length[first + i]
        both, difference = own * other, own - other
        angle = (pairs[at + i] - difference * difference) / (2.0 * both if both > 0.0 else 1.0)
        angle = angle if both > 0.0 else 1.0
        turn[i] = angle
        shorter, longer = (own, other) if own < other else (other, own)
        is_hard |= angle < NEAR
        is_hard |= shorter < UNLIKE * longer
    return is_hard


@njit(cache=True, nogil=True, error_model="numpy")
def turn_again(x, length, rounding, unit, first, turn):
    """Measure small angles, and those of vectors of unlike lengths."""
    own, length_of = length[unit], length[first : first + len(turn)]
    for i in range(len(turn)):
        shorter, longer = min(own, length_of[i]), max(own, length_of[i])
        if shorter > 0.0 and (turn[i] < NEAR or shorter < UNLIKE * longer):
            value = _angle(x[unit], x[first + i], 1.0 / own, 1.0 / length_of[i])
            turn[i] = value if value > rounding else 0.0


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _angle(a, b, scale_a, scale_b):
    """Half the squared distance of two vectors brought to length 1."""
    kept_apart()
    total = 0.0
    for k in range(len(a)):
        difference = a[k] * scale_a - b[k] * scale_b
        total += difference * difference
    return total / 2.0


@njit(cache=True, nogil=True, error_model="numpy")
def extend(pairs, at, turn, length, unit, first, count, running):
    """Add a unit to the sums of those after it."""
    own = length[unit]
    squared, angle, weighted, product = running[0], running[1], running[2], running[3]
    for i in range(count):
        other = length[first + i]
        squared[first + i] += pairs[at + i]
        angle[first + i] += turn[i]
        weighted[first + i] += (own + other) * turn[i]
        product[first + i] += own * other * turn[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_up(running, first, count, sums, at):
    """Sums over spans, from what each further unit adds."""
    squared, angle, weighted, product = running[0], running[1], running[2], running[3]
    total = (0.0, 0.0, 0.0, 0.0)
    for i in range(count):
        k = first + i
        total = (
            total[0] + squared[k],
            total[1] + angle[k],
            total[2] + weighted[k],
            total[3] + product[k],
        )
        into = sums[at + i]
        into[0], into[1], into[2], into[3] = total


@njit(cache=True, nogil=True, error_model="numpy")
def disperse(squared, angle, weighted, product, weight, count):
    """Sums over the pairs of spans of ``count`` units become dispersions, in place.

    Variances, mean angles and, in the place of ``weighted``, cosine dispersions: see
    `reffree.scoring.arp.ArpCos.dispersion`. Short loops without branches, because those vectorise.
    """
    for i in range(len(count)):
        m, total = count[i], weight[i]
        share, inverse = 1.0 / m, 1.0 / (total if total > 0.0 else 1.0)
        squared[i] *= share * share
        angle[i] *= 2.0 * share / (m - 1.0 if m > 1.0 else 1.0)
        weighted[i] *= inverse * share
        product[i] *= 2.0 * inverse * inverse
    for i in range(len(count)):
        alpha, beta = weighted[i], product[i]
        rest = 1.0 - beta
        centroid = math.sqrt(rest if rest > ZERO_CENTROID else ZERO_CENTROID)
        value = (alpha * (1.0 + centroid) - beta) / (centroid * (1.0 + centroid))
        value = value if value > 0.0 else 0.0
        value = value if rest > ZERO_CENTROID else 1.0
        weighted[i] = value if weight[i] > 0.0 else 1.0
