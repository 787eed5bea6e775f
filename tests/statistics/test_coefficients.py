"""Correlation coefficients, against scipy and their definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from reffree.statistics.coefficients import (
    COEFFICIENTS,
    TieCalibratedAccuracy,
    correlation,
    normal_p,
    permutation_p,
    sign_flips,
)
from reffree.statistics.resampling import resampled_documents
from tests.oracles import statistics as oracle
from tests.properties import examples
from tests.statistics.helpers import NAN, as_lists, few_values, or_nan, pairs_of_losses

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


# Pairs of systems -------------------------------------------------------------------------------


@given(pairs_of_losses(st.one_of(few_values, st.just(NAN)), systems=(2, 4), documents=(1, 5)))
@examples(40)
def test_permutation_p_equals_enumeration(pair):
    x, _ = pair
    flips = sign_flips(x.shape[1], np.random.default_rng(0))
    rows = as_lists(x)
    expected = [or_nan(oracle.better_p(a, b)) for a, b in combinations(rows, 2)]
    assert_allclose(permutation_p(x, flips), expected, atol=1e-12)


@pytest.mark.parametrize("n_documents", [13, 40, 200])
def test_random_flips_and_the_normal_approach_the_exact_p(n_documents):
    rng = np.random.default_rng(n_documents)
    gaps = rng.gamma(2, size=n_documents) - 1.8  # skewed
    losses = np.stack([gaps, np.zeros(n_documents)])
    is_few = n_documents <= 13
    exact = oracle.better_p(*losses.tolist()) if is_few else flipped_by_convolution(gaps)
    found = permutation_p(losses, sign_flips(n_documents, rng))[0]
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 10_000) + 1e-4)
    normal = normal_p(losses, losses.mean(1)[None])[0, 0]
    assert normal == pytest.approx(exact, abs=0.02)


def test_the_normal_p_is_that_of_its_formula():
    rng = np.random.default_rng(22)
    losses = rng.normal(size=(2, 100))
    s = (losses[0] - losses[1]).std()
    gaps = np.array([-30.0, -1.0, -0.3, -0.1, 0.0, 0.05, 0.2, 0.6, 30.0])
    found = normal_p(losses, np.stack([5 + gaps, np.full(9, 5.0)], axis=1))[0]
    expected = scipy.stats.norm.cdf(gaps * np.sqrt(100 / (s**2 + gaps**2)))
    assert_allclose(found, expected, rtol=0, atol=1.1e-4)
    assert found[0] < 1e-8


def flipped_by_convolution(gaps, step=1e-3):
    """Distribution of the flipped sum on a fine grid, document by document."""
    shifts = np.rint(np.abs(gaps) / step).astype(int)
    density = np.zeros(2 * shifts.sum() + 1)
    density[shifts.sum()] = 1.0
    for shift in shifts:
        density = (np.roll(density, shift) + np.roll(density, -shift)) / 2
    return density[: shifts.sum() + round(gaps.sum() / step)].sum()


def whole(accuracy, n_documents):
    return accuracy.over(np.ones((1, n_documents)))[0]


def test_resamples_try_every_threshold_of_a_few():
    """Pairs with distances 1, 2 and 3; all documents choose 3, the second and third alone 2."""
    x = np.array([[0, 0, 0, 0, 0], [1, 2, 3, 3, 3]], dtype=float)
    y = np.array([[0, 0, 0, 0, 0], [0, 0, 1, 0, 0]], dtype=float)
    accuracy = TieCalibratedAccuracy(x, y)
    assert (accuracy.epsilon, whole(accuracy, 5)) == (3, pytest.approx(4 / 5))
    assert accuracy.over(np.array([[0, 1, 1, 0, 0]])).tolist() == [1.0]


@given(pairs_of_losses(st.one_of(few_values, st.just(NAN)), systems=(1, 6)))
@examples(80)
def test_tie_calibrated_accuracy_equals_its_definition(pair):
    found = TieCalibratedAccuracy(*pair)
    value, epsilon = oracle.tie_calibrated_accuracy(*map(as_lists, pair))
    # A resample of every document once is the corpus, whatever thresholds it tries.
    assert_allclose(whole(found, pair[0].shape[1]), or_nan(value), atol=1e-9)
    if value is not None:
        assert found.epsilon == epsilon
        assert np.nanmean(found.documents) == pytest.approx(value)


# google-research/mt-metrics-eval, tau_optimization_test.py: rows are items, None left out.
WMT_METRIC = [[0, 5, 2, 3, 2], [NAN, 2, 1, 5, 3], [9, 1, 5, 3, 8], [9, 3, 4, 4, 1], [NAN] * 5]
WMT_HUMAN = [[1, 5, 2, 1, 1], [4, 2, 2, 1, 4], [5, 9, 2, 8, 7], [7, 6, NAN, 3, 2], [NAN] * 5]


@pytest.mark.parametrize(
    ("metric", "human", "value", "epsilon"),
    [
        (WMT_METRIC, WMT_HUMAN, 0.4916666666666668, 1),
        ([[0, 2, 6, 8]], [[1, 1, 1, 4]], 4 / 6, 4),
        ([[0, 2, 6, 8]], [[1, 2, 3, 4]], 1, 0),
    ],
)
def test_tie_calibration_reproduces_wmt(metric, human, value, epsilon):
    found = TieCalibratedAccuracy(np.array(metric, float).T, np.array(human, float).T)
    assert (whole(found, len(metric)), found.epsilon) == (pytest.approx(value), epsilon)


def test_the_threshold_is_calibrated_in_each_resample():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(6, 20)), rng.integers(0, 3, size=(6, 20)).astype(float)
    counts = resampled_documents(20, rng, 15)
    found = TieCalibratedAccuracy(x, y).over(counts)
    for value, times in zip(found, counts, strict=True):
        repeated = [np.repeat(v, times, axis=1) for v in (x, y)]
        # 20 documents have 300 distances, of which 256 are tried.
        best = whole(TieCalibratedAccuracy(*repeated), 20)
        assert best - 0.01 <= value <= best + 1e-12
