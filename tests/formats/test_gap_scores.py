"""Files of gap scores: read, written, and refused with a sentence."""

from __future__ import annotations

import pytest

from reffree.data.corpus import Corpus, Document
from reffree.formats import read_scores, write_scores
from tests.formats.conftest import write
from tests.helpers import refusal

CORPUS = Corpus((Document.build("a", ["1", "2", "3"]), Document.build("b", ["1"])))


def written(*lines):
    return write("\n".join(lines) + "\n", "s.jsonl")


def test_what_is_written_is_read(tmp_path):
    scores = {"a": [0.1, -1e300], "b": []}
    write_scores(tmp_path / "s.jsonl", scores)
    assert read_scores(tmp_path / "s.jsonl", CORPUS) == scores


def test_any_order_becomes_that_of_the_corpus():
    path = written('{"scores": [], "id": "b"}', '{"id": "a", "scores": [1, 0.5]}')
    assert list(read_scores(path, CORPUS).items()) == [("a", [1.0, 0.5]), ("b", [])]


def test_units_without_text_give_their_gaps_highest_score():
    corpus = Corpus((Document.build("a", ["", "1", "", " ", "2", "3", ""]),))
    every = written('{"id": "a", "scores": [9, 1, 3, 2, 0.5, 8]}')
    assert read_scores(every, corpus) == {"a": [3.0, 0.5]}
    kept = written('{"id": "a", "scores": [0.1, 0.2]}')
    assert read_scores(kept, corpus) == {"a": [0.1, 0.2]}


A, B = '{"id": "a", "scores": [0, 1]}', '{"id": "b", "scores": []}'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"id": "a", "scores": [0]}', B], "line 1, system 'mine', document 'a': found 1 score; "
         "expected 2, one for every gap between the document's 3 units; score this version"),
        (['{"id": "a", "scores": [0, 1, 1]}', B], "found 3 scores; expected 2, one for every gap "
         "between the document's 3 units; leave out the document's end"),
        ([A], "s.jsonl, system 'mine', document 'b': found no list of scores (1 of 2 documents"),
        ([A, B, '{"id": "c", "scores": []}'], "line 3, system 'mine', document 'c': found a "
         "document that the corpus does not have"),
        ([A, B, A], "line 3, system 'mine', document 'a': found the document a second time, first "
         "at"),
        (['{"id": "a", "scores": [0, NaN]}', B], "line 1: found the number NaN"),
        (['{"id": "a", "scores": [0, 1e999]}', B], "line 1: found the number 1e999"),
        (['{"id": "a", "scores": [0, null]}', B], "line 1, system 'mine', document 'a': found "
         "score 2 of 2, None; expected a finite number"),
        (['{"id": "a", "scores": [0, true]}', B], "score 2 of 2, True"),
        (['{"id": "a", "scores": "01"}', B], "found 01 as scores; expected a list of numbers"),
        (['{"id": "a", "score": [0, 1]}', B], "rename 'score' to 'scores'"),
        (['{"id": 1, "scores": [0, 1]}', B], "the document id 1; expected a string"),
        (['{"id": "a", "scores": [0, 1], "x": 1}', B], "the unknown key 'x'"),
        (["[0, 1]", B], "line 1: found a list"),
        (['{"id": "a", "scores": [0'], "line 1: found text that is not JSON"),
    ],
)  # fmt: skip
def test_what_is_refused(lines, said):
    assert said in refusal(read_scores, written(*lines), CORPUS, "mine")


def test_a_file_that_is_not_there(tmp_path):
    assert "none.jsonl" in refusal(read_scores, tmp_path / "none.jsonl", CORPUS)
