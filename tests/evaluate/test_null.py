"""The chance test: its arithmetic, its seeds, and p-values that are uniform where they must be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.evaluate.null import compare_with_null
from reffree.metrics.free.engine import score_document
from reffree.metrics.registry import parse_metric


def corpus_of(lengths, masses, ids=None):
    return Corpus(
        tuple(
            Document.build(
                ids[i] if ids else f"d{i}", [f"u{j}" for j in range(n)], systems={"s": masses[i]}
            )
            for i, n in enumerate(lengths)
        )
    )


def test_z_and_p_by_hand():
    null = np.array([0.5, 0.1, 0.0, -0.1, np.nan])  # raw; losses .25 .45 .5 .55
    test = compare_with_null(0.1, null, parse_metric("arp_cos"))
    losses = np.array([0.25, 0.45, 0.5, 0.55])
    assert test.draws == 4
    assert test.mean == pytest.approx(losses.mean())
    assert test.z == pytest.approx((0.45 - losses.mean()) / losses.std())
    assert test.p == 3 / 5  # two of four losses are as low, the tie included
    assert compare_with_null(np.nan, null, parse_metric("arp_cos")) is None
    assert compare_with_null(0.1, np.full(3, np.nan), parse_metric("arp_cos")) is None


def test_ties_up_to_rounding_are_ties():
    """One possible arrangement is no evidence, whatever the last bit says."""
    test = compare_with_null(0.3, np.full(99, 0.3 - 1e-14), parse_metric("arp_cos"))
    assert (test.p, test.z, test.sd) == (1.0, None, 0.0)
    rng = np.random.default_rng(0)
    corpus = corpus_of([12] * 6, [[3, 3, 3, 3]] * 6)
    vectors, metrics = [rng.normal(size=(12, 4)) for _ in range(6)], ["placement", *METRICS]
    table = reffree.score(corpus, embeddings=vectors, metrics=metrics, null=50)
    for name in metrics:
        score = table.systems[0].metrics[name]
        assert (score.null.p, score.null.z) == (1.0, None)


def test_draws_are_rearrangements_scored_like_any_hypothesis():
    """With two lengths there are two arrangements: the null mean lies between their losses."""
    x = np.random.default_rng(1).normal(size=(9, 4))
    corpus = corpus_of([9], [[3, 6]])
    table = reffree.score(corpus, embeddings=[x], null=400, metrics=["silhouette"])
    test = table.systems[0].metrics["silhouette"].null
    a, b = ((1 - v) / 2 for v in score_document(x, [[3, 6], [6, 3]], ["silhouette"])["silhouette"])
    share = (test.mean - float(b)) / (float(a) - float(b))
    assert 0.4 < share < 0.6
    assert test.sd == pytest.approx(abs(float(a) - float(b)) * np.sqrt(share * (1 - share)))


def planted(rng, n_documents=8):
    arrays, masses = [], []
    for _ in range(n_documents):
        m = [int(x) for x in rng.integers(3, 9, size=5)]
        topics = np.repeat(rng.normal(size=(5, 6)), m, axis=0)
        arrays.append(topics + 0.4 * rng.normal(size=topics.shape))
        masses.append(m)
    return arrays, masses


def test_planted_topics_are_significant_and_shuffled_ones_are_not():
    rng = np.random.default_rng(2)
    arrays, masses = planted(rng)
    corpus = corpus_of([len(x) for x in arrays], masses)
    good = reffree.score(corpus, embeddings=arrays, null=500)
    shuffled = reffree.score(corpus, embeddings=[rng.permutation(x) for x in arrays], null=500)
    assert good.systems[0].metrics["granularity"].null is None  # which no order changes
    for name, score in good.systems[0].metrics.items():
        if name == "granularity":
            continue
        assert score.null.p < 0.01, name
        assert score.null.z < -3, name
        assert shuffled.systems[0].metrics[name].null.p > 0.02, name


def without_topics(rng, n_documents):
    lengths = rng.integers(14, 30, size=n_documents)
    masses = []
    for n in lengths:
        inner = np.sort(rng.choice(np.arange(1, n), size=5, replace=False))
        masses.append([int(m) for m in np.diff([0, *inner, n])])
    return corpus_of(lengths, masses), [rng.normal(size=(n, 5)) for n in lengths]


METRICS = ["arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree"]


def test_p_values_are_uniform_on_shuffled_text():
    """Text without topic order: Kolmogorov-Smirnov against uniform, documents and corpora."""
    rng = np.random.default_rng(3)
    corpus, arrays = without_topics(rng, 250)
    table = reffree.score(corpus, embeddings=arrays, null=99, metrics=METRICS, per_document=True)
    by_document = {m: [row.metrics[m].null.p for row in table.documents] for m in METRICS}
    by_corpus = {m: [] for m in METRICS}
    for seed in range(40):
        corpus, arrays = without_topics(rng, 4)
        scores = reffree.score(corpus, embeddings=arrays, null=99, metrics=METRICS, seed=seed)
        for m in METRICS:
            by_corpus[m].append(scores.systems[0].metrics[m].null.p)
    for m in METRICS:
        assert stats.kstest(by_document[m], "uniform").pvalue > 0.01, m
        assert stats.kstest(by_corpus[m], "uniform").pvalue > 0.01, m
        assert np.mean(np.array(by_document[m]) <= 0.05) <= 0.08, m


def test_seeds_order_and_other_documents():
    rng = np.random.default_rng(4)
    arrays, masses = planted(rng, 4)
    lengths, ids = [len(x) for x in arrays], ["a", "b", "c", "d"]
    options = {"null": 60, "metrics": ["arp_cos"], "per_document": True}

    def null_of(order, seed=0):
        corpus = corpus_of(*([v[i] for i in order] for v in (lengths, masses, ids)))
        table = reffree.score(corpus, embeddings=[arrays[i] for i in order], seed=seed, **options)
        return {row.id: row.metrics["arp_cos"].null for row in table.documents}

    first = null_of([0, 1, 2, 3])
    assert null_of([0, 1, 2, 3]) == first
    assert null_of([3, 1]) == {"d": first["d"], "b": first["b"]}
    assert null_of([0, 1, 2, 3], seed=1) != first


def test_signature_and_json_carry_the_null():
    rng = np.random.default_rng(5)
    arrays, masses = planted(rng, 5)
    corpus = corpus_of([len(x) for x in arrays], masses)
    table = reffree.score(corpus, embeddings=arrays, null=20, metrics=["arp_cos"])
    assert "null:permuted-lengths(20)" in table.signature
    cell = table.to_dict()["systems"][0]["metrics"]["arp_cos"]
    assert set(cell["null"]) == {"draws", "mean", "sd", "z", "p"}
    assert cell["null"]["draws"] == 20
    plain = reffree.score(corpus, embeddings=arrays, metrics=["arp_cos"])
    assert "null" not in plain.to_dict()["systems"][0]["metrics"]["arp_cos"]
    assert "null:" not in plain.signature
