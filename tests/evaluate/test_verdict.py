"""The sentences that open a table of scores, and the order of its rows."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import reffree
from reffree.evaluate.metric_set import known_readers, without_read_sources
from reffree.evaluate.table import CorpusScore, NullTest, judged_by
from reffree.evaluate.verdict import describe, rank
from reffree.metrics.names import DEFAULT
from tests.helpers import halves, topical_corpus


def on_disk(write_corpus, n_documents, **systems):
    """Documents of nine units, of which gold makes two segments."""
    units = [f"u{j}" for j in range(9)]
    made = [{"id": f"d{i}", "units": units, "gold": [3, 6]} for i in range(n_documents)]
    return write_corpus([{**each, "systems": systems} for each in made])


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
        *(corpus.with_system("whole", whole),), metrics=["segrefree"], embeddings=vectors
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
    path = on_disk(write_corpus, 5, worst=[1] * 9, best=[3, 6], middle=[2, 7])

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
    path = on_disk(write_corpus, 12, worst=[1] * 9, near=[4, 5], middle=[1, 8])
    out = run("compare", path, "-m", "pk", "-m", "f1").stdout.splitlines()
    assert out[0].startswith("near is best of 3 systems by pk: 0.")
    assert out[0].endswith("It is best by 1 of 2 metrics.")
    assert out[2].split() == ["system", "pk", "f1"]
    assert [line.split()[0] for line in out[4:8]] == ["gold", "near", "middle", "worst"]
    found = json.loads(run("compare", path, "-m", "pk", "-f", "json").stdout)
    assert found["verdict"][0].startswith("near is best of 3 systems")


# Systems that read what the judge reads, and those that beat gold

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


@pytest.mark.parametrize(
    ("cis", "said"),
    [
        ({"a": (-0.1, 0.3), "b": (0.1, 0.5)}, "chance 0; gold .50), those of b can (.30)"),
        ({"a": (-0.1, 0.3), "b": (-0.1, 0.7)}, "chance 0; gold .50)."),
        ({"a": None, "b": (0.1, 0.5)}, "a's boundaries sit little better than by chance"),
    ],
)
def test_a_verdict_names_whose_boundaries_are_not_by_chance(cis, said):
    placed = {"a": 0.1, "b": 0.3, "c": -0.2, "gold": 0.5}
    scores = {
        name: {
            "placement": CorpusScore(value, value, ci=cis.get(name, (0.1, 1)), direction="higher")
        }
        for name, value in placed.items()
    }
    (sentence,) = describe("a", scores)
    assert said in sentence
