"""Cohesion of parts of a document and segment edit distance, as compiled loops.

A document comes as the numbers of its words in reading order and, for every word, the words at
least as similar as the threshold, most similar first: the closest word of a part is then the first
of that list that the part holds. No table grows with the square of the document.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reffree.util.arrays import Floats, Integers
from reffree.util.compiling import njit

EQUAL = 1e-12
"""Alignments whose costs differ by no more are equally good: the one of most edits is taken."""


class Words(NamedTuple):
    """The words of one document that have a vector, and which of them are similar."""

    numbers: NDArray[np.int32]  # (words,) in reading order
    offsets: Integers  # (units + 1,) where each unit's words start
    starts: Integers  # (distinct + 1,) where each word's similar words start
    similar: NDArray[np.int32]  # similar words, themselves included, most similar first
    cosines: Floats  # their cosines
    uses: Integers  # (distinct + 1,) where the units that use each word start
    users: NDArray[np.int32]  # (words,) those units, in order, as often as they use it
    n_unknown: int  # words without a vector, which count nowhere else


class Segments(NamedTuple):
    """One segmentation."""

    edges: Integers  # (segments + 1,) units before each segment, and the end
    owner: Integers  # (units,) segment of each unit


class Notes(NamedTuple):
    """Room to note things down; what is noted holds for one turn, so nothing is wiped."""

    turn: Integers  # (1,)
    held: Integers  # (2, distinct) turn in which a part was seen to hold the word
    times: Integers  # (distinct,) how often a segment that looks ahead uses the word
    reached: Integers  # (units,) turn in which a segment was reached
    sums: Floats  # (2, units) cohesion towards each segment, and back


def make_notes(words: Words) -> Notes:
    """Make room for one document."""
    distinct, units = len(words.starts) - 1, len(words.offsets) - 1
    return Notes(
        np.zeros(1, np.int64),
        np.zeros((2, distinct), np.int64),
        np.zeros(distinct, np.int64),
        np.zeros(units, np.int64),
        np.zeros((2, units)),
    )


@njit(cache=True)
def cohesion(words, notes, a, b, c, d, e, f):
    """Cohesion CL of the units [a, b) with those of [c, d) and [e, f); 0 where either has no word.

    See `reffree.metrics.gold.sed.cohesion`.
    """
    offsets = words.offsets
    notes.turn[0] += 1
    turn = notes.turn[0]
    one, other = notes.held[0], notes.held[1]
    _hold(words.numbers, offsets[a], offsets[b], one, turn)
    _hold(words.numbers, offsets[c], offsets[d], other, turn)
    _hold(words.numbers, offsets[e], offsets[f], other, turn)
    there = _directed(words, offsets[a], offsets[b], other, turn)
    back = _directed(words, offsets[c], offsets[d], one, turn)
    back += _directed(words, offsets[e], offsets[f], one, turn)
    n_back = offsets[d] - offsets[c] + offsets[f] - offsets[e]
    return _harmonic(there, offsets[b] - offsets[a], back, n_back)


@njit(cache=True)
def _hold(numbers, start, stop, held, turn):
    """Note that a part holds these words."""
    for position in range(start, stop):
        held[numbers[position]] = turn


@njit(cache=True)
def _directed(words, start, stop, held, turn):
    """Sum over these words of the cosine with the closest word held."""
    numbers, starts, similar, cosines = words.numbers, words.starts, words.similar, words.cosines
    total = 0.0
    for position in range(start, stop):
        number = numbers[position]
        # Written out here and in `_follow`: a call for each word takes as long again.
        for k in range(starts[number], starts[number + 1]):
            if held[similar[k]] == turn:
                total += cosines[k]
                break
    return total


@njit(cache=True)
def _harmonic(there, n_there, back, n_back):
    """Harmonic mean of two means, 0 where either is."""
    if there <= 0.0 or back <= 0.0:
        return 0.0
    x, y = there / n_there, back / n_back
    return 2.0 * x * y / (x + y)


@njit(cache=True)
def pair_sums(words, notes, segments, first, last, sums):
    """Fill in the cohesion summed over the pairs of segments first … last, in four parts.

    These are the pairs without either end, with the first only, with the last only, and the pair of
    both ends. Each segment looks ahead along the uses of the words similar to its own, so that
    segments that share nothing cost nothing.
    """
    edges = segments.edges
    for part in range(4):
        sums[part] = 0.0
    for p in range(first, last):
        _look_ahead(words, notes, segments, p, last)
        own = words.offsets[edges[p + 1]] - words.offsets[edges[p]]
        for q in range(p + 1, last + 1):
            other = words.offsets[edges[q + 1]] - words.offsets[edges[q]]
            value = _harmonic(notes.sums[0, q], own, notes.sums[1, q], other)
            sums[(p == first) + 2 * (q == last)] += value


@njit(cache=True)
def _look_ahead(words, notes, segments, p, last):
    """Sum the closest cosines of segment p's words in every later segment, and the reverse."""
    numbers, held, times = words.numbers, notes.held[0], notes.times
    begin, end = words.offsets[segments.edges[p]], words.offsets[segments.edges[p + 1]]
    notes.turn[0] += 1
    turn = notes.turn[0]
    for q in range(p + 1, last + 1):
        notes.sums[0, q] = 0.0
        notes.sums[1, q] = 0.0
    for position in range(begin, end):
        number = numbers[position]
        if held[number] != turn:
            held[number] = turn
            times[number] = 0
        times[number] += 1
    for position in range(begin, end):
        number = numbers[position]
        if times[number] > 0:
            _follow(words, notes, segments, number, turn, p, last)
            times[number] = 0


