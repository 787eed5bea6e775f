"""The cache keeps what it was given, and refuses or mends whatever it cannot vouch for."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from reffree.encoders.base import EncodedTexts, EncoderSpec
from reffree.encoders.cache import (
    CachedEncoder,
    EmbeddingCache,
    cache_files,
    cache_path,
    choose_files,
    make_rows,
    remove,
)
from reffree.util.errors import CacheError, OptionError, UnknownNameError

SPEC = EncoderSpec(
    **{field.name: "x" for field in fields(EncoderSpec)}
    | {"name": "org/Tiny Model", "revision": "r1", "max_length": 8}
)
DIMENSION = 48


def add(cache, texts, vectors, tokens):
    cache.add(make_rows(cache.fingerprint, texts, vectors, tokens))


def vector(text: str, revision: str = "r1") -> np.ndarray:
    digest = hashlib.blake2b(f"{revision} {text}".encode(), digest_size=DIMENSION).digest()
    return np.frombuffer(digest, dtype=np.uint8).astype(np.float32) / 255


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
            vectors = np.stack([vector(texts[i], self.spec.revision) for i in batch])
            yield EncodedTexts(batch, vectors, [len(texts[i]) for i in batch])


def collect(encoder, texts):
    vectors, tokens = {}, {}
    for encoded in encoder.stream(texts):
        for i, v, t in zip(encoded.positions, encoded.vectors, encoded.tokens, strict=True):
            assert i not in vectors
            vectors[i], tokens[i] = v, t
    return np.stack([vectors[i] for i in range(len(texts))]), [tokens[i] for i in range(len(texts))]


def open_cached(folder, **keywords):
    inner = HashEncoder(**keywords)
    cache = EmbeddingCache(cache_path(folder, inner.spec), inner.spec)
    return CachedEncoder(lambda: inner, cache, inner.spec), inner


TEXTS = [f"text {i} — naïve ☃" for i in range(1300)]


def filled(folder, texts=TEXTS[:20], spec=SPEC):
    """Write texts to a cache as a whole run does, and return its file."""
    encoder, _ = open_cached(folder, spec=spec)
    collect(encoder, texts)
    encoder.cache.close()
    return cache_path(folder, spec)


def change(path, statement, *values):
    db = sqlite3.connect(path)
    db.execute(statement, values)
    db.commit()
    db.close()


def test_second_run_computes_nothing(tmp_path):
    first, inner = open_cached(tmp_path)
    expected, tokens = collect(first, TEXTS)
    assert sorted(inner.seen) == sorted(TEXTS)
    assert first.n_encoded == len(TEXTS)
    second, inner = open_cached(tmp_path)
    got, again = collect(second, TEXTS)
    assert inner.seen == []
    assert second.n_encoded == 0
    assert_array_equal(got, expected)
    assert_array_equal(got, np.stack([vector(t) for t in TEXTS]))
    assert again == tokens == [len(t) for t in TEXTS]
    assert list(second.cache.verify())[-1] == len(TEXTS)


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
    ingredients = [field for field in fields(EncoderSpec) if field.compare]
    for field in ingredients:
        value = getattr(SPEC, field.name)
        changed = 9 if isinstance(value, int) else f"{value}x"
        paths.add(cache_path(tmp_path, replace(SPEC, **{field.name: changed})))
    assert len(paths) == 1 + len(ingredients)
    assert cache_path(tmp_path, SPEC).name.startswith("tiny-model-")
    long = cache_path(tmp_path, replace(SPEC, name="m" * 300))
    EmbeddingCache(long, replace(SPEC, name="m" * 300)).close()


def test_a_row_of_another_encoder_fails_its_checksum(tmp_path, caplog):
    """Even one copied into the file by hand: a row belongs to its fingerprint."""
    other = replace(SPEC, revision="r2")
    source = filled(tmp_path / "a", spec=other)
    target = filled(tmp_path / "b", TEXTS[20:40])
    db = sqlite3.connect(target)
    db.execute("ATTACH ? AS other", [str(source)])
    db.execute("INSERT INTO v (k, e, tokens, checksum) SELECT k, e, tokens, checksum FROM other.v")
    db.commit()
    db.close()
    got, _ = collect(open_cached(tmp_path / "b")[0], TEXTS[:40])
    assert_array_equal(got, np.stack([vector(t) for t in TEXTS[:40]]))
    assert "found 20 rows failing the checksum; encoded again" in caplog.text


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE meta SET value = '{' WHERE name = 'spec'",
        "UPDATE meta SET value = '3' WHERE name = 'spec'",
        "UPDATE meta SET value = '\"r1\"' WHERE name = 'fingerprint'",
        "DELETE FROM meta",
        "DROP TABLE meta",
        "DROP TABLE v",
        "UPDATE meta SET value = 'many' WHERE name = 'dimension'",
    ],
)
def test_damaged_tables_offer_a_rebuild(tmp_path, damage):
    change(filled(tmp_path), damage)
    with pytest.raises(CacheError, match="reffree cache rm tiny-model"):
        collect(open_cached(tmp_path)[0], TEXTS[:20])


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE v SET tokens = 'many' WHERE id <= 3",
        "UPDATE v SET tokens = tokens + 1 WHERE id <= 3",
        "UPDATE v SET e = 'text' WHERE id <= 3",
        "UPDATE v SET e = substr(e, 5) WHERE id <= 3",
        "UPDATE v SET e = substr(e, 5) || substr(e, 1, 4) WHERE id <= 3",
        "UPDATE v SET checksum = 0 WHERE id <= 3",
        "UPDATE v SET e = (SELECT e FROM v WHERE id = 9), tokens = (SELECT tokens FROM v WHERE "
        "id = 9), checksum = (SELECT checksum FROM v WHERE id = 9) WHERE id <= 3",
    ],
)
def test_a_damaged_row_is_encoded_again_and_told(tmp_path, damage, caplog):
    path = filled(tmp_path)
    change(path, damage)
    encoder, inner = open_cached(tmp_path)
    with pytest.raises(CacheError, match=r"found 3 of 20 rows that fail their checksum.*cache rm"):
        list(encoder.cache.verify())
    for _ in range(2):
        got, tokens = collect(encoder, TEXTS[:20])
        assert_array_equal(got, np.stack([vector(t) for t in TEXTS[:20]]))
        assert tokens == [len(t) for t in TEXTS[:20]]
    assert len(inner.seen) == 3
    assert list(encoder.cache.verify())[-1] == 20
    (note,) = caplog.messages
    assert note.startswith(f"reffree: note: {path}: found 3 rows failing the checksum; encoded")


def test_files_are_chosen_by_name(tmp_path):
    paths = [tmp_path / f"{name}.sqlite" for name in ("tiny-1", "tiny-12", "wide-3")]
    assert choose_files(["w", "tiny-1", "tiny-12"], paths) == [paths[2], paths[0], paths[1]]
    with pytest.raises(OptionError, match=r"'tiny', with which several .* one of tiny-1, tiny-12"):
        choose_files(["tiny"], paths)
    with pytest.raises(UnknownNameError, match="unknown cache file 'wider'; did you mean"):
        choose_files(["wider"], paths)


def test_a_row_that_another_process_mended_stays(tmp_path):
    path = filled(tmp_path)
    change(path, "UPDATE v SET tokens = tokens + 1 WHERE id = 3")
    encoder, _ = open_cached(tmp_path)
    (at,) = encoder.missing(TEXTS[:20])
    collect(open_cached(tmp_path)[0], TEXTS[:20])
    change(path, "UPDATE v SET id = 3 WHERE id = 20")  # the mended row, or another, has that id now
    add(encoder.cache, ["new"], vector("new")[None], [3])
    assert open_cached(tmp_path)[0].missing([*TEXTS[:20], "new"]) in ([], [at])
    assert 3 in {row[0] for row in sqlite3.connect(path).execute("SELECT id FROM v")}


def test_what_is_no_vector_of_this_encoder_is_not_stored(tmp_path):
    encoder, _ = open_cached(tmp_path)
    collect(encoder, TEXTS[:20])
    with pytest.raises(CacheError, match=f"vectors of {DIMENSION} numbers where the .* gives 3;"):
        add(encoder.cache, ["a"], np.ones((1, 3), np.float32), [1])
    assert encoder.missing(["a"]) == [0]


def is_foreign(path):
    change(path, "CREATE TABLE recipes (name TEXT)")


def is_of_another(path):
    filled(path.parents[2] / "a", spec=replace(SPEC, revision="r")).rename(path)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda path: path.write_bytes(b"not a database" * 100), "a damaged or foreign file"),
        (lambda path: path.write_bytes(b"\0" * 4096), "a damaged or foreign file"),
        (is_foreign, "a file that reffree did not make"),
        (is_of_another, "vectors of another encoder, 'org/Tiny Model'"),
    ],
)
def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path, make, found):
    path = cache_path(tmp_path, SPEC)
    path.parent.mkdir(parents=True)
    make(path)
    before = path.read_bytes()
    with pytest.raises(CacheError, match=rf"found {found}.*cache rm .*--cache off"):
        EmbeddingCache(path, SPEC)
    assert path.read_bytes() == before


def test_versions_of_the_layout_keep_apart(tmp_path):
    path = filled(tmp_path)
    old = path.parents[1] / "v1" / path.name
    old.parent.mkdir()
    shutil.copy(path, old)
    assert cache_files(tmp_path) == [path]
    assert cache_files(tmp_path, old=True) == [old]
    change(path, "PRAGMA user_version = 99")
    with pytest.raises(CacheError, match="another version of reffree"):
        EmbeddingCache(path, SPEC)


def test_a_place_that_cannot_be_written_gives_a_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CacheError, match=r"Not a directory.*another.*--cache"):
        EmbeddingCache(cache_path(tmp_path / "file", SPEC), SPEC)
    path = cache_path(tmp_path, SPEC)
    path.mkdir(parents=True)
    with pytest.raises(CacheError, match=r"unable to open database.*another.*--cache"):
        EmbeddingCache(path, SPEC)
    with pytest.raises(CacheError, match="found no such cache file"):
        EmbeddingCache(tmp_path / "none.sqlite")


def test_remove_takes_the_logs_too(tmp_path):
    path = filled(tmp_path)
    Path(f"{path}-wal").touch()
    assert cache_files(tmp_path) == [path]
    remove([path])
    assert list(path.parent.iterdir()) == []


GRAPH = f"onnx-{'0' * 24}"


def test_nothing_is_deleted_through_a_link(tmp_path, run):
    others = tmp_path / "others"
    for name in ("graphs", "facts", "embeddings", "embeddings/v3"):
        cache = tmp_path / name.replace("/", "-")
        (cache / name).parent.mkdir(parents=True)
        shutil.rmtree(others, ignore_errors=True)
        (others / GRAPH).mkdir(parents=True)
        mine = [others / GRAPH / "a", others / "budget-00.json", others / "my.sqlite"]
        mine += [others / "v1" / "my.sqlite", others / "v3" / "my.sqlite"]
        for file in mine:
            file.parent.mkdir(exist_ok=True)
            file.write_text("mine")
        (cache / name).symlink_to(others)
        done = run("cache", "rm", "--all", "--cache", str(cache))
        assert done.returncode == 1
        assert f"{cache / name}: found a link to another folder" in done.stderr
        assert all(file.read_text() == "mine" for file in mine)


def test_of_a_link_in_the_cache_the_link_is_deleted(tmp_path, run):
    others, path = tmp_path / "others", filled(tmp_path)
    others.mkdir()
    path.rename(others / "my.sqlite")
    path.symlink_to(others / "my.sqlite")
    Path(f"{path}-wal").symlink_to(others / "none")
    (others / "a").write_text("mine")
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / GRAPH).symlink_to(others)
    done = run("cache", "rm", "--all", "--cache", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(file.name for file in others.iterdir()) == ["a", "my.sqlite"]
    assert list((tmp_path / "graphs").iterdir()) == []
    assert list(path.parent.iterdir()) == []


READING = """
import os, sys
from pathlib import Path
from reffree.util.errors import CacheError
from tests.encoders.cache.test_store import SPEC, TEXTS, HashEncoder
from reffree.encoders.cache import CachedEncoder, EmbeddingCache, cache_path, remove
if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
path = cache_path(Path(sys.argv[1]), SPEC)
assert not os.access(path.parent, os.W_OK)
with EmbeddingCache(path, SPEC) as cache:
    print(len(list(cache.verify())), cache.n_rows)
    encoder = CachedEncoder(HashEncoder, cache, SPEC)
    texts = TEXTS[:20]
    print(sum(len(part.positions) for part in encoder.stream(texts)), len(encoder.inner.seen))
    print(sum(len(part.positions) for part in encoder.stream(["new"])), len(encoder.inner.seen))
    try:
        remove([path])
    except CacheError as error:
        print(error)
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no such rights here")
def test_a_filled_cache_can_be_read_where_nothing_can_be_written(pytestconfig):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = filled(folder)
        before = path.read_bytes()
        assert [file.name for file in path.parent.iterdir()] == [path.name]
        folders = [folder, path.parent.parent, path.parent]
        for each in folders:
            each.chmod(0o555)
        path.chmod(0o444)
        try:
            root = pytestconfig.rootpath
            how = {"cwd": root, "env": {**os.environ, "PYTHONPATH": str(root)}, "timeout": 240}
            command = [sys.executable, "-c", READING, name]
            done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
        finally:
            for each in folders:
                each.chmod(0o755)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[:3] == ["20 20", "20 0", "1 1"]
        assert "Permission denied; expected a local disk with room and a folder" in done.stdout
        assert done.stderr.count("note") == 1
        assert "is read-only: what is encoded now is not kept" in done.stderr
        assert path.read_bytes() == before
        assert [file.name for file in path.parent.iterdir()] == [path.name]
