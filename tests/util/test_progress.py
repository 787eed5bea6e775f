"""Progress of long work: lines where no bar is watched, and the seconds of stages."""

from __future__ import annotations

import pytest

from reffree.util import progress
from reffree.util.progress import ProgressLines, Timed


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that the test sets; the package's own reads it."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_long_work_says_how_far_it_is_every_some_seconds(clock):
    lines: list[str] = []
    say = ProgressLines(lines.append, 10)
    with say("Encoding", 5000) as advance:
        for _ in range(25):
            clock[0] += 1
            advance(200)
    assert lines == ["Encoding 2,000 of 5,000 (40 %)", "Encoding 4,000 of 5,000 (80 %)"]


def test_seconds_run_on_over_short_stages(clock):
    lines: list[str] = []
    say = ProgressLines(lines.append, 10)
    for _ in range(12):
        with say("Scoring", 1) as advance:
            clock[0] += 1
            advance(1)
    assert lines == ["Scoring 1 of 1 (100 %)"]


def test_short_work_and_empty_stages_are_silent(clock):
    lines: list[str] = []
    say = ProgressLines(lines.append, 10)
    with say("Loading", 0):
        clock[0] += 100
    with say("Scoring", 2) as advance:
        pass
    assert not lines
    assert callable(advance)


def test_stages_are_timed_once_each(clock):
    timed = Timed()
    assert timed.summary() == "no time"
    for seconds in (1.0, 0.5):
        with timed("Encoding", 2):
            clock[0] += seconds
    assert timed.summary() == "encoding 1.5 s"
    assert timed.summary() == "no time"
