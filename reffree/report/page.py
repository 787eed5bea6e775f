"""A study's result as one page that needs nothing else: no network, no server, no other file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import vl_convert
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from reffree.report.charts import charts_of
from reffree.report.charts.chart import Chart, Row
from reffree.report.charts.drawing import vega_for_page
from reffree.report.page_tables import page_corpora, page_settings, page_table
from reffree.report.page_texts import page_texts
from reffree.studies.result import StudyResult

DIGITS = 5
"""Of numbers in charts: more than a screen can show."""


def render_page(result: StudyResult) -> str:
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
    scripts = [_library() if charts else "", static_text("page.js")]
    scripts = [script for script in scripts if script]
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
        has_best=any(cell.is_best for table in tables for row in table.rows for cell in row),
        has_texts=bool(texts),
        text_notes=text_notes,
        corpora=page_corpora(result.corpora),
        settings=page_settings(result.settings),
    )


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


def _json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def policy_of(style: str, scripts: Sequence[str]) -> str:
    """Allow the page's own scripts and style, by hash, and nothing else."""
    by_hash = " ".join(map(_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {by_hash}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def static_text(name: str) -> str:
    """Return one of the files that pages are made of."""
    return (files("reffree.report") / "static" / name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Vega and its embedder; some seconds to put together, so once a process."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # An HTML parser would end the element here, or turn carriage returns into line feeds.
    return bundle.replace("</script", r"<\/script").replace("<!--", r"<\!--").replace("\r", "")
