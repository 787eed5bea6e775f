"""Some hundreds of damaged inputs; ``python -m tests.fuzz`` tries thousands."""

from __future__ import annotations

import pytest

from tests.fuzz.doors import DOORS
from tests.fuzz.running import run_case

CASES = 25
SEED = 11


@pytest.mark.parametrize("door", DOORS)
def test_damaged_input_is_read_or_refused_in_a_sentence(door):
    told = {case: run_case(door, SEED, case) for case in range(CASES)}
    failed = {case: failure for case, failure in told.items() if failure is not None}
    command = f"python -m tests.fuzz --door {door} --seed {SEED} --case"
    assert not failed, "\n".join(f"{command} {case}\n{text}" for case, text in failed.items())
