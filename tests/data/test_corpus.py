"""Documents and corpora: what is dropped is counted, what does not fit is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.util.errors import Place
from tests.helpers import refusal


def document(id: str = "m1", n: int = 4, **fields) -> Document:
    return Document.build(id, [f"unit {i}" for i in range(n)], **fields)


def corpus(**fields) -> Corpus:
    return Corpus((document("m1", 4, **fields), document("m2", 4, **fields)))


def test_units_without_text_are_dropped_counted_and_reindexed():
    made = Document.build(
        "m1",
        ["a", "", "b", "\t ", "c", "\n"],
        gold=[2, 1, 3],
        systems={"s": [1, 1, 2, 1, 1]},
        speakers=["A", "B", "C", "D", "E", "F"],
    )
    assert made.units == ("a", "b", "c")
    assert made.speakers == ("A", "C", "E")
    assert made.gold == Segmentation((1, 1, 1))
    assert made.systems["s"] == Segmentation((1, 1, 1))
    assert made.n_dropped == 3
    assert Corpus((made,)).n_dropped == 3
    assert Corpus((made,)).n_units == 3


@given(st.lists(st.sampled_from(["x", " ", ""]), min_size=1).filter(lambda u: "x" in u), st.data())
def test_dropping_keeps_exactly_the_boundaries_between_kept_units(units, data):
    ids = sorted(data.draw(st.lists(st.integers(0, 3), min_size=len(units), max_size=len(units))))
    made = Document.build("m", units, gold=Segmentation.from_segment_ids(ids))
    wanted = [i for i, unit in zip(ids, units, strict=True) if unit.strip()]
    assert made.gold == Segmentation.from_segment_ids(wanted)


PLACE = Place("c.jsonl", 3)
AT = "c.jsonl, line 3, document 'm1': found "


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"id": ""}, "c.jsonl, line 3: found the document id ''; expected a non-empty string"),
        ({"id": 7}, "c.jsonl, line 3: found the document id 7; expected a non-empty string"),
        ({"units": []}, AT + "no units; expected at least one unit with text; "),
        ({"units": ["", " "]}, AT + "2 units without any text; expected at least one unit with"),
        ({"units": "text"}, AT + "str as units; expected a list of strings; "),
        ({"units": ["a", 7]}, AT + "unit 2 of 2 is 7 (int); expected a string; "),
        ({"units": ["a", None]}, AT + "unit 2 of 2 is None (NoneType); expected a string; "),
        ({"speakers": ["A"]}, AT + "1 speaker; expected 2 strings, one for every unit; "),
        ({"speakers": "AB"}, AT + "str as speakers; "),
        ({"speakers": ["A", 1]}, AT + "a speaker that is not a string; "),
        ({"gold": [3]}, "c.jsonl, line 3, system 'gold', document 'm1': found a segmentation that"),
        (
            {"systems": {"s": [1, 0, 1]}},
            "c.jsonl, line 3, system 's', document 'm1': found the segment length 0; ",
        ),
        (
            {"systems": {"s": "01"}},
            "c.jsonl, line 3, system 's', document 'm1': found the segmentation 01; expected a "
            "list of segment lengths; ",
        ),
        ({"systems": {" ": [2]}}, AT + "the system name ' '; expected a non-empty string"),
    ],
)
def test_documents_that_are_refused(fields, sentence):
    given_fields = {"id": "m1", "units": ["a", "b"], "place": PLACE, **fields}
    assert refusal(lambda: Document.build(**given_fields)).startswith(sentence)


def test_a_system_called_gold_is_the_gold():
    under_systems = Document.build("a", ["x", "y"], systems={"gold": [1, 1], "s": [2]})
    both = Document.build("a", ["x", "y"], gold=[1, 1], systems={"gold": [1, 1], "s": [2]})
    assert under_systems == both
    assert list(Corpus((both,)).hypotheses) == ["gold", "s"]
    added = corpus().with_system("gold", {"m1": [4], "m2": [1, 3]})
    assert [document.gold for document in added.documents] == [
        Segmentation((4,)),
        Segmentation((1, 3)),
    ]
    two = refusal(lambda: Document.build("a", ["x", "y"], gold=[2], systems={"gold": [1, 1]}))
    assert "found a gold segmentation and another system called 'gold'" in two


def test_masses_may_cover_the_units_with_text_only():
    made = Document.build("a", ["x", " ", "y", "z"], gold=[2, 2])
    assert made.align([1, 2]) == made.gold == Segmentation((1, 2))
    assert "covers 2 units; expected 4" in refusal(lambda: made.align([1, 1]))


def test_duplicate_documents_name_both_places():
    first = document(place=Place("a.jsonl", 2))
    again = document(place=Place("b.jsonl", 5))
    assert refusal(lambda: Corpus((first, again))) == (
        "b.jsonl, line 5, document 'm1': found the id a second time, first at a.jsonl, line 2; "
        "expected every document once; rename or remove one of the two"
    )


def test_hypotheses_have_gold_first_and_only_where_complete():
    both = corpus(gold=[1, 3], systems={"s": [4]})
    assert list(both.hypotheses) == ["gold", "s"]
    assert both.hypotheses["gold"] == (Segmentation((1, 3)),) * 2
    partly = Corpus((both.documents[0], replace(both.documents[1], gold=None)))
    assert list(partly.hypotheses) == ["s"]
    assert not partly.has_gold


def test_documents_have_positions_and_units_are_counted():
    made = Corpus((Document.build("m", ["a", "", "b", " "]), document("n")))
    assert [made[0].id, made[1].id, made[-1].id] == ["m", "n", "n"]
    assert (made.n_units, made.n_dropped, made.n_without_text) == (6, 2, 2)


def test_only_the_systems_named_stay():
    both = corpus(gold=[1, 3], systems={"s": [4], "t": [2, 2]})
    kept = both.only_systems(["t", "unknown"])
    assert kept.hypotheses == {name: both.hypotheses[name] for name in ("gold", "t")}
    assert list(both.hypotheses) == ["gold", "s", "t"]


def test_with_system_adds_without_touching_the_corpus():
    before = corpus()
    after = before.with_system("s", {"m2": [1, 3], "m1": Segmentation((4,))})
    assert after.hypotheses == {"s": (Segmentation((4,)), Segmentation((1, 3)))}
    assert before.hypotheses == {}


@pytest.mark.parametrize(
    ("name", "segmentations", "sentence"),
    [
        (
            "s",
            {"m1": [4], "m2": [4], "m3": [4]},
            "s.jsonl, line 9, system 's', document 'm3': found a document that the corpus does "
            "not have; expected one of its 2 ids, such as 'm1'; ",
        ),
        ("s", {"m1": [4]}, "s.jsonl, system 's', document 'm2': found no segmentation (1 of 2 doc"),
        (
            "s",
            {"m1": [4], "m2": [1, 2]},
            "s.jsonl, line 8, system 's', document 'm2': found a segmentation that covers 3 units; "
            "expected 4, the number of units in the document; ",
        ),
        ("old", {"m1": [4], "m2": [4]}, "s.jsonl, system 'old': found the system a second time; "),
        ("gold", {"m1": [4], "m2": [4]}, "s.jsonl, system 'gold': found the system a second time"),
        ("", {"m1": [4], "m2": [4]}, "s.jsonl, system '': found the system name ''; "),
    ],
)
def test_systems_that_are_refused(name, segmentations, sentence):
    places = {"m2": Place("s.jsonl", 8), "m3": Place("s.jsonl", 9)}
    made = corpus(systems={"old": [2, 2]}, gold=[2, 2])
    call = lambda: made.with_system(name, segmentations, places, Place("s.jsonl"))  # noqa: E731
    assert refusal(call).startswith(sentence)


def test_merge_keeps_order_and_notes_and_refuses_repeats():
    one, two = Corpus((document("a"),), ("x",)), Corpus((document("b"),), ("y",))
    merged = Corpus.merge([one, two])
    assert [doc.id for doc in merged.documents] == ["a", "b"]
    assert merged.notes == ("x", "y")
    assert "found the id a second time" in refusal(lambda: Corpus.merge([one, one]))
    assert refusal(lambda: Corpus(())).startswith("found no documents; expected at least one; ")
    parts = [Corpus((document("m1", systems={"s": [4]}),)), Corpus((document("m2"),))]
    assert refusal(lambda: Corpus.merge(parts)) == (
        "system 's', document 'm2': found no segmentation (1 of 2 documents lack it); expected one "
        "for every document of the corpus; add the missing ones, so that systems are compared on "
        "the same text"
    )
