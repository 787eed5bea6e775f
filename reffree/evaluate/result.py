"""What every study returns: a question, an answer, tables, and the settings behind them.

A result is plain values all the way down, so that its JSON can be read back and rendered again, as
a table in the terminal or as a page, without the corpus and without the models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import TypeAdapter, ValidationError

from reffree.evaluate.table import rounded
from reffree.formats.source import Source
from reffree.util.errors import InputError, Place, UnknownNameError, shorten
from reffree.util.notebooks import sentences_html, table_html
from reffree.util.optional import require_pandas

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
"""Raised whenever results written before could be misread."""

MOST = 10**15
"""No number of a result is larger, bytes included; sums and quotients of them are finite."""

Kind = Literal["text", "count", "number", "share", "p", "interval"]
Value = str | int | float | None | list[float]


def plain(value: object) -> Any:  # noqa: ANN401  (what JSON knows)
    """Return what JSON knows: dataclasses as dicts, numbers rounded, NumPy's too, NaN as None."""
    if value is None or isinstance(value, str | bool):
        return value
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [plain(each) for each in value]
    number = float(value)  # type: ignore[arg-type]
    if math.isnan(number):
        return None
    if isinstance(value, Integral):
        return int(value)
    return rounded(number)


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a table: how it is called, what its values are, how they are shown."""

    name: str
    label: str
    kind: Kind = "number"
    interval: str | None = None  # the column of kind interval that goes with this one
    best: Literal["low", "high"] | None = None  # which values of the column to point out


def columns(kind: Kind, /, *names: str, **labels: str) -> tuple[Field, ...]:
    """Columns of one kind: those named alone are labelled by their names, and come first.

    >>> [(each.name, each.label) for each in columns("text", "corpus", kind="perturbation")]
    [('corpus', 'corpus'), ('kind', 'perturbation')]
    """
    own = [Field(name, name, kind) for name in names]
    return (*own, *(Field(name, label, kind) for name, label in labels.items()))


def estimate(
    name: str, label: str, kind: Kind = "number", *, ci: str | None = None, ci_label: str = "95 %"
) -> tuple[Field, Field]:
    """Return a column and that of its interval, which is called ``ci``, else ``<name>_ci``."""
    interval = f"{name}_ci" if ci is None else ci
    return Field(name, label, kind, interval), Field(interval, ci_label, "interval")


def _told(value: Value) -> str:
    match value:
        case None:
            return "–"
        case float():
            return f"{value:.3f}"
        case list():
            return "[{:.3f}, {:.3f}]".format(*value)
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of plain values; undefined is None.

    Tables that are not ``shown`` hold the data of charts: a row per observation.
    """

    name: str
    title: str
    shown: bool = True
    fields: tuple[Field, ...]
    rows: tuple[tuple[Value, ...], ...]

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        fields: Sequence[Field],
        rows: Sequence[Mapping[str, Any] | tuple[Any, ...]],
        *,
        shown: bool = True,
    ) -> Table:
        """Make a table, with numbers rounded as everywhere and NaN as None.

        A row is a mapping by column, or a tuple in the order of the fields.
        """
        named = [
            dict(zip([f.name for f in fields], row, strict=True)) if isinstance(row, tuple) else row
            for row in rows
        ]
        cells = tuple(tuple(plain(row.get(f.name)) for f in fields) for row in named)
        return cls(name=name, title=title, shown=shown, fields=tuple(fields), rows=cells)

    def column(self, name: str) -> list[Value]:
        """Values of one column."""
        at = self._position(name)
        return [row[at] for row in self.rows]

    def records(self, **wanted: Value) -> list[dict[str, Value]]:
        """Rows as mappings from column name to value; with keywords, those that have these."""
        names = [each.name for each in self.fields]
        places = {self._position(name): value for name, value in wanted.items()}
        return [
            dict(zip(names, row, strict=True))
            for row in self.rows
            if all(row[at] == value for at, value in places.items())
        ]

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        rows = [[_told(value) for value in row] for row in self.rows]
        return table_html((each.label for each in self.fields), rows, self.title)

    def _position(self, name: str) -> int:
        names = [each.name for each in self.fields]
        if name not in names:
            raise UnknownNameError("column", name, names)
        return names.index(name)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a data frame (needs pandas)."""
        pd = require_pandas()

        return pd.DataFrame(self.records(), columns=[each.name for each in self.fields])


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document's units and the masses of every system on it, for the reader's own eyes."""

    corpus: str
    id: str
    units: tuple[str, ...]
    systems: dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Result:
    """Everything a study found, and everything needed to repeat it."""

    command: str
    question: str
    verdict: tuple[str, ...]  # sentences, the most important one first
    signature: str
    settings: dict[str, Any]
    corpora: tuple[dict[str, Any], ...]  # name, documents, units, dropped_units, …
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    reading: dict[str, str] = field(default_factory=dict)  # metric or column → how to read it
    texts: tuple[DocumentText, ...] = ()

    def _repr_html_(self) -> str:
        """The verdict and the tables that are shown, for notebooks."""
        shown = [table for table in self.tables if table.shown and table.rows]
        return sentences_html(self.verdict) + "".join(table._repr_html_() for table in shown)

    def table(self, name: str) -> Table:
        """Return the table of that name."""
        for table in self.tables:
            if table.name == name:
                return table
        raise UnknownNameError("table", name, [table.name for table in self.tables])

    def to_dict(self) -> dict[str, Any]:
        """Return the structure of the JSON output."""
        return {"reffree_study": FORMAT, **plain(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], place: Place | None = None) -> Result:
        """Read what `to_dict` wrote; refuse anything else with a sentence."""
        if not isinstance(data, Mapping) or data.get("reffree_study") != FORMAT:
            found = data.get("reffree_study") if isinstance(data, Mapping) else type(data).__name__
            raise InputError(
                "no results of a study" if found is None else f"results of another form ({found})",
                expected=f"JSON written by a study of reffree, form {FORMAT}",
                remedy="make it with reffree correlate … -o results.json, or reffree run",
                place=place,
            )
        try:
            result = _reader().validate_python(data)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise _damaged(f"{where}: {shorten(first['msg'])}", place) from None
        return replace(result, tables=tuple(_checked(each, place) for each in result.tables))


