"""Rows carried from cache to cache arrive as they were, or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import load_file, save_file

from reffree.encoders.base import EncodedTexts
from reffree.encoders.cache import CachedEncoder, EmbeddingCache, cache_path
from reffree.encoders.cache.encoder import Sample, compare_sample
from reffree.encoders.cache.transfer import Added, export_file, import_file, merge_file
from reffree.util.errors import CacheError
from tests.encoders.cache.test_store import (
    DIMENSION,
    SPEC,
    TEXTS,
    HashEncoder,
    add,
    change,
    collect,
    filled,
    open_cached,
    vector,
)

OTHER = replace(SPEC, revision="r2")


def export(folder, target, spec=SPEC):
    with EmbeddingCache(cache_path(folder, spec), spec) as cache:
        return export_file(cache, target)


def put(folder, texts, vectors, tokens=None):
    with EmbeddingCache(cache_path(folder, SPEC), SPEC) as cache:
        add(cache, texts, vectors.astype(np.float32), tokens or [len(text) for text in texts])


def holds(folder, texts, spec=SPEC):
    encoder, inner = open_cached(folder, spec=spec)
    got, tokens = collect(encoder, texts)
    assert_array_equal(got, np.stack([vector(text, spec.revision) for text in texts]))
    assert tokens == [len(text) for text in texts]
    return inner.seen == []


def test_export_and_import_give_back_every_row(tmp_path):
    filled(tmp_path / "a", TEXTS)
    file = tmp_path / "rows.safetensors"
    assert export(tmp_path / "a", file) == (1300, 0)
    added = import_file(file, tmp_path / "b")
    assert added == Added(cache_path(tmp_path / "b", SPEC), new=1300)
    assert holds(tmp_path / "b", TEXTS)
    assert import_file(file, tmp_path / "b") == Added(added.path, present=1300)
    again = tmp_path / "again.safetensors"
    export(tmp_path / "b", again)
    assert again.read_bytes() == file.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", file.name, again.name}


def test_an_export_says_whose_vectors_it_holds(tmp_path):
    filled(tmp_path)
    file = tmp_path / "rows.safetensors"
    export(tmp_path, file)
    tensors = load_file(file)
    assert {name: x.shape for name, x in tensors.items()} == {
        "keys": (20, 32),
        "vectors": (20, DIMENSION),
        "tokens": (20,),
        "checksums": (20, 8),
    }
    raw = file.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    told = json.loads(header["__metadata__"]["reffree"])
    assert told == {"version": 2, "fingerprint": SPEC.fingerprint, "spec": asdict(SPEC)}


def test_damaged_rows_are_left_out_of_an_export_and_counted(tmp_path):
    change(filled(tmp_path / "a"), "UPDATE v SET tokens = 99 WHERE id <= 3")
    file = tmp_path / "rows.safetensors"
    assert export(tmp_path / "a", file) == (17, 3)
    assert import_file(file, tmp_path / "b").new == 17
    change(filled(tmp_path / "c"), "DELETE FROM v")
    with pytest.raises(CacheError, match="found no vectors to export"):
        export(tmp_path / "c", file)
    assert import_file(file, tmp_path / "d").new == 17
    with pytest.raises(CacheError, match="cannot be written"):
        export(tmp_path / "a", tmp_path / "nowhere" / "rows.safetensors")


def exported(tmp_path):
    """Return what an exported file holds, to write it again with a change."""
    filled(tmp_path / "a")
    file = tmp_path / "rows.safetensors"
    export(tmp_path / "a", file)
    header = {"version": 2, "fingerprint": SPEC.fingerprint, "spec": asdict(SPEC)}
    return file, load_file(file), header


@pytest.mark.parametrize(
    ("change_it", "message"),
    [
        (lambda x, h: x["vectors"].__setitem__((3, 1), 0.25), "1 row failing the checksum"),
        (lambda x, h: x["tokens"].__setitem__(3, 7), "1 row failing the checksum"),
        (lambda x, h: x["keys"].__setitem__((3, 1), 0), "1 row failing the checksum"),
        (lambda x, h: x.pop("tokens"), "the tensors checksums, keys, vectors"),
        (lambda x, h: x.update(tokens=x["tokens"][1:]), "tensors of different lengths"),
        (lambda x, h: x.update(keys=x["keys"][:, 1:].copy()), "keys of shape"),
        (lambda x, h: x.update(vectors=x["vectors"].astype("f8")), "vectors of shape"),
        (lambda x, h: x.update(tokens=x["tokens"][:, None]), "tokens of shape"),
        (lambda x, h: h.update(version=1), "a file of another version"),
        (lambda x, h: h.pop("spec"), "a safetensors file of something else"),
        (lambda x, h: h["spec"].update(revision="r2"), "do not match their fingerprint"),
        (lambda x, h: h["spec"].update(more=1), "do not match their fingerprint"),
        (
            lambda x, h: h.update(fingerprint=OTHER.fingerprint, spec=asdict(OTHER)),
            "20 rows failing the checksum",
        ),
    ],
)
def test_changed_files_are_refused_whole(tmp_path, change_it, message):
    file, tensors, header = exported(tmp_path)
    tensors = {name: x.copy() for name, x in tensors.items()}
    change_it(tensors, header)
    save_file(tensors, file, {"reffree": json.dumps(header)})
    with pytest.raises(CacheError, match=message):
        import_file(file, tmp_path / "b")
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("content", [b"", b"no safetensors", b"\xff" * 100, None])
def test_foreign_files_are_not_imported(tmp_path, content):
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CacheError, match="expected a file as reffree cache export writes it"):
        import_file(file, tmp_path / "b")
    with pytest.raises(CacheError):
        import_file(tmp_path, tmp_path / "b")
    save_file({"x": np.ones(3)}, file)
    with pytest.raises(CacheError, match="of something else"):
        import_file(file, tmp_path / "b")


def test_merging_adds_what_is_missing(tmp_path):
    source = filled(tmp_path / "a", TEXTS[:900])
    other = filled(tmp_path / "a", TEXTS[:30], OTHER)
    filled(tmp_path / "b", TEXTS[600:1300])
    target = cache_path(tmp_path / "b", SPEC)
    assert merge_file(source, tmp_path / "b") == Added(target, new=600, present=300)
    assert merge_file(source, tmp_path / "b") == Added(target, present=900)
    assert merge_file(other, tmp_path / "b").path == cache_path(tmp_path / "b", OTHER)
    assert holds(tmp_path / "b", TEXTS)
    assert holds(tmp_path / "b", TEXTS[:30], OTHER)
    with pytest.raises(CacheError, match="found the very file to merge into"):
        merge_file(target, tmp_path / "b")
    (tmp_path / "x.sqlite").write_bytes(b"foreign" * 1000)
    with pytest.raises(CacheError, match="damaged or foreign"):
        merge_file(tmp_path / "x.sqlite", tmp_path / "b")


def test_a_conflict_is_refused_and_counted(tmp_path):
    texts = TEXTS[:6]
    mine = np.stack([vector(text) for text in texts])
    theirs = mine.copy()
    theirs[0, 3] += 0.5e-5  # rounding
    theirs[1, 3] += 2e-5
    theirs[2] = -theirs[2]
    filled(tmp_path / "b", texts)
    put(tmp_path / "a", texts, theirs, [len(text) + (i == 3) for i, text in enumerate(texts)])
    source = cache_path(tmp_path / "a", SPEC)
    change(source, "UPDATE v SET tokens = 'x' WHERE id = 6")
    added = merge_file(source, tmp_path / "b")
    assert added == Added(added.path, present=2, conflicting=3, damaged=1)
    assert holds(tmp_path / "b", texts)


def test_large_numbers_round_further(tmp_path):
    texts = TEXTS[:2]
    mine = np.full((2, 4), 300.0)
    put(tmp_path / "a", texts, mine + 1e-3)
    put(tmp_path / "b", texts, mine)
    assert merge_file(cache_path(tmp_path / "a", SPEC), tmp_path / "b").present == 2


def test_a_file_of_other_settings_is_not_merged(tmp_path):
    """One whose spec this version would fingerprint otherwise."""
    path = filled(tmp_path / "a")
    spec = json.dumps(asdict(SPEC) | {"pooling": "cls"})
    change(path, "UPDATE meta SET value = ? WHERE name = 'spec'", spec)
    with pytest.raises(CacheError, match="do not match their fingerprint"):
        merge_file(path, tmp_path / "b")
    with pytest.raises(CacheError, match="do not match their fingerprint"):
        export(tmp_path / "a", tmp_path / "rows.safetensors")


def test_merging_keeps_the_limit(tmp_path, monkeypatch):
    source = filled(tmp_path / "a", TEXTS)
    monkeypatch.setenv("REFFREE_CACHE_LIMIT", "300K")
    merge_file(source, tmp_path / "b")
    with EmbeddingCache(cache_path(tmp_path / "b", SPEC)) as cache:
        assert cache.used_bytes() <= 300 * 1024
        assert 0 < cache.n_rows < 1300


class RoundingEncoder(HashEncoder):
    """Gives a text alone a little other numbers than in company, as real ones do."""

    amount = 1e-3

    def stream(self, texts):
        for encoded in super().stream(texts):
            yield EncodedTexts(
                encoded.positions,
                encoded.vectors + np.float32(self.amount * (len(texts) == 1)),
                encoded.tokens,
            )


def test_a_sample_is_encoded_again_and_compared(tmp_path):
    filled(tmp_path, TEXTS[:100])
    encoder, inner = open_cached(tmp_path)
    result = compare_sample(encoder, TEXTS, 30, seed=0)
    assert (result.compared, result.differing, result.largest) == (30, 0, 0.0)
    assert result.allowed == 1e-5
    assert set(inner.seen) <= set(TEXTS[:100])
    assert compare_sample(encoder, TEXTS, 500, seed=0).compared == 100
    assert compare_sample(encoder, TEXTS[200:], 5, seed=0) == Sample(0, 0, 0.0, 1e-5)


def test_a_sample_finds_vectors_that_are_intact_and_wrong(tmp_path):
    texts = TEXTS[:40]
    wrong = np.stack([vector(text) for text in texts])
    wrong[7, 0] += 1e-3
    put(tmp_path, texts, wrong, [len(text) + (i == 9) for i, text in enumerate(texts)])
    encoder, _ = open_cached(tmp_path)
    result = compare_sample(encoder, texts, 40, seed=0)
    assert result.differing == 2
    assert result.largest == pytest.approx(1e-3, rel=1e-3)
    # An encoder that rounds as much itself may have written them.
    rough = CachedEncoder(RoundingEncoder(), encoder.cache)
    result = compare_sample(rough, texts, 40, seed=0)
    assert result.differing == 1
    assert result.allowed == pytest.approx(2e-3, rel=1e-3)
    # Relative to the vectors of all texts together, which are below 1.
    rough.inner.amount = 1.0
    assert compare_sample(rough, texts, 40, seed=0).allowed == pytest.approx(2)
