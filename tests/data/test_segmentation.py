"""Segmentations: every convention reads back what it wrote, and bad values are named."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.data.segmentation import CONVENTIONS, Segmentation
from reffree.util.errors import InputError
from tests.helpers import refusal

segmentations = st.lists(st.integers(1, 9), min_size=1, max_size=12).map(
    lambda masses: Segmentation(tuple(masses))
)
conventions = st.sampled_from(CONVENTIONS)


@given(segmentations, conventions)
def test_labels_round_trip(segmentation, convention):
    labels = segmentation.to_labels(convention)
    assert Segmentation.from_labels(labels, convention) == segmentation
    assert len(labels) == segmentation.n_units - (convention == "gap")
    text = segmentation.to_string(convention)
    assert Segmentation.from_string(text, segmentation.n_units, convention) == segmentation
    assert Segmentation.from_string(segmentation.to_string(), segmentation.n_units) == segmentation


@given(segmentations)
def test_end_string_is_read_without_a_convention_unless_it_starts_with_1(segmentation):
    text = segmentation.to_string("end")
    if text[0] == "1":
        with pytest.raises(InputError, match=r"convention end.*convention start"):
            Segmentation.from_string(text, segmentation.n_units)
    else:
        assert Segmentation.from_string(text, segmentation.n_units) == segmentation


@given(segmentations)
def test_boundaries_and_ids_round_trip(segmentation):
    n_units = segmentation.n_units
    assert Segmentation.from_boundaries(segmentation.boundaries, n_units) == segmentation
    assert Segmentation.from_segment_ids(segmentation.to_segment_ids()) == segmentation


@given(segmentations, st.data())
def test_keep_leaves_the_boundaries_between_the_units_that_stay(segmentation, data):
    n_units = segmentation.n_units
    kept = data.draw(st.lists(st.booleans(), min_size=n_units, max_size=n_units).filter(any))
    ids = [i for i, keep in zip(segmentation.to_segment_ids(), kept, strict=True) if keep]
    shorter = segmentation.keep(kept)
    assert shorter.n_units == sum(kept)
    assert list(shorter.boundaries) == [i + 1 for i, (a, b) in enumerate(pairwise(ids)) if a != b]


@pytest.mark.parametrize(
    ("convention", "labels"),
    [
        ("end", [0, 0, 1, 0, 0]),
        ("end", [0, 0, 1, 0, 1]),
        ("start", [0, 0, 0, 1, 0]),
        ("start", [1, 0, 0, 1, 0]),
        ("gap", [0, 0, 1, 0]),
    ],
)
def test_the_documents_own_ends_may_be_marked_or_not(convention, labels):
    assert Segmentation.from_labels(labels, convention).masses == (3, 2)


def test_masses_are_plain_numbers_whatever_sequence_they_come_in():
    segmentation = Segmentation([np.int64(2), 3])
    assert segmentation == Segmentation((2, 3))
    assert hash(segmentation) == hash(Segmentation((2, 3)))
    assert [type(mass) for mass in segmentation.masses] == [int, int]


@pytest.mark.parametrize("text", ["", "0", "1"])
def test_a_single_unit_has_nothing_to_settle(text):
    assert Segmentation.from_string(text, 1).masses == (1,)


@pytest.mark.parametrize(
    ("masses", "sentence"),
    [
        ((), "found no masses; expected a non-empty list of segment lengths;"),
        ("34", "found 34; expected a non-empty list of segment lengths;"),
        (3, "found 3; expected a non-empty list of segment lengths;"),
        ((3, 0), "found the segment length 0; expected a positive integer;"),
        ((3, -1), "found the segment length -1;"),
        ((3, True), "found the segment length True;"),
        ((3, 2.0), "found the segment length 2.0;"),
        ((3, "2"), "found the segment length '2';"),
        ((0, 0, 1, 0), "found the segment length 0; expected a positive integer; these look like "),
    ],
)
def test_masses_that_are_none(masses, sentence):
    assert refusal(Segmentation, masses).startswith(sentence)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Segmentation.from_boundaries([0, 2], 5), "found the boundary 0; expected an inde"),
        (lambda: Segmentation.from_boundaries([5], 5), "found the boundary 5; expected an index"),
        (lambda: Segmentation.from_boundaries([2, 6], 5), "found the boundary 6; expected an inde"),
        (lambda: Segmentation.from_labels([0, 2]), "found the label 2; expected 0 or 1;"),
        (lambda: Segmentation.from_string("01x", 3), "found the string '01x'; expected only"),
        (lambda: Segmentation.from_string("010", 9), "found a boundary string of 3 characters for"),
        (lambda: Segmentation.from_string("0100", 4, "gap"), "found a boundary string of 4 charac"),
    ],
)
def test_bad_readings_are_named(call, sentence):
    assert refusal(call).startswith(sentence)
