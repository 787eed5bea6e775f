"""The oracle of the expected error against results derived by hand."""

from __future__ import annotations

from math import comb, exp, log, sqrt

import numpy as np
import pytest

from tests.oracles.expected import (
    METRICS,
    Table,
    autocorrelation,
    best_segmentation,
    boundary_probabilities,
    count_constant,
    count_evidence,
    count_moments,
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
    posterior,
    prior,
    same_segment,
    scorer_table,
    source_parameters,
    spread,
    unit_masses,
    units_per_step,
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


def test_units_of_steps() -> None:
    assert [units_per_step(n) for n in (1, 1024, 1025, 2048, 2049)] == [1, 1, 2, 2, 3]
    assert unit_masses((2, 1, 1), 11, 3) == (6, 3, 2)


def test_embedding_steps_have_length_one_before_the_mean() -> None:
    embeddings = [[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]]
    units = [[0.6, 0.8], [0.0, 0.0], [0.0, -1.0]]
    assert embedding_steps(embeddings) == pytest.approx(np.array(units))
    assert embedding_steps(embeddings, 2) == pytest.approx(np.array([[0.3, 0.4], [0.0, -1.0]]))
    assert len(embedding_steps(np.ones((1025, 2)))) == 513


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


def test_dimension_has_a_limit() -> None:
    # Orthogonal steps: D' = m - 1, hence D = m(m - 1), at most 2000; no autocorrelation.
    assert source_parameters(np.eye(12))[:2] == pytest.approx((11 / 12, 132))
    assert source_parameters(np.eye(46))[:2] == pytest.approx((45 / 46, 2000))


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
    assert gain_table(y, 2) == evidence_table(y, 2) == flat_table(len(y))


def test_scorer_counts_where_a_stretch_ends() -> None:
    table = scorer_table([0.75, 0.0])
    assert table[0, 1] == pytest.approx(log(3))
    assert table[0, 2] == table[1, 2] == pytest.approx(log(1e-6), rel=1e-6)
    assert table[0, 3] == table[1, 3] == table[2, 3] == 0


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


def test_prior_counts_are_binomials() -> None:
    # The products of s lengths that sum to m add up to C(m + s - 1, 2s - 1).
    m = 7
    probabilities = prior(m, 3)
    by_count = [sum(p for s, p in probabilities.items() if len(s) == c) for c in range(1, m + 1)]
    ways = [comb(m + s - 1, 2 * s - 1) for s in range(1, m + 1)]
    w = by_count[1] / by_count[0] * ways[0] / ways[1]
    weights = [count * w**s for s, count in enumerate(ways)]
    assert by_count == pytest.approx([weight / sum(weights) for weight in weights])


@pytest.mark.parametrize(("K", "found"), [(1.0, 1.02), (1.3, 1.3), (4.0, 4.0), (9.0, 7.5)])
def test_probabilities_sum_to_one_and_the_count_is_expected(K: float, found: float) -> None:
    for scale in (0, 1, 40):
        evidence = {k: scale * x for k, x in evidence_table(random_embeddings(8), 3).items()}
        probabilities = posterior(evidence, 8, K)
        assert sum(probabilities.values()) == pytest.approx(1)
        assert count_moments(probabilities)[0] == pytest.approx(found, abs=1e-9)
        assert sum(gap_probabilities(probabilities, 8)) == pytest.approx(found - 1, abs=1e-9)


def test_gaps_inside_a_step_have_no_boundary() -> None:
    probabilities = prior(3, 2)
    assert gap_probabilities(probabilities, 5, 2) == pytest.approx([0, 0.5, 0, 0.5])
    # Units 0 1 | 2 3 | 4; windows of 2: steps 0-1, 0-1, 1-2.
    assert same_segment(probabilities, 5, 2, 2) == pytest.approx([0.5, 0.5, 0.5])
    assert same_segment(probabilities, 5, 1, 2) == pytest.approx([1, 0.5, 1, 0.5])


# How many segments ----------------------------------------------------------------------------


def test_count_evidence_of_three_steps() -> None:
    # w = √3 with and without; the variance of the count is 6√3 / Z.
    ratio = (18 + 6 * ROOT) / (12 + 6 * ROOT)
    assert count_evidence(tilted(), 3, 2) == pytest.approx(log(ratio) + log(ratio) / 2)


@pytest.mark.parametrize("K", [1.02, 1.7, 3.0, 5.2])
def test_count_evidence_of_a_gain_per_segment_and_per_step(K: float) -> None:
    # c per segment: w shrinks by e^c, Z stays. c per step: every segmentation gains c·m.
    m, c = 6, 0.7
    assert count_evidence(dict.fromkeys(every_stretch(m), c), m, K) == pytest.approx(c * K)
    per_step = {(start, stop): c * (stop - start) for start, stop in every_stretch(m)}
    assert count_evidence(per_step, m, K) == pytest.approx(c * m)


def test_variance_of_the_count_has_a_floor() -> None:
    # Two steps: Z = 2w + w², a share of 0.02 has two segments, with variance 0.0196.
    w = 2 * 0.02 / 0.98
    expected = log(2 * w + w**2) - 1.02 * log(w) - log(0.05) / 2
    assert count_constant(flat_table(2), 2, 1.02) == pytest.approx(expected)


def test_nodes_without_length() -> None:
    counts = nodes(16, 16)
    K = [2 * exp(0.66 + step) for step in (-0.72, -0.48, -0.24, 0, 0.24, 0.48, 0.72)]
    assert [node[0] for node in counts] == pytest.approx(K)
    # 16 / K / 2 = 4.25, 3.34, 2.63, 2.07, 1.63, ...
    assert [node[2] for node in counts] == [4, 3, 3, 2, 2, 2, 2]
    weights = [exp(-z * z / 2) for z in (1.8, 1.2, 0.6, 0, 0.6, 1.2, 1.8)]
    assert [node[1] for node in counts] == pytest.approx([x / sum(weights) for x in weights])


def test_nodes_heed_evidence_unless_the_length_is_known() -> None:
    plain, told = nodes(16, 16), nodes(16, 16, None, lambda K: 5 * K)
    for (K, weight, k), (_, other, window) in zip(plain, told, strict=True):
        ratio = other / weight / (told[3][1] / plain[3][1])
        assert ratio == pytest.approx(exp(1.75 * (K - plain[3][0])))
        assert k == window
    assert nodes(16, 16, 5, lambda K: 5 * K) == nodes(16, 16, 5)


def test_nodes_with_length() -> None:
    counts = nodes(25, 25, 12)
    assert [K for K, _, _ in counts] == pytest.approx(
        [3 * exp(step) for step in (-0.36, -0.24, -0.12, 0, 0.12, 0.24, 0.36)]
    )
    assert [k for _, _, k in counts] == [6, 5, 5, 4, 4, 3, 3]


def test_nodes_within_bounds() -> None:
    # A length of 100 says 1.02 segments of three units, and less below z = 0.
    assert [K for K, _, _ in nodes(3, 3, 100)[:4]] == pytest.approx([1.02] * 4)
    assert [K for K, _, _ in nodes(3, 3)][-3:] == [2.5] * 3
    assert {K for K, _, _ in nodes(8, 2)} == {1.5}  # two steps of four units
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


def test_windowdiff_takes_the_window_of_the_node() -> None:
    # (2, 2) against (1, 3): of the windows 0-2 and 1-3 the second differs; 0-3 does not.
    assert METRICS["windowdiff"]((2, 2), (1, 3), 2) == 0.5
    assert METRICS["windowdiff"]((2, 2), (1, 3), 3) == 0
    mixed = [(0.25, 2, {(1, 3): 1.0}), (0.75, 3, {(1, 3): 1.0})]
    assert expected_metric(METRICS["windowdiff"], (2, 2), mixed) == pytest.approx(0.125)
    assert spread(METRICS["windowdiff"], (2, 2), mixed) == pytest.approx(0.5 * sqrt(3 / 16))


@pytest.mark.parametrize("b", [1, 2])
def test_pk_from_pairs_is_pk_from_segmentations(b: int) -> None:
    n = 9 if b == 2 else 7
    evidence, counts = evidence_and_nodes(random_embeddings(n), n=n, b=b)
    mixed = mixture(evidence, -(-n // b), counts)
    for masses in [(n,), (2, n - 2), (1, 3, 1, n - 5), (1,) * n]:
        by_enumeration = expected_metric(METRICS["pk"], masses, mixed, b)
        assert expected_pk(masses, mixed, b) == pytest.approx(by_enumeration)


def test_two_clear_blocks_put_the_mass_on_the_middle_gap() -> None:
    n = 10
    noise = np.random.default_rng(SEED).normal(size=(n, 32))
    sources = [
        {"embeddings": np.repeat(np.eye(32)[:2], n // 2, axis=0) + 0.2 * noise},
        {"terms": [["sea" if i < n // 2 else "cake", f"word {i}"] for i in range(n)]},
        {"probabilities": [0.02] * 4 + [0.98] + [0.02] * 4},
    ]
    for source in sources:
        evidence, counts = evidence_and_nodes(**source, n=n, length=n - 1)
        gaps = boundary_probabilities(mixture(evidence, n, counts), n)
        assert gaps[4] > 1.5 * max(gaps[:4] + gaps[5:])
        assert information(evidence, n, counts) > 0.05
    # The scorer is nearly certain, but K segments have no more than K - 1 boundaries to give.
    most = sum(weight * min(1, K - 1) for K, weight, _ in counts)
    assert 0.95 * most < gaps[4] < most
    assert best_segmentation(mixture(evidence, n, counts), n)[0] == (5, 5)


def test_sources_add_up() -> None:
    n = 5
    embeddings, terms = random_embeddings(n), [["a"], ["a", "b"], ["b"], ["c"], ["a", "c"]]
    probabilities = [0.5, 0.1, 0.7, 0.5]
    evidence, counts = evidence_and_nodes(embeddings, terms, probabilities, n=n)
    parts = [
        evidence_table(embedding_steps(embeddings), 2),
        evidence_table(word_steps(terms), 2),
        scorer_table(probabilities),
    ]
    for stretch in every_stretch(n):
        assert evidence(2)[stretch] == pytest.approx(sum(part[stretch] for part in parts))
    # The number of segments heeds the embedding, by its gain, and no other source.
    steps = embedding_steps(embeddings)
    assert counts == nodes(n, n, None, lambda K: count_evidence(gain_table(steps, K), n, K))
    assert evidence_and_nodes(None, terms, probabilities, n=n)[1] == nodes(n, n)


def test_best_segmentation_has_the_least_expected_pk() -> None:
    evidence, counts = evidence_and_nodes(random_embeddings(7), n=7)
    mixed = mixture(evidence, 7, counts)
    best, value = best_segmentation(mixed, 7)
    assert value == pytest.approx(expected_pk(best, mixed))
    assert value == pytest.approx(min(expected_pk(s, mixed) for s in every_segmentation(7)))


def test_best_segmentation_cuts_between_steps() -> None:
    # Five units in three steps, certainly cut after the second step.
    best, value = best_segmentation([(1.0, 2, {(2, 1): 1.0})], 5, 2)
    assert (best, value) == ((4, 1), 0)


def test_information() -> None:
    # KL = P(1, 2)·log 2 - log of the ratio of the sums of weights; K - 1 = 1.
    expected = 12 / (18 + 6 * ROOT) * log(2) - log((18 + 6 * ROOT) / (12 + 6 * ROOT))
    assert information(tilted(), 3, TWO_NODE) == pytest.approx(expected)
    assert information(flat_table(6), 6, nodes(6, 6)) == pytest.approx(0, abs=1e-12)
    # With two steps K alone decides: the evidence tells nothing.
    table = {**flat_table(2), (0, 2): 3.0}
    assert information(table, 2, [(1.5, 1.0, 2)]) == pytest.approx(0, abs=1e-9)
    # Three segments of four: per expected boundary, of which there are two.
    table = {**flat_table(4), (0, 1): 1.0}
    before, after = prior(4, 3), posterior(table, 4, 3)
    kl = sum(p * log(p / before[masses]) for masses, p in after.items())
    assert information(table, 4, [(3.0, 1.0, 2)]) == pytest.approx(kl / 2)
    counts = [(3.0, 0.25, 2), (2.0, 0.75, 2), (2.5, 0.0, 4)]
    other = information(table, 4, [(2.0, 1.0, 2)])
    assert information(table, 4, counts) == pytest.approx(0.25 * kl / 2 + 0.75 * other)
