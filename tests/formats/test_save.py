"""Writing: the format by extension, what is left out is said, and a failure changes nothing."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.formats import load, save
from reffree.util.errors import Place
from tests.helpers import refusal

UNITS = ["one", "", "two\nlines", "three"]


def document(id: str = "m1", **fields) -> Document:
    return Document.build(id, UNITS, **{"gold": [2, 2], **fields})


def corpus(**fields) -> Corpus:
    return Corpus((document("m1", **fields), document("m2", **fields)))


RICH = corpus(
    systems={"even": [2, 2], "random": [4]}, speakers=["A", "B", "C", "D"], meta={"x": [1]}
)
PLAIN = Corpus((Document.build("m1", ["one", "two"], gold=[1, 1]),))


DROPPED = "2 units without text were left out"


ROOM = "files hold one segmentation per document: the systems even, random were left out"
BREAKS = "choi files hold one unit per line: line breaks in 2 units became spaces"


@pytest.mark.parametrize(
    ("path", "format", "special", "lacking"),
    [
        ("o.jsonl", "jsonl", [], []),
        ("o", "choi", [f"choi {ROOM}", BREAKS], ["speakers", "meta"]),
        ("o.json", "segeval", [], ["text: the units", "speakers", "meta"]),
        ("o.txt", "nltk", [f"nltk {ROOM}"], ["text: the units", "speakers", "meta"]),
        ("o.json", "dialseg", [f"dialseg {ROOM}"], ["meta"]),
    ],
)
def test_what_is_left_out_is_said(path, format, special, lacking):
    left = [
        f"{format} files hold no {what} were left out"
        if ":" in what
        else f"{format} files hold no {what}: they were left out"
        for what in lacking
    ]
    named = format if path == "o.json" else None
    assert save(RICH, path, format=named) == [*special, *left, DROPPED]


def test_contents():
    save(RICH, "o")
    assert Path("o/m1.ref").read_text() == (
        "==========\none\n==========\ntwo lines\nthree\n==========\n"
    )
    save(RICH, "o.txt")
    assert Path("o.txt").read_text() == "m1\t10\nm2\t10\n"
    save(RICH, "o.json", format="segeval")
    coders = {"gold": [1, 2], "even": [1, 2], "random": [3]}
    assert json.loads(Path("o.json").read_text()) == {
        "items": {"m1": coders, "m2": coders},
        "segmentation_type": "linear",
    }
    save(Corpus(RICH.documents[:1]), "m1.tsv")
    assert Path("m1.tsv").read_text() == "Coder\tMasses\ngold\t1\t2\neven\t1\t2\nrandom\t3\n"
    save(RICH, "o.json", format="dialseg")
    turns = json.loads(Path("o.json").read_text())["dial_data"]["corpus"][0]["turns"]
    assert [turn["segmentation_label"] for turn in turns] == [1, 0, 0]
    assert turns[1] == {
        "turn_id": 1,
        "utterance": "two\nlines",
        "role": "C",
        "segmentation_label": 0,
        "topic_id": 1,
    }


def test_without_gold_the_only_system_is_written():
    only = corpus(gold=None, systems={"even": [2, 2]})
    assert save(only, "o.txt")[0] == (
        "nltk files hold one segmentation per document: the name of the system even was left out"
    )
    assert Path("o.txt").read_text() == "m1\t10\nm2\t10\n"
    mixed = Corpus((document("m1", systems={"even": [4]}), only.documents[1]))
    assert save(mixed, "o.txt")[1] == (
        "nltk files hold one segmentation per document: the gold of 1 document was left out"
    )


@pytest.mark.parametrize(("path", "format"), [("o", None), ("o.txt", None), ("o.json", "dialseg")])
def test_without_a_choice_there_is_nothing_to_write(path, format):
    none, two = corpus(gold=None), corpus(gold=None, systems={"a": [4], "b": [4]})
    assert "found 2 documents without gold, and 0 systems; expected gold everywhere" in refusal(
        save, none, path, format=format
    )
    assert "and 2 systems; expected gold everywhere or a single system" in refusal(
        save, two, path, format=format
    )
    assert list(Path().iterdir()) == []


def test_segeval_needs_a_segmentation():
    assert refusal(save, corpus(gold=None), "o.json", format="segeval").startswith(
        "document 'm1': found a document without a segmentation; expected gold or a system, "
    )


@pytest.mark.parametrize(
    ("path", "format", "sentence"),
    [
        ("o.json", None, "o.json: found the extension .json, which does not tell the format; expe"),
        ("o.xyz", None, "o.xyz: found the extension .xyz, which does not tell the format; expecte"),
        ("o.json", "qmsum", "o.json: found the format qmsum, which is only read; expected one of "),
        ("o.tsv", None, "o.tsv: found 2 documents; expected one, since such a file holds a single"),
        ("o.ref", None, "o.ref: found 2 documents; expected one, since such a file holds a single"),
        ("no/o.jsonl", None, "no/o.jsonl: found no folder 'no'; expected a folder that exists; cr"),
        ("no/o", None, "no/o: found no folder 'no'; expected a folder that exists; "),
        ("file/o.jsonl", None, "file/o.jsonl: found a file in its way; expected folders; "),
        ("folder", "jsonl", "folder: found a folder; expected a file to write; name a file in it"),
        ("a\0.jsonl", None, "a\0.jsonl: found a path that cannot be written (embedded null byte)"),
        ("full", None, "full: found a folder that is not empty; expected a new or an empty folder"),
    ],
)
def test_targets_that_are_refused(path, format, sentence):
    Path("file").write_text("x")
    Path("folder").mkdir()
    Path("full").mkdir()
    Path("full/old").write_text("x")
    assert refusal(save, corpus(), path, format=format).startswith(sentence)
    assert sorted(map(str, Path().rglob("*"))) == ["file", "folder", "full", "full/old"]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no such folder here")
def test_a_folder_that_takes_no_files_is_there_all_the_same():
    assert refusal(save, corpus(), "/proc/o.jsonl").startswith(
        "/proc/o.jsonl: found a path that cannot be written (No such file or directory); expected"
    )


def test_a_failure_keeps_the_old_file(monkeypatch):
    Path("o.jsonl").write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.replace", fail)
        assert "cannot be written (No space left on device)" in refusal(save, corpus(), "o.jsonl")
        assert "cannot be written (No space left on device)" in refusal(save, corpus(), "o")
    assert [str(path) for path in Path().iterdir()] == ["o.jsonl"]
    assert Path("o.jsonl").read_text() == "old"


def test_an_empty_folder_is_filled_and_a_link_stays_a_link():
    Path("o").mkdir()
    save(PLAIN, "o")
    assert load("o") == PLAIN
    Path("real.jsonl").write_text("old")
    Path("link.jsonl").symlink_to("real.jsonl")
    save(PLAIN, "link.jsonl")
    assert Path("link.jsonl").is_symlink()
    assert load("real.jsonl") == PLAIN
    Path("other").write_text("")
    assert Path("real.jsonl").stat().st_mode == Path("other").stat().st_mode


def test_devices_are_written_to_and_not_replaced():
    os.mkfifo("pipe.jsonl")
    reader = os.open("pipe.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    try:
        save(PLAIN, "pipe.jsonl")
        assert json.loads(os.read(reader, 1000))["id"] == "m1"
    finally:
        os.close(reader)
    assert Path("pipe.jsonl").is_fifo()


def test_stdout(capfdbinary):
    save(PLAIN, "-")
    assert json.loads(capfdbinary.readouterr().out) == {
        "id": "m1",
        "units": ["one", "two"],
        "gold": [1, 1],
    }
    assert list(Path().iterdir()) == []


def test_single_documents_are_named_by_their_file():
    assert save(PLAIN, "m1.ref") == []
    assert save(PLAIN, "other.ref") == [
        "choi files are named by their document: 1 id changes, such as 'm1' to 'other'"
    ]
    assert save(PLAIN, "other.tsv")[1] == (
        "segeval-tsv files are named by their document: 1 id changes, such as 'm1' to 'other'"
    )


@pytest.mark.parametrize(
    ("id", "unit", "path", "sentence"),
    [
        ("m", "x\ud800", "o.jsonl", "o.jsonl: found the character '\\ud800', which UTF-8 cannot"),
        ("m", "x\ud800", "o", "o/m.ref: found the character '\\ud800', which UTF-8 cannot hold; "),
        ("m", " ===========", "o", "document 'm': found the unit ' ===========' ; expected text"),
        ("m\t1", "x", "o.txt", "document 'm\\t1': found the id 'm\\t1'; expected an id without ta"),
        (" m", "x", "o.txt", "document ' m': found the id ' m'; "),
        ("\ufeffm", "x", "o.txt", "document '\\ufeffm': found the id '\\ufeffm'; "),
    ],
)
def test_text_that_a_format_cannot_hold(id, unit, path, sentence):
    checked = Document.build("m", ["x"], gold=[1])
    made = Corpus((replace(checked, id=id, units=(unit,), place=Place(document=id)),))
    assert refusal(save, made, path).startswith(sentence.replace("' ;", "';"))
    assert list(Path().iterdir()) == []


def test_system_names_that_a_table_cannot_hold():
    checked = Document.build("m", ["x"])
    made = Corpus((replace(checked, systems={"a\nb": Segmentation((1,))}),))
    assert refusal(save, made, "m.tsv").startswith("document 'm': found the system name 'a\\nb'; ")
