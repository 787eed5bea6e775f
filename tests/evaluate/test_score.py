"""Aggregation, intervals, signatures and the Python API, on the caller's own vectors."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.evaluate.signature import _words
from reffree.evaluate.table import CorpusScore, ScoreTable, SystemScores
from reffree.metrics.gold.sed import FUNCTION_WORDS
from reffree.statistics.resampling import DocumentBootstrap
from reffree.util.errors import InputError, OptionError, UnknownNameError
from tests.oracles.reference_free import document_score

METRICS = ["arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree"]


def make(n_documents=8, seed=0, **systems):
    """Documents of 6 to 12 units with random vectors; a system is a function n → masses."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(6, 13, size=n_documents)
    documents = tuple(
        Document.build(
            f"d{i}",
            [f"unit {j}" for j in range(n)],
            gold=[int(n) // 2, int(n) - int(n) // 2],
            systems={name: cut(int(n)) for name, cut in systems.items()},
        )
        for i, n in enumerate(lengths)
    )
    return Corpus(documents), [rng.normal(size=(n, 5)) for n in lengths]


def loss(raw, metric):
    return raw if metric == "segrefree" else (1 - raw) / 2


def test_corpus_scores_are_means_of_document_scores():
    corpus, arrays = make(fine=lambda n: [2] * (n // 2) + [1] * (n % 2), none=lambda n: [n])
    table = reffree.score(corpus, embeddings=arrays, metrics=METRICS, per_document=True)
    result = table.to_dict()
    assert [row["system"] for row in result["systems"]] == ["gold", "fine", "none"]
    for row in result["systems"][:2]:
        for metric in METRICS:
            raws = [
                document_score(x, list(corpus.hypotheses[row["system"]][i].masses), metric)
                for i, x in enumerate(arrays)
            ]
            cell = row["metrics"][metric]
            assert cell["raw"] == pytest.approx(np.mean(raws), abs=1e-6)
            assert cell["value"] == pytest.approx(loss(np.mean(raws), metric), abs=1e-6)
            assert (cell["documents"], cell["undefined"], cell["direction"]) == (8, 0, "lower")
            assert cell["ci"][0] <= cell["value"] <= cell["ci"][1]
    for part in result["documents"]:
        if part["system"] == "fine":
            i = int(part["id"][1:])
            masses = list(corpus.hypotheses["fine"][i].masses)
            for metric, cell in part["metrics"].items():
                assert cell["raw"] == pytest.approx(document_score(arrays[i], masses, metric))
                assert cell["value"] == pytest.approx(loss(cell["raw"], metric))
    assert len(result["documents"]) == 3 * 8


@pytest.mark.parametrize(
    ("policy", "value", "raw", "segrefree", "documents"),
    [("neutral", 0.5, 0, None, 8), ("skip", None, None, None, 0), ("worst", 1, -1, 10, 8)],
)
def test_unsegmented_policies(policy, value, raw, segrefree, documents):
    corpus, arrays = make(none=lambda n: [n])
    table = reffree.score(corpus, embeddings=arrays, unsegmented=policy, per_document=True)
    row = table.to_dict()["systems"][1]
    assert row["unsegmented"] == 8
    for metric in METRICS[:-1]:
        cell = row["metrics"][metric]
        assert (cell["value"], cell["raw"], cell["documents"]) == (value, raw, documents)
        assert cell["undefined"] == 8 - documents
    assert row["metrics"]["segrefree"]["value"] == segrefree
    if policy != "worst":
        part = next(p for p in table.to_dict()["documents"] if p["system"] == "none")
        assert part["metrics"]["segrefree"] == {
            "value": None,
            "raw": None,
            "reason": f"no boundary (unsegmented={policy})",
        }
        assert any("segrefree" in n and "scored on different doc" in n for n in table.notes)
    assert any(f"without a boundary ({policy}): none 8" in note for note in table.notes)


def test_segments_are_reported_in_order():
    corpus, arrays = make(n_documents=1)
    table = reffree.score(corpus, embeddings=arrays, metrics=["arp_cos"], per_segment=True)
    (part,) = table.to_dict()["documents"]
    segments = part["metrics"]["arp_cos"]["segments"]
    assert len(segments) == 2
    assert segments[0]["raw"] == part["metrics"]["arp_cos"]["raw"]
    assert segments[1] == {"value": None, "raw": None}


def test_equal_centroids_are_counted():
    corpus = Corpus((Document.build("a", ["x"] * 4, gold=[2, 2]),))
    table = reffree.score(corpus, embeddings=[np.ones((4, 2))], per_document=True)
    result = table.to_dict()
    cell = result["systems"][0]["metrics"]["segrefree"]
    assert (cell["value"], cell["undefined"], cell["left_out"]) == (None, 1, 1)
    reason = result["documents"][0]["metrics"]["segrefree"]["reason"]
    assert reason == "the centroids of all neighbouring segments are equal"
    assert result["systems"][0]["metrics"]["arp_std"]["value"] == 0.5


@pytest.mark.parametrize("n_documents", [1, 4, 5])
def test_interval_needs_five_documents(n_documents):
    corpus, arrays = make(n_documents)
    cell = reffree.score(corpus, embeddings=arrays).to_dict()["systems"][0]["metrics"]["arp_pair"]
    assert (cell["ci"] is None) == (n_documents < 5)
    if n_documents < 5:
        assert cell["ci_reason"] == "fewer than 5 documents with a score"


def test_same_input_and_seed_give_the_same_bytes():
    corpus, arrays = make()
    first = json.dumps(reffree.score(corpus, embeddings=arrays, seed=3).to_dict())
    assert json.dumps(reffree.score(corpus, embeddings=arrays, seed=3).to_dict()) == first
    other = reffree.score(corpus, embeddings=arrays, seed=4).to_dict()
    assert (
        other["systems"][0]["metrics"]["arp_std"]["ci"]
        != (json.loads(first)["systems"][0]["metrics"]["arp_std"]["ci"])
    )


def test_document_order_changes_no_score():
    corpus, arrays = make(fine=lambda n: [2] * (n // 2) + [1] * (n % 2))
    table = reffree.score(corpus, embeddings=arrays).to_dict()["systems"]
    turned = reffree.score(Corpus(corpus.documents[::-1]), embeddings=arrays[::-1])
    for row, other in zip(table, turned.to_dict()["systems"], strict=True):
        for metric in METRICS:
            assert row["metrics"][metric]["value"] == other["metrics"][metric]["value"]


def test_systems_scored_on_different_documents_are_not_compared():
    corpus, arrays = make(
        first=lambda n: [n] if n % 2 else [3, n - 3], second=lambda n: [3, n - 3] if n % 2 else [n]
    )
    table = reffree.score(corpus, embeddings=arrays, metrics=["arp_cos"], unsegmented="skip")
    counts = [row.metrics["arp_cos"].documents for row in table.systems]
    assert sum(counts[1:]) == counts[0] == 8
    assert table.best("arp_cos") == frozenset()
    assert table.incomparable == {"arp_cos"}


def test_bootstrap_equals_a_plain_loop():
    values = np.random.default_rng(0).normal(size=9)
    values[[2, 7]] = np.nan
    low, high = DocumentBootstrap(9, np.random.default_rng(5)).interval(np.nanmean(values), values)
    counts = np.random.default_rng(5).multinomial(9, [1 / 9] * 9, size=1000)
    means = []
    for row in counts:
        drawn = [v for v, c in zip(values, row, strict=True) for _ in range(c) if not np.isnan(v)]
        if drawn:
            means.append(sum(drawn) / len(drawn))
    assert_allclose([low, high], np.quantile(means, [0.025, 0.975]), rtol=1e-12)


def test_bootstrap_covers_the_truth():
    """95 % intervals of the mean of 50 documents, 400 corpora: between 91 and 98 %."""
    rng = np.random.default_rng(1)
    bootstrap = DocumentBootstrap(50, rng)
    samples = rng.gamma(2.0, size=(400, 50))
    intervals = [bootstrap.interval(sample.mean(), sample) for sample in samples]
    assert 0.91 <= np.mean([low <= 2.0 <= high for low, high in intervals]) <= 0.98


def test_bootstrap_of_many_documents_is_drawn_in_parts():
    values = np.arange(20_000.0)
    low, high = DocumentBootstrap(20_000, np.random.default_rng(0)).interval(values.mean(), values)
    error = values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.4 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.4 * error)


def test_signature_carries_every_setting():
    corpus, arrays = make()
    signature = reffree.score(
        corpus, embeddings=arrays, metrics=["arp_std:p=1", "silhouette"], seed=7, unsegmented="skip"
    ).signature
    for part in (
        "metrics:arp_std(p=1)+silhouette(average=segments)",
        "encoder:precomputed@blake2b:",
        "pooling:given",
        "normalisation:given",
        "dtype:float64",
        "maxlen:given",
        "truncated:0.00%",
        "unsegmented:skip",
        "aggregation:mean(segments)>mean(documents)",
        "seed:7",
        "reffree:0.",
    ):
        assert part in signature


def test_words_left_out_are_named_by_what_they_are():
    assert _words(FUNCTION_WORDS) == "function_words"
    assert _words(frozenset({"b", "a"})) == _words(frozenset({"a", "b"}))
    assert _words(frozenset({"a"})).startswith("1_words:")


def test_options_are_validated_and_repeated():
    corpus, arrays = make()
    longest = max(len(document.units) for document in corpus)
    reffree.score(corpus, embeddings=arrays, metrics=[f"expected_pk:length={longest}"])
    table = reffree.score(corpus, embeddings=arrays, metrics=["arp_cos"], null=5)
    assert table.settings["metrics"] == ["arp_cos"]
    assert (table.settings["null"], table.settings["average"]) == (5, "macro")
    for wrong, sentence in (
        ({"seed": -1}, "found seed = -1; expected a whole number, 0 or more"),
        ({"null": "many"}, "found null = many; expected a whole number"),
        ({"unsegmented": "none"}, "found unsegmented = none; expected neutral or skip or worst"),
        ({"null": 10**6}, "1,000,000 draws"),
        (
            {"metrics": ["pk", f"expected_pk:length={longest + 1}"]},
            f"expected_pk:length={longest + 1}, and no document of more than {longest} units; ",
        ),
    ):
        with pytest.raises(OptionError, match=sentence):
            reffree.score(corpus, embeddings=arrays, **wrong)
    with pytest.raises(TypeError, match="'metric'; did you mean 'metrics'"):
        reffree.score(corpus, metric="pk")


def test_vectors_are_part_of_the_signature():
    corpus, arrays = make()
    first = reffree.score(corpus, embeddings=arrays).signature
    assert reffree.score(corpus, embeddings=[x + 1e-9 for x in arrays]).signature != first


def test_nothing_to_score_gets_a_sentence():
    corpus = Corpus((Document.build("a", ["x", "y"]),))
    with pytest.raises(InputError, match=r"no segmentation to score.*--system NAME=FILE"):
        reffree.score(corpus, embeddings=[np.ones((2, 2))])
    with pytest.raises(UnknownNameError, match=r"unknown metric 'w_f2'; did you mean 'w_f1'\?"):
        reffree.score(make()[0], embeddings=make()[1], metrics=["w_f2"])
    with pytest.raises(InputError, match="no metrics"):
        reffree.score(make()[0], embeddings=make()[1], metrics=[])


def test_incomplete_gold_is_not_scored_and_said():
    documents = (
        Document.build("a", ["x", "y"], gold=[1, 1], systems={"s": [1, 1]}),
        Document.build("b", ["x", "y"], systems={"s": [2]}),
    )
    table = reffree.score(Corpus(documents), embeddings=[np.eye(2), np.eye(2)])
    assert [row.system for row in table.systems] == ["s"]
    assert "Gold was not scored: only 1 of 2 documents have it." in table.notes
    assert table.verdict == ("expected_pk is undefined for every system on these documents.",)


def score_of(value):
    return CorpusScore(value, value, None, None, 9, 0, 0)


def table_of(incomparable=frozenset(), **values):
    rows = [SystemScores(name, 1, 0, {"m": score}) for name, score in values.items()]
    return ScoreTable("s", {}, tuple(rows), incomparable=incomparable)


def test_best_systems():
    assert table_of(a=score_of(0.4), b=score_of(0.3), c=score_of(0.3)).best("m") == {"b", "c"}
    assert table_of(a=score_of(0.4)).best("m") == frozenset()
    assert table_of({"m"}, a=score_of(0.4), b=score_of(0.3)).best("m") == frozenset()
    assert table_of(a=score_of(None), b=score_of(None)).best("m") == frozenset()


def test_pandas():
    corpus, arrays = make()
    table = reffree.score(corpus, embeddings=arrays, metrics=["arp_pair"], per_document=True)
    frame = table.to_pandas()
    assert list(frame["system"]) == ["gold"]
    assert frame["value"][0] == table.to_dict()["systems"][0]["metrics"]["arp_pair"]["value"]
    documents = table.documents_to_pandas()
    assert len(documents) == 8
    assert frame["value"][0] == pytest.approx(documents["value"].mean())
