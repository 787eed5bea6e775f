"""Segmentations without text: segeval JSON and tables, nltk strings.

segeval's JSON is ``{"items": {"doc": {"coder1": [2, 3]}}, "segmentation_type": "linear"}``. Tables
have a header
``Coder<TAB>Masses``, then a row ``coder<TAB>2<TAB>3<TAB>…`` per coder, one document per file, named
by the file without its extension; where the header says ``Positions`` there is one segment id per
unit instead, and ``.csv`` files have commas instead of tabs. Coders are systems, except one called
gold, unless they are said to be annotators.

nltk boundary strings are one string of 0 and 1 per line and document, optionally
``id<TAB>string``. nltk writes one character per gap between units; one per unit is read as well
(see `Segmentation.from_string`). The strings are the corpus's gold.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from reffree.data.corpus import GOLD, Corpus, Document
from reffree.data.segmentation import Convention, Segmentation
from reffree.formats.format import JSON, TEXT, Format
from reffree.formats.jsonl import dumps
from reffree.formats.labels import CodersAs, Label
from reffree.formats.source import Source
from reffree.formats.strict_json import Record, typed
from reffree.util.errors import Place, mistake, shorten


@dataclass(frozen=True)
class Segeval(Format):
    """segeval's JSON; ``coders`` are systems, or annotators (golds)."""

    coders: CodersAs = "systems"
    name = "segeval"
    keys = ("items", "segmentation_type")
    suffixes = JSON
    has_text = False
    written_as = ()
    keeps = frozenset({"systems"})

    def read(self, source: Source) -> list[Label]:
        """Read every coder of every document."""
        place = source.place()
        table = Record(source.json, "the file's content", place)
        kind = table.get("segmentation_type", "linear")
        if kind != "linear":
            remedy = "export one linear segmentation per coder"
            raise mistake(place, f"the segmentation type {kind!r}", "'linear'", remedy)
        labels = []
        for id, coders in table.need_object("items").items():
            at = replace(place, document=id)
            for coder, masses in Record(coders, "the document's coders", at).items():
                value = typed(masses, list, "masses", replace(at, system=coder))
                labels.append(Label(id, coder, value, place, coders_as=self.coders))
        return labels

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write gold as the coder gold, and every system as a coder."""
        items = {
            document.id: {name: list(value.masses) for name, value in _coders(document).items()}
            for document in corpus
        }
        yield dumps({"items": items, "segmentation_type": "linear"}, corpus[0].place) + "\n"


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
    def matches(cls, source: Source) -> bool:
        """Whether the first line is such a header."""
        return _table_columns(source.head) is not None

    def read(self, source: Source) -> list[Label]:
        """Read every coder's row of a table."""
        lines = ((number, line) for number, line in source.lines() if line.strip(", \t"))
        number, header = next(lines, (1, ""))
        kind = _table_columns(header)
        if kind is None:
            found = f"the header {shorten(header)!r}" if header else "no header"
            expected = "a header Coder, Masses (or Coder, Positions)"
            remedy = "put it on the first line, or read a table with a unit a row with "
            raise mistake(source.place(number), found, expected, f"{remedy}--format table")
        labels = []
        for number, line in lines:
            at = source.place(number)
            coder, *cells = _cells(line, _delimiter(header), at) or [""]
            place = Place(source.name, number, source.stem, coder)
            numbers = []
            for cell in cells:
                text = cell.strip()
                if not (text.isascii() and text.isdigit() and len(text) <= 18):
                    found, remedy = f"the cell {shorten(cell)!r}", "write one number per cell"
                    raise mistake(place, found, "a whole number", remedy)
                numbers.append(int(text))
            if kind == "positions":
                numbers = [sum(1 for _ in run) for _, run in groupby(numbers)]
            labels.append(Label(source.stem, coder, numbers, at, coders_as=self.coders))
        return labels

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write the masses of gold and of every system as a table."""
        document = corpus[0]
        yield "Coder\tMasses\n"
        for name, value in _coders(document).items():
            if "\n" in name or "\r" in name or name != name.strip():
                found = f"the system name {shorten(ascii(name))}"
                expected = "a name on one line, without spaces around it"
                remedy = "rename the system, or write segeval JSON"
                raise mistake(document.place, found, expected, remedy)
            row = io.StringIO()
            csv.writer(row, delimiter="\t", lineterminator="\n").writerow([name, *value.masses])
            yield row.getvalue()


def _table_columns(header: str) -> str | None:
    """Tell from the header what the rows hold: masses, positions, or that this is no table."""
    cells = [cell.strip(' "').lower() for cell in header.split(_delimiter(header))]
    while cells and not cells[-1]:
        cells.pop()
    return cells[1] if cells in (["coder", "masses"], ["coder", "positions"]) else None


def _delimiter(header: str) -> str:
    return "\t" if "\t" in header else ","


def _cells(line: str, delimiter: str, place: Place) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as error:
        found = f"a row that cannot be read ({error})"
        remedy = "check the quotes on this line"
        raise mistake(place, found, "a coder and its numbers", remedy) from None
    while cells and not cells[-1].strip():  # spreadsheets pad short rows
        cells.pop()
    return cells


def _coders(document: Document) -> dict[str, Segmentation]:
    """Collect gold and the systems by coder's name; a document without any is refused."""
    if not document.segmentations:
        found = "a document without a segmentation"
        expected = "gold or a system, since segeval files hold nothing else"
        raise mistake(document.place, found, expected, "add one, or write the corpus as jsonl")
    return document.segmentations


@dataclass(frozen=True)
class Nltk(Format):
    """nltk's strings; ``convention`` says what a 1 is where a string leaves it open."""

    convention: Convention | None = None
    name = "nltk"
    suffixes = TEXT
    rank = 3
    has_text = False
    written_as = (".txt",)

    @classmethod
    def matches(cls, source: Source) -> bool:
        """Whether there is nothing but 0 and 1, and one of them at the end of some line."""
        has_string = False
        for line in source.shown():
            id, _, string = line.rpartition("\t")
            if string.strip().strip("01") or "\t" in id.strip():
                return False
            has_string = has_string or line.rstrip().endswith(("0", "1"))
        return has_string

    def read(self, source: Source) -> list[Label]:
        """Read one gold segmentation per line that is not blank; ids on all lines or on none."""
        labels: list[Label] = []
        for number, line in source.lines_with_text():
            id, tab, string = line.rpartition("\t")
            place = source.place(number)
            if labels and bool(tab) != (labels[0].document is not None):
                found = "a line with an id" if tab else "a line without an id"
                remedy = "write id, tab, string on every line"
                raise mistake(place, found, "ids on all lines or on none", remedy)
            if tab and not id.strip():
                found, remedy = "a tab without an id before it", "write the document's id first"
                raise mistake(place, found, "id, tab, string", remedy)
            name = id.strip() if tab else None
            labels.append(Label(name, GOLD, string.strip(), place, self.convention))
        return labels

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write ``id<TAB>gap string`` lines."""
        for document, segmentation in zip(corpus.documents, chosen, strict=True):
            id = document.id
            if re.search(r"[\t\r\n]", id) or id != id.strip() or id.startswith("\ufeff"):
                expected = "an id without tabs, line breaks or spaces around it"
                remedy = "rename the document, or write another format"
                raise mistake(document.place, f"the id {shorten(ascii(id))}", expected, remedy)
            yield f"{id}\t{segmentation.to_string('gap')}\n"
