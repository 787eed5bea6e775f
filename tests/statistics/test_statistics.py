"""Statistics of meta-evaluation: against scipy, plain loops and simulations with known answers."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from reffree.errors import InputError, OptionError, UnknownNameError
from reffree.seeds import rng_for
from reffree.statistics import pairwise
from reffree.statistics.coefficients import COEFFICIENTS, correlation
from reffree.statistics.curves import band, min_max, monotonicity
from reffree.statistics.expected_scores import expected_scores
from reffree.statistics.losses import MeanOverDocuments, PooledOverDocuments, as_loss
from reffree.statistics.meta_evaluation import (
    CORPUS_MEASURES,
    DOCUMENT_MEASURES,
    Estimate,
    MetaEvaluation,
)
from reffree.statistics.pairwise import (
    NormalP,
    TieCalibratedAccuracy,
    permutation_p,
    sign_flips,
)
from reffree.statistics.resampling import (
    centred,
    percentile_interval,
    resampled_documents,
    symmetric,
)
from reffree.statistics.significance import (
    PermutationTest,
    benjamini_hochberg,
    permutation_test,
    williams,
)
from tests.oracles import statistics as oracle
from tests.properties import examples

NAN = float("nan")
SCIPY = {
    "pearson": scipy.stats.pearsonr,
    "spearman": scipy.stats.spearmanr,
    "kendall": scipy.stats.kendalltau,
}

few_values = st.integers(-3, 3).map(float)  # many ties
any_values = st.one_of(few_values, st.floats(-1e6, 1e6, allow_subnormal=False), st.just(NAN))


def as_lists(x):
    return [[None if np.isnan(v) else float(v) for v in row] for row in np.atleast_2d(x)]


def or_nan(value):
    return NAN if value is None else value


def evaluation(metrics, seed, **options):
    return MetaEvaluation(metrics, rng=partial(rng_for, seed), **options)


def losses(shape, elements=any_values):
    return hnp.arrays(np.float64, shape, elements=elements)


def pairs_of_losses(elements=any_values, systems=(0, 8), documents=(1, 6)):
    shapes = st.tuples(st.integers(*systems), st.integers(*documents))
    return shapes.flatmap(lambda s: st.tuples(losses(s, elements), losses(s, elements)))


# Coefficients ---------------------------------------------------------------------------------


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


def test_a_system_left_out_is_left_out_of_the_ranks():
    x, y = np.array([5.0, 1.0, 2.0, 3.0]), np.array([NAN, 3.0, 1.0, 2.0])
    for coefficient in COEFFICIENTS:
        assert correlation(x, y, coefficient) == pytest.approx(
            correlation(x[1:], y[1:], coefficient)
        )


def test_losses_are_lower_where_values_are_better():
    values = np.array([0.5, 1.0, 1.75])
    assert_array_equal(as_loss(values, "lower"), values)
    assert_array_equal(as_loss(values, "higher"), -values)
    assert_array_equal(as_loss(values, "toward_1"), [0.5, 0, 0.75])


# Scores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-297, 1e-180, 1e-5, 1.0, 1e9, 1e300])
def test_losses_of_any_size_are_rounded_to_twelve_digits(size):
    losses = size * np.array([[1.0, 0.25, -0.5], [1.0, 0.3, 0.0]])
    found = MeanOverDocuments(losses).values
    assert_allclose(found, losses, rtol=0, atol=max(1e-11 * size, 5e-324))
    assert found[0, 0] == found[1, 0] != 0
    noisy = losses.copy()
    noisy[0, 0] = np.nextafter(noisy[0, 0], np.inf) if size > 1e-300 else noisy[0, 0]
    assert_array_equal(MeanOverDocuments(noisy).values, found)


@pytest.mark.parametrize("size", [1e-310, 1e-180, 1.0, 1e150])
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_the_size_of_losses_changes_no_correlation(coefficient, size):
    rng = np.random.default_rng(21)
    x, y = rng.normal(size=(2, 6, 1)) + rng.normal(size=(2, 6, 20))
    metrics = {"x": MeanOverDocuments(size * x), "y": MeanOverDocuments(y)}
    plain = {"x": MeanOverDocuments(x), "y": MeanOverDocuments(y)}
    one, other = (
        evaluation(m, seed=0, resamples=50).corpus("x", "y", coefficient) for m in (metrics, plain)
    )
    for name in ("value", "ci", "noiseless", "noiseless_ci"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-6), name


def test_weighted_means_over_resampled_documents():
    rng = np.random.default_rng(0)
    values = np.where(rng.random((4, 6)) < 0.3, NAN, rng.normal(size=(4, 6)))
    values[3] = NAN
    weights = rng.integers(1, 9, size=values.shape).astype(float)
    counts = resampled_documents(6, rng, 20)
    found = MeanOverDocuments(values, weights).over(counts)
    expected = [
        [
            or_nan(oracle.weighted_mean(row, w, times))
            for row, w in zip(as_lists(values), weights, strict=True)
        ]
        for times in counts
    ]
    assert np.isnan(found[:, 3]).all()
    assert_allclose(found, expected, atol=1e-11)


def test_pooled_scores_over_resampled_documents():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 5, size=(7, 3, 2)).astype(float)
    everywhere = np.ones(7, dtype=bool)
    with np.errstate(invalid="ignore", divide="ignore"):
        metric = PooledOverDocuments(
            (counts[..., 0] / counts[..., 1]).T.clip(0, 9), counts, ratio, everywhere
        )
    times = resampled_documents(7, rng, 10)
    for row, drawn in zip(metric.over(times), times, strict=True):
        repeated = np.repeat(counts, drawn, axis=0).sum(0)
        assert_allclose(row, 1 - repeated[:, 0] / repeated[:, 1], atol=1e-11)


def mean_of(documents):
    return sum(v * w for v, w in documents) / sum(w for _, w in documents)


def ratio(counts):
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 - counts[..., 0] / counts[..., 1]


def test_contributions_are_pseudo_values_that_average_to_the_score():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(3, 5))
    values[0, 1] = NAN
    plain = MeanOverDocuments(values)
    assert_allclose(plain.contributions, values, atol=1e-11)
    assert_allclose(np.nanmean(plain.contributions, axis=1), plain.over(np.ones((1, 5)))[0])
    weights = rng.uniform(1, 3, size=values.shape)
    weighted = MeanOverDocuments(values, weights)
    documents = list(zip(values[1], weights[1], strict=True))
    expected = oracle.pseudo_values(documents, mean_of)
    assert_allclose(weighted.contributions[1], expected, atol=1e-10)
    assert_array_equal(np.isnan(weighted.contributions), np.isnan(values))
    equal = MeanOverDocuments(values, np.full(values.shape, 2.0))
    assert_allclose(equal.contributions, values, atol=1e-10)
    counts = rng.integers(1, 5, size=(6, 2, 2)).astype(float)
    pooled = PooledOverDocuments(rng.normal(size=(2, 6)), counts, ratio, np.ones(6, dtype=bool))
    expected = oracle.pseudo_values(list(counts[:, 1]), lambda kept: float(ratio(sum(kept))))
    assert_allclose(pooled.contributions[1], expected, atol=1e-10)
    alone = MeanOverDocuments(np.array([[0.5, NAN]]), np.array([[3.0, 1.0]]))
    assert_array_equal(alone.contributions, [[0.5, NAN]])


def test_equal_systems_are_tied_whatever_the_order_of_summation():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(1, 37)) / 3
    repeated = MeanOverDocuments(np.tile(values, (13, 1)))
    scores = repeated.over(resampled_documents(37, rng, 50))
    assert (np.ptp(scores, axis=1) == 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MeanOverDocuments(np.ones(3)), r"losses of shape \(3,\)"),
        (lambda: MeanOverDocuments(np.ones((2, 0))), r"losses of shape \(2, 0\)"),
        (lambda: MeanOverDocuments(np.array([[np.inf]])), "an infinite loss"),
        (lambda: MeanOverDocuments(np.ones((2, 3)), np.ones((3, 2))), "weights of shape"),
        (lambda: MeanOverDocuments(np.ones((1, 2)), np.array([[1.0, 0.0]])), "not a positive"),
        (lambda: MeanOverDocuments(np.ones((1, 2)), np.array([[1.0, NAN]])), "not a positive"),
        (
            lambda: PooledOverDocuments(
                np.ones((2, 3)), np.ones((2, 3, 1)), ratio, np.ones(3, dtype=bool)
            ),
            "counts of shape",
        ),
        (lambda: evaluation({}, seed=0), "metrics of 0 different shapes"),
    ],
)
def test_bad_input_gets_one_sentence(make, message):
    with pytest.raises(InputError, match=message):
        make()


# Soft pairwise accuracy -----------------------------------------------------------------------


@given(pairs_of_losses(st.one_of(few_values, st.just(NAN)), systems=(2, 4), documents=(1, 5)))
@examples(40)
def test_permutation_p_equals_enumeration(pair):
    x, _ = pair
    flips = sign_flips(x.shape[1], np.random.default_rng(0))
    rows = as_lists(x)
    expected = [or_nan(oracle.better_p(a, b)) for a, b in combinations(rows, 2)]
    assert_allclose(permutation_p(x, flips), expected, atol=1e-12)


def test_soft_pairwise_accuracy_equals_its_definition():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 5, 6)) + np.arange(5)[:, None] / 3
    study = evaluation({"x": MeanOverDocuments(x), "y": MeanOverDocuments(y)}, seed=0)
    expected = oracle.soft_pairwise_accuracy(x.tolist(), y.tolist())
    assert study.corpus("x", "y", "spa").value == pytest.approx(expected, abs=1e-12)


def test_soft_pairwise_accuracy_does_not_depend_on_the_order_of_systems():
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 3, size=(2, 6, 30)).astype(float)
    order = rng.permutation(6)
    values = [
        evaluation({"x": MeanOverDocuments(a), "y": MeanOverDocuments(b)}, seed=0)
        .corpus("x", "y", "spa")
        .value
        for a, b in ((x, y), (x[order], y[order]), (-x, -y))
    ]
    assert_allclose(values, values[0], atol=1e-12)


@pytest.mark.parametrize("n_documents", [13, 40, 200])
def test_random_flips_and_the_normal_approach_the_exact_p(n_documents):
    rng = np.random.default_rng(n_documents)
    gaps = rng.gamma(2, size=n_documents) - 1.8  # skewed
    losses = np.stack([gaps, np.zeros(n_documents)])
    is_few = n_documents <= 13
    exact = oracle.better_p(*losses.tolist()) if is_few else flipped_by_convolution(gaps)
    found = permutation_p(losses, sign_flips(n_documents, rng))[0]
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 10_000) + 1e-4)
    normal = NormalP(losses).of(losses.mean(1)[None])[0, 0]
    assert normal == pytest.approx(exact, abs=0.02)


def test_the_normal_p_is_that_of_its_formula():
    rng = np.random.default_rng(22)
    losses = rng.normal(size=(2, 100))
    s = (losses[0] - losses[1]).std()
    gaps = np.array([-30.0, -1.0, -0.3, -0.1, 0.0, 0.05, 0.2, 0.6, 30.0])
    found = NormalP(losses).of(np.stack([5 + gaps, np.full(9, 5.0)], axis=1))[0]
    expected = scipy.stats.norm.cdf(gaps * np.sqrt(100 / (s**2 + gaps**2)))
    assert_allclose(found, expected, rtol=0, atol=1.1e-4)
    assert found[0] < 1e-8


def test_pairs_and_flips_may_come_a_few_at_a_time(monkeypatch):
    losses = np.random.default_rng(23).normal(size=(5, 7))
    losses[1, 2] = NAN
    flips = sign_flips(7, np.random.default_rng(0))
    whole = permutation_p(losses, flips), NormalP(losses).of(losses[None, :, 0])
    for at_once in (1, 15, 50):
        monkeypatch.setattr(pairwise, "AT_ONCE", at_once)
        assert_array_equal(permutation_p(losses, flips), whole[0])
        assert_array_equal(NormalP(losses).of(losses[None, :, 0]), whole[1])


def flipped_by_convolution(gaps, step=1e-3):
    """Distribution of the flipped sum on a fine grid, document by document."""
    shifts = np.rint(np.abs(gaps) / step).astype(int)
    density = np.zeros(2 * shifts.sum() + 1)
    density[shifts.sum()] = 1.0
    for shift in shifts:
        density = (np.roll(density, shift) + np.roll(density, -shift)) / 2
    return density[: shifts.sum() + round(gaps.sum() / step)].sum()


# Within documents -----------------------------------------------------------------------------


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@given(pairs_of_losses(st.one_of(few_values, st.just(NAN)), systems=(1, 6)))
@examples(40)
def test_within_correlation_equals_its_definition(coefficient, pair):
    metrics = {name: MeanOverDocuments(v) for name, v in zip("xy", pair, strict=True)}
    found = evaluation(metrics, seed=0, resamples=1).documents("x", "y", coefficient)
    value, n_defined = oracle.within_documents(*map(as_lists, pair), coefficient)
    assert found.documents == n_defined
    assert_allclose(or_nan(found.value), or_nan(value), atol=1e-9)


def test_resamples_try_every_threshold_of_a_few():
    """Pairs with distances 1, 2 and 3; all documents choose 3, the second and third alone 2."""
    x = np.array([[0, 0, 0, 0, 0], [1, 2, 3, 3, 3]], dtype=float)
    y = np.array([[0, 0, 0, 0, 0], [0, 0, 1, 0, 0]], dtype=float)
    accuracy = TieCalibratedAccuracy(x, y)
    assert (accuracy.epsilon, accuracy.value) == (3, pytest.approx(4 / 5))
    assert accuracy.over(np.array([[0, 1, 1, 0, 0]])).tolist() == [1.0]


@given(pairs_of_losses(st.one_of(few_values, st.just(NAN)), systems=(1, 6)))
@examples(80)
def test_tie_calibrated_accuracy_equals_its_definition(pair):
    found = TieCalibratedAccuracy(*pair)
    value, epsilon = oracle.tie_calibrated_accuracy(*map(as_lists, pair))
    assert_allclose(found.value, or_nan(value), atol=1e-9)
    if value is not None:
        assert found.epsilon == epsilon
        assert np.nanmean(found.documents) == pytest.approx(value)
        # A resample of every document once is the corpus, whatever thresholds it tries.
        assert found.over(np.ones((1, pair[0].shape[1])))[0] == pytest.approx(value)


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
    assert (found.value, found.epsilon) == (pytest.approx(value), epsilon)


def test_the_threshold_is_calibrated_in_each_resample():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(6, 20)), rng.integers(0, 3, size=(6, 20)).astype(float)
    counts = resampled_documents(20, rng, 15)
    found = TieCalibratedAccuracy(x, y).over(counts)
    for value, times in zip(found, counts, strict=True):
        repeated = [np.repeat(v, times, axis=1) for v in (x, y)]
        # 20 documents have 300 distances, of which 256 are tried.
        best = TieCalibratedAccuracy(*repeated).value
        assert best - 0.01 <= value <= best + 1e-12


# Tests of differences -------------------------------------------------------------------------


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


# Families -------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.just(None), st.floats(0, 1)), max_size=12))
def test_benjamini_hochberg_equals_its_definition(p_values):
    found = benjamini_hochberg(p_values)
    defined = [p for p in p_values if p is not None]
    assert [p is None for p in found] == [p is None for p in p_values]
    kept = [p for p in found if p is not None]
    assert_allclose(kept, oracle.benjamini_hochberg(defined))
    if defined:
        assert_allclose(kept, scipy.stats.false_discovery_control(defined))


# Intervals ------------------------------------------------------------------------------------


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


@given(hnp.arrays(np.float64, 40, elements=st.floats(-1, 1)), st.floats(-1, 1))
def test_p_is_small_where_the_interval_leaves_out_zero(resampled, value):
    for found in (
        symmetric(value, resampled, limits=(-1, 1)),
        centred(value, resampled, limits=(-1, 1)),
    ):
        if not found.low <= 0 <= found.high:
            assert found.p <= 0.1  # of 40 resamples: quantiles interpolate, and one is added


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


def test_resamples_have_as_many_documents_as_the_corpus():
    counts = resampled_documents(30, np.random.default_rng(0), 200)
    assert counts.shape == (200, 30)
    assert (counts.sum(1) == 30).all()
    assert abs(counts.mean(0) - 1).max() < 0.4


# Expected scores ------------------------------------------------------------------------------


def test_expected_scores_are_the_posterior_draws_of_their_formula():
    """Of the same random numbers, with noise that exceeds the scores in no direction."""
    rng = np.random.default_rng(21)
    point = rng.normal(size=(2, 9)) * [[1.0], [5.0]] + [[3.0], [-2.0]]
    resampled = point[:, None] + 0.3 * rng.normal(size=(2, 30, 9)) * [[[1.0]], [[5.0]]]
    found = expected_scores(point, resampled, 12, np.random.default_rng(5))
    size, middle = point.std(1)[:, None], point.mean(1)[:, None]
    m = (point - middle) / size
    e = (resampled - point[:, None]) / size[..., None]
    e = e - e.mean(2, keepdims=True)
    e = (e - e.mean(1, keepdims=True)) * np.sqrt(12 / 11)
    noise = sum(np.outer(x, x) for x in e.reshape(2, -1).T) / (30 * 8)
    for draw, normal in enumerate(np.random.default_rng(5).standard_normal((30, 8, 2))):
        root = np.linalg.cholesky(m @ m.T / 8)
        scores = root @ np.linalg.inv(normal.T @ normal / 8) @ root.T
        share = noise @ np.linalg.inv(scores)
        assert np.linalg.eigvals(share).max() < 1
        roots = [scipy.linalg.sqrtm(v) for v in (noise - share @ noise, noise)]
        expected = m - share @ m + roots[0] @ np.linalg.inv(roots[1]) @ e[:, draw]
        assert_allclose(found[:, draw], expected * size + middle, rtol=0, atol=1e-5)


def test_without_noise_expected_scores_are_the_scores():
    rng = np.random.default_rng(11)
    point = rng.normal(size=(2, 6))
    draws = expected_scores(point, np.repeat(point[:, None], 50, axis=1), 40, rng)
    assert_allclose(draws, np.repeat(point[:, None], 50, axis=1), atol=1e-6)


def test_expected_scores_have_the_posterior_mean_and_covariance():
    """With thousands of systems M is known, and the posterior is that of two normals."""
    rng = np.random.default_rng(12)
    true_covariance, noise = np.array([[1.0, 0.6], [0.6, 2.0]]), np.array([[0.5, 0.2], [0.2, 0.8]])
    n_systems, n_draws = 6000, 40
    truth = rng.multivariate_normal([0, 0], true_covariance, size=n_systems)
    point = (truth + rng.multivariate_normal([0, 0], noise, size=n_systems)).T
    added = rng.multivariate_normal([0, 0], noise, size=(n_draws, n_systems))
    draws = expected_scores(point, point[:, None] + np.moveaxis(added, 2, 0), 10**9, rng)
    shrink = true_covariance @ np.linalg.inv(true_covariance + noise)
    assert_allclose(draws.mean(1), shrink @ point, atol=6 * np.sqrt(0.8 / n_draws))
    assert np.abs((draws.mean(1) - shrink @ point).mean(1)).max() < 0.05
    spread = draws - (shrink @ point)[:, None]
    found = np.einsum("krs,lrs->kl", spread, spread) / (n_draws * n_systems)
    assert_allclose(found, shrink @ noise, atol=0.04)
    # So draws scatter over systems as the true scores do, not as the blurred ones.
    flat = draws.reshape(2, -1)
    assert_allclose(np.cov(flat), true_covariance, atol=0.08)


def test_the_bootstrap_variance_is_corrected_for_few_documents():
    rng = np.random.default_rng(13)
    point = rng.normal(size=(2, 40))
    resampled = point[:, None] + 0.2 * rng.normal(size=(2, 300, 40))
    spreads = [
        (expected_scores(point, resampled, n, np.random.default_rng(0)) - point[:, None]).std()
        for n in (2, 10**9)
    ]
    assert spreads[0] == pytest.approx(np.sqrt(2) * spreads[1], rel=0.1)


def test_a_metric_against_itself_correlates_perfectly():
    rng = np.random.default_rng(14)
    x = rng.normal(size=(8, 1)) + rng.normal(size=(8, 30))
    metrics = {"x": MeanOverDocuments(x), "same": MeanOverDocuments(3 * x + 1)}
    metrics["y"] = MeanOverDocuments(rng.normal(size=(8, 30)) + x)
    study = evaluation(metrics, seed=0, resamples=200)
    for coefficient in COEFFICIENTS:
        found = study.corpus("x", "same", coefficient)
        assert (found.value, *found.ci) == pytest.approx((1, 1, 1), abs=1e-6)
        assert (found.noiseless, *found.noiseless_ci) == pytest.approx((1, 1, 1), abs=1e-6)
        apart = study.corpus_difference("x", "same", "y", coefficient)
        assert (apart.value, *apart.ci) == pytest.approx((0, 0, 0), abs=1e-5)
        assert apart.p > 0.5
    assert study.corpus("x", "same", "spa").value == 1


def test_without_differences_between_systems_any_correlation_is_possible():
    x, y = np.random.default_rng(18).normal(size=(2, 12, 60))
    metrics = {"x": MeanOverDocuments(x), "y": MeanOverDocuments(y)}
    study = evaluation(metrics, seed=0, resamples=300)
    for coefficient in COEFFICIENTS:
        low, high = study.corpus("x", "y", coefficient).noiseless_ci
        assert low < -0.8
        assert high > 0.8


def test_draws_without_expected_differences_reach_both_ends():
    """Equal means of widely scattered losses: less difference than noise alone would make."""
    rng = np.random.default_rng(19)
    x, y = rng.normal(size=(2, 12, 60))
    x, y = (v - v.mean(1, keepdims=True) + 1e-3 * rng.normal(size=(12, 1)) for v in (x, y))
    metrics = {"x": MeanOverDocuments(x), "y": MeanOverDocuments(y)}
    study = evaluation(metrics, seed=0, resamples=300)
    for coefficient in COEFFICIENTS:
        assert study.corpus("x", "y", coefficient).noiseless_ci == (-1, 1)


# The whole ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study():
    """Ten systems, forty documents; some losses and one system's score are undefined."""
    rng = np.random.default_rng(15)
    quality = rng.normal(size=(10, 1))
    x, y, z = (
        quality + a * rng.normal(size=(10, 1)) + rng.normal(size=(10, 40)) for a in (0.1, 0, 1)
    )
    x[2, :7] = NAN
    x[9] = NAN
    y[:, 11] = NAN
    metrics = {
        "x": MeanOverDocuments(x, rng.uniform(1, 4, size=x.shape)),
        "y": MeanOverDocuments(y),
        "z": MeanOverDocuments(z),
        "flat": MeanOverDocuments(np.full((10, 40), 0.1)),
    }
    return evaluation(metrics, seed=3, resamples=300)


