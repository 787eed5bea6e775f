"""Segment alignment: the papers' figures, the definition, every short pair, both paths."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from reffree.data.segmentation import Segmentation
from reffree.metrics.gold.alignment import Alignment, Edge, align, intersect_ratio, jaccard
from reffree.metrics.gold.metric import count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.util.errors import InputError
from tests.oracles import reference_based as oracle
from tests.properties import examples

A = Alignment()


def places(edges):
    return [(edge.hypothesis, edge.reference) for edge in edges]


@st.composite
def segmentations(draw, count=2, max_units=25):
    """Segmentations of the same units; coarse and fine ones as likely as even ones."""
    n = draw(st.integers(1, max_units))
    made = []
    for _ in range(count):
        rate = draw(st.sampled_from([1, 5, 9]))
        marks = draw(st.lists(st.integers(1, 10), min_size=n - 1, max_size=n - 1))
        inner = [i + 1 for i, mark in enumerate(marks) if mark <= rate]
        made.append(list(Segmentation.from_boundaries(inner, n).masses))
    return made


def every_segmentation(n):
    for marks in product([0, 1], repeat=n - 1):
        yield list(Segmentation.from_labels(marks, "gap").masses)


# The papers -----------------------------------------------------------------------------------

# Ocampo Diaz & Ouyang 2022: A, B and 1 - WindowDiff (k = 2) as printed. The bars are only drawn;
# these masses are those of the authors' examples and reproduce all three columns.
FIGURES = {
    "10, h1": ([7, 3, 1, 3], [5, 5, 1, 3], "0.83", "0.50", "0.67"),
    "10, h2": ([5, 4, 1, 4], [5, 5, 1, 3], "0.60", "0.50", "0.67"),
    "11, h1": ([2, 2, 4, 6], [2, 2, 5, 5], "0.91", "0.83", "0.83"),
    "11, h2": ([3, 1, 5, 5], [2, 2, 5, 5], "0.79", "0.83", "0.83"),
    "12, h1": ([9, 5, 1], [5, 9, 1], "0.70", "0.33", "0.69"),
    "12, h2": ([8, 6, 1], [5, 9, 1], "0.76", "0.33", "0.69"),
    "12, h3": ([8, 6, 1], [6, 8, 1], "0.83", "0.33", "0.69"),
    "12, h4": ([7, 7, 1], [6, 8, 1], "0.91", "0.75", "0.85"),
    "12, h5": ([7, 7, 1], [7, 7, 1], "1.00", "1.00", "1.00"),
    "16, h0": ([9, 1], [1, 8, 1], "0.67", "0.50", "0.88"),
    "16, h1": ([2, 7, 1], [1, 8, 1], "0.79", "0.75", "0.88"),
    "16, h2": ([3, 6, 1], [1, 8, 1], "0.58", "0.33", "0.62"),
}


@pytest.mark.parametrize(("h", "r", "a", "b", "wd"), FIGURES.values(), ids=FIGURES)
def test_figures_of_2022(h, r, a, b, wd):
    assert f"{A(h, r):.2f}" == a
    assert f"{fmean(edge.weight for edge in align(h, r)):.2f}" == a
    assert f"{float(oracle.boundary_similarity(h, r)):.2f}" == b
    assert f"{float(1 - oracle.windowdiff(h, r, k=2)):.2f}" == wd


def test_merged_segments_are_aligned_where_they_lie():
    """2022, Figure 6: a small overlap with a neighbour makes no edge."""
    assert places(align([7, 5], [3, 3, 6])) == [(0, 0), (0, 1), (1, 2)]


def test_edges_tell_missing_from_extra_boundaries():
    """2022, Figure 8: one segment against two, two against one, one against one."""
    assert places(align([3, 3, 5, 4], [6, 2, 3, 4])) == [(0, 0), (1, 0), (2, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("r", [[2, 2, 2, 2, 2, 2], [1, 4, 2, 7, 3, 5]])
def test_one_bad_segment_is_as_bad_as_three_merged_pairs(r):
    """2022, Figure 9, where A cannot tell the two apart: 1/2 whatever the masses.

    The text says 0.58; no six segments that are merged so have that value.
    """
    four_in_one, pairs = [*r[:2], sum(r[2:])], [sum(r[i : i + 2]) for i in (0, 2, 4)]
    assert A(four_in_one, r) == pytest.approx(0.5)
    assert A(pairs, r) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("r", "preferred", "other"),
    [
        ([1, 1, 10, 10], [1, 1, 12, 8], [2, 1, 9, 10]),
        ([1, 2, 8, 8], [1, 2, 9, 7], [2, 1, 8, 8]),
        ([8, 8], [10, 6], [11, 5]),
    ],
    ids=["cross-boundary", "constant cost", "vanishing"],
)
def test_prefers_what_six_students_preferred(r, preferred, other):
    """2022, Appendix A."""
    assert A(preferred, r) > A(other, r)


def test_smaller_distortion_of_the_same_shift():
    """2022, Figure 3: one unit from segments of 2, and from segments of 4."""
    r = [1, 2, 4, 4]
    assert A([1, 2, 5, 3], r) > A([2, 1, 4, 4], r)


@pytest.mark.parametrize(
    ("h", "r", "expected"),
    [
        ([3, 8], [3, 4, 4], Fraction(2, 3)),  # Figure 7: a deletion
        ([3, 4, 1, 3], [3, 4, 4], Fraction(3, 4)),  # and an insertion
        ([1] * 7, [7], Fraction(1, 7)),  # Figure 9
        ([3, 7, 2], [10, 2], Fraction(2, 3)),  # Figure 10: an insertion in a long segment
        ([10, 1, 1], [10, 2], Fraction(2, 3)),  # and in a short one
        ([3, 6, 3], [3, 3, 3, 3], Fraction(3, 4)),  # Figure 2 with equal lengths
        ([3, 3, 6], [3, 3, 3, 3], Fraction(3, 4)),
    ],
)
def test_figures_of_2024(h, r, expected):
    """Ocampo Diaz & Ouyang 2024, Section 2.4."""
    assert A(h, r) == pytest.approx(float(expected))


# The definition -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 7))
def test_every_short_pair_equals_the_definition(n):
    rows = [(h, r) for h in every_segmentation(n) for r in every_segmentation(n)]
    values = A([h for h, _ in rows], [r for _, r in rows])
    assert_allclose(values, [float(oracle.alignment(h, r)) for h, r in rows], atol=1e-12)
    # Equal segmentations, and no others, have the highest value.
    assert_array_equal(values == 1, [h == r for h, r in rows])
    assert (values >= 1 / n - 1e-12).all()
    assert (values <= 1).all()


@given(segmentations())
@examples(150)
def test_equals_the_definition(pair):
    h, r = pair
    assert A(h, r) == pytest.approx(float(oracle.alignment(h, r)), abs=1e-12)
    assert set(places(align(h, r))) == oracle.alignment_edges(h, r)


@given(segmentations(max_units=200))
@examples(150)
def test_both_paths_agree(pair):
    h, r = pair
    total, n_edges = A.counts(Pairs.of(h, r))[0]
    edges = align(h, r)
    assert n_edges == len(edges)
    assert total == pytest.approx(sum(edge.weight for edge in edges), rel=1e-12)


def test_both_paths_agree_on_a_long_document():
    rng = np.random.default_rng(0)
    gaps = rng.random((3, 4999)) < [[0.01], [0.2], [0.9]]
    pairs = Pairs.of(gaps, gaps[::-1])
    for i, (total, n_edges) in enumerate(A.counts(pairs)):
        rows = pairs.hypothesis[i], pairs.reference[i]
        edges = align(*(row[row > 0].tolist() for row in rows))
        assert (len(edges), sum(edge.weight for edge in edges)) == pytest.approx((n_edges, total))


@given(segmentations(max_units=60))
@examples(100)
def test_sides_may_be_swapped(pair):
    h, r = pair
    assert_array_equal(A.counts(Pairs.of(h, r)), A.counts(Pairs.of(r, h)))
    assert A(h, h) == 1
    swapped = [
        Edge(e.reference, e.hypothesis, e.from_reference, e.from_hypothesis, e.weight)
        for e in align(r, h)
    ]
    assert list(align(h, r)) == swapped


def test_equally_close_segments_higher_jaccard_index_first():
    """The second segment shares one unit with either side; the right one is shorter."""
    assert places(align([2, 2, 1], [3, 2])) == [(0, 0), (1, 1), (2, 1)]
    assert A([2, 2, 1], [3, 2]) == pytest.approx(0.5)


def test_equally_close_segments_leftmost_last():
    """The same pair read backwards has another value: only ties tell left from right."""
    assert A([3, 2, 1], [2, 2, 2]) == pytest.approx(1 / 2)
    assert A([1, 2, 3], [2, 2, 2]) == pytest.approx(11 / 24)
    assert places(align([1, 2, 3], [2, 2, 2])) == [(0, 0), (1, 0), (1, 1), (2, 2)]


# Batches --------------------------------------------------------------------------------------


def test_pooled_over_edges():
    hypotheses, references = [[5, 5], [1] * 7], [[2, 3, 5], [7]]
    counts = count_pairs(A, Pairs.of(hypotheses, references))
    assert_allclose(counts, [[2, 3], [1, 7]])
    assert A.value(counts.sum(0)) == pytest.approx(3 / 10)
    assert_allclose(A.value(counts), [2 / 3, 1 / 7])


# The alignment itself -------------------------------------------------------------------------


def test_edges_say_who_asked_for_them():
    """2022, Figure 16: the short first segment of r makes a diagonal edge."""
    assert align([3, 6, 1], [1, 8, 1]) == (
        Edge(0, 0, None, 1.0, 1 / 3),
        Edge(0, 1, 2 / 3, None, 2 / 9),
        Edge(1, 1, 1.0, 0.75, 0.75),
        Edge(2, 2, 1.0, 1.0, 1.0),
    )


def test_measures_of_two_segments():
    assert intersect_ratio(range(2, 6), range(5, 20)) == 1 / 4
    assert jaccard(range(2, 6), range(5, 20)) == 1 / 18
    assert intersect_ratio(range(2), range(5, 9)) == jaccard(range(2), range(5, 9)) == 0


def test_another_closeness():
    """With Jaccard as closeness the diagonal edge of Figure 16 goes, and h2 beats the deletion."""
    r = [1, 8, 1]
    edges = align([3, 6, 1], r, closeness=jaccard)
    assert places(edges) == [(0, 0), (1, 1), (2, 2)]
    deleted = align([9, 1], r, closeness=jaccard)
    assert fmean(e.weight for e in edges) > fmean(e.weight for e in deleted)


def test_another_weight():
    def dice(source, target):
        shared = len(set(source) & set(target))
        return 2 * shared / (len(source) + len(target))

    edges = align([5, 5], [2, 3, 5], weight=dice)
    assert [edge.weight for edge in edges] == pytest.approx([4 / 7, 6 / 8, 1])
    assert places(edges) == places(align([5, 5], [2, 3, 5]))


def test_a_weight_with_a_direction_goes_from_source_to_target():
    """Only the reference's first segment asks for its edge; both do for the second."""
    edges = align([5, 5], [2, 3, 5], weight=intersect_ratio)
    assert [edge.weight for edge in edges] == pytest.approx([1, (3 / 5 + 1) / 2, 1])


