"""The gold-based oracles against published figures, hand results, segeval and nltk."""

from __future__ import annotations

import warnings
from fractions import Fraction as F
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.reference_based import (
    alignment,
    alignment_edges,
    bed,
    bed_precision,
    bed_recall,
    bor,
    boundaries,
    boundary_counts,
    boundary_similarity,
    chunk_cost,
    chunkings,
    coverage,
    f1,
    ghd,
    lexical_cohesion,
    matching_outcomes,
    pk,
    pk_prime,
    pr_error,
    pr_false_alarm,
    pr_miss,
    purity,
    sed,
    segmentation_similarity,
    segments,
    w_f1,
    w_f1_one_to_one,
    window_size,
    windowdiff,
    winpr,
    winpr_counts,
    winpr_precision,
    winpr_recall,
)
from tests.properties import examples

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # segeval compares with literals through "is"
    import segeval
    import segeval.data  # segeval would import these when they are first used
    import segeval.ml
    from nltk.metrics import segmentation as nltk_segmentation

REFERENCE = [2, 3, 5]
ONES = [1] * 10


def masses_from(positions, n):
    return [b - a for a, b in pairwise([0, *sorted(positions), n])]


def masses_from_gaps(gaps):
    """nltk's strings: one character per gap between units."""
    return masses_from([i + 1 for i, gap in enumerate(gaps) if gap == "1"], len(gaps) + 1)


def gaps_of(masses):
    return "".join("01"[gap in boundaries(masses)] for gap in range(1, sum(masses)))


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

COLUMNS = {
    "pk": pk,
    "windowdiff": windowdiff,
    "windowdiff_segeval": lambda h, r: windowdiff(h, r, padding="segeval"),
    "boundary_similarity": boundary_similarity,
    "segmentation_similarity": segmentation_similarity,
    "alignment": alignment,
    "winpr_precision": winpr_precision,
    "winpr_recall": winpr_recall,
    "pr_error": pr_error,
}
ROWS = [
    ([2, 3, 5], [0, 0, 0, 1, 1, 1, 1, 1, 0]),
    ([5, 5], [0.25, 0.25, 0.153846, 0.5, 0.888889, 0.666667, 1, 0.5, 0.25]),
    ([3, 2, 5], [0.25, 0.25, 0.153846, 0.75, 0.944444, 0.777778, 0.75, 0.75, 0.1875]),
    ([10], [0.5, 0.5, 0.307692, 0, 0.777778, 0.333333, None, 0, 0.5]),
    (ONES, [0.5, 1, 0.769231, 0.222222, 0.222222, 0.3, 0.222222, 1, 0.5]),
]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(("hypothesis", "row"), ROWS, ids=[str(row[0]) for row in ROWS])
def test_table(hypothesis, row, column):
    expected = row[list(COLUMNS).index(column)]
    value = COLUMNS[column](hypothesis, REFERENCE)
    assert value is None if expected is None else value == decimals(expected, 6)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (pk([4, 6], [5, 5], k=2), F(1, 4)),
        (pk([4, 6], [5, 5], k=3), F(2, 7)),
        (pk([10], REFERENCE), F(1, 2)),
        (pk(REFERENCE, [10], k=5), F(1)),  # swapped, with the window of the new reference
        (pk(REFERENCE, [10]), F(1)),
        (boundary_similarity([4, 6], [5, 5]), F(1, 2)),
        (boundary_similarity([3, 7], [5, 5]), F(0)),
        (boundary_similarity([3, 7], [5, 5], n_t=3), F(1, 3)),
        (boundary_similarity([3, 7], [5, 5], n_t=10), F(4, 5)),
        (segmentation_similarity([4, 6], [5, 5]), F(17, 18)),
        (windowdiff([10], [1, 9]), F(1, 8)),
        (windowdiff([10], [1, 9], padding="exact"), F(1, 5)),
        (windowdiff([10], [1, 9], padding="segeval"), F(2, 13)),
        (windowdiff([1, 9], [10], k=2, padding="exact"), F(1, 5)),
        (windowdiff([1, 9], [10], padding="exact"), F(5, 13)),  # k = 5: half the reference's mean
    ],
)
def test_values_below_the_table(value, expected):
    assert value == expected


