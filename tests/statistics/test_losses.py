"""Losses of systems on documents, and the scores they add up to."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from reffree.statistics.losses import MeanOverDocuments, PooledOverDocuments, as_loss
from reffree.statistics.resampling import resampled_documents
from reffree.util.errors import InputError
from tests.oracles import statistics as oracle
from tests.statistics.helpers import NAN, as_lists, evaluation, or_nan, ratio


def test_losses_are_lower_where_values_are_better():
    values = np.array([0.5, 1.0, 1.75])
    assert_array_equal(as_loss(values, "lower"), values)
    assert_array_equal(as_loss(values, "higher"), -values)
    assert_array_equal(as_loss(values, "toward_1"), [0.5, 0, 0.75])


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-297, 1e-180, 1e-5, 1.0, 1e9, 1e300])
def test_losses_of_any_size_are_rounded_to_twelve_digits(size):
    losses = size * np.array([[1.0, 0.25, -0.5], [1.0, 0.3, 0.0]])
    found = MeanOverDocuments(losses).values
    assert_allclose(found, losses, rtol=0, atol=max(1e-11 * size, 5e-324))
    assert found[0, 0] == found[1, 0] != 0
    noisy = losses.copy()
    noisy[0, 0] = np.nextafter(noisy[0, 0], np.inf) if size > 1e-300 else noisy[0, 0]
    assert_array_equal(MeanOverDocuments(noisy).values, found)


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
    expected = oracle.pseudo_values(documents, oracle.mean_of_pairs)
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
