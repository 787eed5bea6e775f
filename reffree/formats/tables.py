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
from reffree.formats.format import Format, Sample
from reffree.formats.labels import from_unit_labels, read_seconds
from reffree.formats.source import Source
from reffree.formats.strict_json import listed
from reffree.util.errors import InputError, Place, located, shorten

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
    def matches(cls, sample: Sample) -> bool:
        """Whether the first line is a header with text."""
        cells = _split_header(sample.head)
        return "text" in cells and len(cells) > 1

    @classmethod
    def is_sure(cls, sample: Sample) -> bool:
        """Other formats have the same endings."""
        return False

    def read(self, source: Source) -> list[Document]:
        """Read a CSV, TSV or Parquet file."""
        if source.suffix == ".parquet":
            from reffree.formats import parquet

            rows = parquet.tables(source, nulls=True)
            return self.documents(rows, source.stem, source.place())
        return self.documents(_rows(source), source.stem, source.place())

    @property
    def columns(self) -> dict[str, str]:
        """The columns that have other names."""
        given = {column: getattr(self, column) for column in COLUMNS}
        return {column: name for column, name in given.items() if name is not None}

    def documents(
        self, rows: Iterable[tuple[Row, Place]], name: str, place: Place
    ) -> list[Document]:
        """Make documents of rows, each with all columns; ``name`` is that of the only document.

        A document's rows need not stand together; their order is that of the table.
        """
        found: dict[str, str] | None = None
        groups: dict[str, _Group] = {}
        for row, at in rows:
            found = found or self._find_columns(row, place)
            id = _cell_text(row[found["document"]]) if "document" in found else name
            if not id:
                raise InputError(
                    f"a row without {found['document']!r}",
                    expected="the document that the row belongs to",
                    remedy="fill the cell",
                    place=at,
                )
            if id not in groups:
                groups[id] = _Group(id, found, at)
            groups[id].add(row, at)
        if found is None:
            raise InputError(
                "a table without rows",
                expected="a header and a row for every unit",
                remedy="check that the file is the right one",
                place=place,
            )
        return [group.document(self.convention) for group in groups.values()]

    def _find_columns(self, row: Row, place: Place) -> dict[str, str]:
        """Match columns with those that the table has."""
        columns = self.columns
        for column, name in columns.items():
            if name not in row:
                raise InputError(
                    f"no column {shorten(name)!r} among {listed(list(row))}",
                    expected=f"it for {column}={shorten(name)}",
                    remedy="check its spelling",
                    place=place,
                )
        found = {column: column for column in COLUMNS if column in row} | columns
        if "text" not in found:
            others = ", ".join(column for column in COLUMNS if column != "text")
            raise InputError(
                f"the columns {listed(list(row))}",
                expected="a column 'text' with a unit a row (or the header Coder, Masses of "
                "segeval)",
                remedy="say which one it is, such as --format table:text=NAME, and the others "
                f"likewise: {others}",
                place=place,
            )
        if "segment" in found and "label" in found:
            named = [column for column in ("segment", "label") if column in columns]
            if len(named) != 1:
                raise InputError(
                    "a column for segments and one for labels",
                    expected="one of them, since each tells the segmentation",
                    remedy="name the one that counts, such as --format "
                    f"table:segment={found['segment']}",
                    place=place,
                )
            del found["label" if named == ["segment"] else "segment"]
        return found


class _Group:
    """The rows of one document, by columns."""

    def __init__(self, id: str, columns: Mapping[str, str], place: Place) -> None:
        self.id, self.columns = id, columns
        self.place = replace(place, document=id)
        self.places: list[Place] = []
        self.cells: dict[str, list[object]] = {column: [] for column in columns}

    def add(self, row: Row, place: Place) -> None:
        """Keep those cells of a row that are read."""
        self.places.append(place)
        for column, name in self.columns.items():
            self.cells[column].append(row[name])

    def document(self, convention: Convention | None) -> Document:
        """Make the document."""
        gold = None
        for column in ("segment", "label"):
            if not self._is_empty(column):
                self._refuse_missing(column)
                cells = list(map(_cell_text, self.cells[column]))
                with located(self.place):
                    gold = (
                        Segmentation.from_segment_ids(cells)
                        if column == "segment"
                        else from_unit_labels(cells, len(cells), convention)
                    )
        speakers = list(map(_cell_text, self.cells.get("speaker", [])))
        return Document.build(
            self.id,
            ["" if _is_missing(value) else str(value) for value in self.cells["text"]],
            gold=gold,
            speakers=speakers if any(speakers) else None,
            meta=None if self._is_empty("start") else {TIMES: self._times()},
            place=self.place,
        )

    def _is_empty(self, column: str) -> bool:
        return all(map(_is_missing, self.cells.get(column, [])))

    def _refuse_missing(self, column: str) -> None:
        for value, at in zip(self.cells[column], self.places, strict=True):
            if _is_missing(value):
                raise InputError(
                    f"an empty cell in the column {shorten(self.columns[column])!r}",
                    expected="a value in every row of the document or in none",
                    remedy="fill the cell",
                    place=replace(at, document=self.id),
                )

    def _times(self) -> list[list[float]]:
        starts = self._seconds("start")
        ends = self._seconds("end") if "end" in self.cells else [*starts[1:], starts[-1]]
        return [[start, max(start, end)] for start, end in zip(starts, ends, strict=True)]

    def _seconds(self, column: str) -> list[float]:
        found = []
        for value, at in zip(self.cells[column], self.places, strict=True):
            text = _cell_text(value)
            place = replace(at, document=self.id)
            what = f"the time {shorten(text)!r}"
            found.append(read_seconds(text, what, place, "write a number such as 12.5"))
        return found


def _rows(source: Source) -> Iterator[tuple[Row, Place]]:
    lines = source.lines()
    number, header = next(((n, line) for n, line in lines if line.strip()), (1, ""))
    names = _split_header(header)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"the column {shorten(twice)!r} twice",
            expected="every column once",
            remedy="rename one of the two",
            place=source.place(number),
        )
    if not names:
        return
    texts = (f"{line}\n" for _, line in lines)
    reader = csv.reader(texts, delimiter=_delimiter(header), strict=True)
    before = 0
    while True:
        place = source.place(number + before + 1)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f"a row that cannot be read ({error})",
                expected="cells with quotes around those that have quotes or separators in them",
                remedy="check the quotes from this line on",
                place=place,
            ) from None
        if cells is None:
            return
        before = reader.line_num
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(names):
            raise InputError(
                f"a row of {len(cells)} cells",
                expected=f"{len(names)}, as the header has",
                remedy="add or remove cells, or put quotes around text with separators in it",
                place=place,
            )
        yield dict(zip(names, cells, strict=True)), place


def _split_header(line: str) -> list[str]:
    """Split the first line of a table; nothing where it cannot be."""
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
