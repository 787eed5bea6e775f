"""segeval JSON and tables: masses per document and coder, without text.

JSON: ``{"items": {"doc": {"coder1": [2, 3]}}, "segmentation_type": "linear"}``. Tables: a header
``Coder<TAB>Masses``, then a row ``coder<TAB>2<TAB>3<TAB>…`` per coder, one document per file, named
by the file without its extension; where the header says ``Positions`` there is one segment id per
unit instead, and ``.csv`` files have commas instead of tabs. Coders are systems, except one called
gold, unless they are said to be annotators.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reffree.data.corpus import GOLD, Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.formats.format import JSON, Format, Sample
from reffree.formats.jsonl import dumps
from reffree.formats.labels import CodersAs, Label
from reffree.formats.source import Source
from reffree.formats.strict_json import as_list, as_object, require_field
from reffree.util.errors import InputError, Place, shorten


@dataclass(frozen=True)
class Segeval(Format):
    """segeval's JSON; ``coders`` are systems, or annotators (golds)."""

    coders: CodersAs = "systems"
    name = "segeval"
    suffixes = JSON
    has_text = False
    written_as = ()
    keeps = frozenset({"systems"})

    @classmethod
    def matches(cls, sample: Sample) -> bool:
        """Whether there are items."""
        return "items" in sample.value or "segmentation_type" in sample.value

    def read(self, source: Source) -> list[Label]:
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
        for id, coders in as_object(require_field(table, "items", place), "'items'", place).items():
            at = replace(place, document=id)
            for coder, masses in as_object(coders, "the document's coders", at).items():
                value = as_list(masses, "masses", replace(at, system=coder))
                labels.append(Label(id, coder, value, place, coders_as=self.coders))  # type: ignore[arg-type]
        return labels

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write gold as the coder gold, and every system as a coder."""
        items = {}
        for document in corpus.documents:
            table = _coders(document)
            items[document.id] = {name: list(value.masses) for name, value in table.items()}
        yield (
            dumps({"items": items, "segmentation_type": "linear"}, corpus.documents[0].place) + "\n"
        )


@dataclass(frozen=True)
class SegevalTable(Format):
    """segeval's tables; ``coders`` are systems, or annotators (golds)."""

    coders: CodersAs = "systems"
    name = "segeval-tsv"
    suffixes = (".tsv", ".csv")
    rank = 0
    has_text = False
    written_as = (".tsv",)
    keeps = frozenset({"systems"})
    one_document = "write segeval JSON instead"

    @classmethod
    def matches(cls, sample: Sample) -> bool:
        """Whether the first line is such a header."""
        return _table_columns(sample.head) is not None

    def read(self, source: Source) -> list[Label]:
        """Read every coder's row of a table."""
        lines = ((number, line) for number, line in source.lines() if line.strip(", \t"))
        number, header = next(lines, (1, ""))
        kind = _table_columns(header)
        if kind is None:
            raise InputError(
                f"the header {shorten(header)!r}" if header else "no header",
                expected="a header Coder, Masses (or Coder, Positions)",
                remedy="put it on the first line, or read a table with a unit a row with --format "
                "table",
                place=source.place(number),
            )
        labels = []
        for number, line in lines:
            at = source.place(number)
            coder, *cells = _cells(line, _delimiter(header), at) or [""]
            place = Place(source.name, number, source.stem, coder)
            numbers = [_number(cell, place) for cell in cells]
            if kind == "positions":
                numbers = list(Segmentation.from_segment_ids(numbers).masses) if numbers else []
            labels.append(Label(source.stem, coder, numbers, at, coders_as=self.coders))
        return labels

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write the masses of gold and of every system as a table."""
        document = corpus[0]
        yield "Coder\tMasses\n"
        for name, value in _coders(document).items():
            if "\n" in name or "\r" in name or name != name.strip():
                raise InputError(
                    f"the system name {shorten(ascii(name))}",
                    expected="a name on one line, without spaces around it",
                    remedy="rename the system, or write segeval JSON",
                    place=document.place,
                )
            row = io.StringIO()
            csv.writer(row, delimiter="\t", lineterminator="\n").writerow([name, *value.masses])
            yield row.getvalue()


def _table_columns(header: str) -> str | None:
    """Tell from the header what the rows hold: masses, positions, or that this is no table."""
    try:
        cells = _cells(header, _delimiter(header), Place())
    except InputError:
        return None
    first, *others = [cell.strip().lower() for cell in cells] or [""]
    known = first == "coder" and others in (["masses"], ["positions"])
    return others[0] if known else None


def _delimiter(header: str) -> str:
    return "\t" if "\t" in header else ","


def _cells(line: str, delimiter: str, place: Place) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise InputError(
            f"a row that cannot be read ({error})",
            expected="a coder and its numbers",
            remedy="check the quotes on this line",
            place=place,
        ) from None
    while cells and not cells[-1].strip():  # spreadsheets pad short rows
        cells.pop()
    return cells


def _number(cell: str, place: Place) -> int:
    text = cell.strip()
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    raise InputError(
        f"the cell {shorten(cell)!r}",
        expected="a whole number",
        remedy="write one number per cell",
        place=place,
    )


def _coders(document: Document) -> dict[str, Segmentation]:
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
