"""Where and how many: against enumeration, and what they must and must not depend on."""

from __future__ import annotations

import itertools
import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import reffree
from reffree.data.masses import mass_matrix
from reffree.metrics.free import placement
from reffree.metrics.free.engine import score_document, score_documents
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.fast.segmentations import inside_over_orders, least_of_counts
from reffree.metrics.free.placement import (
    LEAST_ROOM,
    Excess,
    Placement,
    allowed_segments,
    blind_masses,
    gauss_rule,
    watched_excess,
)
from reffree.metrics.free.posterior import Posterior
from reffree.metrics.registry import parse_metric, parse_metrics
from reffree.util.errors import InputError
from reffree.util.words import Lexicon
from tests.helpers import refusal
from tests.oracles import expected as expected_oracle
from tests.oracles import placement as oracle
from tests.oracles.expected import every_segmentation
from tests.properties import examples


def topics(sizes, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(len(sizes), 16))
    return np.repeat(centres, sizes, axis=0) + noise * rng.normal(size=(sum(sizes), 16))


@examples(80)
@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3]))
def test_the_least_of_so_many_is_that_of_enumeration(n, window, seed, step):
    window = min(window, n - 1)
    edges = np.array([*range(0, n, step), n])
    shared = np.random.default_rng(seed).random(n - window)
    costs = np.concatenate([[0], np.cumsum(1 - 2 * shared)])
    found = least_of_counts(edges, costs, window, n)
    for count in range(1, n + 1):
        if count > len(edges) - 1:
            assert np.isinf(found[count])
            continue
        wanted = oracle.least_error(n, count, shared, window, edges[1:].tolist())
        assert_allclose((found[count] + shared.sum()) / len(shared), wanted, atol=1e-12)


@examples(40)
@given(st.integers(3, 8), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 0.0]))
def test_placement_is_that_of_enumeration(n, seed, noise):
    rng = np.random.default_rng(seed)
    x = noise * rng.normal(size=(n, 3)) + np.repeat(rng.normal(size=(n, 3)), 3, axis=0)[:n]
    posterior = Posterior(x, Reading())
    hypotheses = [
        masses for masses in every_segmentation(n) if len(masses) <= 5 or len(masses) == n
    ]
    matrix = mass_matrix(hypotheses, n, "x")
    values = Placement().scores(posterior, matrix)
    _, weights = Placement().weighted_scores(posterior, matrix)
    for masses, value, weight in zip(hypotheses, values, weights, strict=True):
        if not posterior.is_defined:
            assert np.isnan(value)
            continue
        edges = posterior.edges[1:].tolist()
        gained, room = 0.0, 0.0
        for node in posterior.at(len(masses)).nodes if len(masses) > 1 else ():
            gained, room = oracle.gained_and_room(masses, node.shared, node.window, edges)
        if room <= LEAST_ROOM:
            gained, count = 0.0, min(max(2, round(posterior.segments)), n)
            for node in posterior.at(count).nodes:
                room = oracle.room_without_choice(n, count, node.shared, node.window, edges)
        if room <= LEAST_ROOM:
            assert np.isnan(value)
            continue
        assert_allclose([value * room, weight], [gained, room], atol=1e-9)


def test_chance_is_nought_and_the_best_is_one():
    x = topics([9, 5, 12, 6, 8])
    n = len(x)
    rng = np.random.default_rng(1)
    orders = [rng.permutation([9, 5, 12, 6, 8]).tolist() for _ in range(300)]
    metrics = ["placement"]
    by_chance = score_document(x, orders, metrics)["placement"].numpy()
    assert abs(by_chance.mean()) < 0.1
    found = score_document(x, [[9, 5, 12, 6, 8], [8] * 5, [n], [1] * n], metrics)["placement"]
    gold, *without_choice = found.tolist()
    assert 0.6 < gold <= 1
    # All orders are the same: of one length, without a boundary, with one in every gap.
    assert without_choice == pytest.approx([0, 0, 0], abs=1e-9)