@pytest.mark.parametrize("measure", CORPUS_MEASURES)
def test_corpus_level(study, measure):
    found = study.corpus("x", "y", measure)
    assert (found.systems, found.documents, found.undefined) == (9, 39, 1)
    assert found.undefined_resamples == 0
    assert found.reason is found.ci_reason is found.p is None
    assert found.ci[0] <= found.value <= found.ci[1]
    assert 0 < found.ci[1] - found.ci[0] < 1
    apart = study.corpus_difference("x", "z", "y", measure)
    assert apart.value == pytest.approx(
        found.value - restricted(study, ("z", "y"), 9).corpus("z", "y", measure).value
    )
    assert apart.ci[0] <= apart.value <= apart.ci[1]
    assert (apart.p <= 0.05) == (not apart.ci[0] <= 0 <= apart.ci[1])


def restricted(study, names, n_systems):
    """The same study of its first systems only."""
    metrics = {name: MeanOverDocuments(study._metrics[name].values[:n_systems]) for name in names}
    return evaluation(metrics, seed=3, resamples=10)


@pytest.mark.parametrize("measure", DOCUMENT_MEASURES)
def test_document_level(study, measure):
    found = study.documents("x", "y", measure)
    assert (found.systems, found.documents, found.undefined) == (9, 39, 1)
    assert found.ci[0] < found.value < found.ci[1]
    assert (found.epsilon is not None) == (measure == "acc_eq")


