"""A limited cache forgets what was used longest ago, by count and never by clock."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from reffree.encoders.cache import CachedEncoder, EmbeddingCache, cache_files, cache_path
from reffree.encoders.cache.eviction import environment_limit, evict, parse_limit
from reffree.util.errors import OptionError
from tests.encoders.cache.test_store import SPEC, HashEncoder, collect, filled, open_cached, vector
from tests.properties import examples

OTHER = replace(SPEC, revision="r2")
CORPORA = {name: [f"{name} {i}" for i in range(512)] for name in "abcd"}
"""Two blocks of 256 rows each."""


def cached(folder, spec=SPEC):
    """Return the names of the corpora that are still whole, and check that others are gone."""
    with EmbeddingCache(cache_path(folder, spec), spec) as cache:
        left = {
            name: sum(len(e.positions) for e in cache.get(texts)) for name, texts in CORPORA.items()
        }
    return {name for name, n in left.items() if n == 512}, sum(left.values())


def size(folder):
    sizes = []
    for path in cache_files(folder):
        with EmbeddingCache(path) as cache:
            sizes.append(cache.used_bytes())
    return sum(sizes)


def evict_some(folder, part):
    """Evict down to a part of what the rows take."""
    empty = folder / "empty"
    EmbeddingCache(cache_path(empty, SPEC), SPEC).close()
    least = size(empty) * len(cache_files(folder))
    return evict(cache_files(folder), int(least + part * (size(folder) - least)))


def test_the_least_recently_used_rows_go_first(tmp_path):
    for name in "abc":
        filled(tmp_path, CORPORA[name])
    filled(tmp_path, CORPORA["a"])  # nothing new, but used
    done = evict_some(tmp_path, 0.4)
    assert cached(tmp_path)[0] == {"a"}
    assert done.rows >= 512
    assert done.after == size(tmp_path) < done.before
    assert cache_path(tmp_path, SPEC).stat().st_size == done.after  # the disk has it back
    got, _ = collect(open_cached(tmp_path)[0], CORPORA["b"])
    assert_array_equal(got, np.stack([vector(text) for text in CORPORA["b"]]))


def test_reading_again_writes_nothing(tmp_path):
    for name in "ab":
        filled(tmp_path, CORPORA[name])
    path = cache_path(tmp_path, SPEC)
    before = path.read_bytes()
    filled(tmp_path, CORPORA["b"])  # the last that was used
    assert path.read_bytes() == before
    filled(tmp_path, CORPORA["a"])
    noted = path.read_bytes()
    changed = np.frombuffer(noted, np.uint8) != np.frombuffer(before, np.uint8)
    assert 0 < changed.sum() < 100  # a number per block and the file's counters, no row
    filled(tmp_path, CORPORA["a"])
    filled(tmp_path, CORPORA["a"][:100])
    assert path.read_bytes() == noted


def test_use_is_compared_over_all_files_of_the_folder(tmp_path):
    filled(tmp_path, CORPORA["a"], SPEC)
    filled(tmp_path, CORPORA["b"], OTHER)
    filled(tmp_path, CORPORA["c"], SPEC)
    filled(tmp_path, CORPORA["a"], SPEC)
    evict_some(tmp_path, 0.72)
    assert cached(tmp_path, SPEC)[0] == {"a", "c"}
    assert cached(tmp_path, OTHER)[1] == 0
    evict_some(tmp_path, 0.6)
    assert cached(tmp_path, SPEC)[0] == {"a"}


def test_a_clock_going_backwards_changes_nothing(tmp_path, monkeypatch):
    now = 2e9
    for name, spec in [("a", OTHER), ("b", SPEC), ("c", OTHER), ("d", SPEC)]:
        now -= 1e6
        monkeypatch.setattr(time, "time", lambda now=now: now)
        path = filled(tmp_path, CORPORA[name], spec)
        os.utime(path, (now, now))
    evict_some(tmp_path, 0.3)
    assert (cached(tmp_path, SPEC)[0], cached(tmp_path, OTHER)[1]) == ({"d"}, 0)


@examples(8)
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6), st.floats(0.05, 0.95))
def test_what_stays_was_used_after_all_that_went(tmp_path_factory, runs, part):
    folder = tmp_path_factory.mktemp("cache")
    for name in runs:
        filled(folder, CORPORA[name])
    evict_some(folder, part)
    last_use = {name: i for i, name in enumerate(runs)}
    by_use = sorted(last_use, key=last_use.get)
    whole, left = cached(folder)
    # Whole corpora in order of use, at most one of them halved; blocks are halves of a corpus.
    assert whole == set(by_use[len(by_use) - len(whole) :])
    assert left - 512 * len(whole) in (0, 256)


def test_the_limit_is_kept_while_writing(tmp_path, monkeypatch):
    limit = 600_000
    monkeypatch.setenv("REFFREE_CACHE_LIMIT", "600000")
    filled(tmp_path, CORPORA["a"], OTHER)
    texts = [f"{i} of many" for i in range(4000)]
    encoder, inner = open_cached(tmp_path)
    got, _ = collect(encoder, texts)
    assert_array_equal(got, np.stack([vector(text) for text in texts]))
    assert len(inner.seen) == 4000 == encoder.n_encoded
    assert size(tmp_path) <= limit
    assert cached(tmp_path, OTHER)[1] == 0
    kept = 4000 - len(encoder.missing(texts))
    assert kept + encoder.n_evicted == 4000 + 512
    assert kept > 500
    # The encoder goes backwards, so the first texts are the newest rows.
    assert encoder.missing(texts[:256]) == []
    encoder.cache.close()
    parts = [cache_path(tmp_path, SPEC), cache_path(tmp_path, OTHER)]
    assert sum(path.stat().st_size for path in parts) <= limit


def test_a_given_limit_goes_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("REFFREE_CACHE_LIMIT", "1K")
    cache = EmbeddingCache(cache_path(tmp_path, SPEC), SPEC)
    encoder = CachedEncoder(HashEncoder(), cache, limit=10**9)
    collect(encoder, CORPORA["a"])
    assert cached(tmp_path)[0] == {"a"}
    monkeypatch.setenv("REFFREE_CACHE_LIMIT", "much")
    with pytest.raises(OptionError, match=r"REFFREE_CACHE_LIMIT 'much'.*such as 500M"):
        CachedEncoder(HashEncoder(), cache)
    monkeypatch.setenv("REFFREE_CACHE_LIMIT", "")
    assert environment_limit() is None


def test_what_cannot_be_read_is_left_and_named(tmp_path):
    path = filled(tmp_path, CORPORA["a"])
    foreign = path.with_name("foreign.sqlite")
    foreign.write_bytes(b"something else" * 1000)
    Path(f"{path.parent}/folder.sqlite").mkdir()
    done = evict(cache_files(tmp_path), 1)
    assert done.unreadable == (path.parent / "folder.sqlite", foreign)
    assert done.rows == 512
    assert foreign.read_bytes() == b"something else" * 1000
    collect(open_cached(tmp_path)[0], CORPORA["a"])  # the others' damage is not this run's


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1), ("2K", 2048), ("1.5 MiB", 3 << 19), ("2g", 2 << 30), ("1TB", 1 << 40)],
)
def test_sizes(text, expected):
    assert parse_limit(text, "--cache-limit") == expected


@pytest.mark.parametrize("text", ["", "0", "-1M", "1X", "M", "1e9", "nan", "1 000"])
def test_no_sizes(text):
    with pytest.raises(OptionError, match="--cache-limit"):
        parse_limit(text, "--cache-limit")
