"""Tables with a unit a row: CSV, TSV, Parquet, data frames.

The columns ``text`` (needed), ``document``, ``speaker``, ``segment``, ``label``, ``start`` and
``end`` may have other names: ``table:text=utterance,document=call``. ``segment`` has an id that
changes where a segment ends; ``label`` a topic, or 0 and 1 under a convention (see
`labels.from_unit_labels`); ``start`` and ``end`` are seconds. Without a column for it the table is
one document. Other columns are not read.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        """Make documents of rows with all columns; ``name`` is that of an only document."""
        found: dict[str, str] = {}
        groups: dict[str, tuple[list[Place], dict[str, list[str]]]] = {}
        for row, at in rows:
            found = found or self._find_columns(row, place)
            id = _cell_text(row[found["document"]]) if "document" in found else name
            if not id:
                expected = "the document that the row belongs to"
                raise mistake(at, f"a row without {found['document']!r}", expected, "fill the cell")
            places, cells = groups.setdefault(id, ([], {column: [] for column in found}))
            places.append(replace(at, document=id))
            for column, key in found.items():
                is_text = column == "text" and not _is_missing(row[key])
                cells[column].append(str(row[key]) if is_text else _cell_text(row[key]))
        if not found:
            expected = "a header and a row for every unit"
            remedy = "check that the file is the right one"
            raise mistake(place, "a table without rows", expected, remedy)
        return [self._document(found, *group) for group in groups.values()]

    def _find_columns(self, row: Row, place: Place) -> dict[str, str]:
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
            others = ", ".join(column for column in COLUMNS if column != "text")
            remedy = "say which one it is, such as --format table:text=NAME, and the others "
            remedy += f"likewise: {others}"
            raise mistake(place, f"the columns {listed(list(row))}", expected, remedy)
        if "segment" in found and "label" in found:
            if ("segment" in columns) == ("label" in columns):
                both = "a column for segments and one for labels"
                expected = "one of them, since each tells the segmentation"
                option = f"--format table:segment={found['segment']}"
                raise mistake(place, both, expected, f"name the one that counts, such as {option}")
            del found["label" if "segment" in columns else "segment"]
        return found

    def _document(
        self, columns: Mapping[str, str], places: Sequence[Place], cells: Mapping[str, list[str]]
    ) -> Document:
        filled = {column: given for column, given in cells.items() if any(given)}
        gold = None
        for column in filled.keys() & {"segment", "label"}:  # one of them at most
            if not all(given := filled[column]):
                found = f"an empty cell in the column {shorten(columns[column])!r}"
                expected = "a value in every row of the document or in none"
                raise mistake(places[given.index("")], found, expected, "fill the cell")
            with located(places[0]):
                is_label = column == "label"
                gold = from_unit_labels(given, len(given), self.convention) if is_label else None
                gold = gold or Segmentation.from_segment_ids(given)
        starts, ends = list[float](), list[float]()
        for column, seconds in (("start", starts), ("end", ends)) if "start" in filled else ():
            for text, at in zip(cells.get(column, []), places, strict=False):
                what = f"the time {shorten(text)!r}"
                seconds.append(read_seconds(text, what, at, "write a number such as 12.5"))
        times = zip(starts, ends or [*starts[1:], *starts[-1:]], strict=True)
        return Document.build(
            str(places[0].document),
            cells["text"],
            gold=gold,
            speakers=filled.get("speaker"),
            meta={TIMES: [[start, max(start, end)] for start, end in times]} if starts else None,
            place=places[0],
        )


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