def test_within_documents_averages_where_it_is_defined():
    x = np.array([[1.0, 1, 0, NAN], [2, 2, 0, NAN], [3, 3, 0, 1]])
    y = np.array([[1.0, 3, 1, 1], [2, 2, 2, 2], [3, 1, 3, 3]])
    metrics = {"x": MeanOverDocuments(x), "y": MeanOverDocuments(y)}
    found = evaluation(metrics, seed=0, resamples=20).documents("x", "y", "kendall")
    assert (found.value, found.documents, found.undefined) == (0, 2, 2)
    assert (found.ci, found.ci_reason) == (None, "fewer than 5 documents")
    metrics["z"] = MeanOverDocuments(np.where(np.isnan(x), NAN, y[:, [0, 0, 0, 0]]))
    study = evaluation(metrics, seed=0, resamples=20)
    assert study.documents("z", "y", "kendall").value == pytest.approx(1 / 3)


def test_the_same_seed_gives_the_same_in_any_order(study):
    again = evaluation(study._metrics, seed=3, resamples=300)
    asked = [("x", "y", "spa"), ("z", "y", "kendall"), ("x", "y", "pearson"), ("x", "y", "kendall")]
    backwards = [again.corpus(*names) for names in reversed(asked)]
    assert [study.corpus(*names) for names in asked] == backwards[::-1]
    test = study.permutation_test("x", "z", "y", "kendall")
    assert test == again.permutation_test("x", "z", "y", "kendall")
    other = evaluation(study._metrics, seed=4, resamples=300)
    assert other.corpus("x", "y", "pearson").ci != study.corpus("x", "y", "pearson").ci


