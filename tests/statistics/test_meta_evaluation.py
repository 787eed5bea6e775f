"""Metrics against metrics: values, intervals, reasons, simulations with known answers."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from reffree.statistics.coefficients import COEFFICIENTS, correlation
from reffree.statistics.losses import MeanOverDocuments
from reffree.statistics.meta_evaluation import CORPUS_MEASURES, DOCUMENT_MEASURES, expected_scores
from reffree.statistics.resampling import resampled_documents
from reffree.statistics.significance import permutation_test
from reffree.util.errors import InputError, OptionError, UnknownNameError
from reffree.util.seeds import rng_for
from tests.oracles import statistics as oracle
from tests.properties import examples
from tests.statistics.helpers import (
    NAN,
    as_lists,
    directions,
    evaluation,
    few_values,
    losses,
    or_nan,
    pairs_of_losses,
    simulated,
)


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


def test_some_of_the_systems_are_measured_as_if_they_were_all(study):
    study.corpus("z", "y", "kendall")
    part = study.among(np.array([0, 2, 3, 4, 7, 9])).among(np.array([0, 1, 2, 4, 5]))
    rows = [0, 2, 3, 7, 9]
    metrics = {name: MeanOverDocuments(study._metrics[name].values[rows]) for name in "yz"}
    alone = evaluation(metrics, seed=3, resamples=300)
    for measure in CORPUS_MEASURES:
        one, other = (each.corpus("z", "y", measure) for each in (part, alone))
        assert (one.value, *one.ci) == pytest.approx((other.value, *other.ci), abs=1e-6)
        assert one.noiseless == pytest.approx(other.noiseless, abs=1e-6)
    for of_documents in DOCUMENT_MEASURES:
        one, other = (each.documents("z", "y", of_documents) for each in (part, alone))
        assert (one.value, *one.ci) == pytest.approx((other.value, *other.ci), abs=1e-9)
    one, other = (each.permutation_test("z", "y", "y", "pearson") for each in (part, alone))
    assert (one.difference, one.p) == pytest.approx((other.difference, other.p), abs=1e-9)


@pytest.mark.parametrize("measure", DOCUMENT_MEASURES)
def test_document_level(study, measure):
    found = study.documents("x", "y", measure)
    assert (found.systems, found.documents, found.undefined) == (9, 39, 1)
    assert found.ci[0] < found.value < found.ci[1]
    assert (found.epsilon is not None) == (measure == "acc_eq")


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


def test_systems_without_a_common_document_have_no_soft_pairwise_accuracy():
    values = np.random.default_rng(0).normal(size=(4, 20))
    values[0, :10] = values[1, 10:] = NAN
    study = evaluation({"a": MeanOverDocuments(values)}, seed=0, resamples=20)
    assert study.corpus("a", "a", "spa").reason == "two systems have no document in common"
    assert study.corpus("a", "a", "kendall").value == 1


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


def test_soft_pairwise_accuracy_equals_its_definition():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 5, 6)) + np.arange(5)[:, None] / 3
    study = evaluation({"x": MeanOverDocuments(x), "y": MeanOverDocuments(y)}, seed=0)
    expected = oracle.soft_pairwise_accuracy(x.tolist(), y.tolist())
    assert study.corpus("x", "y", "spa").value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@given(pairs_of_losses(st.one_of(few_values, st.just(NAN)), systems=(1, 6)))
@examples(40)
def test_within_correlation_equals_its_definition(coefficient, pair):
    metrics = {name: MeanOverDocuments(v) for name, v in zip("xy", pair, strict=True)}
    found = evaluation(metrics, seed=0, resamples=1).documents("x", "y", coefficient)
    value, n_defined = oracle.within_documents(*map(as_lists, pair), coefficient)
    assert found.documents == n_defined
    assert_allclose(or_nan(found.value), or_nan(value), atol=1e-9)


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


def test_draws_without_expected_differences_reach_both_ends():
    """Equal means of widely scattered losses: less difference than noise alone would make."""
    rng = np.random.default_rng(19)
    x, y = rng.normal(size=(2, 12, 60))
    x, y = (v - v.mean(1, keepdims=True) + 1e-3 * rng.normal(size=(12, 1)) for v in (x, y))
    metrics = {"x": MeanOverDocuments(x), "y": MeanOverDocuments(y)}
    study = evaluation(metrics, seed=0, resamples=300)
    for coefficient in COEFFICIENTS:
        assert study.corpus("x", "y", coefficient).noiseless_ci == (-1, 1)


# Simulations: the full one is benchmarks/interval_coverage.py.


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


# Expected scores --------------------------------------------------------------------------------


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
