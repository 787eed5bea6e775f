"""Points and bars: systems by two metrics, documents of each system, what metrics notice."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean
from typing import Any

import altair as alt

from reffree.data.corpus import GOLD
from reffree.evaluate.result import Result
from reffree.evaluate.table import judged_by
from reffree.report.charts import chart
from reffree.report.charts.chart import (
    PALETTE,
    ROWS,
    Chart,
    Choice,
    Row,
    distinct,
    drawn_rows,
    marked,
    records_of,
)
from reffree.util.errors import counted

MAX_MARKS = 4_000
"""Of documents drawn at a time."""

TICKED = alt.Axis(tickCount=8)
SHORT = alt.Axis(format="~s", tickCount=6)
LOGARITHMIC = alt.Scale(type="log", nice=False, padding=40)

BESIDE = 0.025
"""Of the range of sizes, between systems of one size; with many systems it is less."""

MOST_BESIDE = 0.3
"""Of that range, that systems of one size take."""

BLIND = re.compile(r"(oracle_)?(none|all|even|random|periodic)(?![a-z])")
"""How systems that read no text are called."""


def systems(result: Result) -> list[Chart]:
    """Each system's score, with its interval, against its number of segments."""
    needed = ("system", "segments", "metric", "ci")
    found = records_of(result, "systems", *needed, defined=("value",))
    n_documents = result.corpora[0].get("documents") if result.corpora else None
    found = [row for row in found if row["segments"] and n_documents]
    if not found:
        return []
    judge = judged_by(metrics := distinct(found, "metric"))
    first = "placement" if "placement" in metrics else judge
    found.sort(key=lambda row: row["metric"] != first)
    beside = _side_by_side({row["system"]: row["segments"] / n_documents for row in found})
    for row in found:
        is_blind = BLIND.match(row["system"]) is not None
        row["kind"] = GOLD if row["system"] == GOLD else "reads no text" if is_blind else "system"
        row["size"] = row["segments"] / n_documents
        row["at"] = beside[row["system"]]
    columns = {"system": "system", "kind": "kind", "x": "at", "y": "value"}
    columns |= {"size": "size", "low": "ci_low", "high": "ci_high"}
    rows, choices = drawn_rows(found, ("metric",), **columns)
    title = chart.named("metric") if choices else first
    tips = ("size|segments a document|.1f", "y|score|.3f", "low|from|.3f", "high|to|.3f")
    base = alt.Chart(ROWS).encode(
        x=alt.X("x:Q", title="segments a document (logarithmic)", scale=LOGARITHMIC, axis=SHORT),
        y=alt.Y("y:Q", title=title, scale=alt.Scale(zero=False)),
        tooltip=chart.tooltips("system", "kind", *tips),
    )
    kinds = [kind for kind in ("system", GOLD, "reads no text") if kind in distinct(rows, "kind")]
    body = _labelled(base, "kind", kinds, "system", 90, title).properties(height=340)
    reading = (
        "Each point is a system: how many segments it makes of a document across, its score up, "
        "the line its 95 % interval over documents; those with as many segments stand side by "
        "side. Gold and systems that read no text have marks of their own: a system that is no "
        "better than those has found nothing in the text."
    )
    name = "Systems by score and number of segments"
    return [Chart("systems", name, reading, body, rows, choices, ("x", "y"), label="system")]


def scatter(result: Result) -> list[Chart]:
    """A reference-free against a gold-based metric, a point per system."""
    needed = ("system", "pool", "metric", "metric_kind", "corpus", "encoder")
    found = records_of(result, "scores", *needed, defined=("loss",))
    of_kind = {
        kind: distinct([r for r in found if r["metric_kind"] == kind], "metric")
        for kind in ("free", "sentinel", "gold")
    }
    free, gold = [*of_kind["free"], *of_kind["sentinel"]], of_kind["gold"]
    if not gold or not free:
        return []
    columns = {name: f"m{i}" for i, name in enumerate(dict.fromkeys([*free, *gold]))}
    wide: dict[tuple[str, ...], Row] = {}
    starts, given = drawn_rows(found, ("corpus", "encoder"), pool="pool", system="system")
    for row, start in zip(found, starts, strict=True):
        key = tuple(str(row[name]) for name in ("corpus", "encoder", "pool", "system"))
        wide.setdefault(key, start | dict.fromkeys(columns.values()))
        wide[key][columns[row["metric"]]] = row["loss"]
    choices = (
        *given,
        Choice("x", "Across", tuple(free), {name: {"x": columns[name]} for name in free}),
        Choice("y", "Up", tuple(gold), {name: {"y": columns[name]} for name in gold}),
    )
    rows = list(wide.values())
    titles = {axis: f"{chart.named(axis)} (loss, lower is better)" for axis in "xy"}
    points = alt.Chart(ROWS).encode(
        x=alt.X("x:Q", title=titles["x"], scale=alt.Scale(zero=False, padding=12), axis=TICKED),
        y=alt.Y("y:Q", title=titles["y"], scale=alt.Scale(zero=False, padding=12)),
        tooltip=chart.tooltips("system", "pool", "x|loss without gold|.3f", "y|loss with gold|.3f"),
    )
    body = _labelled(points, "pool", distinct(rows, "pool"), "system", 70).properties(height=400)
    reading = (
        "Each point is a system: its loss by a reference-free metric across, by a gold-based "
        "metric up. Points along a rising line mean that the metric without gold orders systems "
        "as gold does. Labels that would overlap are left out; point at a mark to read its name."
    )
    title = "Systems, without gold and with it"
    return [Chart("scatter", title, reading, body, rows, choices, ("x", "y"), label="system")]


