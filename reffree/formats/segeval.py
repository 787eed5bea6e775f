"""segeval JSON: ``{"items": {"doc": {"coder1": [2, 3]}}, "segmentation_type": "linear"}``.

Masses per document and coder, without text. Coders are systems, except one called gold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reffree.corpus import GOLD, Corpus, Document
from reffree.errors import InputError
from reffree.formats.jsonl import dumps
from reffree.formats.labels import Label
from reffree.formats.source import Source
from reffree.formats.strict_json import as_list, as_object, field
from reffree.segmentation import Segmentation


def read(source: Source) -> list[Label]:
    """Read every coder of every document."""
    place = source.place()
    table = as_object(source.json, "the file's content", place)
    kind = table.get("segmentation_type", "linear")
    if kind != "linear":
        raise InputError(
            f"the segmentation type {kind!r}",
            expected="'linear'",
            remedy="export one linear segmentation per coder",
            place=place,
        )
    labels = []
    for id, coders in as_object(field(table, "items", place), "'items'", place).items():
        at = replace(place, document=id)
        for coder, masses in as_object(coders, "the document's coders", at).items():
            value = as_list(masses, "masses", replace(at, system=coder))
            labels.append(Label(id, coder, value, place))  # type: ignore[arg-type]
    return labels


def write(corpus: Corpus) -> Iterator[str]:
    """Write gold as the coder gold, and every system as a coder."""
    items = {}
    for document in corpus.documents:
        table = coders(document)
        items[document.id] = {name: list(value.masses) for name, value in table.items()}
    yield dumps({"items": items, "segmentation_type": "linear"}, corpus.documents[0].place) + "\n"


def coders(document: Document) -> dict[str, Segmentation]:
    """Collect gold and the systems by coder's name; a document without any is refused."""
    gold = {} if document.gold is None else {GOLD: document.gold}
    table = {**gold, **document.systems}
    if table:
        return table
    raise InputError(
        "a document without a segmentation",
        expected="gold or a system, since segeval files hold nothing else",
        remedy="add one, or write the corpus as jsonl",
        place=document.place,
    )
