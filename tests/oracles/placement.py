"""Placement of a segmentation, written out literally: every rival and every order is tried.

``shared`` has for every pair of units a window apart the probability that they share a segment, at
the hypothesis's own number of segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise, permutations

from tests.oracles.expected import every_segmentation


def segment_of_units(masses: Sequence[int]) -> list[int]:
    """The segment that each unit is in."""
    return [which for which, mass in enumerate(masses) for _ in range(mass)]


def expected_error(masses: Sequence[int], shared: Sequence[float], window: int) -> float:
    """The probability that a window is judged wrong, on average over windows."""
    where = segment_of_units(masses)
    wrong = [1 - q if where[i] == where[i + window] else q for i, q in enumerate(shared)]
    return sum(wrong) / len(wrong)


def least_error(
    n: int, count: int, shared: Sequence[float], window: int, edges: Sequence[int]
) -> float:
    """The least expected error of all segmentations into so many, with boundaries at the edges."""
    allowed = set(edges)
    rivals = [
        masses
        for masses in every_segmentation(n)
        if len(masses) == count and set(accumulate(masses)) <= allowed
    ]
    return min(expected_error(masses, shared, window) for masses in rivals)


def room_without_choice(
    n: int, count: int, shared: Sequence[float], window: int, edges: Sequence[int]
) -> float:
    """What segments of about one length, ``count`` of them, could gain."""
    ends = [round(i * n / count) for i in range(count + 1)]
    return gained_and_room([b - a for a, b in pairwise(ends)], shared, window, edges)[1]


def gained_and_room(
    masses: Sequence[int], shared: Sequence[float], window: int, edges: Sequence[int]
) -> tuple[float, float]:
    """What the hypothesis gains over its segments in every order, and what the best gains."""
    orders = [expected_error(order, shared, window) for order in permutations(masses)]
    chance = sum(orders) / len(orders)
    least = least_error(sum(masses), len(masses), shared, window, edges)
    return chance - expected_error(masses, shared, window), chance - least


def excess_and_weight(
    by_vectors: tuple[float, float], by_others: tuple[float, float]
) -> tuple[float, float]:
    """Placement by vectors less that by words and cues, and the weight, of two (gained, room)."""
    (gained_v, room_v), (gained_o, room_o) = by_vectors, by_others
    return gained_v / room_v - gained_o / room_o, 1 / (1 / room_v + 1 / room_o)


def blind_masses(lengths: Sequence[int], sizes: Sequence[int], turn: int) -> list[int]:
    """Segments of units of these lengths in characters, cut by sizes from ``turn`` on in a circle.

    Of the cuts, which are as many as sizes, the one nearest to where the ends meet is left out.
    """
    starts = [0, *accumulate(lengths)]
    total, n, cuts, at = starts[-1], len(lengths), [], turn
    for size in sizes:
        at += size
        cuts.append(at % total)
    cuts.remove(min(cuts, key=lambda cut: min(cut, total - cut)))
    boundaries: list[int] = []
    for cut in sorted(cuts):
        nearest = min(range(n + 1), key=lambda i: (abs(starts[i] - cut), i))
        least = boundaries[-1] + 1 if boundaries else 1
        boundaries.append(max(nearest, least))
    for i in reversed(range(len(boundaries))):  # as many as are still to come must fit behind it
        boundaries[i] = min(boundaries[i], n - len(boundaries) + i)
    ends = [0, *boundaries, n]
    return [b - a for a, b in pairwise(ends)]
