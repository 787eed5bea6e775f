"""What is said beside expected errors and weighted means: spread, information, granularity."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.evaluate.table import CorpusScore, DocumentScores, PartScore, ScoreTable, SystemScores
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.expected import INFORMED
from reffree.metrics.free.posterior import Posterior
from reffree.report.render import render
from reffree.studies import diagnose

TOPICS = 4
NOUNS = ["garden", "tax", "boat", "violin", "engine", "recipe", "glacier", "harbour"]


def made(n_documents=8, *, ordered=True, seed=0):
    """Documents of four topics, in vectors and in words, or the same with units in any order."""
    rng = np.random.default_rng(seed)
    documents, arrays = [], []
    for i in range(n_documents):
        masses = rng.integers(6, 12, TOPICS).tolist()
        topic = np.repeat(np.arange(TOPICS), masses)
        order = np.arange(len(topic)) if ordered else rng.permutation(len(topic))
        vectors = np.repeat(rng.normal(size=(TOPICS, 24)), masses, 0)
        vectors += 0.8 * rng.normal(size=vectors.shape)
        nouns = rng.permutation(NOUNS)
        units = [f"The {nouns[t]} and the {rng.choice(NOUNS)}." for t in topic]
        n = len(units)
        systems = {"even": [n // 2, n - n // 2], "none": [n]}
        units = [units[j] for j in order]
        documents.append(Document.build(f"d{i}", units, gold=masses, systems=systems))
        arrays.append(vectors[order])
    return Corpus(tuple(documents)), arrays


def scored(metrics=("expected_pk",), *, ordered=True, n_documents=8, **options):
    corpus, arrays = made(n_documents, ordered=ordered)
    return reffree.score(corpus, embeddings=arrays, metrics=list(metrics), **options)


def cell(table, metric="expected_pk"):
    return table.systems[0].metrics[metric]


@pytest.mark.parametrize("evidence", ["all", "embedding", "words"])
def test_text_says_more_than_its_units_in_random_order(evidence):
    metric = f"expected_pk:evidence={evidence}" if evidence != "all" else "expected_pk"
    topics, shuffled = (cell(scored([metric], ordered=o), metric) for o in (True, False))
    assert topics.information > 1.5 * topics.chance_information
    assert shuffled.information < INFORMED * shuffled.chance_information


def test_what_scorers_say_is_no_chance():
    """Only vectors and words can be put in another order."""
    corpus, arrays = made(1)
    reading = Reading(corpus[0].units, {"folder": np.linspace(0.1, 0.9, len(arrays[0]) - 1)})
    readings = (reading, Reading(reading.units))
    with_scorer, plain = (Posterior(arrays[0], each, length=6).facts() for each in readings)
    assert with_scorer.information == plain.information > INFORMED * plain.chance_information > 0
    alone = Posterior(arrays[0], reading, evidence="scorer:folder").facts()
    assert alone.information > 0
    assert alone.chance_information == 0


def test_what_rests_on_the_prior_is_said():
    informed, uninformed = (scored(ordered=ordered) for ordered in (True, False))
    (said,) = [note for note in uninformed.notes if "rests on the prior" in note]
    found = cell(uninformed)
    assert f"adds {found.information:.2f} nats a boundary" in said
    assert f"in random order {found.chance_information:.2f};" in said
    assert not any("rests on the prior" in note for note in informed.notes)
    corpus = Corpus((Document.build("a", ["same"] * 9, systems={"s": [4, 5]}),))
    nothing = reffree.score(corpus, embeddings=[np.ones((9, 2))], metrics=["expected_pk"])
    assert any("rests on the prior" in note for note in nothing.notes)


def test_the_granularity_is_said_unless_it_was_given():
    table = scored(["expected_pk", "expected_windowdiff", "expected_pk:length=7.5"])
    (said,) = [note for note in table.notes if "assumed" in note]
    segments = f"{cell(table).assumed_segments:.1f}"
    assert said.startswith(f"expected_pk and expected_windowdiff: {segments} segments")
    assert "length=N" in said


def test_the_spread_stands_beside_the_score():
    table = scored(["expected_pk", "arp_pair"], per_document=True, null=20)
    score = cell(table)
    drawn = render(table, "table")
    assert f"{score.value:.3f} ±{score.spread:.3f}".replace("±0", "±") in drawn
    assert "±: standard deviation over segmentations" in drawn
    assert "p ." in drawn
    for format in ("md", "latex"):
        assert f"± {score.spread:.3f} " in render(table, format)
    rows = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    whole = next(row for row in rows if row["metric"] == "expected_pk" and not row["document"])
    part = next(row for row in rows if row["metric"] == "expected_pk" and row["document"])
    for name in ("spread", "information", "chance_information", "assumed_segments"):
        assert float(whole[name]) == pytest.approx(getattr(score, name), abs=1e-9)
        assert float(part[name]) > 0
        assert {row[name] for row in rows if row["metric"] == "arp_pair"} == {""}
    frame = table.to_pandas().set_index(["system", "metric"])
    assert frame.loc[("gold", "expected_pk"), "spread"] == pytest.approx(score.spread)
    documents = table.documents_to_pandas()
    assert (documents["spread"].notna() == (documents["metric"] == "expected_pk")).all()
    plain = render(scored(["arp_pair"]), "table")
    assert "±" not in plain


def test_weights_of_documents_are_given_where_they_are_not_1():
    parts = {"d0": PartScore(0.25, 0.25, weight=3.0), "d1": PartScore(0.5, 0.5)}
    whole = CorpusScore(0.3, 0.3, None, None, documents=2, undefined=0, left_out=0)
    documents = tuple(DocumentScores(name, "s", {"m": part}) for name, part in parts.items())
    sizes = {"documents": 2, "units": 9}
    table = ScoreTable("x", sizes, (SystemScores("s", 2, 0, {"m": whole}),), documents)
    rows = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert [row["weight"] for row in rows] == ["", "3.0", ""]
    drawn = render(table, "table")
    assert "0.250 × 3\n" in drawn
    assert "×: what a document counts for" in drawn


def test_the_signature_says_how_documents_are_averaged():
    for metrics, said in ((["expected_pk"], ""), (["expected_pk", "arp_pair"], "mean(segments)>")):
        signature = scored(metrics, n_documents=2).signature
        assert f"|aggregation:{said}mean(documents)|" in signature


@pytest.mark.parametrize(("ordered", "verdict"), [(True, "ok"), (False, "problem")])
def test_diagnose_checks_the_information(ordered, verdict):
    corpus, arrays = made(12, ordered=ordered)
    result = diagnose({"mine": corpus}, embeddings={"mine": arrays}, metrics=["arp_pair"], seeds=1)
    check = next(row for row in result.table("checks").records() if row["check"] == "information")
    assert check["verdict"] == verdict
    assert check["ci"][0] <= check["value"] <= check["ci"][1]
    advised = {row["about"] for row in result.table("advice").records()}
    assert ("information" in advised) == (verdict == "problem")


def test_a_missing_scorer_is_refused_before_anything_is_encoded():
    corpus, _ = made(2)
    message = r"no scorer .*expected a folder that reffree train"
    with pytest.raises(reffree.ReffreeError, match=message):
        reffree.score(corpus, metrics=["expected_pk:evidence=scorer:nowhere"], encoder="no/such")
