"""A result as text: for a terminal, as JSON, CSV, Markdown, LaTeX, or as a page."""

from __future__ import annotations

import json
from functools import partial

from reffree.evaluate.result import Result
from reffree.evaluate.table import ScoreTable
from reffree.report.grid import (
    OutputFormat,
    json_text,
    latex_table,
    markdown_page,
    render_terminal,
    to_csv,
)
from reffree.util.errors import mistake, visible, visible_json


def render(
    result: Result | ScoreTable,
    format: OutputFormat,
    *,
    table: str | None = None,
    color: bool = False,
    width: int | None = None,
) -> str:
    """Write a result as text.

    Args:
        result: of any command; scores have JSON of their own.
        format: how to write it.
        table: the one to write alone; of CSV else the first that holds data.
        color: whether the terminal wants colours.
        width: of the terminal; None for files and pipes, where nothing is folded.
    """
    if isinstance(result, ScoreTable):
        if format == "json":
            return json_text(result.to_dict())
        result = result.result
    if format == "json":
        return _json(result)
    if format == "csv":
        return _csv(result, table)
    if format == "html":
        from reffree.report.page import render_page

        return render_page(result)
    shown = [result.table(table)] if table else [t for t in result.tables if t.shown and t.rows]
    opening, remarks = " ".join(result.verdict), [*result.legend, *result.notes]
    if format == "table":
        drawing, more = "", list[str]()
        if table is None and result.command == "score" and result.texts:
            from reffree.report.boundaries import draw_explanations

            drawing = draw_explanations(result, color=color, width=width)
            shown = [each for each in shown if each.name != "explanations"]
        elif table is None and result.command == "boundaries":
            from reffree.report.boundaries import draw_boundaries

            drawing, more = draw_boundaries(result, color=color, width=width)
        remarks = [*result.legend, *more, *result.notes, result.signature]
        grids = [each.grid() for each in shown]
        return drawing + render_terminal(grids, remarks, color=color, width=width, opening=opening)
    grids = [each.grid() for each in shown]
    if format == "md":
        return markdown_page(grids, opening, remarks, result.signature)
    comments = [*([opening] if opening else []), *remarks, result.signature]
    return "".join(f"% {visible(line)}\n" for line in comments) + "\n".join(map(latex_table, grids))


def _json(result: Result) -> str:
    """Write a line per row of a table: readable, and small enough to keep."""
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
    """Write one table, intervals in two columns, the signature in the last.

    Without a name it is the first that holds data: not wide, best not shown.
    """
    if name is not None:
        table = result.table(name)
    elif result.tables:
        table = min(result.tables, key=lambda each: (each.wide is not None, each.shown))
    else:
        expected, remedy = "at least one, to be written as CSV", "run the study again"
        raise mistake(None, "results without tables", expected, remedy)
    header: list[str] = []
    rows: list[list[object]] = [[] for _ in table.rows]
    for at, each in enumerate(table.fields):
        is_interval = each.kind == "interval"
        header += [f"{each.name}_low", f"{each.name}_high"] if is_interval else [each.name]
        for cells, row in zip(rows, table.rows, strict=True):
            value = row[at]
            ends = value if isinstance(value, list) else [None, None]
            cells += ends if is_interval else [value]
    return to_csv([*header, "signature"], [[*cells, result.signature] for cells in rows])
