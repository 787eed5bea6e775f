"""A few attacks of each kind; ``python -m tests.fuzz --door interrupt --cases 200`` tries many."""

from __future__ import annotations

import pytest

from tests.fuzz.attacks import small_disk
from tests.fuzz.running import run_case

SEED = 5


def failures(door, cases):
    return [told for case in range(cases) if (told := run_case(door, SEED, case)) is not None]


def test_commands_end_well_when_interrupted():
    assert failures("interrupt", 4) == []


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    try:
        with small_disk(tmp_path, 4):
            pass
    except OSError as error:
        pytest.skip(f"may not mount a small disk: {error}")
    assert failures("full-disk", 4) == []


def test_servers_get_no_more_than_they_should():
    assert failures("endpoint", 25) == []
