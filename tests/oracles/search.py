"""Search-adjusted gain (sag), written out literally: every segmentation of every shuffle is tried.

Float64 NumPy inside plain loops. The number of segmentations doubles with every unit, so documents
are limited to twelve. ``masses`` are the segment lengths in units; ``embeddings`` has one row per
unit; ``k`` counts boundaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tests.oracles.reference_free import are_identical, as_units, mean, split_segments

MOST_UNITS = 12
"""Documents longer than this have too many segmentations to try them all."""

NOTHING_TO_BUY = 1e-9
"""G_search - G_random up to this fraction of W0 leaves the ratio undefined."""


def within(embeddings: ArrayLike, masses: Sequence[int]) -> float:
    """W(h): squared distances of the units to the centroid of their segment, summed."""
    total = 0.0
    for segment in split_segments(as_units(embeddings), masses):
        centroid = segment.mean(axis=0)
        for unit in segment:
            total += float(np.sum((unit - centroid) ** 2))
    return total


def gain(embeddings: ArrayLike, masses: Sequence[int]) -> float:
    """G = W0 - W(h)."""
    return within(embeddings, [sum(masses)]) - within(embeddings, masses)


def random_gain(embeddings: ArrayLike, k: int) -> float:
    """G_random(k): what k boundaries gain on average over the orders of the units."""
    n = len(as_units(embeddings))
    return within(embeddings, [n]) * k / (n - 1)


def every_segmentation(n: int, k: int) -> list[list[int]]:
    """Masses of all the ways to put k boundaries between n units."""
    ways = []
    for cuts in combinations(range(1, n), k):
        edges = [0, *cuts, n]
        ways.append([edges[i + 1] - edges[i] for i in range(k + 1)])
    return ways


def best_gain(embeddings: ArrayLike, k: int) -> float:
    """The largest gain any k boundaries reach on the units in the order given."""
    n = len(as_units(embeddings))
    if n > MOST_UNITS:
        raise ValueError(f"{n} units have too many segmentations; at most {MOST_UNITS}")
    return max(gain(embeddings, masses) for masses in every_segmentation(n, k))


def orders(n: int, n_shuffles: int, seed: int) -> list[NDArray[np.int64]]:
    """The shuffles of any document of n units."""
    rng = np.random.default_rng([seed, n])
    return [rng.permutation(n) for _ in range(n_shuffles)]


def search_gain(embeddings: ArrayLike, k: int, *, n_shuffles: int, seed: int) -> float:
    """G_search(k): the best gain on the shuffled units, averaged over the shuffles."""
    units = as_units(embeddings)
    return mean([best_gain(units[order], k) for order in orders(len(units), n_shuffles, seed)])


def sag(
    embeddings: ArrayLike, masses: Sequence[int], *, n_shuffles: int, seed: int
) -> tuple[float, float] | None:
    """The numerator G - G_random and denominator G_search - G_random; None where undefined."""
    units = as_units(embeddings)
    k = len(masses) - 1
    if k == 0 or k == len(units) - 1:
        return None
    whole = within(units, [len(units)])
    if are_identical(units):
        return None
    chance = random_gain(units, k)
    bought = search_gain(units, k, n_shuffles=n_shuffles, seed=seed) - chance
    if bought <= NOTHING_TO_BUY * whole:
        return None
    return gain(units, masses) - chance, bought
