"""Corpus JSONL: one document a line, text and segmentations together.

``{"id": "m1", "units": ["…"], "gold": [3, 4], "systems": {"texttiling": [2, 5]}, "speakers":
["…"], "meta": {}}``: gold, systems, speakers and meta are optional, masses sum to the number of
units. With several annotators ``golds`` holds annotator → masses. Wherever masses stand there may
be ``{"boundaries": [3]}`` or ``{"labels": ["a", "b", …]}`` instead (see `labels`), and beside the
units these two keys are gold. A JSON file with one such object, or a list of them, is read as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from reffree.data.corpus import GOLD, Corpus, Document
from reffree.data.segmentation import Convention, Segmentation
from reffree.formats.format import JSON, Format, Sample
from reffree.formats.labels import OTHER_FORMS, numbers, segmentation_of
from reffree.formats.source import LINE_SUFFIXES, Source
from reffree.formats.strict_json import as_object, listed, nearest, require_field
from reffree.util.errors import InputError, Place, shorten, visible_json

GOLDS = "golds"
KEYS = ("id", "units", "gold", "systems", "speakers", "meta", GOLDS, *OTHER_FORMS)
_UNUSUAL = (GOLDS, *OTHER_FORMS)


@dataclass(frozen=True)
class Jsonl(Format):
    """Corpus JSONL; ``convention`` is what a 1 means in labels of nothing but 0 and 1."""

    convention: Convention | None = None
    text_needed: bool = field(default=True, metadata={"option": False})
    name = "jsonl"
    owns = LINE_SUFFIXES
    suffixes = JSON
    rank = 5
    written_as = (".jsonl",)
    keeps = frozenset({"text", "systems", "golds", "speakers", "meta"})

    @classmethod
    def matches(cls, sample: Sample) -> bool:
        """Whether there is a key that documents have."""
        return not sample.value.keys().isdisjoint(("units", "segmentation", "id"))

    @classmethod
    def is_sure(cls, sample: Sample) -> bool:
        """Whether there are units, which no other format has."""
        return "units" in sample.value

    def without_text(self) -> Jsonl:
        """Take documents without units."""
        return replace(self, text_needed=False)

    def read(self, source: Source) -> list[Document]:
        """Read every document."""
        return [
            document(table, place, self.convention, source if not self.text_needed else None)
            for table, place in tables(source)
        ]

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write one line per document; fields without content are left out."""
        for doc in corpus.documents:
            table = {
                "id": doc.id,
                "units": list(doc.units),
                "gold": doc.gold and list(doc.gold.masses),
                "systems": {name: list(value.masses) for name, value in doc.systems.items()},
                "speakers": doc.speakers and list(doc.speakers),
                GOLDS: {name: list(value.masses) for name, value in doc.golds.items()},
                "meta": dict(doc.meta),
            }
            present = {key: value for key, value in table.items() if value not in (None, {})}
            yield dumps(present, doc.place) + "\n"


def tables(source: Source) -> Iterator[tuple[dict[str, object], Place]]:
    """Yield every object with its place: one a line, or those of a JSON list."""
    if source.is_json_lines:
        for number, value in source.json_lines():
            place = source.place(number)
            yield as_object(value, "a document", place, _unwrap(value, source)), place
        return
    values = source.json if isinstance(source.json, list) else [source.json]
    for i, value in enumerate(values):
        yield as_object(value, f"document {i + 1}", source.place()), source.place()


def _unwrap(value: object, source: Source) -> str | None:
    """Remedy for a list of documents on a line."""
    if not isinstance(value, list):
        return None
    remedy = "write every document on a line of its own, without brackets around them"
    return remedy if source.is_stdin else f"{remedy}, or name the file .json"


def document(
    table: dict[str, object],
    place: Place,
    convention: Convention | None = None,
    numbering: Source | None = None,
) -> Document:
    """Check one object and make the document; ``numbering`` is the source of units without text.

    With it a document may have no units: numbers then stand in for them.
    """
    name = table.get("id")
    if isinstance(name, str) and name:
        place = replace(place, document=name)
    if numbering is not None and "units" not in table:
        n = _size(table, place)
        numbering.used.add_units(n, place)
        table = {**table, "units": numbers(n)}
    if "units" not in table and "segmentation" in table:
        raise InputError(
            "a segmentation without units",
            expected="a corpus, whose documents have 'units'",
            remedy="give this file with --system NAME=FILE next to its corpus",
            place=place,
        )
    units = _units(table, place)
    id = _id(table, place)
    _refuse_unknown(table, place)
    meta = table.get("meta")
    n_units = len(units) if isinstance(units, list) else 0

    def read(value: object, name: str) -> Any:  # noqa: ANN401  (checked by the document)
        return segmentation_of(value, n_units, convention, replace(place, system=name))

    def several(key: str) -> dict[str, Any] | None:
        given = table.get(key)
        if given is None:
            return None
        return {k: read(v, k) for k, v in as_object(given, f"{key!r}", place).items()}

    return Document.build(
        id,
        cast(Any, units),
        gold=read(_gold(table, place), GOLD),
        golds=several(GOLDS),
        systems=several("systems"),
        speakers=cast(Any, table.get("speakers")),
        meta=None if meta is None else _checked_meta(as_object(meta, "'meta'", place), place),
        place=place,
    )


