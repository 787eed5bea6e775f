"""What a verdict says of systems that read what the judge reads, and of those that beat gold."""

from __future__ import annotations

import numpy as np
import pytest

import reffree
from reffree.evaluate.metric_set import known_readers, without_read_sources
from reffree.metrics.names import DEFAULT

TOPICS = ("garden soil rose", "tax law court", "boat sail wind", "violin bow", "stew pan", "hill")
BY_VECTORS, BY_WORDS, EVEN = [5, 9, 4, 10, 6, 14], [8, 4, 12, 7, 10, 7], [8] * 6


def made(n_documents=12, gold=None, **systems):
    """Documents whose vectors change topic elsewhere than their words, and the vectors."""
    rng = np.random.default_rng(5)
    vectors, documents = [], []
    for d in range(n_documents):
        x = np.repeat(rng.normal(size=(6, 12)), BY_VECTORS, axis=0)
        vectors.append(x + 0.4 * rng.normal(size=x.shape))
        units = np.repeat([f"{topic}." for topic in TOPICS], BY_WORDS).tolist()
        documents.append({"id": str(d), "units": units, "systems": systems})
        if gold is not None:
            documents[-1]["gold"] = gold
    return documents, vectors


def verdict_of(documents, vectors, metrics=("expected_pk",)):
    return " ".join(reffree.score(documents, metrics=list(metrics), embeddings=vectors).verdict)


def test_readers_are_known_by_their_methods():
    systems = ["depth", "depth:k=3", "changepoint (mine)", "c99", "deep", "even:k=4"]
    assert known_readers(systems) == {"vectors": ["depth", "depth:k=3"], "words": ["c99"]}
    assert known_readers(["even:k=4"]) == {}


def test_a_system_that_agrees_with_the_vectors_is_noticed():
    """As a system of any name; not where the judge has not read them, nor of too few documents."""
    documents, vectors = made(mine=BY_VECTORS, other=BY_WORDS)
    said = verdict_of(documents, vectors)
    assert "mine agrees with the vectors far more than with words and cues" in said
    assert "-m expected_pk:without=vectors judges by the rest" in said
    assert "other agree" not in said
    for name in ("expected_pk:without=vectors", "expected_pk:evidence=words", "arp_pair"):
        assert "far more" not in verdict_of(documents, vectors, [name])
    assert "far more" not in verdict_of(documents[:4], vectors[:4])


def test_gold_that_agrees_with_the_vectors_as_much_is_no_reason_to_doubt():
    documents, vectors = made(gold=BY_VECTORS, mine=BY_VECTORS, other=BY_WORDS)
    assert "far more" not in verdict_of(documents, vectors)
    documents, vectors = made(gold=BY_WORDS, mine=BY_VECTORS, other=EVEN)
    assert "; gold -" in verdict_of(documents, vectors)


def test_where_gold_agrees_with_the_vectors_nobody_is_suspected():
    """Even who does so more: there vectors see topics better than words do."""
    between = [5, 9, 4, 10, 20]
    documents, vectors = made(gold=between, mine=BY_VECTORS, other=BY_WORDS)
    assert "far more" not in verdict_of(documents, vectors)


def test_several_are_named_with_the_figure_of_the_first():
    documents, vectors = made(mine=[5, 9, 14, 6, 14], other=BY_VECTORS, words=BY_WORDS)
    said = verdict_of(documents, vectors)
    assert "mine and other agree" in said or "other and mine agree" in said
    assert " for mine)" in said or " for other)" in said


def test_a_known_reader_is_judged_by_what_it_did_not_read():
    """By default, and said; a metric that was asked for stays, with the advice."""
    documents, vectors = made(depth=BY_VECTORS, words=BY_WORDS)
    table = reffree.score(documents, embeddings=vectors)
    names = list(table.systems[0].metrics)
    assert names.index("expected_pk:without=vectors") < names.index("expected_pk")
    said = " ".join(table.verdict)
    assert "best of 2 systems by expected_pk:without=vectors" in said
    assert said.startswith("words ")
    assert "depth looked for coherence in the vectors: expected_pk:without=vectors judges" in said
    said = verdict_of(documents, vectors)
    assert "best of 2 systems by expected_pk:" in said
    assert "which expected_pk reads too: -m expected_pk:without=vectors judges" in said
    assert "far more" not in said


def test_readers_of_several_sources_have_no_judge_in_common():
    assert without_read_sources(DEFAULT, ["depth", "c99"]) == [*DEFAULT]
    assert without_read_sources(DEFAULT, ["even"]) == [*DEFAULT]
    found = without_read_sources(("placement", "arp_pair"), ["textseg"])
    assert found == ["placement:without=words", "placement", "arp_pair"]


def test_a_system_that_beats_gold_is_explained():
    documents, vectors = made(gold=EVEN, mine=BY_WORDS, worse=[1, 1, 1, 45])
    said = verdict_of(documents, vectors)
    assert "mine is better than gold by expected_pk (0." in said
    assert "gold − mine: 95 % interval 0." in said
    assert ", told apart): gold is one annotator's choice" in said
    assert "pk says who agrees with this gold" in said


@pytest.mark.parametrize(
    ("gold", "systems", "metric"),
    [
        (BY_WORDS, {"mine": EVEN}, "expected_pk"),  # gold is better
        (None, {"mine": EVEN}, "expected_pk"),
        (EVEN, {"mine": EVEN}, "expected_pk"),  # a tie
        (EVEN, {"mine": BY_WORDS}, "pk"),  # held against gold itself
    ],
)
def test_otherwise_nothing_is_said_of_gold(gold, systems, metric):
    documents, vectors = made(gold=gold, **systems)
    assert "better than gold" not in verdict_of(documents, vectors, [metric])


def test_several_that_beat_gold_are_counted_and_the_direction_is_the_metrics():
    documents, vectors = made(gold=EVEN, mine=BY_WORDS, other=[12, 19, 17], third=[24, 7, 17])
    said = verdict_of(documents, vectors, ["placement"])
    assert "is better than gold by placement" in said
    assert "and so are 2 more" in said
    two, _ = made(gold=EVEN, mine=BY_WORDS, other=[12, 19, 17])
    assert ", and so is " in verdict_of(two, vectors, ["placement"])
