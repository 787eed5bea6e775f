"""The gold-based oracles, and the metrics, against figures and values worked out by hand."""

from __future__ import annotations

import warnings
from dataclasses import fields
from fractions import Fraction as F
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.metrics.registry import parse_metric
from tests.oracles import reference_based as oracles
from tests.oracles.reference_based import (
    alignment,
    bed,
    bed_precision,
    bed_recall,
    bor,
    boundaries,
    boundary_counts,
    boundary_similarity,
    f1,
    ghd,
    pk,
    pk_prime,
    pr_error,
    pr_false_alarm,
    pr_miss,
    purity,
    window_size,
    windowdiff,
    winpr,
    winpr_counts,
    winpr_precision,
    winpr_recall,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # segeval compares with literals through "is"
    import segeval
    import segeval.data  # segeval would import these when they are first used
    import segeval.ml

REFERENCE = [2, 3, 5]
ONES = [1] * 10


def masses_from(positions, n):
    return [b - a for a, b in pairwise([0, *sorted(positions), n])]


def masses_from_gaps(gaps):
    """nltk's strings: one character per gap between units."""
    return masses_from([i + 1 for i, gap in enumerate(gaps) if gap == "1"], len(gaps) + 1)


def decimals(value, digits):
    """What a table prints: half a unit of the last digit either way."""
    return pytest.approx(value, abs=0.5001 * 10**-digits)


@st.composite
def segmentations(draw, n):
    gaps = draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))
    return masses_from([i for i, gap in enumerate(gaps, 1) if gap], n)


@st.composite
def documents(draw, max_units=12):
    """A hypothesis and a reference; often the hypothesis is a perturbed reference."""
    n = draw(st.integers(1, max_units))
    reference = draw(segmentations(n))
    if draw(st.booleans()):
        return draw(segmentations(n)), reference
    moved = {b + draw(st.sampled_from([-1, 0, 0, 1])) for b in sorted(boundaries(reference))}
    return masses_from(moved & set(range(1, n)), n), reference


# The table for reference [2, 3, 5] ------------------------------------------------------------

COLUMNS = [
    *("pk", "windowdiff", "windowdiff:padding=segeval", "boundary_similarity"),
    *("segmentation_similarity", "alignment", "winpr_precision", "winpr_recall", "pr_error"),
    *("bed_precision", "bed_recall", "bed"),
]
ROWS = [
    ([2, 3, 5], [0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1]),
    ([5, 5], [0.25, 0.25, 0.153846, 0.5, 0.888889, 0.666667, 1, 0.5, 0.25, 1, 0.5, 0.666667]),
    (
        [3, 2, 5],
        [*(0.25, 0.25, 0.153846, 0.75, 0.944444, 0.777778, 0.75, 0.75), 0.1875, *[0.75] * 3],
    ),
    ([10], [0.5, 0.5, 0.307692, 0, 0.777778, 0.333333, None, 0, 0.5, None, 0, 0]),
    (ONES, [*(0.5, 1, 0.769231, 0.222222, 0.222222, 0.3, 0.222222, 1, 0.5, 0.222222, 1), 0.363636]),
]


def both(spelling, hypothesis, reference):
    """What the oracle says, once the metric has said the same."""
    metric = parse_metric(spelling)
    changed = {f.name: getattr(metric, f.name) for f in fields(metric)}
    options = {k: v for k, v in changed.items() if v != getattr(type(metric)(), k)}
    value = getattr(oracles, metric.name)(hypothesis, reference, **options)
    found = metric(hypothesis, reference)
    assert found is None if value is None else found == pytest.approx(float(value), abs=1e-12)
    return value


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(("hypothesis", "row"), ROWS, ids=[str(row[0]) for row in ROWS])
def test_table(hypothesis, row, column):
    expected = row[COLUMNS.index(column)]
    value = both(column, hypothesis, REFERENCE)
    assert value is None if expected is None else value == decimals(expected, 6)