@njit(cache=True)
def _follow(words, notes, segments, number, turn, p, last):
    """Follow one word of segment p, and the words similar to it, into every later segment."""
    ahead, stop = segments.edges[p + 1], segments.edges[last + 1]
    notes.turn[0] += 1
    reach = notes.turn[0]
    for k in range(words.starts[number], words.starts[number + 1]):
        word = words.similar[k]
        there = notes.times[number] * words.cosines[k]
        back = 0.0
        if notes.held[1, word] != turn:  # the first word of p that leads to it
            notes.held[1, word] = turn
            for m in range(words.starts[word], words.starts[word + 1]):
                if notes.held[0, words.similar[m]] == turn:
                    back = words.cosines[m]
                    break
        for use in range(words.uses[word + 1] - 1, words.uses[word] - 1, -1):
            unit = words.users[use]
            if unit < ahead:
                break
            if unit < stop:
                q = segments.owner[unit]
                notes.sums[1, q] += back
                if notes.reached[q] != reach:
                    notes.reached[q] = reach
                    notes.sums[0, q] += there


@njit(cache=True)
def transposition_terms(words, notes, a, b, c, d):
    """Cohesion of the reference segment [a, b) with what [c, d) has more, and with what it lacks.

    NaN where there is no such part.
    """
    extra, missing = math.nan, math.nan
    if c < a or d > b:
        extra = cohesion(words, notes, a, b, min(a, c), a, b, max(b, d))
    if a < c or b > d:
        missing = cohesion(words, notes, a, b, a, max(a, c), min(b, d), b)
    return extra, missing


@njit(cache=True)
def transposition_cost(extra, missing):
    """TC; parts that do not exist add nothing."""
    lack = 0.0 if math.isnan(extra) else 1.0 - extra
    return lack if math.isnan(missing) else lack + missing


@njit(cache=True)
def group_terms(words, notes, start, stop, count, a, b, total):
    """Terms of aligning a group, the units [start, stop), with one segment [a, b).

    Cohesion of the one with the union; the share of its inner gaps that a group of this many
    leaves; the mean cohesion of the group's pairs, whose sum is given.
    """
    whole = cohesion(words, notes, a, b, start, stop, start, start)
    return whole, (b - a - count) / (b - a - 1), total / (count * (count - 1) / 2)


@njit(cache=True)
def group_cost(whole, unbroken, related, is_split):
    """1 - SC or 1 - MC: splitting what is related costs more, merging it costs less."""
    return 1.0 - whole * unbroken * (1.0 - related if is_split else related)


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
