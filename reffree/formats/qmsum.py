"""QMSum as published: a meeting per JSON file, a folder of them, or a JSONL of meetings.

``{"topic_list": [{"topic": "…", "relevant_text_span": [["0", "19"], ["24", "29"]]}, …],
"meeting_transcripts": [{"speaker": "…", "content": "…"}, …]}``. Spans are turn numbers from 0,
both ends included. Gold uses every span: where spans overlap the one that starts later wins (of
equal starts, the later in the file), what is left of the earlier one before and after it is a
segment each, and every run of turns outside all spans is one too.
"""

from __future__ import annotations

from reffree.data.corpus import Document
from reffree.data.segmentation import Segmentation
from reffree.formats.dialogues import spoken_document
from reffree.formats.format import JSON, Format
from reffree.formats.source import Source
from reffree.formats.strict_json import as_list, as_object, require_field
from reffree.util.errors import InputError, Place, shorten

MEETING = "meeting_transcripts"


class QmSum(Format):
    """QMSum's meetings."""

    name = "qmsum"
    keys = (MEETING,)
    suffixes = JSON
    folders = (".json",)
    rank = 4

    def read(self, source: Source) -> list[Document]:
        """Read a meeting, a JSONL of meetings (ids ``stem/line``) or a folder of JSON files."""
        if source.is_folder:
            files = source.members(self.folders, "meetings (.json)")
            return [_meeting(file.json, id, file.place()) for id, file in files]
        if source.is_stdin or not source.is_json_lines:
            return [_meeting(source.json, source.stem, source.place())]
        lines = source.json_lines()
        return [_meeting(value, f"{source.stem}/{n}", source.place(n)) for n, value in lines]


def _meeting(value: object, id: str, place: Place) -> Document:
    place = Place(place.file, place.line, id)
    table = as_object(value, "a meeting", place)
    turns = [
        as_object(turn, f"turn {i}", place)
        for i, turn in enumerate(as_list(require_field(table, MEETING, place), MEETING, place))
    ]
    topics = as_list(table.get("topic_list") or [], "'topic_list'", place)
    gold = _gold(topics, len(turns), place) if topics and turns else None
    return spoken_document(id, turns, "content", "speaker", gold, place)


def _gold(topics: list[object], n_turns: int, place: Place) -> Segmentation:
    """Paint the spans in order of their starts; what is still visible are the segments."""
    spans = []
    for i, topic in enumerate(topics):
        table = as_object(topic, f"topic {i + 1}", place)
        listed = as_list(
            require_field(table, "relevant_text_span", place), f"topic {i + 1}'s spans", place
        )
        spans += [_span(value, i, n_turns, place) for value in listed]
    owner = [-1] * n_turns
    for i, (first, last) in enumerate(sorted(spans, key=lambda span: span[0])):
        owner[first : last + 1] = [i] * (last + 1 - first)
    return Segmentation.from_segment_ids(owner)


def _span(value: object, topic: int, n_turns: int, place: Place) -> tuple[int, int]:
    if isinstance(value, list) and len(value) == 2:
        ends = [str(end).strip() for end in value]
        if all(end.isascii() and end.isdigit() and len(end) < 19 for end in ends):
            first, last = map(int, ends)
            if first <= last < n_turns:
                return first, last
    raise InputError(
        f"the span {shorten(value)} of topic {topic + 1}",
        expected=f"first and last turn, in order, from 0 to {n_turns - 1}",
        remedy="correct the span",
        place=place,
    )