@pytest.mark.parametrize(
    ("spelling", "hypothesis", "reference", "expected"),
    [
        ("pk:k=2", [4, 6], [5, 5], F(1, 4)),
        ("pk:k=3", [4, 6], [5, 5], F(2, 7)),
        ("pk:k=9", [4, 6], [5, 5], 0),
        ("pk:k=10", [4, 6], [5, 5], None),
        ("pk", [10], REFERENCE, F(1, 2)),
        ("pk:k=5", REFERENCE, [10], 1),  # swapped, with the window of the new reference
        ("pk", REFERENCE, [10], 1),
        ("boundary_similarity", [4, 6], [5, 5], F(1, 2)),
        ("boundary_similarity", [3, 7], [5, 5], 0),
        ("boundary_similarity:n_t=1", [3, 7], [5, 5], 0),
        ("boundary_similarity:n_t=3", [3, 7], [5, 5], F(1, 3)),
        ("boundary_similarity:n_t=10", [3, 7], [5, 5], F(4, 5)),
        ("segmentation_similarity", [4, 6], [5, 5], F(17, 18)),
        ("windowdiff:k=2", [1, 9], [10], F(1, 8)),
        ("windowdiff", [10], [1, 9], F(1, 8)),
        ("windowdiff:padding=exact", [10], [1, 9], F(1, 5)),
        ("windowdiff:padding=segeval", [10], [1, 9], F(2, 13)),
        ("windowdiff:k=2,padding=exact", [1, 9], [10], F(1, 5)),
        ("windowdiff:k=2,padding=segeval", [1, 9], [10], F(2, 13)),
        ("windowdiff:padding=exact", [1, 9], [10], F(5, 13)),  # k = 5: half the reference's mean
        ("winpr", [5, 5], REFERENCE, F(2, 3)),
        ("winpr", [10], REFERENCE, 0),
        ("winpr", [10], [10], None),
        ("pr_miss", [10], REFERENCE, 1),
        ("pr_miss", [2, 8], [10], None),
        ("pr_false_alarm:k=2", [2, 8], [10], F(1, 4)),
        ("pr_error", [2, 8], [10], None),
    ],
)
def test_values_below_the_table(spelling, hypothesis, reference, expected):
    assert both(spelling, hypothesis, reference) == expected


def test_nltk_pair():
    pair = masses_from_gaps("000100010000"), masses_from_gaps("000001001000")
    assert both("pk:k=2", *pair) == both("pk:k=2", *reversed(pair)) == F(6, 11)


@pytest.mark.parametrize(
    ("reference", "k"),
    [
        ([5, 5], 2),  # 2.5
        ([7, 7], 4),  # 3.5
        ([9, 9], 4),  # 4.5
        ([11, 11], 6),  # 5.5
        ([2, 3, 5], 2),  # 5/3
        ([1] * 9, 2),  # never below 2
        ([12], 6),
        ([7, 6, 8, 8], 4),  # 3.625
    ],
)
def test_window_size_rounds_half_to_even(reference, k):
    assert window_size(reference) == k
    mass = segeval.BoundaryFormat.mass
    assert segeval.compute_window_size(reference, boundary_format=mass) == k


# Undefined values and empty sets --------------------------------------------------------------


def test_windows_longer_than_the_document():
    for metric in (pk, windowdiff, pk_prime, pr_error, pr_miss, pr_false_alarm):
        assert metric([1, 1], [2], k=2) is None
        assert metric([1, 1], [1, 1], k=3) is None
        assert metric([1, 2], [2, 1], k=2) is not None
    assert windowdiff([1, 1], [2], k=2, padding="exact") == 1  # both windows hold the one gap
    assert windowdiff([1, 1], [2], k=2, padding="segeval") == F(2, 5)
    assert windowdiff([1], [1], k=2, padding="exact") == 0
    assert windowdiff([1], [1], k=1, padding="exact") is None


@pytest.mark.parametrize("pair", [([2, 3], [6]), ([0, 5], [5]), ([-1, 6], [5])])
def test_two_segmentations_of_one_document_are_needed(pair):
    for metric in (pk, windowdiff, boundary_similarity, ghd, alignment, f1, bor, purity):
        with pytest.raises(ValueError, match="not two segmentations"):
            metric(*pair)


# Georgescul et al. (2006) ---------------------------------------------------------------------


def test_pr_error_by_hand():
    # Windows of two gaps over the gaps 1 ... 9; the reference has boundaries at 2 and 5.
    assert pr_miss([3, 2, 5], REFERENCE) == F(1, 4)  # only (1, 2) of (1, 2) (2, 3) (4, 5) (5, 6)
    assert pr_false_alarm([3, 2, 5], REFERENCE) == F(1, 8)  # only (3, 4)
    assert pr_error([3, 2, 5], REFERENCE, c_miss=1, c_fa=0) == F(1, 4)
    assert pr_error([3, 2, 5], REFERENCE, c_miss=0.25, c_fa=0.75) == F(5, 32)


