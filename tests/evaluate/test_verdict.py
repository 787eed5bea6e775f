"""The sentences that open a table of scores, and the order of its rows."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import reffree
from reffree.evaluate.table import CorpusScore, NullTest, judged_by
from reffree.evaluate.verdict import describe, rank
from tests.helpers import halves, topical_corpus


def good(n):
    return [n // 4] * 3 + [n - 3 * (n // 4)]


def late(n):
    return [n // 4 + 1, n // 4, n // 4, n - 3 * (n // 4) - 1]


def ones(n):
    return [1] * n


def scored(n_documents=12, has_gold=False, metrics=("expected_pk:length=6",), null=0, **systems):
    corpus, vectors = topical_corpus([[6] * 4] * n_documents, has_gold=has_gold, **systems)
    return reffree.score(corpus, metrics=metrics, embeddings=vectors, null=null)


def test_the_best_is_named_with_the_next_and_told_apart():
    verdict = scored(good=good, ones=ones).verdict
    assert verdict[0].startswith("good is best of 2 systems by expected_pk:length=6: 0.")
    assert ", then ones, 0." in verdict[0]
    assert verdict[0].endswith(", p < .001).")
    assert verdict[1:3] == (
        "It is told apart from every other system.",
        "Not tested against chance: --null 1000 does that.",
    )


def test_those_that_may_be_as_good_are_named():
    """Two systems that each lose a little on every second document may be as good as the best."""
    corpus, vectors = topical_corpus([[6] * 4] * 10, has_gold=False, good=good, ones=ones)
    for name in ("odd", "even"):
        cuts = [good(24) if i % 2 == (name == "odd") else late(24) for i in range(10)]
        corpus = corpus.with_system(name, {f"d{i}": cut for i, cut in enumerate(cuts)})
    table = reffree.score(corpus, metrics=["arp_pair"], embeddings=vectors)
    first, unsure, *_ = table.verdict
    assert first.startswith("good is best of 4 systems by arp_pair: 0.")
    assert "corrected for 3 comparisons" in first
    assert unsure == "It cannot be told from odd and even on these documents."


def test_a_tie_has_no_winner():
    assert scored(one=good, two=good).verdict[0].startswith("one and two share the best ")


def test_gold_is_a_yardstick_and_no_rival():
    table = scored(has_gold=True, good=late, ones=ones)
    expected = table.systems[0].metrics[table.metrics[0]].value
    assert table.systems[0].system == "gold"
    assert table.verdict[0].startswith("good is best of 2 systems")
    assert f" (gold {expected:.3f}), then ones" in table.verdict[0]
    assert scored(has_gold=True).verdict[0] == "Only gold is scored: add systems to compare."


def test_one_system_is_said_to_need_another():
    (first, *_) = scored(mine=halves).verdict
    assert first.startswith("mine: expected_pk:length=6 0.")
    assert "add another segmentation" in first


@pytest.mark.parametrize(("spread", "words"), [(0.4, "not where chance"), (1e6, "Chance does")])
def test_chance_is_part_of_it_where_it_was_tested(spread, words):
    lengths = [4, 9, 3, 8]
    corpus, vectors = topical_corpus(
        [lengths] * 12, spread=spread, has_gold=False, mine=lambda n: lengths
    )
    table = reffree.score(corpus, metrics=["arp_pair"], embeddings=vectors, null=200)
    assert words in table.verdict[-1]
    assert "--null" not in " ".join(table.verdict)


def test_a_text_that_says_nothing_is_part_of_it():
    corpus, vectors = topical_corpus([[6] * 4] * 12, has_gold=False, mine=good, other=halves)
    rng = np.random.default_rng(0)
    noise = [rng.normal(size=each.shape) for each in vectors]
    table = reffree.score(corpus, metrics=["expected_pk:evidence=embedding"], embeddings=noise)
    assert table.verdict[-1] == "The text says little here: the score rests on what is assumed."


def test_too_few_documents_tell_nobody_apart():
    table = scored(3, good=good, ones=ones, halves=halves)
    assert "too few documents to tell any two" in " ".join(table.verdict)


def test_different_documents_are_not_ranked():
    corpus, vectors = topical_corpus([[6] * 4] * 6, has_gold=False, mine=good)
    whole = {document.id: [24] if i else [12, 12] for i, document in enumerate(corpus.documents)}
    table = reffree.score(
        *(corpus.with_system("whole", whole),),
        metrics=["segrefree"],
        embeddings=vectors,
    )
    sentence = "segrefree cannot rank these systems: they were scored on different documents."
    assert table.verdict == (sentence,)
    assert table.sorted_by("segrefree") == table


def with_opening(**systems):
    corpus, vectors = topical_corpus([[4, 9, 3, 8]] * 12, **systems)
    metrics = ["placement", "granularity", "expected_pk"]
    return reffree.score(corpus, metrics=metrics, embeddings=vectors)


def test_it_opens_with_how_many_and_where():
    """Of the best by expected_pk, beside gold."""
    table = with_opening(good=lambda n: [4, 9, 4, n - 17], ones=ones)
    (good,) = [row.metrics for row in table.systems if row.system == "good"]
    opening, second, *_ = table.verdict
    assert opening.startswith("good cuts ")
    low, high = good["granularity"].allowed
    assert low < 1 < high
    assert f"{low:.2g} to {high:.2g} is allowed" in opening
    assert "its boundaries sit well" in opening
    assert f"({good['placement'].value:.2f}".replace("0.", ".") in opening
    assert "gold " in opening
    assert second.startswith("It is best of 2 systems by expected_pk: ")
    assert "--null" not in " ".join(table.verdict)


@pytest.mark.parametrize(
    ("factor", "allowed", "words"),
    [
        (0.41, (0.6, 1.6), "cuts 0.41 times as often as the text suggests (0.6 to 1.6 is allowed)"),
        (0.5, (0.6, 1.6), "cuts half as often as the text suggests (0.5 ×; "),
        (0.8, (0.6, 1.6), "cuts about as often as the text suggests (0.8 ×; "),
        (2.02, (0.6, 1.6), "cuts twice as often as the text suggests (2 ×; "),
    ],
)
def test_how_often_in_words(factor, allowed, words):
    score = CorpusScore(factor, np.log(factor), allowed=allowed, direction="toward_1")
    assert describe("x", {"x": {"granularity": score}})[0].startswith(f"x {words}")


@pytest.mark.parametrize(
    ("placed", "ci", "p", "words"),
    [
        (0.41, (0.3, 0.5), None, "sit well (.41 of what is possible, chance 0)"),
        (0.3, (0.2, 0.4), None, "sit fairly well (.30 of"),
        (0.1, (0.05, 0.2), None, "sit little better than by chance (.10 of"),
        (0.1, (-0.05, 0.2), None, "cannot be told from chance (.10 of"),
        (0.1, (-0.05, 0.2), 0.01, "sit little better than by chance (.10 of what is possible, ch"),
        (0.1, (0.05, 0.2), 0.2, "cannot be told from chance (.10 of what is possible, chance 0, p"),
        (-0.3, (-0.4, -0.2), None, "sit worse than by chance (-.30 of"),
    ],
)
def test_how_well_in_words(placed, ci, p, words):
    null = None if p is None else NullTest(draws=99, mean=0.0, sd=1.0, z=0.0, p=p)
    score = CorpusScore(placed, placed, ci=ci, null=null, direction="higher")
    assert describe("x", {"x": {"placement": score}})[0].startswith(f"x's boundaries {words}")


def test_of_many_systems_the_best_are_shown_with_those_that_read_no_text(run, write_corpus):
    """In the terminal; stars stay where they are best of all."""
    rng = np.random.default_rng(0)
    documents = [
        {"id": f"d{i}", "units": [f"u{j}" for j in range(9)], "gold": [3, 6]} for i in range(6)
    ]
    for document in documents:
        systems = {f"s{i:02d}": [int(a := rng.integers(1, 9)), 9 - int(a)] for i in range(20)}
        document["systems"] = {**systems, "random_2": [8, 1], "evening": [1, 8], "none": [9]}
    path = write_corpus(documents)
    lines = run("score", path, "-m", "pk", "-m", "bor").stdout.splitlines()
    names = [line.split()[0] for line in lines if re.match(r" \w+ +\d+ ", line)]
    assert len(names) == 13
    assert {"gold", "none", "random_2"} < set(names)
    (said,) = [line for line in lines if line.startswith("13 of 24 systems: the first 10 by pk, ")]
    assert "gold, " in said
    assert "-f table shows all" in said
    every = run("score", path, "-m", "pk", "-m", "bor", "-f", "table").stdout.splitlines()
    assert sum(bool(re.match(r" \w+ +\d+ ", line)) for line in every) == 24
    for line in lines:
        if re.match(r" \w+ +\d+ ", line):
            assert line.split() in [each.split() for each in every]
    assert "shows all" not in run("score", path, "-m", "pk", "-f", "md").stdout
    assert len(json.loads(run("score", path, "-m", "pk", "-f", "json").stdout)["systems"]) == 24


def test_which_metric_a_verdict_rests_on():
    assert judged_by(["arp_pair", "expected_pk:length=3", "pk"]) == "expected_pk:length=3"
    assert judged_by(["pk", "arp_pair"]) == "pk"


@pytest.mark.parametrize(
    ("direction", "order"), [("lower", "acb"), ("higher", "bca"), ("toward_1", "bca")]
)
def test_best_first_in_each_direction(direction, order):
    values = {"a": 0.1, "b": 0.9, "c": 0.4, "gold": 0.0, "none": None}
    assert "".join(rank("m", direction, values).values) == order


def test_rows_are_sorted_for_people_and_left_for_programs(run, write_corpus):
    documents = [
        {"id": f"d{i}", "units": [f"u{j}" for j in range(9)], "gold": [3, 6]} for i in range(5)
    ]
    for document in documents:
        document["systems"] = {"worst": [1] * 9, "best": [3, 6], "middle": [2, 7]}
    path = write_corpus(documents)

    def systems(*more):
        out = run("score", path, "-m", "pk", "-m", "f1", "-f", *more).stdout
        if more[0] == "json":
            return [row["system"] for row in json.loads(out)["systems"]]
        return [line.split()[1] for line in out.splitlines() if line.startswith("| ")][1:]

    assert systems("json") == ["gold", "worst", "best", "middle"]
    assert systems("md")[1:] == ["gold", "best", "middle", "worst"]


@pytest.mark.parametrize(("metric", "ends"), [("pk", "0."), ("f1", "-0.")])
def test_the_interval_is_of_the_next_minus_the_best(metric, ends):
    """By a metric that is better higher the next has less: both bounds are as they are."""
    corpus, vectors = topical_corpus([[6] * 4] * 12, good=late, ones=ones)
    table = reffree.score(corpus, metrics=[metric], embeddings=vectors)
    assert f"(next − best: 95 % interval {ends}" in table.verdict[0]
    best, other = sorted(row.metrics[metric].value for row in table.systems[1:])
    best, other = (best, other) if metric == "pk" else (other, best)
    low, high = map(float, re.search(r"interval (\S+) to (\S+),", table.verdict[0]).groups())
    assert low <= round(other - best, 3) <= high
    said = reffree.compare(corpus, metrics=[metric], embeddings=vectors).verdict[0]
    assert f"interval {low:.3f} to {high:.3f}" in said


def test_a_comparison_opens_with_it_and_a_summary(run, write_corpus):
    documents = [
        {"id": f"d{i}", "units": [f"u{j}" for j in range(9)], "gold": [3, 6]} for i in range(12)
    ]
    for document in documents:
        document["systems"] = {"worst": [1] * 9, "near": [4, 5], "middle": [1, 8]}
    path = write_corpus(documents)
    out = run("compare", path, "-m", "pk", "-m", "f1").stdout.splitlines()
    assert out[0].startswith("near is best of 3 systems by pk: 0.")
    assert out[0].endswith("It is best by 1 of 2 metrics.")
    assert out[2].split() == ["system", "pk", "f1"]
    assert [line.split()[0] for line in out[4:8]] == ["gold", "near", "middle", "worst"]
    found = json.loads(run("compare", path, "-m", "pk", "-f", "json").stdout)
    assert found["verdict"][0].startswith("near is best of 3 systems")
