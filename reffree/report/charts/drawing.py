"""From a chart to Vega, the language both the page and vl-convert draw, and to files for papers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, product
from math import exp, log
from typing import Any, Literal

import altair as alt
import vl_convert

from reffree.evaluate.result import Result
from reffree.evaluate.table import ScoreTable
from reffree.report.charts import charts_of
from reffree.report.charts.chart import ROWS, Chart, Row, named
from reffree.util.errors import InputError, UnknownNameError

FileFormat = Literal["svg", "png", "pdf"]
PNG_SCALE = 2.0
MAX_NAME = 200  # bytes of a file name, before its number and ending
INK = "#222222"
MAX_COLUMNS = 3
LIMITS = r'"(labelLimit|limit)": ({"value": |)\d+(}|)'

Spec = dict[str, Any]

LABEL_SIZE = 10
LIMIT = 130  # pixels of a label
CHARACTER = 5.5  # pixels, on average
LINE = 11
OFFSET = 7
MARGIN = 0.07  # of the range of values, on both sides
FACETS_IN_FILES = ("corpus", "encoder")
"""Choices of which every value gets a file of its own."""


def _specification(chart: Chart) -> Spec:
    """Return Vega-Lite without data; the page changes the columns of legends."""
    spec = chart.body.to_dict()
    spec["params"] = [*spec.get("params", []), {"name": "legend_columns", "value": 4}]
    return spec


def chart_with_data(
    result: Result | ScoreTable, name: str | None, picks: Mapping[str, str]
) -> alt.TopLevelMixin:
    """Return a chart of a result, the first without a name, as picked or with first choices."""
    if isinstance(result, ScoreTable):
        result = result.result
    charts = {chart.name: chart for chart in charts_of(result)}
    if not charts:
        raise InputError(
            f"nothing to draw in the result of {result.command}",
            expected="values that a chart is made of",
            remedy="see its tables",
        )
    if name is not None and name not in charts:
        raise UnknownNameError("chart", name, charts)
    chart = charts[name or next(iter(charts))]
    given = {field: _find_value([chart], field, value) for field, value in picks.items()}
    picks = {choice.field: choice.values[0] for choice in chart.choices} | given
    spec = titled(_specification(chart), picks)
    drawn: alt.TopLevelMixin = alt.Chart.from_dict(
        {**spec, "datasets": {ROWS.name: chart.drawn(picks)}}
    )
    return drawn


def vega(chart: Chart, ink: str, font: str) -> Spec:
    """Compile a chart without its data; ``ink`` is the colour of text and lines."""
    spec = _specification(chart)
    spec["config"] = _config(ink, font)
    compiled: Spec = vl_convert.vegalite_to_vega(spec)
    if chart.facet is not None:  # rows filled evenly: four are two and two
        n = len({row[chart.facet] for row in chart.rows})
        compiled["layout"]["columns"] = -(-n // -(-n // MAX_COLUMNS))
    return compiled


def vega_for_page(chart: Chart) -> Spec:
    """Compile a chart for a browser: text in the colour and fonts of the page around it."""
    compiled = vega(chart, "currentColor", "system-ui, sans-serif")
    if chart.label is not None:  # Vega-Lite has no name for Vega's transform
        anchors = ["right", "left", "top", "bottom", "top-right", "bottom-right"]
        place: Spec = {"type": "label", "size": {"signal": "[width, height]"}}
        place |= {"offset": [3], "anchor": anchors}
        _labels(compiled, chart.label, "currentColor")["transform"] = [place]
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

    ``picks`` chooses otherwise, in every chart that offers the value; ``kendall`` is the first of
    ``kendall (corpus)`` and ``kendall (document)``.
    """
    picks = {field: _find_value(charts, field, value) for field, value in picks.items()}
    taken: set[str] = set()
    for chart in charts:
        spec = vega(chart, INK, "Helvetica, Arial, sans-serif")
        spec["background"] = "#ffffff" if format == "png" else None
        offered = []
        for choice in chart.choices:
            n = None if choice.field in FACETS_IN_FILES else 1
            is_picked = picks.get(choice.field) in choice.values
            offered.append([picks[choice.field]] if is_picked else list(choice.values[:n]))
        for values in product(*offered):
            chosen = {c.field: value for c, value in zip(chart.choices, values, strict=True)}
            rows = chart.drawn(chosen)
            if not rows:
                continue
            drawn = titled(spec, chosen)
            if chart.label is not None:
                rows = label_in_file(drawn, rows, chart.label)
            drawn["data"] = [
                d | {"values": rows} if d["name"] == "rows" else d for d in drawn["data"]
            ]
            slugs = [re.sub(r"[^\w.=]+", "_", value)[:60].strip("._") or "_" for value in values]
            name = "-".join([chart.name, *slugs])
            stem = name.encode()[:MAX_NAME].decode(errors="ignore")
            numbered = chain([stem], (f"{stem}-{n}" for n in count(2)))
            taken.add(name := next(each for each in numbered if each not in taken))
            yield f"{name}.{format}", _encoded(drawn, format)


