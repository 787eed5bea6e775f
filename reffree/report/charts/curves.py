"""Curves with bands: losses against perturbation strength, quality against boundary density."""

from __future__ import annotations

from typing import Any

import altair as alt

from reffree.report.charts.chart import (
    Chart,
    Choice,
    Row,
    choices_of,
    colours,
    dashes,
    distinct,
    named,
    ordered,
    panels,
    parts,
    records_of,
    shapes,
    thinned,
)
from reffree.studies.density_curves.points import REGIMES, regime
from reffree.studies.result import StudyResult


def perturbation(result: StudyResult) -> list[Chart]:
    """Loss against strength, a panel per kind: metrics together, scaled; and one as it is."""
    needed = ("kind", "strength", "metric", "value", "low", "high")
    scaled = ("scaled", "scaled_low", "scaled_high")
    found = records_of(result, "curves", [*needed, *scaled])
    if not found:
        return []
    about = (
        "as segmentations are made worse, a panel per kind of damage; its band holds the middle "
        "95 % of the seeds."
    )
    views = (
        (
            *("perturbation-scaled", "Perturbation curves, each scaled from 0 to 1"),
            f"Each line is a metric's mean loss {about} A metric worth having rises everywhere.",
            *("corpus", "metric", "scaled loss", scaled),
        ),
        (
            *("perturbation-values", "Perturbation curves, a metric's own values"),
            f"Each line is the mean over a corpus {about} Which way is worse is the metric's.",
            *("metric", "corpus", "value", ("value", "low", "high")),
        ),
    )
    charts = []
    for name, title, reading, chosen, line, y_title, (value, low, high) in views:
        choices = choices_of(found, chosen)
        rows: list[Row] = [
            {
                **parts(row, choices),
                "facet": str(row["kind"]),
                "line": str(row[line]),
                "x": row["strength"],
                "y": row[value],
                "low": row[low],
                "high": row[high],
            }
            for row in found
        ]
        rows, notes = thinned(rows, [*(c.field for c in choices), "facet", "line"])
        titles = (line, "strength", y_title)
        charts.append(
            _lines(name, title, reading, rows, choices, titles=titles, shared=("y",), notes=notes)
        )
    return [chart for chart in charts if chart is not None]


def density(result: StudyResult) -> list[Chart]:
    """Quality against the number of boundaries, a panel per measure."""
    needed = ("method", "matching", "threshold", "bor", "density", "measure", "value")
    found = records_of(result, "curves", [*needed, "corpus", "low", "high"])
    if not found:
        return []
    found += _own_points(result, found)
    choices = choices_of(found, "corpus", "matching")
    gold = {
        str(row["corpus"]): row["density"] / row["bor"]
        for row in found
        if row["density"] is not None and row["bor"]
    }
    rows: list[Row] = [
        {
            **parts(row, choices),
            "facet": str(row["measure"]),
            "line": str(row["method"]),
            "kind": row.get("point") or ("system" if row["threshold"] is None else "sweep"),
            "bor": row["bor"],
            "density": row["density"],
            "y": row["value"],
            "low": row["low"],
            "high": row["high"],
            "regime": "undefined" if row["bor"] is None else regime(row["bor"]),
            "one": 1,
            "gold_density": gold.get(str(row["corpus"])),
        }
        for row in found
    ]
    rows, notes = thinned(rows, [*(c.field for c in choices), "facet", "line", "kind"])
    axes = {
        "boundary density": {"x": "density", "gold": "gold_density"},
        "BOR": {"x": "bor", "gold": "one"},
    }
    reading = (
        "Each line follows a method from few boundaries to many, its band is the interval around "
        "it; shapes of points tell fewer boundaries than gold has (conservative), about as many "
        "(balanced) and many more (aggressive). Crosses are methods as they come, diamonds systems "
        "of the corpus; the dotted rule is the number of boundaries of gold. A measure that rises "
        "or falls all along rewards mere density."
    )
    chart = _lines(
        "density",
        "Quality against the number of boundaries",
        reading,
        rows,
        (*choices, Choice("x", "Against", tuple(axes), axes)),
        titles=("method", named("x"), None),
        has_density=True,
        notes=notes,
    )
    return [] if chart is None else [chart]


