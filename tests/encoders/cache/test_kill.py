"""The real thing: killed writers, no room, flipped bits.

The scenes below run in a small process of their own, which can fork quickly since it has neither
torch nor threads.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from reffree.encoders.cache import CachedEncoder, EmbeddingCache, cache_path
from reffree.util.errors import CacheError
from tests.encoders.cache.test_store import (
    SPEC,
    TEXTS,
    HashEncoder,
    add,
    collect,
    filled,
    open_cached,
    vector,
)

ROUNDS = 50


def expected(texts):
    return np.stack([vector(text) for text in texts])


def check(folder, texts):
    """Return how many of the texts are there; whatever is there must be right."""
    with EmbeddingCache(cache_path(folder, SPEC), SPEC) as cache:
        found = 0
        for encoded in cache.get(texts):
            assert_array_equal(encoded.vectors, expected([texts[i] for i in encoded.positions]))
            assert encoded.tokens == [len(texts[i]) for i in encoded.positions]
            found += len(encoded.positions)
        assert not cache.damaged
    return found


def fork(work, *arguments):
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def batch(round_, owner, n, length):
    return [f"{round_} {owner} {n} {i}" for i in range(int(length))]


def write_for_ever(folder, round_, writer, acknowledged):
    """Write rows, some of which the other writer writes too; say so after each commit."""
    rng = random.Random(f"{round_} {writer}")
    cache = EmbeddingCache(cache_path(folder, SPEC), SPEC)
    for n in range(10**6):
        owner = rng.choice([writer, "both"])
        length = rng.choice([1, 30, 600])
        texts = batch(round_, owner, n, length)
        add(cache, texts, expected(texts), [len(text) for text in texts])
        os.write(acknowledged, f"{owner} {n} {length}\n".encode())


def kill_scene(folder, rounds=ROUNDS):
    rng = random.Random(7)
    told = []
    rounds_told = n_right = 0
    for round_ in range(rounds):
        # Every fifth round has a file of its own and no patience, so that its making is hit too.
        is_fresh = round_ % 5 == 0
        where = folder / f"fresh{round_}" if is_fresh else folder
        log = os.open(folder / "acknowledged", os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_APPEND)
        pids = [fork(write_for_ever, where, round_, w, log) for w in ("one", "two")]
        goal = 0 if is_fresh else rng.randint(1, 150)  # bytes: a dozen commits
        time.sleep(rng.uniform(0.001, 0.03))
        while os.fstat(log).st_size < goal:
            time.sleep(0.0005)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        lines = Path(folder / "acknowledged").read_text().splitlines()
        os.close(log)
        texts = sorted({text for line in lines for text in batch(round_, *line.split())})
        rounds_told += bool(texts)
        found = check(where, texts)
        assert found == len(texts)
        n_right += found
        told += [] if is_fresh else texts
    assert check(folder, told) == len(told)
    resumed, inner = open_cached(folder)
    list(resumed.cache.verify())
    more = [*told, *TEXTS]
    got, _ = collect(resumed, more)
    assert_array_equal(got, expected(more))
    assert sorted(inner.seen) == sorted(TEXTS)
    return {"rounds": rounds_told, "rows": len(told), "right": n_right, "again": len(inner.seen)}


def share_scene(folder):
    """Six processes make the file at the same moment, then write overlapping texts."""
    go, wait = os.pipe()[::-1]

    def work(start):
        os.read(wait, 1)
        encoder, _ = open_cached(folder)
        got, _ = collect(encoder, TEXTS[start : start + 400])
        assert_array_equal(got, expected(TEXTS[start : start + 400]))

    pids = [fork(work, start) for start in range(0, 1080, 180)]
    os.write(go, b"123456")
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0
    assert check(folder, TEXTS) == len(TEXTS)
    last, inner = open_cached(folder)
    collect(last, TEXTS)
    return {"again": len(inner.seen), "rows": list(last.cache.verify())[-1]}


def write_until_full(folder):
    """Return the texts whose rows were acknowledged before there was no room, and the sentence."""
    cache = EmbeddingCache(cache_path(folder, SPEC), SPEC)
    done = []

    def write():
        for n in range(10**6):
            texts = [f"{n} {i}" for i in range(200)]
            add(cache, texts, expected(texts), [len(text) for text in texts])
            done.extend(texts)

    with pytest.raises(CacheError) as caught:
        write()
    assert check(folder, done) == len(done) > 0
    return done, str(caught.value)


def file_limit_scene(folder):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    done, sentence = write_until_full(folder)
    # A run that has no room still reads, and says so when it must write.
    encoder, _ = open_cached(folder)
    got, _ = collect(encoder, done[:300])
    assert_array_equal(got, expected(done[:300]))
    with pytest.raises(CacheError, match="choose another folder with --cache"):
        collect(encoder, [f"more {i}" for i in range(4000)])
    return {"sentence": sentence, "acknowledged": len(done), "right": check(folder, done)}


def play(pytestconfig, *scene):
    """Run a scene to its end, which it reaches if all it asserts holds; return what it found."""
    command = [sys.executable, "-m", "tests.encoders.cache.test_kill", *map(str, scene)]
    how = {"cwd": pytestconfig.rootpath, "timeout": 240, "check": False}
    done = subprocess.run(command, capture_output=True, text=True, **how)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_killed_writers_lose_nothing_they_acknowledged(tmp_path, pytestconfig):
    found = play(pytestconfig, "kill", tmp_path)
    assert found["rounds"] >= ROUNDS * 4 / 5  # all but the impatient ones
    assert found["right"] >= found["rows"] > 3_000
    assert found["again"] == len(TEXTS)  # none of those that were acknowledged


def test_processes_share_a_file_from_its_making_on(tmp_path, pytestconfig):
    assert play(pytestconfig, "share", tmp_path) == {"again": 0, "rows": len(TEXTS)}


def test_a_file_that_may_not_grow_gives_a_sentence(tmp_path, pytestconfig):
    found = play(pytestconfig, "file_limit", tmp_path)
    assert "choose another folder with --cache DIR, or pass --cache off" in found["sentence"]
    assert found["right"] == found["acknowledged"] > 0


def damaged_copies(original, rng):
    """Flipped bits, overwritten stretches, pages in each other's place, and cut ends."""
    written = np.flatnonzero(np.frombuffer(original, dtype=np.uint8))
    page = 16384
    for kind in rng.permutation(np.repeat(np.arange(6), [160, 60, 40, 20, 10, 10])):
        content = bytearray(original)
        at = int(rng.integers(len(content)))
        if kind == 0:  # a bit of what is in use
            content[int(rng.choice(written))] ^= 1 << int(rng.integers(8))
        elif kind == 1:  # a bit of the pages that say where everything is
            content[int(rng.choice(written[written < 3 * page]))] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            length = int(rng.integers(1, 600))
            content[at : at + length] = rng.bytes(len(content[at : at + length]))
        elif kind == 3:
            content[at : at + 512] = bytes(len(content[at : at + 512]))
        elif kind == 4:
            a, b = (int(i) * page for i in rng.integers(len(content) // page, size=2))
            content[a : a + page], content[b : b + page] = (
                content[b : b + page],
                content[a : a + page],
            )
        else:
            del content[at:]
        yield bytes(content)


def test_no_damage_to_the_file_gives_a_wrong_vector(tmp_path, caplog):
    """Every run on a damaged file gives the right vectors, mended or not, or a sentence."""
    texts = TEXTS[:300]
    path = filled(tmp_path, texts)
    original = path.read_bytes()
    right = expected(texts)
    refused = mended = untouched = 0
    for content in damaged_copies(original, np.random.default_rng(3)):
        for part in path.parent.iterdir():
            part.unlink()
        path.write_bytes(content)
        inner = HashEncoder()
        try:
            with EmbeddingCache(path, SPEC) as cache:
                got, tokens = collect(CachedEncoder(lambda inner=inner: inner, cache, SPEC), texts)
        except CacheError as error:
            refused += "reffree cache rm tiny-model" in str(error)
            continue
        assert_array_equal(got, right)
        assert tokens == [len(text) for text in texts]
        mended += bool(inner.seen)
        untouched += not inner.seen
    # All three happen, or the damage was not where it matters.
    assert min(refused, mended, untouched) > 20, (refused, mended, untouched)
    assert refused + mended + untouched == 300


SCENES = {
    "kill": kill_scene,
    "share": share_scene,
    "file_limit": file_limit_scene,
}

if __name__ == "__main__":
    print(json.dumps(SCENES[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))))  # noqa: T201
