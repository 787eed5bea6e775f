"""TextTiling, C99 and TextSeg written out literally.

A document is a list of units and a unit a list of words: a string for a term, None for a word that
makes none (a stop word, a number). Fractions wherever the definition has no roots and logarithms.
A boundary ``b`` has ``b`` units before it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise

Units = Sequence[Sequence[str | None]]

MOST_UNITS = 12
"""Documents longer than this have too many segmentations to try them all."""


def every_segmentation(n: int, k: int) -> list[list[int]]:
    """Masses of all the ways to put k boundaries between n units."""
    cuts = combinations(range(1, n), k)
    return [[b - a for a, b in pairwise([0, *each, n])] for each in cuts]


def counts(words: Sequence[str | None]) -> Counter[str]:
    """How often each term occurs."""
    return Counter(word for word in words if word is not None)


def product(a: Counter[str], b: Counter[str]) -> int:
    """Scalar product of two vectors of counts."""
    return sum(a[term] * b[term] for term in a)


# TextTiling -----------------------------------------------------------------------------------


def block_scores(units: Units, block: int, measure: str) -> list[float]:
    """Cosine of the blocks before and after each gap."""
    scores = []
    for gap in range(1, len(units)):
        if measure == "units":
            before = [word for unit in units[max(0, gap - block) : gap] for word in unit]
            after = [word for unit in units[gap : gap + block] for word in unit]
        else:
            all_before = [word for unit in units[:gap] for word in unit]
            before = all_before[max(0, len(all_before) - block) :]
            after = [word for unit in units[gap:] for word in unit][:block]
        left, right = counts(before), counts(after)
        if left and right:
            lengths = math.sqrt(product(left, left)) * math.sqrt(product(right, right))
            scores.append(product(left, right) / lengths)
        else:
            scores.append(0.0)
    return scores


def smooth(scores: list[float], reach: int, rounds: int) -> list[float]:
    """Average each score with its neighbours, so many times."""
    for _ in range(rounds):
        windows = [scores[max(0, i - reach) : i + reach + 1] for i in range(len(scores))]
        scores = [sum(window) / len(window) for window in windows]
    return scores


def climb(scores: list[float], gap: int, step: int) -> float:
    """How much higher the nearest peak in a direction is."""
    top = at = gap
    while 0 <= at + step < len(scores) and round(scores[at + step] - scores[at], 11) >= 0:
        at += step
        top = at
    return scores[top] - scores[gap]


def is_middle(scores: list[float], gap: int) -> bool:
    """Whether as many equal scores follow without a break as precede, or one more."""

    def equals(step: int) -> int:
        at = gap
        while 0 <= at + step < len(scores) and round(scores[at + step] - scores[at], 11) == 0:
            at += step
        return abs(at - gap)

    return equals(1) - equals(-1) in (0, 1)


def texttiling(
    units: Units,
    *,
    block: int,
    measure: str,
    smoothing: int,
    rounds: int,
    deviations: float,
    min_gap: int,
) -> tuple[list[float], list[int]]:
    """Depths of the gaps, and the boundaries."""
    scores = smooth(block_scores(units, block, measure), smoothing, rounds)
    gaps = range(len(scores))
    left = [climb(scores, gap, -1) if is_middle(scores, gap) else 0.0 for gap in gaps]
    right = [climb(scores, gap, 1) if is_middle(scores, gap) else 0.0 for gap in gaps]
    depths = [round(a + b, 11) for a, b in zip(left, right, strict=True)]
    valleys = [g for g in range(len(scores)) if round(left[g], 11) > 0 and round(right[g], 11) > 0]
    if not valleys:
        return depths, []
    mean = sum(depths[g] for g in valleys) / len(valleys)
    variance = sum((depths[g] - mean) ** 2 for g in valleys) / len(valleys)
    cutoff = mean - deviations * math.sqrt(variance)
    boundaries: list[int] = []
    for g in sorted(valleys, key=lambda g: (-depths[g], g)):
        is_far = all(abs(g + 1 - b) >= min_gap for b in boundaries)
        if depths[g] >= cutoff - 1e-11 and is_far:
            boundaries.append(g + 1)
    return depths, sorted(boundaries)


# C99 ------------------------------------------------------------------------------------------


def ranks(units: Units, mask: int) -> list[list[Fraction]]:
    """Rank of every cell of the similarity matrix among its neighbours."""
    n, reach = len(units), mask // 2
    vectors = [counts(unit) for unit in units]

    def similarity(x: int, y: int) -> Fraction:
        """Cosine, squared: in the same order, and without roots."""
        lengths = product(vectors[x], vectors[x]) * product(vectors[y], vectors[y])
        return Fraction(product(vectors[x], vectors[y]) ** 2, lengths) if lengths else Fraction(0)

    matrix = [[similarity(x, y) for y in range(n)] for x in range(n)]
    found = [[Fraction(0)] * n for _ in range(n)]
    for x in range(n):
        for y in range(n):
            others = [
                matrix[p][q]
                for p in range(max(0, x - reach), min(n, x + reach + 1))
                for q in range(max(0, y - reach), min(n, y + reach + 1))
                if (p, q) != (x, y)
            ]
            if others:
                found[x][y] = Fraction(sum(z < matrix[x][y] for z in others), len(others))
    return found


def inside_density(rank: list[list[Fraction]], boundaries: Sequence[int]) -> Fraction:
    """Mean rank in the squares of the segments on the diagonal."""
    edges = [0, *sorted(boundaries), len(rank)]
    total, area = Fraction(0), 0
    for a, b in pairwise(edges):
        total += sum((sum(rank[x][a:b], Fraction(0)) for x in range(a, b)), Fraction(0))
        area += (b - a) ** 2
    return total / area


def c99(units: Units, k: int | None, *, mask: int, c: Fraction) -> list[int]:
    """Boundaries: k, or as many as the gradient suggests."""
    n, rank = len(units), ranks(units, mask)
    boundaries: list[int] = []
    densities = [inside_density(rank, [])]
    while len(boundaries) < (n - 1 if k is None else k):
        gaps = [gap for gap in range(1, n) if gap not in boundaries]
        tried = [inside_density(rank, [*boundaries, gap]) for gap in gaps]
        boundaries.append(gaps[tried.index(max(tried))])
        densities.append(max(tried))
    if k is None:
        boundaries = boundaries[: steep([b - a for a, b in pairwise(densities)], c)]
    return sorted(boundaries)


def steep(gains: list[Fraction], c: Fraction) -> int:
    """How many smoothed gains there are before the first within mean + c standard deviations."""
    smoothed = []
    for i in range(len(gains)):
        weights = {
            i + d: Fraction(w) for d, w in zip(range(-3, 4), (1, 2, 4, 8, 4, 2, 1), strict=True)
        }
        inside = {j: w for j, w in weights.items() if 0 <= j < len(gains)}
        smoothed.append(sum(w * gains[j] for j, w in inside.items()) / sum(inside.values()))
    if not smoothed:
        return 0
    mean = sum(smoothed) / len(smoothed)
    variance = sum((gain - mean) ** 2 for gain in smoothed) / len(smoothed)
    for i, gain in enumerate(smoothed):
        if not (gain > mean and (gain - mean) ** 2 > c**2 * variance):
            return i
    return len(smoothed)


# TextSeg --------------------------------------------------------------------------------------


def textseg_cost(units: Units, masses: Sequence[int]) -> float:
    """C(S): minus the logarithm of the probability of a segmentation and of its words."""
    every = counts([word for unit in units for word in unit])
    n, distinct = sum(every.values()), len(every)
    total, start = 0.0, 0
    for mass in masses:
        terms = [w for unit in units[start : start + mass] for w in unit if w is not None]
        frequency = Counter(terms)
        total += math.log(n) if n else 0.0
        for term in terms:
            total += math.log((len(terms) + distinct) / (frequency[term] + 1))
        start += mass
    return total


def least_textseg_cost(units: Units, k: int | None) -> float:
    """The lowest cost of all segmentations, of those with k boundaries if k is given."""
    n = len(units)
    if n > MOST_UNITS:
        raise ValueError(f"{n} units have too many segmentations; at most {MOST_UNITS}")
    numbers = range(n) if k is None else [k]
    return min(textseg_cost(units, m) for number in numbers for m in every_segmentation(n, number))
