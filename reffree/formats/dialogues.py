"""Dialogue corpora as their owners publish them, and what a boundary is in each.

After Coen ("When F1 fails", appendix D): every utterance of both speakers is a unit, its speaker is
kept apart from its text, and a boundary lies where the label changes between two utterances. What a
label is where the corpus has none for some utterance, or several, is ours to say: it stays if it
may (see `changing`), and utterances before the first one have that one.

* ``tadam``: DialSeg711 (and ZYS) of TADAM, text: ``call_id_0``, then ``0 utterance`` a line, the
  number being that of the segment.
* ``utterances``: ``{"dial_id": 0, "utterances": [...], "segments": [4, 6]}`` a dialogue, the
  lengths of segments (DialSeg711 and TIAGE of Dialogue-Topic-Segmenter).
* ``multiwoz``: 2.2 (``dialogues_001.json``) and 2.1 (``data.json``); the label is the domain.
* ``dailydialog``: ``dialogues_text.txt``, a dialogue a line with ``__eou__`` behind utterances, and
  beside it ``dialogues_topic.txt``; the label is the dialogue's topic.
* ``taskmaster``: TM-1, TM-2, TM-3; the label is the task of the annotations, or the subtask.
* ``topical-chat``: the label is the fact section that an utterance draws on (FS1, FS2, FS3).

A published dialogue of DailyDialog or Taskmaster has one label throughout, so that boundaries come
from putting dialogues together (``join``), as Coen did. Which ones the paper does not say: here it
is those that follow one another in the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from reffree.data.corpus import Document
from reffree.data.segmentation import Segmentation
from reffree.formats import jsonl
from reffree.formats.format import JSON, TEXT, Format, Sample
from reffree.formats.source import Source
from reffree.formats.strict_json import as_list, as_object, as_objects, list_field, require_field
from reffree.util.bounds import check_whole
from reffree.util.errors import InputError, Place, counted, shorten

CALL = re.compile(r"call_id_\S+\s*$")
END = "__eou__"
_TEXT = "dialogues_text.txt"
_TOPICS = "dialogues_topic.txt"
_NO_DOMAIN = ("general", "booking")

Labels = Sequence[Sequence[str]]
"""Of every utterance, the labels it may have."""


def changing(labels: Labels) -> list[str] | None:
    """Choose a label for every utterance: the one before if it may stay, else its first.

    Utterances before the first label have that one; None where there is no label at all.

    >>> changing([[], ["hotel"], [], ["taxi", "hotel"], ["taxi"]])
    ['hotel', 'hotel', 'hotel', 'hotel', 'taxi']
    """
    current = next((given[0] for given in labels if given), None)
    if current is None:
        return None
    chosen = []
    for given in labels:
        if given and current not in given:
            current = given[0]
        chosen.append(current)
    return chosen


def _by_label(labels: Labels) -> Segmentation | None:
    chosen = changing(labels)
    return None if chosen is None else Segmentation.from_segment_ids(chosen)


@dataclass(frozen=True, slots=True)
class _Dialogue:
    """One published dialogue, before several may be joined; ``labels`` are those of utterances."""

    id: str
    units: list[str]
    speakers: list[str] | None
    labels: Labels
    place: Place


@dataclass(frozen=True)
class _Joined(Format):
    """Dialogues of which several may become a document."""

    join: int = 1

    def __post_init__(self) -> None:
        """Refuse to join none."""
        check_whole("join", self.join, 1)

    def documents(self, dialogues: Sequence[_Dialogue]) -> list[Document]:
        """Join dialogues that follow one another; the last document may have fewer."""
        documents = []
        for first in range(0, len(dialogues), self.join):
            group = dialogues[first : first + self.join]
            id = group[0].id if len(group) == 1 else f"{group[0].id}+{len(group) - 1}"
            speakers = [speaker for each in group for speaker in each.speakers or ()]
            document = Document.build(
                id,
                [unit for each in group for unit in each.units],
                gold=_by_label([label for each in group for label in each.labels]),
                speakers=speakers or None,
                place=group[0].place,
            )
            documents.append(document)
        return documents


class Tadam(Format):
    """DialSeg711 as TADAM has it."""

    name = "tadam"
    first_line = CALL
    suffixes = TEXT
    rank = 4

    def read(self, source: Source) -> list[Document]:
        """Read ``call_id_…`` and the numbered utterances under each."""
        calls: list[tuple[str, int, list[tuple[str, str]]]] = []
        for number, line in source.lines():
            if not line.strip():
                continue
            if CALL.match(line.strip()):
                calls.append((line.strip(), number, []))
                continue
            segment, *rest = line.split(None, 1)
            if not segment.isdecimal() or not rest or not calls:
                raise InputError(
                    f"the line {shorten(line)!r}",
                    expected="call_id_N, or the number of a segment, a space and an utterance"
                    if calls
                    else "call_id_N on the first line",
                    remedy="check the file's format",
                    place=source.place(number),
                )
            calls[-1][2].append((segment, rest[0].rstrip()))
        documents = []
        for id, number, turns in calls:
            segments = [segment for segment, _ in turns]
            gold = Segmentation.from_segment_ids(segments) if turns else None
            units = [text for _, text in turns]
            documents.append(Document.build(id, units, gold=gold, place=source.place(number)))
        return documents


class Utterances(Format):
    """Dialogues of utterances and lengths of segments."""

    name = "utterances"
    keys = ("utterances", "segments")
    suffixes = JSON

    def read(self, source: Source) -> list[Document]:
        """Read dialogues of ``utterances`` and ``segments``, which are lengths."""
        documents = []
        for i, (table, place) in enumerate(jsonl.tables(source)):
            id = dialogue_id(table, "dial_id", f"{source.stem}/{i + 1}", place)
            place = replace(place, document=id)
            units = list_field(table, "utterances", place)
            masses = list_field(table, "segments", place)
            documents.append(
                Document.build(id, cast(Any, units), gold=cast(Any, masses), place=place)
            )
        return documents


def dialogue_id(table: dict[str, object], key: str, default: str, place: Place) -> str:
    """Read an id, which may be a number; ``default`` where there is none."""
    value = table.get(key)
    value = default if value is None else value
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise InputError(
        f"the {key} {shorten(value)}",
        expected="text or a number",
        remedy=f"name the dialogue, such as {default!r}",
        place=place,
    )


# MultiWOZ


class MultiWoz(Format):
    """MultiWOZ 2.1 and 2.2."""

    name = "multiwoz"
    keys = ("dialogue_id", "turns")
    suffixes = JSON
    rank = 6

    @classmethod
    def matches(cls, sample: Sample) -> bool:
        """Whether there are turns of a dialogue, or logs by file name."""
        return super().matches(sample) or _first_has(sample, "log")

    def read(self, source: Source) -> list[Document]:
        """Read 2.2, a list of dialogues, or 2.1, an object of dialogues by file name."""
        if (
            not source.is_json_lines
            and isinstance(source.json, dict)
            and "turns" not in source.json
        ):
            return [_log(id, value, source) for id, value in source.json.items()]
        return [_turns(table, place) for table, place in jsonl.tables(source)]


def _first_has(sample: Sample, key: str) -> bool:
    """Whether the first value of an object is an object with the key."""
    first = next(iter(sample.value.values()), None)
    return isinstance(first, dict) and key in first


def _turns(table: dict[str, object], place: Place) -> Document:
    id = dialogue_id(table, "dialogue_id", "1", place)
    place = replace(place, document=id)
    turns = as_objects(require_field(table, "turns", place), "turn", place)
    labels: list[list[str]] = []
    before: dict[str, object] = {}
    for turn in turns:
        frames = as_objects(turn.get("frames") or [], "frame", place)
        active: list[str] = []
        changed: list[str] = []
        for frame in frames:
            service = str(frame.get("service"))
            state = frame.get("state")
            if not isinstance(state, dict) or state.get("active_intent", "NONE") == "NONE":
                continue
            active.append(service)
            slots = state.get("slot_values")
            if (slots and slots != before.get(service)) or state.get("requested_slots"):
                changed.append(service)
            before[service] = slots
        labels.append(changed or active)
    return spoken_document(id, turns, "utterance", "speaker", _by_label(labels), place)


def _log(id: str, value: object, source: Source) -> Document:
    place = replace(source.place(), document=id)
    table = as_object(value, "a dialogue", place)
    turns = as_objects(require_field(table, "log", place), "turn", place)
    labels = []
    for turn in turns:
        acts = turn.get("dialog_act")
        domains = [key.partition("-")[0].lower() for key in acts] if isinstance(acts, dict) else []
        labels.append([domain for domain in domains if domain not in _NO_DOMAIN])
    if not any(isinstance(turn.get("dialog_act"), dict) for turn in turns):
        source.note(
            "dialogues without 'dialog_act'",
            expected="MultiWOZ 2.1 or 2.2, where utterances have domains",
            remedy="they have no gold here",
        )
    speakers = [{**turn, "speaker": ("USER", "SYSTEM")[i % 2]} for i, turn in enumerate(turns)]
    return spoken_document(id, speakers, "text", "speaker", _by_label(labels), place)


# Taskmaster and Topical-Chat


@dataclass(frozen=True)
class Taskmaster(_Joined):
    """Taskmaster: labels are annotations' first part (task) or first two (subtask)."""

    level: Literal["task", "subtask"] = "task"
    name = "taskmaster"
    keys = ("conversation_id", "utterances")
    suffixes = JSON

    def read(self, source: Source) -> list[Document]:
        """Read a file's conversations."""
        dialogues = []
        for table, place in jsonl.tables(source):
            id = dialogue_id(table, "conversation_id", "1", place)
            place = replace(place, document=id)
            turns = as_objects(require_field(table, "utterances", place), "utterance", place)
            labels = [self._labels(turn, place) for turn in turns]
            units = [require_field(turn, "text", place) for turn in turns]
            speakers = [str(turn.get("speaker") or "") for turn in turns]
            dialogues.append(_Dialogue(id, cast(Any, units), speakers, labels, place))
        return self.documents(dialogues)

    def _labels(self, turn: dict[str, object], place: Place) -> list[str]:
        found = []
        for segment in as_objects(turn.get("segments") or [], "segment", place):
            for annotation in as_objects(segment.get("annotations") or [], "annotation", place):
                parts = str(annotation.get("name") or "").split(".")
                found.append(".".join(parts[: 1 if self.level == "task" else 2]))
        return [label for label in found if label]


