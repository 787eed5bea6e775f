"""Dialogue corpora as text of an utterance or a dialogue a line, and TIAGE.

* ``tadam``: DialSeg711 (and ZYS) of TADAM, text: ``call_id_0``, then ``0 utterance`` a line, the
  number being that of the segment.
* ``dailydialog``: ``dialogues_text.txt``, a dialogue a line with ``__eou__`` behind utterances, and
  beside it ``dialogues_topic.txt``; the label is the dialogue's topic (see `dialogues`).
* ``tiage``: ``{"1": [["hello …", "-1"], ["…", "0"], ["…", "1"]], …}``. Each dialogue is a list of
  [utterance, label]: "1" starts a new topic, "0" stays in it, and "-1" stands at the first
  utterance, which has no choice. ``tiage-tsv`` are its tables, ``0<TAB>hello …<TAB>0`` a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from reffree.data.corpus import Document
from reffree.data.segmentation import Segmentation
from reffree.formats.dialogues import Dialogue, Joined
from reffree.formats.format import JSON, TEXT, Format
from reffree.formats.source import Source
from reffree.formats.strict_json import Record, typed, zero_or_one
from reffree.util.errors import Place, counted, mistake, shorten

CALL = re.compile(r"call_id_\S+\s*$")
END = "__eou__"
_TEXT = "dialogues_text.txt"
_TOPICS = "dialogues_topic.txt"


class Tadam(Format):
    """DialSeg711 as TADAM has it."""

    name = "tadam"
    first_line = CALL
    suffixes = TEXT
    rank = 4

    def read(self, source: Source) -> list[Document]:
        """Read ``call_id_…`` and the numbered utterances under each."""
        calls: list[tuple[str, Place, list[str], list[str]]] = []
        for number, line in source.lines_with_text():
            place = source.place(number)
            if CALL.match(line.strip()):
                calls.append((line.strip(), place, [], []))
                continue
            segment, *rest = line.split(None, 1)
            if not calls or not segment.isdecimal() or not rest:
                wanted = "call_id_N, or the number of a segment, a space and an utterance"
                wanted = wanted if calls else "call_id_N on the first line"
                raise mistake(place, f"the line {shorten(line)!r}", wanted)
            calls[-1][2].append(rest[0].rstrip())
            calls[-1][3].append(segment)
        golds = [Segmentation.from_segment_ids(ids) if ids else None for *_, ids in calls]
        return [
            Document.build(id, units, gold=gold, place=place)
            for (id, place, units, _), gold in zip(calls, golds, strict=True)
        ]


@dataclass(frozen=True)
class DailyDialog(Joined):
    """DailyDialog: where there are no topics, every joined dialogue is a segment."""

    name = "dailydialog"
    first_line = re.compile(f".*{END}")
    suffixes = TEXT
    folders = (".txt",)
    rank = 4

    @classmethod
    def matches_folder(cls, folder: Source) -> bool:
        """Whether a file has the corpus's name."""
        return any(file.path.name == _TEXT for file in folder.files.values())

    def read(self, source: Source) -> list[Document]:
        """Read a file of dialogues, or the one of a folder, with the topics beside it."""
        folder = source.path if source.is_folder else source.path.parent
        text = Source(folder / _TEXT, source.used) if source.is_folder else source
        lines = list(text.lines_with_text())
        topics = self._topics(source, Source(folder / _TOPICS, source.used), len(lines))
        dialogues = []
        for i, (number, line) in enumerate(lines):
            units = [unit.strip() for unit in line.split(END)]
            units = units[:-1] if not units[-1] else units
            place = replace(text.place(number), document=f"{text.stem}/{i + 1}")
            label = topics[i] if topics else str(place.document)
            dialogues.append(Dialogue(place, units, [[label]] * len(units)))
        source.notes += [note for note in text.notes if note not in source.notes]
        return self.documents(dialogues)

    def _topics(self, source: Source, file: Source, n: int) -> list[str]:
        if source.is_stdin or not file.path.is_file():
            if self.join > 1:
                remedy = "every dialogue is a segment of its own"
                source.note(f"no {_TOPICS}", "it beside the dialogues", remedy)
            return []
        topics = []
        for number, line in file.lines_with_text():
            topics.append(line.strip())
            if not topics[-1].isdecimal():
                raise mistake(file.place(number), f"the topic {shorten(topics[-1])!r}", "a number")
        if len(topics) != n:
            expected = f"{n}, one for every dialogue of {shorten(source.name, 200)}"
            remedy = "give the dialogues that the topics belong to, or move the topics elsewhere"
            raise mistake(file.place(), counted(len(topics), "topic"), expected, remedy)
        return topics


