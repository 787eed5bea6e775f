"""Run cases by number, and tell a refusal from a failure."""

from __future__ import annotations

import traceback
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import click

from reffree.util.errors import ReffreeError
from tests.fuzz.attacks import ATTACKS
from tests.fuzz.doors import DOORS

LONGEST = 1_500
"""Characters of a refusal: it names its place and lists what exists, and is still a sentence."""


def run_case(door: str, seed: int, case: int) -> str | None:
    """Try one damaged input; return the failure's traceback, None where it was read or refused."""
    with TemporaryDirectory() as folder:
        try:
            (DOORS | ATTACKS)[door](Random(f"{door} {seed} {case}"), Path(folder))
        except (ReffreeError, click.UsageError) as refusal:
            told = str(refusal)
            is_sentence = told and "\n" not in told and len(told) <= LONGEST
            return None if is_sentence else f"no sentence: {told[:3000]!r}"
        except Exception:
            return traceback.format_exc()
    return None
