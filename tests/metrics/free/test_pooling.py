"""Segments to documents and documents to a corpus by other means than the mean, by the oracle."""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from reffree.data.corpus import Corpus, Document
from reffree.evaluate.score import score
from reffree.metrics.free.engine import score_document
from reffree.metrics.registry import FREE_METRICS, WITHOUT_SEARCH, parse_metric
from reffree.segmenters.segment import parse_segmenter
from reffree.statistics.losses import MedianOverDocuments
from reffree.statistics.resampling import medians
from reffree.studies import compare, correlate, granularity, perturb
from reffree.util.errors import InputError, OptionError
from tests.helpers import halves, topical_corpus
from tests.metrics.free.test_scoring import by_torch, documents, hypotheses
from tests.oracles.reference_free import (
    arp_segments,
    pooled,
    segrefree_segments,
    silhouette_segments,
)
from tests.properties import examples, intervals_held

POOLS = ("mean", "median", "length")
GOLDS = [[4, 3, 5], [6, 4], [3, 4, 3, 4], [7, 9], [5, 5], [2, 6, 4], [4, 4, 4], [8, 3]]


def segments_of(metric, x, masses):
    if metric.startswith("arp_"):
        kind = metric.removeprefix("arp_")
        return [*arp_segments(x, masses, kind, 2 if kind == "std" else 1), None]
    return (segrefree_segments if metric == "segrefree" else silhouette_segments)(x, masses)


@given(st.data())
@examples(50)
def test_documents_are_pooled_as_defined(data):
    x = data.draw(documents(min_units=2)).astype(np.float64)
    masses = data.draw(hypotheses(len(x)))
    names = [f"{name}:pool_n={pool}" for name in WITHOUT_SEARCH for pool in POOLS]
    with data.draw(st.sampled_from([by_torch, nullcontext]))():
        found = score_document(x, masses, names, unsegmented="skip")
    for name in WITHOUT_SEARCH:
        for pool in POOLS:
            values = found[name if pool == "mean" else f"{name}:pool_n={pool}"].tolist()
            for value, m in zip(values, masses, strict=True):
                expected = pooled(segments_of(name, x, m), m, pool) if len(m) > 1 else None
                wanted = math.nan if expected is None else expected
                message = (name, pool, m)
                assert value == pytest.approx(wanted, abs=1e-6, rel=1e-6, nan_ok=True), message


def test_a_mean_over_units_is_the_length_weighted_mean_over_segments():
    x = np.random.default_rng(0).normal(size=(20, 4))
    cuts = [[3, 7, 10], [1] * 20, [19, 1]]
    names = ["silhouette:average=units", "silhouette:pool_n=length"]
    units, lengths = (score_document(x, cuts, [name])[name] for name in names)
    assert units.tolist() == pytest.approx(lengths.tolist(), abs=1e-12)
    with pytest.raises(InputError, match="average=units and pool_n=median"):
        parse_metric("silhouette:average=units,pool_n=median")


@given(
    st.lists(
        st.lists(st.one_of(st.floats(-9, 9), st.just(math.nan)), min_size=4, max_size=4),
        min_size=1,
        max_size=3,
    ),
    st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=1, max_size=4),
)
@examples(100)
def test_medians_are_those_of_the_documents_written_out(values, counts):
    found = medians(np.array(values), np.array(counts))
    for r, times in enumerate(counts):
        for s, row in enumerate(values):
            every = [v for v, n in zip(row, times, strict=True) for _ in range(n) if v == v]
            wanted = np.median(every) if every else math.nan
            assert found[r, s] == pytest.approx(wanted, nan_ok=True)


def test_pseudo_values_of_a_median_are_those_of_leaving_documents_out():
    values = np.array([[1.0, 5.0, 2.0, np.nan, 9.0]])
    found = MedianOverDocuments(values)
    whole = np.median([1, 5, 2, 9])
    left = [np.median(np.delete([1, 5, 2, 9], i)) for i in range(4)]
    expected = [4 * whole - 3 * each for each in left]
    assert found.contributions[0, [0, 1, 2, 4]].tolist() == pytest.approx(expected)
    assert np.isnan(found.contributions[0, 3])


