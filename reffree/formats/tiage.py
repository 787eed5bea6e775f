"""TIAGE as published: ``{"1": [["hello …", "-1"], ["…", "0"], ["…", "1"]], …}``.

Each dialogue is a list of [utterance, label]: "1" starts a new topic, "0" stays in it, and "-1"
stands at the first utterance, which has no choice.
"""

from __future__ import annotations

from typing import Any, cast

from reffree.corpus import Document
from reffree.errors import InputError, Place, shorten
from reffree.formats.source import Source
from reffree.formats.strict_json import as_list, as_object
from reffree.segmentation import Convention, Segmentation

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
    if convention not in (None, "start"):
        raise InputError(
            f"the convention {convention!r}",
            expected="'start', since a TIAGE label 1 starts a topic",
            remedy="leave out --convention",
            place=source.place(),
        )
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