def test_nltk_pair():
    pair = masses_from_gaps("000100010000"), masses_from_gaps("000001001000")
    assert pk(*pair, k=2) == F(6, 11)
    assert pk(*reversed(pair), k=2) == F(6, 11)


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


def test_unsegmented_documents():
    assert boundary_similarity([10], [10]) == segmentation_similarity([10], [10]) == 1
    assert boundary_similarity([1], [1]) == segmentation_similarity([1], [1]) == 1
    assert alignment([10], [10]) == alignment([1], [1]) == 1
    assert ghd([10], [10]) == 0
    for precision, recall, f in (
        (winpr_precision, winpr_recall, winpr),
        (bed_precision, bed_recall, bed),
    ):
        assert precision([10], [5, 5]) is None
        assert recall([10], [5, 5]) == f([10], [5, 5]) == 0
        assert precision([5, 5], [10]) == f([5, 5], [10]) == 0
        assert recall([5, 5], [10]) is None
        assert precision([10], [10]) is recall([10], [10]) is f([10], [10]) is None


def test_a_reference_without_boundaries_has_no_misses():
    assert pr_miss([5, 5], [10], k=2) is None
    assert pr_error([5, 5], [10], k=2) is None
    assert pr_false_alarm([5, 5], [10], k=2) == F(2, 8)


def test_empty_sets_of_the_f_measures():
    for f in (f1, w_f1, w_f1_one_to_one):
        assert f([10], [10]) == 1
        assert f([10], [5, 5]) == 0
        assert f([5, 5], [10]) == 0
        assert f([2, 8], [8, 2]) == 0
    assert bor([5, 5], [10]) is None
    assert bor([10], [10]) is None
    assert bor([10], [5, 5]) == 0


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
def test_pk_prime_is_windowdiff(pair, k):
    # With P_seg counted on the same windows the two conditional rates add up to WindowDiff.
    assert pk_prime(*pair, k=k) == windowdiff(*pair, k=k)


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


def test_pr_error_of_the_complement():
    complement = masses_from(set(range(1, 10)) - boundaries(REFERENCE), 10)
    assert pr_error(complement, REFERENCE, k=2) == F(1, 4)  # 4 of 8 windows have too many
    assert pr_error(complement, REFERENCE, k=1) == F(8, 9)  # reaches 1 - q / 2 with q = 2/9


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


def test_equally_cheap_alignments_take_the_fewest_edits():
    # Four moves by 1 and two single edits cost 4/3 + 2; five moves by 2 cost 10/3 as well.
    hypothesis = masses_from([1, 4, 7, 10, 13], 16)
    reference = masses_from([3, 6, 9, 12, 15], 16)
    assert boundary_similarity(hypothesis, reference, n_t=3) == F(1, 3)
    assert bed(hypothesis, reference, n_t=3) == F(1, 3)
    assert segmentation_similarity(hypothesis, reference, n_t=3) == 1 - F(10, 45)
    # segeval goes by distance and lands on the other alignment.
    as_segeval = F(segeval.boundary_similarity(hypothesis, reference, n_t=3))
    assert as_segeval == decimals(F(4, 9), 12)


def all_matchings(left, right, reach):
    if not left:
        yield []
        return
    yield from all_matchings(left[1:], right, reach)
    for partner in right:
        if abs(left[0] - partner) <= reach:
            rest = [boundary for boundary in right if boundary != partner]
            for matching in all_matchings(left[1:], rest, reach):
                yield [(left[0], partner), *matching]


@given(documents(max_units=9), st.integers(0, 3))
def test_outcomes_of_every_matching(pair, reach):
    left, right = (tuple(sorted(boundaries(masses))) for masses in pair)
    outcomes = {
        (len(matching), sum(abs(a - b) for a, b in matching))
        for matching in all_matchings(left, right, reach)
    }
    assert matching_outcomes(left, right, reach) == outcomes


@given(documents(), st.integers(1, 4))
def test_edit_metrics_are_symmetric(pair, n_t):
    hypothesis, reference = pair
    for metric in (boundary_similarity, segmentation_similarity, bed):
        assert metric(hypothesis, reference, n_t) == metric(reference, hypothesis, n_t)
    assert bed_precision(hypothesis, reference, n_t) == bed_recall(reference, hypothesis, n_t)
    assert ghd(hypothesis, reference, 3, 1) == ghd(reference, hypothesis, 1, 3)


