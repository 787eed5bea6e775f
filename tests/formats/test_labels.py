"""Formats without text (segeval JSON and tables, nltk strings) and the text that joins them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reffree.data.corpus import Corpus
from reffree.formats import load, read_system, save
from tests.formats.conftest import write as write_file
from tests.helpers import invoke, refusal

TEXT = "one\ntwo\nthree\n\nfour\nfive\n"
CORPUS = '{"id": "a", "units": ["1", "2", "3"]}\n{"id": "b", "units": ["4", "5"]}\n'


@pytest.fixture(autouse=True)
def files(here):
    Path("text.txt").write_text(TEXT)
    Path("c.jsonl").write_text(CORPUS)


def write(name: str, content: object) -> str:
    return write_file(content, name)


def segeval(**items) -> dict:
    return {"items": items, "segmentation_type": "linear"}


def masses(corpus: Corpus) -> dict[str, list[tuple[int, ...]]]:
    return {name: [one.masses for one in many] for name, many in corpus.hypotheses.items()}


# segeval JSON


C_OF_B = "s.json, system 'c', document 'b': "
C_OF_A = "a.tsv, line 2, system 'c', document 'a': "


def test_segeval_coders_are_systems_and_gold_is_gold():
    name = write("s.json", segeval(a={"gold": [2, 1], "c1": [3]}, b={"gold": [2], "c1": [1, 1]}))
    corpus = load(name, text="text.txt")
    assert masses(corpus) == {"gold": [(2, 1), (2,)], "c1": [(3,), (1, 1)]}
    assert [each.units for each in corpus] == [("one", "two", "three"), ("four", "five")]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ([], "s.json: found a list as the file's content; expected an object in braces; "),
        ({"segmentation_type": "linear"}, "s.json: found no 'items' among 'segmentation_type'; "),
        ({"items": [1]}, "s.json: found a list as 'items'; expected an object in braces; "),
        ({"items": {}}, "s.json: found no documents; "),
        (
            {"items": {"a": {"c": [3]}}, "segmentation_type": "nested"},
            "s.json: found the segmentation type 'nested'; expected 'linear'; ",
        ),
        (segeval(a=[3]), "s.json, document 'a': found a list as the document's coders; "),
        (segeval(a={"c": "3"}), "s.json, system 'c', document 'a': found a string as masses; "),
        (segeval(a={"c": [3]}, b={"c": [1, 0]}), f"{C_OF_B}found the segment length 0; "),
        (
            segeval(a={"c": [3]}, b={"c": [3]}),
            f"{C_OF_B}found a segmentation that covers 3 units; ",
        ),
        (segeval(a={"c": [3]}, b={"d": [2]}), f"{C_OF_B}found no segmentation (1 of 2 documents "),
        (segeval(a={"": [3]}, b={"": [2]}), "s.json, document 'a': found the coder ''; "),
        (segeval(a={"c\n": [3]}, b={"c\n": [2]}), "s.json, document 'a': found the coder 'c\\n'; "),
    ],
)
def test_segeval_that_is_refused(content, sentence):
    name = write("s.json", content)
    assert refusal(load, name, format="segeval", text="text.txt").startswith(sentence)


# segeval tables


def test_segeval_tables_are_one_document_each():
    write("a.tsv", "Coder\tMasses\nc1\t2\t1\nc 2\t3\t\n\ngold\t1\t1\t1\n")
    write("b.csv", "coder,positions\nc1,1,2\nc 2,7,7\n\ngold,1,1\n")
    assert masses(load("a.tsv", "b.csv", text="text.txt")) == {
        "gold": [(1, 1, 1), (2,)],
        "c1": [(2, 1), (1, 1)],
        "c 2": [(3,), (2,)],
    }


# Hearst's Stargazer text as segeval publishes it: masses and positions of coders 1 and 3.
def test_masses_and_positions_agree_on_published_figures():
    write("m.tsv", "Coder\tMasses\n1\t2\t3\t3\t1\t3\t6\t3\n3\t2\t1\t2\t3\t1\t3\t1\t3\t2\t2\t1")
    write(
        "p.csv",
        "Coder,Positions\n1,1,1,2,2,2,3,3,3,4,5,5,5,6,6,6,6,6,6,7,7,7\n"
        "3,1,1,2,3,3,4,4,4,5,6,6,6,7,8,8,8,9,9,10,10,11",
    )
    write("t.txt", "x\n" * 21)
    by_mass, by_position = load("m.tsv", text="t.txt"), load("p.csv", text="t.txt")
    assert masses(by_mass) == masses(by_position)
    assert masses(by_mass)["1"] == [(2, 3, 3, 1, 3, 6, 3)]


HEADER = (
    "expected a header Coder, Masses (or Coder, Positions); put it on the first line, or read a "
    "table with a unit a row with --format table"
)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", f"a.tsv, line 1: found no header; {HEADER}"),
        ("c1\t2\t1\n", f"a.tsv, line 1: found the header 'c1\\t2\\t1'; {HEADER}"),
        ('\n"id;text\n', f"a.tsv, line 2: found the header '\"id;text'; {HEADER}"),
        ("Coder\tMasses\n", "a.tsv: found no documents; "),
        ("Coder\tMasses\nc\t2\tx\n", f"{C_OF_A}found the cell 'x'; expected a whole number"),
        ("Coder\tMasses\nc\t2\t-1\n", f"{C_OF_A}found the cell '"),
        ("Coder\tMasses\nc\t2\t٣\n", f"{C_OF_A}found the cell '"),
        ("Coder\tMasses\nc\t2\t\t1\n", f"{C_OF_A}found the cell "),
        ("Coder\tMasses\nc\n", f"{C_OF_A}found no masses; "),
        ("Coder\tPositions\nc\n", f"{C_OF_A}found no masses; "),
        ('Coder\tMasses\n"c\t3\n', "a.tsv, line 2: found a row that cannot be read (unexpected "),
        (
            "Coder\tMasses\nc\t3\nc\t3\n",
            "a.tsv, line 3, system 'c', document 'a': found a second segmentation of this name, "
            "first at a.tsv, line 2; expected every name once in a document; ",
        ),
    ],
)
def test_tables_that_are_refused(content, sentence):
    write("one.txt", "x\ny\nz\n")
    name = write("a.tsv", content)
    assert refusal(load, name, format="segeval-tsv", text="one.txt").startswith(sentence)


# nltk strings


def test_nltk_strings_are_gold():
    corpus = load(write("s.txt", "01\n\n0\n"), text="text.txt")
    assert masses(corpus) == {"gold": [(2, 1), (2,)]}
    assert [document.id for document in corpus.documents] == ["1", "2"]


def test_nltk_strings_take_the_ids_of_a_corpus_or_their_own():
    in_order = load(write("s.txt", "01\n0\n"), text="c.jsonl")
    named = load(write("s.txt", "b\t0\na\t01\n"), text="c.jsonl")
    assert in_order == named
    assert [document.id for document in named.documents] == ["a", "b"]


def test_nltk_convention():
    name = write("s.txt", "100\n00\n")
    assert refusal(load, name, text="text.txt") == (
        "s.txt, line 1, system 'gold', document '1': found a boundary string that starts with 1, "
        "'100', for 3 units; expected one reading, but 1 may end a segment (convention end) or "
        "start one (convention start); choose with --format NAME:convention=end or convention=start"
    )
    end = load(name, text="text.txt", format="nltk:convention=end")
    start = load(name, text="text.txt", format="nltk:convention=start")
    assert masses(end)["gold"] == [(1, 2), (2,)]
    assert masses(start)["gold"] == [(3,), (2,)]
    assert "expected 2 characters under the convention 'gap'" in refusal(
        load, name, text="text.txt", format="nltk:convention=gap"
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("0100\n0\n", "s.txt, line 1, system 'gold', document '1': found a boundary string of 4 "),
        ("01\nb\t0\n", "s.txt, line 2: found a line with an id; expected ids on all lines or on n"),
        ("a\t01\n0\n", "s.txt, line 2: found a line without an id; expected ids on all lines or"),
        ("\t01\n", "s.txt, line 1: found a tab without an id before it; expected id, tab, string;"),
        ("02\n0\n", "s.txt, line 1, system 'gold', document '1': found the string '02'; expected "),
        ("a\t01\na\t01\n", "text.txt: found 2 blocks of text; expected 1, one for every document"),
    ],
)
def test_strings_that_are_refused(content, sentence):
    name = write("s.txt", content)
    assert refusal(load, name, format="nltk", text="text.txt").startswith(sentence)


# text


@pytest.mark.parametrize("name", ["s.json", "a.tsv", "s.txt"])
def test_missing_text_is_asked_for(name):
    write("s.json", segeval(a={"c": [3]}))
    write("a.tsv", "Coder\tMasses\nc\t3\n")
    write("s.txt", "01\n")
    assert refusal(load, name) == (
        f"{name}: found segmentations without text; expected the text they belong to; give it "
        "with --text: a corpus JSONL, a text file with one unit per line and a blank line between "
        "documents, or a folder of <id>.txt files"
    )


def test_a_corpus_as_text_keeps_its_own_segmentations():
    write(
        "full.jsonl",
        '{"id": "a", "units": ["1", "", "3"], "gold": [2, 1], "systems": {"s": [3]}}\n'
        '{"id": "b", "units": ["4", "5"], "gold": [2], "systems": {"s": [2]}}\n',
    )
    corpus = load(write("x.json", segeval(b={"c": [1, 1]}, a={"c": [1, 2]})), text="full.jsonl")
    assert masses(corpus) == {"gold": [(1, 1), (2,)], "s": [(2,), (2,)], "c": [(1, 1), (1, 1)]}
    assert corpus.n_dropped == 1
    again = segeval(a={"s": [3]}, b={"s": [2]})
    assert load(write("x.json", again), text="full.jsonl") == load("full.jsonl")
    assert load(write("s.txt", "01\n0\n"), text="full.jsonl") == load("full.jsonl")
    other = segeval(a={"s": [3]}, b={"s": [1, 1]})
    assert refusal(load, write("x.json", other), text="full.jsonl") == (
        "x.json, system 's', document 'b': found another segmentation of this name than "
        "full.jsonl, line 2 has; expected the same one, or every name once in a document; rename "
        "or remove one of the two"
    )
    assert "found another segmentation of this name than full.jsonl, line 1 has; " in refusal(
        load, write("s.txt", "00\n0\n"), text="full.jsonl"
    )


def test_labels_and_text_must_speak_of_the_same_documents():
    only_a = write("s.json", segeval(a={"c": [3]}))
    assert refusal(load, only_a, text="c.jsonl") == (
        "c.jsonl, line 2, document 'b': found text without a segmentation; expected one in "
        "s.json; add it there, or remove the document from the text"
    )
    more = write("s.json", segeval(a={"c": [3]}, b={"c": [2]}, z={"c": [2]}))
    assert refusal(load, more, text="c.jsonl").startswith(
        "s.json, document 'z': found a document that the text does not have; expected one of its "
        "2 ids, such as 'a'; "
    )
    assert refusal(load, more, text="text.txt").startswith(
        "text.txt: found 2 blocks of text; expected 3, one for every document, separated by blank "
    )
    assert refusal(load, write("s.txt", "01\n"), text="c.jsonl").startswith(
        "s.txt: found 1 segmentation without ids for 2 documents; expected one for every document"
    )


def test_text_that_holds_none():
    labels = write("s.json", segeval(a={"c": [3]}))
    assert refusal(load, labels, text=labels).startswith(
        "s.json: found a file without text; expected a "
    )
    assert refusal(load, labels, text="absent.txt").startswith(
        "absent.txt: found no file of this name; "
    )


def test_text_folder_counts_blank_lines_inside_as_units():
    Path("texts").mkdir()
    write("texts/a.txt", "one\n\nthree\n\n\n")
    write("texts/b.txt", "four\nfive")
    write("texts/c.txt", "six")
    corpus = load(write("s.json", segeval(b={"c": [1, 1]}, a={"c": [1, 2]})), text="texts")
    assert [document.id for document in corpus.documents] == ["b", "a"]
    assert masses(corpus) == {"c": [(1, 1), (1, 1)]}
    assert corpus.n_dropped == 1
    assert corpus.notes == (
        "texts: found 1 file that no segmentation belongs to; expected one .txt file for every "
        "document; it was not read, move it elsewhere to silence this",
    )
    assert refusal(load, write("s.json", segeval(z={"c": [1]})), text="texts") == (
        "texts, document 'z': found no file 'z.txt' in the folder; expected one for every "
        "document; add it, one unit per line"
    )


def test_labelled_files_keep_their_place_among_others():
    write("x.jsonl", '{"id": "x", "units": ["u"]}')
    write("y.jsonl", '{"id": "y", "units": ["u"]}')
    write("s.txt", "01\n0\n")
    corpus = load("x.jsonl", "s.txt", "y.jsonl", text="c.jsonl")
    assert [document.id for document in corpus.documents] == ["x", "a", "b", "y"]


def test_notes_of_labels_and_text_are_kept():
    Path("s.txt").write_bytes(b"01\r\n0\r\n")
    Path("text.txt").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    corpus = load("s.txt", text="text.txt")
    assert [note.split(";")[0] for note in corpus.notes] == [
        "s.txt, line 1: found a Windows line end (CRLF)",
        "text.txt, line 1: found a byte-order mark",
    ]
    assert corpus.documents[0].units[0] == "one"


# coders that are annotators


CODERS = {"a": {"ann": [2, 1], "bob": [1, 2]}, "b": {"ann": [2], "bob": [1, 1]}}


def test_coders_may_be_annotators():
    name = write("s.json", segeval(**CODERS))
    corpus = load(name, text="c.jsonl", format="segeval:coders=golds")
    first = corpus.documents[0]
    assert {name: s.masses for name, s in first.golds.items()} == {"ann": (2, 1), "bob": (1, 2)}
    assert (first.gold, dict(first.systems)) == (None, {})
    write("one.txt", "x\ny\nz\n")
    table = write("t.tsv", "Coder\tMasses\ngold\t2\t1\n")
    gold = load(table, text="one.txt", format="segeval-tsv:coders=golds")
    assert list(gold.documents[0].golds) == ["gold"]


# no text


def test_segmentations_without_text_have_numbers_for_units():
    corpus = load(write("s.json", segeval(**CODERS)), text=False, format="segeval:coders=golds")
    assert [document.units for document in corpus] == [("1", "2", "3"), ("1", "2")]
    assert corpus.documents[1].golds["bob"].masses == (1, 1)


def test_agreement_needs_no_text():
    name = write("s.json", segeval(**CODERS))
    told = ("study", "agreement", name, "--format", "segeval:coders=golds", "-f", "json")
    with_text, without = invoke(*told, "--text", "c.jsonl"), invoke(*told)
    assert without.exit_code == 0
    assert json.loads(without.stdout) == json.loads(with_text.stdout)
    rows = [{"id": id, "golds": golds} for id, golds in CODERS.items()]
    lines = write("s.jsonl", "\n".join(map(json.dumps, rows)))
    of_lines = invoke("study", "agreement", lines, "-f", "json")
    assert json.loads(of_lines.stdout) == json.loads(without.stdout)
    assert invoke("score", lines).exit_code == 1


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.txt", "0100\n", "x.txt, line 1: found a boundary string without its text; expected th"),
        (
            "s.json",
            segeval(a={"c": [3], "d": [2]}),
            "s.json, system 'd', document 'a': found a segmentation that covers 2 units; expected ",
        ),
        (
            "s.json",
            segeval(a={"c": [10**12]}),
            "s.json, system 'c', document 'a': found 1,000,000,000,000 units; "
            "expected at most 10,000,000; ",
        ),
        (
            "x.jsonl",
            '{"id": "a", "systems": {"s": [9000000000]}}',
            "x.jsonl, line 1, document 'a': found 9,000,000,000 units; ",
        ),
        (
            "x.jsonl",
            '{"id": "a", "systems": {"s": {"boundaries": [1]}}}',
            "x.jsonl, line 1, document 'a': found a document without units and without masses; ",
        ),
    ],
)
def test_without_text_not_everything_can_be_known(name, content, sentence):
    assert refusal(load, write(name, content), text=False).startswith(sentence)


# one document with blank lines


def test_a_text_with_blank_lines_that_is_one_document():
    name = write("s.json", segeval(a={"c": [2, 3]}))
    assert refusal(load, name, text="text.txt").endswith(
        "or give a folder of <id>.txt files, or write --format lines:documents=one"
    )
    corpus = load(name, text="text.txt", format="lines:documents=one")
    assert corpus.documents[0].units == ("one", "two", "three", "four", "five")
    assert corpus.documents[0].systems["c"].masses == (2, 3)


# boundaries and labels in corpus JSONL


def row(**fields) -> str:
    return write("x.jsonl", json.dumps({"id": "d", "units": list("abcde"), **fields}))


@pytest.mark.parametrize(
    ("fields", "masses"),
    [
        ({"boundaries": [2]}, (2, 3)),
        ({"boundaries": [4, 1]}, (1, 3, 1)),
        ({"boundaries": []}, (5,)),
        ({"gold": {"boundaries": [2]}}, (2, 3)),
        ({"labels": ["x", "x", "y", "y", "x"]}, (2, 2, 1)),
        ({"labels": [7, 7, 0, 1, 1]}, (2, 1, 2)),
        ({"labels": [0, 0, 0, 0, 0]}, (5,)),
        ({"gold": {"labels": [3, 3, 3, 4, 4]}}, (3, 2)),
    ],
)
def test_gold_by_boundaries_or_by_topics(fields, masses):
    assert load(row(**fields)).documents[0].gold.masses == masses


def test_every_segmentation_of_a_document_may_be_written_so():
    corpus = load(
        row(
            systems={"a": {"boundaries": [1]}, "b": {"labels": ["p", "p", "p", "q", "q"]}},
            golds={"ann": {"boundaries": [3]}, "bob": [5]},
        )
    )
    document = corpus.documents[0]
    assert [s.masses for s in document.systems.values()] == [(1, 4), (3, 2)]
    assert [s.masses for s in document.golds.values()] == [(3, 2), (5,)]
    save(corpus, "again.jsonl")
    assert load("again.jsonl") == corpus


def test_labels_of_0_and_1_need_a_convention_where_readings_differ():
    name = row(labels=[0, 0, 1, 0, 0])
    assert refusal(load, name) == (
        "x.jsonl, line 1, system 'gold', document 'd': found labels that are all 0 or 1, 00100; "
        "expected one reading, but a 1 may end a segment, start one, or be a topic's number; "
        "choose with --format NAME:convention=end or convention=start, or name topics otherwise, "
        "such as t0 and t1"
    )
    assert load(name, format="jsonl:convention=end").documents[0].gold.masses == (3, 2)
    assert load(name, format="jsonl:convention=start").documents[0].gold.masses == (2, 3)
    assert "convention 'gap' says" in refusal(load, name, format="jsonl:convention=gap")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"boundaries": [5]}, "found the boundary 5; expected an index from 1 to 4 in a document "),
        ({"boundaries": [0]}, "found the boundary 0; "),
        ({"boundaries": ["2"]}, "found the boundary '2'; expected the number of units before it; "),
        ({"boundaries": 2}, "found the segmentation {'boundaries': 2}; expected segment lengths "),
        ({"labels": [1, 2]}, "found 2 labels; expected 5, one for every unit; "),
        ({"labels": [1, 2, None, 3, 4]}, "found the label None; expected a topic's name or number"),
        ({"gold": {"masses": [5]}}, "found the key 'masses' in a segmentation; expected 'boundar"),
        ({"gold": {"labels": [], "x": []}}, "found the segmentation {'labels': [], 'x': []}; "),
        ({"gold": [5], "labels": [1] * 5}, "found 'gold', 'labels' in one document; expected one "),
    ],
)
def test_boundaries_and_labels_that_are_refused(fields, sentence):
    assert sentence in refusal(load, row(**fields))


def test_a_system_file_of_boundaries_or_labels():
    corpus = load("c.jsonl")
    rows = ['{"id": "b", "labels": ["x", "y"]}', '{"id": "a", "boundaries": [2]}']
    made = read_system(write("s.jsonl", "\n".join(rows)), "mine", corpus)
    assert [document.systems["mine"].masses for document in made] == [(2, 1), (1, 1)]
    bad = write("t.jsonl", '{"id": "a", "boundaries": [3]}\n{"id": "b", "boundaries": [1]}')
    assert refusal(read_system, bad, "mine", corpus).startswith(
        "t.jsonl, line 1, system 'mine', document 'a': found the boundary 3; expected an index "
    )
