"""The pool of the ARP paper: gold, nine random systems, supervised ones trained in the study."""

from __future__ import annotations

import numpy as np
import pytest

from reffree.data.corpus import Corpus, Document
from reffree.segmenters.segment import segment
from reffree.studies import correlate, encoders
from reffree.util.errors import InputError

RANDOM = {"random_mean", *(f"random_{n}" for n in range(2, 10))}


def planted(n_documents, seed=0):
    """Documents and a system of their own; with vectors that teach nothing, training is short."""
    rng = np.random.default_rng(seed)
    documents, vectors = [], []
    for d in range(n_documents):
        gold = tuple(rng.integers(2, 5, 3).tolist())
        units = [f"bees dance home {d} {i}" for i in range(sum(gold))]
        whole = {"mine": (2, sum(gold) - 2)}
        documents.append(Document.build(f"d{d}", units, gold=gold, systems=whole))
        vectors.append(rng.normal(size=(sum(gold), 4)))
    return Corpus(tuple(documents)), vectors


CORPUS, VECTORS = planted(8)
ARGUMENTS = {
    "metrics": ["arp_pair", "pk"],
    "resamples": 100,
    "embeddings": {"c": VECTORS},
    "folds": 2,
    "device": "cpu",
}


def systems_of(result):
    rows = result.table("scores").records(metric="pk")
    return {row["system"]: (row["kind"], row["pool"]) for row in rows}


@pytest.fixture(scope="module")
def result():
    return correlate({"c": CORPUS}, pool="paper", **ARGUMENTS)


def test_the_pool_is_gold_nine_random_and_the_three_supervised_systems(result):
    found = systems_of(result)
    supervised = {"bilstm", "sheikh-bilstm", "transformer"}
    assert set(found) == {"gold", *RANDOM, *supervised}
    assert {found[name] for name in supervised} == {("supervised", "independent")}
    assert "supervised:bilstm+sheikh-bilstm+transformer(folds=2)" in result.signature
    assert "c: 13 independent and 0 cohesion-seeking systems" in " ".join(result.notes)
    (row,) = result.table("independent").records(metric="arp_pair")
    assert row["n_systems"] == 13
    (blind,) = result.table("correlations").records(
        pool="blind", free="arp_pair", gold="pk", level="corpus", coefficient="pearson"
    )
    assert blind["n_systems"] == 10


def test_a_supervised_system_is_that_of_the_method(result):
    method = "supervised:architecture=sheikh-bilstm,folds=2"
    made = segment(CORPUS, {"s": method}, embeddings=VECTORS, device="cpu")
    alone = correlate({"c": made}, pool="given", **ARGUMENTS)
    for metric in ("pk", "arp_pair"):
        (ours,) = result.table("scores").records(metric=metric, system="sheikh-bilstm")
        (again,) = alone.table("scores").records(metric=metric, system="s")
        assert ours["value"] == pytest.approx(again["value"])


def test_one_architecture_beside_the_systems_of_the_corpus():
    found = systems_of(
        correlate({"c": CORPUS}, pool="given", supervised=["sheikh-bilstm"], **ARGUMENTS)
    )
    assert found == {
        "gold": ("gold", "independent"),
        "mine": ("given", "independent"),
        "sheikh-bilstm": ("supervised", "independent"),
    }


def test_none_are_trained_unless_asked_for():
    assert "supervised" not in correlate({"c": CORPUS}, pool="given", **ARGUMENTS).signature
    found = systems_of(correlate({"c": CORPUS}, pool="paper", supervised=[], **ARGUMENTS))
    assert set(found) == {"gold", *RANDOM}


def test_every_encoder_has_systems_and_judges_all_of_them(tmp_path):
    result = encoders(
        {"c": CORPUS},
        encoders=["wordllama", "minilm"],
        metrics=["arp_pair", "pk"],
        resamples=100,
        pool="paper",
        supervised=["sheikh-bilstm"],
        folds=2,
        measure=False,
        cache=tmp_path,
        device="cpu",
    )
    for encoder in ("wordllama", "minilm"):
        rows = result.table("scores").records(metric="pk", encoder=encoder, kind="supervised")
        assert {row["system"] for row in rows} == {
            "sheikh-bilstm (wordllama)",
            "sheikh-bilstm (minilm)",
        }


def test_too_few_documents_are_refused_before_anything_is_encoded(monkeypatch):
    def encode(*args, **options):
        raise AssertionError("encoded all the same")

    monkeypatch.setattr("reffree.encoders.embed.encode_corpus", encode)
    with pytest.raises(InputError, match="documents to train on; expected four at least"):
        correlate({"c": planted(4)[0]}, pool="paper", folds=2)
