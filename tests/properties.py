"""How many random examples a property test takes, and a property of every study."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from reffree.evaluate.result import Result

USUAL = 100
"""Examples of a property that does not say otherwise, in an ordinary run."""

EXPLORED = 20
"""How many times as many `--hypothesis-profile=explore` takes, of every property."""

# A slow machine is no failure. Examples differ from run to run; one that fails is printed with the
# line that repeats it.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}


def register_profiles() -> None:
    """Make both profiles known and load the ordinary one."""
    # As Hypothesis does by itself: a check of one change is not the place to find what others left.
    in_ci = bool(os.environ.get("CI"))
    settings.register_profile("usual", max_examples=USUAL, derandomize=in_ci, **COMMON)
    settings.register_profile("explore", max_examples=USUAL * EXPLORED, **COMMON)
    settings.load_profile("usual")


def examples(number: int) -> settings:
    """So many examples in an ordinary run; under another profile as many times more as it takes."""
    return settings(max_examples=max(1, number * settings.default.max_examples // USUAL))


def intervals_held(result: Result) -> int:
    """Check that every value of a study's tables lies in the interval beside it; count them."""
    held = 0
    for table in result.tables:
        for column in (each for each in table.fields if each.interval):
            spans = table.column(column.interval)
            for value, span in zip(table.column(column.name), spans, strict=True):
                if span is not None:
                    assert span[0] <= value <= span[1], (table.name, column.name, value, span)
                    held += 1
    return held
