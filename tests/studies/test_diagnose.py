"""Diagnosis: every check against its literal definition, then whole corpora that mislead or not."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import corpus_vectors
from reffree.evaluate.metric_set import choose_metrics
from reffree.evaluate.result import Result
from reffree.metrics.registry import STUDIED
from reffree.report.render import render
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.diagnose import (
    DAMAGES,
    KINDS,
    MISSES,
    NOTICES,
    PREFERS,
    RULES,
    TOO_FEW,
    damaged,
    diagnose,
    judge_share,
    risen,
    rotation,
    run_damage_tests,
)
from reffree.studies.diagnose_checks import (
    EQUAL_MARGIN,
    THRESHOLD,
    VectorShape,
    directions,
    exact_twins,
    near_twins,
    nearest_rows,
    semantic_returns,
)
from reffree.studies.study import StudySettings
from reffree.util.errors import InputError, OptionError, UnknownNameError
from reffree.util.progress import no_progress
from tests.helpers import topical_corpus
from tests.oracles import diagnosis as oracle
from tests.oracles import reference_free
from tests.properties import examples, intervals_held


@st.composite
def segmented(draw, max_units=12):
    """Vectors with repeats and zeros, and masses."""
    n, d = draw(st.integers(1, max_units)), draw(st.integers(1, 4))
    row = st.lists(st.integers(-2, 2), min_size=d, max_size=d)
    pool = draw(st.lists(row, min_size=1, max_size=n))
    rows = draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n))
    cuts = draw(st.sets(st.integers(1, n - 1))) if n > 1 else set()
    masses = [b - a for a, b in pairwise([0, *sorted(cuts), n])]
    scale = draw(st.sampled_from([1.0, 0.3, 1e-200, 1e200]))
    return np.array(rows, dtype=np.float64) * scale, masses


def ids_of(masses):
    return np.array(Segmentation(tuple(masses)).to_segment_ids())


IDENTICAL = (np.ones((4, 2)), [1, 2, 1])
ONE_UNIT = (np.ones((1, 3)), [1])
ONE_SEGMENT = (np.eye(4), [4])
ZEROS = (np.zeros((3, 2)), [1, 1, 1])


@given(segmented(), st.sampled_from([0.25, 0.5, 0.8, 0.95, 1.0]))
@example(IDENTICAL, 1.0)
@example((np.array([[1.0, 1, 0], [1, 0, 1]]), [1, 1]), 0.5)
@example(ONE_UNIT, 0.95)
@example(ONE_SEGMENT, 0.5)
@example(ZEROS, 0.5)
@examples(100)
def test_near_twins_are_those_of_all_pairs(document, threshold):
    vectors, masses = document
    found = near_twins(directions(vectors), ids_of(masses), threshold)
    scaled = vectors / max(np.abs(vectors).max(), 1e-300)
    assert found.tolist() == oracle.near_twins(scaled, masses, threshold)


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=10), st.data())
@examples(50)
def test_exact_twins_are_those_of_all_pairs(units, data):
    n = len(units)
    cuts = data.draw(st.sets(st.integers(1, n - 1))) if n > 1 else set()
    masses = [b - a for a, b in pairwise([0, *sorted(cuts), n])]
    assert exact_twins(units, ids_of(masses)).tolist() == oracle.exact_twins(units, masses)


@given(segmented())
@example(IDENTICAL)
@example(ONE_UNIT)
@example(ONE_SEGMENT)
@example(ZEROS)
@example((np.array([[1, 0], [-1, 0], [0, 1], [1, 0], [0, 1.0]]), [2, 1, 1, 1]))
@examples(100)
def test_returns_are_those_of_all_pairs(document):
    vectors, masses = document
    found, chance = semantic_returns(directions(vectors), masses)
    scaled = vectors / max(np.abs(vectors).max(), 1e-300)
    margins, chances = oracle.margins(scaled, masses)
    np.testing.assert_allclose(found, margins, atol=1e-6)
    np.testing.assert_allclose(chance, chances)
    assert (found > EQUAL_MARGIN).tolist() == [margin > EQUAL_MARGIN for margin in margins]


@pytest.mark.parametrize("pairs", [20, 140])
def test_returns_among_many_segments_need_no_more_than_the_nearest(pairs):
    """With more segments than are asked for, the best non-neighbour is still among them."""
    rng = np.random.default_rng(0)
    topics = rng.normal(size=(3, 8))
    vectors = topics[rng.integers(3, size=3 * pairs)] + 1e-3 * rng.normal(size=(3 * pairs, 8))
    found, _ = semantic_returns(directions(vectors), [1, 2] * pairs)
    margins, _ = oracle.margins(vectors, [1, 2] * pairs)
    np.testing.assert_allclose(found, margins, atol=1e-6)


@given(st.lists(segmented(6), min_size=1, max_size=3))
@example([IDENTICAL])
@example([ONE_UNIT])
@examples(75)
def test_shape_of_vectors_is_that_of_all_pairs(documents):
    width = documents[0][0].shape[1]
    vectors = [x / max(np.abs(x).max(), 1e-300) for x, _ in documents if x.shape[1] == width]
    found = VectorShape.of(map(directions, vectors))
    assert found.random_cosine == pytest.approx(oracle.random_cosine(vectors), abs=1e-12)
    gains = [np.nan if (g := oracle.consecutive_gain(x)) is None else g for x in vectors]
    np.testing.assert_allclose(found.consecutive_gain, gains, atol=1e-12)
    expected = oracle.effective_dimension(vectors)
    assert found.effective_dimension == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("spread", [1e-3, 0.12, 1.0])
def test_a_document_of_2000_units_is_searched_without_a_table_of_all_pairs(spread):
    """From all twins of all, through cosines around the threshold, to hardly any."""
    rng = np.random.default_rng(1)
    n = 2_000
    rows = directions(np.ones(16) + spread * rng.normal(size=(n, 16)))
    segment = np.sort(rng.integers(40, size=n))
    near_twins(rows[:10], segment[:10])  # what is imported is not counted
    tracemalloc.start()
    found = near_twins(rows, segment)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    expected = [
        bool(((rows @ rows[i] >= THRESHOLD - 1e-9) & (segment != segment[i])).any())
        for i in range(n)
    ]
    assert found.tolist() == expected
    assert peak < 8 * n * n


def test_threads_of_faiss_are_left_as_they_were():
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(3)
    assert nearest_rows(np.eye(2), 1).tolist() == [[0], [1]]
    after = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(before)
    assert after == 3


def corpus_of(n_documents=8, *, noise=0.3, systems=(), gold=True, seed=0, mass=5):
    """Documents of three topics each and vectors to match; ``noise`` large: no topics at all."""
    masses = [mass, mass + 1, mass]
    cuts = {name: lambda n: [1, n - 1] for name in systems}
    cuts |= {"good": lambda n: masses} if "good" in systems else {}
    return topical_corpus([masses] * n_documents, seed, noise, gold, **cuts)


def noticed_by(corpus, vectors, names=("arp_pair",)):
    settings = StudySettings()
    chosen = choose_metrics(names, corpus, seed=0, offline=True)
    embedded = corpus_vectors(corpus, vectors, settings, no_progress)
    bootstrap = DocumentBootstrap(len(corpus), np.random.default_rng(0))
    return run_damage_tests(corpus, embedded, "gold", chosen, 2, bootstrap, settings)


@pytest.mark.parametrize("noise", [0.5, 100.0])
def test_shares_are_counted_as_defined(noise):
    """Every hypothesis scored by the metric's own oracle, then counted one by one."""
    corpus, vectors = corpus_of(6, noise=noise, mass=3)
    found = noticed_by(corpus, vectors)["arp_pair"]
    columns = [corpus.hypotheses["gold"], *damaged(corpus, "gold", seeds=2, seed=0)]
    ids = [document.id for document in corpus]
    rings = [
        [x[rotation(len(x), id, i)] for i in range(2)] for x, id in zip(vectors, ids, strict=True)
    ]

    def loss(x, segmentation):
        if len(segmentation) == 1:
            return 0.5
        scores = reference_free.arp_segments(x, segmentation.masses, "pair", 1)
        return (1 - sum(scores) / len(scores)) / 2

    for name, documents in (("share", [[x, x] for x in vectors]), ("turned", rings)):
        for j, damage in enumerate(DAMAGES):
            draws = [columns[1 + 2 * j], columns[2 + 2 * j]]
            before, after, is_changed = [], [], []
            for d, each in enumerate(documents):
                before.append([loss(x, columns[0][d]) for x in each])
                after.append([loss(x, draw[d]) for x, draw in zip(each, draws, strict=True)])
                is_changed.append([draw[d] != columns[0][d] for draw in draws])
            share = oracle.noticed_share(before, after, is_changed)
            assert found["damages"][damage][name] == pytest.approx(share)


