"""Resampled documents and intervals over them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reffree.statistics.resampling import centred, percentile_interval, symmetric
from tests.properties import examples
from tests.statistics.helpers import NAN


def test_intervals_of_known_resamples():
    resampled = np.linspace(0.1, 1.1, 1001)
    assert percentile_interval(0.5, resampled) == pytest.approx((0.125, 1.075))
    assert percentile_interval(0.1, resampled) == pytest.approx((0.1, 1.075))
    assert percentile_interval(1.2, resampled) == pytest.approx((0.125, 1.2))
    wide = symmetric(1.0, resampled, limits=(-2, 2))
    assert (wide.low, wide.high) == pytest.approx((0.125, 1.875))
    assert symmetric(1.0, resampled, limits=(-1, 1)).high == 1
    moved = centred(0.9, resampled, limits=(0, 1))
    assert (moved.low, moved.high) == pytest.approx((0.425, 1))
    skewed = np.repeat([1.0, -1.0], [990, 10])
    assert (centred(1.0, skewed, (-1, 1)).low, centred(1.0, skewed, (-1, 1)).high) == (1, 1)


def test_p_counts_resamples_beyond_nothing():
    resampled = np.array([-0.25, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0])
    assert symmetric(0.375, resampled, (-2, 2)).p == pytest.approx((1 + 4) / (1 + 9))
    # Moved from .5 to .25: three of them to nothing or beyond.
    assert centred(0.25, resampled, (-2, 2)).p == pytest.approx(2 * (1 + 3) / (1 + 9))


resampled_values = st.one_of(st.floats(-1, 1), st.sampled_from([-1.0, 0.0, 1.0]))


@given(
    hnp.arrays(np.float64, st.integers(1, 60), elements=resampled_values),
    st.integers(1, 40),
    resampled_values,
)
@examples(200)
def test_an_interval_holds_its_estimate(some, times, value):
    resampled = np.append(np.repeat(some[0], times), some)
    low, high = percentile_interval(value, resampled)
    assert -1 <= low <= value <= high <= 1
    for found in (
        symmetric(value, resampled, limits=(-1, 1)),
        centred(value, resampled, limits=(-1, 1)),
    ):
        assert -1 <= found.low <= value <= found.high <= 1
        assert 0 < found.p <= 1


def test_undefined_resamples_are_left_out_until_they_are_too_many():
    resampled = np.arange(100.0)
    resampled[:5] = NAN
    assert percentile_interval(50.0, resampled) == pytest.approx(
        tuple(np.quantile(resampled[5:], [0.025, 0.975]))
    )
    resampled[5] = NAN
    assert percentile_interval(50.0, resampled) is None
    assert symmetric(0.0, resampled, limits=(-1, 1)) is None
    assert centred(0.0, resampled, limits=(0, 1)) is None