def _find_value(charts: Sequence[Chart], field: str, value: str) -> str:
    """Return the value of a choice that is meant: the same, or the first that begins so."""
    choices = [choice for chart in charts for choice in chart.choices]
    values = [v for choice in choices if choice.field == field for v in choice.values]
    if not values:
        raise UnknownNameError("choice", field, dict.fromkeys(c.field for c in choices))
    found = [v for v in values if v == value] + [v for v in values if v.startswith(f"{value} (")]
    if not found:
        raise UnknownNameError(field, value, dict.fromkeys(values))
    return found[0]


def _encoded(spec: Spec, format: FileFormat) -> bytes:
    text = json.dumps(spec, ensure_ascii=False)
    if re.search(r"[^\0-\uffff]", text):
        # vl-convert fails where it would cut a label within a character of two code units.
        spec = json.loads(re.sub(LIMITS, r'"\1": \g<2>0\3', text))
    if format == "png":
        return vl_convert.vega_to_png(spec, scale=PNG_SCALE)
    return (
        vl_convert.vega_to_pdf(spec) if format == "pdf" else vl_convert.vega_to_svg(spec).encode()
    )


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


# Labels beside points that do not overlap: by Vega in a browser, by hand for files, since Vega's
# own label transform needs a canvas, which vl-convert does not have.


def label_in_file(spec: Spec, rows: Sequence[Row], field: str) -> list[Row]:
    """Fix the scales, and add to every row where its label goes, hidden where there is no room."""
    size = (spec["width"], spec["height"])
    places = []
    cells: Sequence[Mapping[str, Any]] = rows
    for axis, length in zip("xy", size, strict=True):
        scale = next(each for each in spec["scales"] if each["name"] == axis)
        there, back = (log, exp) if scale["type"] == "log" else (float, float)
        names = (axis, "low", "high") if axis == "y" else (axis,)
        known = [there(row[n]) for row in cells for n in names if row.get(n) is not None]
        margin = MARGIN * (max(known) - min(known)) or 1.0
        low, high = min(known) - margin, max(known) + margin
        scale.update(domain=[back(low), back(high)], nice=False, zero=False, padding=0)
        shares = [(there(row[axis]) - low) / (high - low) for row in cells]
        places.append([length * (share if axis == "x" else 1 - share) for share in shares])
    update = _labels(spec, field, INK)["encode"]["update"]
    update |= {"x": {"field": "x"}, "y": {"field": "y"}, "baseline": {"value": "middle"}}
    update |= {name: {"field": f"datum.label_{name}"} for name in ("align", "dx", "opacity")}
    placed = placements(list(zip(*places, strict=True)), [str(row[field]) for row in rows], size)
    return [row | where for row, where in zip(rows, placed, strict=True)]


def placements(
    points: Sequence[tuple[float, ...]], texts: Sequence[str], size: tuple[float, float]
) -> list[Row]:
    """Try right of the point (aligned left), then left of it: free of points, labels, edges.

    >>> [p["label_align"] for p in placements([(5, 50), (95, 50)], ["a", "b"], (100, 100))]
    ['left', 'right']
    """
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    placed: list[Row] = []
    for (x, y), text in zip(points, texts, strict=True):
        wide, top, bottom = min(LIMIT, CHARACTER * len(text)), y - LINE / 2, y + LINE / 2
        where: Row = {"label_align": "left", "label_dx": 0, "label_opacity": 0}
        for align, dx, left in (
            ("left", OFFSET, x + OFFSET),
            ("right", -OFFSET, x - OFFSET - wide),
        ):
            right = left + wide
            is_inside = left >= 0 and top >= 0 and right <= size[0] and bottom <= size[1]
            if is_inside and not any(
                left < b[2] and b[0] < right and top < b[3] and b[1] < bottom for b in taken
            ):
                taken.append((left, top, right, bottom))
                where = {"label_align": align, "label_dx": dx, "label_opacity": 1}
                break
        placed.append(where)
    return placed


def _labels(spec: Spec, field: str, ink: str) -> Spec:
    """Return the text mark, made to follow the points, not the data."""
    points = next(mark for mark in spec["marks"] if mark["type"] == "symbol")
    labels: Spec = next(mark for mark in spec["marks"] if mark["type"] == "text")
    labels["from"] = {"data": points["name"]}
    update: Spec = {"text": {"field": f"datum.{field}"}, "fill": {"value": ink}}
    update |= {"fontSize": {"value": LABEL_SIZE}, "limit": {"value": LIMIT}}
    labels["encode"] = {"update": update}
    return labels