@given(st.integers(1, 30), st.integers(0, 5))
@examples(40)
def test_rotated_documents_are_rings_begun_elsewhere(n, seed):
    ring = rotation(n, "d", seed).tolist()
    start = ring[0]
    assert ring == [(start + i) % n for i in range(n)]
    assert n == 1 or n // 4 <= start <= n - n // 4


@given(
    st.lists(st.sampled_from([0.0, 0.5, 0.5 + 1e-12, 1.0, np.nan]), min_size=1, max_size=6),
    st.sampled_from([0.0, 0.5, 1.0, np.nan]),
)
@examples(50)
def test_risen_is_one_zero_or_half(after, before):
    expected = [
        np.nan if (share := oracle.noticed_share([[before]], [[a]], [[True]])) is None else share
        for a in after
    ]
    np.testing.assert_array_equal(risen(np.array(before), np.array(after)), expected)


def test_topics_are_noticed_and_noise_is_not():
    names = (*STUDIED, "arp_std:p=1")
    clear = noticed_by(*corpus_of(12), names)
    assert {each["verdict"] for each in clear.values()} == {NOTICES}
    assert all(each["gap"] > 0 and each["resolution"] < 1 for each in clear.values())
    noise = noticed_by(*corpus_of(24, noise=100.0), names)
    assert NOTICES not in {each["verdict"] for each in noise.values()}


