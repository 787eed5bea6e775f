"""``reffree cache``: what is filled once is scored as if it were encoded then; listed, checked."""

from __future__ import annotations

import json
import sqlite3

import pytest

from reffree.encoders.cache import cache_files
from tests.checkpoints import WORDS
from tests.encoders.streams import spelt

UNITS = [f"{a} {b}" for a in WORDS[:6] for b in WORDS[:4]]


def numbers(value):
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [number for each in inner for number in numbers(each)]
    return [value] if isinstance(value, float) else []


@pytest.fixture
def tiny(checkpoint):
    return str(checkpoint("roberta"))


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "c.jsonl"
    document = {"id": "a", "units": UNITS, "gold": [10, 14], "systems": {"s": [12, 12]}}
    other = {"id": "b", "units": [*UNITS[:4], "okay"], "gold": [2, 3], "systems": {"s": [1, 4]}}
    path.write_text(f"{json.dumps(document)}\n{json.dumps(other)}\n")
    return path


@pytest.fixture
def cache(run, tmp_path):
    """Run ``reffree cache`` on a folder of its own; returns its output after exit code 0."""

    def call(*arguments, code=0):
        done = run("cache", *arguments, "--cache", tmp_path / "cache")
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return call


def test_what_is_filled_is_scored_without_an_encoder(run, cache, tiny, corpus, tmp_path):
    told = cache("fill", corpus, "--encoder", tiny, "--encoder", spelt(tiny, pooling="cls"))
    assert told.count("25 distinct texts: 0 cached before, 25 encoded in") == 2
    assert "25 cached before, 0 encoded\n" in cache("fill", corpus, "--encoder", tiny)
    assert "(read-only)" not in told
    how = ("-m", "arp_pair", "-f", "json", "--encoder", tiny)
    kept = run("score", corpus, *how, "--cache", tmp_path / "cache")
    anew = run("score", corpus, *how, "--cache", "off")
    assert kept.returncode == anew.returncode == 0, kept.stderr
    found, expected = (json.loads(done.stdout)["systems"] for done in (kept, anew))
    assert numbers(found) == pytest.approx(numbers(expected), abs=1e-6) != []
    assert len(cache_files(tmp_path / "cache")) == 2


def test_units_are_left_out_and_neighbours_added(cache, tiny, corpus):
    told = cache("fill", corpus, "--encoder", tiny, "--drop", "backchannels")
    assert "24 distinct texts" in told
    assert "1 unit left out as backchannels" in told
    told = cache("fill", corpus, "--encoder", spelt(tiny, context=1))
    assert "26 distinct texts" in told


def test_several_devices_fill_one_file(cache, tiny, corpus, tmp_path):
    assert "0 cached before, 25 encoded" in cache(
        "fill", corpus, "--encoder", tiny, "--device", "cpu,cpu"
    )
    assert "25 cached before" in cache("fill", corpus, "--encoder", tiny)
    assert "25 vectors encoded again" in cache(
        "verify", corpus, "--sample", "99", "--encoder", tiny
    )
    assert len(cache_files(tmp_path / "cache")) == 1


def test_files_are_listed_checked_and_removed(cache, tiny, corpus, tmp_path):
    cache("fill", corpus, "--encoder", tiny)
    (path,) = cache_files(tmp_path / "cache")
    listed = cache("ls")
    assert f"{path.stem}  roberta@sha256:" in listed
    assert "25 vectors of 16" in listed
    assert "1 cache file, " in listed
    assert cache("verify") == f"{path.stem}  ok  25 vectors\n"
    old = path.parents[1] / "v1" / "roberta-00.sqlite"
    old.parent.mkdir()
    old.write_bytes(b"0" * 10**6)
    assert "1 file of other versions of reffree, 1.0 MB: remove with reffree cache rm --o" in cache(
        "ls"
    )
    assert "removed 1 file, 1.0 MB" in cache("rm", "--old")
    assert path.exists()
    cache("rm", "roberta")
    assert cache_files(tmp_path / "cache") == []


def test_damage_is_told_and_mended(cache, tiny, corpus, tmp_path):
    cache("fill", corpus, "--encoder", tiny)
    (path,) = cache_files(tmp_path / "cache")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE v SET tokens = tokens + 1 WHERE id = 3")
    database.close()
    told = cache("verify", code=1)
    assert f"{path.stem}  DAMAGED  " in told
    assert "found 1 damaged cache file" in told
    assert "24 cached before, 1 encoded" in cache("fill", corpus, "--encoder", tiny)
    assert "ok  25 vectors" in cache("verify")


def test_a_sample_finds_what_checksums_cannot(cache, tiny, corpus, tmp_path):
    """Vectors of another model in this one's file, each with a right checksum."""
    from reffree.encoders.cache import EmbeddingCache, make_rows

    cache("fill", corpus, "--encoder", tiny)
    (path,) = cache_files(tmp_path / "cache")
    with EmbeddingCache(path) as opened:
        (found,) = opened.get(UNITS[:3])
        rows = make_rows(opened.fingerprint, UNITS[:3], found.vectors + 0.01, found.tokens)
        opened._db.executemany("UPDATE v SET e = ?2, checksum = ?4 WHERE k = ?1 AND ?3", rows)
    assert "ok" in cache("verify")
    told = cache("verify", corpus, "--sample", "25", "--encoder", tiny, code=1)
    assert "of 25 vectors that differ from what the encoder gives now, largest deviation" in told
    told = cache("verify", corpus, "--sample", "2", "--encoder", spelt(tiny, layer=1), code=1)
    assert "found none of the corpus's texts" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rm"], "name the files, or pass one of --all and --old"),
        (["rm", "x", "--all"], "name the files, or pass one of --all and --old"),
        (["rm", "x"], "unknown cache file 'x'; there is none"),
        (["verify", "--encoder", "minilm"], "--encoder goes with --sample"),
        (["verify", "--sample", "3"], "--sample N needs the corpora"),
        (["fill"], "Missing argument"),
        (["fill", "none.jsonl"], "none.jsonl: found no file of this name"),
        (["fill", "none.jsonl", "--encoder", "m:layer=x"], "layer = 'x'; expected a whole"),
        (["fill", "none.jsonl", "--device", "gpu"], "the device 'gpu'"),
        (["fill", "none.jsonl", "--cache", "off"], "name its folder with --cache DIR"),
    ],
)
def test_wrong_usage(run, tmp_path, arguments, message):
    given = [] if "--cache" in arguments else ["--cache", tmp_path / "cache"]
    done = run("cache", *arguments, *given)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert not cache_files(tmp_path / "cache")
