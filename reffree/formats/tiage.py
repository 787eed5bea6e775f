"""TIAGE as published: ``{"1": [["hello …", "-1"], ["…", "0"], ["…", "1"]], …}``.

Each dialogue is a list of [utterance, label]: "1" starts a new topic, "0" stays in it, and "-1"
stands at the first utterance, which has no choice. Also its tables, ``0<TAB>hello …<TAB>0`` a line.
"""

from __future__ import annotations

from typing import Any, cast

from reffree.data.corpus import Document
from reffree.data.segmentation import Segmentation
from reffree.formats.format import JSON, Format, Sample
from reffree.formats.source import Source
from reffree.formats.strict_json import as_list, as_object
from reffree.util.errors import InputError, Place, shorten

_LABELS = {"-1": 0, "0": 0, "1": 1}


class Tiage(Format):
    """TIAGE's JSON; its labels start topics."""

    name = "tiage"
    suffixes = JSON
    rank = 6

    @classmethod
    def matches(cls, sample: Sample) -> bool:
        """Whether there is an object of lists of pairs."""
        dialogue = next(iter(sample.value.values()), None)
        return isinstance(dialogue, list) and bool(dialogue) and _is_pair(dialogue[0])

    def read(self, source: Source) -> list[Document]:
        """Read every dialogue."""
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


def _is_pair(turn: object) -> bool:
    return isinstance(turn, list) and len(turn) == 2


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


class TiageTable(Format):
    """TIAGE's tables."""

    name = "tiage-tsv"
    suffixes = (".tsv", ".csv")
    rank = 0

    @classmethod
    def matches(cls, sample: Sample) -> bool:
        """Whether the first line is that of a dialogue."""
        row = _row(sample.head)
        return row is not None and row[0] == "0" and row[2] in _LABELS

    def read(self, source: Source) -> list[Document]:
        """Read ``index<TAB>utterance<TAB>label`` lines; index 0 starts a dialogue."""
        dialogues: list[tuple[int, list[str], list[int]]] = []
        for number, line in source.lines():
            if not line.strip():
                continue
            row = _row(line)
            place = source.place(number)
            expected = len(dialogues[-1][1]) if dialogues else 0
            if row is None or len(row[0]) > 9 or int(row[0]) not in (0, expected):
                index = f"index 0 or {expected}" if expected else "index 0"
                raise InputError(
                    f"the line {shorten(line)!r}",
                    expected=f"{index}, tab, utterance, tab, label",
                    remedy="check the file's format",
                    place=place,
                )
            if row[0] == "0" or not dialogues:
                dialogues.append((number, [], []))
            _, units, labels = dialogues[-1]
            labels.append(_label(row[2], len(units), place))
            units.append(row[1])
        return [
            Document.build(
                f"{source.stem}/{i + 1}",
                units,
                gold=Segmentation.from_labels(labels, "start"),
                place=source.place(number),
            )
            for i, (number, units, labels) in enumerate(dialogues)
        ]


def _row(line: str) -> tuple[str, str, str] | None:
    """Split a line into index, utterance and label."""
    index, _, rest = line.lstrip().partition("\t")
    utterance, tab, label = rest.rpartition("\t")
    return (index, utterance, label.strip()) if tab and index.isdecimal() else None
