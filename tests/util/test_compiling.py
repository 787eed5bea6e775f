"""Compiled functions: imported late, kept in a private folder, and the same without numba."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from reffree.metrics.gold.pairs import Pairs
from reffree.metrics.registry import GOLD_METRICS
from reffree.util import compiling
from reffree.util.compiling import code_folder, interpreted, njit

CODE = """
import sys
sys.path.insert(0, {folder!r})
from reffree.util.compiling import code_folder, is_running
import example
assert not is_running()
assert example.twice(3) == 6
assert is_running()
print(sum(example.twice.dispatcher.stats.cache_hits.values()), code_folder())
"""
EXAMPLE = """
from reffree.util.compiling import njit

@njit(cache=True)
def double(x):
    return x + x

@njit(cache=True)
def twice(x):
    return double(x)
"""


@pytest.fixture
def start(tmp_path):
    (tmp_path / "example.py").write_text(EXAMPLE)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run():
        done = subprocess.run(
            [sys.executable, "-c", CODE.format(folder=str(tmp_path))],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            timeout=240,
        )
        hits, _, folder = done.stdout.strip().partition(" ")
        return int(hits), folder, done.stderr

    return run


def files_in(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*.nb*")}


def test_the_second_start_compiles_nothing(start):
    hits, folder, _ = start()
    assert hits == 0
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    before = files_in(folder)
    assert before
    hits, again, said = start()
    assert (hits, again, said) == (1, folder, "")
    assert files_in(folder) == before


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_can_write_is_not_used(start, mode):
    _, folder, _ = start()
    Path(folder).chmod(mode)
    before = files_in(folder)
    hits, found, said = start()
    assert (hits, found) == (0, "None")
    assert "others may write to" in said
    assert said.startswith("reffree: note: compiled code is not kept")
    assert len(said.splitlines()) == 1
    assert files_in(folder) == before


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_folder_is_not_used(start, tmp_path, kind):
    _, folder, _ = start()
    place = Path(folder)
    place.rename(tmp_path / "elsewhere")
    if kind == "link":
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.write_text("")
    hits, found, said = start()
    assert (hits, found) == (0, "None")
    assert "compiled code is not kept" in said


def test_what_belongs_to_another_user_is_not_used(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for cached in (code_folder, compiling._tell_once):
        cached.cache_clear()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    try:
        assert code_folder() is None
    finally:
        monkeypatch.undo()
        code_folder.cache_clear()
    assert "belongs to another user" in capsys.readouterr().err


def test_files_that_are_damaged_are_made_again(start):
    _, folder, _ = start()
    for path in files_in(folder):
        path.write_bytes(path.read_bytes()[:50])
    hits, _, said = start()
    assert hits == 0
    assert "compiled code is not kept" in said


def test_a_full_disk_costs_a_note(monkeypatch, capsys):
    @njit(cache=True)
    def plain(x):
        return x + 1

    def full(*args):
        raise OSError("No space left on device")

    compiling._tell_once.cache_clear()
    monkeypatch.setattr(compiling, "_kept", [plain])
    plain._dispatcher = full
    assert plain(1) == 2
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(set(GOLD_METRICS) - {"sed"}))
def test_python_counts_what_machine_code_counts(name):
    rng = np.random.default_rng(0)
    pairs = Pairs.of(*(rng.random((2, 30, 24)) < np.array([0.1, 0.3])[:, None, None]))
    metric = GOLD_METRICS[name]().over(lambda: [Pairs(pairs.reference, pairs.reference)])
    expected = metric.counts(pairs)
    with interpreted():
        assert_array_equal(metric.counts(pairs), expected)
