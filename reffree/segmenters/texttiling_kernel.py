"""Similarities of the blocks on both sides of gaps, as a compiled sliding window."""

from __future__ import annotations

import numpy as np

from reffree.arrays import Floats, Integers
from reffree.compiling import njit


@njit(cache=True, nogil=True, error_model="numpy")
def block_similarities(
    ids: Integers, n_distinct: int, low: Integers, middle: Integers, high: Integers
) -> Floats:
    """Cosine of the counts of the terms ``low … middle - 1`` and ``middle … high - 1`` of each gap.

    None of the three may fall from one gap to the next. Each term enters the right block, moves to
    the left one and leaves, and every step updates the three sums of products. 0 where a block has
    no terms.
    """
    left = np.zeros(n_distinct, dtype=np.int64)
    right = np.zeros(n_distinct, dtype=np.int64)
    similarities = np.zeros(len(middle))
    product = left_square = right_square = 0
    first = split = end = 0  # terms first … split - 1 are in the left block, up to end in the right
    for gap in range(len(middle)):
        while end < high[gap]:
            term = ids[end]
            product += left[term]
            right_square += 2 * right[term] + 1
            right[term] += 1
            end += 1
        while split < middle[gap]:
            term = ids[split]
            product += right[term] - left[term] - 1
            right_square -= 2 * right[term] - 1
            left_square += 2 * left[term] + 1
            right[term] -= 1
            left[term] += 1
            split += 1
        while first < low[gap]:
            term = ids[first]
            product -= right[term]
            left_square -= 2 * left[term] - 1
            left[term] -= 1
            first += 1
        if product > 0:
            # One division of whole numbers and one root: equal cosines come out equal.
            squared = float(product) * product / (float(left_square) * right_square)
            similarities[gap] = np.sqrt(squared)
    return similarities
