"""Curves with bands, against perturbation strength, boundary density and assumed segments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from reffree.data.corpus import GOLD
from reffree.evaluate.result import Result
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
    rows_of,
    shapes,
    thinned,
)
from reffree.studies.density_curves.points import REGIMES, regime

ROWS = alt.NamedData("rows")
HAS_BAND = "isValid(datum.low) && isValid(datum.high)"
HEIGHT = 300
TICKS = tuple(digit * 10**power for power in range(6) for digit in (1, 1.5, 2, 3, 4, 5, 7))
"""Of the axis of segments: more than documents have."""


def perturbation(result: Result) -> list[Chart]:
    """Loss against strength: a panel per metric, scaled; and one metric as it is."""
    needed = ("kind", "strength", "metric", "value", "low", "high")
    scaled = ("scaled", "scaled_low", "scaled_high")
    found = records_of(result, "curves", [*needed, *scaled])
    if not found:
        return []
    band = "its band holds the middle 95 % of the seeds."
    views = (
        (
            *("perturbation-scaled", "Perturbation curves, each scaled from 0 to 1"),
            "A panel is a metric, a line its mean loss as one kind of damage gets worse; "
            f"{band} A metric worth having rises in every line.",
            *("corpus", "metric", "kind", "scaled loss", scaled),
        ),
        (
            *("perturbation-values", "Perturbation curves, a metric's own values"),
            "A panel is a kind of damage, a line the mean over a corpus as it gets worse; "
            f"{band} Which way is worse is the metric's.",
            *("metric", "kind", "corpus", "value", ("value", "low", "high")),
        ),
    )
    charts: list[Chart] = []
    for name, title, reading, chosen, facet, line, y_title, (value, low, high) in views:
        choices = choices_of(found, chosen)
        columns = {"x": "strength", "y": value, "low": low, "high": high}
        rows = rows_of(found, choices, facet=facet, line=line, **columns)
        rows, notes = thinned(rows, [*(c.field for c in choices), "facet", "line"])
        titles = ("damage" if line == "kind" else line, "strength", y_title)
        charts += _lines(
            *(name, title, reading, rows, choices), titles=titles, shared=("y",), notes=notes
        )
    return charts


def density(result: Result) -> list[Chart]:
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
    choices = (*choices, Choice("x", "Against", tuple(axes), axes))
    return _lines(
        *("density", "Quality against the number of boundaries", reading, rows, choices),
        titles=("method", named("x"), None),
        has_density=True,
        notes=notes,
    )


def selection(result: Result) -> list[Chart]:
    """Where boundaries lie that are selected from few candidates and from many, a panel a rule."""
    needed = ("corpus", "method", "rule", "thinned", "unit", "value")
    found = records_of(result, "places", needed)
    if not found:
        return []
    choices = choices_of(found, "corpus", "method")
    columns = {"facet": "rule", "line": "thinned", "x": "unit", "y": "value"}
    rows: list[Row] = [
        row | {"low": None, "high": None} for row in rows_of(found, choices, **columns)
    ]
    reading = (
        "Each line is the distribution of selected boundaries over the units before them, from "
        "candidates that were thinned out finely or coarsely; a panel for each rule. Lines that "
        "lie on one another mean that the rule's boundaries do not depend on the candidates."
    )
    return _lines(
        *("selection", "Where boundaries are selected", reading, rows, choices),
        titles=("candidates", "units before the boundary", "share of boundaries"),
        shared=("y",),
    )


def tuned(result: Result) -> list[Chart]:
    """Expected error against the size of chunks, a line per splitter."""
    needed = ("corpus", "splitter", "setting", "size", "value", "value_ci")
    found = records_of(result, "curve", needed)
    if not found:
        return []
    rows: list[Row] = [
        {
            "facet": str(row["corpus"]),
            "line": str(row["splitter"]),
            "x": row["size"],
            "y": row["value"],
            "low": row["value_ci"][0] if row["value_ci"] else None,
            "high": row["value_ci"][1] if row["value_ci"] else None,
        }
        for row in sorted(found, key=lambda row: row["size"] or 0)
    ]
    reading = (
        "Each line is a splitter's expected error as its chunks grow, its band the interval over "
        "documents. Its lowest point is what the text itself would choose; a flat line says that "
        "the size matters little."
    )
    return _lines(
        *("tuned", "Expected error against the size of chunks", reading, rows, ()),
        titles=("splitter", "characters a chunk", "expected Pk"),
    )


def _own_points(result: Result, curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
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


def moves(result: Result) -> list[Chart]:
    """References on which metrics cannot tell errors apart, a panel per kind of error."""
    found = records_of(result, "by_segments", ("corpus", "kind", "segments", "metric", "share"))
    choices = choices_of(found, "corpus")
    columns = {"line": "metric", "x": "segments", "y": "share", "low": "low", "high": "high"}
    rows, notes = thinned(
        rows_of(found, choices, facet="kind", **columns),
        [*(c.field for c in choices), "facet", "line"],
    )
    reading = (
        "Each line is the share of references, by their number of segments, for which a metric "
        "gives the same value to a small and to a large error; a metric worth having stays at 0."
    )
    return _lines(
        *("moves", "Small and large errors that a metric ties", reading, rows, choices),
        titles=("metric", "segments", "share of references"),
        shared=("y",),
        notes=notes,
    )


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
) -> list[Chart]:
    """Draw a panel per facet, a line with a band per name; nothing where no point is defined."""
    of_lines = [row for row in rows if row["y"] is not None and row.get("kind", "sweep") == "sweep"]
    if not of_lines:
        return []
    layers = _layers(distinct(of_lines, "line"), titles, has_density)
    body = panels(layers, rows, 290, 220, *shared)
    is_faceted = len(distinct(rows, "facet")) > 1
    panel = (280, 460) if is_faceted else (280, 900)
    rows = ordered(rows, "facet")
    return [Chart(name, title, reading, body, rows, choices, ("x", "y"), panel, notes=notes)]


def _layers(
    lines: list[str], titles: tuple[str, str, str | None], has_density: bool
) -> list[alt.Chart]:
    legend, x_title, y_title = titles
    across = alt.X("x:Q", title=x_title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    named_x = "across" if has_density else x_title
    base = alt.Chart(ROWS).encode(x=across, tooltip=_tooltips(legend, named_x, y_title or "value"))
    colour = colours("line", lines, legend, of_lines=True)
    upright = alt.Y("y:Q", title=y_title, scale=alt.Scale(zero=False))
    sweeps = base.transform_filter("datum.kind === 'sweep'") if has_density else base
    bands = sweeps.transform_filter(HAS_BAND)
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
    gold = alt.Chart(ROWS).transform_filter("isValid(datum.gold)")
    return [
        *layers,
        points.encode(shape=shapes("regime", REGIMES, "boundaries"), size=alt.value(34)),
        kinds["system"].mark_point(shape="diamond", size=60, opacity=0.9).encode(y=upright),
        own.encode(y=upright, color=colour),
        gold.mark_rule(strokeDash=[2, 3]).encode(x="max(gold):Q"),
    ]


def _tooltips(line: str, x: str, y: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("line:N", title=line),
        alt.Tooltip("x:Q", title=x, format=".3~f"),
        alt.Tooltip("y:Q", title=y, format=".3f"),
        alt.Tooltip("low:Q", format=".3f"),
        alt.Tooltip("high:Q", format=".3f"),
    ]


# Granularity


def granularity(result: Result) -> list[Chart]:
    """Expected errors, a line per system, over a logarithmic axis of assumed segments."""
    needed = ("corpus", "metric", "system", "point", "segments", "value", "low", "high", "real")
    found = [
        row
        for row in records_of(result, "curves", needed)
        if row["value"] is not None and row["segments"] is not None and row["segments"] > 0
    ]
    if not found:
        return []
    choices = choices_of(found, "corpus", "metric")
    names = {"line": "system", "kind": "point", "x": "segments", "y": "value"}
    columns = {**names, "low": "low", "high": "high"}
    lines = rows_of(found, choices, **columns)
    lines, notes = thinned(lines, [*(c.field for c in choices), "line"])
    beside = [*_gold_lines(found, choices), *_marks(result)]
    rows = [*lines, *rows_of(beside, choices, **columns)]
    title = "Expected errors by assumed segments a document"
    reading = (
        "Each line is a system's expected error if annotators made so many segments a document, "
        "its band the interval over documents. The large mark on a line is the number of segments "
        "that the system itself has; the shaded stretch is what the metric assumes. Where there is "
        "gold, the dotted rule is its number of segments, and the dashed line of a system's colour "
        "is the metric against gold. Where lines cross, the better system depends on how finely "
        "one wants to cut."
    )
    body = _by_segments(distinct(found, "system"), rows)
    panel = (280, 900)
    return [Chart("granularity", title, reading, body, rows, choices, ("x",), panel, notes=notes)]


def _gold_lines(
    found: list[dict[str, Any]], choices: tuple[Choice, ...]
) -> Iterator[dict[str, Any]]:
    """Two ends of a level line for every system but gold that has a value against gold."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in found:
        if row["real"] is not None and row["system"] != GOLD:
            key = (*map(str, parts(row, choices).values()), str(row["system"]))
            groups.setdefault(key, []).append(row)
    for group in groups.values():
        level = {"point": "real", "value": group[0]["real"], "low": None, "high": None}
        for end in (min, max):
            yield end(group, key=lambda row: row["segments"]) | level


