"""What every command returns: a question, a verdict, tables, and the settings behind them.

A result is plain values all the way down, so that its JSON can be read back and rendered again, as
a table in the terminal or as a page, without the corpus and without the models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from numbers import Integral
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, cast

from reffree.formats.source import Source
from reffree.util.errors import InputError, Place, UnknownNameError, mistake, shorten
from reffree.util.grid import Cell, Grid
from reffree.util.optional import ShowsItself, notebook_html, require_pandas

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import TypeAdapter

FORM = 2
"""Raised whenever results written before could be misread; form 1 is read, too."""

MOST = 10**15
"""No number of a result is larger, bytes included; sums and quotients of them are finite."""

Kind = Literal["text", "count", "number", "score", "difference", "share", "p", "interval"]
Value = str | int | float | None | list[float]

DECIMALS = 10
"""Rounding of results: far below any meaning, far above what batching can change."""

SPECS = {"number": "z.3f", "difference": "+z.3f", "share": ".1%", "p": ".4f", "count": ",d"}


def rounded(value: float | None) -> float | None:
    """Round for output; -0.0 becomes 0.0, and what is not finite never gets out."""
    if value is None:
        return None
    if not math.isfinite(value):
        raise InputError(
            f"the score {value}",
            expected="a finite number, or none with its reason",
            remedy="bring the vectors, or the costs of the metric, to a smaller scale",
        )
    return round(value, DECIMALS) + 0.0


def plain(value: object) -> Any:  # noqa: ANN401  (what JSON knows)
    """Return what JSON knows: dataclasses as dicts, paths as text, numbers rounded, NaN as None."""
    if value is None or isinstance(value, str | bool):
        return value
    if type(value) is float:  # most of a large table
        return None if math.isnan(value) else rounded(value)
    if isinstance(value, PurePath):
        return str(value)
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [plain(each) for each in value]
    if isinstance(value, Integral):
        return int(value)
    return plain(float(value))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a table: how it is called, what its values are, how they are shown.

    Attributes:
        label: by which people know it; a column without one is data only, and not shown.
        interval: column of kind interval that is shown below each value.
        best: which values are pointed out: the low or high ones, or those where the column of
            this name is 1.
        beside, below: columns of texts that are shown small beside and below each value.
    """

    name: str
    label: str
    kind: Kind = "number"
    interval: str | None = None
    best: str | None = None
    beside: str | None = None
    below: str | None = None

    @property
    def attached(self) -> set[str]:
        """Names of the columns that are shown with this one."""
        return {name for name in (self.interval, self.beside, self.below) if name is not None}


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


