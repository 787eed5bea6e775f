"""A study's result as one page that needs nothing else: no network, no server, no other file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any

import vl_convert
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from reffree.evaluate.result import DocumentText, Result, Table
from reffree.report.charts import charts_of
from reffree.report.charts.chart import Chart, Row
from reffree.report.charts.drawing import vega_for_page
from reffree.report.grid import Grid
from reffree.report.study import grid_of, shown_fields
from reffree.report.tables_page import MAX_CHARACTERS, MAX_UNITS, policy_of, static_text
from reffree.util.errors import InputError, Place, counted

DIGITS = 5
"""Of numbers in charts: more than a screen can show."""

MAX_ROWS = 500
"""Of one table; a longer one is read as CSV."""


def render_page(result: Result) -> str:
    """Write the page: question, answer, charts, tables, documents, reading, settings.

    Scripts and styles are in the page, and its policy names them by their hashes, so that neither
    a name nor a text of the corpus could run as one; nothing may be fetched. Vega interprets its
    expressions (``ast``), so the page needs no ``unsafe-eval``.
    """
    charts = charts_of(result)
    texts, text_notes = page_texts(result.texts)
    tables = [page_table(each) for each in result.tables if each.shown and each.rows]
    data = {"charts": [_packed_chart(chart) for chart in charts], "texts": texts}
    style = static_text("page.css")
    scripts = [*([_library()] if charts else []), static_text("page.js")]
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters["thousands"] = lambda n: f"{n:,}"
    sections = {
        "answer": True,
        "charts": charts,
        "tables": tables,
        "texts": texts,
        "reading": result.reading,
        "settings": True,
    }
    return environment.from_string(static_text("page.html")).render(
        result=result,
        policy=policy_of(style, scripts),
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        data=Markup(_json(data)),
        sections=[(name, name.capitalize()) for name, present in sections.items() if present],
        charts=charts,
        tables=tables,
        has_best=any(cell.is_best for each in tables for row in each["rows"] for cell, _ in row),
        has_texts=bool(texts),
        text_notes=text_notes,
        corpora=page_corpora(result.corpora),
        settings=page_settings(result.settings),
    )


# Charts


def packed(rows: Sequence[Row]) -> dict[str, Any]:
    """Write rows by column: a value for all, texts by number, or a list.

    >>> packed([{"a": "x", "b": 1, "c": 0.123456789}, {"a": "y", "b": 1, "c": None}])["columns"]
    {'a': {'texts': ['x', 'y'], 'at': [0, 1]}, 'b': {'same': 1}, 'c': {'values': [0.12346, None]}}
    """
    columns: dict[str, dict[str, Any]] = {}
    for name in rows[0]:
        values = [_short(row[name]) for row in rows]
        if all(value == values[0] for value in values):
            columns[name] = {"same": values[0]}
        elif all(isinstance(value, str) for value in values):
            places = {text: i for i, text in enumerate(dict.fromkeys(values))}
            columns[name] = {"texts": list(places), "at": [places[text] for text in values]}
        else:
            columns[name] = {"values": values}
    return {"length": len(rows), "columns": columns}


def _packed_chart(chart: Chart) -> dict[str, Any]:
    return {
        "spec": vega_for_page(chart),
        "data": packed(chart.rows),
        "choices": [{"field": choice.field, "columns": choice.columns} for choice in chart.choices],
        "required": chart.required,
        "facet": chart.facet,
        "panel": chart.panel,
    }


def _short(value: Any) -> Any:  # noqa: ANN401  (any plain value)
    if not isinstance(value, float):
        return value
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short


# Tables


def page_table(table: Table) -> dict[str, Any]:
    """Prepare a table for the template, its first rows if it is long.

    A cell comes with its attributes: alignment, and the number to sort by.
    """
    fields = shown_fields(table)
    rows = [
        [(cell, _attributes(record[f.name], f.kind)) for cell, f in zip(cells, fields, strict=True)]
        for cells, record in zip(grid_of(table).rows[:MAX_ROWS], table.records(), strict=False)
    ]
    note = ""
    if len(table.rows) > MAX_ROWS:
        note = (
            f"Shown: the first {MAX_ROWS:,} of {counted(len(table.rows), 'row')}; all of them with "
            f"reffree report RESULTS.json -f csv --table {table.name}."
        )
    columns = [(each.label, each.kind != "text") for each in fields]
    named = {"name": table.name, "title": table.title}
    return {**named, "columns": columns, "rows": rows, "note": note}


def _attributes(value: object, kind: str) -> Markup:
    if kind == "text":
        return Markup("")
    first = value[0] if isinstance(value, list) and value else value
    sort_by = first if isinstance(first, int | float) else ""
    return Markup(' class="n" data-v="{}"').format(sort_by)


def page_corpora(corpora: Sequence[Mapping[str, Any]]) -> Grid:
    """One row a corpus, with whatever is known of each."""
    keys = list(dict.fromkeys(key for corpus in corpora for key in corpus))
    rows = ([_plain(corpus.get(key)) for key in keys] for corpus in corpora)
    return Grid.of((key.replace("_", " ") for key in keys), rows)


def page_settings(settings: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    """Settings by name, those within others as ``outer.inner``."""
    found = []
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            found += page_settings(value, f"{above}{name}.")
        else:
            found.append((f"{above}{name}", _plain(value)))
    return found


def _plain(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return json.dumps(value, ensure_ascii=False)


# Documents


def page_texts(texts: Sequence[DocumentText]) -> tuple[list[dict[str, Any]], list[str]]:
    """Take documents from each corpus in turn while there is room; say what is not shown."""
    by_corpus: dict[str, list[DocumentText]] = {}
    for text in texts:
        _check(text)
        by_corpus.setdefault(text.corpus, []).append(text)
    kept: set[int] = set()
    room = MAX_CHARACTERS
    for text in (each for turn in zip_longest(*by_corpus.values()) for each in turn if each):
        room -= sum(map(len, text.units[:MAX_UNITS]))
        if room < 0:
            break
        kept.add(id(text))
    shown = [text for text in texts if id(text) in kept]
    notes = []
    if len(shown) < len(texts):
        notes.append(f"Shown: {len(shown):,} of {counted(len(texts), 'document')}.")
    notes += [
        f"{text.id}: the first {MAX_UNITS:,} of {len(text.units):,} units are shown."
        for text in shown
        if len(text.units) > MAX_UNITS
    ]
    return [_packed(text) for text in shown], notes


def _packed(text: DocumentText) -> dict[str, Any]:
    return {
        "corpus": text.corpus,
        "id": text.id,
        "length": len(text.units),
        "units": text.units[:MAX_UNITS],
        "systems": text.systems,
    }


def _check(text: DocumentText) -> None:
    for system, masses in text.systems.items():
        if sum(masses) != len(text.units) or min(masses, default=1) < 1:
            raise InputError(
                f"masses that sum to {sum(masses):,}",
                expected=f"positive masses that sum to {counted(len(text.units), 'unit')}",
                remedy="run the study again",
                place=Place(document=text.id, system=system),
            )


# What the page is made of


def _json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _library() -> str:
    """Vega and its embedder; some seconds to put together, so once a process."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # An HTML parser would end the element here, or turn carriage returns into line feeds.
    return bundle.replace("</script", r"<\/script").replace("<!--", r"<\!--").replace("\r", "")