def test_lengths_alone_are_not_noticed():
    """On noise silhouette punishes insertion, wherever the boundaries are."""
    found = noticed_by(*corpus_of(100, noise=100.0), ("silhouette",))["silhouette"]
    insertion = found["kinds"]["insertion"]
    assert insertion["share"] > 0.55
    assert insertion["ci"][0] > 0.5
    assert insertion["turned"] > 0.55
    assert insertion["verdict"] == MISSES
    assert judge_share(found["share"], found["ci"], found["excess_ci"]) == MISSES


@pytest.mark.parametrize(
    ("share", "ci", "excess", "verdict"),
    [
        (0.9, (0.8, 1.0), (0.01, 0.5), NOTICES),
        (0.9, (0.5, 1.0), (0.01, 0.5), MISSES),
        (0.54, (0.51, 0.57), (0.01, 0.5), MISSES),
        (0.1, (0.0, 0.2), (0.01, 0.5), PREFERS),
        (0.46, (0.43, 0.49), (0.01, 0.5), MISSES),
        (0.9, None, (0.01, 0.5), TOO_FEW),
        (0.9, (0.8, 1.0), (-0.1, 0.2), MISSES),
    ],
)
def test_verdicts_claim_no_more_than_intervals(share, ci, excess, verdict):
    assert judge_share(share, ci, excess) == verdict


def test_every_rule_is_strict_where_it_says_so():
    assert len(RULES) == 15
    for rule in RULES.values():
        better = rule.watch - 1e-6 if rule.watch < rule.problem else rule.watch + 1e-6
        verdicts = [rule.verdict(value) for value in (better, rule.watch, rule.problem)]
        assert verdicts == ["ok", "watch", "problem"]


def diagnosed(corpus, vectors, **options):
    return diagnose({"mine": corpus}, embeddings={"mine": vectors}, **{"seeds": 2, **options})


def checks_of(result):
    return {row["check"]: row for row in result.table("checks").records()}


def test_a_clear_corpus_is_told_to_be_one():
    result = diagnosed(*corpus_of(12, systems=("good", "poor")))
    assert result.verdict[0].startswith("Use ")
    assert intervals_held(result) > 20
    assert result.settings["sources"]["mine"]["name"] == "gold"
    values = {name: row["value"] for name, row in checks_of(result).items()}
    wanted = {"exact twins": 0, "documents": 12, "density": pytest.approx(2 / 3), "truncated": None}
    assert {name: values[name] for name in wanted} == wanted
    assert len(result.table("noticed").rows) == 6 * len(DAMAGES)
    assert len(result.table("kinds").rows) == 6 * len(KINDS)
    assert {row["verdict"] for row in result.table("metrics").records()} == {NOTICES}
    text = render(result, "json")
    assert render(Result.from_dict(json.loads(text)), "json") == text


def test_noise_is_told_not_to_be_ranked():
    result = diagnosed(*corpus_of(30, noise=100.0), metrics=["arp_pair"])
    assert result.verdict[0].startswith("Rank no systems here without gold")
    assert checks_of(result)["consecutive gain"]["verdict"] in ("watch", "problem")


def test_twins_and_backchannels_are_counted_over_the_corpus():
    units = ["Yeah.", "The budget is late.", "Yeah.", "Bees dance.", "Mm-hmm.", "Snow fell."]
    documents = [Document.build(f"d{i}", units, gold=[2, 2, 2]) for i in range(5)]
    vectors = [np.eye(5)[[0, 1, 0, 2, 0, 3]]] * 5
    result = diagnosed(Corpus(tuple(documents)), vectors, metrics=["arp_pair"])
    checks = checks_of(result)
    for name, share in (("exact twins", 2 / 6), ("near twins", 3 / 6), ("backchannels", 3 / 6)):
        assert checks[name]["value"] == pytest.approx(share)
    assert checks["near twins"]["ci"] == [0.5, 0.5]
    assert checks["near twins"]["verdict"] == "problem"
    assert result.table("repeated").records() == [{"corpus": "mine", "text": "Yeah.", "units": 10}]
    assert "near twins (50.0% of units" in " ".join(result.verdict)