def format_value(value: Value, kind: Kind) -> str:
    """Write a value for people, by the kind of its column; a dash for what is undefined."""
    match value:
        case None:
            return "–"
        case str():
            return value
        case list():
            of = kind if kind in ("difference", "score") else "number"
            return "[{}, {}]".format(*(format_value(float(each), of) for each in value))
    if kind == "score":
        return f"{value:z.3f}" if abs(value) < 1 else f"{value:.2f}"
    if kind == "count" and isinstance(value, float):
        return f"{value:,.1f}"
    if kind == "number" and isinstance(value, int):
        return f"{value:,d}"
    return format(value, SPECS.get(kind, ".3f"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of plain values; undefined is None.

    Attributes:
        shown: whether people are shown it; others hold the data of charts, a row an observation.
        rows: values in the order of the fields.
        wide: a column of names that become the columns where the table is shown, each with the
            values of the field after it; the fields before it name the rows.
    """

    name: str
    title: str
    shown: bool = True
    fields: tuple[Field, ...]
    rows: tuple[tuple[Value, ...], ...]
    wide: str | None = None

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        fields: Sequence[Field],
        rows: Sequence[Mapping[str, Any] | tuple[Any, ...]],
        *,
        shown: bool = True,
        wide: str | None = None,
    ) -> Table:
        """Make a table, with numbers rounded as everywhere and NaN as None.

        A row is a mapping by column, or a tuple in the order of the fields.
        """
        named = [
            dict(zip([f.name for f in fields], row, strict=True)) if isinstance(row, tuple) else row
            for row in rows
        ]
        cells = tuple(tuple(plain(row.get(f.name)) for f in fields) for row in named)
        return cls(name=name, title=title, shown=shown, fields=tuple(fields), rows=cells, wide=wide)

    def column(self, name: str) -> list[Value]:
        """Values of one column."""
        at = self._place(name)
        return [row[at] for row in self.rows]

    def records(self, **wanted: Value) -> list[dict[str, Any]]:
        """Rows as mappings from column name to value; with keywords, those that have these."""
        names = [each.name for each in self.fields]
        places = {self._place(name): value for name, value in wanted.items()}
        return [
            dict(zip(names, row, strict=True))
            for row in self.rows
            if all(row[at] == value for at, value in places.items())
        ]

    @property
    def shown_fields(self) -> list[Field]:
        """The columns that people see as such: labelled, and not shown with another one."""
        attached = set[str]().union(*(each.attached for each in self.fields))
        return [each for each in self.fields if each.label and each.name not in attached]

    def grid(self) -> Grid:
        """The table as people read it: labels and formatted cells, intervals below their values."""
        fields, best = self.shown_fields, dict[str, float]()
        for each in fields:
            numbers = [v for v in self.column(each.name) if isinstance(v, int | float)]
            if each.best in ("low", "high") and len(numbers) > 1:
                best[each.name] = min(numbers) if each.best == "low" else max(numbers)
        records, names = self.records(), [each.name for each in fields]
        at = len(fields) if self.wide is None else names.index(self.wide)
        header = [each.label for each in fields[:at]]
        rows = [[_cell(record, each, best) for each in fields[:at]] for record in records]
        if self.wide is not None:
            columns = list(dict.fromkeys(map(str, self.column(self.wide))))
            groups: dict[tuple[Cell, ...], dict[str, Cell]] = {}
            for record, key in zip(records, rows, strict=True):
                value = _cell(record, fields[at + 1], best)
                groups.setdefault(tuple(key), {})[str(record[self.wide])] = value
            rows = [
                [*key, *(cells.get(column, Cell("–")) for column in columns)]
                for key, cells in groups.items()
            ]
            header += columns
            fields = [*fields[:at], *[fields[at + 1]] * len(columns)]
        is_number = tuple(each.kind != "text" for each in fields)
        return Grid(tuple(header), tuple(map(tuple, rows)), is_number, self.title, self.name)

    def _repr_html_(self) -> str:
        return notebook_html(self)

    def _place(self, name: str) -> int:
        names = [each.name for each in self.fields]
        if name not in names:
            raise UnknownNameError("column", name, names)
        return names.index(name)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a data frame (needs pandas)."""
        pd = require_pandas()

        return pd.DataFrame(self.records(), columns=[each.name for each in self.fields])


def _cell(record: Mapping[str, Value], field: Field, best: Mapping[str, float]) -> Cell:
    """Write a value with what is shown beside and below it."""
    value = record[field.name]
    interval = record[field.interval] if field.interval else None
    below = [format_value(interval, field.kind)] if isinstance(interval, list) else []
    if field.below and record[field.below]:
        below.append(str(record[field.below]))
    if field.best in (None, "low", "high"):
        is_best = value is not None and value == best.get(field.name)
    else:
        is_best = record[str(field.best)] == 1
    number = value[0] if isinstance(value, list) and value else value
    return Cell(
        format_value(value, field.kind),
        tuple(below),
        str(record[field.beside] or "") if field.beside else "",
        is_best=is_best,
        number=number if isinstance(number, int | float) else None,
    )


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document's units and the masses of every system on it, for the reader's own eyes."""

    corpus: str
    id: str
    units: tuple[str, ...]
    systems: dict[str, tuple[int, ...]]
    clocks: tuple[str, ...] = ()  # where units start in time, if that is known


@dataclass(frozen=True, slots=True)
class Result(ShowsItself):
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
    legend: tuple[str, ...] = ()  # how to read the tables, in sentences

    def table(self, name: str) -> Table:
        """Return the table of that name."""
        for table in self.tables:
            if table.name == name:
                return table
        raise UnknownNameError("table", name, [table.name for table in self.tables])

    def to_dict(self) -> dict[str, Any]:
        """Return the structure of the JSON output."""
        data: dict[str, Any] = plain(self)
        for table in data["tables"]:
            table["fields"] = [
                {key: value for key, value in each.items() if value is not None}
                for each in table["fields"]
            ]
        return {"reffree": FORM, **data}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], place: Place | None = None) -> Result:
        """Read what `to_dict` wrote, now or as form 1; refuse anything else with a sentence."""
        form = data.get("reffree", data.get("reffree_study")) if isinstance(data, Mapping) else None
        if isinstance(data, Mapping) and data.get("reffree_study") == 1:
            data = {**data, "command": data.get("study"), "verdict": data.get("answer")}
        elif form != FORM or "reffree" not in data:
            raise InputError(
                "no results of a study" if form is None else f"results of another form ({form})",
                expected=f"JSON written by a study of reffree, form {FORM} or 1",
                remedy="make it with reffree study correlate … -o results.json, or reffree run",
                place=place,
            )
        from pydantic import ValidationError

        try:
            result = _reader().validate_python(data)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise damaged(f"{where}: {shorten(first['msg'])}", place) from None
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
            remedy="check the path, or make it with reffree study correlate … -o results.json",
            place=error.place,
        ) from None
    return Result.from_dict(cast(Mapping[str, Any], data), place)


@cache
def _reader() -> TypeAdapter[Result]:
    """Return what holds JSON against the fields of the dataclass."""
    from pydantic import TypeAdapter

    return TypeAdapter(Result)


def _checked(table: Table, place: Place | None) -> Table:
    """Hold the cells of a table that was read against its header; return them rounded, as made."""
    names, kinds = [each.name for each in table.fields], {f.name: f.kind for f in table.fields}
    of_kind = {"interval": {each.interval for each in table.fields} - {None}}
    of_kind["text"] = {name for f in table.fields for name in (f.beside, f.below)} - {None}
    flags = {each.best for each in table.fields} - {None, "low", "high"}
    wide_among = {each.name for each in table.shown_fields[1:-1] if each.kind == "text"}
    fits = all(kinds.get(str(name)) == kind for kind, found in of_kind.items() for name in found)
    is_wide = table.wide is None or table.wide in wide_among
    if len(kinds) < len(names) or not (fits and is_wide and flags <= {*names}):
        raise damaged(f"the header of table {shorten(table.name)!r}", place)
    rows = []
    for i, row in enumerate(table.rows):
        if len(row) != len(names) or not all(map(_is_of_kind, row, table.fields)):
            raise damaged(f"row {i + 1} of table {shorten(table.name)!r}", place)
        rows.append(tuple(map(plain, row)))
    return replace(table, rows=tuple(rows))


def _is_of_kind(value: Value, field: Field) -> bool:
    """Whether a cell is what its column holds; undefined is None in any."""
    match value:
        case None:
            return True
        case str():
            return field.kind == "text"
        case list():
            is_small = all(abs(number) <= MOST for number in value)
            return field.kind == "interval" and len(value) == 2 and is_small
    return field.kind not in ("text", "interval") and abs(value) <= MOST


def damaged(
    found: str, place: Place | None = None, remedy: str = "run the study again"
) -> InputError:
    """Return the error for results that are not as they were written."""
    return mistake(place, f"damaged results ({found})", "what reffree wrote, unchanged", remedy)
