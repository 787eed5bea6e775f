"""Prose whose headings or sections are gold: Markdown, plain text, WikiSection, RadioNews."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reffree.data.sentences import splitter
from reffree.formats import load
from reffree.util.errors import OptionError
from tests.formats.conftest import write
from tests.helpers import refusal

MARKDOWN = """---
title: not text
---
A preface. It has two sentences.

# Bees

Bees *fly* out,
far `away`. Dr. Smith says so.

- one item
- [another](http://x.y) item

## Honey

| a | b |
|---|---|
| 1 | 2 |

```python
# no heading
x = 1
```

Routers
=======

A router fails.

# Empty
"""


def test_markdown_headings_open_segments():
    document = load(write(MARKDOWN, "doc.md")).documents[0]
    assert document.id == "doc"
    assert document.units == (
        *("A preface.", "It has two sentences."),
        *("Bees fly out, far away.", "Dr. Smith says so.", "one item", "another item"),
        *("a | b", "1 | 2", "# no heading x = 1"),
        "A router fails.",
    )
    assert document.gold.masses == (2, 4, 3, 1)
    assert document.meta == {
        "headings": [None, "Bees", "Honey", "Routers"],
        "sentences": splitter("en"),
    }


def test_markdown_by_level_and_by_paragraph():
    name = write(MARKDOWN, "doc.md")
    assert load(name, format="markdown:level=1").documents[0].gold.masses == (2, 7, 1)
    whole = load(name, format="markdown:units=paragraph").documents[0]
    assert whole.units[:2] == (
        "A preface. It has two sentences.",
        "Bees fly out, far away. Dr. Smith says so.",
    )
    assert whole.gold.masses == (1, 3, 3, 1)
    assert "sentences" not in whole.meta


def test_markdown_without_headings_has_no_gold():
    assert load(write("Just words. More.\n", "x.markdown")).documents[0].gold is None
    assert "found no units" in refusal(load, write("# Only a title\n", "y.md"))
    with pytest.raises(OptionError, match=r"level = 7 in 'markdown:level=7'; .* 6 or less"):
        load("x.markdown", format="markdown:level=7")
    with pytest.raises(OptionError, match=r"language=english in .*; expected a code such as en "):
        load("x.markdown", format="markdown:language=english")


TEXT = """INTRODUCTION

Bees fly out. They
come home.

2.1 Honey and wax

It is made there.
2.2 is no heading here.

== Routers ==
A router fails.

Lights
------
It blinks.

Chapter 4

The end.
"""


def test_plain_text_with_headings():
    assert "plain text, which has no segmentation" in refusal(load, write(TEXT, "t.txt"))
    document = load("t.txt", format="headings").documents[0]
    assert document.units == (
        *("Bees fly out.", "They come home.", "It is made there.", "2.2 is no heading here."),
        *("A router fails.", "It blinks.", "The end."),
    )
    assert document.gold.masses == (2, 2, 1, 1, 1)
    assert document.meta["headings"] == [
        *("INTRODUCTION", "2.1 Honey and wax", "Routers", "Lights", "Chapter 4"),
    ]
    top = load("t.txt", format="headings:level=1").documents[0]
    assert top.gold.masses == (4, 2, 1)
    assert refusal(load, write("Just words.\n", "u.txt"), format="headings").startswith(
        "u.txt: found no headings; expected lines such as # Title, == Title ==, 2.1 Title or TITLE"
    )


def test_levels_of_plain_headings():
    name = write("# One\na.\n\n=== Two ===\nb.\n\nThree\n-----\nc.\n\nFour\n====\nd.", "t.txt")
    for level, masses in ((1, (3, 1)), (2, (1, 1, 1, 1))):
        assert load(name, format=f"headings:level={level}").documents[0].gold.masses == masses


# Wiki-727K: a sentence a line
WIKI = """========,1,preface.
Bees are insects. They fly.
***LIST***.
========,2,Honey.
It is sweet.
========,3,Wax.
It is hard.
"""


def test_wiki727_is_told_by_its_separators():
    document = load(write(WIKI, "1234")).documents[0]
    assert document.units == ("Bees are insects. They fly.", "It is sweet.", "It is hard.")
    assert document.gold.masses == (1, 1, 1)
    assert load("1234", format="headings:level=2").documents[0].gold.masses == (1, 2)
    assert load("1234", format="headings:level=1").documents[0].gold.masses == (3,)
    assert load("1234", format="headings:level=1").documents[0].meta == {"headings": ["preface"]}
    assert document.meta == {"headings": ["preface", "Honey", "Wax"]}


def test_without_markdown_it_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    assert refusal(load, write("# A\n\nOne.\n", "x.md")) == (
        "x.md, document 'x': found Markdown, but no markdown-it-py; expected it to read Markdown; "
        "run python -m pip install 'reffree[markdown]'"
    )


def test_without_sentencex_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    assert refusal(load, write("# A\n\nOne.\n", "x.md")).startswith(
        "x.md, document 'x': found no installed sentencex; expected this library, since "
    )
    assert load("x.md", format="markdown:units=paragraph").documents[0].units == ("One.",)


def test_plain_text_without_a_segmentation():
    name = write("one\ntwo\n\nthree\n", "t.txt")
    corpus = load(name, format="lines")
    assert [(d.id, d.units, d.gold) for d in corpus] == [
        ("t/1", ("one", "two"), None),
        ("t/2", ("three",), None),
    ]
    one = load(name, format="lines:documents=one")
    assert [(d.id, d.units) for d in one] == [("t", ("one", "two", "three"))]
    assert "found no documents" in refusal(load, write("\n\n", "e.txt"), format="lines")


# WikiSection


ARTICLE = {
    "id": "https://en.wikipedia.org/wiki/Bee",
    "type": "disease",
    "title": "Bee",
    "abstract": "Bees are insects.",
    "text": "Bees fly. They work.\nThey sleep.\nHoney is sweet. It is old.\n***LIST***.\n",
    "annotations": [],
}


def section(text: str, heading: str, label: str, **changed) -> dict:
    place = {"begin": ARTICLE["text"].index(text), "length": len(text)}
    return {**place, "sectionHeading": heading, "sectionLabel": label, **changed}


def article(*sections, **changed) -> list:
    return [{**ARTICLE, "annotations": list(sections), **changed}]


WORK = section("Bees fly. They work.\n", "Work", "disease.cause")
SLEEP = section("They sleep.\n", "Work | Sleep", "disease.cause")
HONEY = section("Honey is sweet. It is old.\n***LIST***.\n", "Honey", "disease.other")


def test_wikisection_sections_are_segments():
    name = write(article(WORK, SLEEP, HONEY), "wikisection_en_disease_test.json")
    document = load(name).documents[0]
    assert document.id == ARTICLE["id"]
    assert document.units == (
        *("Bees fly.", "They work.", "They sleep.", "Honey is sweet.", "It is old."),
    )
    assert document.gold.masses == (2, 1, 2)
    assert document.meta["headings"] == ["Work", "Work | Sleep", "Honey"]
    assert document.meta["title"] == "Bee"
    by_label = load(name, format="wikisection:boundaries=label").documents[0]
    assert by_label.gold.masses == (3, 2)


def test_wikisection_text_outside_of_sections_is_a_segment():
    document = load(write(article(SLEEP), "x.json")).documents[0]
    assert document.gold.masses == (2, 1, 2)
    end = {"begin": 0, "length": len("Bees fly."), "sectionHeading": "x"}
    document = load(write(article(end, text="Bees fly.X"), "x.json")).documents[0]
    assert document.units == ("Bees fly.", "X")


def test_wikisection_in_german():
    text = "Am 3. Mai war es z. B. warm. Es regnete."
    changed = {"id": "https://de.wikipedia.org/wiki/Berlin", "text": text}
    annotation = {"begin": 0, "length": len(text), "sectionHeading": "Klima"}
    document = load(write(article(annotation, **changed), "x.json")).documents[0]
    assert document.units == ("Am 3. Mai war es z. B. warm.", "Es regnete.")
    assert document.meta["sentences"] == splitter("de")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (article(HONEY, WORK), "found annotation 2 with begin 0 and length 21; expected character"),
        (article({**WORK, "begin": -1}), "found annotation 1 with begin -1 and length 21; "),
        (article({**WORK, "length": 10**6}), "found annotation 1 with begin 0 and length 1000000;"),
        (article({**WORK, "begin": "0"}), "found annotation 1 with begin 0 and length 21; "),
        (article({"begin": 0}), "found no 'length' among 'begin'; "),
        (article(3), "found a number as annotation 1; "),
        (article(WORK, text=["a"]), "found a list as 'text'; expected text; "),
        (article(text=" "), "found no units; "),
    ],
)
def test_wikisection_that_is_refused(content, sentence):
    told = refusal(load, write(content, "x.json"))
    assert told.startswith(f"x.json, document '{ARTICLE['id']}': {sentence}")


# SBBC-RadioNews: the layout that its authors' own loader reads


def programme(*transcripts) -> dict:
    segments = [{"title": f"t{i}", "transcript": text} for i, text in enumerate(transcripts)]
    return {"data": {"getProgrammeById": {"segments": segments}}}


def test_radionews():
    Path("news").mkdir()
    write(programme("The news. Rain.", "", "Sport. Goals. Wins."), "news/a.json")
    write({"segments": [{"transcript": "One."}]}, "news/b.json")
    first, second = load("news").documents
    assert (first.id, second.id) == ("a", "b")
    assert first.units == ("The news.", "Rain.", "Sport.", "Goals.", "Wins.")
    assert first.gold.masses == (2, 3)
    assert load("news/b.json").documents[0].gold.masses == (1,)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"data": {"getProgrammeById": 1}}, "found a number as 'getProgrammeById'; "),
        ({"data": {"getProgrammeById": {}}}, "found an empty object; expected the field "),
        (programme(3), "found a number as 'transcript'; expected text; "),
        (programme(""), "found no units; "),
    ],
)
def test_radionews_that_is_refused(content, sentence):
    assert refusal(load, write(content, "a.json")).startswith(f"a.json, document 'a': {sentence}")