def _own_points(result: StudyResult, curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Methods with the number of boundaries they choose themselves, for every measure drawn."""
    needed = ("corpus", "method", "point", "threshold", "bor", "density")
    drawn = dict.fromkeys((row["matching"], row["measure"]) for row in curves)
    found = []
    for row in records_of(result, "points", needed):
        for matching, measure in drawn:
            is_one_to_one = measure == "w_f1" and matching == "one_to_one"
            column = "w_f1_one_to_one" if is_one_to_one else measure
            if row["point"] == "own" and column in row:
                cells = {"matching": matching, "measure": measure, "value": row[column]}
                found.append({**row, **cells, "low": None, "high": None})
    return found


def _lines(
    name: str,
    title: str,
    reading: str,
    rows: list[Row],
    choices: tuple[Choice, ...],
    *,
    titles: tuple[str, str, str | None],
    shared: tuple[str, ...] = (),
    has_density: bool = False,
    notes: tuple[str, ...] = (),
) -> Chart | None:
    """Draw a panel per facet, a line with a band per name; None where no point is defined."""
    of_lines = [row for row in rows if row["y"] is not None and row.get("kind", "sweep") == "sweep"]
    if not of_lines:
        return None
    is_faceted = len(distinct(rows, "facet")) > 1
    layers = _layers(distinct(of_lines, "line"), titles, has_density)
    body: alt.TopLevelMixin = alt.layer(*layers).properties(width=290, height=220)
    if is_faceted:
        body = panels(layers, 290, 220, *shared)
    return Chart(
        name,
        title,
        reading,
        body,
        ordered(rows, "facet"),
        choices,
        required=("x", "y"),
        facet="facet" if is_faceted else None,
        panel=(280, 460) if is_faceted else (280, 900),
        notes=notes,
    )


def _layers(
    lines: list[str], titles: tuple[str, str, str | None], has_density: bool
) -> list[alt.Chart]:
    legend, x_title, y_title = titles
    data = alt.NamedData("rows")
    base = alt.Chart(data).encode(
        x=alt.X("x:Q", title=x_title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
        tooltip=[
            alt.Tooltip("line:N", title=legend),
            alt.Tooltip("x:Q", title="across" if has_density else x_title, format=".3~f"),
            alt.Tooltip("y:Q", title=y_title or "value", format=".3f"),
            alt.Tooltip("low:Q", format=".3f"),
            alt.Tooltip("high:Q", format=".3f"),
        ],
    )
    colour = colours("line", lines, legend, of_lines=True)
    upright = alt.Y("y:Q", title=y_title, scale=alt.Scale(zero=False))
    sweeps = base.transform_filter("datum.kind === 'sweep'") if has_density else base
    bands = sweeps.transform_filter("isValid(datum.low) && isValid(datum.high)")
    dashed = dashes("line", lines, legend)
    layers: list[alt.Chart] = [
        bands.mark_area(opacity=0.16).encode(
            y=alt.Y("low:Q", title=y_title), y2="high:Q", color=colour
        ),
        sweeps.mark_line(strokeWidth=1.8).encode(y=upright, color=colour, strokeDash=dashed),
    ]
    points = sweeps.mark_point(filled=True, size=22, opacity=1).encode(y=upright, color=colour)
    if not has_density:
        return [*layers, points]
    kinds = {kind: base.transform_filter(f"datum.kind === '{kind}'") for kind in ("system", "own")}
    own = kinds["own"].mark_point(shape="cross", filled=True, size=110, opacity=1)
    gold = alt.Chart(data).transform_filter("isValid(datum.gold)")
    return [
        *layers,
        points.encode(shape=shapes("regime", REGIMES, "boundaries"), size=alt.value(34)),
        kinds["system"].mark_point(shape="diamond", size=60, opacity=0.9).encode(y=upright),
        own.encode(y=upright, color=colour),
        gold.mark_rule(strokeDash=[2, 3]).encode(x="max(gold):Q"),
    ]