AWKWARD = {
    "one unit": ([1], np.ones((1, 2))),
    "one segment": ([3], np.eye(3)),
    "identical": ([2, 2, 1, 1], np.ones((6, 2))),
    "zeros": ([2, 2], np.zeros((4, 2))),
    "singletons": ([1] * 5, np.eye(5)),
}


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("n_documents", [1, 6])
def test_awkward_corpora_get_a_result_without_nan(name, n_documents):
    masses, vectors = AWKWARD[name]
    documents = [
        Document.build(f"d{i}", ["same"] * sum(masses), systems={"only": masses})
        for i in range(n_documents)
    ]
    result = diagnosed(Corpus(tuple(documents)), [vectors] * n_documents)
    for format in ("json", "table", "csv", "md", "latex"):
        assert "nan" not in render(result, format).lower()
    assert result.settings["sources"]["mine"] == {"name": "only", "reason": "the only system"}
    assert any("says less than with gold" in note for note in result.notes)


def test_the_source_is_gold_else_that_of_least_expected_pk_else_what_was_asked_for():
    corpus, vectors = corpus_of(6, systems=("poor", "good"), gold=False)
    result = diagnosed(corpus, vectors, metrics=["arp_pair"])
    source = result.settings["sources"]["mine"]
    assert source["name"] == "good"
    assert source["reason"].startswith("the lowest expected_pk of 2 systems (")
    named = diagnosed(corpus, vectors, metrics=["arp_pair"], source="poor")
    assert named.settings["sources"]["mine"] == {"name": "poor", "reason": "as asked for"}
    with pytest.raises(UnknownNameError, match="unknown system 'god'; did you mean 'good'"):
        diagnosed(corpus, vectors, source="god")


def test_without_any_segmentation_a_sentence_says_so():
    with pytest.raises(InputError, match=r"no segmentation to diagnose with.*reffree segment"):
        diagnosed(*corpus_of(2, gold=False))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.0}, "threshold 0.0; expected a cosine above 0, at most 1"),
        ({"threshold": float("nan")}, "threshold = nan"),
        ({"seeds": 0}, "found seeds = 0; expected a whole number, 1 or more"),
        ({"metrics": ["arp_pair", "pk:k=3"]}, "gold-based metric 'pk:k=3'"),
        ({"metrics": ["gold"]}, "gold-based metric 'gold'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        diagnosed(*corpus_of(2), **options)


def test_no_metrics_are_refused():
    with pytest.raises(InputError, match="found no metrics"):
        diagnosed(*corpus_of(2), metrics=[])


def test_same_input_and_seed_give_the_same_bytes():
    corpus, vectors = corpus_of(6)
    one = render(diagnosed(corpus, vectors), "json")
    assert render(diagnosed(corpus, vectors), "json") == one
    assert render(diagnosed(corpus, vectors, seed=1), "json") != one


def test_seeds_share_no_draw():
    corpus, _ = corpus_of(6, mass=20)
    first, second = (damaged(corpus, "gold", seeds=2, seed=seed) for seed in (0, 1))
    random = slice(DAMAGES.index(("random", "1.0")) * 2, None)
    assert not set(first[random]) & set(second[random])


def test_values_do_not_hang_on_the_order_of_documents():
    corpus, vectors = corpus_of(6)
    reversed_ = Corpus(corpus.documents[::-1])
    one, other = diagnosed(corpus, vectors), diagnosed(reversed_, vectors[::-1])
    for table, column in (("checks", "value"), ("metrics", "share"), ("noticed", "share")):
        rows = [r.table(table).records() for r in (one, other)]
        for a, b in zip(*rows, strict=True):
            if a.get("check") != "resolution":  # whose interval is of other resamples
                assert a[column] == pytest.approx(b[column])


def test_corpora_are_told_apart():
    both = {"clear": corpus_of(6), "noise": corpus_of(6, noise=100.0)}
    corpora, vectors = ({name: pair[i] for name, pair in both.items()} for i in (0, 1))
    result = diagnose(corpora, embeddings=vectors, metrics=["arp_pair"], seeds=2)
    assert [row["name"] for row in result.corpora] == ["clear", "noise"]
    assert result.verdict[0].startswith("clear: Use arp_pair")
    assert result.table("metrics").column("corpus") == ["clear", "noise"]
