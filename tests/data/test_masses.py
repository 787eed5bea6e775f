"""Many segmentations as one matrix: lists, matrices and gaps alike, and bad rows are named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from reffree.data.masses import distinct_rows, mass_matrix, masses_from_gaps, stack_masses
from reffree.data.segmentation import Segmentation
from reffree.util.errors import InputError

rows_of_gaps = st.integers(0, 7).flatmap(
    lambda n_gaps: st.lists(
        st.lists(st.booleans(), min_size=n_gaps, max_size=n_gaps), min_size=1, max_size=6
    )
)


def padded(rows: list[list[int]]) -> list[list[int]]:
    width = max(map(len, rows))
    return [row + [0] * (width - len(row)) for row in rows]


@given(rows_of_gaps)
def test_lists_matrices_and_gaps_give_the_same_masses(gaps):
    n_units = len(gaps[0]) + 1
    segmentations = [
        Segmentation.from_labels(row, "gap") if row else Segmentation((1,)) for row in gaps
    ]
    expected = padded([list(s.masses) for s in segmentations])
    matrix = masses_from_gaps(np.array(gaps, dtype=bool).reshape(len(gaps), n_units - 1))
    assert matrix.tolist() == expected
    assert mass_matrix(segmentations, n_units).tolist() == expected
    assert mass_matrix([list(s.masses) for s in segmentations], n_units).tolist() == expected
    assert mass_matrix(matrix, n_units).tolist() == expected


@given(rows_of_gaps)
def test_distinct_rows_are_all_there_once(gaps):
    matrix = mass_matrix([[*row, 3] for row in (np.array(gaps, dtype=int) + 1).tolist()], None)
    distinct, place = distinct_rows(matrix)
    assert_array_equal(distinct[place], matrix)
    assert len(distinct) == len({tuple(row) for row in matrix.tolist()})


def test_no_gap_rows_and_no_lists_are_no_rows():
    assert masses_from_gaps(np.zeros((0, 4), dtype=bool)).shape == (0, 1)
    assert mass_matrix([], 5).shape == (0, 1)


def test_stacked_matrices_are_padded_to_the_widest():
    matrices = [mass_matrix(rows, 4) for rows in ([[4]], [[1, 1, 2], [2, 2]], [[3, 1]])]
    assert stack_masses(matrices).tolist() == [[4, 0, 0], [1, 1, 2], [2, 2, 0], [3, 1, 0]]


@pytest.mark.parametrize(
    "bad", [[2, 0, 3], [0, 2, 3], [0, 0, 5], [2, -1, 4], [4, 2, -1], [-1, 3, 3], [5, 0, -1]]
)
@pytest.mark.parametrize("n_units", [5, None])
def test_a_matrix_has_zeros_only_at_the_end_of_a_row(bad, n_units):
    rows = np.array([[2, 1, 2], [2, 3, 0], [5, 0, 0], bad])
    assert_array_equal(mass_matrix(rows[:3], n_units), rows[:3])
    with pytest.raises(InputError, match="hypothesis 4 with a mass below 1"):
        mass_matrix(rows, n_units)


@pytest.mark.parametrize("bad", [[], [0], [3, 0, 2], [-1, 6], [6, -1]])
@pytest.mark.parametrize("n_units", [5, None])
def test_a_list_has_masses_from_one_up(bad, n_units):
    with pytest.raises(InputError, match="hypothesis 2 with a mass below 1 or none at all"):
        mass_matrix([[1] * 5, bad, [5]], n_units)


@pytest.mark.parametrize("as_matrix", [True, False])
def test_rows_that_cover_other_units_are_named_with_their_number_in_the_whole_list(as_matrix):
    rows = [[2, 3], [4, 1], [4, 2]]
    given = np.array(rows) if as_matrix else rows
    with pytest.raises(InputError, match="hypothesis 13 with masses that sum to 6") as refused:
        mass_matrix(given, 5, "doc", first=10)
    assert "doc" in str(refused.value)
    assert "sum to 5, the number of units" in str(refused.value)
    assert mass_matrix(given, None).tolist() == rows


@pytest.mark.parametrize("bad", [[2.0, 3.0], ["5"], [2**70], [None]])
def test_numbers_that_are_not_whole_are_named(bad):
    with pytest.raises(InputError, match="hypothesis 3 with masses that are not whole"):
        mass_matrix([[2, 3], [5], bad], 5)


@pytest.mark.parametrize(
    "matrix",
    [np.ones(3, dtype=int), np.ones((2, 3)), np.ones((1, 3, 1), int), np.ones((2, 0), int)],
)
def test_what_is_no_matrix_of_masses_is_refused(matrix):
    with pytest.raises(InputError, match="a matrix of shape"):
        mass_matrix(matrix, None)


def test_one_hypothesis_alone_is_no_list_of_them():
    with pytest.raises(InputError, match=r"write \[\[3, 4\]\]"):
        mass_matrix([3, 4], 7)