@given(documents(), st.integers(1, 4))
def test_bed_f_is_harmonic_mean_and_never_below_b(pair, n_t):
    precision, recall, f = (metric(*pair, n_t) for metric in (bed_precision, bed_recall, bed))
    if precision and recall:
        assert f == 2 * precision * recall / (precision + recall)
    if f is not None:
        assert f >= boundary_similarity(*pair, n_t)  # credit per mean count, per union


@given(documents())
def test_without_near_misses_bed_is_exact_f1(pair):
    if pair != ([sum(pair[0])], [sum(pair[0])]):
        assert bed(*pair, n_t=1) == f1(*pair)


# nltk 3.10, nltk.metrics.segmentation: (reference, hypothesis, ins, del, shift, distance).
GHD_EXAMPLES = [
    ("1100100000", "1100010000", 1, 1, 0.5, 0.5),
    ("1100100000", "1100000001", 1, 1, 0.5, 2),
    ("011", "110", 1, 1, 0.5, 1),
    ("1", "0", 1, 1, 0.5, 1),
    ("111", "000", 1, 1, 0.5, 3),
    ("000", "111", 1, 2, 0.5, 6),
]


@pytest.mark.parametrize(("reference", "hypothesis", "ins", "del_", "shift", "d"), GHD_EXAMPLES)
def test_ghd_of_published_examples(reference, hypothesis, ins, del_, shift, d):
    pair = masses_from_gaps(hypothesis), masses_from_gaps(reference)
    assert ghd(*pair, ins=ins, del_=del_, shift=shift) == F(d)


# Ocampo Diaz & Ouyang (2022) ------------------------------------------------------------------

# Figures 10, 11, 12 and 16: hypothesis, reference, A, B, 1 - WD at k = 2. The masses follow from
# what the paper says of the drawings and from the values; the authors' own examples have them too.
FIGURES = [
    ("10 h1", [7, 3, 1, 3], [5, 5, 1, 3], 0.83, 0.50, 0.67),
    ("10 h2", [5, 4, 1, 4], [5, 5, 1, 3], 0.60, 0.50, 0.67),
    ("11 h1", [2, 2, 4, 6], [2, 2, 5, 5], 0.91, 0.83, 0.83),
    ("11 h2", [3, 1, 5, 5], [2, 2, 5, 5], 0.79, 0.83, 0.83),
    ("12 h1", [5, 9, 1], [9, 5, 1], 0.70, 0.33, 0.69),
    ("12 h2", [5, 9, 1], [8, 6, 1], 0.76, 0.33, 0.69),
    ("12 h3", [6, 8, 1], [8, 6, 1], 0.83, 0.33, 0.69),
    ("12 h4", [6, 8, 1], [7, 7, 1], 0.91, 0.75, 0.85),
    ("12 h5", [7, 7, 1], [7, 7, 1], 1, 1, 1),
    ("16 h0", [9, 1], [1, 8, 1], 0.67, 0.50, 0.88),
    ("16 h1", [2, 7, 1], [1, 8, 1], 0.79, 0.75, 0.88),
    ("16 h2", [3, 6, 1], [1, 8, 1], 0.58, 0.33, 0.62),
]


@pytest.mark.parametrize(
    ("hypothesis", "reference", "a", "b", "one_minus_wd"),
    [figure[1:] for figure in FIGURES],
    ids=[figure[0] for figure in FIGURES],
)
def test_alignment_figures(hypothesis, reference, a, b, one_minus_wd):
    assert alignment(hypothesis, reference) == decimals(a, 2)
    assert alignment(reference, hypothesis) == alignment(hypothesis, reference)
    assert boundary_similarity(hypothesis, reference) == decimals(b, 2)
    assert 1 - windowdiff(hypothesis, reference, k=2) == decimals(one_minus_wd, 2)


def test_alignment_by_hand():
    # Figure 16, h2: the first segment leans to the second of the reference, a third edge of four.
    assert alignment_edges([3, 6, 1], [1, 8, 1]) == {(0, 0), (0, 1), (1, 1), (2, 2)}
    assert alignment([3, 6, 1], [1, 8, 1]) == (F(1, 3) + F(2, 9) + F(6, 8) + 1) / 4
    assert alignment([1] * 4, [4]) == F(1, 4)


