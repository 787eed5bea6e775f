"""Sums that do not depend on order and grouping."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reffree.statistics.exact_sums import ExactSums

numbers = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


def summed(parts):
    total = ExactSums((2, 1))
    for part in parts:
        sums = ExactSums((2, 1))
        for value in part:
            sums.add((1,), np.array([value]))
        total = total + sums
    return total.values


@given(st.lists(numbers, max_size=30), st.integers(0, 30), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_any_order_and_grouping_gives_the_same_bits(values, cut, random):
    expected = summed([values])
    shuffled = random.sample(values, len(values))
    assert summed([shuffled[:cut], shuffled[cut:]]).tobytes() == expected.tobytes()
    assert expected[0, 0] == 0
    largest = max(map(abs, values), default=0.0)
    assert expected[1, 0] == pytest.approx(math.fsum(values), rel=1e-15, abs=1e-15 * largest)


def test_what_ordinary_sums_lose():
    assert summed([[1e16, 1.0, -1e16]])[1, 0] == 1
    assert summed([[5e-324], [5e-324]])[1, 0] == 1e-323
