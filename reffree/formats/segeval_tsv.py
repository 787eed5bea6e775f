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
from reffree.segmentation import Segmentation


def read(source: Source) -> list[Label]:
    """Read every coder's row."""
    rows = _rows(source)
    number, header = next(rows, (1, []))
    kind = [cell.strip().lower() for cell in header]
    if kind not in (["coder", "masses"], ["coder", "positions"]):
        raise InputError(
            f"the header {shorten(' '.join(header))!r}" if header else "no header",
            expected="Coder and Masses, or Coder and Positions",
            remedy="put it on the first line, or name the right format with --format",
            place=source.place(number),
        )
    labels = []
    for number, (coder, *cells) in rows:
        place = Place(source.name, number, source.stem, coder)
        numbers = [_number(cell, place) for cell in cells]
        if kind[1] == "positions":
            numbers = list(Segmentation.from_segment_ids(numbers).masses) if numbers else []
        labels.append(Label(source.stem, coder, numbers, source.place(number)))
    return labels


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) for rows with content; the header shows the delimiter."""
    delimiter = None
    for number, line in source.lines():
        if not line.strip():
            continue
        if delimiter is None:
            delimiter = "\t" if "\t" in line else ","
        try:
            cells = next(csv.reader([line], delimiter=delimiter, strict=True))
        except csv.Error as error:
            raise InputError(
                f"a row that cannot be read ({error})",
                expected="a coder and its numbers",
                remedy="check the quotes on this line",
                place=source.place(number),
            ) from None
        while cells and not cells[-1].strip():  # spreadsheets pad short rows
            cells.pop()
        if cells:
            yield number, cells


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
