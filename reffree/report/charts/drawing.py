"""From a chart to Vega, the language both the page and vl-convert draw, and to files for papers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, get_args

import vl_convert

from reffree.errors import UnknownNameError
from reffree.report.charts.chart import Chart, Row, named
from reffree.report.charts.labels import label_in_browser, label_in_file

FileFormat = Literal["svg", "png", "pdf"]
FILE_FORMATS: tuple[str, ...] = get_args(FileFormat)
PNG_SCALE = 2.0
MAX_NAME = 200  # bytes of a file name, before its number and ending
INK = "#222222"
MAX_COLUMNS = 3

Spec = dict[str, Any]

FACETS_IN_FILES = ("corpus", "encoder")
"""Choices of which every value gets a file of its own."""


def vega(chart: Chart, ink: str, font: str) -> Spec:
    """Compile a chart without its data; ``ink`` is the colour of text and lines."""
    spec = chart.body.to_dict()
    spec["config"] = _config(ink, font)
    spec["params"] = [*spec.get("params", []), {"name": "legend_columns", "value": 4}]
    compiled: Spec = vl_convert.vegalite_to_vega(spec)
    if chart.facet is not None:
        compiled["layout"]["columns"] = _columns(chart)
    return compiled


def vega_for_page(chart: Chart) -> Spec:
    """Compile a chart for a browser: text in the colour and fonts of the page around it."""
    compiled = vega(chart, "currentColor", "system-ui, sans-serif")
    if chart.has_labels:
        label_in_browser(compiled, "currentColor")
    return compiled


def titled(spec: Spec, picks: Mapping[str, str]) -> Spec:
    """Put what was picked into the titles; before data are there, which are not ours to change."""
    text = json.dumps(spec, ensure_ascii=False)
    for field, value in picks.items():
        text = text.replace(named(field), json.dumps(value, ensure_ascii=False)[1:-1])
    titled_spec: Spec = json.loads(text)
    return titled_spec


def draw_files(
    charts: Sequence[Chart], format: FileFormat, picks: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    """Draw charts for print: a file per corpus and encoder, with the first of all other choices.

    ``picks`` chooses otherwise, in every chart that offers the value.
    """
    for field, value in picks.items():
        offered = {c.field: c.values for chart in charts for c in chart.choices}
        if field not in offered:
            raise UnknownNameError("choice", field, offered)
        values = [
            v for chart in charts for c in chart.choices if c.field == field for v in c.values
        ]
        if value not in values:
            raise UnknownNameError(field, value, dict.fromkeys(values))
    names: set[str] = set()
    for chart in charts:
        for stem, content in _chart_files(chart, format, picks):
            name, n = stem, 1
            while name in names:
                n += 1
                name = f"{stem}-{n}"
            names.add(name)
            yield f"{name}.{format}", content


def _chart_files(
    chart: Chart, format: FileFormat, picks: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    spec = vega(chart, INK, "Helvetica, Arial, sans-serif")
    spec["background"] = "#ffffff" if format == "png" else None
    offered = []
    for choice in chart.choices:
        if picks.get(choice.field) in choice.values:
            offered.append([picks[choice.field]])
        else:
            is_each = choice.field in FACETS_IN_FILES
            offered.append(list(choice.values if is_each else choice.values[:1]))
    for values in product(*offered):
        chosen = {c.field: value for c, value in zip(chart.choices, values, strict=True)}
        rows = chart.drawn(chosen)
        if not rows:
            continue
        drawn = titled(spec, chosen)
        if chart.has_labels:
            rows = label_in_file(drawn, rows, INK)
        name = "-".join([chart.name, *map(_slug, values)])
        short = name.encode()[:MAX_NAME].decode(errors="ignore")
        yield short, _encoded(_with(drawn, rows), format)


def _with(spec: Spec, rows: list[Row]) -> Spec:
    data = [{**each, "values": rows} if each["name"] == "rows" else each for each in spec["data"]]
    return {**spec, "data": data}


def _encoded(spec: Spec, format: FileFormat) -> bytes:
    if re.search(r"[^\0-\uffff]", json.dumps(spec, ensure_ascii=False)):
        # vl-convert fails where it would cut a label within a character of two code units.
        _without_limits(spec)
    if format == "svg":
        return vl_convert.vega_to_svg(spec).encode()
    if format == "png":
        return vl_convert.vega_to_png(spec, scale=PNG_SCALE)
    return vl_convert.vega_to_pdf(spec)


def _without_limits(part: object) -> None:
    if isinstance(part, list):
        for each in part:
            _without_limits(each)
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("labelLimit", "limit"):
                part[key] = {"value": 0} if isinstance(value, dict) else 0
            elif key != "values":
                _without_limits(value)


def _columns(chart: Chart) -> int:
    """Fill rows of panels evenly: four are two and two."""
    n = len({row[chart.facet] for row in chart.rows}) if chart.facet else 1
    return -(-n // -(-n // MAX_COLUMNS))


def _slug(text: str) -> str:
    return re.sub(r"[^\w.=]+", "_", text)[:60].strip("._") or "_"


def _config(ink: str, font: str) -> Spec:
    faint = {"gridColor": ink, "gridOpacity": 0.12, "domainColor": ink, "tickColor": ink}
    text = {"labelColor": ink, "titleColor": ink}
    return {
        "background": "transparent",
        "font": font,
        "view": {"stroke": None},
        "axis": {**faint, **text, "domainOpacity": 0.5, "tickOpacity": 0.5, "labelLimit": 170},
        "legend": {
            **text,
            "symbolSize": 70,
            "labelLimit": 150,
            "symbolBaseFillColor": ink,
            "layout": {"bottom": {"direction": "vertical", "anchor": "start"}},
        },
        "header": {"labelColor": ink, "titleColor": ink},
        "text": {"color": ink},
        "rule": {"color": ink},
        "point": {"color": ink},
    }
