"""Progress of long work: lines where no bar is watched, and the seconds of stages."""

from __future__ import annotations

import time

import click
import pytest

from reffree.cli.messages import progress
from reffree.util.progress import Timed


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that the test sets; the package's own reads it."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("stages", "steps", "lines"),
    [
        (1, 25, ["Encoding 10 of 25 (40 %)", "Encoding 20 of 25 (80 %)"]),
        (12, 1, ["Encoding 1 of 1 (100 %)"]),  # seconds run on over short stages
        (2, 2, []),
        (1, 0, []),
    ],
)
def test_long_work_says_how_far_it_is_every_some_seconds(clock, capsys, stages, steps, lines):
    with click.Context(click.Command("x")):
        for _ in range(stages):
            with progress("Encoding", steps) as advance:
                for _ in range(steps):
                    clock[0] += 1
                    advance(1)
    assert capsys.readouterr().err.splitlines() == lines


def test_stages_are_timed_once_each(clock):
    timed = Timed()
    assert timed.summary() == "no time"
    for seconds in (1.0, 0.5):
        with timed("Encoding", 2):
            clock[0] += seconds
    assert timed.summary() == "encoding 1.5 s"
    assert timed.summary() == "no time"
