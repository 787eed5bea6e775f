"""A study's result in every text format."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from reffree.report.grid import Cell, Grid, OutputFormat, render_grids, to_csv
from reffree.util.errors import visible_json

if TYPE_CHECKING:
    from reffree.evaluate.result import Field, Result, Table, Value

ANSWER_FIRST = ("granularity",)
"""Studies whose sentences say more than their tables, and so stand above them."""

SPECS = {"number": ".3f", "share": ".1%", "p": ".4f", "count": ",d"}


def render(
    result: Result,
    format: OutputFormat,
    *,
    table: str | None = None,
    color: bool = False,
    width: int | None = None,
) -> str:
    """Write a result as text; ``table`` names the one for CSV, else the first with data."""
    if format == "json":
        return _json(result)
    if format == "csv":
        return _csv(result, table)
    chosen = [result.table(table)] if table else [t for t in result.tables if t.shown]
    grids = [grid_of(each) for each in chosen]
    opening = result.verdict if result.command in ANSWER_FIRST else ()
    remarks = [*result.notes] if opening else [*result.verdict, *result.notes]
    return render_grids(
        *(grids, remarks, result.signature, format),
        color=color,
        width=width,
        opening=opening,
        signature_first=True,
    )


def shown_fields(table: Table) -> list[Field]:
    """Columns with cells of their own: all but the intervals, which stand below their numbers."""
    intervals = {each.interval for each in table.fields}
    return [each for each in table.fields if each.name not in intervals]


def grid_of(table: Table) -> Grid:
    """Cells as text, intervals below their numbers."""
    fields = shown_fields(table)
    n_labels = next((i for i, each in enumerate(fields) if each.kind != "text"), len(fields))
    best = {each.name: _best(table, each) for each in fields}
    rows = []
    for record in table.records():
        cells = []
        for each in fields:
            value = record[each.name]
            interval = record[each.interval] if each.interval else None
            below = (_shown(interval, each),) if isinstance(interval, list) else ()
            is_best = value is not None and value == best[each.name]
            cells.append(Cell(_shown(value, each), below, is_best=is_best))
        rows.append(cells)
    return Grid.of((each.label for each in fields), rows, max(1, n_labels), table.title)


def _best(table: Table, field: Field) -> float | None:
    values = [v for v in table.column(field.name) if isinstance(v, int | float)]
    if field.best is None or len(values) < 2:
        return None
    return min(values) if field.best == "low" else max(values)


def _shown(value: Value, field: Field) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return f"[{value[0]:.3f}, {value[1]:.3f}]"
    if isinstance(value, str):
        return value
    if field.kind == "count" and isinstance(value, float):
        return f"{value:,.1f}"
    if field.kind == "number" and isinstance(value, int):
        return f"{value:,d}"
    return format(value, SPECS.get(field.kind, ".3f"))


def _json(result: Result) -> str:
    """One line per row of a table: readable, and small enough to keep."""
    dump = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    data = result.to_dict()
    tables = []
    for table in data.pop("tables"):
        rows = ",\n  ".join(map(dump, table.pop("rows")))
        tables.append(f'{dump(table)[:-1]}, "rows": [\n  {rows}\n ]}}')
    fields = [f"{dump(key)}: {dump(value)}" for key, value in data.items()]
    joined = ",\n ".join(tables)
    return visible_json("{" + ",\n".join([*fields, f'"tables": [\n {joined}\n]']) + "}\n")


def _csv(result: Result, name: str | None) -> str:
    """One table, intervals in two columns, the signature in the last."""
    with_data = [each for each in result.tables if not each.shown] or list(result.tables)
    table = with_data[0] if name is None else result.table(name)
    header: list[str] = []
    for each in table.fields:
        is_interval = each.kind == "interval"
        header += [f"{each.name}_low", f"{each.name}_high"] if is_interval else [each.name]
    rows = []
    for row in table.rows:
        cells: list[object] = []
        for each, value in zip(table.fields, row, strict=True):
            if each.kind == "interval":
                cells += value if isinstance(value, list) else [None, None]
            else:
                cells.append(value)
        rows.append([*cells, result.signature])
    return to_csv([*header, "signature"], rows)
