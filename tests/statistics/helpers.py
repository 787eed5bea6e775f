"""Losses to test with, and what tests of several modules share."""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reffree.statistics.meta_evaluation import MetaEvaluation
from reffree.util.seeds import rng_for

NAN = float("nan")

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


def ratio(counts):
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 - counts[..., 0] / counts[..., 1]


def directions(n_systems, count, rng):
    """Uncorrelated expected scores of mean 0 and variance 1."""
    basis, _ = np.linalg.qr(np.c_[np.ones(n_systems), rng.normal(size=(n_systems, count))])
    return basis[:, 1:].T * np.sqrt(n_systems)


def simulated(expected, n_documents, rng, noise=2.0):
    """Losses of metrics: expected scores, documents' difficulty and noise."""
    shape = (*expected.shape, n_documents)
    difficulty = rng.normal(size=(len(expected), 1, n_documents))
    return expected[..., None] + difficulty + noise * rng.normal(size=shape)
