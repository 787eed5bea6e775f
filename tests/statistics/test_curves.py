"""A loss against the strength of a perturbation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal

from reffree.statistics.curves import band, monotonicity
from reffree.util.errors import InputError
from tests.statistics.helpers import NAN


def test_band_over_seeds():
    losses = np.array([[1.0, 2.0, NAN], [3.0, NAN, NAN], [5.0, 4.0, NAN]])
    found = band(losses)
    assert_array_equal(found.mean, [3, 3, NAN])
    assert_array_equal(found.n_seeds, [3, 2, 0])
    assert_allclose(found.low, [*np.quantile(losses[:, 0], [0.025]), 2.05, NAN])
    assert_allclose(found.high, [*np.quantile(losses[:, 0], [0.975]), 3.95, NAN])


def test_monotonicity_equals_spearman():
    rng = np.random.default_rng(17)
    strengths = np.arange(6.0)
    losses = strengths + 3 * rng.normal(size=(20, 6))
    value, mean = monotonicity(strengths, losses)
    own = [scipy.stats.spearmanr(strengths, row).statistic for row in losses]
    assert value == pytest.approx(scipy.stats.spearmanr(strengths, losses.mean(0)).statistic)
    assert mean == pytest.approx(np.mean(own))
    assert monotonicity(strengths, strengths[None] ** 3) == (1, 1)
    assert monotonicity(strengths, -strengths[None]) == (-1, -1)


def test_a_constant_curve_has_no_monotonicity():
    assert monotonicity(np.arange(4.0), np.array([[0.1] * 4, [0.1] * 4])) == (None, None)
    assert monotonicity(np.arange(4.0), np.array([[0.1] * 4, [1.0, 2.0, 3.0, 5.0]])) == (1, 1)
    assert monotonicity(np.arange(3.0), np.array([[1.0, NAN, 2.0]])) == (None, None)
    with pytest.raises(InputError, match="losses of shape"):
        monotonicity(np.arange(3.0), np.ones((2, 4)))
