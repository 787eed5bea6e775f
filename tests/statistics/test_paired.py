"""Paired tests of systems over documents: against enumeration, plain loops and simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from reffree.statistics.paired import holm, letters, paired_tests
from tests.oracles.statistics import enumerated_p, mean_of_pairs, westfall_young_p
from tests.properties import examples

NAN = float("nan")


def run_pair(a, b, a_weights=None, b_weights=None, seed=0):
    values = np.array([a, b], dtype=float)
    ones = np.ones(len(a))
    weights = np.array([ones if w is None else w for w in (a_weights, b_weights)], dtype=float)
    (test,) = paired_tests(values, weights, [(0, 1)], np.random.default_rng(seed))
    return test


value = st.one_of(st.sampled_from([0.1, 0.2, 0.3, 0.7]), st.integers(0, 99).map(lambda n: n / 99))
cell = st.tuples(value, st.sampled_from([1.0, 1.0, 2.5, 8.0]))
cells = st.one_of(st.none(), cell, cell, cell)  # a document without a score, or value and weight


@given(
    st.integers(1, 6).flatmap(lambda n: st.lists(st.tuples(*[cells] * n), min_size=2, max_size=4))
)
@examples(60)
def test_few_documents_are_enumerated(systems):
    """p, alone and corrected for all pairs, are those of all swaps."""
    given = np.array([[each or (NAN, 1.0) for each in row] for row in systems])
    pairs = list(combinations(range(len(systems)), 2))
    tests = paired_tests(given[..., 0], given[..., 1], pairs, np.random.default_rng(0))
    tested = [pair for pair, test in zip(pairs, tests, strict=True) if test.documents]
    corrected = dict(zip(tested, westfall_young_p(systems, tested), strict=True))
    for pair, test in zip(pairs, tests, strict=True):
        both = [(a, b) for a, b in zip(*(systems[i] for i in pair), strict=True) if a and b]
        assert test.documents == len(both)
        assert (test.ci is None) == (len(both) < 5)
        if not both:
            assert test.difference is test.p is test.p_corrected is None
            continue
        a, b = zip(*both, strict=True)
        assert test.difference == pytest.approx(mean_of_pairs(a) - mean_of_pairs(b), abs=1e-12)
        assert test.p == pytest.approx(enumerated_p(a, b), abs=1e-12)
        assert test.p_corrected == pytest.approx(corrected[pair], abs=1e-12)


def test_random_swaps_estimate_the_exact_p():
    rng = np.random.default_rng(20)
    values = np.linspace(0, 1.2, 3)[:, None] + rng.normal(size=(3, 13))
    weights = rng.integers(1, 5, size=values.shape).astype(float)
    pairs = list(combinations(range(3), 2))
    systems = [list(zip(v, w, strict=True)) for v, w in zip(values, weights, strict=True)]
    tests = paired_tests(values, weights, pairs, rng)
    exact = [enumerated_p(systems[i], systems[j]) for i, j in pairs]
    for test, p, corrected in zip(tests, exact, westfall_young_p(systems, pairs), strict=True):
        assert test.p == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 10_000))
        assert test.p_corrected == pytest.approx(corrected, abs=4 * np.sqrt(0.25 / 10_000))
        assert (test.p * 10_001) == pytest.approx(round(test.p * 10_001))


def test_smallest_p_counts_the_observed_assignment():
    assert run_pair(np.arange(40) + 1.0, np.zeros(40)).p == 1 / 10_001
    twelve = run_pair(np.arange(12) + 1.0, np.zeros(12))
    assert twelve.p == twelve.smallest_p == 2 / 2**12


def test_interval_equals_a_plain_loop():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 9))
    values[0, 2] = values[1, 7] = NAN
    weights = rng.integers(1, 9, size=(2, 9)).astype(float)
    counts = np.random.default_rng(5).multinomial(9, [1 / 9] * 9, size=1000)
    differences = []
    for row in counts:
        drawn = [d for d, n in enumerate(row) for _ in range(n) if d not in (2, 7)]
        if drawn:
            a, b = ([(values[i, d], weights[i, d]) for d in drawn] for i in (0, 1))
            differences.append(mean_of_pairs(a) - mean_of_pairs(b))
    test = run_pair(*values, *weights, seed=5)
    assert_allclose(test.ci, np.quantile(differences, [0.025, 0.975]), rtol=1e-12)
    assert test.documents == 7


def test_undefined_documents_leave_the_pair():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 20))
    a[[0, 3, 4, 5, 6]], b[[3, 7, 8, 9, 10]] = NAN, NAN
    kept = ~np.isnan(a + b)
    test, bare = run_pair(a, b), run_pair(a[kept], b[kept])
    assert kept.sum() == test.documents == 11
    assert test.difference == pytest.approx(bare.difference)
    assert test.p == bare.p  # few enough to enumerate, whatever the size of the corpus
    weights = np.where(kept, 1.0, 0.0)
    assert run_pair(np.nan_to_num(a), np.nan_to_num(b), weights, weights).p == bare.p


@pytest.mark.parametrize("n_documents", [3, 12, 30])
def test_equal_systems_are_never_told_apart(n_documents):
    values = np.random.default_rng(2).normal(size=n_documents) / 3
    test = run_pair(values, values)
    assert (test.difference, test.p) == (0, 1)
    assert run_pair(values, values[::-1]).p == 1  # equal means, up to the order of summation


def test_ties_count_although_sums_round():
    """Differences ±0.1: all 2^12 swaps with the same number of signs tie exactly."""
    a = np.array([0.1] * 9 + [0.2] * 3)
    b = np.array([0.2] * 9 + [0.1] * 3)
    # 3 or fewer of 12 signs against the others, both ways: 2 (1 + 12 + 66 + 220) / 4096.
    assert run_pair(a, b).p == 598 / 4096


def test_pairs_do_not_depend_on_each_other():
    values = np.random.default_rng(6).normal(size=(4, 25))
    values[1, :15] = NAN
    weights = np.random.default_rng(7).integers(1, 4, size=values.shape).astype(float)
    pairs = list(combinations(range(4), 2))
    before = values.copy()
    together = paired_tests(values, weights, pairs, np.random.default_rng(0))
    for (i, j), test in zip(pairs, together, strict=True):
        alone = run_pair(values[i], values[j], weights[i], weights[j])
        assert (test.p, test.documents) == (alone.p, alone.documents)
        assert_allclose([test.difference, *test.ci], [alone.difference, *alone.ci], rtol=1e-9)
        turned = run_pair(values[j], values[i], weights[j], weights[i])
        assert turned.difference == pytest.approx(-test.difference)
        if test.documents <= 12:
            assert turned.p == test.p
    np.testing.assert_array_equal(values, before)
    assert paired_tests(values, weights, [], np.random.default_rng(0)) == []


def simulate(firsts, seconds, seed=0):
    """Test many pairs of systems, given as (simulations, documents), on the same draws."""
    n = len(firsts)
    values = np.concatenate([firsts, seconds])
    pairs = [(i, n + i) for i in range(n)]
    return paired_tests(values, np.ones_like(values), pairs, np.random.default_rng(seed))


def test_intervals_cover_the_true_difference():
    """Skewed differences of mean 2 around a value both systems share."""
    rng = np.random.default_rng(12)
    is_covered = []
    for seed in range(3):
        shared = rng.normal(size=(160, 30))
        tests = simulate(shared + rng.gamma(2.0, size=shared.shape), shared, seed)
        is_covered += [test.ci[0] <= 2 <= test.ci[1] for test in tests]
    assert 0.91 <= np.mean(is_covered) <= 0.98


def graded(n_systems, n_documents, rng, step=0.0):
    """Losses, skew around systems and documents; each system ``step`` worse than the one before."""
    noise = rng.gamma(2.0, size=(n_systems, n_documents))
    return step * np.arange(n_systems)[:, None] + 3 * rng.normal(size=n_documents) + noise


def test_differences_of_many_systems_are_found():
    """1,081 pairs of 47 systems on 19 documents, where Holm's correction finds none."""
    values = graded(47, 19, np.random.default_rng(21), step=0.25)
    pairs = list(combinations(range(47), 2))
    tests = paired_tests(values, np.ones_like(values), pairs, np.random.default_rng(0))
    assert min(holm([test.p for test in tests])) > 0.05
    is_found = np.array([test.p_corrected <= 0.05 for test in tests])
    is_far = np.array([b - a >= 20 for a, b in pairs])  # 5 against a noise of 1.4
    assert is_found[is_far].mean() > 0.95
    assert not any(test.difference > 0 for test in tests if test.p_corrected <= 0.05)


