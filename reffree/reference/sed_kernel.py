"""Segment edit distance as one compiled loop per pair of segmentations."""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from reffree.compiling import njit
from reffree.reference.cohesion_kernel import (
    Segments,
    group_cost,
    group_terms,
    pair_sums,
    transposition_cost,
    transposition_terms,
)

EQUAL = 1e-12
"""Alignments whose costs differ by no more are equally good: the one of most edits is taken."""


@njit(cache=True)
def read_masses(masses):
    """Segments from masses, which may be padded with zeros."""
    edges = np.zeros(len(masses) + 1, np.int64)
    owner = np.zeros(masses.sum(), np.int64)
    count = 0
    while count < len(masses) and masses[count] > 0:
        edges[count + 1] = edges[count] + masses[count]
        for unit in range(edges[count], edges[count + 1]):
            owner[unit] = count
        count += 1
    return Segments(edges[: count + 1], owner)


@njit(cache=True)
def _overlaps(reference, hypothesis):
    """First and last hypothesis segment that overlap each reference segment, and its first state.

    A state is a pair of overlapping segments that an alignment may end with; state 0 is the start.
    """
    n = len(reference.edges) - 1
    left, right, rows = np.zeros(n, np.int64), np.zeros(n, np.int64), np.ones(n + 1, np.int64)
    for i in range(n):
        left[i] = hypothesis.owner[reference.edges[i]]
        right[i] = hypothesis.owner[reference.edges[i + 1] - 1]
        rows[i + 1] = rows[i] + right[i] - left[i] + 1
    return left, right, rows


@njit(cache=True)
def _state(i, j, left, right, rows):
    """Place of the state that ends with reference segment i and hypothesis segment j, or -1."""
    if i < 0 or j < 0:
        return 0 if i == j else -1
    return rows[i] + j - left[i] if left[i] <= j <= right[i] else -1


@njit(cache=True)
def _strands(segments, k, end):
    """Whether segment k + 1 ends no later than this, so that it is left without a partner."""
    return k + 2 < len(segments.edges) and segments.edges[k + 2] <= end


@njit(cache=True)
def _group_price(words, notes, group, one, i, first, last, latest, is_split):
    """Cost of aligning segments first … last of one side with segment i of the other.

    ``latest`` keeps the pair sums of all that overlap it, for the next group, and i itself.
    """
    a, b = one.edges[i], one.edges[i + 1]
    leftmost, rightmost = group.owner[a], group.owner[b - 1]
    if latest[4] != i:
        latest[4] = i
        pair_sums(words, notes, group, leftmost, rightmost, latest)
    total = latest[0]
    if first == leftmost:
        total += latest[1]
    if last == rightmost:
        total += latest[2]
    if first == leftmost and last == rightmost:
        total += latest[3]
    start, stop = group.edges[first], group.edges[last + 1]
    whole, unbroken, related = group_terms(words, notes, start, stop, last - first + 1, a, b, total)
    return group_cost(whole, unbroken, related, is_split)


@njit(cache=True)
def _price(words, notes, hypothesis, reference, i, j, m, n, splits, merges):
    """Cost of the edit of m hypothesis segments that end with j and n of the reference with i."""
    if m != n:
        # One call for both kinds: each more is compiled anew.
        is_split = m > n
        group, last, one, k = hypothesis, j, reference, i
        if not is_split:
            group, last, one, k = reference, i, hypothesis, j
        latest = splits if is_split else merges
        first = last - max(m, n) + 1
        return _group_price(words, notes, group, one, k, first, last, latest, is_split)
    a, b = reference.edges[i], reference.edges[i + 1]
    c, d = hypothesis.edges[j], hypothesis.edges[j + 1]
    extra, missing = transposition_terms(words, notes, a, b, c, d)
    return transposition_cost(extra, missing)


@njit(cache=True)
def align(words, notes, hypothesis, reference):
    """Find the alignment of least cost of two segmentations.

    Every segment of a group overlaps the one it is aligned with, so a group lacks at most the
    first and the last of the segments that do: any other would be left without a partner (§3.1).

    Returns:
        Its cost, and for each edit, the last one first, its hypothesis and reference segments.
    """
    left, right, rows = _overlaps(reference, hypothesis)
    n_states = rows[len(left)]
    cost = np.zeros(n_states)
    edits = np.zeros(n_states, np.int64)
    taken = np.zeros((2, n_states), np.int64)
    splits, merges = np.zeros(5), np.zeros(5)
    splits[4] = merges[4] = -1
    for i in range(len(left)):
        for j in range(left[i], right[i] + 1):
            state = rows[i] + j - left[i]
            cost[state] = math.inf
            a, c = reference.edges[i], hypothesis.edges[j]
            if _strands(hypothesis, j, reference.edges[i + 1]):
                continue
            if _strands(reference, i, hypothesis.edges[j + 1]):
                continue
            for option in range(3):  # one with one, all that overlap, all but the first of them
                m, n = 1, 1
                if option > 0 and a < c:
                    m = j - left[i] + 2 - option
                elif option > 0 and c < a:
                    n = i - reference.owner[c] + 2 - option
                before = _state(i - n, j - m, left, right, rows)
                is_group = max(m, n) > 1
                if before < 0 or cost[before] == math.inf or is_group != (option > 0):
                    continue
                price = cost[before] + _price(
                    words, notes, hypothesis, reference, i, j, m, n, splits, merges
                )
                is_equal = abs(price - cost[state]) <= EQUAL
                if price < cost[state] - EQUAL or (is_equal and edits[before] >= edits[state]):
                    cost[state] = price
                    edits[state] = edits[before] + 1
                    taken[0, state] = m
                    taken[1, state] = n
    return cost[n_states - 1], _trace(taken, edits[n_states - 1], left, right, rows)


@njit(cache=True)
def _trace(taken, n_edits, left, right, rows):
    """Walk back from the last state: (2, edits), the last edit first."""
    steps = np.zeros((2, n_edits), np.int64)
    i, j = len(left) - 1, right[len(left) - 1]
    for k in range(n_edits):
        state = _state(i, j, left, right, rows)
        steps[0, k] = taken[0, state]
        steps[1, k] = taken[1, state]
        i, j = i - taken[1, state], j - taken[0, state]
    return steps


@njit(cache=True)
def count_edits(words, notes, hypotheses, references, counts):
    """Fill in cost and number of edits of each pair, given as masses padded with zeros."""
    for pair in range(len(counts)):
        hypothesis, reference = read_masses(hypotheses[pair]), read_masses(references[pair])
        cost, steps = align(words, notes, hypothesis, reference)
        counts[pair, 0] = cost
        counts[pair, 1] = steps.shape[1]
