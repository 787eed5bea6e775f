"""A chart before it is drawn: a specification, its data, and what its reader may choose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, Literal

import altair as alt

from reffree.evaluate.result import Result, Value
from reffree.util.errors import InputError, counted

Row = dict[str, Value]

PALETTE = (
    *("#1f7fc0", "#d55e00", "#008f6b", "#b8559b", "#a87800", "#7a68d8"),
    *("#808080", "#3d8f9e", "#b5534f", "#6d8f2f"),
)
"""After Okabe and Ito, each at least 3 : 1 on white and on the page's dark ground."""

MARKS: dict[str, tuple[Any, Sequence[Any]]] = {
    "colour": (alt.Color, PALETTE),
    "dash": (alt.StrokeDash, ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3], [4, 1], [2, 4])),
    "shape": (alt.Shape, ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")),
}
"""What tells names apart: never colour alone."""

MAX_ROWS = 20_000
"""Of one chart: more are thinned out, and the chart says so."""

MARK = "\ue000"
"""Around the name of a choice in an axis title, where the page puts what was picked."""

ROWS = alt.NamedData("rows")
LABELS = {"pool": "Pool of systems", "gold": "Gold-based metric", "trained_on": "Trained on"}
"""Of choices that are not called as their columns."""

TEXTS = {
    *("corpus", "encoder", "pool", "coefficient", "metric", "metric_kind", "matching", "system"),
    *("document", "free", "gold", "level", "is_sentinel", "encoder_a", "encoder_b", "made_with"),
    *("scored_with", "kind", "method", "measure", "point", "reads", "rule", "thinned", "splitter"),
    "trained_on",
}
NUMBERS = (
    *("value", "loss", "low", "high", "scaled", "scaled_low", "scaled_high", "kendall", "share"),
    *("turned", "bor", "density", "threshold", "n_systems", "segments", "real", "unit", "w_f1"),
    *("size", "at", "units_per_second"),
)
KINDS = dict.fromkeys(TEXTS, "text") | dict.fromkeys(NUMBERS, "number") | {"ci": "interval"}
"""Columns of a result's tables that charts draw, by what they hold: a text draws no number."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the reader picks: the rows with a value, or the columns drawn under other names."""

    field: str
    label: str
    values: tuple[str, ...]
    columns: Mapping[str, Mapping[str, str]] | None = None  # value → drawn name → column


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure of a report; the first value of each choice is what is drawn at first."""

    name: str
    title: str
    reading: str  # how to read it, and what it shows to those who cannot see it
    body: alt.TopLevelMixin
    rows: list[Row]
    choices: tuple[Choice, ...] = ()
    required: tuple[str, ...] = ()  # drawn columns without which a row cannot be drawn
    panel: tuple[int, int] = (260, 900)  # width of a panel at least, at most
    label: str | None = None  # column of the labels beside points, which are moved apart
    notes: tuple[str, ...] = ()

    @property
    def facet(self) -> str | None:
        """The column whose values are drawn in panels; None where there is only one."""
        return "facet" if len(distinct(self.rows, "facet")) > 1 else None

    def drawn(self, picks: Mapping[str, str]) -> list[Row]:
        """Return the rows of a complete set of picks, under the names they are drawn by."""
        rows = self.rows
        for choice in self.choices:
            value = picks[choice.field]
            if choice.columns:
                names = choice.columns[value].items()
                rows = [row | {drawn: row[column] for drawn, column in names} for row in rows]
            else:
                rows = [row for row in rows if row[choice.field] == value]
        return [row for row in rows if all(row[name] is not None for name in self.required)]


def named(field: str) -> str:
    """Return what stands in a title for the reader's pick; for titles of axes only."""
    return f"{MARK}{field}{MARK}"


# From tables to the rows that are drawn


