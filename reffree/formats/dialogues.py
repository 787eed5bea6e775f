"""Dialogue and meeting corpora as JSON, and what a boundary is in each.

After Coen ("When F1 fails", appendix D): every utterance of both speakers is a unit, its speaker is
kept apart from its text, and a boundary lies where the label changes between two utterances. What a
label is where the corpus has none for some utterance, or several, is ours to say: it stays if it
may (see `by_label`), and utterances before the first one have that one.

* ``dialseg``: SuperDialseg, and DialSeg711, Doc2Dial and others in that form: ``{"dial_data":
  {"<dataset>": [{"dial_id": "…", "turns": [{"role": "user", "utterance": "…",
  "segmentation_label": 0, "topic_id": 3}, …]}, …]}}``. A label 1 marks the last utterance of a
  topic (convention end); the final label is 0 in the published files and does not matter. Without
  labels, a change of ``topic_id`` starts a segment. Where both are there the labels count.
* ``utterances``: ``{"dial_id": 0, "utterances": [...], "segments": [4, 6]}`` a dialogue, the
  lengths of segments (DialSeg711 and TIAGE of Dialogue-Topic-Segmenter).
* ``multiwoz``: 2.2 (``dialogues_001.json``) and 2.1 (``data.json``); the label is the domain.
* ``taskmaster``: TM-1, TM-2, TM-3; the label is the task of the annotations, or the subtask.
* ``topical-chat``: the label is the fact section that an utterance draws on (FS1, FS2, FS3).
* ``qmsum``: a meeting per JSON file, a folder of them, or a JSONL of meetings: ``{"topic_list":
  [{"topic": "…", "relevant_text_span": [["0", "19"], ["24", "29"]]}, …], "meeting_transcripts":
  [{"speaker": "…", "content": "…"}, …]}``. Spans are turn numbers from 0, both ends included. Gold
  uses every span: where spans overlap the one that starts later wins (of equal starts, the later in
  the file), what is left of the earlier one before and after it is a segment each, and every run of
  turns outside all spans is one too.

A published dialogue of DailyDialog (`dialogue_lines`) or Taskmaster has one label throughout, so
that boundaries come from putting dialogues together (``join``), as Coen did. Which ones the paper
does not say: here it is those that follow one another in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.formats import jsonl
from reffree.formats.format import JSON, Format
from reffree.formats.source import Source
from reffree.formats.strict_json import Record, typed, zero_or_one
from reffree.util.bounds import check_whole
from reffree.util.errors import Place, counted, mistake, shorten

MEETING = "meeting_transcripts"
DATA, LABEL, TOPIC, ROLE = "dial_data", "segmentation_label", "topic_id", "role"
_NO_DOMAIN = ("general", "booking")

Labels = Sequence[Sequence[str]]
"""Of every utterance, the labels it may have."""


def by_label(labels: Labels) -> Segmentation | None:
    """Begin a segment where the label has to change; None where there is no label at all.

    >>> by_label([[], ["hotel"], [], ["taxi", "hotel"], ["taxi"]]).masses
    (4, 1)
    """
    current = next((given[0] for given in labels if given), None)
    chosen = []
    for given in labels:
        current = given[0] if given and current not in given else current
        chosen.append(current)
    return None if current is None else Segmentation.from_segment_ids(chosen)


def _spoken(
    turns: Sequence[Record], text: str, speaker: str, gold: Segmentation | None, place: Place
) -> Document:
    """Make a document of turns, which have their text and speaker under the keys."""
    units = [turn.need(text) for turn in turns]
    speakers = [str(turn.get(speaker) or "") for turn in turns]
    given = speakers if any(speakers) else None
    return Document.build(cast(str, place.document), units, gold=gold, speakers=given, place=place)


class Dialogue(NamedTuple):
    """One published dialogue, before several may be joined; ``labels`` are those of utterances."""

    place: Place
    units: list[str]
    labels: Labels
    speakers: Sequence[str] = ()


@dataclass(frozen=True)
class Joined(Format):
    """Dialogues of which several may become a document."""

    join: int = 1

    def __post_init__(self) -> None:
        """Refuse to join none."""
        check_whole("join", self.join, 1)

    def documents(self, dialogues: Sequence[Dialogue]) -> list[Document]:
        """Join dialogues that follow one another; the last document may have fewer."""
        documents = []
        for first in range(0, len(dialogues), self.join):
            group = dialogues[first : first + self.join]
            place, more = group[0].place, f"+{len(group) - 1}" if len(group) > 1 else ""
            units = [unit for each in group for unit in each.units]
            gold = by_label([label for each in group for label in each.labels])
            said = [speaker for each in group for speaker in each.speakers] or None
            id = f"{place.document}{more}"
            documents.append(Document.build(id, units, gold=gold, speakers=said, place=place))
        return documents


@dataclass(frozen=True)
class Dialseg(Format):
    """SuperDialseg's files; ``convention`` is what a label 1 means."""

    convention: Literal["end", "start"] = "end"
    name = "dialseg"
    keys = (DATA,)
    suffixes = JSON
    written_as = ()
    keeps = frozenset({"text", "speakers"})

    def read(self, source: Source) -> list[Document]:
        """Read the dialogues of every dataset in the file."""
        place = source.place()
        documents, disagreeing = [], 0
        datasets = Record(source.json, "the content", place).need_object(DATA)
        for dataset, dialogues in datasets.items():
            for i, value in enumerate(typed(dialogues, list, f"the dataset {dataset!r}", place)):
                dialogue = Record(value, f"dialogue {i + 1} of {dataset!r}", place)
                dialogue.identify("dial_id", f"{dataset}/{i + 1}")
                turns = dialogue.objects("turns", "turn")
                labels = [
                    zero_or_one(label, f"as {LABEL} in turn {i + 1}", dialogue.place)
                    for i, label in enumerate(_column(turns, LABEL, dialogue.place))
                ]
                topics = _column(turns, TOPIC, dialogue.place)
                gold = Segmentation.from_labels(labels, self.convention) if labels else None
                if topics:
                    by_topic = Segmentation.from_segment_ids(topics)
                    disagreeing += gold is not None and gold != by_topic
                    gold = gold or by_topic
                documents.append(_spoken(turns, "utterance", ROLE, gold, dialogue.place))
        if disagreeing:
            of = counted(len(documents), "dialogue")
            found = f"{disagreeing} of {of} whose topic ids and labels disagree"
            source.note(found, "boundaries in the same places", f"the {LABEL} was used")
        return documents

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write one dataset called corpus, with labels, topic ids and roles where known."""
        dialogues = []
        for document, segmentation in zip(corpus.documents, chosen, strict=True):
            labels, topics = segmentation.to_labels("end"), segmentation.to_segment_ids()
            turns = []
            for i, unit in enumerate(document.units):
                turn: dict[str, object] = {"turn_id": i, "utterance": unit}
                if document.speakers is not None:
                    turn[ROLE] = document.speakers[i]
                turns.append({**turn, LABEL: labels[i], TOPIC: topics[i]})
            dialogues.append({"dial_id": document.id, "turns": turns})
        yield jsonl.dumps({DATA: {"corpus": dialogues}}, corpus.documents[0].place) + "\n"


def _column(turns: Sequence[Record], key: str, place: Place) -> list[object]:
    """Collect a field that all turns have or none has."""
    found = [turn[key] for turn in turns if turn.get(key) is not None]
    if found and len(found) < len(turns):
        first = next(i for i, turn in enumerate(turns) if turn.get(key) is None)
        missing = f"no {key!r} in turn {first + 1} of {len(turns)}"
        raise mistake(place, missing, "one in every turn or in none", "add the missing ones")
    return found


class Utterances(Format):
    """Dialogues of utterances and lengths of segments."""

    name = "utterances"
    keys = ("utterances segments",)
    suffixes = JSON

    def read(self, source: Source) -> list[Document]:
        """Read dialogues of ``utterances`` and ``segments``, which are lengths."""
        documents = []
        for i, dialogue in enumerate(jsonl.tables(source)):
            id = dialogue.identify("dial_id", f"{source.stem}/{i + 1}")
            units, masses = dialogue.need_list("utterances"), dialogue.need_list("segments")
            documents.append(Document.build(id, units, gold=masses, place=dialogue.place))
        return documents


class MultiWoz(Format):
    """MultiWOZ 2.1 and 2.2."""

    name = "multiwoz"
    keys = ("dialogue_id turns", "*/log")
    suffixes = JSON
    rank = 6

    def read(self, source: Source) -> list[Document]:
        """Read 2.2, a list of dialogues, or 2.1, an object of dialogues by file name."""
        content = None if source.is_json_lines else source.json
        if isinstance(content, dict) and "turns" not in content:
            return [_read_log(dialogue, source) for dialogue in _by_id(source, "a dialogue")]
        return [_read_turns(dialogue) for dialogue in jsonl.tables(source)]


def _by_id(source: Source, what: str) -> Iterator[Record]:
    """Yield the objects of a file that has one object with an object for every id."""
    for id, value in Record(source.json, "the content", source.place()).items():
        yield Record(value, what, replace(source.place(), document=id))


def _read_turns(dialogue: Record) -> Document:
    dialogue.identify("dialogue_id", "1")
    turns = dialogue.objects("turns", "turn")
    labels: list[list[str]] = []
    before: dict[str, object] = {}
    for turn in turns:
        active, changed = list[str](), list[str]()
        for frame in turn.objects("frames", "frame", optional=True):
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
    return _spoken(turns, "utterance", "speaker", by_label(labels), dialogue.place)


def _read_log(dialogue: Record, source: Source) -> Document:
    turns = dialogue.objects("log", "turn")
    labels = []
    for i, turn in enumerate(turns):
        acts = turn.get("dialog_act")
        domains = [key.partition("-")[0].lower() for key in acts] if isinstance(acts, dict) else []
        labels.append([domain for domain in domains if domain not in _NO_DOMAIN])
        turn["speaker"] = ("USER", "SYSTEM")[i % 2]
    if not any(isinstance(turn.get("dialog_act"), dict) for turn in turns):
        expected = "MultiWOZ 2.1 or 2.2, where utterances have domains"
        source.note("dialogues without 'dialog_act'", expected, "they have no gold here")
    return _spoken(turns, "text", "speaker", by_label(labels), dialogue.place)


@dataclass(frozen=True)
class Taskmaster(Joined):
    """Taskmaster: labels are annotations' first part (task) or first two (subtask)."""

    level: Literal["task", "subtask"] = "task"
    name = "taskmaster"
    keys = ("conversation_id utterances",)
    suffixes = JSON

    def read(self, source: Source) -> list[Document]:
        """Read a file's conversations."""
        dialogues = []
        for conversation in jsonl.tables(source):
            conversation.identify("conversation_id", "1")
            turns = conversation.objects("utterances", "utterance")
            labels = [list(filter(None, self._labels(turn))) for turn in turns]
            units = [turn.need("text") for turn in turns]
            speakers = [str(turn.get("speaker") or "") for turn in turns]
            dialogues.append(Dialogue(conversation.place, units, labels, speakers))
        return self.documents(dialogues)

    def _labels(self, turn: Record) -> Iterator[str]:
        for segment in turn.objects("segments", "segment", optional=True):
            for annotation in segment.objects("annotations", "annotation", optional=True):
                parts = str(annotation.get("name") or "").split(".")
                yield ".".join(parts[: 1 if self.level == "task" else 2])


