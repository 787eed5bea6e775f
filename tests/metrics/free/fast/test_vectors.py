"""Memory that is used again: enough, the least that will do, and never much of it kept."""

from __future__ import annotations

import numpy as np
import pytest

from reffree.metrics.free.fast import distances as workspace
from reffree.metrics.free.fast.distances import give_back, take

LARGEST = (1 << 25) // 8  # numbers in 32 MiB


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(workspace, "spare", [])


def test_memory_is_new_where_none_fits():
    assert len(take(5)) == 5
    give_back(np.empty(4))
    assert len(take(5)) == 5
    assert [len(memory) for memory in workspace.spare] == [4]


def test_the_least_that_fits_is_taken_and_no_longer_spare():
    large, fitting = np.empty(9), np.empty(5)
    give_back(large)
    give_back(fitting)
    assert take(5) is fitting
    assert take(5) is large
    assert workspace.spare == []


def test_the_two_largest_are_kept():
    for size in (7, 3, 8, 5):
        give_back(np.empty(size))
    assert sorted(len(memory) for memory in workspace.spare) == [7, 8]


def test_what_is_very_large_is_not_kept():
    give_back(np.empty(LARGEST + 1))
    assert workspace.spare == []
    give_back(np.empty(LARGEST))
    assert len(workspace.spare) == 1