def test_tests_take_the_systems_all_three_have(study):
    test = study.permutation_test("x", "z", "y", "pearson")
    assert (test.systems, test.permutations, test.undefined) == (9, 1000, 0)
    assert 0 < test.p <= 1
    x, z = (study._metrics[name].contributions for name in "xz")
    gold = study._scores["y"]
    assert test == permutation_test(x, z, gold, "pearson", rng_for(3, "permutations"))
    assert test.difference == pytest.approx(
        -study.permutation_test("z", "x", "y", "pearson").difference
    )
    assert abs(test.difference) > 0.01
    beside = study.williams_test("x", "z", "y", "pearson")
    assert beside.n == 9
    r = [
        float(correlation(study._scores[a][:9], study._scores[b][:9], "pearson"))
        for a, b in ("xy", "zy", "xz")
    ]
    assert beside.t == pytest.approx(oracle.williams_t(*r, 9))


@pytest.mark.parametrize("measure", CORPUS_MEASURES)
def test_what_is_undefined_has_a_reason_and_no_number(study, measure):
    flat = study.corpus("flat", "y", measure)
    assert (flat.value, flat.ci) == (None, None)
    assert flat.reason == flat.ci_reason == "flat gives all systems the same score"
    values = study._metrics["z"].values
    two = evaluation({"a": MeanOverDocuments(values[:2])}, seed=0, resamples=9)
    assert two.corpus("a", "a", measure).reason == "fewer than 3 systems with a score"
    few = {"a": MeanOverDocuments(values[:, :4]), "b": MeanOverDocuments(values[:, 1:5])}
    found = evaluation(few, seed=0, resamples=9).corpus("a", "b", measure)
    assert found.value is not None
    assert (found.ci, found.ci_reason) == (None, "fewer than 5 documents")