def test_constant_closeness_leaves_jaccard_and_left_to_decide():
    edges = align([2, 2, 1], [3, 2], closeness=lambda source, target: 0.0)
    assert places(edges) == places(align([2, 2, 1], [3, 2], closeness=jaccard))


def test_only_overlapping_segments_are_compared():
    seen = []

    def closeness(source, target):
        seen.append((source, target))
        return intersect_ratio(source, target)

    rng = np.random.default_rng(0)
    h, r = ([int(m) for m in rng.integers(1, 9, size=300)] for _ in range(2))
    r.append(sum(h) - sum(r)) if sum(h) > sum(r) else h.append(sum(r) - sum(h))
    align(h, r, closeness=closeness)
    assert all(set(source) & set(target) for source, target in seen)
    assert len(seen) < 2 * (len(h) + len(r))


@pytest.mark.parametrize(
    ("h", "r", "message"),
    [
        ([[5, 5]], [10], "several segmentations"),
        ([5, 5], [[10], [5, 5]], "several segmentations"),
        ([5, 5], [9], "a hypothesis of 10 units and a reference of 9"),
        ([5, 0], [5], "a mass below 1"),
    ],
)
def test_refuses_what_is_not_one_pair(h, r, message):
    with pytest.raises(InputError, match=message):
        align(h, r)
