"""Inputs that ask for more memory or time than anybody means: a sentence, before it is spent."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

import reffree
from reffree.encoders.embed import from_file
from reffree.studies import correlate
from reffree.util.bounds import LIMITS, check_limit
from reffree.util.errors import InputError, OptionError, UnknownNameError

UNITS = ["One.", "Two.", "Three."]


def corpus():
    return reffree.Corpus((reffree.Document.build("a", UNITS, systems={"s": [1, 2]}),))


def header(shape, dtype="<f8"):
    """The beginning of an array of numbers that are not there."""
    out = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, described)
    return out.getvalue()


def archive(path, content, name="a.npy"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["a.npy", "a"])
def test_an_archive_that_unpacks_to_much_more(tmp_path, name):
    wide = header((3, 100_000)) + bytes(3 * 100_000 * 8)
    path = archive(tmp_path / "v.npz", wide, name)
    assert path.stat().st_size < 10_000
    found = "v.npz: found vectors of 100,000 numbers; expected at most 65,536; check it, or allow "
    with pytest.raises(InputError, match=f"{found}more with REFFREE_LIMITS=dimension=100000"):
        from_file(corpus(), path)


def test_an_array_that_is_too_wide(tmp_path):
    np.save(tmp_path / "v.npy", np.zeros((3, 70_000), np.float32))
    with pytest.raises(InputError, match="found vectors of 70,000 numbers"):
        from_file(corpus(), tmp_path / "v.npy")


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_a_header_that_promises_more_than_there_is(tmp_path, kind):
    content = header((3, 60_000)) + bytes(100)
    if kind == "npy":
        (tmp_path / "v.npy").write_bytes(content)
    else:
        archive(tmp_path / "v.npz", content)
    with pytest.raises(InputError, match="found a file that is no array of numbers"):
        from_file(corpus(), tmp_path / f"v.{kind}")


def test_all_vectors_together(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "v.npz", a=np.zeros((3, 1000)))
    monkeypatch.setenv("REFFREE_LIMITS", "embedding_bytes=23999")
    with pytest.raises(InputError, match="found 24,000 bytes of vectors; expected at most 23,999"):
        from_file(corpus(), tmp_path / "v.npz")
    monkeypatch.setenv("REFFREE_LIMITS", "dimension=1000,embedding_bytes=24000")
    assert from_file(corpus(), tmp_path / "v.npz").vectors[0].shape == (3, 1000)


def test_a_unit_that_is_a_book(monkeypatch):
    book = "x" * (LIMITS["unit_characters"] + 1)
    with pytest.raises(InputError, match="document 'a': found a unit of 1,000,001 characters; exp"):
        reffree.Document.build("a", ["One.", book])
    assert reffree.Document.build("a", [book[1:]])
    monkeypatch.setenv("REFFREE_LIMITS", f"unit_characters={len(book)}")
    assert reffree.Document.build("a", [book])


def test_draws_without_number(run, monkeypatch, tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"id": "a", "units": ["One.", "Two."], "systems": {"s": [1, 1]}}\n')
    done = run("score", str(path), "--null", "1000000000")
    assert done.returncode == 2
    assert done.stderr == (
        "reffree: error: found --null 1000000000; expected at most 100,000; check it, "
        "or allow more with REFFREE_LIMITS=null_draws=1000000000\n"
    )
    vectors = [np.eye(3)]
    with pytest.raises(OptionError, match="found 1,000,000,000 draws for --null"):
        reffree.score(corpus(), metrics=["arp_cos"], embeddings=vectors, null=10**9)
    monkeypatch.setenv("REFFREE_LIMITS", "null_draws=3")
    assert reffree.score(corpus(), metrics=["arp_cos"], embeddings=vectors, null=3)
    with pytest.raises(OptionError, match="expected at most 3"):
        reffree.score(corpus(), metrics=["arp_cos"], embeddings=vectors, null=4)


def test_units_of_an_explained_document_are_limited(monkeypatch):
    """Before anything is encoded; what is not explained may be as long as it likes."""
    monkeypatch.setenv("REFFREE_LIMITS", "explained_units=2")
    vectors = [np.eye(3)]
    assert reffree.score(corpus(), metrics=["arp_cos"], embeddings=vectors)
    with pytest.raises(OptionError, match=r"found a document of 3 units for --explain; .*most 2"):
        reffree.score(corpus(), metrics=["arp_cos"], embeddings=vectors, explain=True)


@pytest.mark.parametrize("value", ["", "x", "-1", "1e9", "٣", "9" * 19])
def test_limits_that_are_no_numbers(monkeypatch, value):
    monkeypatch.setenv("REFFREE_LIMITS", f"dimension={value}")
    with pytest.raises(OptionError, match="expected dimension=NUMBER"):
        check_limit("dimension", 1, "")


def test_limits_that_do_not_exist(monkeypatch):
    monkeypatch.setenv("REFFREE_LIMITS", "dimensions=3")
    with pytest.raises(UnknownNameError, match="did you mean 'dimension'"):
        check_limit("dimension", 1, "")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: reffree.score(corpus(), metric="pk"), r"score\(\) .* 'metric'; did you mean 'met"),
        (lambda: reffree.compare(corpus(), encoding=1), r"compare\(\) got an unexpected .*coding'"),
        (
            lambda: reffree.embed(corpus(), devise="cpu"),
            r"embed\(\) .* 'devise'; did you mean 'dev",
        ),
        (
            lambda: reffree.segment(corpus(), "none", sed=1),
            r"segment\(\) .* 'sed'; did you mean 's",
        ),
        (
            lambda: correlate({"c": corpus()}, seeds=1),
            r"correlate\(\) .*'seeds'; did you mean 'seed",
        ),
    ],
)
def test_a_misspelt_keyword_is_the_function_s_own(call, sentence):
    with pytest.raises(TypeError, match=sentence):
        call()


def test_systems_that_are_compared_are_limited(monkeypatch):
    monkeypatch.setenv("REFFREE_LIMITS", "compared_systems=1")
    masses = {"a": [1, 2], "b": [2, 1]}
    document = reffree.Document.build("d", ["x", "y", "z"], systems=masses)
    with pytest.raises(OptionError, match=r"found 2 systems to compare; expected at most 1; check"):
        reffree.compare(reffree.Corpus((document,)), metrics=["arp_cos"], embeddings=[np.eye(3)])