@pytest.mark.parametrize("quality", [[0] * 6, [0, 0, 0, 5, 5, 9]], ids=["all alike", "groups"])
def test_false_differences_are_as_rare_as_the_level(quality):
    """Of skew losses, in 400 runs ± 3 standard deviations, whichever pairs do differ."""
    pairs = list(combinations(range(6), 2))
    alike = [quality[a] == quality[b] for a, b in pairs]
    p, corrected = [], []
    for seed in range(400):
        values = graded(6, 9, np.random.default_rng([seed, 22])) + np.array(quality)[:, None]
        tests = paired_tests(values, np.ones_like(values), pairs, np.random.default_rng(0))
        p.append([test.p for test in tests])
        corrected.append([test.p_corrected for test in tests])
    is_wrong = np.array(corrected)[:, alike] <= 0.05
    assert is_wrong.any(1).mean() <= 0.083
    assert 0.035 <= (np.array(p)[:, alike] <= 0.05).mean() <= 0.065
    if all(alike):
        assert is_wrong.any(1).mean() >= 0.017  # it is the level, not want of power


def test_a_pair_of_few_documents_hides_no_other():
    """Five common documents without any noise give no swap by which others are measured."""
    rng = np.random.default_rng(23)
    values = np.stack([np.zeros(16), 1 + rng.uniform(size=16), np.full(16, NAN)])
    values[2, :5] = 0.3
    near, _, few = paired_tests(values, np.ones_like(values), [(0, 1), (1, 2), (0, 2)], rng)
    assert near.p_corrected <= 0.001
    assert few.p_corrected >= few.p == 2 / 2**5
    for seed in range(8):  # nor has it, of random swaps, less than its own enumerated p
        (few,) = paired_tests(values, np.ones_like(values), [(0, 2)], np.random.default_rng(seed))
        assert few.p_corrected >= few.p