def _gold(table: dict[str, object], place: Place) -> object:
    given = {key: table[key] for key in (GOLD, *OTHER_FORMS) if table.get(key) is not None}
    if len(given) > 1:
        raise InputError(
            f"{listed(given)} in one document",
            expected="one of them, since each is its gold segmentation",
            remedy="keep one, or move the other into 'systems'",
            place=place,
        )
    for key, value in given.items():
        return value if key == GOLD else {key: value}
    return None


def _size(table: dict[str, object], place: Place) -> int:
    """Count the units of a document without text by its first segmentation."""
    several = [table.get(key) for key in (GOLDS, "systems")]
    lists = [each for given in several if isinstance(given, dict) for each in given.values()]
    for value in (table.get(GOLD), *lists):
        if isinstance(value, list) and value and all(type(mass) is int for mass in value):
            return max(sum(value), 1)
    if isinstance(labels := table.get("labels"), list):
        return len(labels)
    raise InputError(
        "a document without units and without masses",
        expected="segment lengths, which tell how many units there are",
        remedy="add 'units', or write segmentations as masses such as [3, 4]",
        place=place,
    )


def _units(table: dict[str, object], place: Place) -> object:
    if "units" in table:
        return table["units"]
    remedy = None
    for key, value in table.items():
        if key in KEYS:
            continue
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            remedy = f"rename {shorten(key)!r} to 'units'"
            break
        if isinstance(value, str):
            remedy = f"split {shorten(key)!r} into such a list and call it 'units'"
    what = "the document's sentences or utterances as a list of strings"
    return require_field(table, "units", place, what=what, remedy=remedy)


def _id(table: dict[str, object], place: Place) -> str:
    other = next((k for k, v in table.items() if k not in KEYS and isinstance(v, (str, int))), None)
    remedy = None if other is None else f"add it, or rename {shorten(other)!r} to 'id'"
    id = require_field(table, "id", place, what="the document's name", remedy=remedy)
    if isinstance(id, (int, float)) and not isinstance(id, bool):
        raise InputError(
            f"the document id {shorten(id)}",
            expected="a non-empty string",
            remedy=f'write the id in quotes: "{shorten(id)}"',
            place=place,
        )
    return cast(str, id)


def _refuse_unknown(table: dict[str, object], place: Place) -> None:
    """Refuse a key that a document does not have, and say where it belongs."""
    known = [key for key in KEYS if key not in _UNUSUAL or key in table]
    for key, value in table.items():
        if key in KEYS:
            continue
        near = nearest(key, [other for other in known if other not in table])
        if near is not None:
            remedy = f"did you mean {near!r}?"
        elif isinstance(value, list) and value and all(type(item) is int for item in value):
            remedy = "move it into 'systems' if it is a segmentation, else into 'meta'"
        else:
            remedy = "move it into 'meta'"
        raise InputError(
            f"the unknown key {shorten(key)!r}",
            expected=f"only {listed(known)}",
            remedy=remedy,
            place=place,
        )


def _checked_meta(meta: dict[str, object], place: Place) -> dict[str, object]:
    if GOLDS not in meta:
        return meta
    raise InputError(
        f"the key {GOLDS!r} inside 'meta'",
        expected=f"{GOLDS!r} beside 'gold', where its masses are checked",
        remedy="move it out of 'meta'",
        place=place,
    )


def record_id(table: dict[str, object], place: Place, seen: dict[str, Place]) -> str:
    """Return the id of a line that belongs to a document of a corpus; every one once.

    ``seen`` has the places of those before, and is given this one.
    """
    id = require_field(table, "id", place, what="the document's name")
    if not isinstance(id, str):
        raise InputError(
            f"the document id {shorten(id)}",
            expected="a string",
            remedy="write the id in quotes, as the corpus has it",
            place=place,
        )
    refuse_second(id, place, seen)
    return id


def refuse_second(id: str, place: Place, seen: dict[str, Place]) -> None:
    """Refuse a document that was there before; ``seen`` is given its place."""
    if id in seen:
        raise InputError(
            f"the document a second time, first at {replace(seen[id], document=None, system=None)}",
            expected="every document once",
            remedy="remove one of the two",
            place=replace(place, document=id),
        )
    seen[id] = place


def dumps(value: object, place: Place) -> str:
    """Write JSON on one line, as UTF-8 and without NaN."""
    try:
        return visible_json(json.dumps(value, ensure_ascii=False, allow_nan=False), halves=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"a value that JSON cannot hold ({error})",
            expected="text, numbers, lists and objects with text keys",
            remedy="change it in the document's meta",
            place=place,
        ) from None
