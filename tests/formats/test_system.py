"""One more system: every document once, in any order, from any format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.formats import read_system, save
from reffree.util.errors import UnknownNameError
from tests.formats.conftest import write as write_file
from tests.helpers import refusal

CORPUS = Corpus(
    (
        Document.build("a", ["1", "2", "", "4"], gold=[2, 2]),
        Document.build("b", ["1", "2", "3"], gold=[3]),
    ),
    ("earlier note",),
)
LINES = '{"id": "b", "segmentation": [1, 2]}\n\n{"id": "a", "segmentation": [3, 1]}\n'
WANTED = (Segmentation((2, 1)), Segmentation((1, 2)))


def write(content: object, name: str = "s.jsonl") -> str:
    return write_file(content, name)


FULL = [
    {"id": "a", "units": ["1", "2", "", "4"], "gold": [3, 1]},
    {"id": "b", "units": ["1", "2", "3"], "systems": {"x": [1, 2]}},
]

A1 = "s.jsonl, line 1, system 's', document 'a': found "
Z4 = "s.jsonl, line 4, system 's', document 'z': found "


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.jsonl", LINES),
        ("s.jsonl", '{"id": "a", "segmentation": "001"}\n{"id": "b", "segmentation": "10"}\n'),
        ("s.json", [{"id": "a", "segmentation": [3, 1]}, {"id": "b", "segmentation": [1, 2]}]),
        ("s.json", {"items": {"a": {"s": [3, 1], "t": [4]}, "b": {"s": [1, 2], "t": [3]}}}),
        ("s.json", {"items": {"a": {"only": [3, 1]}, "b": {"only": [1, 2]}}}),
        ("s.txt", "001\n10\n"),
        ("s.txt", "b\t10\na\t001\n"),
        ("s.jsonl", json.dumps(FULL[0]) + "\n" + json.dumps(FULL[1])),
    ],
)
def test_every_format(name, content):
    made = read_system(write(content, name), "s", CORPUS)
    assert made.hypotheses["s"] == WANTED
    assert made.notes == ("earlier note",)
    assert CORPUS.documents[0].systems == {}


def test_choi_folder_of_the_same_documents_without_their_empty_units():
    write("==========\n1\n2\n==========\n4\n", "out/a.ref")
    write("1\n==========\n2\n3\n", "out/b.ref")
    assert read_system("out", "s", CORPUS).hypotheses["s"] == WANTED


@pytest.mark.parametrize(
    ("name", "content"),
    [("any.ref", "1\n==========\n2\n3\n"), ("any.tsv", "Coder\tMasses\nc\t1\t2\n")],
)
def test_one_document_needs_no_name(name, content):
    single = Corpus(CORPUS.documents[1:])
    assert read_system(write(content, name), "s", single).hypotheses["s"] == WANTED[1:]


def test_what_was_saved_from_a_corpus_is_read_as_its_system():
    save(CORPUS, "saved.jsonl")
    made = read_system("saved.jsonl", "copy", CORPUS)
    assert made.hypotheses["copy"] == made.hypotheses["gold"]


def test_the_line_ends_of_a_system_file_are_noted():
    Path("s.jsonl").write_bytes(LINES.replace("\n", "\r\n").encode())
    notes = read_system("s.jsonl", "s", CORPUS).notes
    assert [note.split(";")[0] for note in notes] == [
        "earlier note",
        "s.jsonl, line 1: found a Windows line end (CRLF)",
    ]


@pytest.mark.parametrize("convention", ["end", "start"])
def test_strings_take_a_convention(convention):
    line = '{"id": "a", "segmentation": "1001"}\n{"id": "b", "segmentation": "010"}\n'
    name = write(line)
    assert refusal(read_system, name, "s", CORPUS).startswith(
        "s.jsonl, line 1, system 's', document 'a': found a boundary string that starts with 1, "
    )
    format = f"jsonl:convention={convention}"
    wanted = {"end": ((1, 2), (2, 1)), "start": ((2, 1), (1, 2))}
    for keywords in ({"format": format}, {"corpus_format": format}):
        made = read_system(name, "s", CORPUS, **keywords).hypotheses["s"]
        assert tuple(one.masses for one in made) == wanted[convention]


ONLY = "expected only 'id', 'segmentation'"
RENAME = "rename it 'segmentation' if it holds segment lengths such as [3, 4] or a 0/1 string"
B_ONLY = '{"id": "b", "segmentation": [3]}\n'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (LINES + B_ONLY, "s.jsonl, line 4, system 's', document 'b': found the document a second "),
        (B_ONLY, "s.jsonl, system 's', document 'a': found no segmentation (1 of 2 documents lack"),
        ("", "s.jsonl, system 's', document 'a': found no segmentation (2 of 2 documents lack it)"),
        (LINES + '{"id": "z", "segmentation": [3]}', Z4 + "a document that the corpus does not ha"),
        (LINES + '{"id": "z", "segmentation": "01"}', Z4 + "a document that the corpus does not"),
        ('{"id": "a", "segmentation": [5]}\n' + B_ONLY, A1 + "a segmentation that covers 5 units;"),
        ('{"id": "a", "segmentation": "01"}\n' + B_ONLY, A1 + "a boundary string of 2 characters "),
        ('{"id": "a", "segmentation": [3, 0, 1]}\n' + B_ONLY, A1 + "the segment length 0; "),
        ('{"id": "a", "segmentation": 4}\n' + B_ONLY, A1 + "the segmentation 4; expected a list "),
        (
            '{"id": "a", "masses": [4]}',
            f"s.jsonl, line 1: found the unknown key 'masses'; {ONLY}; {RENAME}",
        ),
        (
            '{"doc": "a", "text": "T", "bits": "001"}',
            f"s.jsonl, line 1: found the unknown key 'bits'; {ONLY}; {RENAME}",
        ),
        (
            '{"id": "a", "segmentations": [4]}',
            f"s.jsonl, line 1: found the unknown key 'segmentations'; {ONLY}; {RENAME}",
        ),
        (
            '{"id": "a", "segmentation": [4], "meta": {}}',
            f"s.jsonl, line 1: found the unknown key 'meta'; {ONLY}; remove it",
        ),
        (
            '{"doc": "a", "segmentation": [4]}',
            f"s.jsonl, line 1: found the unknown key 'doc'; {ONLY}; rename it 'id'",
        ),
        ('{"id": "a", "sentences": ["T"]}', "s.jsonl, line 1: found no 'segmentation' among 'id',"),
        ('{"id": "a"}', "s.jsonl, line 1: found no 'segmentation' among 'id'; "),
        ("==========\n1\n", "s.jsonl: found what looks like the format choi; expected the format "),
        ('{"segmentation": [4]}', "s.jsonl, line 1: found no 'id' among 'segmentation'; "),
        ('{"id": 1, "segmentation": [4]}', "s.jsonl, line 1: found the document id 1; expected a "),
        ("7", "s.jsonl, line 1: found a number as a document; "),
        (
            json.dumps({**FULL[0], "systems": {"x": [4], "y": [4]}}),
            "s.jsonl, line 1, document 'a': found the segmentations gold, x, y; expected only one, "
            "or one called 's'; ",
        ),
        ('{"id": "a", "units": ["x"]}', "s.jsonl, line 1, document 'a': found no segmentation; "),
    ],
)
def test_lines_that_are_refused(content, sentence):
    assert refusal(read_system, write(content), "s", CORPUS).startswith(sentence)


def test_several_coders_are_listed():
    name = write({"items": {"a": {"x": [4], "y": [4]}, "b": {"x": [3]}}}, "s.json")
    assert refusal(read_system, name, "s", CORPUS) == (
        "s.json: found the coders x, y; expected one called 's', or a single one; "
        "name the system after the coder that is meant"
    )


def test_names_that_cannot_be():
    name = write(LINES)
    assert "found the system name ''; expected a non-empty string" in refusal(
        read_system, name, "", CORPUS
    )
    assert r"found the system name 'a\x1b'; expected a non-" in refusal(
        read_system, name, "a\x1b", CORPUS
    )
    assert "'gold': found the system a second time" in refusal(read_system, name, "gold", CORPUS)
    made = read_system(name, "s", CORPUS)
    assert "system 's': found the system a second time" in refusal(read_system, name, "s", made)
    with pytest.raises(UnknownNameError, match="unknown format 'x'"):
        read_system(name, "s", CORPUS, format="x")


def test_a_corpus_line_names_its_own_system():
    line = {**FULL[0], "systems": {"s": [3, 1]}, "gold": [4]}
    name = write(json.dumps(line) + "\n" + '{"id": "b", "segmentation": [1, 2]}')
    assert read_system(name, "s", CORPUS).hypotheses["s"] == WANTED