def test_alignment_ties():
    # Unit ratios tie for the middle segment, {2, 3}: Jaccard 1/3 to the shorter {3, 4} wins.
    assert alignment_edges([3, 2], [2, 2, 1]) == {(0, 0), (1, 1), (1, 2)}
    # Nothing breaks this tie: the leftmost.
    assert alignment_edges([3, 3], [2, 2, 2]) == {(0, 0), (0, 1), (1, 2)}


@pytest.mark.parametrize(
    ("reference", "better", "worse"),
    [
        ([1, 1, 10, 10], [1, 1, 12, 8], [2, 1, 9, 10]),  # appendix A, six of six judges each
        ([1, 2, 8, 8], [1, 2, 9, 7], [2, 1, 8, 8]),
        ([8, 8], [10, 6], [11, 5]),
        ([3, 3], [4, 2], [6]),  # Figure 2
        ([1, 2, 4, 4], [1, 2, 5, 3], [2, 1, 4, 4]),  # Figure 3
    ],
)
def test_alignment_agrees_with_the_judges(reference, better, worse):
    assert alignment(better, reference) > alignment(worse, reference)


@pytest.mark.parametrize("reference", [[3] * 6, [1, 2, 3, 4, 5, 6], [7, 1, 1, 2, 9, 1]])
def test_pure_merges_score_segments_per_segment(reference):
    """Figure 9 prints .58 for six segments merged into three; mutual edges counted once give 1/2.

    The Jaccard indices of the parts of a merged segment add up to 1.
    """
    one_bad = [*reference[:2], sum(reference[2:])]
    pairs_merged = [sum(reference[i : i + 2]) for i in (0, 2, 4)]
    assert alignment(one_bad, reference) == alignment(pairs_merged, reference) == F(1, 2)


@given(documents())
def test_alignment_is_symmetric(pair):
    hypothesis, reference = pair
    edges = alignment_edges(reference, hypothesis)
    assert {(j, i) for i, j in edges} == alignment_edges(hypothesis, reference)
    assert 0 < alignment(hypothesis, reference) <= 1
    assert (alignment(hypothesis, reference) == 1) == (hypothesis == reference)


# Ocampo Diaz & Ouyang (2024) ------------------------------------------------------------------


def constant(value):
    return lambda a, b: value


@pytest.mark.parametrize("reference", [[4, 4, 4], [1, 2, 3], [5, 2, 9]])
def test_insertion_bias_of_alignment(reference):
    first, *others = reference
    assert alignment([first, sum(others)], reference) == F(2, 3)  # Figure 7, h1
    assert alignment([first, others[0], 1, others[1] - 1], reference) == F(3, 4)  # h2
    assert alignment([1] * 7, [7]) == F(1, 7)  # Figure 9
    assert alignment([4, 4, 2], [8, 2]) == alignment([8, 1, 1], [8, 2]) == F(2, 3)  # Figure 10


def test_sed_of_single_operations():
    c = F(1, 4)
    assert sed(REFERENCE, REFERENCE, constant(c)) == 0
    assert sed([5, 5], [10], constant(c)) == 1 - c * F(8, 9) * (1 - c)  # split
    assert sed([10], [5, 5], constant(c)) == 1 - c * F(8, 9) * c  # merge
    assert sed([2, 5, 3], [10], constant(c)) == 1 - c * F(7, 9) * (1 - c)
    assert sed([6, 4], [5, 5], constant(c)) == F(1, 2)  # (1 - c) + c over two operations
    assert sed([1] * 7, [7], constant(1)) == sed([1] * 7, [7], constant(0)) == 1  # Figure 9


def test_sed_prefers_a_split_of_the_larger_segment():
    # Figure 10, with segments that hold together as wholes and not as parts.
    def cohesion(a, b):
        return 1 if set(a) & set(b) else 0

    larger, smaller = sed([4, 4, 2], [8, 2], cohesion), sed([8, 1, 1], [8, 2], cohesion)
    assert (larger, smaller) == (F(1, 14), F(1, 2))


def test_sed_chunks_of_figure_11():
    reference, hypothesis = segments([4, 2, 2, 3]), segments([2, 2, 4, 3])
    (chunks,) = chunkings(reference, hypothesis)
    assert [(len(r), len(h)) for r, h in chunks] == [(1, 2), (2, 1), (1, 1)]


