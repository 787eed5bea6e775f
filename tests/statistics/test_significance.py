"""Tests of differences between metrics; those between systems are in test_paired.py."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.stats

from reffree.statistics.coefficients import COEFFICIENTS, correlation
from reffree.statistics.significance import permutation_test, williams
from tests.oracles import statistics as oracle
from tests.statistics.helpers import NAN, simulated


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_swaps_equal_swapping_cell_by_cell(coefficient):
    """All coins of both kinds at once, through a generator that deals them in order."""
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(2, 4, 3))
    gold = rng.normal(size=4)
    coins = list(product([False, True], repeat=7))
    null = [
        oracle.swapped_difference(x.tolist(), y.tolist(), gold.tolist(), coefficient, c[:4], c[4:])
        for c in coins
    ]
    observed = null[0]
    found = permutation_test(x, y, gold, coefficient, rng, swap="both", permutations=20_000)
    share = np.mean([abs(d) >= abs(observed) - 1e-9 for d in null])
    greater = np.mean([d >= observed - 1e-9 for d in null])
    assert found.difference == pytest.approx(observed)
    assert found.p == pytest.approx(share, abs=0.015)
    assert found.p_greater == pytest.approx(greater, abs=0.015)


def test_swapping_systems_is_the_same_up_to_the_lost_degree_of_freedom():
    rng = np.random.default_rng(11)
    x, y = rng.normal(size=(2, 5, 4)) + rng.normal(size=(2, 5, 1))
    gold = x.mean(1) + rng.normal(size=5)
    one, other = (np.mean(oracle.standardised(v.tolist()), axis=1) for v in (x, y))
    mean, gap = (one + other) / 2, (one - other) / 2

    def difference(moved):
        a, b = (oracle.pearson((mean + s * moved).tolist(), gold.tolist()) for s in (1, -1))
        return a - b

    def share(width):
        signs = np.array(list(product([1, -1], repeat=5)))
        null = [difference(width * s * gap) for s in signs]
        return np.mean(np.abs(null) >= abs(difference(gap)) - 1e-9)

    found = permutation_test(x, y, gold, "pearson", rng, permutations=20_000)
    assert found.difference == pytest.approx(difference(gap))
    assert found.p == pytest.approx(share(np.sqrt(5 / 4)), abs=0.015)
    assert abs(share(1) - share(np.sqrt(5 / 4))) > 0.03


def test_what_only_one_metric_has_is_left_out_and_counted():
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(2, 6, 8))
    gold = rng.normal(size=6)
    x[0, 0] = y[1, 3] = x[2, 2] = y[2, 2] = gold[5] = NAN
    found = permutation_test(x, y, gold, "pearson", rng)
    assert (found.left_out, found.systems) == (2, 5)
    means = [np.nanmean(np.where(np.isnan(x) | np.isnan(y), NAN, v), axis=1)[:5] for v in (x, y)]
    expected = correlation(means[0], gold[:5], "pearson") - correlation(
        means[1], gold[:5], "pearson"
    )
    assert found.difference == pytest.approx(float(expected))


def test_a_test_without_correlations_says_so():
    flat, rng = np.ones((5, 4)), np.random.default_rng(0)
    found = permutation_test(flat, rng.normal(size=(5, 4)), np.arange(5.0), "kendall", rng)
    assert (found.p, found.difference, found.reason) == (None, None, "a correlation is undefined")
    empty = permutation_test(flat * NAN, flat, np.arange(5.0), "kendall", rng)
    assert (empty.p, empty.systems, empty.left_out) == (None, 0, 20)


def test_equal_metrics_do_not_differ():
    rng = np.random.default_rng(10)
    x = rng.normal(size=(6, 30))
    found = permutation_test(x, 2 * x + 1, rng.normal(size=6), "pearson", rng)
    assert (found.difference, found.p) == (pytest.approx(0, abs=1e-12), 1)


def test_williams_equals_its_formula():
    for n in (4, 5, 12, 40):
        rng = np.random.default_rng(n)
        x, y, z = rng.normal(size=(3, n)) + rng.normal(size=n)
        r = [float(correlation(a, b, "pearson")) for a, b in ((x, z), (y, z), (x, y))]
        found = williams(*r, n)
        t = oracle.williams_t(*r, n)
        assert found.t == pytest.approx(t)
        assert found.p == pytest.approx(2 * scipy.stats.t.sf(abs(t), n - 3))
        assert found.p_greater == pytest.approx(scipy.stats.t.sf(t, n - 3))
        assert williams(r[1], r[0], r[2], n).p_greater == pytest.approx(1 - found.p_greater)
    # psych's r.test(103, .5, .4, .1), the example of Steiger (1980): t = .89.
    assert williams(0.5, 0.4, 0.1, 103).t == pytest.approx(0.89, abs=0.005)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((NAN, 0.1, 0.2, 9), "undefined"),
        ((0.1, 0.1, 0.2, 3), "fewer than 4"),
        ((0.5, 0.5, 1.0, 9), "perfectly"),
        ((1.0, -1.0, -1.0, 9), "perfectly"),
    ],
)
def test_williams_knows_what_is_undefined(arguments, reason):
    found = williams(*arguments)
    assert found.p is None
    assert found.t is None
    assert reason in found.reason


# Simulations: the full one is benchmarks/interval_coverage.py.


@pytest.mark.parametrize("coefficient", ["pearson", "kendall"])
def test_swapping_systems_holds_its_level_where_swapping_both_does_not(coefficient):
    """Metrics that correlate alike with gold but each favour systems of their own; 150 runs.

    5 % + 3 standard deviations is 10.3 %.
    """
    rejected = {"systems": 0, "both": 0}
    for run in range(150):
        rng = np.random.default_rng([run, 1])
        gold, *views = rng.normal(size=(3, 15))
        x, y, z = simulated(np.stack([*(gold + view for view in views), gold]), 60, rng)
        for swap in rejected:
            test = permutation_test(x, y, z.mean(1), coefficient, rng, swap=swap, permutations=200)
            rejected[swap] += test.p <= 0.05
    assert rejected["systems"] <= 15
    assert rejected["both"] > 25