def test_placement_says_nothing_of_how_many():
    """Half of the right boundaries, and all of them, are well placed; moved ones are not."""
    x = topics([5, 9, 6, 12, 7, 4, 8, 5], seed=3)
    right, half = [5, 9, 6, 12, 7, 4, 8, 5], [14, 18, 11, 13]
    moved = [8, 9, 6, 12, 7, 4, 8, 2]
    values = score_document(x, [right, half, moved], ["placement"])["placement"].tolist()
    assert values[0] > 0.8
    assert values[1] > 0.2
    assert values[2] < values[0] - 0.2


def test_segments_of_one_length_are_at_chance_wherever_they_are():
    """Their order cannot be told from another: what the definition cannot see."""
    x = topics([6] * 8, seed=3)
    (value,) = score_document(x, [[6] * 8], ["placement"])["placement"].tolist()
    assert value == pytest.approx(0, abs=1e-12)


@examples(100)
@given(st.data())
def test_blind_cuts_are_those_of_the_definition(data):
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=2, max_size=12))
    k = data.draw(st.integers(1, len(lengths)))
    total = sum(lengths)
    places = data.draw(st.sets(st.integers(1, max(1, total - 1)), min_size=k - 1, max_size=k - 1))
    sizes = np.diff([0, *sorted(places), total])
    turn = data.draw(st.integers(0, total - 1))
    starts = np.cumsum([0, *lengths])
    found = blind_masses(starts, sizes[None], np.array([turn]))
    assert found.tolist() == [oracle.blind_masses(lengths, sizes.tolist(), turn)]
    assert found.min() > 0


def test_cuts_at_even_characters_are_blind_and_those_at_topics_are_not():
    """Units of one topic are long and of the next short: numbers of units then tell topics."""
    sizes = [6, 3, 6, 3, 7, 3, 6, 4, 6, 3] * 3
    x = topics(sizes, noise=0.5)
    lengths = [
        length for which, size in enumerate(sizes) for length in [40 + 160 * (which % 2)] * size
    ]
    units = ["u" * length for length in lengths]
    posterior = Posterior(x, Reading(tuple(units)), evidence="embedding")
    starts = np.cumsum([0, *(length + 1 for length in lengths)])
    cuts = [range(phase, int(starts[-1]), 500) for phase in range(20, 500, 40)]
    places = [np.unique(np.searchsorted(starts, np.array(cut) - 100)) for cut in cuts]
    inner = [place[(place > 0) & (place < len(units))] for place in places]
    masses = [np.diff([0, *place, len(units)]).tolist() for place in inner]
    blind, of_units = (
        Placement(sizes=kind, draws=300).scores(posterior, mass_matrix(masses, len(units), "x"))
        for kind in ("characters", "units")
    )
    assert abs(blind.mean()) < 0.05
    assert of_units.mean() > blind.mean() + 0.05
    gold = mass_matrix([sizes], len(units), "x")
    assert Placement(sizes="characters").scores(posterior, gold)[0] > 0.7


def test_sizes_in_characters_need_text():
    found = refusal(score_document, topics([4, 4]), [[4, 4]], ["placement:sizes=characters"])
    assert "vectors without text for sizes=characters" in found


def test_a_hypothesis_is_scored_alone():
    x = topics([7, 4, 9, 5, 6, 3], seed=2)
    many = [[7, 4, 9, 5, 6, 3], [5, 6, 9, 5, 6, 3], [10, 10, 14], [2] * 17]
    together = score_document(x, many, ["placement", "granularity"])
    for i, masses in enumerate(many):
        alone = score_document(x, [masses], ["placement", "granularity"])
        for name in alone:
            np.testing.assert_equal(alone[name].numpy(), together[name].numpy()[i : i + 1])


@examples(60)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=6),
    st.integers(2, 4),
    st.integers(0, 2**32 - 1),
)
def test_the_mean_over_orders_is_that_of_enumeration(lengths, window, seed):
    n = sum(lengths)
    window = min(window, n - 1)
    shared = np.random.default_rng(seed).random(n - window)
    sums = np.concatenate([[0], np.cumsum(1 - 2 * shared)])
    rule = gauss_rule(len(lengths))
    found = inside_over_orders(np.sort(lengths), *rule, sums, window) / len(shared)
    every = [oracle.expected_error(order, shared, window) for order in permutations(lengths)]
    assert_allclose(found + shared.mean(), np.mean(every), atol=1e-12)


