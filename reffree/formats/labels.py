"""Segmentations that come without their text, and how they meet it.

segeval, nltk and chapter files hold no text: their readers return `Label` values, which `attach`
sets on documents read from elsewhere. Also the ways to write a segmentation beside masses:
``{"boundaries": [3, 7]}`` has the number of units before each boundary, ``{"labels": ["a", "a",
"b"]}`` a topic for every unit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from reffree.data.corpus import GOLD, TIMES, Document, Segments, is_name
from reffree.data.segmentation import Convention, Segmentation
from reffree.formats.source import Used
from reffree.util.errors import Place, counted, located, mistake, shorten

BOUNDARIES, LABELS = "boundaries", "labels"
OTHER_FORMS = (BOUNDARIES, LABELS)
_FORMS = f"{BOUNDARIES!r} or {LABELS!r}"
CodersAs = Literal["systems", "golds"]


@dataclass(frozen=True, slots=True)
class TimedUnit:
    """A unit with its start and end in seconds."""

    text: str
    start: float
    end: float
    speaker: str = ""
    topic: int = 0


def timed_document(
    units: Sequence[TimedUnit], place: Place, gold: Segmentation | None = None
) -> Document:
    """Make a document that keeps its units' times; its id is in the place."""
    texts, speakers = [unit.text for unit in units], [unit.speaker for unit in units]
    given = speakers if any(speakers) else None
    meta = {TIMES: [[unit.start, max(unit.start, unit.end)] for unit in units]}
    id = str(place.document)
    return Document.build(id, texts, gold=gold, speakers=given, meta=meta, place=place)