def test_holm_by_hand():
    # Sorted: 0.005·4 = 0.02, 0.01·3 = 0.03, 0.03·2 = 0.06, 0.04·1 = 0.04 → 0.06 (monotone).
    assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert_allclose(holm([0.6, 0.5]), [1, 1])
    assert_allclose(holm([0.02]), [0.02])
    assert holm([]).tolist() == []


@pytest.mark.parametrize(
    ("distinguishable", "expected"),
    [
        ("", "a a a a"),
        ("wz", "a ab ab b"),
        ("wy wz xz", "a ab bc c"),
        ("wx wy wz xy xz yz", "a b c d"),
        ("wx yz", "ab cd ac bd"),
        ("wy wz xy xz", "a a b b"),
        ("xw zw yw", "a b b b"),
        ("xy", "ab a b ab"),
    ],
)
def test_letters_by_hand(distinguishable, expected):
    result = letters("wxyz", [(pair[0], pair[1]) for pair in distinguishable.split()])
    assert list(result) == list("wxyz")
    assert " ".join(result.values()) == expected


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, 2 ** (n * n)))))
def test_a_letter_is_shared_iff_not_distinguishable(case):
    n, bits = case
    names = [f"s{i}" for i in range(n)]
    apart = {pair for i, pair in enumerate(combinations(names, 2)) if bits >> i & 1}
    result = letters(names, apart)
    for a, b in combinations(names, 2):
        assert bool(set(result[a]) & set(result[b])) == ((a, b) not in apart)
    assert "a" in result["s0"]
    used = sorted(set("".join(result.values())))
    assert used == list("abcdefghijklmnopqrstuvwxyz"[: len(used)])
    holders = [{name for name in names if letter in result[name]} for letter in used]
    assert not any(x <= y for x in holders for y in holders if x is not y)


def test_more_groups_than_letters():
    names = [f"s{i}" for i in range(60)]
    result = letters(names, combinations(names, 2))
    assert len(set(result.values())) == 60
    assert all(len(letter) == 1 and letter.isalpha() for letter in result.values())