def test_a_test_without_a_correlation_has_a_reason_and_no_number(study):
    found = study.permutation_test("flat", "z", "y", "kendall", permutations=50)
    assert found == PermutationTest(None, None, None, 50, 0, 10, 0, "a correlation is undefined")


@pytest.mark.parametrize("measure", CORPUS_MEASURES)
def test_three_systems_are_enough(measure):
    x, y = np.random.default_rng(24).normal(size=(2, 3, 20)) + np.arange(3)[:, None]
    metrics = {"x": MeanOverDocuments(x), "y": MeanOverDocuments(y)}
    found = evaluation(metrics, seed=0, resamples=20).corpus("x", "y", measure)
    assert (found.reason, found.ci_reason, found.systems) == (None, None, 3)
    assert found.ci[0] <= found.value <= found.ci[1]
    if measure in DOCUMENT_MEASURES:
        within = evaluation(metrics, seed=0, resamples=20).documents("x", "y", measure)
        assert (within.reason, within.systems) == (None, 3)


def test_undefined_documents_and_resamples_are_counted(study):
    flat = study.documents("flat", "y", "kendall")
    assert (flat.value, flat.reason, flat.undefined) == (None, "undefined in every document", 40)
    rare = np.full((4, 30), NAN)
    rare[:, :3] = np.random.default_rng(0).normal(size=(4, 3))
    full = np.random.default_rng(1).normal(size=(4, 30)) + 2 * np.arange(4)[:, None]
    full[0, 6:] = NAN  # this system is without a score in some resamples
    metrics = {"a": MeanOverDocuments(full), "b": MeanOverDocuments(full**2)}
    found = evaluation(metrics, seed=0, resamples=400).corpus("a", "b", "pearson")
    assert 0 < found.undefined_resamples < 10
    assert found.ci is not None
    metrics = {
        "a": MeanOverDocuments(rare),
        "b": MeanOverDocuments(np.where(np.isnan(rare), NAN, full)),
    }
    assert (
        evaluation(metrics, seed=0).corpus("a", "b", "pearson").ci_reason
        == "fewer than 5 documents"
    )
    full[0, 1:] = NAN
    metrics = {"a": MeanOverDocuments(full), "b": MeanOverDocuments(full**2)}
    found = evaluation(metrics, seed=0, resamples=400).corpus("a", "b", "kendall")
    assert found.ci_reason == "undefined in more than 5 % of the resamples"
    assert found.undefined_resamples > 20


