"""The cache keeps what it was given, shares it, and refuses whatever it cannot vouch for."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from reffree.encoders.base import Encoded, EncoderSpec
from reffree.encoders.cache import (
    CachedEncoder,
    EmbeddingCache,
    cache_files,
    cache_path,
    remove,
)
from reffree.errors import CacheError

SPEC = EncoderSpec(
    name="org/Tiny Model",
    revision="r1",
    pooling="mean",
    normalisation="l2",
    dtype="float32",
    max_length=8,
    backend="test",
)


def vector(text: str) -> np.ndarray:
    digest = hashlib.sha256(text.encode()).digest()
    return np.frombuffer(digest, dtype=np.uint8)[:6].astype(np.float32) / 255


class HashEncoder:
    """Three texts a batch, in reverse; optionally stops after some texts, as Ctrl-C would."""

    def __init__(self, spec=SPEC, stop_after=None):
        self.spec = spec
        self.stop_after = stop_after
        self.seen = []

    def stream(self, texts):
        order = list(range(len(texts)))[::-1]
        for start in range(0, len(order), 3):
            batch = order[start : start + 3]
            if self.stop_after is not None and len(self.seen) >= self.stop_after:
                raise KeyboardInterrupt
            self.seen += [texts[i] for i in batch]
            yield Encoded(
                batch, np.stack([vector(texts[i]) for i in batch]), [len(texts[i]) for i in batch]
            )


def collect(encoder, texts):
    vectors, tokens = {}, {}
    for encoded in encoder.stream(texts):
        for i, v, t in zip(encoded.positions, encoded.vectors, encoded.tokens, strict=True):
            assert i not in vectors
            vectors[i], tokens[i] = v, t
    return np.stack([vectors[i] for i in range(len(texts))]), [tokens[i] for i in range(len(texts))]


def open_cached(folder, **keywords):
    inner = HashEncoder(**keywords)
    return CachedEncoder(inner, EmbeddingCache(cache_path(folder, inner.spec), inner.spec)), inner


TEXTS = [f"text {i} — naïve ☃" for i in range(1300)]


def test_second_run_computes_nothing(tmp_path):
    first, inner = open_cached(tmp_path)
    expected, tokens = collect(first, TEXTS)
    assert sorted(inner.seen) == sorted(TEXTS)
    second, inner = open_cached(tmp_path)
    got, again = collect(second, TEXTS)
    assert inner.seen == []
    assert_array_equal(got, expected)
    assert_array_equal(got, np.stack([vector(t) for t in TEXTS]))
    assert again == tokens == [len(t) for t in TEXTS]


def test_only_missing_texts_are_computed_and_order_is_kept(tmp_path):
    first, _ = open_cached(tmp_path)
    collect(first, TEXTS[:50])
    second, inner = open_cached(tmp_path)
    got, _ = collect(second, TEXTS[40:60])
    assert sorted(inner.seen) == sorted(TEXTS[50:60])
    assert_array_equal(got, np.stack([vector(t) for t in TEXTS[40:60]]))


def test_an_interrupted_run_resumes(tmp_path):
    first, inner = open_cached(tmp_path, stop_after=700)
    with pytest.raises(KeyboardInterrupt):
        collect(first, TEXTS)
    done = set(inner.seen)
    assert len(done) >= 700
    second, inner = open_cached(tmp_path)
    got, _ = collect(second, TEXTS)
    assert set(inner.seen) == set(TEXTS) - done
    assert_array_equal(got, np.stack([vector(t) for t in TEXTS]))


def test_every_ingredient_of_the_spec_gets_a_file_of_its_own(tmp_path):
    paths = {cache_path(tmp_path, SPEC)}
    for field in fields(EncoderSpec):
        value = getattr(SPEC, field.name)
        changed = 9 if isinstance(value, int) else f"{value}x"
        paths.add(cache_path(tmp_path, replace(SPEC, **{field.name: changed})))
    assert len(paths) == 1 + len(fields(EncoderSpec))
    assert cache_path(tmp_path, SPEC).name.startswith("tiny-model-")


WRITER = """
import sys
from pathlib import Path
from tests.test_cache import TEXTS, open_cached, collect
encoder, _ = open_cached(Path(sys.argv[1]))
collect(encoder, TEXTS[int(sys.argv[2]):int(sys.argv[3])])
"""


OPENER = """
import sys, time
from pathlib import Path
from tests.test_cache import SPEC, EmbeddingCache, cache_path
Path(sys.argv[1], f"ready{sys.argv[2]}").touch()
while not Path(sys.argv[1], "go").exists():
    pass
