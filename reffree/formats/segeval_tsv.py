"""segeval tables: a header ``Coder<TAB>Masses``, then a row ``coder<TAB>2<TAB>3<TAB>…`` per coder.

One document per file, named by the file without its extension; no text. The variant whose header
says ``Positions`` has one segment id per unit instead; ``.csv`` files have commas instead of tabs.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from reffree.corpus import Document
from reffree.errors import InputError, Place, shorten
from reffree.formats.labels import Label
from reffree.formats.segeval import coders
from reffree.formats.source import Source
from reffree.formats.wording import OWN_TEXT
from reffree.segmentation import Segmentation


def read(source: Source) -> list[Label]:
    """Read every coder's row."""
    lines = ((number, line) for number, line in source.lines() if line.strip(", \t"))
    number, header = next(lines, (1, ""))
    kind = columns(header)
    if kind is None:
        raise InputError(
            f"the header {shorten(header)!r}" if header else "no header",
            expected="a header Coder, Masses (or Coder, Positions), since CSV and TSV are read "
            "only as segeval tables",
            remedy=f"put it on the first line, or {OWN_TEXT}",
            place=source.place(number),
        )
    labels = []
    for number, line in lines:
        coder, *cells = _cells(line, _delimiter(header), source.place(number)) or [""]
        place = Place(source.name, number, source.stem, coder)
        numbers = [_number(cell, place) for cell in cells]
        if kind == "positions":
            numbers = list(Segmentation.from_segment_ids(numbers).masses) if numbers else []
        labels.append(Label(source.stem, coder, numbers, source.place(number)))
    return labels


def columns(header: str) -> str | None:
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


def write(document: Document) -> Iterator[str]:
    """Write the masses of gold and of every system."""
    yield "Coder\tMasses\n"
    for name, value in coders(document).items():
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
