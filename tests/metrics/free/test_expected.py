"""Expected errors: sums over all segmentations against enumeration, and what they must not do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from reffree.data.masses import mass_matrix
from reffree.metrics.free import evidence as evidence_module
from reffree.metrics.free import expected as expected_module
from reffree.metrics.free import posterior as posterior_module
from reffree.metrics.free.engine import score_document, score_documents
from reffree.metrics.free.evidence import (
    Reading,
    embedding_coherence,
    scorer_evidence,
    word_coherence,
)
from reffree.metrics.free.expected import (
    ExpectedBoundarySimilarity,
    ExpectedPk,
    ExpectedWF1,
    ExpectedWindowDiff,
)
from reffree.metrics.free.fast.segmentations import (
    expected_disagreement,
    exponential,
    least_disagreement,
    weight_for,
)
from reffree.metrics.free.placement import allowed_segments
from reffree.metrics.free.posterior import Posterior
from reffree.metrics.registry import parse_metric, parse_metrics
from reffree.reference import pk, windowdiff
from reffree.util.errors import InputError
from reffree.util.naming import spelling_of
from reffree.util.seeds import rng_for
from reffree.util.words import Lexicon
from tests.oracles import expected as oracle
from tests.properties import examples

METRICS = (ExpectedPk, ExpectedWindowDiff, ExpectedBoundarySimilarity, ExpectedWF1)
NOUNS = ["garden", "tax", "boat", "violin", "engine", "recipe"]
CUE_WORDS = ["it", "they", "and", "however", "you", "your"]


@st.composite
def documents(draw, max_units=9):
    """Vectors with topics, repeats, zeros, and text of a few nouns."""
    n = draw(st.integers(1, max_units))
    d = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["noise", "topics", "identical", "zeros", "repeats"]))
    x = rng.standard_normal((n, d))
    if kind == "topics":
        x = 0.3 * x + np.repeat(rng.standard_normal((n, d)), rng.integers(1, 5, n), axis=0)[:n]
    elif kind == "identical":
        x = np.tile(x[:1], (n, 1))
    elif kind == "zeros":
        x = x * rng.integers(0, 2, (n, 1))
    elif kind == "repeats":
        x = x[rng.integers(0, n, n)]
    dtype = draw(st.sampled_from([np.float64, np.float32, np.float16]))
    words = [*NOUNS, *CUE_WORDS]
    ends = rng.choice(["", ".", "?", '?"', "? No."], n)
    units = [" ".join(rng.choice(words, rng.integers(0, 6))) + end for end in ends]
    return x.astype(dtype), units


def told(posterior, x, units, length, evidence):
    """What the oracle is told of a document that `Posterior` has read."""
    lexicon = Lexicon("english")
    numbers = lexicon.terms(units)
    terms = [numbers.ids[a:b].tolist() for a, b in itertools.pairwise(numbers.edges.tolist())]
    return {
        "embeddings": np.asarray(x, dtype=np.float64) if evidence in ("all", "embedding") else None,
        "terms": terms if evidence in ("all", "words") else None,
        "units": units if evidence in ("all", "cues") else None,
        "orders": [order.tolist() for order in posterior.orders],
        "n": len(x),
        "length": length,
    }


@examples(60)
@given(
    documents(),
    st.sampled_from([None, 1.0, 2.5, 40.0]),
    st.sampled_from(["all", "embedding", "words", "cues"]),
)
def test_posterior_is_that_of_enumeration(document, length, evidence):
    x, units = document
    n = len(x)
    posterior = Posterior(x, Reading(units), length=length, evidence=evidence)
    known = told(posterior, x, units, length, evidence)
    table, nodes = oracle.evidence_and_nodes(**known) if n > 1 else (None, None)
    assert posterior.is_defined == bool(nodes)
    if not nodes:
        return
    mixed = oracle.mixture(table, n, nodes)
    assert_allclose(
        posterior.boundaries, oracle.boundary_probabilities(mixed, n), rtol=1e-6, atol=1e-8
    )
    every = oracle.every_segmentation(n)
    rng = np.random.default_rng(n)
    chosen = [every[i] for i in rng.choice(len(every), min(8, len(every)), replace=False)]
    found = posterior.expected_pk(mass_matrix(chosen, n, "x"))
    assert_allclose(found, [oracle.expected_pk(h, mixed) for h in chosen], rtol=1e-6, atol=1e-8)
    facts = posterior.facts()
    assert_allclose(facts.information, oracle.information(**known), rtol=1e-5, atol=1e-7)
    by_chance = oracle.chance_information(**known)
    assert_allclose(facts.chance_information, by_chance, rtol=1e-5, atol=1e-7)
    best = posterior.best()
    least = oracle.best_segmentation(mixed, n)[1]
    assert_allclose(oracle.expected_pk(tuple(best.tolist()), mixed), least, rtol=1e-6, atol=1e-8)


@examples(40)
@given(documents(), st.sampled_from([None, 2.5]), st.sampled_from(["vectors", "words", "cues"]))
def test_without_a_source_it_says_how_many_but_not_where(document, length, without):
    x, units = document
    n = len(x)
    posterior = Posterior(x, Reading(units), length=length, without=without)
    known = told(posterior, x, units, length, "all")
    nodes = oracle.evidence_and_nodes(**known)[1] if n > 1 else None
    assert posterior.is_defined == bool(nodes)
    if not nodes:
        return
    left_out = {"vectors": "embeddings", "words": "terms", "cues": "units"}[without]
    table = oracle.evidence_and_nodes(**known | {left_out: None})[0]
    mixed = oracle.mixture(table, n, nodes)
    assert_allclose(
        posterior.boundaries, oracle.boundary_probabilities(mixed, n), rtol=1e-6, atol=1e-8
    )
    assert_allclose(posterior.segments, oracle.typical_count(nodes), rtol=1e-6)


def test_a_document_of_vectors_alone_has_no_other_judge():
    reading = Reading(None)
    metric = parse_metric("expected_pk:without=vectors")
    with pytest.raises(InputError, match="vectors without text for without=vectors"):
        metric.posterior(np.eye(4), reading)


def test_a_source_is_left_out_of_all_only():
    with pytest.raises(InputError, match="one of the two"):
        parse_metric("expected_pk:evidence=words,without=vectors")
    with pytest.raises(InputError, match="without=vectors or without=words or without=cues"):
        parse_metric("expected_pk:without=embedding")
    assert spelling_of(parse_metric("placement:without=words")) == "placement:without=words"


def test_trained_scorers_read_vectors():
    """Left out with them: the probabilities that a scorer made of vectors say nothing."""
    rng = np.random.default_rng(0)
    x, units = rng.standard_normal((12, 4)), [str(word) for word in rng.choice(NOUNS, 12)]
    probabilities = {"folder": rng.random(11)}
    with_scorer, bare = (
        Posterior(x, Reading(units, known), without="vectors").boundaries
        for known in (probabilities, {})
    )
    assert_allclose(with_scorer, bare)
    words_out = Posterior(x, Reading(units, probabilities), without="words").boundaries
    assert not np.allclose(words_out, Posterior(x, Reading(units), without="words").boundaries)


@pytest.mark.parametrize("seed", range(40))
def test_the_best_has_the_least_expected_pk(seed):
    """Windows so different that what one says must be weighed against the other."""
    rng = np.random.default_rng(seed)
    n, windows, weights = 10, np.array([2, 7]), np.array([0.4, 0.6])
    sums = rng.standard_normal((2, n + 2)).cumsum(1)
    every = oracle.every_segmentation(n)
    scores = expected_disagreement(mass_matrix(every, n, "x"), sums, windows, weights)
    best = least_disagreement(np.arange(n + 1), sums, windows, weights)
    assert scores[every.index(tuple(best.tolist()))] == pytest.approx(scores.min())


@examples(8)
@given(documents(max_units=8), st.sampled_from([None, 2.5]))
def test_draws_are_those_of_the_posterior(document, length):
    x, units = document
    assume(len(x) > 2)
    posterior = Posterior(x, Reading(units), length=length)
    table, nodes = oracle.evidence_and_nodes(**told(posterior, x, units, length, "all"))
    mixed = oracle.mixture(table, len(x), nodes)
    rng = np.random.default_rng(0)
    hypothesis = (1, len(x) - 1)
    draws = 4000
    for metric, name in zip(
        METRICS, ("pk", "windowdiff", "boundary_similarity", "w_f1"), strict=True
    ):
        made = metric(draws=draws, seed=int(rng.integers(1 << 30)))
        masses = mass_matrix([hypothesis], len(x), "x")
        value, spread = made._moments(posterior, masses)
        exact = oracle.expected_metric(oracle.METRICS[name], hypothesis, mixed)
        sd = oracle.spread(oracle.METRICS[name], hypothesis, mixed)
        # Six standard errors: a failure by chance in a billion.
        assert abs(value[0] - exact) <= 6 * sd / np.sqrt(draws) + 1e-9
        assert abs(spread[0] - sd) <= 0.05


def test_pk_by_drawing_agrees_with_the_closed_form():
    rng = np.random.default_rng(3)
    x = np.repeat(rng.standard_normal((6, 16)), 7, axis=0) + 0.8 * rng.standard_normal((42, 16))
    posterior = Posterior(x, Reading())
    hypotheses = mass_matrix([[7] * 6, [42], [1] * 42, [20, 22]], 42, "x")
    metric = ExpectedPk(draws=5000)
    drawn, spread = metric._moments(posterior, hypotheses)
    assert_allclose(drawn, metric.scores(posterior, hypotheses), atol=6 * spread.max() / 70)


@pytest.mark.parametrize("size", [2, 3])
def test_steps_of_several_units(monkeypatch, size):
    """A long document is read in steps; probabilities are those of the steps' edges."""
    n, b = 11, size
    monkeypatch.setattr(evidence_module, "MOST_STEPS", -(-n // size))
    rng = np.random.default_rng(size)
    x = rng.standard_normal((n, 4))
    terms = [rng.choice(NOUNS, 2).tolist() for _ in range(n)]
    units = [" ".join(unit) + rng.choice(["", "?"]) for unit in terms]
    posterior = Posterior(x, Reading(units))
    orders = [order.tolist() for order in posterior.orders]
    table, nodes = oracle.evidence_and_nodes(x, terms, units=units, orders=orders, n=n, b=b)
    m = -(-n // b)
    mixed = oracle.mixture(table, m, nodes)
    assert_allclose(posterior.boundaries, oracle.boundary_probabilities(mixed, n, b), atol=1e-8)
    hypotheses = [(n,), (3, 8), (1,) * n, (5, 1, 5)]
    found = posterior.expected_pk(mass_matrix(hypotheses, n, "x"))
    assert_allclose(found, [oracle.expected_pk(h, mixed, b) for h in hypotheses], atol=1e-8)


def test_trained_scorers_speak_of_the_gaps_near_a_step(monkeypatch):
    monkeypatch.setattr(evidence_module, "MOST_STEPS", 4)
    odds = np.array([4.0, 2.0, 1.0, 7.0, 3.0, 5.0, 9.0])  # steps of two: gaps 1, 3 and 5
    found = scorer_evidence(1 / (1 + np.exp(-odds)), 8)
    assert_allclose(found, [4.0, 7.0, 9.0, 0.0])


def test_dimensions_are_told_apart_up_to_2000():
    """The 50 steps are as different as can be: 1/(1/49 - 1/50) dimensions without the bound."""
    coherence = embedding_coherence(np.eye(50))
    gains = oracle.gain_table(np.eye(50), 5)
    table = np.zeros((50, 50))
    coherence.add_gain(table, 50 / 5)
    found = [table[stop - 1, stop - start - 1] for start, stop in gains]
    assert_allclose(found, list(gains.values()), rtol=1e-6)


def test_a_number_between_few_and_many_that_are_likelier_is_found():
    """Of these steps, 2 segments or 60 are far likelier than 20: Newton's method circles."""
    rng = np.random.default_rng(300)
    topic = np.sort(rng.integers(0, 25, 300))
    x = 0.5 * rng.normal(size=(25, 384))[topic] + rng.normal(size=(300, 384)) + 1
    posterior = Posterior(x, Reading())
    coherence = embedding_coherence(x).reordered(posterior.orders[1])
    table = np.tile(np.log(np.arange(1, 301)), (300, 1))
    coherence.add_gain(table, 300 / 20)
    for first in np.linspace(-6, -2, 9):
        found = weight_for(table, 20.0, first, np.empty(301), np.empty((300, 300)))
        assert found[2] == pytest.approx(20, rel=1e-8)


def test_exponential_is_that_of_the_library():
    x = np.append(np.linspace(-700, 700, 10_001), [0.0, 1e-300, -1e-17])
    assert_allclose([exponential(value) for value in x], np.exp(x), rtol=1e-15)


def test_parts_of_long_segments_count_for_less():
    """Twelve steps in 1.2 segments of ten: the quarter of their length stands for the 2."""
    x = np.random.default_rng(4).standard_normal((12, 5))
    expected = oracle.evidence_table(oracle.embedding_steps(x), 1.2)
    table = np.zeros((12, 12))
    embedding_coherence(x).add_evidence(table, 12 / 1.2, 1.0)
    found = [table[stop - 1, stop - start - 1] for start, stop in expected]
    assert_allclose(found, list(expected.values()), atol=1e-9)
    finer = oracle.evidence_table(oracle.embedding_steps(x), 6)
    assert abs(expected[3, 5]) < 0.95 * abs(finer[3, 5])


def test_trained_scorers_are_evidence():
    n = 7
    probabilities = np.array([0.1, 0.9, 0.2, 0.0, 1.0, 0.5])
    x = np.ones((n, 2))
    reading = Reading(None, {"folder": probabilities})
    posterior = Posterior(x, reading, length=3, evidence="scorer:folder")
    table, nodes = oracle.evidence_and_nodes(None, None, probabilities, n=n, length=3)
    mixed = oracle.mixture(table, n, nodes)
    assert_allclose(posterior.boundaries, oracle.boundary_probabilities(mixed, n), atol=1e-8)
    assert posterior.boundaries[4] > posterior.boundaries[1] > posterior.boundaries[3]


def test_without_evidence_nothing_is_learnt():
    same = Posterior(np.ones((30, 3)), Reading(["the"] * 30))
    assert same.facts()[:2] == pytest.approx((0, 0), abs=1e-9)
    assert_allclose(same.boundaries, same.boundaries[::-1], atol=1e-9)
    assert embedding_coherence(np.ones((5, 3))) is None
    assert word_coherence(["the same"] * 5) is None


def test_topics_are_found():
    rng = np.random.default_rng(0)
    topics = np.repeat(rng.standard_normal((5, 64)), 12, axis=0)
    x = topics + 0.7 * rng.standard_normal((60, 64))
    posterior = Posterior(x, Reading(), length=12)
    found = np.sort(np.argsort(posterior.boundaries)[-4:])
    assert found.tolist() == [11, 23, 35, 47]
    shuffled = Posterior(x[rng.permutation(60)], Reading(), length=12)
    assert posterior.facts().information > 5 * shuffled.facts().information
    gold, even, random = score_document(
        x, [[12] * 5, [10] * 6, [5, 20, 9, 14, 12]], ["expected_pk"]
    )["expected_pk"].tolist()
    assert gold < 0.6 * min(even, random)


@pytest.mark.parametrize("n", [1, 2])
def test_too_short_for_a_window_is_undefined(n):
    scores = score_document(np.eye(2)[:n], [[n]], [metric.name for metric in METRICS])
    assert all(torch.isnan(value).all() for value in scores.values())


def test_scale_and_rotation_change_nothing():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((25, 6))
    q, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    hypotheses = [[25], [5] * 5, [1, 24]]
    plain, turned, huge = (
        score_document(y, hypotheses, ["expected_pk"])["expected_pk"] for y in (x, x @ q, x * 1e150)
    )
    assert_allclose(turned, plain, atol=1e-9)
    assert_allclose(huge, plain, atol=1e-9)


def test_one_score_whatever_is_beside_it():
    rng = np.random.default_rng(6)
    documents = [rng.standard_normal((n, 8)).astype(np.float32) for n in (20, 5, 33)]
    hypotheses = [[[n], [n // 2, n - n // 2]] for n in (20, 5, 33)]
    metrics = parse_metrics(["expected_pk", "expected_windowdiff", "arp_pair"])
    together = score_documents(documents, hypotheses, metrics, keep_spread=True)
    for i in range(3):
        alone = score_documents(documents[i : i + 1], [hypotheses[i][1:]], metrics[:2])
        for name, scores in alone.items():
            assert scores[0].documents.tolist() == together[name][i].documents[1:].tolist()
            assert scores[0].spread.tolist() == []
    masses = mass_matrix(hypotheses[0], 20, "x")
    spread = metrics[0].spread(metrics[0].posterior(documents[0], Reading()), masses)
    assert together["expected_pk"][0].spread.tolist() == spread.tolist()


def test_windows_are_those_of_the_node():
    """Pk and WindowDiff of a draw take the window of the granularity it was drawn for."""
    rng = np.random.default_rng(8)
    posterior = Posterior(rng.standard_normal((20, 5)), Reading(), length=4)
    hypothesis = mass_matrix([[8, 12]], 20, "x")
    for metric, plain in ((ExpectedPk, pk), (ExpectedWindowDiff, windowdiff)):
        made = metric(draws=50)
        by_hand = [
            plain([8, 12], row[row > 0].tolist(), k=node.window)
            for node, drawn in posterior.draws(50, rng_for(0, "expected", 20))
            for row in drawn
        ]
        value, spread = made._moments(posterior, hypothesis)
        assert value[0] == pytest.approx(np.mean(by_hand))
        assert spread[0] == pytest.approx(np.std(by_hand))


def test_many_pairs_are_compared_a_part_at_a_time(monkeypatch):
    rng = np.random.default_rng(10)
    posterior = Posterior(rng.standard_normal((12, 5)), Reading())
    hypotheses = mass_matrix([[k, 12 - k] for k in range(1, 12)], 12, "x")
    metric = ExpectedWindowDiff(draws=20)
    together = metric._moments(posterior, hypotheses)
    monkeypatch.setattr(expected_module, "PAIRS", 40)
    assert_allclose(metric._moments(posterior, hypotheses), together, atol=1e-12)


@pytest.mark.parametrize("option", ["length=1", "draws=1", "draws=100000"])
def test_options_at_their_bounds(option):
    assert parse_metric(f"expected_pk:{option}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("expected_pk:length=0.5", "found length = 0.5.*expected a number, 1 or more"),
        ("expected_pk:draws=0", "found draws = 0"),
        ("expected_pk:draws=1000000000", "found draws = 1000000000"),
        ("expected_pk:evidence=vibes", "found evidence=vibes.*scorer:FOLDER"),
    ],
)
def test_options_that_cannot_be(text, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_metric(text)


def test_evidence_that_is_not_at_hand():
    with pytest.raises(InputError, match="vectors without text for evidence=words"):
        score_document(np.eye(5), [[5]], ["expected_pk:evidence=words"])
    with pytest.raises(InputError, match="no scores of there"):
        score_document(np.eye(5), [[5]], ["expected_pk:evidence=scorer:there"])


def test_many_hypotheses_and_long_documents():
    rng = np.random.default_rng(9)
    n = 50_000
    x = rng.standard_normal((n, 4)).astype(np.float32)
    value = score_document(x, [[n // 2, n - n // 2]], ["expected_pk"])["expected_pk"]
    assert 0 < float(value) < 1
    many = [[k, 60 - k] for k in rng.integers(1, 60, 10_000)]
    scores = score_document(x[:60], many, ["expected_pk"])["expected_pk"]
    assert len(scores) == 10_000
    assert bool(((scores > 0) & (scores < 1)).all())


def test_levels_of_long_documents_count_as_of_twenty_steps(monkeypatch):
    """Weights among numbers of segments, by hand from gains: no oracle has so many steps."""
    rng = np.random.default_rng(11)
    x = np.repeat(rng.standard_normal((6, 16)), 10, axis=0) + rng.standard_normal((60, 16))
    posterior = Posterior(x, Reading())
    plain = np.exp(-np.square([node.deviation for node in posterior.nodes]) / 2)
    level = np.log(posterior.weights / plain)
    monkeypatch.setattr(posterior_module, "LEVEL_STEPS", 60)
    full = np.log(Posterior(x, Reading()).weights / plain)
    assert_allclose(3 * (level - level[3]), full - full[3], atol=1e-9)
    assert np.ptp(full) > 1


def chained_texts(count, seed):
    """Vectors of so many texts of three to nine units, each about a thing of its own."""
    rng = np.random.default_rng(seed)
    masses = rng.integers(3, 10, count)
    topics = rng.standard_normal((count, 32))
    return np.repeat(topics, masses, axis=0) + rng.standard_normal((masses.sum(), 32)), masses


def test_no_few_cuts_of_a_chain_of_short_texts_come_before_its_joints():
    x, masses = chained_texts(80, seed=5)
    n = len(x)
    posterior = Posterior(x, Reading())
    assert 40 < posterior.segments < 120
    even = [np.diff(np.linspace(0, n, k + 1).round().astype(int)) for k in range(1, 9)]
    assert all(posterior.expected_pk(masses[None]) < posterior.expected_pk(e[None]) for e in even)


def test_numbers_of_segments_of_a_chain_stand_in_order():
    """Those of one long text reach beyond the fewest of a chain of 33; the range needs an order."""
    x, masses = chained_texts(33, seed=5)
    posterior = Posterior(x, Reading())
    segments = [node.segments for node in posterior.nodes]
    assert len(segments) == 10
    assert segments == sorted(segments)
    fewest, most = allowed_segments(posterior)
    assert 1 < fewest < len(masses) < most < len(x)


def test_a_chain_is_weighed_as_the_oracle_does():
    """From the gains that this code finds: no oracle has so many steps."""
    x, _ = chained_texts(60, seed=6)
    # Something in common with what is near, so that few segments gain, too.
    x += 0.45 * np.repeat(np.random.default_rng(7).standard_normal((4, 32)), 100, axis=0)[: len(x)]
    posterior, n = Posterior(x, Reading()), len(x)

    def gained(count):
        return float(posterior._gained_over_chance([count])[0]) * oracle.count_factor(n)

    expected = oracle.nodes(n, n, None, gained)
    assert len(expected) == len(posterior.nodes) == 10
    share = sum(weight for count, weight, _ in expected if count > 20)
    assert 0.02 < share < 0.98
    for node, (count, weight, window) in zip(posterior.nodes, expected, strict=True):
        assert_allclose((node.segments, node.weight), (count, weight), rtol=1e-6)
        assert node.window == window