EmbeddingCache(cache_path(Path(sys.argv[1]), SPEC), SPEC)
"""


def test_processes_may_create_a_file_at_the_same_moment(tmp_path, pytestconfig):
    openers = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, str(tmp_path), str(i)],
            cwd=pytestconfig.rootpath,
            stderr=subprocess.PIPE,
        )
        for i in range(6)
    ]
    while len(list(tmp_path.glob("ready*"))) < 6:
        assert all(opener.poll() is None for opener in openers)
    (tmp_path / "go").touch()
    for opener in openers:
        _, errors = opener.communicate(timeout=120)
        assert opener.returncode == 0, errors.decode()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE meta SET value = '{' WHERE name = 'name'",
        "DROP TABLE meta",
        "DROP TABLE v",
        "UPDATE v SET tokens = 'many'",
        "UPDATE v SET e = 'text'",
    ],
)
def test_damaged_tables_offer_a_rebuild(tmp_path, damage):
    db = sqlite3.connect(filled(tmp_path))
    db.execute(damage)
    db.commit()
    db.close()
    with pytest.raises(CacheError, match="reffree cache rm tiny-model"):
        collect(open_cached(tmp_path)[0], TEXTS[:20])


def test_a_checksum_covers_text_and_tokens(tmp_path):
    db = sqlite3.connect(filled(tmp_path))
    first, second = db.execute("SELECT k, e FROM v LIMIT 2").fetchall()
    db.execute("DELETE FROM v WHERE k = ?", [second[0]])
    db.execute("UPDATE v SET k = ? WHERE k = ?", [second[0], first[0]])
    db.commit()
    db.close()
    with pytest.raises(CacheError, match="checksum"):
        collect(open_cached(tmp_path)[0], TEXTS[:20])


def test_processes_share_a_file(tmp_path, pytestconfig):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(start), str(start + 700)],
            cwd=pytestconfig.rootpath,
            stderr=subprocess.PIPE,
        )
        for start in (0, 300, 600)
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors.decode()
    last, inner = open_cached(tmp_path)
    got, _ = collect(last, TEXTS)
    assert inner.seen == []
    assert_array_equal(got, np.stack([vector(t) for t in TEXTS]))
    assert list(last.cache.verify())[-1] == len(TEXTS)


def filled(tmp_path):
    encoder, _ = open_cached(tmp_path)
    collect(encoder, TEXTS[:20])
    encoder.cache.close()
    return cache_path(tmp_path, SPEC)


def test_a_flipped_bit_is_never_read_as_a_vector(tmp_path):
    path = filled(tmp_path)
    db = sqlite3.connect(path)
    key, blob = db.execute("SELECT k, e FROM v LIMIT 1").fetchone()
    db.execute("UPDATE v SET e = ? WHERE k = ?", [bytes([blob[0] ^ 1]) + blob[1:], key])
    db.commit()
    db.close()
    encoder, _ = open_cached(tmp_path)
    with pytest.raises(CacheError, match=r"a row that fails its checksum.*reffree cache rm tiny-"):
        collect(encoder, TEXTS[:20])
    with pytest.raises(CacheError, match="checksum"):
        list(encoder.cache.verify())


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"\0" * 4096, b"{}"])
def test_a_foreign_file_gives_a_sentence(tmp_path, content):
    path = cache_path(tmp_path, SPEC)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(CacheError, match=r"damaged or foreign file.*--no-cache"):
        EmbeddingCache(path, SPEC)
    assert path.read_bytes() == content


def test_a_foreign_database_is_left_as_it_is(tmp_path):
    path = cache_path(tmp_path, SPEC)
    path.parent.mkdir(parents=True)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE recipes (name TEXT)")
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(CacheError, match="a file that reffree did not make"):
        EmbeddingCache(path, SPEC)
    assert path.read_bytes() == before


def test_a_truncated_file_gives_a_sentence(tmp_path):
    path = filled(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CacheError, match=r"damaged|malformed"):
        collect(open_cached(tmp_path)[0], TEXTS[:20])


def test_vectors_of_another_encoder_are_refused(tmp_path):
    path = filled(tmp_path)
    other = replace(SPEC, revision="r2")
    path.rename(cache_path(tmp_path, other))
    with pytest.raises(CacheError, match="vectors of another encoder, 'org/Tiny Model'"):
        EmbeddingCache(cache_path(tmp_path, other), other)


def test_another_schema_version_is_refused(tmp_path):
    path = filled(tmp_path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(CacheError, match="another version of reffree"):
        EmbeddingCache(path, SPEC)


def test_a_place_that_cannot_be_written_gives_a_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CacheError, match=r"Not a directory.*another --cache-dir"):
        EmbeddingCache(cache_path(tmp_path / "file", SPEC), SPEC)


def test_remove_takes_the_logs_too(tmp_path):
    path = filled(tmp_path)
    size = path.stat().st_size
    assert cache_files(tmp_path) == [path]
    assert remove([path]) >= size
    assert list(path.parent.iterdir()) == []
