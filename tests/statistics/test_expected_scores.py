"""Draws of expected scores, against their formula and simulations with known answers."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.testing import assert_allclose

from reffree.statistics.meta_evaluation import expected_scores


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