class Tiage(Format):
    """TIAGE's JSON; its labels start topics."""

    name = "tiage"
    suffixes = JSON
    rank = 6

    @classmethod
    def matches(cls, source: Source) -> bool:
        """Whether there is an object of lists of pairs."""
        dialogue = next(iter(source.value.values()), None)
        return isinstance(dialogue, list) and bool(dialogue) and _is_pair(dialogue[0])

    def read(self, source: Source) -> list[Document]:
        """Read every dialogue."""
        documents = []
        for id, turns in Record(source.json, "the content", source.place()).items():
            place = Place(source.name, document=id)
            labels = []
            for i, turn in enumerate(typed(turns, list, "a dialogue", place)):
                if not _is_pair(turn):
                    found = f"turn {i + 1}: {shorten(turn)}"
                    raise mistake(place, found, "an utterance and its label")
                labels.append(_label(turn[1], i, place))
            gold = Segmentation.from_labels(labels, "start") if labels else None
            units = [turn[0] for turn in turns]
            documents.append(Document.build(id, units, gold=gold, place=place))
        return documents


def _is_pair(turn: object) -> bool:
    return isinstance(turn, list) and len(turn) == 2


def _label(label: object, i: int, place: Place) -> int:
    is_first = i == 0 and str(label).strip() == "-1"
    return 0 if is_first else zero_or_one(label, f"at utterance {i + 1}", place)


class TiageTable(Format):
    """TIAGE's tables."""

    name = "tiage-tsv"
    suffixes = (".tsv", ".csv")
    rank = 0

    @classmethod
    def matches(cls, source: Source) -> bool:
        """Whether the first line is that of a dialogue."""
        row = _row(source.head)
        return row is not None and row[0] == "0" and row[2] in ("-1", "0", "1")

    def read(self, source: Source) -> list[Document]:
        """Read ``index<TAB>utterance<TAB>label`` lines; index 0 starts a dialogue."""
        dialogues: list[tuple[Place, list[str], list[int]]] = []
        for number, line in source.lines_with_text():
            row = _row(line)
            place = source.place(number)
            expected = len(dialogues[-1][1]) if dialogues else 0
            if row is None or len(row[0]) > 9 or int(row[0]) not in (0, expected):
                index = f"index 0 or {expected}" if expected else "index 0"
                found = f"the line {shorten(line)!r}"
                raise mistake(place, found, f"{index}, tab, utterance, tab, label")
            if row[0] == "0" or not dialogues:
                dialogues.append((place, [], []))
            _, units, labels = dialogues[-1]
            labels.append(_label(row[2], len(units), place))
            units.append(row[1])
        golds = [Segmentation.from_labels(labels, "start") for *_, labels in dialogues]
        return [
            Document.build(f"{source.stem}/{i + 1}", units, gold=golds[i], place=place)
            for i, (place, units, _) in enumerate(dialogues)
        ]


def _row(line: str) -> tuple[str, str, str] | None:
    index, _, rest = line.lstrip().partition("\t")
    utterance, tab, label = rest.rpartition("\t")
    return (index, utterance, label.strip()) if tab and index.isdecimal() else None
