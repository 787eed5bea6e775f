"""Boundary sets and segment overlap against the written-out definitions and Coen's text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from reffree.data.segmentation import Segmentation
from reffree.metrics.gold.granularity import (
    F1,
    WF1,
    Bor,
    Coverage,
    FailureMode,
    Purity,
    Thresholds,
    WF1OneToOne,
    failure_mode,
)
from reffree.metrics.gold.pairs import Pairs
from reffree.util.errors import InputError
from tests.metrics.gold.test_windows import agree, pairs
from tests.oracles import reference_based as oracles
from tests.properties import examples

METRICS = [F1, WF1, WF1OneToOne, Bor, Purity, Coverage]
TOLERANT = [WF1, WF1OneToOne]


def masses(boundaries, n):
    return list(Segmentation.from_boundaries(boundaries, n).masses)


# The definitions ------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
# The oracle tries every matching, so documents are short.
@given(pair=pairs(max_units=9))
@example(pair=([1], [1]))
@example(pair=([7], [7]))
@example(pair=([7], [3, 4]))
@example(pair=([3, 4], [7]))
@example(pair=([1] * 7, [1] * 7))
@examples(120)
def test_equals_the_definition(metric, pair):
    assert agree(metric()(*pair), getattr(oracles, metric.name)(*pair))


@pytest.mark.parametrize("metric", TOLERANT, ids=lambda metric: metric.name)
@given(pair=pairs(max_units=8), w=st.integers(0, 10))
@examples(80)
def test_any_window_equals_the_definition(metric, pair, w):
    assert agree(metric(w=w)(*pair), getattr(oracles, metric.name)(*pair, w=w))


@pytest.mark.parametrize("metric", [WF1, Purity, Coverage], ids=lambda metric: metric.name)
@given(pair=pairs(max_units=40))
@examples(60)
def test_longer_documents_equal_the_definition(metric, pair):
    assert agree(metric()(*pair), getattr(oracles, metric.name)(*pair))


@given(st.data())
@examples(60)
def test_matching_is_maximum_on_longer_documents(data):
    """Against augmenting paths, for boundaries too many to try every matching."""
    h, r = data.draw(pairs(max_units=40))
    w = data.draw(st.integers(0, 5))
    partner = {}

    def find(boundary, seen):
        for other in oracles.boundaries(r) - seen:
            if abs(other - boundary) <= w:
                seen.add(other)
                if other not in partner or find(partner[other], seen):
                    partner[other] = boundary
                    return True
        return False

    most = sum(find(boundary, set()) for boundary in oracles.boundaries(h))
    assert_array_equal(WF1OneToOne(w=w).counts(Pairs.of(h, r)), [[most, len(h) - 1, len(r) - 1]])


# Published values -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "hypothesis", "reference", "expected"),
    [
        (WF1(), masses([5], 10), masses([4, 6], 10), 1),
        (WF1OneToOne(), masses([5], 10), masses([4, 6], 10), 2 / 3),
        (WF1OneToOne(), masses([3, 4], 10), masses([2, 3], 10), 1),
        (WF1(w=0), masses([3, 4], 10), masses([2, 3], 10), 1 / 2),
        (Purity(), [9, 1], [5, 5], 0.6),
        (Coverage(), [9, 1], [5, 5], 0.9),
        (Coverage(), [5, 5], [9, 1], 0.6),
        # Figure 2: one gold boundary found, three more predicted.
        (F1(), masses([2, 4, 6, 8], 10), masses([4], 10), 0.4),
        (Bor(), masses([2, 4, 6, 8], 10), masses([4], 10), 4),
        (Purity(), masses([2, 4, 6, 8], 10), masses([4], 10), 1),
        # The no-boundary baseline of Table 3 covers all.
        (Coverage(), [10], [2, 3, 5], 1),
        (Bor(), [10], [2, 3, 5], 0),
        (Bor(), [2, 8], [10], None),
        # Empty sets, appendix A.
        *((metric, [10], [10], 1) for metric in (F1(), WF1(), WF1OneToOne())),
        *((metric, [10], [5, 5], 0) for metric in (F1(), WF1(), WF1OneToOne())),
        *((metric, [5, 5], [10], 0) for metric in (F1(), WF1(), WF1OneToOne())),
    ],
)
def test_single_values(metric, hypothesis, reference, expected):
    assert agree(metric(hypothesis, reference), expected)


# What the metrics promise ---------------------------------------------------------------------


@given(pairs(max_units=30), st.data())
@examples(150)
def test_refinement_is_monotone(pair, data):
    """Coen, appendix C: splitting hypothesis segments never lowers purity nor raises coverage."""
    coarse, reference = pair
    n = sum(reference)
    added = data.draw(st.sets(st.integers(1, max(1, n - 1)))) - {n}
    fine = masses(oracles.boundaries(coarse) | added, n)
    batch = Pairs.of([coarse, fine], reference)
    before, after = Purity().counts(batch)[:, 0]
    assert after >= before
    before, after = Coverage().counts(batch)[:, 0]
    assert after <= before


@given(pairs(max_units=30))
@examples(60)
def test_coverage_is_purity_the_other_way_round(pair):
    hypothesis, reference = pair
    assert Coverage()(hypothesis, reference) == Purity()(reference, hypothesis)


@given(pairs(max_units=30), st.integers(0, 5))
@examples(60)
def test_f1_variants_are_ordered(pair, w):
    exact, one, many = (m(*pair) for m in (F1(), WF1OneToOne(w=w), WF1(w=w)))
    assert exact <= one + 1e-12
    assert one <= many + 1e-12
    assert WF1OneToOne(w=0)(*pair) == WF1(w=0)(*pair) == exact


def test_summed_counts_give_the_pooled_value():
    batch = Pairs.of([[5, 5], [10], [1, 1, 1, 1]], [[4, 6], [2, 8], [4]])

    def pooled(metric):
        return metric.value(metric.counts(batch).sum(0))

    # Boundaries: hypothesis {5}, {}, {1, 2, 3}; reference {4}, {2}, {}.
    assert pooled(F1()) == 0
    assert_allclose(pooled(WF1()), 2 * (1 / 4) * (1 / 2) / (1 / 4 + 1 / 2))
    assert_allclose(pooled(WF1OneToOne()), 2 * 1 / (4 + 2))
    assert pooled(Bor()) == 2
    assert_allclose(pooled(Purity()), (9 + 8 + 4) / 24)
    assert_allclose(pooled(Coverage()), (9 + 10 + 1) / 24)
    assert_allclose(WF1().value(WF1().counts(batch)), [1, 0, 0])


def test_only_bor_is_pooled():
    assert [metric.name for metric in METRICS if metric.pooled] == ["bor"]
    assert Bor.pooled is True
    assert Bor.direction == "toward_1"


@pytest.mark.parametrize("metric", TOLERANT, ids=lambda metric: metric.name)
def test_negative_windows_are_refused(metric):
    with pytest.raises(InputError, match="found w = -1; expected a whole number, 0 or more"):
        metric(w=-1)


# Failure modes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("w_f1", "bor", "purity", "coverage", "label"),
    [
        # Table 12 (Tables 9 and 10) of the paper, in its words.
        (0.767, 2.53, 0.962, 0.651, "oversegmentation"),
        (0.738, 2.22, 0.950, 0.757, "oversegmentation"),
        (0.584, 0.81, 0.847, 0.915, "undersegmentation"),
        (0.512, 0.76, 0.785, 0.896, "undersegmentation"),
        (0.288, 5.23, 0.955, 0.565, "granularity mismatch"),
        (0.289, 3.91, 0.939, 0.620, "granularity mismatch"),
        (0.154, 17.56, 0.979, 0.459, "granularity mismatch"),
        # Table 4: TextTiling and CSM.
        (0.648, 1.88, 0.968, 0.746, "oversegmentation"),
        (0.615, 3.97, 0.976, 0.454, "oversegmentation"),
        (0.412, 0.64, 0.749, 0.921, "undersegmentation"),
        # Table 3: no boundary, random with the right number.
        (0.0, 0.0, 0.438, 1.0, "undersegmentation"),
        (0.528, 1.0, 0.839, 0.833, "detection failure"),
        # The right number and near enough by chance: no row of Table 2.
        (0.678, 1.0, 0.883, 0.884, "unclassified"),
        (1.0, 1.0, 1.0, 1.0, "calibrated"),
        (0.8, 1.0, 0.95, 0.7, "unclassified"),
        (0.8, 1.0, 0.7, 0.95, "unclassified"),
        (0.3, 4.0, 0.5, 0.4, "unclassified"),
        (0.8, 0.5, 0.7, 1.0, "unclassified"),
        (0.3, 0.5, 0.7, 0.7, "unclassified"),
        (0.3, 1.0, 0.95, 0.7, "unclassified"),
    ],
)
def test_failure_modes(w_f1, bor, purity, coverage, label):
    mode = failure_mode(w_f1, bor, purity, coverage)
    assert mode.label == label
    assert mode.thresholds == Thresholds()


def test_a_figure_at_its_threshold_is_high_and_not_beyond():
    limits = Thresholds()
    at = {"w_f1": limits.high_w_f1, "purity": limits.high_overlap, "coverage": limits.high_overlap}
    for bor in (limits.sparse_bor, 1.0, limits.dense_bor):
        assert failure_mode(bor=bor, **at).label == "calibrated"
        for name, value in at.items():
            below = at | {name: np.nextafter(value, 0)}
            assert failure_mode(bor=bor, **below).label == "unclassified"
    beyond = np.nextafter(limits.dense_bor, 9)
    assert failure_mode(bor=beyond, **at).label == "oversegmentation"
    assert failure_mode(bor=beyond, **at | {"w_f1": 0.0}).label == "granularity mismatch"
    below = np.nextafter(limits.sparse_bor, 0)
    assert failure_mode(bor=below, **at | {"w_f1": 0.0}).label == "undersegmentation"


def test_the_explanation_states_figures_and_thresholds():
    mode = failure_mode(w_f1=0.412, bor=0.64, purity=0.749, coverage=0.921)
    assert mode.explanation == (
        "coarser than the reference, whose segments it keeps whole: "
        "W-F1 0.412 is low (high from 0.6), BOR 0.64 is < 1 (≈ 1 from 0.9 to 1.5), "
        "purity 0.749 is low (high from 0.89), coverage 0.921 is high (high from 0.89)"
    )


@pytest.mark.parametrize("bor", [None, float("nan")])
def test_without_reference_boundaries_there_is_no_mode(bor):
    expected = "BOR is undefined without reference boundaries"
    assert failure_mode(1.0, bor, 1.0, 1.0) == FailureMode("unclassified", expected, Thresholds())


def test_thresholds_are_part_of_the_answer():
    strict = Thresholds(high_w_f1=0.8)
    mode = failure_mode(0.767, 2.53, 0.962, 0.651, strict)
    assert (mode.label, mode.thresholds) == ("granularity mismatch", strict)
    assert "W-F1 0.767 is low (high from 0.8)" in mode.explanation


@pytest.mark.parametrize(
    ("low", "high"), [(1.2, 1.5), (0.9, 0.95), (0.0, 2.0), (float("nan"), 2.0)]
)
def test_thresholds_leave_room_for_one(low, high):
    with pytest.raises(InputError, match="expected 0 < sparse_bor ≤ 1 ≤ dense_bor"):
        Thresholds(sparse_bor=low, dense_bor=high)