def test_soft_pairwise_accuracy_has_an_interval_inside_its_range():
    rng = np.random.default_rng(1)
    quality = np.arange(5.0)[:, None]
    x, y = (side * quality + rng.normal(size=(5, 12)) for side in (1, -1))
    metrics = {"x": x, "y": y, "z": -y}
    study = evaluation(
        {name: MeanOverDocuments(v) for name, v in metrics.items()}, seed=0, resamples=200
    )
    low, high = study.corpus("x", "y", "spa").ci
    assert 0 <= low < 0.1 > high
    low, high = study.corpus("x", "z", "spa").ci
    assert 0.9 < low < high <= 1
    low, high = study.corpus_difference("x", "z", "y", "spa").ci
    assert low < 0 < high


def test_systems_without_a_common_document_have_no_soft_pairwise_accuracy():
    values = np.random.default_rng(0).normal(size=(4, 20))
    values[0, :10] = values[1, 10:] = NAN
    study = evaluation({"a": MeanOverDocuments(values)}, seed=0, resamples=20)
    assert study.corpus("a", "a", "spa").reason == "two systems have no document in common"
    assert study.corpus("a", "a", "kendall").value == 1


def test_an_estimate_says_why_it_lacks_something():
    made = Estimate(systems=5, documents=7, undefined=2)
    resampled = np.array([NAN, 0.5, 0.25, NAN])
    found = replace(made, value=1 / 3).with_interval((-1 / 3, 2 / 3), resampled)
    assert (found.ci, found.ci_reason, found.undefined_resamples) == ((-1 / 3, 2 / 3), None, 2)
    assert (found.p, found.epsilon, found.reason) == (None, None, None)
    lost = replace(made, value=1 / 3).with_interval(None, resampled)
    assert (lost.ci, lost.ci_reason[:12]) == (None, "undefined in")
    none = made.undefined_because("why")
    assert (none.value, none.reason, none.ci, none.ci_reason) == (None, "why", None, "why")
    assert (none.systems, none.documents, none.undefined) == (5, 7, 2)


