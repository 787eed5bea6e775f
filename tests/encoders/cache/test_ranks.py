"""Ranks share the missing texts, tell each other of failures, and none waits for ever.

Kept apart from what needs a model: every rank imports this file.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.encoders import launcher
from reffree.encoders.cache import EmbeddingCache, cache_path
from reffree.encoders.device import split_devices
from reffree.encoders.fill_cache import Filled, fill, split_by_length
from reffree.encoders.launcher import RankError, Ranks, SingleProcess, launch
from reffree.util.errors import CacheError, EncoderError
from tests.encoders.cache.test_store import SPEC, TEXTS, HashEncoder, open_cached


@given(st.lists(st.text(max_size=6), max_size=40), st.integers(1, 5), st.data())
def test_shares_are_a_partition_in_even_parts(texts, n, data):
    positions = data.draw(st.permutations(range(len(texts))))[: len(texts) // 2]
    shares = split_by_length(texts, positions, n)
    assert sorted(i for share in shares for i in share) == sorted(positions)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    longest = max((len(texts[i]) for i in positions), default=0)
    amounts = [sum(len(texts[i]) for i in share) for share in shares]
    assert max(amounts) - min(amounts) <= longest


def test_devices_are_named_one_by_one_or_all():
    assert split_devices("auto") == ["auto"]
    assert split_devices("cuda:0, cuda:1") == ["cuda:0", "cuda:1"]
    with pytest.raises(EncoderError, match="'all': found no CUDA devices"):
        split_devices("all")


def test_filling_alone(tmp_path):
    encoder, inner = open_cached(tmp_path)
    assert fill(encoder, TEXTS[:50], SingleProcess()) == Filled(cached=0, encoded=[50], evicted=0)
    assert fill(encoder, TEXTS[:80], SingleProcess()).cached == 50
    assert sorted(inner.seen) == sorted(TEXTS[:80])


class SlowEncoder(HashEncoder):
    """Says when it has begun, and takes its time."""

    def __init__(self, begun):
        super().__init__()
        self.begun = begun

    def stream(self, texts):
        for encoded in super().stream(texts):
            yield encoded
            self.begun.touch()
            time.sleep(0.01)


def fails_in_the_second(rank):
    if rank == 1:
        raise CacheError("the disk is full; expected room; free some")


def fails_everywhere(rank):
    raise EncoderError("no such model")


def has_a_mistake(rank):
    if rank == 1:
        raise ZeroDivisionError("a mistake")


def is_killed(rank):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def as_rank(folder):
    """One rank's work: fill a cache, then fail in every way; notes what it saw."""
    ranks = Ranks()
    encoder, inner = open_cached(folder)
    notes = {"filled": fill(encoder, TEXTS, ranks).encoded, "seen": inner.seen}
    texts = TEXTS[:5] if ranks.rank == 0 else TEXTS[:6]
    steps = {
        "another_corpus": lambda: fill(encoder, texts, ranks),
        "fails_in_the_second": lambda: ranks.run(lambda: fails_in_the_second(ranks.rank)),
        "fails_everywhere": lambda: ranks.run(lambda: fails_everywhere(ranks.rank)),
        "has_a_mistake": lambda: ranks.run(lambda: has_a_mistake(ranks.rank)),
        "is_killed": lambda: ranks.run(lambda: is_killed(ranks.rank)),
        "alone": lambda: fill(encoder, TEXTS, ranks),
    }
    for name, step in steps.items():
        (folder / f"rank{ranks.rank}.json").write_text(json.dumps(notes))
        try:
            step()
        except (RankError, ZeroDivisionError) as error:
            notes[name] = f"{type(error).__name__}: {error}"
    (folder / f"rank{ranks.rank}.json").write_text(json.dumps(notes))
    sys.exit(1)


def test_ranks_share_the_work_and_no_failure_hangs_them(tmp_path, monkeypatch):
    monkeypatch.setattr(launcher, "PARTING_SECONDS", 120)  # what the first does after a kill
    assert launch(as_rank, [tmp_path], 2) == 1
    first, second = (json.loads((tmp_path / f"rank{i}.json").read_text()) for i in range(2))
    assert first["filled"] == second["filled"] == [650, 650]
    assert sorted(first["seen"] + second["seen"]) == sorted(TEXTS)  # none twice
    with EmbeddingCache(cache_path(tmp_path, SPEC), SPEC) as cache:
        assert list(cache.verify())[-1] == len(TEXTS)
    different = "RankError: rank 1: found another corpus or encoder than the first rank's; "
    assert first["another_corpus"].startswith(different)
    assert second["another_corpus"] == first["another_corpus"]
    full = "RankError: rank 1: the disk is full; expected room; free some"
    assert first["fails_in_the_second"] == second["fails_in_the_second"] == full
    same = "RankError: no such model"
    assert first["fails_everywhere"] == second["fails_everywhere"] == same
    assert first["has_a_mistake"] == "RankError: rank 1: a mistake"
    assert second["has_a_mistake"] == "ZeroDivisionError: a mistake"
    assert first["is_killed"].startswith("RankError: another rank has ended (")
    assert first["alone"].startswith("RankError: another rank has ended (")


def ends_early(how):
    """A process that ends before it has met the others, while they wait for it."""
    if os.environ["RANK"] == "1":
        if how == "slow exit":  # what it held is closed before it has an exit code, as in any kill
            os.closerange(3, 256)
            time.sleep(0.3)
            os._exit(4)
        sys.exit(3) if how == "exit" else os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


@pytest.mark.parametrize(
    ("how", "told"),
    [("exit", "with code 3"), ("kill", "by SIGKILL"), ("slow exit", "with code 4")],
)
def test_a_process_that_ends_early_ends_the_others(how, told, monkeypatch):
    monkeypatch.setattr(launcher, "PARTING_SECONDS", 0.2)
    monkeypatch.setattr(launcher, "INTERRUPTED_SECONDS", 0.2)
    with pytest.raises(EncoderError, match=f"process 2 of 2 ended {told}; expected it to finish"):
        launch(ends_early, [how], 2)
    assert multiprocessing.active_children() == []


def slowly(folder):
    """One process's work that needs no words with the others, so no torch either."""
    rank = int(os.environ["RANK"])
    encoder, _ = open_cached(folder)
    encoder.inner = SlowEncoder(folder / f"begun{rank}")
    for _ in encoder.stream(TEXTS[rank::2]):
        pass


INTERRUPTED = """
import sys
from pathlib import Path
from reffree.encoders.launcher import launch
from tests.encoders.cache.test_ranks import slowly
if __name__ == "__main__":
    try:
        launch(slowly, [Path(sys.argv[1])], 2)
    except KeyboardInterrupt:
        sys.exit(130)
"""


def test_an_interrupt_keeps_what_every_process_has_encoded(tmp_path, pytestconfig):
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    process = subprocess.Popen(
        [sys.executable, script, tmp_path],
        env={**os.environ, "PYTHONPATH": str(pytestconfig.rootpath)},
        start_new_session=True,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 120
    while not all((tmp_path / f"begun{rank}").exists() for rank in range(2)):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 130, errors
    assert b"Traceback" not in errors
    with EmbeddingCache(cache_path(tmp_path, SPEC), SPEC) as cache:
        assert 6 <= list(cache.verify())[-1] < len(TEXTS)