class TopicalChat(Format):
    """Topical-Chat."""

    name = "topical-chat"
    suffixes = JSON
    rank = 6

    @classmethod
    def matches(cls, sample: Sample) -> bool:
        """Whether there are conversations by id."""
        return _first_has(sample, "content")

    def read(self, source: Source) -> list[Document]:
        """Read the conversations of a file by their ids."""
        documents = []
        for id, value in as_object(source.json, "the content", source.place()).items():
            place = replace(source.place(), document=id)
            table = as_object(value, "a conversation", place)
            turns = as_objects(require_field(table, "content", place), "message", place)
            labels = []
            for turn in turns:
                given = as_list(turn.get("knowledge_source") or [], "'knowledge_source'", place)
                labels.append(
                    [each for each in given if isinstance(each, str) and each[:2] == "FS"]
                )
            documents.append(
                spoken_document(id, turns, "message", "agent", _by_label(labels), place)
            )
        return documents


def spoken_document(
    id: str,
    turns: Sequence[dict[str, object]],
    text: str,
    speaker: str,
    gold: Segmentation | None,
    place: Place,
) -> Document:
    """Make a document of turns, which have their text and speaker under the keys."""
    units = [require_field(turn, text, place) for turn in turns]
    speakers = [str(turn.get(speaker) or "") for turn in turns]
    given = speakers if any(speakers) else None
    return Document.build(id, cast(Any, units), gold=gold, speakers=given, place=place)