def test_estimates_have_no_nan_and_what_belongs_to_their_kind(study):
    estimates = [
        study.corpus("x", "y", "kendall"),
        study.corpus("flat", "y", "kendall"),
        study.corpus_difference("x", "z", "y", "spa"),
        study.documents("x", "y", "acc_eq"),
    ]
    given = json.loads(json.dumps([asdict(found) for found in estimates], allow_nan=False))
    own = ("p", "epsilon", "noiseless", "noiseless_ci")
    assert [{name for name in own if row[name] is not None} for row in given] == [
        {"noiseless", "noiseless_ci"},
        set(),
        {"p"},
        {"epsilon"},
    ]


def test_unknown_names_are_refused(study):
    with pytest.raises(UnknownNameError, match="unknown metric 'w'"):
        study.corpus("x", "w", "kendall")
    with pytest.raises(
        OptionError, match="found 'acc_eq'; expected pearson, spearman, kendall, spa"
    ):
        study.corpus("x", "y", "acc_eq")
    with pytest.raises(OptionError, match="found 'spa'; expected pearson"):
        study.documents("x", "y", "spa")
    with pytest.raises(OptionError, match="found 'documents'; expected systems, both"):
        study.permutation_test("x", "z", "y", "pearson", swap="documents")
    with pytest.raises(InputError, match="2 different shapes"):
        evaluation(
            {"a": MeanOverDocuments(np.ones((2, 3))), "b": MeanOverDocuments(np.ones((3, 2)))},
            seed=0,
        )


@given(
    st.tuples(st.integers(1, 7), st.integers(1, 9)).flatmap(
        lambda shape: losses((3, *shape), st.one_of(few_values, st.floats(-1, 1), st.just(NAN)))
    )
)
@examples(60)
def test_awkward_losses_give_numbers_or_reasons(values):
    study = evaluation(
        {n: MeanOverDocuments(v) for n, v in zip("xyz", values, strict=True)}, seed=0, resamples=15
    )
    estimates = [study.corpus("x", "y", measure) for measure in CORPUS_MEASURES]
    estimates += [study.corpus_difference("x", "z", "y", measure) for measure in CORPUS_MEASURES]
    estimates += [study.documents("x", "y", measure) for measure in DOCUMENT_MEASURES]
    for found in estimates:
        json.dumps(asdict(found), allow_nan=False)
        assert (found.value is None) == (found.reason is not None)
        assert (found.ci is None) == (found.ci_reason is not None)
        assert found.documents + found.undefined == values.shape[2]
        if found.ci:
            assert found.documents >= 5
            assert found.ci[0] <= found.value <= found.ci[1]
        if found.noiseless_ci:
            assert found.noiseless_ci[0] <= found.noiseless <= found.noiseless_ci[1]
    for swap in ("systems", "both"):
        test = study.permutation_test("x", "z", "y", "kendall", swap=swap, permutations=20)
        assert (test.p is None) == (test.difference is None) == (test.reason is not None)
    beside = study.williams_test("x", "z", "y", "pearson")
    assert (beside.p is None) == (beside.reason is not None)


def test_pooled_metrics_take_part_like_any_other():
    rng = np.random.default_rng(16)
    quality = rng.uniform(0.1, 0.9, size=8)
    sizes = rng.integers(5, 50, size=(60, 8))
    counts = np.stack([rng.binomial(sizes, quality), sizes], axis=2).astype(float)
    pooled = PooledOverDocuments(ratio(counts).T, counts, ratio, np.ones(60, dtype=bool))
    other = MeanOverDocuments(-quality[:, None] + rng.normal(size=(8, 60)) / 3)
    study = evaluation({"pooled": pooled, "mean": other}, seed=0, resamples=200)
    scores = 1 - counts[..., 0].sum(0) / counts[..., 1].sum(0)
    found = study.corpus("pooled", "mean", "pearson")
    assert found.value == pytest.approx(np.corrcoef(scores, other.values.mean(1))[0, 1])
    assert found.ci[0] < found.value < found.ci[1]
    assert study.corpus("pooled", "mean", "spa").value > 0.9
    assert study.documents("pooled", "mean", "kendall").documents == 60


