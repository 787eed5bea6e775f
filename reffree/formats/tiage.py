"""TIAGE as published: ``{"1": [["hello …", "-1"], ["…", "0"], ["…", "1"]], …}``.

Each dialogue is a list of [utterance, label]: "1" starts a new topic, "0" stays in it, and "-1"
stands at the first utterance, which has no choice. Also its tables, ``0<TAB>hello …<TAB>0`` a line.
"""

from __future__ import annotations

import re
from typing import Any, cast

from reffree.data.corpus import Document
from reffree.data.segmentation import Convention, Segmentation
from reffree.formats.source import Source
from reffree.formats.strict_json import as_list, as_object
from reffree.util.errors import InputError, Place, shorten

_LABELS = {"-1": 0, "0": 0, "1": 1}


def looks_like(value: object) -> bool:
    """Whether a JSON value is an object of lists of pairs."""
    if not isinstance(value, dict) or not value:
        return False
    dialogue = next(iter(value.values()))
    return isinstance(dialogue, list) and bool(dialogue) and _is_pair(dialogue[0])


def _is_pair(turn: object) -> bool:
    return isinstance(turn, list) and len(turn) == 2


def read(source: Source, convention: Convention | None) -> list[Document]:
    """Read every dialogue; the labels start topics, whatever else is asked for is refused."""
    _check(convention, source)
    documents = []
    for id, turns in as_object(source.json, "the content", source.place()).items():
        place = Place(source.name, document=id)
        units, labels = [], []
        for i, turn in enumerate(as_list(turns, "a dialogue", place)):
            if not _is_pair(turn):
                raise InputError(
                    f"turn {i + 1}: {shorten(turn)}",
                    expected="an utterance and its label",
                    remedy="check the file's format",
                    place=place,
                )
            utterance, label = cast(list[object], turn)
            units.append(utterance)
            labels.append(_label(label, i, place))
        gold = Segmentation.from_labels(labels, "start") if labels else None
        documents.append(Document.build(id, cast(Any, units), gold=gold, place=place))
    return documents


def _check(convention: Convention | None, source: Source) -> None:
    if convention not in (None, "start"):
        raise InputError(
            f"the convention {convention!r}",
            expected="'start', since a TIAGE label 1 starts a topic",
            remedy="leave out --convention",
            place=source.place(),
        )


def _label(label: object, i: int, place: Place) -> int:
    text = str(label).strip()
    if text in _LABELS and not (text == "-1" and i):
        return _LABELS[text]
    raise InputError(
        f"the label {shorten(label)} at utterance {i + 1}",
        expected="0 or 1" if i else "-1, 0 or 1",
        remedy="correct the label",
        place=place,
    )


_ROW = re.compile(r"\s*(\d+)\t(.*)\t\s*([^\t]*?)\s*")


def is_table_line(line: str) -> bool:
    """Whether a line is the first of a dialogue in TIAGE's tables."""
    found = _ROW.fullmatch(line)
    return found is not None and found[1] == "0" and found[3] in _LABELS


def read_table(source: Source, convention: Convention | None) -> list[Document]:
    """Read ``index<TAB>utterance<TAB>label`` lines without a header; index 0 starts a dialogue."""
    _check(convention, source)
    dialogues: list[tuple[int, list[str], list[int]]] = []
    for number, line in source.lines():
        if not line.strip():
            continue
        found = _ROW.fullmatch(line)
        place = source.place(number)
        expected = len(dialogues[-1][1]) if dialogues else 0
        if found is None or len(found[1]) > 9 or int(found[1]) not in (0, expected):
            raise InputError(
                f"the line {shorten(line)!r}",
                expected=f"index 0 or {expected}, tab, utterance, tab, label"
                if expected
                else "index 0, tab, utterance, tab, label",
                remedy="check the file's format",
                place=place,
            )
        if found[1] == "0" or not dialogues:
            dialogues.append((number, [], []))
        _, units, labels = dialogues[-1]
        labels.append(_label(found[3], len(units), place))
        units.append(found[2])
    return [
        Document.build(
            f"{source.stem}/{i + 1}",
            units,
            gold=Segmentation.from_labels(labels, "start"),
            place=source.place(number),
        )
        for i, (number, units, labels) in enumerate(dialogues)
    ]
