"""Tables with a unit a row, and Python values that are corpora."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import reffree
from reffree.data.corpus import Document
from reffree.formats import load
from tests.helpers import invoke, refusal

HEADER = "document,text,speaker,segment"
ROWS = ('a,"Bees, they say",Ann,1', "a,fly.,Bob,1", "a,Routers fail.,Ann,2", "b,Alone.,,1")


def write(*lines: str, name: str = "x.csv") -> str:
    Path(name).write_text("\n".join(lines) + "\n")
    return name


def test_a_table_with_the_columns_as_they_are_called():
    first, second = load(write(HEADER, *ROWS)).documents
    assert (first.id, second.id) == ("a", "b")
    assert first.units == ("Bees, they say", "fly.", "Routers fail.")
    assert first.gold.masses == (2, 1)
    assert first.speakers == ("Ann", "Bob", "Ann")
    assert second.speakers is None
    assert first.place.line == 2
    assert second.place.line == 5


def test_columns_by_other_names_with_tabs_or_semicolons():
    for separator, name in (("\t", "x.tsv"), (";", "x.csv"), ("\t", "x.csv")):
        lines = [
            separator.join(row) for row in (["doc", "utt", "t"], ["a", "x", "1"], ["a", "y", "2"])
        ]
        corpus = load(write(*lines, name=name), format="table:document=doc,text=utt,segment=t")
        assert corpus.documents[0].units == ("x", "y")
        assert corpus.documents[0].gold.masses == (1, 1)


def test_without_a_column_for_it_the_table_is_one_document():
    corpus = load(write("text", '"two', 'lines"', "b", name="talk.csv"), format="table")
    assert corpus.documents[0].id == "talk"
    assert corpus.documents[0].units == ("two\nlines", "b")
    assert corpus.documents[0].gold is None


def test_rows_of_a_document_need_not_stand_together():
    corpus = load(write("document,text", "a,1", "b,2", "a,3"))
    assert [document.units for document in corpus] == [("1", "3"), ("2",)]


def test_times_are_kept():
    corpus = load(write("text,start,end", "a,0,1.5", "b,1.5,4", name="t.csv"))
    assert corpus.documents[0].meta == {"times": [[0.0, 1.5], [1.5, 4.0]]}
    assert corpus.documents[0].clocks == ("0:00", "0:01")
    only_starts = load(write("text,start", "a,0", "b,75", name="t.csv")).documents[0]
    assert only_starts.times == ((0.0, 75.0), (75.0, 75.0))


def test_labels_are_topics_or_need_a_convention():
    topics = write("text,label", "a,food", "b,food", "c,sport")
    assert load(topics).documents[0].gold.masses == (2, 1)
    marks = write("text,label", "a,0", "b,1", "c,0", "d,0")
    assert "x.csv, line 2, document 'x': found labels that are all 0 or 1, 0100" in refusal(
        load, marks
    )
    assert load(marks, format="table:convention=end").documents[0].gold.masses == (2, 2)
    assert load(marks, format="table:convention=start").documents[0].gold.masses == (1, 3)


def test_segments_beside_labels_have_to_be_told_apart():
    name = write("text,label,segment", "a,x,1", "b,y,1")
    assert "found a column for segments and one for labels" in refusal(load, name)
    assert load(name, format="table:segment=segment").documents[0].gold.masses == (2,)
    assert load(name, format="table:label=label").documents[0].gold.masses == (1, 1)


@pytest.mark.parametrize(
    ("lines", "options", "sentence"),
    [
        (["doc,utterance", "a,b"], "", "x.csv: found the columns 'doc', 'utterance'; expected a c"),
        (["text,n", "a,1"], ":text=utt", "x.csv: found no column 'utt' among 'text', 'n'; "),
        (["text,n"], "", "x.csv: found a table without rows; "),
        ([""], "", "x.csv: found a table without rows; "),
        (["text,text", "a,b"], "", "x.csv, line 1: found the column 'text' twice; "),
        (["text,n", "a,1", "b"], "", "x.csv, line 3: found a row of 1 cells; expected 2, as the "),
        (["text,n", "a,1", 'x,"b'], "", "x.csv, line 3: found a row that cannot be read (unexpec"),
        (["text,document", "a,1", "b,"], "", "x.csv, line 3: found a row without 'document'; "),
        (["text,segment", "a,1", "b,"], "", "x.csv, line 3, document 'x': found an empty cell in "),
        (["text,start", "a,1:20"], "", "x.csv, line 2, document 'x': found the time '1:20'; "),
        (["text,start", "a,-1"], "", "x.csv, line 2, document 'x': found the time '-1'; "),
        (["text,n", ",1"], "", "x.csv, line 2, document 'x': found 1 unit without any text; "),
    ],
)
def test_tables_that_are_refused(lines, options, sentence):
    assert refusal(load, write(*lines), format=f"table{options}").startswith(sentence)


def test_the_help_lists_the_options_of_formats():
    told = invoke("convert", "--help").output
    assert "taskmaster:join=1,level=task\n" in told
    assert "table:document=NAME,text=NAME," in told


def test_columns_where_there_is_no_table():
    line = write('{"id": "a", "units": ["x"]}', name="x.jsonl")
    assert refusal(load, line, format="table:text=said") == (
        "x.jsonl: found what looks like the format jsonl; expected the format table, as --format "
        "says; leave out --format"
    )
    told = refusal(load, ["One."], format="table:text=said")
    assert told.startswith("found the format table for a value that is no frame; ")


def test_columns_of_the_text_that_segmentations_belong_to():
    coders = write('{"items": {"a": {"c": [1, 1]}}}', name="s.json")
    text = write("doc,said", "a,x", "a,y", name="t.csv")
    corpus = load(coders, text=text, format="table:document=doc,text=said")
    assert corpus.documents[0].units == ("x", "y")
    assert corpus.documents[0].systems["c"].masses == (1, 1)


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="needs pyarrow")
def test_a_parquet_table_of_units():
    import pyarrow as pa
    import pyarrow.parquet as pq

    from reffree.formats.shards import Shards

    rows = {"document": ["a", "a"], "said": ["x", None], "segment": [1, 2]}
    pq.write_table(pa.table(rows), "x.parquet")
    corpus = load("x.parquet", format="table:text=said")
    assert corpus.documents[0].units == ("x",)
    assert Shards.of(["x.parquet"]) is None
    assert refusal(load, "x.parquet").startswith("x.parquet: found the columns 'document', 'said'")


# Python values


FRAME = {"document": ["a", "a", "b"], "text": ["x", "y", "z"], "segment": [1, 2, 1]}


def check_frame(frame):
    first, second = load(frame).documents
    assert (first.id, first.units, first.gold.masses) == ("a", ("x", "y"), (1, 1))
    assert second.gold.masses == (1,)


def test_a_frame_of_pandas():
    check_frame(pd.DataFrame(FRAME))
    named = pd.DataFrame(FRAME).rename(columns={"text": "said"})
    assert load(named, format="table:text=said").documents[0].units == ("x", "y")
    missing = pd.DataFrame({"text": ["a", "b"], "speaker": [None, "B"], "segment": [np.nan, pd.NA]})
    document = load(missing).documents[0]
    assert (document.speakers, document.gold) == (("", "B"), None)
    assert refusal(load, pd.DataFrame({"a": [1]})).startswith("<frame>: found the columns 'a'; ")
    assert refusal(load, pd.DataFrame({"text": []})).startswith("<frame>: found no rows; ")


def test_a_frame_with_a_document_a_row():
    rows = [{"id": "a", "units": ["x", "y"], "gold": np.array([1, 1])}, {"id": "b", "units": ["z"]}]
    first, second = load(pd.DataFrame(rows)).documents
    assert first.gold.masses == (1, 1)
    assert second.gold is None


class OfPolars:
    """What is used of polars' frames: it is not among the packages that tests may need."""

    columns = tuple(FRAME)

    def iter_rows(self, *, named):
        assert named
        for values in zip(*FRAME.values(), strict=True):
            yield dict(zip(FRAME, values, strict=True))