# Curves ---------------------------------------------------------------------------------------


def test_min_max_leaves_order_and_gaps():
    scaled = min_max(np.array([[3.0, NAN, 1.0, 2.0], [NAN] * 4]))
    assert_array_equal(scaled, [[1, NAN, 0, 0.5], [NAN] * 4])
    assert min_max(np.empty((2, 0))).shape == (2, 0)


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


# Simulations: the full one is benchmarks/interval_coverage.py ---------------------------------


def directions(n_systems, count, rng):
    """Uncorrelated expected scores of mean 0 and variance 1."""
    basis, _ = np.linalg.qr(np.c_[np.ones(n_systems), rng.normal(size=(n_systems, count))])
    return basis[:, 1:].T * np.sqrt(n_systems)


def simulated(expected, n_documents, rng, noise=2.0):
    """Losses of metrics: expected scores, documents' difficulty and noise."""
    shape = (*expected.shape, n_documents)
    difficulty = rng.normal(size=(len(expected), 1, n_documents))
    return expected[..., None] + difficulty + noise * rng.normal(size=shape)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_intervals_hold_the_mean_value_and_the_correlation_of_expected_scores(rho):
    """20 systems, 60 documents, 100 runs: 95 % ± 3 standard deviations is 88.5 to 100 %.

    Percentiles of resampled correlations, which noise attenuates twice, hold .9 in half the runs.
    """
    noiseless = {coefficient: 0 for coefficient in COEFFICIENTS}
    found = {coefficient: [] for coefficient in COEFFICIENTS}
    plain = 0
    one, other = directions(20, 2, np.random.default_rng(20))
    expected = np.stack([one, rho * one + np.sqrt(1 - rho**2) * other])
    for run in range(100):
        rng = np.random.default_rng([run, int(10 * rho)])
        losses = simulated(expected, 60, rng)
        metrics = {name: MeanOverDocuments(v) for name, v in zip("xy", losses, strict=True)}
        study = evaluation(metrics, seed=run, resamples=150)
        for coefficient in COEFFICIENTS:
            estimate = study.corpus("x", "y", coefficient)
            found[coefficient].append(estimate)
            low, high = estimate.noiseless_ci
            truth = correlation(*expected, coefficient)
            noiseless[coefficient] += low - 1e-9 <= truth <= high + 1e-9
        counts = resampled_documents(60, rng, 150) / 60
        resampled = correlation(*(counts @ v.T for v in losses), "pearson")
        plain += np.quantile(resampled, 0.025) <= rho <= np.quantile(resampled, 0.975)
    assert min(noiseless.values()) >= 88
    for estimates in found.values():
        mean = np.mean([estimate.value for estimate in estimates])
        assert sum(e.ci[0] <= mean <= e.ci[1] for e in estimates) >= 88
    if rho == 0.9:
        assert plain < 75


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


def test_swapping_both_holds_its_level_where_metrics_differ_by_noise_alone():
    rejected = 0
    for run in range(150):
        rng = np.random.default_rng([run, 2])
        expected = np.repeat(directions(15, 1, rng), 3, axis=0)
        x, y, z = simulated(expected, 60, rng)
        test = permutation_test(x, y, z.mean(1), "pearson", rng, swap="both", permutations=200)
        rejected += test.p <= 0.05
    assert rejected <= 15


def test_a_family_of_true_nulls_has_few_discoveries():
    """Six metrics against a seventh, all alike in their correlation with gold; 60 runs.

    5 % + 3 standard deviations is 13 %.
    """
    discoveries = 0
    for run in range(60):
        rng = np.random.default_rng([run, 3])
        gold, *views = rng.normal(size=(8, 15))
        *losses, z = simulated(np.stack([*(gold + view for view in views), gold]), 40, rng)
        p_values = [
            permutation_test(x, losses[0], z.mean(1), "kendall", rng, permutations=200).p
            for x in losses[1:]
        ]
        discoveries += min(benjamini_hochberg(p_values)) <= 0.05
    assert discoveries <= 8


def test_differences_between_equal_correlations_are_rarely_significant():
    """Two metrics that correlate equally with gold on these very systems; 100 runs.

    5 % + 3 standard deviations is 11.5 %.
    """
    rejected = 0
    for run in range(100):
        rng = np.random.default_rng([run, 4])
        gold, one, other = directions(15, 3, rng)
        losses = simulated(np.stack([gold + one, gold + other, gold]), 60, rng)
        metrics = {name: MeanOverDocuments(v) for name, v in zip("xyz", losses, strict=True)}
        study = evaluation(metrics, seed=run, resamples=150)
        rejected += study.corpus_difference("x", "y", "z", "pearson").p <= 0.05
    assert rejected <= 11
