"""The oracle of the expected error against results derived by hand."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, prod, sqrt

import numpy as np
import pytest

from tests.oracles.cues import asks, cue, ends_in_question, gap_cues
from tests.oracles.expected import (
    METRICS,
    Node,
    Table,
    autocorrelation,
    best_segmentation,
    boundary_information,
    chance_information,
    count_constant,
    count_evidence,
    cue_table,
    embedding_steps,
    every_segmentation,
    every_stretch,
    evidence_and_nodes,
    evidence_table,
    expected_metric,
    expected_pk,
    flat_table,
    gain_table,
    gap_probabilities,
    information,
    mixture,
    nodes,
    parabola,
    posterior,
    prior,
    same_segment,
    scorer_table,
    source_parameters,
    spread,
    word_steps,
)

SEED = 0
ROOT = sqrt(3)
TWO_NODE = [(2.0, 1.0, 2)]
"""One assumed number of segments, 2, with a window of 2 units."""


def tilted() -> Table:
    """Three steps; the segment of the last two is twice as likely as without evidence.

    Weights by hand: (3) 3w, (1, 2) 4w², (2, 1) 2w², (1, 1, 1) w³. K = 2 gives w = √3.
    """
    table = flat_table(3)
    table[1, 3] = log(2)
    return table


def random_embeddings(n: int) -> np.ndarray:
    return np.random.default_rng([SEED, n]).normal(size=(n, 4))


DEVIATIONS = (-1.8, -1.2, -0.6, 0.0, 0.6, 1.2, 1.8)


def shuffled(m: int) -> list[int]:
    return np.random.default_rng([SEED, m]).permutation(m).tolist()


# Segmentations and steps ----------------------------------------------------------------------


def test_every_segmentation_once() -> None:
    assert every_segmentation(3) == [(3,), (2, 1), (1, 2), (1, 1, 1)]
    for n in range(1, 13):
        ways = every_segmentation(n)
        assert len(set(ways)) == len(ways) == 2 ** (n - 1)
        assert {sum(masses) for masses in ways} == {n}
        assert min(min(masses) for masses in ways) == 1
    with pytest.raises(ValueError, match="too many"):
        every_segmentation(13)


def test_word_steps() -> None:
    # n = 3: a is in two units, log 2; b in one, log 4. Lengths √5·log 2 and log 2.
    steps = word_steps([["a", "b", "b"], ["a"], []])
    first = np.array([log(2), log(4)]) / sqrt(sqrt(5) * log(2))
    second = np.array([sqrt(log(2)), 0])
    assert steps == pytest.approx(np.array([first, second, [0, 0]]))
    paired = word_steps([["a", "b", "b"], ["a"], []], 2)
    assert paired == pytest.approx(np.array([(first + second) / 2, [0, 0]]))


# Evidence -------------------------------------------------------------------------------------


def test_gain_of_two_blocks() -> None:
    # x = ±(½, -½): v = ½, D' = 1, 1/D = 1 - ¼; lag 1: (1 - 1 + 1)/3 + ¼.
    y = [[1, 0], [1, 0], [0, 1], [0, 1]]
    v, dimension, correlations = source_parameters(y)
    assert (v, dimension, *correlations) == pytest.approx((1 / 2, 4 / 3, 1 / 3 + 1 / 4))
    # Two segments of two steps explain all of the one correlation there is.
    s = sqrt(2 / 3)
    gain = gain_table(y, 2)
    assert gain[0, 1] == pytest.approx(s * (1 / 3 - 2 / 3 * log(3 / 2)))
    assert gain[0, 2] == pytest.approx(s * (1 / 2 * 2 - 2 / 3 * log(2)))
    assert gain[1, 3] == pytest.approx(s * -2 / 3 * log(2))
    assert gain[1, 4] == pytest.approx(s * (3 / 5 * 1 / 3 - 2 / 3 * log(5 / 2)))
    evidence = evidence_table(y, 2)
    assert [evidence[i, i + 2] for i in range(3)] == pytest.approx([s / 3, -2 * s / 3, s / 3])
    assert [evidence[i, i + 1] for i in range(4)] == pytest.approx([0] * 4, abs=1e-12)
    assert evidence[0, 4] == 0


def test_gain_in_another_order() -> None:
    # A A B B in the order 0 2 3 1 is A B B A, and A B A B if the order were read the other way.
    y, order = [[1, 0], [1, 0], [0, 1], [0, 1]], [0, 2, 3, 1]
    s = sqrt(2 / 3)
    gain = gain_table(y, 2, order)
    assert gain[1, 3] == pytest.approx(s * (1 / 2 * 2 - 2 / 3 * log(2)))
    assert gain[0, 2] == gain[2, 4] == pytest.approx(s * -2 / 3 * log(2))
    assert gain[0, 1] == pytest.approx(gain_table(y, 2)[0, 1])
    evidence = evidence_table(y, 2, order)
    assert [evidence[i, i + 2] for i in range(3)] == pytest.approx([-s / 3, 2 * s / 3, -s / 3])
    # The correlation of lag 1, 7/12, is not known half of 4/1.02 steps far: T = 1 + 2 · 7/12.
    # A B B A has no correlation of its own, (-1 + 1 - 1)/3 + 1/4 < 0, and would have T = 1.
    assert gain_table(y, 1.02, order)[0, 2] == pytest.approx(6 / 13 * s * -2 / 3 * log(2))
    assert gain_table(y, 1.02, range(4)) == pytest.approx(gain_table(y, 1.02))


def test_autocorrelation_ends() -> None:
    # Lag l of eight +1 and eight -1: 16 - l pairs, l of them differ. m / 4 = 4 is not reached.
    blocks = [[1.0]] * 8 + [[-1.0]] * 8
    assert source_parameters(blocks)[2] == pytest.approx(
        [13 / 15 + 1 / 16, 10 / 14 + 1 / 16, 7 / 13 + 1 / 16]
    )
    # Alternating: lag 1 is negative, the positive lag 2 does not count.
    assert source_parameters([[1.0], [-1.0]] * 8)[2] == []


def test_what_segments_explain_is_no_noise() -> None:
    # Lags 1 and 2 share a segment of four steps with e^-½ 5/4 and e^-1 3/2; near is two steps.
    shared = [exp(-0.5) * 5 / 4, exp(-1) * 3 / 2, exp(-1.5) * 7 / 4]
    assert autocorrelation([0.3 * s for s in shared], 4) == pytest.approx(1)
    # The second lag limits what is explained; of the first, the rest is noise.
    c = [0.5, 0.2 * shared[1]]
    assert autocorrelation(c, 4) == pytest.approx(1 + 2 * (0.5 - 0.2 * shared[0]))
    # Without correlations up to half a segment nothing is explained.
    assert autocorrelation([0.5], 4) == pytest.approx(2)
    assert autocorrelation([], 4) == 1


@pytest.mark.parametrize(
    "y", [np.zeros((4, 2)), np.full((5, 3), 1 / 3), [[1e6 + 0.1, 1 / 3]] * 7, word_steps([[]] * 3)]
)
def test_identical_vectors_say_nothing(y: np.ndarray) -> None:
    assert source_parameters(y) is None
    order = shuffled(len(y))
    assert gain_table(y, 2) == evidence_table(y, 2) == flat_table(len(y))
    assert gain_table(y, 2, order) == evidence_table(y, 2, order) == flat_table(len(y))


# Cues -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "anywhere", "at_end"),
    [
        ("Why?", True, True),
        ("为什么？", True, True),
        ("لماذا؟", True, True),
        ("(He said: “Why?” ' ] » ’ \" )\n\t\u3000", True, True),
        ("Why? Because.", True, False),
        ("Why?!", True, False),
        ("“Why?“", True, False),  # an opening mark is not taken off
        ("Because.", False, False),
        (" ) ", False, False),
        ("", False, False),
    ],
)
def test_questions(unit: str, anywhere: bool, at_end: bool) -> None:
    assert (asks(unit), ends_in_question(unit)) == (anywhere, at_end)


@pytest.mark.parametrize(
    ("before", "after", "silent", "talking"),
    [
        ("Ships sail.", "Boats float on water.", 0, 0),
        ("It sails, and they do.", "Boats float on water.", 0, 0),  # only what comes after counts
        ("Ships sail.", "...", 0, 0),
        ("Ships sail.", "", 0, 0),
        # One word of eight, two of four (as one of five), capitals.
        ("Ships sail.", "Most of these boats float on salt water.", -12 / 8, -12 / 8),
        ("Ships sail.", "They love it dearly.", -2.4, -2.4),
        ("Ships sail.", "THIS boat will always float.", -2.4, -2.4),
        # Connectives count where they open the unit, once.
        ("Ships sail.", "“However, boats float.”", -2.2, -2.2),
        ("Ships sail.", "Boats and ships float, but rafts also float.", 0, 0),
        ("Ships sail.", "And then it sank down.", -2.2 - 2.4, -2.2 - 2.4),
        # An answer; a question that is none, and one that follows a question.
        ("Do ships sail?", "Ships sail.", -1, -1),
        ("Do ships sail? Yes.", "Ships sail.", 0, 0),
        ("Do ships sail?", "...", -1, -1),
        ("Do ships sail?", "Ships sail, right? Yes.", 0, 0),
        ("Do ships sail? Yes.", "Ships sail, right? Yes.", 0, 1.4),
        ("Ships sail.", "?", 0, 1.4),
        # Address: one word of eight, all of two.
        ("Ships sail.", "Boats float on the water of your lake.", 0, 6 / 8),
        ("Ships sail.", "You! Yours!", 0, 1.2),
        ("Do ships sail?", "And you tell him this?", -2.4 - 2.2, -2.4 - 2.2 + 1.2),
        # Greetings where they open the unit; thanks and farewells, unless they are answered.
        ("Ships sail.", "Hello, ships!", 3, 3),
        ("Ships sail.", "Ships say hello.", 0, 0),
        ("Thank ships for sailing.", "Ships sail.", 2, 2),
        ("Thank ships for sailing.", "Goodbye, ships.", 0, 0),
        ("Ships sail.", "Ships say goodbye.", 0, 0),
    ],
)
def test_cue_of_one_gap(before: str, after: str, silent: float, talking: float) -> None:
    assert cue(before, after, 0) == pytest.approx(silent)
    assert cue(before, after, 1) == pytest.approx(talking)
    assert cue(before, after, 0.5) == pytest.approx((silent + talking) / 2)


BOATS = [
    "What is a boat?",
    "It floats on salt water, more so on cold seas.",
    "But you ask",
    "...",
    "Would ships sail then?",
]
"""Two of five units ask, so talk is 1. Gaps: -1.2 - 1, -2.2 + 1.2, 0, 1.4; the mean is -0.45."""


def test_cues_are_over_their_mean() -> None:
    assert gap_cues(BOATS) == pytest.approx([-1.75, -0.55, 0.45, 1.85])
    # One question of ten: half as much of what talk tells: 0.7 in one of nine gaps.
    units = ["Ships sail."] * 7 + ["Ships sail?", "Ships sail?!", "You sail."]
    assert gap_cues(units[:7] + units[8:9] + ["Ships sail."] * 2) == pytest.approx(
        [-0.7 / 9] * 6 + [0.7 - 0.7 / 9] + [-0.7 / 9] * 2
    )
    # Two of ten: 1.4 at the first, none at the second, 1.2 at the address (no answer: "?!").
    expected = np.array([0.0] * 6 + [1.4, 0, 1.2])
    assert gap_cues(units) == pytest.approx(expected - 2.6 / 9)
    assert gap_cues(["It is so."]) == []


# Posterior ------------------------------------------------------------------------------------


def test_prior_of_three_steps() -> None:
    # 3w, 2w², 2w², w³: K = 2 gives w = √3, so 3√3, 6, 6, 3√3 of 12 + 6√3.
    expected = {(3,): ROOT - 1.5, (2, 1): 2 - ROOT, (1, 2): 2 - ROOT, (1, 1, 1): ROOT - 1.5}
    probabilities = prior(3, 2)
    assert probabilities == pytest.approx(expected)
    assert gap_probabilities(probabilities, 3) == pytest.approx([0.5, 0.5])
    assert same_segment(probabilities, 3, 2) == pytest.approx([ROOT - 1.5])
    assert same_segment(probabilities, 3, 1) == pytest.approx([0.5, 0.5])


def test_posterior_of_three_steps() -> None:
    total = 18 + 6 * ROOT
    expected = {
        (3,): 3 * ROOT / total,
        (1, 2): 12 / total,
        (2, 1): 6 / total,
        (1, 1, 1): 3 * ROOT / total,
    }
    probabilities = posterior(tilted(), 3, 2)
    assert probabilities == pytest.approx(expected)
    first = (12 + 3 * ROOT) / total
    assert gap_probabilities(probabilities, 3) == pytest.approx([first, 1 - first])


# How many segments ----------------------------------------------------------------------------


def test_count_evidence_of_three_steps() -> None:
    # w = √3 with and without; the variance of the count is 6√3 / Z.
    ratio = (18 + 6 * ROOT) / (12 + 6 * ROOT)
    A = log(ratio) + log(ratio) / 2
    told, flat = (tilted(), [flat_table(3)]), flat_table(3)
    assert count_evidence([told], 3, 2) == pytest.approx(A)
    assert count_evidence([(flat, [tilted()])], 3, 2) == pytest.approx(-A)
    # The sum of the sources.
    assert count_evidence([told, (flat, [flat])], 3, 2) == pytest.approx(A)
    assert count_evidence([told] * 2, 3, 2) == pytest.approx(2 * A)
    assert count_evidence([(tilted(), [tilted()])], 3, 2) == 0
    # The mean of the orders, in every source.
    assert count_evidence([(tilted(), [flat, tilted()])], 3, 2) == pytest.approx(A / 2)
    assert count_evidence([(flat, [tilted(), tilted(), flat])], 3, 2) == pytest.approx(-2 * A / 3)
    both = [(tilted(), [flat, tilted()]), (flat, [flat] * 2)]
    assert count_evidence(both, 3, 2) == pytest.approx(A / 2)


def test_nodes_without_length() -> None:
    counts = nodes(32, 32)
    K = [32**0.25 * exp(0.66 + step) for step in (-0.9, -0.6, -0.3, 0, 0.3, 0.6, 0.9)]
    assert [node[0] for node in counts] == pytest.approx(K)
    # 32 / K / 2 = 8.55, 6.34, 4.69, 3.48, 2.58, 1.91, 1.41
    assert [node[2] for node in counts] == [9, 6, 5, 3, 3, 2, 2]
    weights = [exp(-z * z / 2) for z in DEVIATIONS]
    assert [node[1] for node in counts] == pytest.approx([x / sum(weights) for x in weights])


def test_parabola_through_three_points() -> None:
    # x² - 3x + 2 is 6, 2, 0 at -1, 0, 1; a line and a constant are parabolas too.
    points = [(-1.0, 6.0), (0.0, 2.0), (1.0, 0.0)]
    assert [parabola(points, x) for x in (-1, 0, 1, 2, 3)] == pytest.approx([6, 2, 0, 0, 2])
    assert parabola([(1, 2), (2, 4), (5, 10)], 3) == pytest.approx(6)
    assert parabola([(-1.8, 7), (0, 7), (1.8, 7)], 1.2) == pytest.approx(7)


def weights_at(levels: list[float]) -> list[float]:
    """Weights of the nodes, given what is added to -z²/2 at each."""
    weights = [exp(level - z * z / 2) for level, z in zip(levels, DEVIATIONS, strict=True)]
    return [weight / sum(weights) for weight in weights]


def test_nodes_are_weighed_on_a_parabola() -> None:
    # 32 units: K = 32^0.25·exp(0.66 + 0.5 z), within its bounds.
    asked = []

    def weights(of_z: Callable[[float], float]) -> list[float]:
        asked.clear()

        def A(K: float) -> float:
            asked.append(K)
            return of_z((log(K / 32**0.25) - 0.66) / 0.5)

        told, plain = nodes(32, 32, None, A), nodes(32, 32)
        assert [(K, k) for K, _, k in told] == [(K, k) for K, _, k in plain]
        return [weight for _, weight, _ in told]

    # What is quadratic in z is met at every node.
    quadratic = [3 - 2 * z + 0.7 * z**2 for z in DEVIATIONS]
    assert weights(lambda z: 3 - 2 * z + 0.7 * z**2) == pytest.approx(weights_at(quadratic))
    # z³ is 1.8² z at -1.8, 0 and 1.8.
    assert weights(lambda z: z**3) == pytest.approx(weights_at([3.24 * z for z in DEVIATIONS]))
    assert sorted(asked) == pytest.approx([32**0.25 * exp(0.66 + 0.5 * z) for z in (-1.8, 0, 1.8)])


def test_nodes_of_a_chain_of_short_texts() -> None:
    # 400 units: 400^0.25·exp(0.66) = 8.65 segments, or 400 / 8 = 50; a twentieth of gains counts.
    base = 400**0.25 * exp(0.66)

    def gains(power: float, at_fifty: float) -> Callable[[float], float]:
        return lambda K: at_fifty * (K / 50) ** power / 20

    def chain(told: list[Node] | None) -> list[Node]:
        assert told is not None
        assert [node[0] for node in told] == sorted(node[0] for node in told)
        assert sum(node[1] for node in told) == pytest.approx(1)
        return [node for node in told if min(abs(node[0] - K) for K in counts) < 1e-9]

    # At this power both are as likely; exp(-z²/2) = 0.487, 1, 0.487 are divided by twice their sum.
    counts = [50 * exp(z) for z in (-0.6, 0, 0.6)]
    told = chain(nodes(400, 400, None, gains(0.88, 200)))
    assert [K for K, _, _ in told] == pytest.approx(counts)
    assert [weight for _, weight, _ in told] == pytest.approx([0.1233, 0.2534, 0.1233], abs=1e-4)
    assert [k for _, _, k in told] == [7, 4, 2]  # 200 / 27.4, 200 / 50, 200 / 91.1
    # A power of 0.05 more makes the chain e^3 times as likely; of 0.1 less, e^-6: not considered.
    surer = chain(nodes(400, 400, None, gains(0.93, 200)))
    assert sum(weight for _, weight, _ in surer) == pytest.approx(exp(3) / (1 + exp(3)))
    assert chain(nodes(400, 400, None, gains(0.78, 200))) == []
    # Gains of 0.15 nats a step lack 0.1: e^-6. Where segments are few anyway, or a length is given,
    # nothing is asked.
    assert chain(nodes(400, 400, None, gains(0.88, 60 / (1 - (base / 50) ** 0.88)))) == []
    assert chain(nodes(150, 150, None, gains(0.88, 200))) == []
    assert chain(nodes(400, 400, 8, gains(0.88, 200))) == []


def test_nodes_with_length() -> None:
    counts = nodes(25, 25, 12)
    assert [K for K, _, _ in counts] == pytest.approx(
        [3 * exp(step) for step in (-0.36, -0.24, -0.12, 0, 0.12, 0.24, 0.36)]
    )
    assert [k for _, _, k in counts] == [6, 5, 5, 4, 4, 3, 3]


def test_nodes_within_bounds() -> None:
    # A length of 100 says 1.02 segments of three units, and less below z = 0.
    assert [K for K, _, _ in nodes(3, 3, 100)[:4]] == pytest.approx([1.02] * 4)
    assert [K for K, _, _ in nodes(3, 3)][-4:] == [2.5] * 4
    assert [K for K, _, _ in nodes(8, 2)][1:] == [1.5] * 6  # two steps of four units
    assert nodes(2, 2) is None
    assert nodes(1, 1, 4) is None


# Scores ---------------------------------------------------------------------------------------


def test_pk_of_three_units() -> None:
    mixed = mixture(flat_table(3), 3, TWO_NODE)
    q = ROOT - 1.5
    assert expected_pk((3,), mixed) == pytest.approx(1 - q)
    assert expected_pk((1, 2), mixed) == expected_pk((1, 1, 1), mixed) == pytest.approx(q)
    for masses in every_segmentation(3):
        assert spread(METRICS["pk"], masses, mixed) == pytest.approx(sqrt(q * (1 - q)))
    assert best_segmentation(mixed, 3)[1] == pytest.approx(q)


def test_other_metrics_of_three_units() -> None:
    # Against (1, 2): probabilities q, 2 - √3, 2 - √3, q of (3), (2, 1), (1, 2), (1, 1, 1).
    mixed = mixture(flat_table(3), 3, TWO_NODE)
    q, p = ROOT - 1.5, 2 - ROOT

    def expected(name: str) -> float:
        return expected_metric(METRICS[name], (1, 2), mixed)

    assert expected("windowdiff") == pytest.approx(2 * q)
    # Similarities 0, ½ (one transposition), 1, ½ (one match, one addition).
    assert expected("boundary_similarity") == pytest.approx(p / 2 + p + q / 2)
    # Within one unit every boundary is hit, unless the other side has none.
    assert expected("w_f1") == pytest.approx(1 - q)


TERMS = [["a"], ["a", "b"], ["b"], ["c"], ["a", "c"]]
"""Of a document of as many units as `BOATS`."""
ODDS = [0.5, 0.1, 0.7, 0.5]


def test_sources_add_up_by_their_weights() -> None:
    n, K = 5, 2.0
    x = random_embeddings(n)
    vectors = evidence_table(embedding_steps(x), K)
    words = evidence_table(word_steps(TERMS), K)
    cues, scorer = cue_table(BOATS), scorer_table(ODDS)
    cases = [
        ((x, TERMS, ODDS, BOATS), (0.6, 1.5, 1, 1)),
        ((x, None, ODDS, BOATS), (0.6, 0, 1, 1)),
        ((x, TERMS, None, None), (0.6, 1.5, 0, 0)),
        ((x, None, ODDS, None), (1, 0, 1, 0)),
        ((x, None, None, None), (1, 0, 0, 0)),
        ((None, TERMS, None, None), (0, 1.5, 0, 0)),
        ((None, None, None, BOATS), (0, 0, 0, 1)),
    ]
    for (*sources, units), (a, b, c, d) in cases:
        evidence, _ = evidence_and_nodes(*sources, units=units, orders=[shuffled(n)], n=n)
        for stretch, value in evidence(K).items():
            parts = (vectors[stretch], words[stretch], scorer[stretch], cues[stretch])
            expected = sum(w * part for w, part in zip((a, b, c, d), parts, strict=True))
            assert value == pytest.approx(expected)
        assert set(evidence(K)) == set(every_stretch(n))


def test_number_of_segments_heeds_vectors_and_words_that_tell() -> None:
    n, orders = 5, [[2, 4, 0, 1, 3], [0, 3, 1, 4, 2]]
    x = random_embeddings(n)

    def A(K: float, *sources: np.ndarray) -> float:
        own = [count_constant(gain_table(y, K), n, K) for y in sources]
        other = [count_constant(gain_table(y, K, o), n, K) for y in sources for o in orders]
        return sum(own) - sum(other) / 2

    def weights(*sources: object, units: list[str] | None = None) -> list[float]:
        _, counts = evidence_and_nodes(*sources, units=units, orders=orders, n=n)
        return [weight for _, weight, _ in counts]

    def expected(*sources: np.ndarray, talk: float = 0.0) -> list[float]:
        return [weight for _, weight, _ in nodes(n, n, None, lambda K: A(K, *sources), talk)]

    vectors, words = embedding_steps(x), word_steps(TERMS)
    plain = [weight for _, weight, _ in nodes(n, n)]
    assert weights(x, TERMS, ODDS, units=BOATS) == pytest.approx(expected(vectors, words, talk=1))
    assert weights(x, None, ODDS, units=BOATS) == pytest.approx(expected(vectors, talk=1))
    assert weights(None, TERMS) == pytest.approx(expected(words))
    assert expected(vectors) != pytest.approx(plain)
    assert expected(words) != pytest.approx(plain)
    # A source that says nothing is not asked; cues and scorers never are.
    same = np.ones((n, 3))
    assert weights(same, TERMS) == pytest.approx(expected(words))
    assert weights(x, [["a"]] * n) == pytest.approx(expected(vectors))
    assert weights(same, [[]] * n) == weights(None, None, ODDS, units=BOATS) == plain


def test_boundary_information() -> None:
    # KL = P(1, 2)·log 2 - log of the ratio of the sums of weights; K - 1 = 1.
    expected = 12 / (18 + 6 * ROOT) * log(2) - log((18 + 6 * ROOT) / (12 + 6 * ROOT))
    assert boundary_information(tilted(), 3, 2) == pytest.approx(expected)
    assert boundary_information(flat_table(6), 6, 2.7) == pytest.approx(0, abs=1e-12)
    # With two steps K alone decides: the evidence tells nothing.
    assert boundary_information({**flat_table(2), (0, 2): 3.0}, 2, 1.5) == pytest.approx(
        0, abs=1e-9
    )
    # Three segments of four: per expected boundary, of which there are two.
    table = {**flat_table(4), (0, 1): 1.0}
    before, after = prior(4, 3), posterior(table, 4, 3)
    kl = sum(p * log(p / before[masses]) for masses, p in after.items())
    assert boundary_information(table, 4, 3) == pytest.approx(kl / 2)


BLOCKS = {"embeddings": np.eye(2)[[0, 0, 1, 1]]}
BLOCK_TERMS = {"terms": [["sea"], ["sea"], ["cake"], ["cake"]]}
"""Both are A A B B; with segments of three steps K* is 2, and there is one boundary."""
SMALL = {"n": 4, "length": 3}
MIXED = [0, 2, 3, 1]
"""A B B A."""


def information_of_four(factors: dict[tuple[int, ...], float]) -> float:
    """Information of four steps at K = 2, given the factors of segmentations other than 1.

    Two are expected if what one segment lacks is what three and four have over:
    4 f w = (sum of three) w³ + 2 f w⁴, whose positive root is √3 - 1 without evidence.
    """
    weights = {s: prod(s) * factors.get(s, 1.0) for s in every_segmentation(4)}
    three = sum(weights[s] for s in weights if len(s) == 3)
    roots = np.roots([2 * weights[1, 1, 1, 1], three, 0, -weights[4,]])
    (w,) = (root.real for root in roots if abs(root.imag) < 1e-9 and root.real > 0)
    before = {s: prod(s) * (ROOT - 1) ** len(s) for s in weights}
    after = {s: weights[s] * w ** len(s) for s in weights}
    p = {s: after[s] / sum(after.values()) for s in weights}
    return sum(p[s] * log(p[s] / before[s] * sum(before.values())) for s in weights)


def information_of_blocks(weight: float) -> float:
    """Of A A B B, its evidence taken ``weight`` times; of A B B A with -weight.

    The evidence is s/3, -2s/3, s/3 for the stretches of two steps, and 0 for all others.
    """
    s = weight * sqrt(2 / 3)
    pair, middle = exp(s / 3), exp(-2 * s / 3)
    return information_of_four(
        {(2, 2): pair**2, (1, 1, 2): pair, (2, 1, 1): pair, (1, 2, 1): middle}
    )


def test_information_of_four_steps() -> None:
    text = ["It sails.", "Ships sail.", "You bake?", "Cakes burn."]
    assert information(**BLOCKS, **SMALL) == pytest.approx(information_of_blocks(1))
    assert information(**BLOCK_TERMS, **SMALL) == pytest.approx(information_of_blocks(1.5))
    both = information(**BLOCKS, **BLOCK_TERMS, **SMALL)
    assert both == pytest.approx(information_of_blocks(2.1))
    assert information_of_blocks(0.6) < information_of_blocks(1) - 0.01
    # Cues and scorers do not count beside them, but text takes weight from vectors.
    odds = [0.9, 0.2, 0.8]
    assert information(**BLOCKS, probabilities=odds, **SMALL) == information(**BLOCKS, **SMALL)
    less = information(**BLOCKS, probabilities=odds, units=text, **SMALL)
    assert less == pytest.approx(information_of_blocks(0.6))
    # A source that says nothing has no part.
    alone = information(**BLOCKS, terms=[["sea"]] * 4, **SMALL)
    assert alone == pytest.approx(information_of_blocks(0.6))


def test_chance_information_of_four_steps() -> None:
    found = chance_information(**BLOCKS, orders=[MIXED], **SMALL)
    assert found == pytest.approx(information_of_blocks(-1))
    found = chance_information(**BLOCKS, **BLOCK_TERMS, orders=[MIXED], **SMALL)
    assert found == pytest.approx(information_of_blocks(-2.1))
    # The mean over the orders.
    found = chance_information(**BLOCKS, orders=[MIXED, range(4), MIXED], **SMALL)
    assert found == pytest.approx((2 * information_of_blocks(-1) + information_of_blocks(1)) / 3)
