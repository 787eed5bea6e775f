"""Curves with bands, against perturbation strength, boundary density and assumed segments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import altair as alt

from reffree.data.corpus import GOLD
from reffree.evaluate.result import Result
from reffree.report.charts import chart
from reffree.report.charts.chart import (
    ROWS,
    Chart,
    Choice,
    Row,
    distinct,
    drawn_rows,
    marked,
    records_of,
    rows_of,
)
from reffree.studies.density import REGIMES, regime

HAS_BAND = "isValid(datum.low) && isValid(datum.high)"
HEIGHT = 300
TICKS = tuple(digit * 10**power for power in range(6) for digit in (1, 1.5, 2, 3, 4, 5, 7))
"""Of the axis of segments: more than documents have."""


@dataclass(frozen=True, slots=True)
class Curves:
    """A chart of a panel per facet and a line with a band per name."""

    name: str
    title: str
    reading: str
    titles: tuple[str, str, str | None]  # of the legend and the axes
    shared: tuple[str, ...] = ("y",)  # axes that all panels have in common
    table: str = "curves"
    choices: tuple[str, ...] = ("corpus",)
    columns: Mapping[str, str] = field(default_factory=dict)  # drawn name → column; low, high too


ENDS = {"low": "low", "high": "high"}
SEEDS = "its band holds the middle 95 % of the seeds."
CURVES = {
    "perturb": (
        Curves(
            *("perturbation-scaled", "Perturbation curves, each scaled from 0 to 1"),
            "A panel is a metric, a line its mean loss as one kind of damage gets worse; "
            f"{SEEDS} A metric worth having rises in every line.",
            ("damage", "strength", "scaled loss"),
            columns={"facet": "metric", "line": "kind", "x": "strength", "y": "scaled"}
            | {"low": "scaled_low", "high": "scaled_high"},
        ),
        Curves(
            *("perturbation-values", "Perturbation curves, a metric's own values"),
            "A panel is a kind of damage, a line the mean over a corpus as it gets worse; "
            f"{SEEDS} Which way is worse is the metric's.",
            ("corpus", "strength", "value"),
            choices=("metric",),
            columns={"facet": "kind", "line": "corpus", "x": "strength", "y": "value"} | ENDS,
        ),
    ),
    "selection": (
        Curves(
            *("selection", "Where boundaries are selected"),
            "Each line is the distribution of selected boundaries over the units before them, from "
            "candidates that were thinned out finely or coarsely; a panel for each rule. Lines "
            "that lie on one another mean that the rule's boundaries do not depend on the "
            "candidates.",
            ("candidates", "units before the boundary", "share of boundaries"),
            table="places",
            choices=("corpus", "method"),
            columns={"facet": "rule", "line": "thinned", "x": "unit", "y": "value"} | ENDS,
        ),
    ),
    "moves": (
        Curves(
            *("moves", "Small and large errors that a metric ties"),
            "Each line is the share of references, by their number of segments, for which a metric "
            "gives the same value to a small and to a large error; a metric worth having stays at "
            "0.",
            ("metric", "segments", "share of references"),
            table="by_segments",
            columns={"facet": "kind", "line": "metric", "x": "segments", "y": "share"} | ENDS,
        ),
    ),
    "chunks": (
        Curves(
            *("tuned", "How well chunks are placed, against their size"),
            "Each line is a chunker's score as its chunks grow, its band the interval over "
            "documents: placement, unless another metric was asked for. 0 is what blind cuts of "
            "the same sizes get, 1 the best that is possible with as many; a flat line says that "
            "the size matters little to where chunks start.",
            ("chunker", "characters a chunk", "score"),
            shared=(),
            table="curve",
            choices=(),
            columns={"facet": "corpus", "line": "splitter", "x": "size", "y": "value"}
            | {"low": "value_ci_low", "high": "value_ci_high"},
        ),
    ),
}
"""By command: charts whose rows are those of one table; bands only where it has their ends."""

DENSITY = Curves(
    *("density", "Quality against the number of boundaries"),
    "Each line follows a method from few boundaries to many, its band is the interval around it; "
    "shapes of points tell fewer boundaries than gold has (conservative), about as many (balanced) "
    "and many more (aggressive). Crosses are methods as they come, diamonds systems of the corpus; "
    "the dotted rule is the number of boundaries of gold. A measure that rises or falls all along "
    "rewards mere density.",
    ("method", chart.named("x"), None),
    shared=(),
    choices=("corpus", "matching"),
    columns={"facet": "measure", "line": "method", "y": "value", "bor": "bor", "density": "density"}
    | ENDS,
)


def curves(result: Result) -> list[Chart]:
    """Draw the curves that are declared for a command."""
    charts = []
    for each in CURVES[result.command]:
        needed = {column for name, column in each.columns.items() if name not in ENDS}
        found = records_of(result, each.table, *each.choices, *needed)
        charts += _lines(each, *drawn_rows(found, each.choices, **each.columns))
    return charts


def density(result: Result) -> list[Chart]:
    """Quality against the number of boundaries, a panel per measure."""
    needed = ("method", "matching", "threshold", "bor", "density", "measure", "value")
    found = records_of(result, "curves", *needed, "corpus", "low", "high")
    drawn = dict.fromkeys((row["matching"], row["measure"]) for row in found)
    of_points = ("corpus", "method", "point", "threshold", "bor", "density")
    for row in records_of(result, "points", *of_points):
        # Methods with the number of boundaries they choose themselves, for every measure drawn.
        for matching, measure in drawn if row["point"] == "own" else ():
            is_one_to_one = measure == "w_f1" and matching == "one_to_one"
            column = "w_f1_one_to_one" if is_one_to_one else measure
            if column in row:
                cells = {"matching": matching, "measure": measure, "value": row[column]}
                found.append({**row, **cells, "low": None, "high": None})
    gold = {
        str(row["corpus"]): row["density"] / row["bor"]
        for row in found
        if row["density"] is not None and row["bor"]
    }
    rows, choices = drawn_rows(found, DENSITY.choices, **DENSITY.columns)
    for row, record in zip(rows, found, strict=True):
        is_system = record["threshold"] is None
        row["kind"] = record.get("point") or ("system" if is_system else "sweep")
        row["regime"] = "undefined" if record["bor"] is None else regime(record["bor"])
        row |= {"one": 1, "gold_density": gold.get(str(record["corpus"]))}
    axes = {
        "boundary density": {"x": "density", "gold": "gold_density"},
        "BOR": {"x": "bor", "gold": "one"},
    }
    return _lines(DENSITY, rows, (*choices, Choice("x", "Against", tuple(axes), axes)))


def _lines(curves: Curves, rows: list[Row], choices: tuple[Choice, ...]) -> list[Chart]:
    """Draw a panel per facet, a line with a band per name; nothing where no point is defined."""
    series = [*(c.field for c in choices if not c.columns), "facet", "line"]
    rows, notes = chart.thinned(rows, [*series, *(["kind"] if curves is DENSITY else [])])
    of_lines = [row for row in rows if row["y"] is not None and row.get("kind", "sweep") == "sweep"]
    if not of_lines:
        return []
    lines, (legend, x_title, y_title) = distinct(of_lines, "line"), curves.titles
    across = alt.X("x:Q", title=x_title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    tips = _tooltips(legend, "across" if curves is DENSITY else x_title, y_title or "value")
    base = alt.Chart(ROWS).encode(x=across, tooltip=tips)
    colour = marked("colour", "line", lines, legend, of_lines=True)
    dash = marked("dash", "line", lines, legend)
    upright = alt.Y("y:Q", title=y_title, scale=alt.Scale(zero=False))
    sweeps = base.transform_filter("datum.kind === 'sweep'") if curves is DENSITY else base
    bands = sweeps.transform_filter(HAS_BAND).mark_area(opacity=0.16)
    points = sweeps.mark_point(filled=True, size=22, opacity=1).encode(y=upright, color=colour)
    layers: list[alt.Chart] = [
        bands.encode(y=alt.Y("low:Q", title=y_title), y2="high:Q", color=colour),
        sweeps.mark_line(strokeWidth=1.8).encode(y=upright, color=colour, strokeDash=dash),
        points,
    ]
    if curves is DENSITY:
        shape = marked("shape", "regime", REGIMES, "boundaries")
        system, own = (base.transform_filter(f"datum.kind === '{k}'") for k in ("system", "own"))
        gold = alt.Chart(ROWS).transform_filter("isValid(datum.gold)")
        layers[-1:] = [
            points.encode(shape=shape, size=alt.value(34)),
            system.mark_point(shape="diamond", size=60, opacity=0.9).encode(y=upright),
            own.mark_point(shape="cross", filled=True, size=110, opacity=1).encode(
                y=upright, color=colour
            ),
            gold.mark_rule(strokeDash=[2, 3]).encode(x="max(gold):Q"),
        ]
    body = chart.panels(layers, rows, 290, 220, *curves.shared)
    panel = (280, 460 if len(distinct(rows, "facet")) > 1 else 900)
    about, rows = (curves.name, curves.title, curves.reading), chart.ordered(rows, "facet")
    return [Chart(*about, body, rows, choices, ("x", "y"), panel, notes=notes)]


def _tooltips(line: str, x: str, y: str) -> list[alt.Tooltip]:
    return chart.tooltips(f"line|{line}", f"x|{x}|.3~f", f"y|{y}|.3f", "low||.3f", "high||.3f")


# Granularity


def granularity(result: Result) -> list[Chart]:
    """Expected errors, a line per system, over a logarithmic axis of assumed segments."""
    needed = ("corpus", "metric", "system", "point", "segments", "value", "low", "high", "real")
    found = records_of(result, "curves", *needed, defined=("value", "segments"))
    found = [row for row in found if row["segments"] > 0]  # has a logarithm
    if not found:
        return []
    columns = {"line": "system", "kind": "point", "x": "segments", "y": "value"}
    columns |= {"low": "low", "high": "high"}
    lines, choices = drawn_rows(found, ("corpus", "metric"), **columns)
    lines, notes = chart.thinned(lines, [*(c.field for c in choices), "line"])
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in found:
        if row["real"] is not None and row["system"] != GOLD:
            key = tuple(str(row[name]) for name in ("corpus", "metric", "system"))
            groups.setdefault(key, []).append(row)
    more = []
    for group in groups.values():  # two ends of a level line
        level = {"point": "real", "value": group[0]["real"], "low": None, "high": None}
        more += [end(group, key=lambda row: row["segments"]) | level for end in (min, max)]
    of_marks = ("corpus", "metric", "point", "low", "segments", "high")
    for row in records_of(result, "marks", *of_marks):
        if all(row[name] is None or row[name] > 0 for name in ("low", "segments", "high")):
            more.append({**row, "system": "", "value": None})
    rows = lines + rows_of(more, choices, **columns)
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


def _by_segments(systems: list[str], rows: list[Row]) -> alt.TopLevelMixin:
    drawn = [
        float(row[name])  # type: ignore[arg-type]
        for row in rows
        for name in (("x", "low", "high") if row["kind"] == "assumed" else ("x",))
        if row[name] is not None
    ]
    ticks = [tick for tick in TICKS if min(drawn) <= tick <= max(drawn)]

    def across(field: str) -> alt.X:
        return alt.X(
            f"{field}:Q",
            title="assumed segments a document (log scale)",
            scale=alt.Scale(type="log", nice=False, padding=6),
            axis=alt.Axis(values=ticks, format="~s", labelOverlap=True),
        )

    def of_kind(base: alt.Chart, *kinds: str) -> alt.Chart:
        return base.transform_filter(" || ".join(f"datum.kind === '{kind}'" for kind in kinds))

    title, x, colour = "expected error", across("x"), marked("colour", "line", systems, "system")
    y = alt.Y("y:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=6))
    base = alt.Chart(ROWS).encode(x=x, tooltip=_tooltips("system", "segments", "error"))
    assumed, gold = (of_kind(alt.Chart(ROWS), kind) for kind in ("assumed", "gold"))
    on_lines, own, real = (of_kind(base, *each) for each in (("grid", "own"), ("own",), ("real",)))
    small: dict[str, Any] = {"fontSize": 10, "opacity": 0.8}
    return alt.layer(
        assumed.transform_filter(HAS_BAND)
        .mark_rect(opacity=0.1)
        .encode(x=across("low"), x2="high:Q"),
        assumed.mark_text(baseline="bottom", **small).encode(
            x=x, y=alt.value(HEIGHT - 3), text=alt.value("assumed")
        ),
        gold.mark_rule(strokeDash=[2, 3]).encode(x=x),
        gold.mark_text(baseline="top", align="left", dx=3, **small).encode(
            x=x, y=alt.value(2), text=alt.value("gold")
        ),
        on_lines.transform_filter(HAS_BAND)
        .mark_area(opacity=0.13)
        .encode(y=alt.Y("low:Q", title=title), y2="high:Q", color=colour),
        real.mark_line(strokeWidth=1.4, strokeDash=[6, 4], opacity=0.9).encode(y=y, color=colour),
        on_lines.mark_line(strokeWidth=2).encode(y=y, color=colour),
        on_lines.mark_point(filled=True, size=12, opacity=1).encode(y=y, color=colour),
        own.mark_point(filled=True, size=120, opacity=1).encode(
            y=y, color=colour, shape=marked("shape", "line", systems, "system")
        ),
    ).properties(width=290, height=HEIGHT)