def test_two_boundaries_in_one_window():
    # Section 4.1, examples 1 and 2: counts 2 against 1 and 1 against 2 inside one window.
    fine, coarse = [2, 1, 3], [2, 4]
    windows = boundary_counts(fine, coarse, k=3)
    assert windows == [(2, 1), (2, 1), (1, 0)]
    assert pk(fine, coarse, k=3) == F(1, 3)
    assert pk_prime(fine, coarse, k=3) == pk_prime(coarse, fine, k=3) == 1
    assert (pr_miss(fine, coarse, k=3), pr_false_alarm(fine, coarse, k=3)) == (0, 1)
    assert (pr_miss(coarse, fine, k=3), pr_false_alarm(coarse, fine, k=3)) == (1, 0)


@given(documents(), st.integers(1, 5))
def test_pr_error_stays_below_its_printed_worst_case(pair, k):
    """The paper gives 100 % to the complement of the reference; no hypothesis can reach that.

    A window is a miss or a false alarm, so with a share q of windows that hold a reference boundary
    the error is at most 1 - q / 2.
    """
    value = pr_error(*pair, k=k)
    if value is not None:
        windows = boundary_counts(*pair, k)
        assert value <= 1 - F(sum(r > 0 for _, r in windows), 2 * len(windows)) < 1


# Windows that count every gap alike -----------------------------------------------------------


@given(documents(), st.integers(1, 5))
def test_winpr_counts_each_boundary_once(pair, k):
    hypothesis, reference = pair
    true_positives, false_positives, false_negatives = winpr_counts(hypothesis, reference, k)
    assert true_positives + false_positives == len(hypothesis) - 1
    assert true_positives + false_negatives == len(reference) - 1


@pytest.mark.parametrize("gap", range(1, 10))
@pytest.mark.parametrize("k", [2, 3, 4])
def test_exact_padding_treats_all_gaps_alike(gap, k):
    hypothesis = [gap, 10 - gap]
    assert windowdiff(hypothesis, [10], k=k, padding="exact") == F(k, 10 + k - 2)
    assert windowdiff(hypothesis, [10], k=k, padding="segeval") == F(k, 10 + k + 1)
    assert windowdiff(hypothesis, [10], k=k) == F(min(k, gap, 10 - gap, 10 - k), 10 - k)


@pytest.mark.parametrize(
    ("shift", "k", "credit"), [(1, 2, F(1, 2)), (1, 4, F(3, 4)), (2, 4, F(1, 2)), (4, 4, F(0))]
)
def test_winpr_credits_near_misses_by_their_share_of_the_window(shift, k, credit):
    hypothesis = [10 + shift, 10 - shift]
    assert winpr_precision(hypothesis, [10, 10], k=k) == credit
    assert winpr_recall(hypothesis, [10, 10], k=k) == credit
    assert winpr(hypothesis, [10, 10], k=k) == credit


# Boundary edits -------------------------------------------------------------------------------

# segeval documentation, front page: hyphenated words, printed to two digits.
SYLLABLES = [
    ("au·tom·a·tic", "au·to·ma·tic", 0.83),
    ("seg·ment·ation", "seg·men·ta·tion", 0.50),
    ("is", "is", 1.00),
    ("f·un", "fun", 0.00),
]


@pytest.mark.parametrize(("automatic", "manual", "expected"), SYLLABLES)
def test_boundary_similarity_of_syllables(automatic, manual, expected):
    hypothesis, reference = ([len(part) for part in w.split("·")] for w in (automatic, manual))
    assert boundary_similarity(hypothesis, reference) == decimals(expected, 2)


def test_bed_credits_what_is_left_of_a_near_miss():
    # One match, one boundary moved by one unit, one more in the reference.
    hypothesis, reference = masses_from([4, 8], 16), masses_from([4, 9, 13], 16)
    assert bed_precision(hypothesis, reference) == F(3, 4)
    assert bed_recall(hypothesis, reference) == F(1, 2)
    assert bed(hypothesis, reference) == F(3, 5)
    assert bed_precision(hypothesis, reference, n_t=10) == F(19, 20)
    assert bed_recall(hypothesis, reference, n_t=10) == F(19, 30)
    assert bed(hypothesis, reference, n_t=1) == F(2, 5)  # exact matches only
