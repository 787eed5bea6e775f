"""Tables with a unit a row: CSV, TSV, Parquet, data frames.

The columns ``text`` (needed), ``document``, ``speaker``, ``segment``, ``label``, ``start`` and
``end`` may have other names, given as column → name. ``segment`` has an id that changes where a
segment ends; ``label`` a topic, or 0 and 1 under a convention (see `labels.from_unit_labels`);
``start`` and ``end`` are seconds. Without a column for it the table is one document. Other columns
are not read.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reffree.data.corpus import TIMES, Document
from reffree.data.segmentation import Convention, Segmentation
from reffree.formats.labels import from_unit_labels
from reffree.formats.source import Source
from reffree.formats.strict_json import listed
from reffree.util.errors import InputError, OptionError, Place, located, shorten

COLUMNS = ("document", "text", "speaker", "segment", "label", "start", "end")
TEXT = "text"

Row = Mapping[str, object]


def read(
    source: Source, columns: Mapping[str, str], convention: Convention | None
) -> list[Document]:
    """Read a CSV or TSV file."""
    return documents_of(_rows(source), columns, convention, source.stem, source.place())


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse names for columns that no table has."""
    for column, name in columns.items():
        if column not in COLUMNS or not isinstance(name, str) or not name:
            raise OptionError(
                f"the column {shorten(f'{column}={name}')!r}",
                expected=f"one of {', '.join(COLUMNS)}, = and its name in the table",
                remedy="write, for instance, --column text=utterance",
            )


def refuse_columns(columns: Mapping[str, str], what: str, place: Place) -> None:
    """Refuse names of columns for what is no table."""
    for column, name in columns.items():
        raise InputError(
            f"--column {shorten(f'{column}={name}')} for {what}",
            expected="names of columns only with a table (CSV, TSV, Parquet, a frame)",
            remedy="leave it out",
            place=place,
        )


def cells_of(line: str) -> list[str]:
    """Split the first line of a table; nothing where it cannot be."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter(line)))]
    except (csv.Error, StopIteration):
        return []


def delimiter(header: str) -> str:
    """Tell what stands between cells: a tab if there is any, else a comma or a semicolon."""
    if "\t" in header:
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def _rows(source: Source) -> Iterator[tuple[Row, Place]]:
    lines = source.lines()
    number, header = next(((n, line) for n, line in lines if line.strip()), (1, ""))
    names = cells_of(header)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"the column {shorten(twice)!r} twice",
            expected="every column once",
            remedy="rename one of the two",
            place=source.place(number),
        )
    reader = csv.reader(
        (f"{line}\n" for _, line in lines), delimiter=delimiter(header), strict=True
    )
    if not names:
        return
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


def documents_of(
    rows: Iterable[tuple[Row, Place]],
    columns: Mapping[str, str],
    convention: Convention | None,
    name: str,
    place: Place,
) -> list[Document]:
    """Make documents of rows, each with the column names of all; ``name`` is that of the only one.

    A document's rows need not stand together; their order is that of the table.
    """
    found: dict[str, str] | None = None
    groups: dict[str, list[tuple[Row, Place]]] = {}
    for row, at in rows:
        found = found or _found(row, columns, place)
        id = _text(row[found["document"]]) if "document" in found else name
        if not id:
            raise InputError(
                f"a row without {found['document']!r}",
                expected="the document that the row belongs to",
                remedy="fill the cell",
                place=at,
            )
        groups.setdefault(id, []).append((row, at))
    if found is None:
        raise InputError(
            "a table without rows",
            expected="a header and a row for every unit",
            remedy="check that the file is the right one",
            place=place,
        )
    return [_document(id, group, found, convention) for id, group in groups.items()]


def _found(row: Row, columns: Mapping[str, str], place: Place) -> dict[str, str]:
    """Match columns with those that the table has."""
    check_columns(columns)
    for column, name in columns.items():
        if name not in row:
            raise InputError(
                f"no column {shorten(name)!r} among {listed(list(row))}",
                expected=f"it for --column {column}={shorten(name)}",
                remedy="check its spelling",
                place=place,
            )
    found = {column: column for column in COLUMNS if column in row} | dict(columns)
    if TEXT not in found:
        raise InputError(
            f"the columns {listed(list(row))}",
            expected="a column 'text' with a unit a row (or the header Coder, Masses of segeval)",
            remedy="say which one it is, such as --column text=NAME, and the others likewise: "
            f"{', '.join(column for column in COLUMNS if column != TEXT)}",
            place=place,
        )
    if "segment" in found and "label" in found:
        named = [column for column in ("segment", "label") if column in columns]
        if len(named) != 1:
            raise InputError(
                "a column for segments and one for labels",
                expected="one of them, since each tells the segmentation",
                remedy=f"name the one that counts, such as --column segment={found['segment']}",
                place=place,
            )
        del found["label" if named == ["segment"] else "segment"]
    return found


def _document(
    id: str,
    rows: Sequence[tuple[Row, Place]],
    found: Mapping[str, str],
    convention: Convention | None,
) -> Document:
    place = replace(rows[0][1], document=id)
    values = {column: [row[name] for row, _ in rows] for column, name in found.items()}
    gold = None
    for column in ("segment", "label"):
        if column in values and not all(map(_is_missing, values[column])):
            _refuse_missing(found[column], values[column], rows, id)
            cells = list(map(_text, values[column]))
            with located(place):
                gold = (
                    Segmentation.from_segment_ids(cells)
                    if column == "segment"
                    else from_unit_labels(cells, len(cells), convention)
                )
    times = _times(values, rows, id)
    speakers = list(map(_text, values["speaker"])) if "speaker" in values else None
    return Document.build(
        id,
        ["" if _is_missing(value) else str(value) for value in values[TEXT]],
        gold=gold,
        speakers=speakers if speakers and any(speakers) else None,
        meta={TIMES: times} if times else None,
        place=place,
    )


def _times(
    values: Mapping[str, Sequence[object]], rows: Sequence[tuple[Row, Place]], id: str
) -> list[list[float]]:
    if "start" not in values or all(map(_is_missing, values["start"])):
        return []
    places = [at for _, at in rows]
    read = {
        column: [_seconds(value, at, id) for value, at in zip(values[column], places, strict=True)]
        for column in ("start", "end")
        if column in values
    }
    starts = read["start"]
    ends = read.get("end") or [*starts[1:], starts[-1]]
    return [[start, max(start, end)] for start, end in zip(starts, ends, strict=True)]


def _seconds(value: object, place: Place, id: str) -> float:
    text = _text(value)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if 0 <= seconds < 1e9:
        return seconds
    raise InputError(
        f"the time {shorten(text)!r}",
        expected="seconds from the start",
        remedy="write a number such as 12.5",
        place=replace(place, document=id),
    )


def _refuse_missing(
    name: str, values: Sequence[object], rows: Sequence[tuple[Row, Place]], id: str
) -> None:
    for value, (_, at) in zip(values, rows, strict=True):
        if _is_missing(value):
            raise InputError(
                f"an empty cell in the column {shorten(name)!r}",
                expected="a value in every row of the document or in none",
                remedy="fill the cell",
                place=replace(at, document=id),
            )


def _is_missing(value: object) -> bool:
    """Whether a cell is empty, also as pandas and polars have it."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float):
        return value != value
    return isinstance(value, str) and not value.strip()


def _text(value: object) -> str:
    return "" if _is_missing(value) else str(value).strip()