def _side_by_side(sizes: Mapping[str, float]) -> dict[str, float]:
    """Move systems of nearly one size apart, on a logarithmic scale, so that all are seen.

    >>> moved = _side_by_side({"a": 1.0, "b": 4.0, "c": 4.0})
    >>> moved["a"], moved["b"] < 4.0 < moved["c"]
    (1.0, True)
    """
    logs = {system: math.log(size) for system, size in sizes.items()}
    span = max(logs.values()) - min(logs.values()) or 1.0
    step = span * min(BESIDE, MOST_BESIDE / len(logs))
    groups: list[list[str]] = []
    for system in sorted(logs, key=logs.__getitem__):
        is_near = groups and logs[system] - logs[groups[-1][0]] < step
        groups[-1].append(system) if is_near else groups.append([system])
    return {
        system: math.exp(logs[system] + step * (i - (len(group) - 1) / 2))
        for group in groups
        for i, system in enumerate(group)
    }


def _labelled(
    points: alt.Chart, field: str, names: list[str], label: str, size: int, interval: str = ""
) -> Any:  # noqa: ANN401  (a chart)
    """Draw points note apart by colour and shape, with labels, and intervals of a title."""
    colour = marked("colour", field, names, field)
    marks = points.mark_point(filled=True, size=size, opacity=0.85).encode(
        color=colour, shape=marked("shape", field, names, field)
    )
    labels = points.mark_text(fontSize=10, align="left", dx=7).encode(text=f"{label}:N")
    lines = points.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5, opacity=0.6)
    ends = lines.encode(y=alt.Y("low:Q", title=interval), y2="high:Q", color=colour)
    return alt.layer(*([ends] if interval else []), marks, labels).properties(width=620)


