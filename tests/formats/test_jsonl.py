"""Corpus JSONL: strict JSON, strict keys, and a writer that reads back the same."""

from __future__ import annotations

import json

import pytest

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.formats import load, save
from reffree.formats.strict_json import parse
from reffree.util.errors import InputError, Place
from tests.formats.conftest import write
from tests.helpers import refusal as refusal_of

FULL = {
    "id": "m1",
    "units": ["hello", "", "there", "friend"],
    "gold": [3, 1],
    "systems": {"even": [2, 2]},
    "speakers": ["A", "A", "B", "A"],
    "golds": {"ann": [1, 3], "bob": [2, 2]},
    "meta": {"year": 1999, "nested": {"a": [1.5, None, True]}},
}


def refusal(text: str) -> str:
    return refusal_of(load, write(text, "c.jsonl"))


def test_every_field():
    document = load(write(FULL, "c.jsonl")).documents[0]
    assert document.units == ("hello", "there", "friend")
    assert document.n_dropped == 1
    assert document.gold == Segmentation((2, 1))
    assert document.systems == {"even": Segmentation((1, 2))}
    assert document.speakers == ("A", "B", "A")
    assert document.golds == {"ann": Segmentation((1, 2)), "bob": Segmentation((1, 2))}
    assert document.references == tuple(document.golds.values())
    assert document.meta["nested"] == {"a": [1.5, None, True]}


def test_empty_optional_fields_are_absent():
    null = dict.fromkeys(("gold", "systems", "speakers", "meta", "golds"))
    name = write({"id": "m", "units": ["a"], **null}, "c.jsonl")
    assert load(name).documents[0] == Document.build("m", ["a"])


AT = "c.jsonl, line 1, document 'm': found "
UNITS = "expected the field 'units', the document's sentences or utterances as a list of strings; "
ONLY = "expected only 'id', 'units', 'gold', 'systems', 'speakers', 'meta'"


def with_field(key: str, value: object) -> str:
    return json.dumps({"id": "m", "units": ["a", "b"], key: value})


GOLD = "c.jsonl, line 1, system 'gold', document 'm': found "
ANN = "c.jsonl, line 1, system 'ann', document 'm': found "
L1 = "c.jsonl, line 1: found "


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "c.jsonl, line 1: found text that is not JSON (Expecting property name enclosed in "),
        ('{"id": "m"} x', "c.jsonl, line 1: found text that is not JSON (Extra data at character "),
        ("[1]", "c.jsonl, line 1: found a list as a document; expected an object in braces; "),
        ("null", "c.jsonl, line 1: found null as a document; "),
        ("true", "c.jsonl, line 1: found true as a document; "),
        ("{}", f"c.jsonl, line 1: found an empty object; {UNITS}add it"),
        ('{"id": "m"}', f"{AT}no 'units' among 'id'; {UNITS}add it"),
        (
            '{"id": "m", "text": "One. Two."}',
            f"{AT}no 'units' among 'id', 'text'; {UNITS}split 'text' into such a list and call it "
            "'units'",
        ),
        (
            '{"id": "m", "title": "T", "sentences": ["One.", "Two."]}',
            f"{AT}no 'units' among 'id', 'title', 'sentences'; {UNITS}rename 'sentences' to "
            "'units'",
        ),
        ('{"doc": "m", "units": ["a"]}', L1 + "no 'id' among 'doc', 'units'; expected the field '"),
        ('{"units": ["a"]}', "c.jsonl, line 1: found no 'id' among 'units'; expected the field"),
        (
            '{"id": 3, "units": ["a"]}',
            "c.jsonl, line 1: found the document id 3; expected a non-empty string without control "
            'characters; give every document an "id" of its own, in quotes',
        ),
        ('{"id": "m", "unit": ["a"]}', f"{AT}no 'units' among 'id', 'unit'; {UNITS}rename 'unit' "),
        ('{"id": "m", "Units": [1]}', f"{AT}no 'units' among 'id', 'Units'; {UNITS}rename 'Units'"),
        (with_field("color", 1), f"{AT}the unknown key 'color'; {ONLY}; move it into 'meta'"),
        (with_field("unit", 1), f"{AT}the unknown key 'unit'; {ONLY}; move it into 'meta'"),
        (with_field("system", {}), f"{AT}the unknown key 'system'; {ONLY}; did you mean 'systems'"),
        (
            with_field("tiling", [1, 1]),
            f"{AT}the unknown key 'tiling'; {ONLY}; move it into 'systems' if it is a "
            "segmentation, else into 'meta'",
        ),
        (
            '{"id": "m", "units": ["a"], "golds": {}, "color": 1}',
            f"{AT}the unknown key 'color'; {ONLY}, 'golds'; move it into 'meta'",
        ),
        (
            '{"id": "m", "segmentation": [1, 1]}',
            AT + "a segmentation without units; expected a corpus, whose documents have 'units'; "
            "give this file with --system NAME=FILE next to its corpus",
        ),
        ('{"id": "m", "units": ["a", 5]}', AT + "unit 2 of 2 is 5 (int); expected a string; "),
        ('{"id": "m", "units": {"a": 1}}', AT + "dict as units; expected a list of strings; "),
        (with_field("gold", [3]), GOLD + "a segmentation that covers 3 units; expected 2, the num"),
        (with_field("gold", "01"), "c.jsonl, line 1, system 'gold', document 'm': found the seg"),
        (with_field("systems", [2]), AT + "a list as 'systems'; expected an object in braces; "),
        (with_field("systems", []), AT + "a list as 'systems'; expected an object in braces; "),
        (with_field("systems", {"s": [1]}), "c.jsonl, line 1, system 's', document 'm': found a "),
        (with_field("meta", "x"), AT + "a string as 'meta'; expected an object in braces; "),
        (with_field("meta", {"golds": {}}), AT + "the key 'golds' inside 'meta'; "),
        (with_field("golds", [1, 1]), AT + "a list as 'golds'; expected an object in braces; "),
        (with_field("golds", {"ann": [5]}), ANN + "a segmentation that covers 5 "),
        (with_field("speakers", ["A"]), AT + "1 speaker; expected 2 strings, one for every unit"),
        ('{"id": "m", "units": ["a"], "id": "n"}', L1 + "the key 'id' twice in one object; expect"),
        (
            '{"id": "m", "units": ["a"], "meta": {"x": {"y": 1, "z": 2, "y": 3}}}',
            "c.jsonl, line 1: found the key 'y' twice in one object; ",
        ),
        (with_field("meta", float("nan")), "c.jsonl, line 1: found the number NaN; expected valid"),
        (with_field("meta", float("-inf")), "c.jsonl, line 1: found the number -Infinity; "),
        ('{"id": "m", "meta": 1e999}', "c.jsonl, line 1: found the number 1e999; "),
        (f'{{"gold": [{"9" * 5000}]}}', "c.jsonl, line 1: found a number of 5000 digits; "),
        (
            '{"id": "m", "units": ["a\\ud800"]}',
            "c.jsonl, line 1: found the lone surrogate \\ud800 in a string; expected valid JSON; ",
        ),
        ('{"id": "m", "meta": {"\\uDFFF": 1}}', "c.jsonl, line 1: found the lone surrogate \\udf"),
        ("[" * 100_000, "c.jsonl, line 1: found endlessly nested lists or objects; expected vali"),
        ("[" * 101 + "]" * 101, "c.jsonl, line 1: found endlessly nested lists or objects; "),
    ],
)
def test_lines_that_are_refused(line, sentence):
    assert refusal(line).startswith(sentence)


