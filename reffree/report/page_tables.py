"""Tables of a page: cells as in every other format, with the numbers to sort by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from reffree.errors import counted
from reffree.report.study import grid_of
from reffree.studies.result import Table

MAX_ROWS = 500
"""Of one table; a longer one is read as CSV."""


@dataclass(frozen=True, slots=True)
class PageCell:
    """Text, what stands below it, and attributes: alignment and the number behind the text."""

    text: str
    detail: str
    is_best: bool
    attributes: Markup


@dataclass(frozen=True, slots=True)
class PageColumn:
    """Title of a column."""

    label: str
    is_number: bool


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table that is shown."""

    name: str
    title: str
    columns: list[PageColumn]
    rows: list[list[PageCell]]
    note: str


@dataclass(frozen=True, slots=True)
class Plain:
    """A small table that does not sort."""

    header: list[str]
    rows: list[list[str]]


def page_table(table: Table) -> PageTable:
    """Prepare a table, its first rows if it is long."""
    grid = grid_of(table)
    hidden = {each.interval for each in table.fields}
    shown = [i for i, each in enumerate(table.fields) if each.name not in hidden]
    is_number = [table.fields[i].kind != "text" for i in shown]
    rows = []
    for cells, values in zip(grid.rows[:MAX_ROWS], table.rows, strict=False):
        rows.append(
            [
                PageCell(cell.text, cell.detail, cell.is_best, _attributes(values[i], numeric))
                for cell, i, numeric in zip(cells, shown, is_number, strict=True)
            ]
        )
    columns = [PageColumn(*each) for each in zip(grid.header, is_number, strict=True)]
    note = ""
    if len(table.rows) > MAX_ROWS:
        note = (
            f"Shown: the first {MAX_ROWS:,} of {counted(len(table.rows), 'row')}; all of them with "
            f"reffree report RESULTS.json -f csv --table {table.name}."
        )
    return PageTable(table.name, table.title, columns, rows, note)


def page_corpora(corpora: Sequence[Mapping[str, Any]]) -> Plain:
    """One row a corpus, with whatever is known of each."""
    keys = list(dict.fromkeys(key for corpus in corpora for key in corpus))
    rows = [[_plain(corpus.get(key)) for key in keys] for corpus in corpora]
    return Plain([key.replace("_", " ") for key in keys], rows)


def page_settings(settings: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    """Settings by name, those within others as ``outer.inner``."""
    return list(_settings(settings, above))


def _settings(settings: Mapping[str, Any], above: str) -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _settings(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", _plain(value)


def _attributes(value: object, is_number: bool) -> Markup:
    if not is_number:
        return Markup("")
    first = value[0] if isinstance(value, list) and value else value
    sort_by = first if isinstance(first, int | float) else ""
    return Markup(' class="n" data-v="{}"').format(sort_by)


def _plain(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return json.dumps(value, ensure_ascii=False)
