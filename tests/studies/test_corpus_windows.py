"""Metrics that take their window or weights from the whole corpus, in every study."""

from __future__ import annotations

from fractions import Fraction
from statistics import fmean

import pytest

import reffree
from reffree.evaluate import corpus_counts
from reffree.studies import baselines, correlate, moves, pairs, perturb
from reffree.util.errors import OptionError
from tests.helpers import topical_corpus
from tests.oracles import reference_based

GOLDS = [[4, 4, 4], [6, 7], [3, 5, 6], [4, 11], [2, 4, 6, 9]]  # each of another length
METRIC = "pk_prime:k=corpus"


def cut(gold):
    """Every segment halved."""
    return [part for mass in gold for part in (mass // 2, mass - mass // 2)]


@pytest.fixture(scope="module")
def corpus():
    golds = {sum(gold): gold for gold in GOLDS}
    return topical_corpus(GOLDS, halves=lambda n: cut(golds[n]))


def by_definition(golds, hypotheses):
    k = reference_based.corpus_window_size(golds)
    p_seg = reference_based.share_of_windows(golds, k)
    values = [
        reference_based.pk_prime(h, gold, k, p_seg)
        for h, gold in zip(hypotheses, golds, strict=True)
    ]
    return float(fmean(map(Fraction, values)))


def golds_of(corpus):
    return [list(document.gold.masses) for document in corpus]


@pytest.mark.parametrize("block", [15, 8192])
def test_score_and_studies_agree_with_the_definition(corpus, block, monkeypatch):
    monkeypatch.setattr(corpus_counts, "BLOCK_UNITS", block)
    documents, _ = corpus
    golds = golds_of(documents)
    expected = by_definition(golds, [cut(gold) for gold in golds])
    table = reffree.score(documents, metrics=[METRIC])
    row = next(row for row in table.systems if row.system == "halves")
    assert row.metrics[METRIC].value == pytest.approx(expected)
    result = baselines({"a": documents}, methods=["none"], metrics=[METRIC])
    (found,) = result.table("values").records(system="halves")
    assert found["value"] == pytest.approx(expected, abs=1e-9)
    whole = [[sum(gold)] for gold in golds]
    (found,) = result.table("values").records(system="none")
    assert found["value"] == pytest.approx(by_definition(golds, whole), abs=1e-9)


def test_each_corpus_of_a_study_has_its_own(corpus):
    documents, _ = corpus
    other, _ = topical_corpus([[2, 3], [2, 2, 3]])
    result = baselines({"a": documents, "b": other}, methods=["none"], metrics=[METRIC])
    for name, each in (("a", documents), ("b", other)):
        golds = golds_of(each)
        expected = by_definition(golds, [[sum(gold)] for gold in golds])
        (found,) = result.table("values").records(corpus=name, system="none")
        assert found["value"] == pytest.approx(expected, abs=1e-9)


def test_other_studies_take_them(corpus):
    documents, vectors = corpus
    given = {"embeddings": {"a": vectors}}
    assert pairs({"a": documents}, by=METRIC, metrics=["pk:k=corpus,unit=words"])
    assert perturb({"a": documents}, metrics=[METRIC, "arp_pair"], **given)
    assert correlate({"a": documents}, metrics=["arp_pair", METRIC], **given)
    assert moves({"a": documents}, metrics=[METRIC])
    with pytest.raises(OptionError, match="expected a gold-based one that reads no text"):
        moves({"a": documents}, metrics=["pk:unit=words"])
