"""Tables with a unit a row: CSV, TSV, Parquet, data frames.

The columns ``text`` (needed), ``document``, ``speaker``, ``segment``, ``label``, ``start`` and
``end`` may have other names: ``table:text=utterance,document=call``. ``segment`` has an id that
changes where a segment ends; ``label`` a topic, or 0 and 1 under a convention (see
`labels.from_unit_labels`); ``start`` and ``end`` are seconds. Without a column for it the table is
one document. Other columns are not read.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reffree.data.corpus import TIMES, Document
from reffree.data.segmentation import Convention, Segmentation
from reffree.formats.format import Format
from reffree.formats.labels import from_unit_labels
from reffree.formats.source import Source
from reffree.formats.strict_json import listed, read_seconds
from reffree.util.errors import Place, located, mistake, shorten

COLUMNS = ("document", "text", "speaker", "segment", "label", "start", "end")

Row = Mapping[str, object]


@dataclass(frozen=True)
class Table(Format):
    """A table; options are the names of its columns and what a 1 means as a label."""

    document: str | None = None
    text: str | None = None
    speaker: str | None = None
    segment: str | None = None
    label: str | None = None
    start: str | None = None
    end: str | None = None
    convention: Convention | None = None
    name = "table"
    owns = (".csv", ".tsv")

    @classmethod
    def matches(cls, source: Source) -> bool:
        """Whether the first line is a header with text."""
        cells = _split_header(source.head)
        return "text" in cells and len(cells) > 1

    @classmethod
    def is_sure(cls, source: Source) -> bool:
        """Other formats have the same endings."""
        return False

    def read(self, source: Source) -> list[Document]:
        """Read a CSV, TSV or Parquet file."""
        if source.suffix != ".parquet":
            return self.documents(_rows(source), source.stem, source.place())
        from reffree.formats.shards import parquet_tables

        rows = ((row, row.place) for row in parquet_tables(source, nulls=True))
        return self.documents(rows, source.stem, source.place())

    def documents(
        self, rows: Iterable[tuple[Row, Place]], name: str, place: Place
    ) -> list[Document]:
        """Make documents of rows, each with all columns; ``name`` is that of the only document.

        A document's rows need not stand together; their order is that of the table.
        """
        found: dict[str, str] = {}
        groups: dict[str, _Group] = {}
        for row, at in rows:
            found = found or self._find_columns(row, place)
            id = _cell_text(row[found["document"]]) if "document" in found else name
            if not id:
                expected = "the document that the row belongs to"
                raise mistake(at, f"a row without {found['document']!r}", expected, "fill the cell")
            if id not in groups:
                groups[id] = _Group(id, found, at)
            groups[id].add(row, at)
        if not found:
            expected = "a header and a row for every unit"
            remedy = "check that the file is the right one"
            raise mistake(place, "a table without rows", expected, remedy)
        return [group.document(self.convention) for group in groups.values()]

    def _find_columns(self, row: Row, place: Place) -> dict[str, str]:
        """Match columns with those that the table has."""
        given = {column: getattr(self, column) for column in COLUMNS}
        columns = {column: name for column, name in given.items() if name is not None}
        for column, name in columns.items():
            if name not in row:
                missing = f"no column {shorten(name)!r} among {listed(list(row))}"
                expected = f"it for {column}={shorten(name)}"
                raise mistake(place, missing, expected, "check its spelling")
        found = {column: column for column in COLUMNS if column in row} | columns
        if "text" not in found:
            expected = "a column 'text' with a unit a row (or the header Coder, Masses of segeval)"
            remedy = (
                "say which one it is, such as --format table:text=NAME, and the others likewise: "
            )
            remedy += ", ".join(column for column in COLUMNS if column != "text")
            raise mistake(place, f"the columns {listed(list(row))}", expected, remedy)
        if "segment" in found and "label" in found:
            if ("segment" in columns) == ("label" in columns):
                both = "a column for segments and one for labels"
                expected = "one of them, since each tells the segmentation"
                option = f"--format table:segment={found['segment']}"
                raise mistake(place, both, expected, f"name the one that counts, such as {option}")
            del found["label" if "segment" in columns else "segment"]
        return found


class _Group:
    """The rows of one document, by columns."""

    def __init__(self, id: str, columns: Mapping[str, str], place: Place) -> None:
        self.id, self.columns = id, columns
        self.place = replace(place, document=id)
        self.places: list[Place] = []
        self.cells: dict[str, list[str]] = {column: [] for column in columns}

    def add(self, row: Row, place: Place) -> None:
        """Keep those cells of a row that are read."""
        self.places.append(replace(place, document=self.id))
        for column, name in self.columns.items():
            value = row[name]
            is_text = column == "text" and not _is_missing(value)
            self.cells[column].append(str(value) if is_text else _cell_text(value))

    def document(self, convention: Convention | None) -> Document:
        """Make the document."""
        filled = [column for column, cells in self.cells.items() if any(cells)]
        told_by = [column for column in ("segment", "label") if column in filled]
        return Document.build(
            self.id,
            self.cells["text"],
            gold=self._gold(told_by[0], convention) if told_by else None,
            speakers=self.cells["speaker"] if "speaker" in filled else None,
            meta={TIMES: self._times()} if "start" in filled else None,
            place=self.place,
        )

    def _gold(self, column: str, convention: Convention | None) -> Segmentation:
        cells = self.cells[column]
        if not all(cells):
            place = self.places[cells.index("")]
            found = f"an empty cell in the column {shorten(self.columns[column])!r}"
            expected = "a value in every row of the document or in none"
            raise mistake(place, found, expected, "fill the cell")
        if column == "segment":
            return Segmentation.from_segment_ids(cells)
        with located(self.place):
            return from_unit_labels(cells, len(cells), convention)

    def _times(self) -> list[list[float]]:
        starts, ends = (
            [
                read_seconds(text, f"the time {shorten(text)!r}", at, "write a number such as 12.5")
                for text, at in zip(self.cells.get(column, []), self.places, strict=False)
            ]
            for column in ("start", "end")
        )
        ends = ends or [*starts[1:], starts[-1]]
        return [[start, max(start, end)] for start, end in zip(starts, ends, strict=True)]


def _rows(source: Source) -> Iterator[tuple[Row, Place]]:
    lines = source.lines()
    number, header = next(((n, line) for n, line in lines if line.strip()), (1, ""))
    names = _split_header(header)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        found = f"the column {shorten(twice)!r} twice"
        raise mistake(source.place(number), found, "every column once", "rename one of the two")
    if not names:
        return
    texts = (f"{line}\n" for _, line in lines)
    reader = csv.reader(texts, delimiter=_delimiter(header), strict=True)
    while True:
        place = source.place(number + reader.line_num + 1)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            found = f"a row that cannot be read ({error})"
            expected = "cells with quotes around those that have quotes or separators in them"
            raise mistake(place, found, expected, "check the quotes from this line on") from None
        if cells is None:
            return
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(names):
            found = f"a row of {len(cells)} cells"
            remedy = "add or remove cells, or put quotes around text with separators in it"
            raise mistake(place, found, f"{len(names)}, as the header has", remedy)
        yield dict(zip(names, cells, strict=True)), place


def _split_header(line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=_delimiter(line)))]
    except (csv.Error, StopIteration):
        return []


def _delimiter(header: str) -> str:
    """Tell what stands between cells: a tab if there is any, else a comma or a semicolon."""
    if "\t" in header:
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def _is_missing(value: object) -> bool:
    """Whether a cell is empty, also as pandas and polars have it."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float):
        return value != value
    return isinstance(value, str) and not value.strip()


def _cell_text(value: object) -> str:
    return "" if _is_missing(value) else str(value).strip()