NOT_JSON = "c.jsonl, line 1: found text that is not JSON "
ONE_A_LINE = (
    "expected valid JSON; put every document on one line, since a .jsonl file has one whole "
    "document per line"
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            json.dumps({"id": "m", "units": ["a"]}, indent=2),
            f"{NOT_JSON}(Expecting property name enclosed in double quotes at character 2); "
            f"{ONE_A_LINE}",
        ),
        ('{"id": "m",\n "units": ["a"]}', f"{ONE_A_LINE}"),
        (
            "[\n" + json.dumps(FULL) + "\n]",
            f"{NOT_JSON}(Expecting value at character 2); {ONE_A_LINE}",
        ),
        (
            '{"id": "m", "units": ["a\nb"]}',
            f"{NOT_JSON}(Unterminated string starting at character 23); {ONE_A_LINE}",
        ),
        (json.dumps([FULL]), L1 + "a list as a document; expected an object in braces; write ever"),
        ('{"id": "m", "units": ["a", ]}', L1 + "a needless comma at character 26; expected valid "),
        ('{"id": "m", "units": ["a"],}', "found a needless comma at character 27; expected valid "),
        ('{"id": "m", "units": ["a"]},\n', "found a needless comma at character 28; expected val"),
        ('{"id": "m" x}', "repair it, or name the right format with --format"),
    ],
)
def test_json_of_another_layout(text, sentence):
    assert sentence in refusal(text)


def test_surrogate_pairs_and_other_escapes_are_fine():
    text = '{"id": "m", "units": ["\\ud83d\\ude00", "\\u00e4\\u2028x", "\\\\ud800"]}'
    assert load(write(text)).documents[0].units == ("😀", "ä\u2028x", "\\ud800")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '[\n {"id": "m",\n  "units": ["a" "b"]}\n]',
            "c.json, line 3: found text that is not JSON (Expecting ','",
        ),
        (
            '[\n {"id": "m", "units": ["a"]},\n\n]\n',
            "c.json, line 2: found a needless comma at character 29",
        ),
        (
            '[\n {"id": "m", "units": ["a"]}, 7]',
            "c.json: found a number as document 2; expected an ",
        ),
    ],
)
def test_json_lists_name_the_line_of_a_mistake(text, sentence):
    assert refusal_of(load, write(text, "c.json")).startswith(sentence)


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}, {(1, 2): 3}])
def test_meta_that_json_cannot_hold_is_refused_and_nothing_is_written(tmp_path, value):
    path = tmp_path / "c.jsonl"
    path.write_text("old")
    corpus = Corpus((Document.build("m", ["a"]), Document.build("n", ["a"], meta={"x": value})))
    with pytest.raises(InputError, match=r"^document 'n': found a value that JSON cannot hold \("):
        save(corpus, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_lists_may_be_nested_a_hundred_deep():
    assert parse("[" * 100 + "]" * 100, Place())