def strip(result: Result) -> list[Chart]:
    """Every document's value of one metric, a line of marks per system."""
    chosen_by = ("corpus", "encoder", "metric")
    needed = (*chosen_by, "document", "system")
    found = records_of(result, "documents", *needed, defined=("value",))
    if not found:
        return []

    def key(row: Row) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in (*chosen_by, "system"))

    values = defaultdict(list)
    for row in found:
        values[key(row)].append(row["value"])
    means = {at: fmean(each) for at, each in values.items()}
    # A study may keep fewer documents than it has scored.
    scores = records_of(result, "scores", *chosen_by, "system", defined=("value",))
    means |= {key(row): row["value"] for row in scores}
    kept, notes = found, tuple[str, ...]()
    every = list(dict.fromkeys((row["corpus"], row["document"]) for row in found))
    n_systems = len(distinct(found, "system"))
    most = min(MAX_MARKS // n_systems, chart.MAX_ROWS * len(every) // len(found))
    if len(every) > most:  # the same ones for every system
        spaced = set(chart.spaced(every, max(1, most)))
        kept = [row for row in found if (row["corpus"], row["document"]) in spaced]
        notes = (
            f"Drawn: {counted(len(spaced), 'document')} of {len(every):,}, evenly spaced in the "
            "order of the corpora; the means are those of all documents.",
        )
    columns = {name: name for name in ("document", "system", "value", "mean")}
    kept = [row | {"mean": means[key(row)]} for row in kept]
    rows, choices = drawn_rows(kept, chosen_by, **columns)
    # Without an axis of its own the mean would give its name to that of the values.
    is_chosen = any(choice.field == "metric" for choice in choices)
    title = chart.named("metric") if is_chosen else found[0]["metric"]
    across = alt.X("value:Q", title=title, scale=alt.Scale(zero=False), axis=TICKED)
    base = alt.Chart(ROWS).encode(
        y=alt.Y("system:N", title=None, sort=alt.EncodingSortField("mean", op="max"))
    )
    ticks = base.mark_tick(thickness=1.5, height=13, opacity=0.6, color=PALETTE[0])
    centre = base.mark_point(shape="diamond", filled=True, size=90, color=PALETTE[1], opacity=1)
    mean = alt.Tooltip("max(mean):Q", title="mean", format=".3f")
    body = alt.layer(
        ticks.encode(x=across, tooltip=chart.tooltips("document", "system", "value||.3f")),
        centre.encode(x=alt.X("max(mean):Q", title=""), tooltip=[alt.Tooltip("system:N"), mean]),
    ).properties(width=620, height=alt.Step(20))
    reading = (
        "Each thin mark is a document, each diamond the mean of a system; systems are ordered by "
        "that mean. Wide strips that overlap mean that a few documents could turn the order."
    )
    title = "Documents of each system"
    return [Chart("documents", title, reading, body, rows, choices, notes=notes)]


def noticed(result: Result) -> list[Chart]:
    """How often a metric notices that a segmentation was made worse, by kind of damage."""
    needed = ("metric", "kind")
    # By kind where there is such a table, else by kind and strength.
    found = records_of(result, "kinds", *needed, defined=("share",))
    found = found or records_of(result, "noticed", *needed, defined=("share",))
    reading = "Each bar is the share of documents in which damage of a kind raises the metric's "
    reading += (
        "loss; a metric that does not notice is near 50 %."
        if all(row.get("turned") is None for row in found)
        else "loss; the thick mark is what chance would give. A bar that ends before the mark, or "
        "before 50 %, says that the metric does not notice."
    )
    return _shares("noticed", "What each metric notices", reading, found, "noticed", "by chance")


def judged(result: Result) -> list[Chart]:
    """How often metrics agree with judges, by kind of error."""
    found = records_of(result, "majority", "kind", "metric", "turned", defined=("share",))
    reading = (
        "Each bar is the share of pairs in which a metric prefers what most judges prefer; the "
        "thick mark is what calling all pairs equal would reach."
    )
    title = "Agreement with most judges"
    return _shares("majority", title, reading, found, "agrees", "all equal")


def _shares(
    name: str, title: str, reading: str, found: list[dict[str, Any]], what: str, mark: str
) -> list[Chart]:
    """Bars of shares by metric, a panel per kind, with a thick mark at ``turned``."""
    if not found:
        return []
    columns = {"metric": "metric", "facet": "kind", "share": "share", "chance": "turned"}
    rows, choices = drawn_rows(found, ("corpus", "strength"), **columns)
    rows = chart.ordered(rows, "metric", "facet")
    percent, whole = alt.Axis(format="%", tickCount=5), alt.Scale(domain=[0, 1])
    base = alt.Chart(ROWS).encode(
        x=alt.X("share:Q", title=what, axis=percent, scale=whole),
        y=alt.Y("metric:N", title=None, sort=chart.by_order("metric")),
        tooltip=chart.tooltips("metric", f"share|{what}|.1%", f"chance|{mark}|.1%"),
    )
    text: dict[str, Any] = {"align": "left", "fontSize": 10, "fontWeight": "bold"}
    shown = alt.Text("share:Q", format=".0%")
    inside = base.transform_filter("datum.share > 0.2").mark_text(color="#fff", **text)
    layers = [
        base.mark_bar(color=PALETTE[0], height=14),
        base.transform_filter("isValid(datum.chance)")
        .mark_tick(color=PALETTE[1], thickness=3, height=18, opacity=1)
        .encode(x=alt.X("chance:Q", title=what)),
        inside.encode(x=alt.value(5), text=shown),
        base.transform_filter("datum.share <= 0.2").mark_text(dx=4, **text).encode(text=shown),
    ]
    body = chart.panels(layers, rows, 280, alt.Step(22))
    return [Chart(name, title, reading, body, rows, choices, panel=(260, 420))]


def baselines(result: Result) -> list[Chart]:
    """Systems that read no text beside others, a panel per metric."""
    needed = ("corpus", "system", "reads", "metric", "low", "high")
    found = records_of(result, "values", *needed, defined=("value",))
    if not found:
        return []
    columns = {"system": "system", "reads": "reads", "x": "value", "low": "low", "high": "high"}
    rows, choices = drawn_rows(found, ("corpus",), facet="metric", **columns)
    rows = chart.ordered(rows, "system", "facet")
    base = alt.Chart(ROWS).encode(
        x=alt.X("x:Q", title="value"),
        y=alt.Y("system:N", title=None, sort=chart.by_order("system")),
        tooltip=chart.tooltips("system", "x|value|.3f"),
    )
    ranges = base.transform_filter("isValid(datum.low)")
    layers = [
        base.mark_bar(height=14).encode(
            color=marked("colour", "reads", ["text", "no text"], "reads")
        ),
        ranges.mark_rule(strokeWidth=2, opacity=1, color="#808080").encode(
            x=alt.X("low:Q", title="value"), x2="high:Q"
        ),
    ]
    body = chart.panels(layers, rows, 260, alt.Step(22), "x")
    reading = (
        "Each bar is a system's value under a metric, the line its interval over resampled "
        "documents; a system that reads text and does no better than one that reads none has "
        "nothing to show for it."
    )
    title = "Systems that read no text, and others"
    return [Chart("baselines", title, reading, body, rows, choices, panel=(240, 420))]


def transfer(result: Result) -> list[Chart]:
    """Density and quality of a scorer and of others on corpora it was not trained on."""
    columns = {"corpus": "corpus", "system": "system", "x": "bor", "y": "w_f1"}
    found = records_of(result, "transfer", "trained_on", *columns.values(), defined=("w_f1", "bor"))
    if not found:
        return []
    rows, choices = drawn_rows(found, ("trained_on",), **columns)
    points = alt.Chart(ROWS).encode(
        x=alt.X("x:Q", title="boundaries per gold boundary (BOR)"),
        y=alt.Y("y:Q", title="W-F1", scale=alt.Scale(domain=[0, 1])),
        tooltip=chart.tooltips("corpus", "system", "x|BOR|.2f", "y|W-F1|.3f"),
    )
    systems = distinct(rows, "system")
    body = _labelled(points, "system", systems, "corpus", 90).properties(height=380)
    reading = (
        "Each point is a corpus that the scorer was not trained on: across, how many boundaries it "
        "finds for each of gold's; up, how many of them are near one. Right of 1 it cuts finer "
        "than the annotators, left of 1 coarser."
    )
    title = "A scorer on other corpora, at one threshold"
    return [Chart("transfer", title, reading, body, rows, choices, ("x", "y"), label="corpus")]


def speed(result: Result) -> list[Chart]:
    """Correlation with a gold-based metric against the speed of each encoder."""
    about = records_of(result, "encoders", "encoder", "corpus", "units_per_second")
    speeds = {str(row["encoder"]): row["units_per_second"] for row in about}
    needed = ("corpus", "encoder", "pool", "level", "free", "gold", "coefficient", "ci")
    wanted = {"pool": "independent", "level": "corpus", "coefficient": "pearson"}
    wanted |= {"is_sentinel": "no"}
    found = [
        {**row, "metric": row["free"], "units_per_second": units}
        for row in records_of(result, "correlations", *needed, "is_sentinel", defined=("value",))
        if all(row[name] == value for name, value in wanted.items())
        and (units := speeds.get(str(row["encoder"]))) is not None
        and units > 0  # has a logarithm
    ]
    if not found:
        return []
    columns = {"encoder": "encoder", "x": "units_per_second", "y": "value"}
    columns |= {"low": "ci_low", "high": "ci_high"}
    rows, choices = drawn_rows(found, ("metric", "gold", "corpus"), **columns)
    chosen = {choice.field for choice in choices}
    metric, gold = (
        chart.named(name) if name in chosen else str(found[0][name]) for name in ("metric", "gold")
    )
    upwards, encoders = f"{metric} with {gold}, Pearson", distinct(rows, "encoder")
    tips = ("x|units per second|,.0f", "y|Pearson|.3f", "low|from|.3f", "high|to|.3f")
    base = alt.Chart(ROWS).encode(
        x=alt.X("x:Q", title="units per second (logarithmic)", scale=LOGARITHMIC, axis=SHORT),
        y=alt.Y("y:Q", title=upwards, scale=alt.Scale(zero=False)),
        tooltip=chart.tooltips("encoder", *tips),
    )
    body = _labelled(base, "encoder", encoders, "encoder", 110, upwards).properties(height=340)
    reading = (
        "Each point is an encoder: how many units it encodes in a second across, as measured on "
        "the machine of the study, and how a metric under it correlates with a gold-based one over "
        "independent systems up. The lines are 95 % intervals over resampled documents; those of "
        "two encoders may overlap although they differ: see the table of differences. Best is up "
        "and to the right."
    )
    title = "Speed and quality of encoders"
    return [Chart("speed", title, reading, body, rows, choices, ("x", "y"), label="encoder")]