def test_many_orders_are_drawn(monkeypatch):
    """Where the mean over all orders would take long; draws come near to it."""
    x = topics([9, 5, 12, 6, 8, 14, 3], seed=5)
    masses = mass_matrix([[5, 9, 12, 6, 8, 3, 14]], len(x), "x")
    posterior = Posterior(x, Reading())
    (exact,) = Placement(draws=1).scores(posterior, masses)
    monkeypatch.setattr(placement, "EXACT", 0)
    (drawn,) = Placement(draws=2000).scores(posterior, masses)
    (other,) = Placement(draws=2000, seed=1).scores(posterior, masses)
    assert drawn != other
    assert drawn == pytest.approx(exact, abs=0.05)


def test_the_text_allows_the_central_part_of_what_it_makes_likely():
    x = topics([5, 6, 7, 6, 9, 4], seed=4)
    wide, narrow = Posterior(x, Reading()), Posterior(x, Reading(), length=6)
    for posterior in (wide, narrow):
        low, high = allowed_segments(posterior)
        at = np.log([node.segments for node in posterior.nodes])
        step = at[1] - at[0]
        assert at[0] - step / 2 < np.log(low) < np.log(posterior.segments)
        assert np.log(posterior.segments) < np.log(high) < at[-1] + step / 2
    alone = posterior.at(4)
    assert allowed_segments(alone) == pytest.approx((4, 4))


