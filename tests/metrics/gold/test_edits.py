"""Metrics of boundary edits: exhaustive search, others' code, values by hand, batches."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment

from reffree.metrics.gold.boundary_edits import (
    Bed,
    BedPrecision,
    BedRecall,
    BoundarySimilarity,
    Ghd,
    SegmentationSimilarity,
)
from reffree.metrics.gold.metric import count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.util.errors import InputError
from tests.oracles import reference_based as oracle
from tests.properties import examples

with warnings.catch_warnings():
    # segeval's docstrings have invalid escapes.
    warnings.simplefilter("ignore")
    import segeval
    import segeval.data  # segeval would import these when they are first used
    import segeval.ml
    from nltk.metrics.segmentation import ghd as nltk_ghd

NEAR_MISSES = {
    BoundarySimilarity: oracle.boundary_similarity,
    SegmentationSimilarity: oracle.segmentation_similarity,
    BedPrecision: oracle.bed_precision,
    BedRecall: oracle.bed_recall,
    Bed: oracle.bed,
}
EVERY = [*(metric() for metric in NEAR_MISSES), Ghd()]


def masses_of(marks):
    """Masses from one mark per gap."""
    return np.diff([0, *np.flatnonzero(marks) + 1, len(marks) + 1]).tolist()


@st.composite
def pairs_of_masses(draw, max_units=11):
    n = draw(st.integers(1, max_units))
    marks = st.lists(st.booleans(), min_size=n - 1, max_size=n - 1)
    return masses_of(draw(marks)), masses_of(draw(marks))


def random_pairs(seed, count, n_units):
    """Pairs from sparse to dense, the second half near misses of one another."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(count):
        n = int(rng.integers(2, n_units + 1))
        hypothesis = rng.random(n - 1) < rng.random()
        reference = rng.random(n - 1) < rng.random()
        if i >= count // 2:
            places = np.flatnonzero(hypothesis) + rng.integers(-2, 3, hypothesis.sum())
            reference = np.isin(np.arange(n - 1), places)
        made.append((masses_of(hypothesis), masses_of(reference)))
    return [list(side) for side in zip(*made, strict=True)]


def gap_string(masses):
    marked = np.cumsum(masses)[:-1]
    return "".join("1" if i in marked else "0" for i in range(1, sum(masses)))


def assert_is(got, want):
    if want is None:
        assert got is None
    else:
        assert got == pytest.approx(float(want), rel=1e-12, abs=1e-12)


# Against the definitions ----------------------------------------------------------------------


@given(pairs_of_masses(), st.integers(1, 5))
@examples(250)
def test_near_misses_equal_the_exhaustive_search(masses, n_t):
    for metric, defined in NEAR_MISSES.items():
        assert_is(metric(n_t)(*masses), defined(*masses, n_t))


COSTS = st.sampled_from([0, Fraction(1, 2), 1, Fraction(3, 2), 2, 3, 7])


@given(pairs_of_masses(max_units=9), COSTS, COSTS, COSTS)
@examples(200)
def test_ghd_equals_the_exhaustive_search(masses, insertion, deletion, shift):
    metric = Ghd(float(insertion), float(deletion), float(shift))
    assert_is(metric(*masses), oracle.ghd(*masses, insertion, deletion, shift))


def test_near_misses_by_hand():
    # segeval 2.0.11, similarity/boundary_test.py: clustered boundaries, near miss, both.
    assert_is(BoundarySimilarity()([2, 3, 6], [1, 1, 3, 1, 5]), 1 / 2)
    assert_is(BoundarySimilarity()([2, 3, 6], [2, 2, 7]), 3 / 4)
    # The same file, of Hearst's Stargazers: hypotheses h1, h2 against annotators 1, 2.
    got = BoundarySimilarity()(
        [h for h in ([2, 6, 4, 2, 4, 3], [2, 1, 1, 1, 5, 8, 2, 1]) for _ in range(2)],
        [[2, 3, 3, 1, 3, 6, 3], [2, 8, 2, 4, 2, 3]] * 2,
    )
    assert_allclose(got, [4 / 7, 3 / 7, 7 / 18, 1 / 3])


