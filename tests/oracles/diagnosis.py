"""What makes metrics mislead, written out literally: every pair of units and segments in a loop.

``masses`` are the segment lengths in units; vectors have one row per unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

TIE = 1e-9
"""Cosines this little below a threshold have reached it."""


def cosine(a: ArrayLike, b: ArrayLike) -> float:
    """0 with a vector of zeros."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    lengths = math.sqrt(math.fsum(a * a)) * math.sqrt(math.fsum(b * b))
    return math.fsum(a * b) / lengths if lengths else 0.0


def segment_of(masses: Sequence[int]) -> list[int]:
    """Number of each unit's segment."""
    numbers = []
    for number, mass in enumerate(masses):
        numbers += [number] * mass
    return numbers


def exact_twins(units: Sequence[str], masses: Sequence[int]) -> list[bool]:
    """Units whose text another segment has, too."""
    segment = segment_of(masses)
    return [
        any(units[i] == units[j] and segment[i] != segment[j] for j in range(len(units)))
        for i in range(len(units))
    ]


def near_twins(vectors: ArrayLike, masses: Sequence[int], threshold: float) -> list[bool]:
    """Units with a cosine of ``threshold`` or more to a unit of another segment."""
    x, segment = np.asarray(vectors), segment_of(masses)
    return [
        any(
            segment[i] != segment[j] and cosine(x[i], x[j]) >= threshold - TIE
            for j in range(len(x))
        )
        for i in range(len(x))
    ]


def margins(vectors: ArrayLike, masses: Sequence[int]) -> tuple[list[float], list[float]]:
    """How much closer each segment is to its nearest non-neighbour than to its nearest neighbour.

    And the probability of a non-neighbour being nearest if all segments were equally likely.
    Segments without a neighbour or without a non-neighbour are left out.
    """
    x = [np.asarray(v, dtype=float) for v in np.asarray(vectors)]
    units = [v / np.linalg.norm(v) if v.any() else v for v in x]
    centroids, start = [], 0
    for mass in masses:
        total = sum(units[start : start + mass])
        centroids.append(total if np.linalg.norm(total) > 1e-12 * mass else 0 * total)
        start += mass
    found, chances = [], []
    for i in range(len(masses)):
        near = [j for j in range(len(masses)) if abs(i - j) == 1]
        far = [j for j in range(len(masses)) if abs(i - j) > 1]
        if near and far:
            closest = [max(cosine(centroids[i], centroids[j]) for j in js) for js in (far, near)]
            found.append(closest[0] - closest[1])
            chances.append(len(far) / (len(far) + len(near)))
    return found, chances


def random_cosine(documents: Sequence[ArrayLike]) -> float | None:
    """Mean cosine over all pairs of different units of all documents."""
    x = np.concatenate([np.asarray(document) for document in documents])
    pairs = [cosine(x[i], x[j]) for i in range(len(x)) for j in range(i)]
    return math.fsum(pairs) / len(pairs) if pairs else None


def consecutive_gain(vectors: ArrayLike) -> float | None:
    """Mean cosine of consecutive units minus that of all pairs; None below three units."""
    x = np.asarray(vectors)
    if len(x) < 3:
        return None
    beside = [cosine(x[i], x[i + 1]) for i in range(len(x) - 1)]
    return math.fsum(beside) / len(beside) - random_cosine([x])


def effective_dimension(documents: Sequence[ArrayLike]) -> float | None:
    """Participation ratio of the eigenvalues of the unit vectors' covariance."""
    x = np.concatenate([np.asarray(document, dtype=float) for document in documents])
    x = np.array([v / np.linalg.norm(v) if v.any() else v for v in x])
    values = np.linalg.eigvalsh(np.cov(x.T, ddof=0).reshape(x.shape[1], x.shape[1]))
    return None if values.sum() <= 1e-12 else float(values.sum() ** 2 / (values**2).sum())


def noticed_share(
    before: Sequence[Sequence[float]],
    after: Sequence[Sequence[float]],
    is_changed: Sequence[Sequence[bool]],
) -> float | None:
    """Mean over documents of the share of their draws in which the loss rises; ties are a half.

    Rows are documents, columns draws; unchanged draws and those without a loss are left out.
    """
    shares = []
    for one, other, changed in zip(before, after, is_changed, strict=True):
        told = []
        for a, b, was_changed in zip(one, other, changed, strict=True):
            if was_changed and not math.isnan(a) and not math.isnan(b):
                is_tie = abs(b - a) <= 1e-9 * max(1.0, abs(a), abs(b))
                told.append(0.5 if is_tie else float(b > a))
        if told:
            shares.append(sum(told) / len(told))
    return sum(shares) / len(shares) if shares else None
