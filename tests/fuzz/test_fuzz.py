"""Some hundreds of damaged inputs, a few attacks; ``python -m tests.fuzz`` tries thousands."""

from __future__ import annotations

import pytest

from tests.fuzz.attacks import small_disk
from tests.fuzz.doors import DOORS
from tests.fuzz.running import run_case

SEED = 11


def check(door, cases):
    """Hold every input to be read, or refused in a sentence."""
    told = {case: run_case(door, SEED, case) for case in range(cases)}
    failed = {case: failure for case, failure in told.items() if failure is not None}
    command = f"python -m tests.fuzz --door {door} --seed {SEED} --case"
    assert not failed, "\n".join(f"{command} {case}\n{text}" for case, text in failed.items())


@pytest.mark.parametrize("door", DOORS)
def test_damaged_input_is_read_or_refused_in_a_sentence(door):
    check(door, 25)


def test_commands_end_well_when_interrupted():
    check("interrupt", 4)


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    try:
        with small_disk(tmp_path, 4):
            pass
    except OSError as error:
        pytest.skip(f"may not mount a small disk: {error}")
    check("full-disk", 4)


def test_servers_get_no_more_than_they_should():
    check("endpoint", 25)