def test_a_frame_of_polars():
    check_frame(OfPolars())


def test_lists_of_documents_and_of_sentences():
    assert load(["One.", "Two."]).documents[0].units == ("One.", "Two.")
    assert [d.units for d in load([["One."], ("Two.", "Three.")])] == [
        ("One.",),
        ("Two.", "Three."),
    ]
    table = {"id": "a", "units": ["x", "y"], "systems": {"s": [1, 1]}}
    made = Document.build("b", ["z"], systems={"s": [1]})
    corpus = load([table, made])
    assert [document.id for document in corpus] == ["a", "b"]
    assert load(corpus) == corpus
    assert load(made).documents == (made,)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["One.", 3], "<list>, item 1: found 'One.' (str) in a list; expected all documents, all "),
        ([["a"], None], "<list>, item 2: found None (NoneType) in a list; "),
        ([["a", 1]], "<list>, item 1, document '1': found unit 2 of 2 is 1 (int); "),
        ([{"units": ["a"]}], "<list>, item 1: found no 'id' among 'units'; "),
        ([], "found a list as a path; "),
        (["a.jsonl", "b.jsonl"], "found a list as a path; expected a string or a Path; pass the "),
    ],
)
def test_lists_that_are_refused(given, sentence):
    assert refusal(load, given).startswith(sentence)


def test_score_takes_what_load_takes():
    rng = np.random.default_rng(0)
    vectors = [rng.normal(size=(2, 4)), rng.normal(size=(1, 4))]
    kept = {"embeddings": vectors, "metrics": ["arp_pair"], "device": "cpu"}
    frame = pd.DataFrame(FRAME)
    assert reffree.score(frame, **kept).systems == reffree.score(load(frame), **kept).systems
    assert refusal(reffree.score, 3).startswith("found a int to score; expected a Corpus; ")
    assert refusal(reffree.score, "x.csv").startswith("found a str to score; expected a Corpus; ")