def _marks(result: Result) -> list[dict[str, Any]]:
    """What the metric assumes, and gold's number of segments."""
    needed = ("corpus", "metric", "point", "low", "segments", "high")
    return [
        {**row, "system": "", "value": None}
        for row in records_of(result, "marks", needed)
        if all(row[name] is None or row[name] > 0 for name in ("low", "segments", "high"))
    ]


def _by_segments(systems: list[str], rows: list[Row]) -> alt.TopLevelMixin:
    def across(field: str) -> alt.X:
        return alt.X(
            f"{field}:Q",
            title="assumed segments a document (log scale)",
            scale=alt.Scale(type="log", nice=False, padding=6),
            axis=alt.Axis(values=_ticks(rows), format="~s", labelOverlap=True),
        )

    def of_kind(chart: alt.Chart, *kinds: str) -> alt.Chart:
        return chart.transform_filter(" || ".join(f"datum.kind === '{kind}'" for kind in kinds))

    title, x, colour = "expected error", across("x"), colours("line", systems, "system")
    y = alt.Y("y:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=6))
    base = alt.Chart(ROWS).encode(x=x, tooltip=_tooltips("system", "segments", "error"))
    assumed, gold = (of_kind(alt.Chart(ROWS), kind) for kind in ("assumed", "gold"))
    on_lines, own, real = (of_kind(base, *each) for each in (("grid", "own"), ("own",), ("real",)))
    bands = on_lines.transform_filter(HAS_BAND).mark_area(opacity=0.13)
    return alt.layer(
        assumed.transform_filter(HAS_BAND)
        .mark_rect(opacity=0.1)
        .encode(x=across("low"), x2="high:Q"),
        assumed.mark_text(baseline="bottom", fontSize=10, opacity=0.8).encode(
            x=x, y=alt.value(HEIGHT - 3), text=alt.value("assumed")
        ),
        gold.mark_rule(strokeDash=[2, 3]).encode(x=x),
        gold.mark_text(baseline="top", align="left", dx=3, fontSize=10, opacity=0.8).encode(
            x=x, y=alt.value(2), text=alt.value("gold")
        ),
        bands.encode(y=alt.Y("low:Q", title=title), y2="high:Q", color=colour),
        real.mark_line(strokeWidth=1.4, strokeDash=[6, 4], opacity=0.9).encode(y=y, color=colour),
        on_lines.mark_line(strokeWidth=2).encode(y=y, color=colour),
        on_lines.mark_point(filled=True, size=12, opacity=1).encode(y=y, color=colour),
        own.mark_point(filled=True, size=120, opacity=1).encode(
            y=y, color=colour, shape=shapes("line", systems, "system")
        ),
    ).properties(width=290, height=HEIGHT)


def _ticks(rows: list[Row]) -> list[float]:
    """Round numbers within what is drawn."""
    drawn = [
        float(row[name])  # type: ignore[arg-type]
        for row in rows
        for name in (("x", "low", "high") if row["kind"] == "assumed" else ("x",))
        if row[name] is not None
    ]
    return [tick for tick in TICKS if min(drawn) <= tick <= max(drawn)]