def test_sed_sees_extra_units_on_both_sides():
    seen = []

    def cohesion(a, b):
        seen.append((a, b))
        return F(1, 3)

    # Three times 1:1; the middle segments are {3} and {1, ..., 5}.
    ((_, middle, _),) = [
        c for c in chunkings(*map(segments, ([3, 1, 3], [1, 5, 1]))) if len(c) == 3
    ]
    assert chunk_cost(middle, cohesion) == 1 - F(1, 3)
    assert seen == [((3,), (1, 2, 4, 5))]


def test_sed_argument_order_of_cohesion():
    seen = []

    def cohesion(a, b):
        seen.append((a, b))
        return F(1, 2)

    chunk_cost(([(0, 1, 2)], [(0,), (1,), (2, 3)]), cohesion)
    assert set(seen) == {
        ((0, 1, 2), (0, 1, 2, 3)),
        ((0,), (1,)),
        ((0,), (2, 3)),
        ((1,), (2, 3)),
    }
    seen.clear()
    chunk_cost(([(0, 1)], [(1, 2)]), cohesion)
    assert seen == [((0, 1), (2,)), ((0, 1), (0,))]


def test_sed_ties_take_the_most_operations():
    # A merge and a split cost 2, three transpositions (1 + 0) + (1 + 0) + 0 as well.
    assert sed([3, 2, 1], [2, 2, 2], constant(0)) == F(2, 3)


def pseudocode_total(hypothesis, reference, cohesion):
    """Section 3.1's recursion: smallest total and, for it, most operations."""
    r, h = segments(reference), segments(hypothesis)

    def meet(i, j):
        return bool(set(r[i - 1]) & set(h[j - 1]))

    def added(before, chunk):
        total, operations = before
        return total + chunk_cost(chunk, cohesion), operations - 1

    table = {(0, 0): (F(0), 0)}
    for i in range(1, len(r) + 1):
        for j in range(1, len(h) + 1):
            if not meet(i, j):
                continue
            options = [((i - 1, j - 1), ([r[i - 1]], [h[j - 1]]))]
            z = min(x for x in range(1, j + 1) if meet(i, x))
            y = min(x for x in range(1, i + 1) if meet(x, j))
            options += [((i - 1, x - 1), ([r[i - 1]], h[x - 1 : j])) for x in (z, z + 1) if x < j]
            options += [((x - 1, j - 1), (r[x - 1 : i], [h[j - 1]])) for x in (y, y + 1) if x < i]
            reached = [added(table[before], chunk) for before, chunk in options if before in table]
            if reached:
                table[i, j] = min(reached)
    return table[len(r), len(h)]


@given(documents(max_units=9), st.integers(0, 2**32))
@examples(150)
def test_sed_pseudocode_misses_no_chunking(pair, seed):
    def cohesion(a, b):
        return F(hash((seed, a, b)) % 17, 16)

    total, negative_operations = pseudocode_total(*pair, cohesion)
    assert sed(*pair, cohesion) == total / -negative_operations


def test_lexical_cohesion():
    def same(s, t):
        return 1 if s == t else F(4, 5) if s[0] == t[0] else F(3, 5)

    assert lexical_cohesion(["cat"], ["cat"], same) == 1
    assert lexical_cohesion(["cat"], ["dog"], same) == 0  # .6 stays below .7
    assert lexical_cohesion(["cat", "dog"], ["cat"], same) == F(2, 3)  # 1/2 and 1
    assert lexical_cohesion(["cat"], ["cow", "cat"], same) == F(18, 19)  # 1 and 9/10
    assert lexical_cohesion(["cat"], ["dog"], same, threshold=F(3, 5)) == F(3, 5)
    assert lexical_cohesion([], ["cat"], same) == lexical_cohesion([], [], same) == 0


# Coen -----------------------------------------------------------------------------------------


def test_every_reference_boundary_near_a_hypothesis_one_is_recalled():
    hypothesis, reference = masses_from([5], 10), masses_from([4, 6], 10)
    assert w_f1(hypothesis, reference) == 1
    assert w_f1_one_to_one(hypothesis, reference) == F(2, 3)
    assert f1(hypothesis, reference) == 0
    crowd = masses_from([4, 5, 6], 10)  # three near one: precision 1 under window coverage
    assert w_f1(crowd, masses_from([5], 10)) == 1
    assert w_f1_one_to_one(crowd, masses_from([5], 10)) == F(1, 2)
    assert bor(crowd, masses_from([5], 10)) == 3


