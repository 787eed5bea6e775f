"""Every interval holds the estimate it stands beside, whatever the scores are."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.evaluate.scores import corpus_mean
from reffree.statistics.paired import paired_tests
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.compare import compare_table
from reffree.studies.perturb import band
from tests.properties import examples

NAN = float("nan")
METRICS = ["arp_pair", "silhouette", "segrefree", "pk", "bed", "winpr", "bor", "f1"]

awkward = st.one_of(
    st.sampled_from([0.0, 0.1, 0.5, 1.0, -1e9, 1e-12]), st.floats(-1e6, 1e6), st.just(NAN)
)
weights = st.sampled_from([1e-9, 0.1, 1.0, 3.0, 1e9])


@st.composite
def scored(draw, systems):
    """Losses and weights (systems, documents)."""
    shape = (systems, draw(st.integers(5, 12)))
    return tuple(draw(hnp.arrays(np.float64, shape, elements=e)) for e in (awkward, weights))


@given(scored(1), st.integers(0, 9))
@examples(100)
def test_means_over_documents(case, seed):
    (values,), (weight,) = case
    bootstrap = DocumentBootstrap(len(values), np.random.default_rng(seed), resamples=60)
    mean = corpus_mean(values, weight)
    found = bootstrap.interval(mean, values, weight)
    assert (found is None) == ((~np.isnan(values)).sum() < 5)
    if found is not None:
        assert found[0] <= mean <= found[1]


def odd_ratio(counts):
    """As far from linear as a measure of counts may be."""
    first, second = counts[..., 0], counts[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(second > 0, (first / second) ** 9, np.nan)


@given(
    st.integers(5, 12).flatmap(lambda n: hnp.arrays(np.int64, (n, 2), elements=st.integers(0, 50))),
    st.integers(0, 9),
)
@examples(100)
def test_pooled_counts(counts, seed):
    counts = np.stack([counts[:, 0], counts[:, 1] * (counts[:, 1] > 20)], axis=1).astype(float)
    value = float(odd_ratio(counts.sum(0)))
    bootstrap = DocumentBootstrap(len(counts), np.random.default_rng(seed), resamples=60)
    is_there = np.ones(len(counts), dtype=bool)
    found = bootstrap.pooled_interval(
        None if np.isnan(value) else value, counts, is_there, odd_ratio
    )
    assert (found is None) == np.isnan(value)
    if found is not None:
        assert found[0] <= value <= found[1]


@given(scored(3), st.integers(0, 9))
@examples(40)
def test_differences_of_pairs(case, seed):
    pairs = [(0, 1), (0, 2), (1, 1)]
    for test in paired_tests(*case, pairs, np.random.default_rng(seed)):
        assert (test.ci is None) == (test.documents < 5)
        if test.ci is not None:
            assert test.ci[0] <= test.difference <= test.ci[1]


@pytest.mark.parametrize("n_documents", [5, 10, 11, 12])
def test_systems_that_score_alike_everywhere(n_documents):
    """All resampled values are equal but for rounding, which may leave out the estimate."""
    values = np.repeat(np.linspace(0.01, 0.99, 30)[:, None], n_documents, axis=1)
    pairs = list(combinations(range(30), 2))
    for test in paired_tests(values, np.ones_like(values), pairs, np.random.default_rng(0)):
        assert test.ci[0] <= test.difference <= test.ci[1]
    bootstrap = DocumentBootstrap(n_documents, np.random.default_rng(0))
    for row in values:
        low, high = bootstrap.interval(mean := corpus_mean(row, np.ones_like(row)), row)
        assert low <= mean <= high


@given(st.integers(1, 60).flatmap(lambda n: hnp.arrays(np.float64, (n, 4), elements=awkward)))
@examples(60)
def test_bands_over_seeds(curves):
    mean, low, high = band(curves)
    assert ((low <= mean) & (mean <= high) | np.isnan(curves).all(0)).all()


@st.composite
def corpora(draw):
    """Five to seven short documents with gold and systems, and vectors, some of them equal."""
    documents, vectors = [], []
    for d in range(draw(st.integers(5, 7))):
        n = draw(st.integers(3, 9))
        cut = st.integers(0, 2 ** (n - 1) - 1).map(lambda bits, n=n: masses_of(bits, n))
        systems = {name: draw(cut) for name in ("a", "b", "c")}
        units = [f"unit {d} {i}" for i in range(n)]
        documents.append(Document.build(f"d{d}", units, gold=draw(cut), systems=systems))
        element = draw(st.sampled_from([st.integers(-1, 1).map(float), st.floats(-1, 1, width=32)]))
        vectors.append(draw(hnp.arrays(np.float32, (n, 3), elements=element)))
    return Corpus(tuple(documents)), vectors


def masses_of(bits, n):
    boundaries = [0, *(i + 1 for i in range(n - 1) if bits >> i & 1), n]
    return [b - a for a, b in pairwise(boundaries)]


@given(corpora(), st.sampled_from(["macro", "micro"]), st.integers(0, 3))
@examples(20)
def test_scores_and_comparisons(case, average, seed):
    corpus, vectors = case
    table = reffree.score(
        corpus, metrics=METRICS, embeddings=vectors, average=average, per_document=True, seed=seed
    )
    for row in table.to_dict()["systems"]:
        for name, cell in row["metrics"].items():
            if cell["ci"] is not None:
                assert cell["ci"][0] <= cell["value"] <= cell["ci"][1], name
    for pair in compare_table(table, seed=seed).table("pairs").records():
        if pair["ci"] is not None:
            assert pair["ci"][0] <= pair["difference"] <= pair["ci"][1]
