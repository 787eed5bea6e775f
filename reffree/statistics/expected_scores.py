"""Where the systems' expected scores may lie, given scores that document sampling has blurred."""

from __future__ import annotations

import numpy as np

from reffree.statistics.losses import without_noise
from reffree.util.arrays import Floats

RIDGE = 1e-9
"""Of unit variance: metrics that are linear in one another leave their covariance invertible."""


def expected_scores(
    point: Floats, resampled: Floats, n_documents: int, rng: np.random.Generator
) -> Floats:
    r"""Draw systems' expected scores under ``k`` metrics, (k, resamples, systems).

    A system's score is its expectation over documents plus noise. Resampling documents adds noise
    once more, so correlations of resampled scores are attenuated twice and their percentiles miss
    the correlation of the expected scores, the more so the more systems there are. Here the noise
    of each resample is taken off instead. With :math:`m_i` the scores of system i less their mean
    over systems, :math:`e_i` what a resample adds to them, N the covariance of the noise (pooled
    over systems) and M that of the scores,

    .. math:: \mu_i = (I - N M^{-1})\,m_i + A e_i,\qquad A N A^\top = N - N M^{-1} N

    which is a draw from the posterior of i's expected scores where these are normal over systems
    with covariance :math:`T = M - N` (Fay and Herriot 1979, without covariates). M is drawn anew
    for each resample from its posterior given the S systems, inverse Wishart with S - 1 degrees of
    freedom; directions in which the noise exceeds M get no expected difference. Where noise is
    small, draws are the resampled scores. What all systems have in common, such as hard documents,
    cancels.

    Args:
        point: (k, systems) scores over the corpus, none constant.
        resampled: (k, resamples, systems).
        n_documents: documents resampled; the bootstrap's variance is short by (D - 1) / D.
        rng: draws M.
    """
    k, n_systems = point.shape
    apart = point - point.mean(1, keepdims=True)
    largest = np.abs(apart).max(1)  # squares of tiny scores would vanish
    size = largest * (apart / largest[:, None]).std(1)
    scores = apart / size[:, None]  # (k, s)
    noise = (resampled - point[:, None]) / size[:, None, None]  # (k, r, s)
    noise -= noise.mean(2, keepdims=True)
    noise -= noise.mean(1, keepdims=True)
    noise *= np.sqrt(n_documents / (n_documents - 1))
    freedom = n_systems - 1
    ridge = RIDGE * np.eye(k)
    n = np.einsum("krs,lrs->kl", noise, noise) / (noise.shape[1] * freedom) + ridge
    drawn = rng.standard_normal((noise.shape[1], freedom, k))
    wishart = np.swapaxes(drawn, 1, 2) @ drawn / freedom  # (r, k, k)
    root = np.linalg.cholesky(scores @ scores.T / freedom + ridge)
    # M = root wishart⁻¹ rootᵀ = u uᵀ, with u = root l⁻ᵀ where wishart = l lᵀ
    u = root @ np.linalg.inv(np.swapaxes(np.linalg.cholesky(wishart), 1, 2))  # (r, k, k)
    u_inverse = np.linalg.inv(u)
    share, v = np.linalg.eigh(u_inverse @ n @ np.swapaxes(u_inverse, 1, 2))  # noise in units of M
    share = share.clip(0, 1)[:, None, :]
    uv, vu = u @ v, np.swapaxes(v, 1, 2) @ u_inverse
    kept = (uv * (1 - share)) @ vu  # I - N M⁻¹
    covariance = (uv * (share * (1 - share))) @ np.swapaxes(uv, 1, 2)  # N - N M⁻¹ N
    map_noise = _root(covariance) @ np.linalg.inv(_root(n))
    draws = np.einsum("rkl,ls->krs", kept, scores) + np.einsum("rkl,lrs->krs", map_noise, noise)
    draws = draws * size[:, None, None] + point.mean(1)[:, None, None]
    return np.stack([without_noise(x, y) for x, y in zip(draws, point, strict=True)])


def _root(covariance: Floats) -> Floats:
    """Symmetric square roots (…, k, k)."""
    values, vectors = np.linalg.eigh(covariance)
    root: Floats = (vectors * np.sqrt(values.clip(min=0))[..., None, :]) @ np.swapaxes(
        vectors, -1, -2
    )
    return root