def test_common_boundaries_match_before_anything_else():
    """{3, 4} and {4, 5}: two shifts would cost 1, the match leaves a deletion and an addition."""
    assert_is(BoundarySimilarity()([3, 1, 4], [4, 1, 3]), 1 / 3)
    assert_is(Bed()([3, 1, 4], [4, 1, 3]), 1 / 2)
    # With n_t = 3 the remaining two are a near miss, on either side of the match.
    assert_is(BoundarySimilarity(3)([3, 1, 4], [4, 1, 3]), 2 / 3)


def test_shifts_are_not_taken_greedily():
    """{1, 2} and {3, 4}: two shifts of 2 are cheaper than one of 1, a deletion and an addition."""
    assert_is(BoundarySimilarity(3)([1, 1, 4], [3, 1, 2]), 1 / 3)
    assert_is(float(segeval.boundary_similarity([1, 1, 4], [3, 1, 2], n_t=3)), 2 / 9)


def test_fewest_edits_of_equally_cheap_ones():
    """Five shifts of 2 units, or four of 1 with a deletion and an addition: 10/3 either way."""
    hypothesis, reference = [3, 3, 3, 3, 3, 1], [1, 3, 3, 3, 3, 3]
    assert_is(BoundarySimilarity(3)(hypothesis, reference), 1 - Fraction(10, 3) / 5)
    assert_is(Bed(3)(hypothesis, reference), 1 / 3)
    assert_is(SegmentationSimilarity(3)(hypothesis, reference), 1 - Fraction(10, 3) / 15)


def test_ghd_by_hand():
    # Kulyukin's examples as quoted in nltk 3.10's documentation of ghd(ref, hyp, …).
    for reference, hypothesis, costs, distance in (
        ("1100100000", "1100010000", (1, 1, 0.5), 0.5),
        ("1100100000", "1100000001", (1, 1, 0.5), 2),
        ("011", "110", (1, 1, 0.5), 1),
        ("111", "000", (1, 1, 0.5), 3),
        ("000", "111", (1, 2, 0.5), 6),
    ):
        given_masses = [masses_of([mark == "1" for mark in s]) for s in (hypothesis, reference)]
        assert Ghd(*costs)(*given_masses) == distance
    assert Ghd(insertion=3, deletion=5)([10], [5, 5]) == 3
    assert Ghd(insertion=3, deletion=5)([5, 5], [10]) == 5


# Against others' code and another algorithm ---------------------------------------------------


def test_segeval_agrees():
    hypotheses, references = random_pairs(seed=0, count=3000, n_units=30)
    b = BoundarySimilarity()(hypotheses, references)
    s = SegmentationSimilarity()(hypotheses, references)
    compared = 0
    for i, (h, r) in enumerate(zip(hypotheses, references, strict=True)):
        if len(h) == len(r) == 1:
            assert b[i] == s[i] == 1  # segeval raises
            continue
        assert b[i] == pytest.approx(float(segeval.boundary_similarity(h, r)), abs=1e-12)
        assert s[i] == pytest.approx(float(segeval.segmentation_similarity(h, r)), abs=1e-12)
        compared += 1
    assert compared > 2800


@pytest.mark.parametrize("n_t", [3, 5])
def test_no_dearer_than_segeval_where_shifts_reach_further(n_t):
    hypotheses, references = random_pairs(seed=n_t, count=400, n_units=25)
    s = SegmentationSimilarity(n_t)(hypotheses, references)
    theirs = [
        1.0 if len(h) == len(r) == 1 else float(segeval.segmentation_similarity(h, r, n_t=n_t))
        for h, r in zip(hypotheses, references, strict=True)
    ]
    assert (s >= np.array(theirs) - 1e-12).all()
    assert np.isclose(s, theirs).mean() > 0.5
    assert not np.isclose(s, theirs).all()


@pytest.mark.parametrize("costs", [(2, 2, 1), (1, 1, 0.5), (3, 1, 2), (9, 8, 1), (1, 1, 0)])
def test_nltk_agrees(costs):
    hypotheses, references = random_pairs(seed=7, count=600, n_units=50)
    insertion, deletion, shift = costs
    got = Ghd(insertion, deletion, shift)(hypotheses, references)
    theirs = [
        nltk_ghd(gap_string(r), gap_string(h), insertion, deletion, shift)
        for h, r in zip(hypotheses, references, strict=True)
    ]
    assert_allclose(got, theirs, rtol=1e-12)