class Starts(tuple[float, ...]):
    """Where segments start in time, in seconds and in order."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Label:
    """One segmentation of one document: masses, or what its text has to be known for.

    ``document`` is None where the file has no ids and only the order tells.
    """

    document: str | None
    name: str
    value: Segments | str | Starts | Mapping[str, object]
    place: Place
    convention: Convention | None = None
    coders_as: CodersAs = "systems"

    def read(self, document: Document) -> Segments:
        """Return masses as they are, and anything else as a segmentation of the document."""
        if isinstance(self.value, Starts):
            if document.times is None:
                expected = "subtitles or a transcript with times, since chapters start at times"
                remedy = "give such a file with --text"
                raise mistake(document.place, "text without times", expected, remedy)
            # A unit has the segment that its middle lies in; what precedes all is one, too.
            middles = [(start + end) / 2 for start, end in document.times]
            return Segmentation.from_segment_ids([bisect_right(self.value, at) for at in middles])
        if isinstance(self.value, str):
            with located(self.at):
                return Segmentation.from_string(self.value, len(document.kept), self.convention)
        return segmentation_of(self.value, len(document.kept), self.convention, self.at)

    @property
    def at(self) -> Place:
        """Its place, with document and name."""
        return replace(self.place, document=self.document, system=self.name)


def segmentation_of(
    value: object, n_units: int, convention: Convention | None, place: Place
) -> Segments:
    """Read ``{"boundaries": …}`` and ``{"labels": …}``; masses stay, to be checked elsewhere."""
    if not isinstance(value, dict):
        return cast(Sequence[int], value)
    key, given = next(iter(value.items()), ("", None))
    if len(value) != 1 or not isinstance(given, list):
        found = f"the segmentation {shorten(value)}"
        expected = f"segment lengths such as [3, 4], or an object with one list, {_FORMS}"
        raise mistake(place, found, expected, "write one of them")
    if key not in OTHER_FORMS:
        remedy = "rename it, or write segment lengths such as [3, 4]"
        raise mistake(place, f"the key {shorten(key)!r} in a segmentation", _FORMS, remedy)
    with located(place):
        if key == LABELS:
            return from_unit_labels(given, n_units, convention)
        for each in given:
            if type(each) is not int:
                found = f"the boundary {shorten(repr(each))}"
                raise mistake(None, found, "the number of units before it", "write whole numbers")
        return Segmentation.from_boundaries(given, n_units)


def from_unit_labels(
    labels: Sequence[object], n_units: int, convention: Convention | None
) -> Segmentation:
    """Read a label for every unit: topics, which change at boundaries, or 0 and 1.

    Nothing but 0 and 1 may be either; where the readings differ a convention has to tell.
    """
    if len(labels) != n_units or not labels:
        remedy = "check that labels and text belong to the same document"
        raise mistake(None, counted(len(labels), "label"), f"{n_units}, one for every unit", remedy)
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, (str, int)):
            found = f"the label {shorten(repr(label))}"
            expected = "a topic's name or number, or 0 and 1"
            raise mistake(None, found, expected, "write every label as text or as a whole number")
    topics = [str(label).strip() for label in labels]
    if set(topics) - {"0", "1"}:
        return Segmentation.from_segment_ids(topics)
    marks = [int(topic) for topic in topics]
    if convention == "gap":
        found = "a label for every unit"
        expected = "one for every gap between units, as the convention 'gap' says"
        raise mistake(None, found, expected, "choose convention=end or convention=start")
    if convention is not None:
        return Segmentation.from_labels(marks, convention)
    readings = {Segmentation.from_labels(marks, "end"), Segmentation.from_labels(marks, "start")}
    readings.add(Segmentation.from_segment_ids(marks))
    if len(readings) == 1:
        return readings.pop()
    found = f"labels that are all 0 or 1, {shorten(''.join(topics))}"
    expected = "one reading, but a 1 may end a segment, start one, or be a topic's number"
    remedy = "choose with --format NAME:convention=end or convention=start, or name topics "
    raise mistake(None, found, expected, f"{remedy}otherwise, such as t0 and t1")


def without_text(labels: Sequence[Label], used: Used) -> list[Document]:
    """Make documents whose units are numbers, for what looks at segmentations alone."""
    sizes: dict[str, int] = {}
    for label in labels:
        if str(label.document) not in sizes:
            n = sizes[str(label.document)] = _size(label)
            used.add_units(n, label.at)
    place = Place(labels[0].place.file)
    return [Document.build(id, numbers(n), place=place) for id, n in sizes.items()]


def numbers(n: int) -> list[str]:
    """Stand in for units whose text nobody looks at."""
    return [str(i + 1) for i in range(n)]


def _size(label: Label) -> int:
    value, convention = label.value, label.convention
    expected, remedy = "the text, which tells how many units there are", "give it with --text"
    if isinstance(value, Segmentation):
        return value.n_units
    if isinstance(value, Starts):
        raise mistake(label.place, "chapters alone", expected, remedy)
    if not isinstance(value, str):
        with located(label.at):
            return Segmentation(tuple(cast(Sequence[int], value))).n_units
    if convention is None:
        remedy += ", or say what a 1 means with --format nltk:convention=…"
        raise mistake(label.place, "a boundary string without its text", expected, remedy)
    return len(value) + (convention == "gap")


def numbered(labels: Sequence[Label], ids: Sequence[str] | None = None) -> list[Label]:
    """Give labels without ids the ids of a corpus in order, or 1, 2, …; several files number on."""
    anonymous = [label for label in labels if label.document is None]
    if not anonymous:
        return list(labels)
    if ids is None:
        ids = [str(i + 1) for i in range(len(anonymous))]
    if len(ids) != len(anonymous):
        place = replace(anonymous[-1].place, line=None)
        several = counted(len(anonymous), "segmentation")
        found = f"{several} without ids for {counted(len(ids), 'document')}"
        remedy = "add the missing ones, or write id, tab, string on every line"
        raise mistake(place, found, "one for every document, in the same order", remedy)
    names = iter(ids)
    return [x if x.document is not None else replace(x, document=next(names)) for x in labels]


def attach(documents: Sequence[Document], labels: Sequence[Label]) -> list[Document]:
    """Set every label on its document; each must get at least one, and none that differs."""
    by_id: dict[str, list[Label]] = {document.id: [] for document in documents}
    for label in labels:
        if label.document not in by_id:
            at = replace(label.at, system=None)
            found = "a document that the text does not have"
            expected = f"one of its {counted(len(by_id), 'id')}, such as {documents[0].id!r}"
            remedy = "check that segmentations and --text belong together"
            raise mistake(at, found, expected, remedy)
        by_id[label.document].append(label)
    for document in documents:
        if not by_id[document.id]:
            found = "text without a segmentation"
            remedy = "add it there, or remove the document from the text"
            raise mistake(document.place, found, f"one in {labels[0].place.file}", remedy)
    return [_add_labels(document, by_id[document.id]) for document in documents]


def _add_labels(document: Document, labels: Sequence[Label]) -> Document:
    first: dict[str, Place] = {}
    text_place = replace(document.place, document=None)
    for label in labels:
        place = replace(label.place, document=document.id, system=label.name)
        if not is_name(label.name):
            found = f"the coder {shorten(repr(label.name))}"
            expected = "a name without control characters for every coder"
            raise mistake(replace(place, system=None), found, expected, "rename the coder")
        if label.name in first:
            found = f"a second segmentation of this name, first at {first[label.name]}"
            expected = "every name once in a document"
            raise mistake(place, found, expected, "rename or remove one of the two")
        first[label.name] = replace(label.place, document=None)
        value = document.align(label.read(document), place)
        is_other = label.coders_as == "golds"
        held = (document.golds if is_other else document.segmentations).get(label.name)
        if held not in (None, value):
            found = f"another segmentation of this name than {text_place} has"
            expected = "the same one, or every name once in a document"
            raise mistake(place, found, expected, "rename or remove one of the two")
        kind = "golds" if is_other else "gold" if label.name == GOLD else "systems"
        added: Any = value if kind == "gold" else {**getattr(document, kind), label.name: value}
        document = replace(document, place=label.place, **{kind: added})
    return replace(document, place=replace(document.place, document=document.id))