class TopicalChat(Format):
    """Topical-Chat."""

    name = "topical-chat"
    keys = ("*/content",)
    suffixes = JSON
    rank = 6

    def read(self, source: Source) -> list[Document]:
        """Read the conversations of a file by their ids."""
        documents = []
        for conversation in _by_id(source, "a conversation"):
            place = conversation.place
            turns = conversation.objects("content", "message")
            labels = []
            for turn in turns:
                given = typed(turn.get("knowledge_source") or [], list, "'knowledge_source'", place)
                sections = [each for each in given if isinstance(each, str) and each[:2] == "FS"]
                labels.append(sections)
            documents.append(_spoken(turns, "message", "agent", by_label(labels), place))
        return documents


class QmSum(Format):
    """QMSum's meetings."""

    name = "qmsum"
    keys = (MEETING,)
    suffixes = JSON
    folders = (".json",)
    kinds = "meetings (.json)"
    rank = 4

    def read(self, source: Source) -> list[Document]:
        """Read a meeting, a JSONL of meetings (ids ``stem/line``) or a folder of JSON files."""
        if source.is_folder or source.is_stdin or not source.is_json_lines:
            return cast(list[Document], super().read(source))
        return [
            _read_meeting(value, replace(source.place(n), document=f"{source.stem}/{n}"))
            for n, value in source.json_lines()
        ]

    def read_document(self, file: Source, place: Place) -> Document:
        """Read a file of one meeting."""
        return _read_meeting(file.json, place)