def records_of(
    result: Result, table: str, *needed: str, defined: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return a table's rows, the ends of each interval ``ci`` as ``ci_low`` and ``ci_high``.

    None if the result has no such table with the columns needed; only rows where certain columns
    are defined.
    """
    for each in result.tables:
        if each.name == table and {f.name for f in each.fields} >= {*needed, *defined}:
            for field in each.fields:
                kind = field.kind if field.kind in ("text", "interval") else "number"
                if kind != KINDS.get(field.name, kind):
                    raise InputError(
                        f"the column {field.name!r} of kind {field.kind} in table {table!r}",
                        expected=f"one of kind {KINDS[field.name]}, to draw it",
                        remedy="run the study again",
                    )
            records = [r for r in each.records() if all(r[name] is not None for name in defined)]
            for name in (f.name for f in each.fields if f.kind == "interval"):
                for record in records:
                    ends = record[name] or (None, None)
                    record |= {f"{name}_low": ends[0], f"{name}_high": ends[1]}
            return records
    return []


def distinct(rows: Iterable[Mapping[str, Any]], name: str) -> list[str]:
    """Values of a column as text, in the order of the table, without those undefined."""
    return list(dict.fromkeys(str(row[name]) for row in rows if row.get(name) is not None))


def drawn_rows(
    records: Sequence[Mapping[str, Any]], chosen_by: Sequence[str], **columns: str
) -> tuple[list[Row], tuple[Choice, ...]]:
    """Return the columns of records by their drawn names, and choices of those with more values."""
    values = {name: tuple(distinct(records, name)) for name in chosen_by}
    choices = tuple(
        Choice(name, LABELS.get(name, name.capitalize()), found)
        for name, found in values.items()
        if len(found) > 1
    )
    return rows_of(records, choices, **columns), choices


def rows_of(
    records: Iterable[Mapping[str, Any]], choices: Sequence[Choice], **columns: str
) -> list[Row]:
    """Return the cells by which each record is chosen, and its columns by their drawn names."""
    names = {c.field: c.field for c in choices if not c.columns} | columns
    chosen = names.keys() - columns.keys()
    return [
        {
            name: str(record[column]) if name in chosen or column in TEXTS else record.get(column)
            for name, column in names.items()
        }
        for record in records
    ]


def thinned(
    rows: list[Row], series: Sequence[str], limit: int = MAX_ROWS
) -> tuple[list[Row], tuple[str, ...]]:
    """Keep evenly spaced rows of every series, its first and last among them, up to a limit.

    >>> rows = [{"line": "a", "x": x} for x in range(9)]
    >>> [row["x"] for row in thinned(rows, ["line"], 3)[0]]
    [0, 4, 8]
    """
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in series), []).append(row)
    share = max(2, limit // max(1, len(groups)))
    kept = [row for group in groups.values() for row in spaced(group, share)]
    if len(rows) <= limit or len(kept) == len(rows):
        return rows, ()
    note = f"Drawn: {len(kept):,} of {counted(len(rows), 'row')}, evenly spaced along each curve."
    return kept, (note,)


def spaced(items: Sequence[Any], n: int) -> list[Any]:
    """Return at most n of the items, evenly spaced, both ends among them if n is above one."""
    if len(items) <= n:
        return list(items)
    return [items[round(i * (len(items) - 1) / max(1, n - 1))] for i in range(n)]


def ordered(rows: list[Row], *names: str) -> list[Row]:
    """Add the place of each value among those of its column.

    Vega-Lite would write a list of values into an expression, which not every text survives.
    """
    for name in names:
        places = {value: i for i, value in enumerate(distinct(rows, name))}
        rows = [row | {f"{name}_order": places[str(row[name])]} for row in rows]
    return rows


# Parts of specifications


def by_order(name: str) -> alt.EncodingSortField:
    """Sort a column by what `ordered` added."""
    return alt.EncodingSortField(f"{name}_order", op="min", order="ascending")


def tooltips(*parts: str) -> list[alt.Tooltip]:
    """Tooltips from ``field``, ``field|title`` or ``field|title|format``; a format means numbers.

    >>> [tip.to_dict()["field"] for tip in tooltips("system", "x|value|.3f")]
    ['system', 'x']
    """
    made = []
    for part in parts:
        field, title, format = [*part.split("|"), "", ""][:3]
        spec = {key: value for key, value in (("title", title), ("format", format)) if value}
        made.append(alt.Tooltip(f"{field}:{'Q' if format else 'N'}", **spec))  # type: ignore[arg-type]
    return made


def panels(
    layers: list[alt.Chart], rows: Sequence[Row], width: int, height: int | alt.Step, *shared: str
) -> alt.TopLevelMixin:
    """Draw a panel for each value of ``facet``; scales are each panel's own unless shared."""
    drawn: Any = alt.layer(*layers).properties(width=width, height=height)
    if len(distinct(rows, "facet")) > 1:
        header = alt.Header(title=None, labelFontWeight="bold", labelLimit=200)
        facet = alt.Facet("facet:N", sort=by_order("facet"), header=header)
        own: dict[str, Any] = {axis: "independent" for axis in "xy" if axis not in shared}
        drawn = drawn.facet(facet, columns=3).resolve_scale(**own)
        drawn = drawn.resolve_axis(x="independent", y="independent")
    body: alt.TopLevelMixin = drawn
    return body


def marked(
    by: Literal["colour", "dash", "shape"],
    name: str,
    values: Sequence[str],
    title: str,
    *,
    of_lines: bool = False,
) -> Any:  # noqa: ANN401  (a channel of Altair)
    """Tell a few names apart, with a legend below; marks repeat where there are too few."""
    channel, marks = MARKS[by]
    strokes: dict[str, Any] = {"symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 2}
    legend = alt.Legend(
        orient="bottom",
        columns=alt.ExprRef("legend_columns"),
        symbolOpacity=1,
        **(strokes if of_lines or by == "dash" else {}),
    )
    scale = alt.Scale(domain=list(values), range=list(islice(cycle(marks), len(values))))
    return channel(f"{name}:N", title=title, legend=legend, scale=scale)