def load_result(path: Path | str) -> Result:
    """Read a study's results from the JSON file it was written to."""
    place = Place(file=str(path))
    try:
        data = Source(path).json
    except InputError as error:
        raise InputError(
            error.found,
            expected="results of a study, as JSON",
            remedy="check the path, or make it with reffree correlate … -o results.json",
            place=error.place,
        ) from None
    return Result.from_dict(cast(Mapping[str, Any], data), place)


@cache
def _reader() -> TypeAdapter[Result]:
    """Return what holds JSON against the fields of the dataclass."""
    return TypeAdapter(Result)


def _checked(table: Table, place: Place | None) -> Table:
    """Hold the cells of a table that was read against its header; return them rounded, as made."""
    names = [each.name for each in table.fields]
    intervals = {each.name for each in table.fields if each.kind == "interval"}
    named = {each.interval for each in table.fields} - {None}
    if len(set(names)) < len(names) or not named <= intervals:
        raise _damaged(f"the header of table {shorten(table.name)!r}", place)
    rows = []
    for i, row in enumerate(table.rows):
        fits = len(row) == len(names) and all(map(_is_of_kind, row, table.fields))
        if not fits:
            raise _damaged(f"row {i + 1} of table {shorten(table.name)!r}", place)
        rows.append(tuple(map(plain, row)))
    return replace(table, rows=tuple(rows))


def _is_of_kind(value: Value, field: Field) -> bool:
    """Whether a cell is what its column holds; undefined is None in any."""
    if value is None:
        return True
    if isinstance(value, list):
        return field.kind == "interval" and len(value) == 2 and all(map(_is_small, value))
    if isinstance(value, str):
        return field.kind == "text"
    return field.kind not in ("text", "interval") and _is_small(value)


def _is_small(number: float) -> bool:
    return abs(number) <= MOST


def _damaged(found: str, place: Place | None) -> InputError:
    return InputError(
        f"damaged results ({found})",
        expected="what reffree wrote, unchanged",
        remedy="run the study again",
        place=place,
    )