def test_one_to_one_matching_is_maximum():
    hypothesis, reference = masses_from([3, 4], 10), masses_from([2, 3], 10)
    assert w_f1_one_to_one(hypothesis, reference) == 1  # 3-2 and 4-3, not only the exact 3-3
    assert f1(hypothesis, reference) == F(1, 2)


def test_window_of_w_f1():
    assert w_f1([3, 7], [5, 5], w=1) == 0
    assert w_f1([3, 7], [5, 5], w=2) == 1
    assert w_f1(masses_from([2, 8], 10), masses_from([1, 5, 6], 10)) == F(2, 5)  # 1/2 and 1/3


def test_purity_and_coverage():
    assert purity([9, 1], [5, 5]) == F(3, 5)
    assert coverage([9, 1], [5, 5]) == F(9, 10)
    assert purity([10], REFERENCE) == F(1, 2)
    assert coverage([10], REFERENCE) == 1  # Table 3: no boundary has coverage 1
    assert purity(ONES, REFERENCE) == 1
    assert coverage(ONES, REFERENCE) == F(3, 10)


@given(documents(), st.integers(1, 11))
def test_refinement_raises_purity_and_lowers_coverage(pair, cut):
    hypothesis, reference = pair
    n = sum(reference)
    refined = masses_from((boundaries(hypothesis) | {cut}) & set(range(1, n)), n)
    assert purity(refined, reference) >= purity(hypothesis, reference)
    assert coverage(refined, reference) <= coverage(hypothesis, reference)
    assert purity(hypothesis, reference) == coverage(reference, hypothesis)


@given(documents(), st.integers(0, 3))
def test_order_of_the_f_measures(pair, w):
    assert f1(*pair) == w_f1(*pair, w=0) == w_f1_one_to_one(*pair, w=0)
    assert f1(*pair) <= w_f1_one_to_one(*pair, w=w) <= w_f1(*pair, w=w)


# segeval and nltk, where they are right -------------------------------------------------------


@given(documents(max_units=20), st.integers(1, 8))
def test_segeval_windows(pair, k):
    if k < sum(pair[0]):
        assert F(segeval.pk(*pair, window_size=k)) == decimals(pk(*pair, k=k), 12)
        assert F(segeval.window_diff(*pair, window_size=k)) == decimals(windowdiff(*pair, k=k), 12)
    padded = segeval.window_diff(*pair, window_size=k, lamprier_et_al_2007_fix=True)
    assert F(padded) == decimals(windowdiff(*pair, k=k, padding="segeval"), 12)


@given(documents(max_units=20))
def test_segeval_windows_of_its_own_size(pair):
    if window_size(pair[1]) < sum(pair[1]):
        assert F(segeval.pk(*pair)) == decimals(pk(*pair), 12)
        assert F(segeval.window_diff(*pair)) == decimals(windowdiff(*pair), 12)


@given(documents(max_units=16))
def test_segeval_similarities(pair):
    if pair != ([sum(pair[0])], [sum(pair[0])]):
        similarity = F(segeval.boundary_similarity(*pair))
        assert similarity == decimals(boundary_similarity(*pair), 12)
        assert F(segeval.segmentation_similarity(*pair)) == decimals(
            segmentation_similarity(*pair), 12
        )


@given(documents(max_units=20), st.integers(1, 8))
def test_nltk_windows(pair, k):
    hypothesis, reference = map(gaps_of, pair)
    if k < sum(pair[0]):
        assert nltk_segmentation.pk(reference, hypothesis, k) == decimals(pk(*pair, k=k), 12)
        differing = nltk_segmentation.windowdiff(reference, hypothesis, k)
        assert differing == decimals(windowdiff(*pair, k=k), 12)


@given(documents(max_units=9), *[st.sampled_from([0, 0.25, 0.5, 1, 2, 5])] * 3)
@examples(150)
def test_nltk_ghd(pair, ins, del_, shift):
    hypothesis, reference = map(gaps_of, pair)
    assert nltk_segmentation.ghd(reference, hypothesis) == ghd(*pair)
    costs = {"ins_cost": ins, "del_cost": del_, "shift_cost_coeff": shift}
    assert nltk_segmentation.ghd(reference, hypothesis, **costs) == ghd(*pair, ins, del_, shift)


# segeval and nltk, where they are wrong -------------------------------------------------------