def test_granularity_is_the_factor():
    x = topics([5, 6, 7, 6], seed=4)
    posterior = Posterior(x, Reading())
    one, two = score_document(x, [[12, 12], [6, 6, 6, 6]], ["granularity"])["granularity"]
    metric = parse_metric("granularity")
    assert metric.shown(float(two)) == pytest.approx(4 / posterior.segments)
    assert float(two - one) == pytest.approx(np.log(2))
    assert metric.losses(np.array([-1.0, 1.0])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("x", [np.zeros((6, 3)), np.ones((6, 3)), np.ones((1, 3)), np.eye(2)])
def test_awkward_documents(x):
    n = len(x)
    hypotheses = [[n], [1] * n, [1, n - 1] if n > 1 else [1]]
    (raw,) = score_documents([x], [hypotheses], parse_metrics(["placement"]))["placement"]
    assert not np.isinf(raw.documents).any()
    assert np.isnan(raw.documents[0]) or raw.documents[0] == 0


def test_a_corpus_is_the_sum_of_gains_by_the_sum_of_rooms(tmp_path):
    rng = np.random.default_rng(5)
    sizes = [[5, 9, 4, 8], [3, 4, 5, 6, 2], [8, 3, 7]]
    rows = []
    for i, own in enumerate(sizes):
        n = sum(own)
        moved = rng.permutation(own).tolist()
        units = [f"unit {j}" for j in range(n)]
        rows.append({"id": f"d{i}", "units": units, "gold": own, "systems": {"moved": moved}})
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    vectors = [topics(own, seed=i) for i, own in enumerate(sizes)]
    metrics = ["placement:evidence=embedding"]
    table = reffree.score(
        reffree.load(path), metrics=metrics, embeddings=vectors, per_document=True
    )
    for row in table.systems:
        (score,) = row.metrics.values()
        parts = [next(iter(d.metrics.values())) for d in table.documents if d.system == row.system]
        gains = sum(part.value * part.weight for part in parts)
        assert score.value == pytest.approx(gains / sum(part.weight for part in parts))
    assert table.best("placement:evidence=embedding") == {"gold"}


def test_bad_options_get_a_sentence():
    with pytest.raises(InputError, match="draws"):
        parse_metric("placement:draws=0")
    assert parse_metric("placement:evidence=words,draws=30")


# Excess -----------------------------------------------------------------------------------------


NOUNS = ["garden", "tax", "boat", "violin"]


def window_sharing(table, n, K, window):
    """The probability that units a window apart share a segment, at K segments, by a table."""
    return expected_oracle.same_segment(expected_oracle.posterior(table, n, K), n, window)


@examples(25)
@given(st.integers(4, 7), st.integers(0, 2**32 - 1), st.sampled_from([0.2, 1.0]))
def test_excess_is_that_of_enumeration(n, seed, noise):
    rng = np.random.default_rng(seed)
    x = noise * rng.normal(size=(n, 3)) + np.repeat(rng.normal(size=(n, 3)), 3, axis=0)[:n]
    units = [" ".join(rng.choice([*NOUNS, "it", "and"], 3)) + rng.choice([".", "?"]) for _ in x]
    posterior = Posterior(x, Reading(units))
    chosen = [masses for masses in expected_oracle.every_segmentation(n) if 1 < len(masses) < n]
    values, weights = Excess().weighted_scores(posterior, mass_matrix(chosen, n, "x"))
    numbers = Lexicon("english").terms(units)
    terms = [numbers.ids[a:b].tolist() for a, b in itertools.pairwise(numbers.edges.tolist())]
    K = posterior.segments
    window = max(2, round(n / K / 2))
    # Vectors count as beside text: what vectors and cues say together, less what cues say.
    both, _ = expected_oracle.evidence_and_nodes(x, None, units=units, n=n, length=2)
    cues = expected_oracle.cue_table(units, 1)
    table = {stretch: each - cues[stretch] for stretch, each in both(K).items()}
    others, _ = expected_oracle.evidence_and_nodes(None, terms, units=units, n=n, length=2)
    by_vectors = window_sharing(table, n, K, window)
    by_others = window_sharing(others(K), n, K, window)
    edges = posterior.edges[1:].tolist()
    for masses, value, weight in zip(chosen, values, weights, strict=True):
        gained = [
            oracle.gained_and_room(masses, shared, window, edges)
            for shared in (by_vectors, by_others)
        ]
        if min(room for _, room in gained) <= 2 * LEAST_ROOM:
            continue  # undefined, or all but
        assert_allclose([value, weight], oracle.excess_and_weight(*gained), rtol=1e-5, atol=1e-6)


def test_who_looks_for_what_vectors_see_agrees_with_them_more():
    """Vectors change topic elsewhere than words do: each system agrees with one of them."""
    rng = np.random.default_rng(2)
    by_vectors, by_words = [5, 9, 4, 10, 6, 14], [8, 4, 12, 7, 10, 7]
    x = np.repeat(rng.normal(size=(6, 12)), by_vectors, axis=0) + 0.4 * rng.normal(size=(48, 12))
    words = np.repeat(
        ["garden soil", "tax law", "boat sail", "violin bow", "stew", "hill"], by_words
    )
    posterior = Posterior(x, Reading(words.tolist()))
    found = Excess().scores(posterior, mass_matrix([by_vectors, by_words], 48, "x"))
    assert found[0] > 0.5
    assert found[1] < -0.5


@pytest.mark.parametrize(
    ("x", "units"),
    [
        (np.ones((12, 3)), [*NOUNS] * 3),
        (np.zeros((12, 3)), [*NOUNS] * 3),
        (np.eye(12), ["the"] * 12),
        (np.eye(2), ["garden", "tax"]),
    ],
)
def test_where_one_of_the_two_says_nothing_there_is_none(x, units):
    n = len(x)
    hypotheses = mass_matrix([[1, n - 1], [n], [1] * n], n, "x")
    values, weights = Excess().weighted_scores(Posterior(x, Reading(units)), hypotheses)
    assert np.isnan(values).all()
    assert (weights == 1).all()


@pytest.mark.parametrize(
    ("names", "length"),
    [
        (["granularity", "placement"], None),
        (["arp_pair", "expected_pk:length=6"], 6),
        (["expected_pk:without=vectors", "expected_pk"], None),
    ],
)
def test_it_is_looked_at_beside_a_metric_that_reads_all_sources(names, length):
    assert watched_excess(parse_metrics(names, 0)) == [Excess(length=length)]


@pytest.mark.parametrize("name", ["arp_pair", "expected_pk:evidence=words", "granularity"])
def test_it_is_not_looked_at_otherwise(name):
    assert watched_excess(parse_metrics([name, "expected_pk:without=words"], 0)) == []