@pytest.mark.parametrize("n_t", [2, 4, 30])
def test_an_assignment_solver_agrees_on_long_documents(n_t):
    rng = np.random.default_rng(n_t)
    n = 400
    for density in (0.05, 0.3, 0.7):
        marks = [rng.random(n - 1) < density for _ in range(2)]
        only_h = np.flatnonzero(marks[0] & ~marks[1])
        only_r = np.flatnonzero(marks[1] & ~marks[0])
        distance = abs(only_h[:, None] - only_r)
        saved = np.where(distance < n_t, 2 - distance / n_t, 0)
        taken = linear_sum_assignment(saved, maximize=True)
        cost = len(only_h) + len(only_r) - saved[taken].sum()
        got = SegmentationSimilarity(n_t)(*map(masses_of, marks))
        assert got == pytest.approx(1 - cost / (n - 1), rel=1e-12)


# Properties -----------------------------------------------------------------------------------


@given(pairs_of_masses(max_units=40), st.integers(1, 12))
@examples(100)
def test_sides_may_be_swapped(masses, n_t):
    one, other = masses
    for metric in (BoundarySimilarity(n_t), SegmentationSimilarity(n_t), Bed(n_t), Ghd(3, 3)):
        assert metric(one, other) == metric(other, one)
    assert BedPrecision(n_t)(one, other) == BedRecall(n_t)(other, one)
    assert Ghd(1, 3)(one, other) == Ghd(3, 1)(other, one)


@given(pairs_of_masses(max_units=40), st.integers(1, 12))
@examples(100)
def test_ranges_and_identity(masses, n_t):
    for metric in NEAR_MISSES:
        value = metric(n_t)(*masses)
        assert value is None or 0 <= value <= 1
        assert metric(n_t)(masses[0], masses[0]) in (1, None)
    assert Ghd()(masses[0], masses[0]) == 0
    if masses[0] != masses[1]:
        assert BoundarySimilarity(n_t)(*masses) < 1
        assert Ghd()(*masses) > 0


def test_nothing_on_one_side_or_both():
    for n in (1, 2, 7):
        assert [metric([n], [n]) for metric in EVERY] == [1, 1, None, None, None, 0]
    boundaries = 5
    assert [metric([1] * 6, [6]) for metric in EVERY] == [0, 0, 0, None, 0, 2 * boundaries]
    assert [metric([6], [1] * 6) for metric in EVERY] == [0, 0, None, 0, 0, 2 * boundaries]
    assert [metric([1] * 6, [1] * 6) for metric in EVERY] == [1, 1, 1, 1, 1, 0]


# Batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", EVERY, ids=lambda m: m.name)
def test_counts_add_up_over_documents(metric):
    """Pooled: all numerators over all denominators; for the distance the mean."""
    hypotheses, references = [[3, 4], [6, 2, 2], [5], [9]], [[4, 3], [5, 5], [2, 3], [9]]
    counts = count_pairs(metric, Pairs.of(hypotheses, references))
    pooled = {
        # a near miss; a near miss and a deletion; an addition; nothing
        "boundary_similarity": 1 / 4,
        "segmentation_similarity": 1 - 3 / (6 + 9 + 4 + 8),
        "bed_precision": 1 / 3,
        "bed_recall": 1 / 3,
        "bed": 1 / 3,
        "ghd": (1 + 3 + 2 + 0) / 4,
    }
    assert metric.value(counts.sum(0)) == pytest.approx(pooled[metric.name])
    assert metric.value(counts[:, None]).shape == (4, 1)


# Options --------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", NEAR_MISSES)
def test_n_t_is_a_whole_number_of_units(metric):
    with pytest.raises(InputError, match="found n_t = 0; expected a whole number, 1 or more"):
        metric(0)
    with pytest.raises(InputError, match=r"found n_t = 1\.5; expected a whole number"):
        metric(1.5)
    assert metric() == metric(2) == metric(np.int64(2))
    assert metric(10**9)([5, 5], [4, 6]) == pytest.approx(1)


@pytest.mark.parametrize("option", ["insertion", "deletion", "shift"])
def test_costs_are_finite_and_not_negative(option):
    for cost in (-1, math.nan):
        with pytest.raises(
            InputError, match=f"found {option} = {cost}; expected a number, 0 or more"
        ):
            Ghd(**{option: cost})
    with pytest.raises(InputError, match=f"found {option} = inf; expected a number"):
        Ghd(**{option: math.inf})


def test_names_and_directions():
    assert [metric.direction for metric in EVERY] == [*["higher"] * 5, "lower"]
    assert all(metric.undefined for metric in EVERY)
