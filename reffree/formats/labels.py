"""Segmentations that come without their text, and how they meet it.

segeval and nltk files hold no text: their readers return `Label` values, which `attach` sets on
documents read from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reffree.corpus import GOLD, Document, is_name
from reffree.errors import InputError, Place, counted, located, shorten
from reffree.segmentation import Convention, Segmentation


@dataclass(frozen=True, slots=True)
class Label:
    """One segmentation of one document: masses, or a 0/1 string still to be read.

    ``document`` is None where the file has no ids and only the order tells.
    """

    document: str | None
    name: str
    value: Segmentation | Sequence[int] | str
    place: Place

    def read(self, n_units: int, convention: Convention | None) -> Segmentation | Sequence[int]:
        """Return masses as they are, and a 0/1 string as a segmentation of so many units."""
        if not isinstance(self.value, str):
            return self.value
        with located(replace(self.place, document=self.document, system=self.name)):
            return Segmentation.from_string(self.value, n_units, convention)


def numbered(labels: Sequence[Label], ids: Sequence[str] | None = None) -> list[Label]:
    """Give labels without ids the ids of a corpus in order, or 1, 2, ….

    Labels are without ids either all or none, within one file; several files number on.
    """
    anonymous = [label for label in labels if label.document is None]
    if not anonymous:
        return list(labels)
    if ids is None:
        ids = [str(i + 1) for i in range(len(anonymous))]
    if len(ids) != len(anonymous):
        raise InputError(
            f"{counted(len(anonymous), 'segmentation')} without ids for "
            f"{counted(len(ids), 'document')}",
            expected="one for every document, in the same order",
            remedy="add the missing ones, or write id, tab, string on every line",
            place=replace(anonymous[-1].place, line=None),
        )
    names = iter(ids)
    return [
        label if label.document is not None else replace(label, document=next(names))
        for label in labels
    ]


def attach(
    documents: Sequence[Document], labels: Sequence[Label], convention: Convention | None
) -> list[Document]:
    """Set every label on its document; each document must get at least one, each name once.

    A segmentation that the document came with may be there again if it is the same.
    """
    by_id: dict[str, list[Label]] = {document.id: [] for document in documents}
    for label in labels:
        if label.document not in by_id:
            raise InputError(
                "a document that the text does not have",
                expected=f"one of its {len(by_id)} ids, such as {documents[0].id!r}"
                if len(by_id) > 1
                else f"its only id, {documents[0].id!r}",
                remedy="check that segmentations and --text belong together",
                place=replace(label.place, document=label.document),
            )
        by_id[label.document].append(label)
    for document in documents:
        if not by_id[document.id]:
            raise InputError(
                "text without a segmentation",
                expected=f"one in {labels[0].place.file}",
                remedy="add it there, or remove the document from the text",
                place=document.place,
            )
    return [_labelled(document, by_id[document.id], convention) for document in documents]


def _labelled(
    document: Document, labels: Sequence[Label], convention: Convention | None
) -> Document:
    first: dict[str, Place] = {}
    text_place = document.place
    for label in labels:
        system = None if label.name == GOLD else label.name
        place = replace(label.place, document=document.id, system=label.name)
        if not label.name.strip():
            raise InputError(
                "a coder without a name",
                expected="a name for every coder",
                remedy="name it",
                place=place,
            )
        if not is_name(label.name):
            raise InputError(
                f"the coder {shorten(repr(label.name))}",
                expected="a name without control characters",
                remedy="rename the coder",
                place=replace(place, system=None),
            )
        if label.name in first:
            raise InputError(
                f"a second segmentation of this name, first at {first[label.name]}",
                expected="every name once in a document",
                remedy="rename or remove one of the two",
                place=place,
            )
        first[label.name] = replace(label.place, document=None)
        value = document.align(label.read(len(document.kept), convention), place)
        held = document.gold if system is None else document.systems.get(system)
        if held not in (None, value):
            raise InputError(
                f"another segmentation of this name than {replace(text_place, document=None)} has",
                expected="the same one, or every name once in a document",
                remedy="rename or remove one of the two",
                place=place,
            )
        document = (
            replace(document, gold=value, place=label.place)
            if system is None
            else replace(document, systems={**document.systems, system: value}, place=label.place)
        )
    return replace(document, place=replace(document.place, document=document.id))