def _read_meeting(value: object, place: Place) -> Document:
    meeting = Record(value, "a meeting", place)
    turns = meeting.objects(MEETING, "turn")
    n, spans = len(turns), []
    for i, topic in enumerate(meeting.objects("topic_list", "topic", optional=True)):
        for span in topic.need_list("relevant_text_span") if turns else []:
            ends = [str(end).strip() for end in span] if isinstance(span, list) else []
            is_whole = all(end.isascii() and end.isdigit() and len(end) < 19 for end in ends)
            if len(ends) != 2 or not is_whole or not int(ends[0]) <= int(ends[1]) < n:
                found = f"the span {shorten(span)} of topic {i + 1}"
                expected = f"first and last turn, in order, from 0 to {n - 1}"
                raise mistake(place, found, expected, "correct the span")
            spans.append((int(ends[0]), int(ends[1])))
    # Spans are painted in order of their starts; what is still visible are the segments.
    owner = [-1] * n
    for i, (first, last) in enumerate(sorted(spans, key=lambda span: span[0])):
        owner[first : last + 1] = [i] * (last + 1 - first)
    has_gold = bool(turns and meeting.get("topic_list"))
    gold = Segmentation.from_segment_ids(owner) if has_gold else None
    return _spoken(turns, "content", "speaker", gold, place)