# DailyDialog


@dataclass(frozen=True)
class DailyDialog(_Joined):
    """DailyDialog: where there are no topics, every joined dialogue is a segment."""

    name = "dailydialog"
    first_line = re.compile(f".*{END}")
    suffixes = TEXT
    folders = (".txt",)
    rank = 4

    @classmethod
    def matches_folder(cls, folder: Sample) -> bool:
        """Whether a file has the corpus's name."""
        return any(path.name == _TEXT for path in folder.files.values())

    def read(self, source: Source) -> list[Document]:
        """Read a file of dialogues, or the one of a folder, with the topics beside it."""
        folder = source.path if source.is_folder else source.path.parent
        text = Source(folder / _TEXT, source.used) if source.is_folder else source
        lines = [(number, line) for number, line in text.lines() if line.strip()]
        topics = self._topics(source, Source(folder / _TOPICS, source.used), len(lines))
        dialogues = []
        for i, (number, line) in enumerate(lines):
            units = [unit.strip() for unit in line.split(END)]
            units = units[:-1] if not units[-1] else units
            id = f"{text.stem}/{i + 1}"
            label = topics[i] if topics else id
            place = replace(text.place(number), document=id)
            dialogues.append(_Dialogue(id, units, None, [[label]] * len(units), place))
        source.notes += [note for note in text.notes if note not in source.notes]
        return self.documents(dialogues)

    def _topics(self, source: Source, file: Source, n: int) -> list[str]:
        if source.is_stdin or not file.path.is_file():
            if self.join > 1:
                source.note(
                    f"no {_TOPICS}",
                    expected="it beside the dialogues",
                    remedy="every dialogue is a segment of its own",
                )
            return []
        topics = [(number, line.strip()) for number, line in file.lines() if line.strip()]
        for number, topic in topics:
            if not topic.isdecimal():
                raise InputError(
                    f"the topic {shorten(topic)!r}",
                    expected="a number",
                    remedy="check the file's format",
                    place=file.place(number),
                )
        if len(topics) != n:
            raise InputError(
                counted(len(topics), "topic"),
                expected=f"{n}, one for every dialogue of {shorten(source.name, 200)}",
                remedy="give the dialogues that the topics belong to, or move the topics elsewhere",
                place=file.place(),
            )
        return [topic for _, topic in topics]
