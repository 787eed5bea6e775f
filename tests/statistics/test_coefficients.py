"""Correlation coefficients, against scipy and their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from reffree.statistics.coefficients import COEFFICIENTS, correlation
from tests.oracles import statistics as oracle
from tests.properties import examples
from tests.statistics.helpers import NAN, as_lists, or_nan, pairs_of_losses

SCIPY = {
    "pearson": scipy.stats.pearsonr,
    "spearman": scipy.stats.spearmanr,
    "kendall": scipy.stats.kendalltau,
}


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@pytest.mark.parametrize("n_systems", [3, 4, 12, 40])
def test_coefficients_equal_scipy_with_ties(coefficient, n_systems):
    rng = np.random.default_rng(n_systems)
    x = rng.integers(0, 8, size=(30, n_systems)).astype(float)
    y = np.where(rng.random(x.shape) < 0.5, x, rng.integers(0, 5, size=x.shape))
    varies = (np.ptp(x, axis=1) > 0) & (np.ptp(y, axis=1) > 0)
    found = correlation(x, y, coefficient)
    assert_array_equal(np.isnan(found), ~varies)
    expected = [
        SCIPY[coefficient](a, b).statistic for a, b in zip(x[varies], y[varies], strict=True)
    ]
    assert_allclose(found[varies], expected, atol=1e-12)


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@given(pairs_of_losses())
@examples(40)
def test_coefficients_equal_their_definitions(coefficient, pair):
    x, y = pair
    found = correlation(x.T, y.T, coefficient)
    measure = oracle.COEFFICIENTS[coefficient]
    rows = zip(as_lists(x.T), as_lists(y.T), strict=True)
    expected = [or_nan(measure(a, b)) for a, b in rows] if len(x) else [NAN] * x.shape[1]
    assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_coefficients_know_what_is_undefined(coefficient):
    rising = np.arange(5.0)
    assert correlation(rising, 3 * rising - 7, coefficient) == 1
    assert correlation(rising, -rising, coefficient) == -1
    assert np.isnan(correlation(rising, np.full(5, 0.1), coefficient))
    assert np.isnan(correlation(rising[:2], rising[:2], coefficient))
    gaps = np.array([0.0, NAN, 1.0, 2.0, NAN])
    assert np.isnan(correlation(gaps, np.array([0.0, 1.0, NAN, 2.0, 3.0]), coefficient))
    assert correlation(gaps, rising, coefficient) == correlation(
        gaps[[0, 2, 3]], rising[[0, 2, 3]], coefficient
    )
    assert correlation(1e-170 * rising, rising, coefficient) == pytest.approx(1)
