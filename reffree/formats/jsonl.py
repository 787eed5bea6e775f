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
from dataclasses import dataclass, replace
from typing import Any

from reffree.data.corpus import GOLD, Corpus, Document
from reffree.data.segmentation import Convention, Segmentation
from reffree.formats.format import JSON, Format
from reffree.formats.labels import OTHER_FORMS, numbers, segmentation_of
from reffree.formats.source import LINE_SUFFIXES, Source, Used
from reffree.formats.strict_json import Record, listed, nearest
from reffree.util.errors import CHECK, Place, mistake, shorten, visible_json

GOLDS = "golds"
KEYS = ("id", "units", "gold", "systems", "speakers", "meta", GOLDS, *OTHER_FORMS)
_UNUSUAL = (GOLDS, *OTHER_FORMS)


@dataclass(frozen=True)
class Jsonl(Format):
    """Corpus JSONL; ``convention`` is what a 1 means in labels of nothing but 0 and 1."""

    convention: Convention | None = None
    name = "jsonl"
    owns = LINE_SUFFIXES
    suffixes = JSON
    keys = ("units", "segmentation", "id")
    rank = 5
    written_as = (".jsonl",)
    keeps = frozenset({"text", "systems", "golds", "speakers", "meta"})

    @classmethod
    def is_sure(cls, source: Source) -> bool:
        """Whether there are units, which no other format has."""
        return "units" in source.value

    def read(self, source: Source) -> list[Document]:
        """Read every document."""
        used = None if source.used.text_needed else source.used
        return [document(table, table.place, self.convention, used) for table in tables(source)]

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write one line per document; fields without content are left out."""
        for doc in corpus.documents:
            table = {
                "id": doc.id,
                "units": doc.units,
                "gold": doc.gold and doc.gold.masses,
                "systems": {name: value.masses for name, value in doc.systems.items()},
                "speakers": doc.speakers,
                GOLDS: {name: value.masses for name, value in doc.golds.items()},
                "meta": dict(doc.meta),
            }
            present = {key: value for key, value in table.items() if value not in (None, {})}
            yield dumps(present, doc.place) + "\n"


def tables(source: Source) -> Iterator[Record]:
    """Yield every object with its place: one a line, or those of a JSON list."""
    if source.is_json_lines:
        for number, value in source.json_lines():
            apart = "write every document on a line of its own, without brackets around them"
            apart += "" if source.is_stdin else ", or name the file .json"
            remedy = apart if isinstance(value, list) else CHECK
            yield Record(value, "a document", source.place(number), remedy)
        return
    values = source.json if isinstance(source.json, list) else [source.json]
    for i, value in enumerate(values):
        yield Record(value, f"document {i + 1}", source.place())


def document(
    given: dict[str, Any],
    place: Place,
    convention: Convention | None = None,
    numbering: Used | None = None,
) -> Document:
    """Check one object and make the document.

    With ``numbering``, which counts them, it may have no units: numbers then stand in for them.
    """
    name = given.get("id")
    place = replace(place, document=name) if isinstance(name, str) and name else place
    table = Record(given, "a document", place)
    if numbering is not None and "units" not in table:
        n = _size(table)
        numbering.add_units(n, place)
        table["units"] = numbers(n)
    if "units" not in table and "segmentation" in table:
        expected = "a corpus, whose documents have 'units'"
        remedy = "give this file with --system NAME=FILE next to its corpus"
        raise mistake(place, "a segmentation without units", expected, remedy)
    _check_keys(table)
    meta = None if table.get("meta") is None else table.need_object("meta")
    if meta and GOLDS in meta:
        expected = f"{GOLDS!r} beside 'gold', where its masses are checked"
        raise mistake(place, f"the key {GOLDS!r} inside 'meta'", expected, "move it out of 'meta'")
    units = table["units"]
    n_units = len(units) if isinstance(units, list) else 0

    def read(value: object, name: str) -> Any:  # noqa: ANN401  (checked by the document)
        return segmentation_of(value, n_units, convention, replace(place, system=name))

    def read_all(key: str) -> dict[str, Any]:
        given = {} if table.get(key) is None else table.need_object(key)
        return {name: read(value, name) for name, value in given.items()}

    return Document.build(
        table["id"],
        units,
        gold=read(_gold(table), GOLD),
        golds=read_all(GOLDS),
        systems=read_all("systems"),
        speakers=table.get("speakers"),
        meta=meta,
        place=place,
    )


def _gold(table: Record) -> object:
    given = {key: table[key] for key in (GOLD, *OTHER_FORMS) if table.get(key) is not None}
    if len(given) > 1:
        found = f"{listed(given)} in one document"
        expected = "one of them, since each is its gold segmentation"
        raise mistake(table.place, found, expected, "keep one, or move the other into 'systems'")
    return given.get(GOLD, given or None)


def _size(table: Record) -> int:
    """Count the units of a document without text by its first segmentation."""
    several = [table.get(key) for key in (GOLDS, "systems")]
    lists = [each for given in several if isinstance(given, dict) for each in given.values()]
    for value in (table.get(GOLD), *lists):
        if isinstance(value, list) and value and all(type(mass) is int for mass in value):
            return max(sum(value), 1)
    if isinstance(labels := table.get("labels"), list):
        return len(labels)
    expected = "segment lengths, which tell how many units there are"
    remedy = "add 'units', or write segmentations as masses such as [3, 4]"
    raise mistake(table.place, "a document without units and without masses", expected, remedy)


def _check_keys(table: Record) -> None:
    """Refuse a document without units or id, or with other keys, and say where those belong."""
    others = {key: value for key, value in table.items() if key not in KEYS}
    remedy = None
    for key, value in others.items():
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            remedy = f"rename {shorten(key)!r} to 'units'"
            break
        if isinstance(value, str):
            remedy = f"split {shorten(key)!r} into such a list and call it 'units'"
    table.need("units", "the document's sentences or utterances as a list of strings", remedy)
    names = [key for key, value in others.items() if isinstance(value, (str, int))]
    remedy = f"add it, or rename {shorten(names[0])!r} to 'id'" if names else None
    table.need("id", "the document's name", remedy)
    known = [key for key in KEYS if key not in _UNUSUAL or key in table]
    for key, value in others.items():
        near = nearest(key, [other for other in known if other not in table])
        remedy = "move it into 'meta'"
        if near is not None:
            remedy = f"did you mean {near!r}?"
        elif isinstance(value, list) and value and all(type(item) is int for item in value):
            remedy = "move it into 'systems' if it is a segmentation, else into 'meta'"
        found = f"the unknown key {shorten(key)!r}"
        raise mistake(table.place, found, f"only {listed(known)}", remedy)


def record_id(table: Record, place: Place, seen: dict[str, Place]) -> str:
    """Return the id of a line that belongs to a document of a corpus, once (`refuse_second`)."""
    id = table.need("id", "the document's name")
    if not isinstance(id, str):
        remedy = "write the id in quotes, as the corpus has it"
        raise mistake(place, f"the document id {shorten(id)}", "a string", remedy)
    refuse_second(id, place, seen)
    return id


def refuse_second(id: str, place: Place, seen: dict[str, Place]) -> None:
    """Refuse a document that was there before; ``seen`` is given its place."""
    if id in seen:
        first = replace(seen[id], document=None, system=None)
        found = f"the document a second time, first at {first}"
        expected = "every document once"
        raise mistake(replace(place, document=id), found, expected, "remove one of the two")
    seen[id] = place


def dumps(value: object, place: Place) -> str:
    """Write JSON on one line, as UTF-8 and without NaN."""
    try:
        return visible_json(json.dumps(value, ensure_ascii=False, allow_nan=False), halves=False)
    except (TypeError, ValueError, RecursionError) as error:
        found = f"a value that JSON cannot hold ({error})"
        expected = "text, numbers, lists and objects with text keys"
        raise mistake(place, found, expected, "change it in the document's meta") from None