@pytest.mark.parametrize("name", sorted({*FREE_METRICS} - {"placement", "granularity"}))
@pytest.mark.parametrize("pool", POOLS)
def test_the_corpus_is_pooled_as_defined(name, pool):
    corpus, vectors = topical_corpus(GOLDS, a=halves)
    options = f"pool_d={pool}"
    table = score(corpus, metrics=[f"{name}:{options}"], embeddings=vectors, per_document=True)
    (spelt,) = table.metrics
    lengths = [len(document.units) for document in corpus]
    for row in table.systems:
        own = [d.metrics[spelt].raw for d in table.documents if d.system == row.system]
        score_of = row.metrics[spelt]
        assert score_of.raw == pytest.approx(pooled(own, lengths, pool), abs=1e-9)
        assert score_of.ci[0] <= score_of.value <= score_of.ci[1]
    word = {"length": "length-weighted"}.get(pool, pool)
    assert f"{word}(documents)|" in table.signature
    assert (f"pool_d={pool}" in table.signature) == (pool != "mean")


def test_studies_take_other_poolings():
    corpus, vectors = topical_corpus(GOLDS, a=halves)
    metrics = ["arp_pair:pool_n=median,pool_d=median", "silhouette:pool_d=length", "pk"]
    given = {"metrics": metrics, "embeddings": {"c": vectors}}
    result = correlate({"c": corpus}, resamples=100, **given)
    plain = score(corpus, metrics=metrics, embeddings=vectors)
    for metric in metrics:
        (row,) = result.table("scores").records(system="a", metric=metric)
        own = next(row for row in plain.systems if row.system == "a").metrics[metric]
        assert row["value"] == pytest.approx(own.value, abs=1e-9)
    assert intervals_held(perturb({"c": corpus}, seeds=2, strengths=[1, 2], **given)) > 0


def test_what_tests_means_refuses_medians():
    corpus, vectors = topical_corpus(GOLDS, a=halves)
    given = {"metrics": ["arp_pair:pool_d=median"], "embeddings": vectors}
    with pytest.raises(OptionError, match="with --null, which adds up draws"):
        score(corpus, null=10, **given)
    with pytest.raises(OptionError, match="with compare, which tests differences of means"):
        compare(corpus, **given)
    with pytest.raises(OptionError, match="curves are means over documents"):
        granularity({"c": corpus}, metrics=["expected_pk:pool_d=median"], embeddings={"c": vectors})
    with pytest.raises(InputError, match="by the mean over segments"):
        parse_segmenter("optimal:metric=arp_pair:pool_n=median")


def test_an_unsegmented_document_counts_by_its_length():
    units = [["x"] * 6, ["x"] * 2]
    documents = [
        Document.build(f"d{i}", u, systems={"s": [len(u)] if i else [3, 3]})
        for i, u in enumerate(units)
    ]
    vectors = [np.repeat(np.eye(2), 3, axis=0), np.eye(2)]
    table = score(
        Corpus(tuple(documents)), metrics=["silhouette:pool_d=length"], embeddings=vectors
    )
    assert table.systems[0].metrics["silhouette:pool_d=length"].raw == pytest.approx(6 / 8)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize(("path", "rtol"), [(nullcontext, 0), (by_torch, 1e-12)])
def test_pooled_scores_do_not_depend_on_the_segments_of_other_hypotheses(pool, path, rtol):
    rng = np.random.default_rng(0)
    names = [f"silhouette:pool_n={pool}", f"arp_pair:pool_n={pool}"]
    for n in (41, 90, 117):
        x = rng.normal(size=(n, 5))
        masses = [[3] * (n // 3 - 1) + [n - 3 * (n // 3 - 1)], [2, 5, 4, 7, 3, n - 21]]
        with path():
            alone = [score_document(x, [m], names) for m in masses]
            beside = score_document(x, [*masses, [1] * n], names)
        for name, scores in beside.items():
            assert_allclose(scores[:2], [float(found[name]) for found in alone], rtol=rtol)
