"""Expected errors over assumed numbers of segments: values, crossings, sentences, refusals."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.expected import ExpectedPk, ExpectedWF1
from reffree.metrics.free.posterior import Posterior
from reffree.reference import pk
from reffree.report.render import render
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.granularity import (
    POINTS,
    AssumedSegments,
    GranularityCurves,
    answer,
    granularity,
    parts_of,
)
from reffree.util.errors import InputError, OptionError, UnknownNameError
from reffree.util.seeds import rng_for
from tests.helpers import halves, rows, topical_corpus
from tests.properties import examples, intervals_held

GOLDS = [[6, 5, 7], [8, 6], [4, 9, 5, 6], [12], [7, 7], [5, 8, 6], [10, 4]]


def fours(n):
    return [4] * (n // 4) + ([n % 4] if n % 4 else [])


@pytest.fixture(scope="module")
def small():
    corpus, vectors = topical_corpus(GOLDS, halves=halves, fours=fours)
    return corpus, vectors, granularity({"small": corpus}, embeddings={"small": vectors}, seed=3)


def every_segmentation(n):
    for cuts in product((False, True), repeat=n - 1):
        masses = [1]
        for is_cut in cuts:
            masses = [*masses, 1] if is_cut else [*masses[:-1], masses[-1] + 1]
        yield masses


def expected_without_evidence(hypothesis, segments):
    """Sum of Pk over all segmentations, each weighing the product of w times its lengths."""
    n = sum(hypothesis)
    window = max(2, round(n / segments / 2))
    ways = list(every_segmentation(n))

    def shares(log_w):
        weights = np.array([np.exp(log_w * len(s)) * prod(s) for s in ways])
        return weights / weights.sum()

    sizes = np.array([len(s) for s in ways])
    low, high = -50.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if shares(middle) @ sizes < segments else (low, middle)
    return shares(low) @ [float(pk(hypothesis, s, k=window)) for s in ways]


def test_values_are_sums_over_all_segmentations():
    """Units that are all the same say nothing, so only the assumed number is left."""
    cuts = [[3, 4], [2, 5], [4, 3], [6, 1], [1, 6]]
    documents = [
        Document.build(f"d{i}", ["x"] * 7, systems={"a": cut, "b": [3, 2, 2]})
        for i, cut in enumerate(cuts)
    ]
    vectors = [np.ones((7, 3))] * 5
    result = granularity({"c": Corpus(tuple(documents))}, embeddings={"c": vectors})
    found = rows(result, "curves")
    assert len(found) == 2 * (POINTS + 1)
    for row in found[::3]:
        made = cuts if row["system"] == "a" else [[3, 2, 2]] * 5
        expected = np.mean([expected_without_evidence(cut, row["segments"]) for cut in made])
        assert row["value"] == pytest.approx(expected, abs=1e-6)
    own = {row["system"]: row["segments"] for row in found if row["point"] == "own"}
    assert own == {"a": 2, "b": 3}
    grid = sorted({row["segments"] for row in found if row["point"] == "grid"})
    assert (grid[0], grid[-1], len(grid)) == (2, 4, POINTS)
    steps = np.diff(np.log(grid))
    assert steps == pytest.approx(steps.mean(), abs=1e-6)


def test_a_posterior_at_one_number_is_its_own_node():
    _, vectors = topical_corpus(GOLDS)
    posterior = Posterior(vectors[2], Reading(), evidence="embedding")
    assert posterior.boundaries.shape == (23,)  # kept, and not to be kept by the other
    for node in posterior.nodes:
        alone = posterior.at(node.segments)
        assert alone.weights.tolist() == [1.0]
        assert alone.segments == pytest.approx(node.segments)
        assert alone.boundaries == pytest.approx(node.boundaries, abs=1e-6)
        assert alone.boundaries.sum() + 1 == pytest.approx(node.segments, abs=1e-5)
    masses = np.array([[4, 9, 5, 6], [12, 12, 0, 0]])
    mixed = sum(n.weight * posterior.at(n.segments).expected_pk(masses) for n in posterior.nodes)
    assert posterior.expected_pk(masses) == pytest.approx(mixed, abs=1e-6)
    assert posterior.at(0.1).segments == pytest.approx(1.02)
    assert posterior.at(99.0).segments == pytest.approx(23.5)


@examples(50)
@given(
    units=st.lists(st.integers(3, 4000), min_size=1, max_size=6),
    length=st.none() | st.floats(1, 500),
)
def test_numbers_are_means_over_documents(units, length):
    documents = [
        Document.build(f"d{i}", ["x"] * n, systems={"whole": [n]}) for i, n in enumerate(units)
    ]
    assumed = AssumedSegments.of(Corpus(tuple(documents)), length)
    grid = assumed.numbers[:POINTS]
    assert assumed.of_documents[:POINTS].mean(1) == pytest.approx(grid)
    assert (np.diff(grid) > 0).all()
    assert (assumed.of_documents >= 1.02).all()
    assert (assumed.of_documents <= np.array(units) - 0.5).all()
    assert assumed.of_documents[POINTS] == pytest.approx(1.02)  # one segment: as few as can be


def test_parts_are_in_proportion_within_bounds():
    share, most = np.array([1.0, 2.0, 4.0]), np.array([90.0, 90.0, 5.0])
    assert parts_of(2.1, share, most) == pytest.approx([1.02, 1.76, 3.52])
    assert parts_of(8.0, share, most) == pytest.approx([19 / 3, 38 / 3, 5])


def test_systems_table_has_what_the_metrics_say(small):
    corpus, vectors, result = small
    metrics = ["placement", "granularity", "expected_pk", "pk"]
    scores = reffree.score(corpus, metrics=metrics, embeddings=vectors, seed=3)
    assert intervals_held(result) == 12
    for row in result.table("systems").records():
        (table,) = [each.metrics for each in scores.systems if each.system == row["system"]]
        assert row["overall"] == pytest.approx(table["expected_pk"].value, abs=1e-6)
        assert row["overall_ci"] == pytest.approx(table["expected_pk"].ci, abs=1e-6)
        assert row["placement"] == pytest.approx(table["placement"].value, abs=1e-6)
        assert row["placement_ci"] == pytest.approx(table["placement"].ci, abs=1e-6)
        assert row["granularity"] == pytest.approx(table["granularity"].value, abs=1e-6)
        assert row["real"] == pytest.approx(table["pk"].value, abs=1e-6)
        masses = corpus.hypotheses[row["system"]]
        assert row["segments"] == pytest.approx(np.mean([len(each) for each in masses]))
    (mark,) = rows(result, "marks", point="gold")
    assert mark["segments"] == pytest.approx(np.mean([len(gold) for gold in GOLDS]))
    errors = result.table("errors").records()
    for row in errors:
        by_system = {name: row[f"error of {name}"] for name in ("halves", "fours")}
        assert row["best"] == min(by_system, key=by_system.__getitem__)
        (point,) = rows(result, "curves", system="gold", segments=row["segments"])
        assert (row["error of gold"], "grid") == (point["value"], point["point"])


def test_length_and_evidence_are_those_of_the_metric(small):
    corpus, vectors, _ = small
    given = {"metrics": ["expected_pk", "expected_windowdiff:draws=20,length=3"]}
    given |= {"length": 9, "evidence": "embedding"}
    result = granularity({"a": corpus}, **given, embeddings={"a": vectors})
    marks = rows(result, "marks", point="assumed")
    filled = "expected_windowdiff:length=3,evidence=embedding,draws=20"
    assert [row["metric"] for row in marks] == ["expected_pk:length=9,evidence=embedding", filled]
    expected = [np.mean([1 + (sum(g) - 1) / n for g in GOLDS]) for n in (9, 3)]
    assert [row["segments"] for row in marks] == pytest.approx(expected, rel=0.1)
    assert result.verdict[0].startswith("expected_pk")


def test_a_finer_system_is_better_where_annotators_cut_finely():
    """Gold is there too, but the sentences are about systems."""
    golds = [[9, 8, 10, 7 + i, 9, 8] for i in range(8)]
    corpus, vectors = topical_corpus(golds, halves=halves, fours=fours)
    result = granularity({"a": corpus}, embeddings={"a": vectors})
    assert result.verdict[0].startswith(("halves cuts ", "fours cuts "))
    assert result.verdict[1].startswith("halves is better up to ")
    assert "segments a document, fours above" in result.verdict[1]
    assert result.verdict[-1].startswith("Gold has 6 segments a document: there ")
    (crossing,) = rows(result, "crossings")
    own = {row["system"]: row["segments"] for row in rows(result, "curves", point="own")}
    assert own["halves"] < crossing["clear_to"] < crossing["at"] < crossing["clear_from"]


def curves_of(losses, noise=0.001, metric=None, has_gold=False):
    """Curves with these means (system → 12 losses), on 20 documents that differ by ``noise``."""
    metric = metric or ExpectedPk()
    documents = [
        Document.build(f"d{i}", ["x"] * 60, systems={name: [30, 30] for name in losses})
        for i in range(20)
    ]
    corpus = Corpus(tuple(documents))
    assumed = AssumedSegments.of(corpus, None)
    values = np.zeros((len(assumed.numbers), len(losses), 20))
    values[:POINTS] = np.array(list(losses.values())).T[:, :, None]
    rng = np.random.default_rng(0)
    shape = (len(losses), 20)
    spread = rng.normal(size=shape)
    values += noise * (spread - spread.mean(1, keepdims=True))
    values = values if metric.orientation.slope > 0 else 1 - values
    bootstrap = DocumentBootstrap(20, rng_for(0, "documents"))
    span = np.tile([[2.0], [4.0], [8.0]], (1, 20))
    found = (metric, corpus, assumed, values, values[0], span, None, bootstrap)
    return GranularityCurves("c", *found, opening={name: {} for name in losses})


def answer_of(curves):
    return list(answer([curves]))


RISING = np.linspace(0.2, 0.42, POINTS)
LEVEL = np.full(POINTS, 0.31)
FALLING = RISING[::-1]


def test_a_crossing_is_where_the_difference_is_zero():
    curves = curves_of({"A": RISING, "B": FALLING})
    (crossing,) = curves.crossings
    grid = curves.grid
    assert crossing["at"] == pytest.approx(np.sqrt(grid[5] * grid[6]), rel=1e-3)
    assert (crossing["clear_to"], crossing["clear_from"]) == (grid[5], grid[6])
    assert answer_of(curves)[0] == "A is better up to 6.3 segments a document, B above."


def test_what_is_not_clear_is_said():
    told = answer_of(curves_of({"A": RISING, "B": FALLING}, noise=0.1))[0]
    assert told.startswith("A is better up to 6.3 segments a document, B above; between ")
    assert told.endswith(" they cannot be told apart.")
    told = answer_of(curves_of({"A": RISING, "B": FALLING}, noise=2.0))[0]
    assert told == (
        "A and B cannot be told apart from 2 to 20 segments a document, though their curves cross "
        "at 6.3."
    )


def test_one_side_alone_may_be_clear():
    near = np.minimum(RISING, LEVEL + 0.003)  # hardly above the other where it is
    told = answer_of(curves_of({"A": near, "B": LEVEL}, noise=0.05))[0]
    assert told.startswith("A is better than B up to ")
    assert "; from there to 20 they cannot be told apart." in told
    told = answer_of(curves_of({"A": LEVEL, "B": near[::-1]}, noise=0.05))[0]
    assert told.startswith("A and B cannot be told apart up to ")
    assert told.endswith(" segments a document; B is better above.")


def test_a_system_that_is_best_in_passing_is_left_out():
    by_a_hair = LEVEL - 0.015  # where the others cross
    curves = curves_of({"A": RISING, "B": FALLING, "C": by_a_hair}, noise=0.05)
    assert [curves.best(g) for g in range(POINTS)].count(2) > 0
    assert [(each["below"], each["above"]) for each in curves.crossings] == [("A", "B")]
    clear = curves_of({"A": RISING, "B": FALLING, "C": LEVEL - 0.05}, noise=0.001)
    assert [(each["below"], each["above"]) for each in clear.crossings] == [("A", "C"), ("C", "B")]


def test_one_system_may_be_the_best_everywhere():
    told = answer_of(curves_of({"A": LEVEL, "B": LEVEL + 0.1}))[0]
    assert told == "A is better than all others from 2 to 20 segments a document."
    told = answer_of(curves_of({"A": LEVEL, "B": LEVEL + 0.1, "C": LEVEL + 1e-6}, noise=0.01))[0]
    assert told == (
        "No system is clearly better than A from 2 to 20 segments a document; C cannot be told "
        "from it everywhere."
    )
    dented = np.where(np.arange(POINTS) == 5, 0.3, LEVEL + 0.1)  # lower once, but not clearly
    curves = curves_of({"A": LEVEL, "B": dented}, noise=0.05)
    assert curves.best(5) == 1
    assert curves.crossings == []
    assert answer_of(curves)[0].startswith("No system is clearly better than A from 2 to 20 ")
    told = answer_of(curves_of({"A": FALLING}))[0]
    assert told.startswith("A is the only system; ")
    assert told.endswith("its expected_pk is lowest at 20.")


def test_higher_may_be_better():
    curves = curves_of({"A": RISING, "B": FALLING}, metric=ExpectedWF1())
    assert answer_of(curves)[0] == "A is better up to 6.3 segments a document, B above."
    assert "expected_w_f1 itself assumes 2 to 8 segments" in answer_of(curves)[1]
    assert "A is highest (0.800)" in answer_of(curves)[1]


def test_without_gold_there_is_no_line_of_it():
    corpus, vectors = topical_corpus(GOLDS, has_gold=False, halves=halves)
    result = granularity({"a": corpus}, embeddings={"a": vectors})
    assert rows(result, "marks", point="gold") == []
    assert {row["real"] for row in rows(result, "curves")} == {None}
    assert "+pk" not in result.signature
    assert result.verdict[1].startswith("halves is the only system; ")
    assert len(result.verdict) == 3


def test_gold_alone_is_followed_but_ranked_against_nobody():
    corpus, vectors = topical_corpus(GOLDS)
    result = granularity({"a": corpus}, embeddings={"a": vectors})
    assert set(result.table("errors").column("best")) == {None}
    assert [sentence.split()[0] for sentence in result.verdict] == ["expected_pk", "Gold"]
    assert "NaN" not in render(result, "json")


def test_gold_of_some_documents_and_of_several_annotators():
    units = ["bees fly", "bees hum", "hives", "cables", "routers", "cables"]
    documents = (
        *(Document.build(f"d{i}", units, systems={"s": [3, 3]}) for i in range(4)),
        Document.build("e", units, golds={"a": [3, 3], "b": [2, 2, 2]}, systems={"s": [3, 3]}),
        Document.build("f", ["one", "two"], systems={"s": [2]}),
    )
    vectors = [*np.random.default_rng(0).normal(size=(5, 6, 4)), np.ones((2, 4))]
    result = granularity({"a": Corpus(documents)}, embeddings={"a": vectors})
    assert result.notes == (
        "a: 1 document of fewer than three units left out.",
        "a: gold in 1 of 6 documents; what is against gold is of these.",
    )
    (mark,) = rows(result, "marks", point="gold")
    assert mark["segments"] == 2.5
    own = rows(result, "systems")[0]
    assert own["segments"] == 2
    assert own["real"] == pytest.approx((0 + float(pk([3, 3], [2, 2, 2]))) / 2)


def test_few_documents_have_no_intervals():
    corpus, vectors = topical_corpus(GOLDS[:3], halves=halves, fours=fours)
    result = granularity({"a": corpus}, embeddings={"a": vectors})
    assert all(row["low"] is None for row in rows(result, "curves"))
    assert "a: fewer than 5 documents, so no intervals, and no difference is clear." in result.notes
    assert "cannot be told" in result.verdict[1]


def test_two_corpora_are_told_apart():
    first, vectors = topical_corpus(GOLDS, halves=halves)
    second, others = topical_corpus(GOLDS[:5], seed=2, fours=fours)
    result = granularity({"a": first, "b": second}, embeddings={"a": vectors, "b": others})
    assert {sentence.split(":")[0] for sentence in result.verdict} == {"a", "b"}
    errors = result.table("errors").records()
    assert {row["corpus"] for row in errors if row["error of fours"] is None} == {"a"}


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"metrics": ["arp_pair"]}, OptionError, "only expected errors can be followed"),
        ({"metrics": ["pk"]}, UnknownNameError, "unknown metric"),
        ({"metrics": []}, OptionError, "no metric"),
        ({"length": 0.5}, OptionError, "length = 0.5"),
        ({"length": float("nan")}, OptionError, "length = nan"),
        ({"evidence": "vibes"}, InputError, "evidence=vibes"),
        ({"evidence": "scorer:nowhere"}, InputError, "nowhere"),
        ({"devise": "cpu"}, TypeError, "devise"),
    ],
)
def test_bad_options_are_refused(keywords, error, message):
    corpus, _ = topical_corpus([[3, 3]], halves=halves)
    with pytest.raises(error, match=message):
        granularity({"a": corpus}, **keywords)  # before anything is encoded
