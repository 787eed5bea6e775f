"""Heat maps: correlations of reference-free with gold-based metrics, and between encoders."""

from __future__ import annotations

from typing import Any

import altair as alt

from reffree.evaluate.result import Result
from reffree.report.charts import chart
from reffree.report.charts.chart import ROWS, Chart, Row, distinct, drawn_rows, records_of

ACCURACIES = ("spa", "acc_eq")
CORRELATION = alt.Scale(domain=[-1, 1], scheme="blueorange", reverse=True)


def correlations(result: Result) -> list[Chart]:
    """Free metrics against gold-based ones, a panel per pool (per encoder, if those are compared).

    A row is a metric, a column what it is correlated with; sentinels come last.
    """
    needed = ("free", "gold", "value", "pool", "encoder", "level", "coefficient", "is_sentinel")
    found = records_of(result, "correlations", *needed)
    if not found:
        return []
    facet = "encoder" if result.command == "encoders" else "pool"
    if len(distinct(found, "level")) > 1:
        # One choice of both, since not every coefficient is there at every level.
        found = [{**row, "coefficient": f"{row['coefficient']} ({row['level']})"} for row in found]
    found.sort(key=lambda row: row["is_sentinel"] == "yes")
    for row in found:
        row["system"] = f"{row['free']} (sentinel)" if row["is_sentinel"] == "yes" else row["free"]
    names = [n for n in ("corpus", "encoder", "pool", "coefficient") if n != facet]
    columns = {"facet": facet, "row": "system", "column": "gold", "value": "value"}
    rows, choices = drawn_rows(found, names, **columns, interval="ci", systems="n_systems")
    for drawn in rows:
        ci: Any = drawn["interval"]
        drawn["interval"] = "–" if ci is None else f"{_format(ci[0])} to {_format(ci[1])}"
    reading = (
        "Each cell is the correlation of a reference-free metric (row) with a gold-based one "
        "(column) over systems, both as losses: 1 (blue) is full agreement, 0 (white) none, −1 "
        "(orange) the opposite order, – undefined. A metric should beat the sentinels, which look "
        "at no text."
    )
    if any(name.startswith(ACCURACIES) for name in distinct(found, "coefficient")):
        reading += " Of the accuracies (spa, acc_eq), 0.5 is guessing."
    rows = chart.ordered(rows, "row", "column", "facet")
    tips = ("row|metric", "column|with", "shown|correlation", "interval|95 % interval", "systems")
    title = "Correlation of reference-free with gold-based metrics"
    rows, body = _cells(rows, ("", ""), *tips)
    return [Chart("correlations", title, reading, body, rows, choices, panel=(280, 430))]


def agreement(result: Result) -> list[Chart]:
    """How far two encoders order the systems alike, by each metric; in both orders."""
    found = records_of(result, "agreement", "encoder_a", "encoder_b", "metric", "kendall")
    pairs = {(row["encoder_a"], row["encoder_b"]) for row in found}
    found += [
        {**row, "encoder_a": row["encoder_b"], "encoder_b": row["encoder_a"]}
        for row in found
        if (row["encoder_b"], row["encoder_a"]) not in pairs
    ]
    found += [
        {**row, "encoder_a": name, "encoder_b": name, "kendall": 1.0}
        for row in {(row.get("corpus"), row["metric"]): row for row in found}.values()
        for name in distinct(found, "encoder_a")
    ]
    reading = (
        "Each cell is Kendall's correlation between the orders that two encoders give the systems: "
        "1 (blue) is the same order, 0 (white) no relation, −1 (orange) the opposite order."
    )
    title = "Agreement between encoders"
    return _matrix("agreement", title, reading, found, "encoder_a", "encoder_b", "kendall")


def cross(result: Result) -> list[Chart]:
    """Segmentations made with one encoder, scored with another."""
    found = records_of(result, "cross", "made_with", "scored_with", "metric", "value")
    reading = (
        "Each cell is the correlation with gold over systems that look for cohesion, made with one "
        "encoder (row) and scored with another (column): 1 (blue) is full agreement, 0 (white) "
        "none, −1 (orange) the opposite order. Where the diagonal is worse than the rest, an "
        "encoder favours what was made with it."
    )
    title = "Made with one encoder, scored with another"
    return _matrix("cross", title, reading, found, "made_with", "scored_with", "value")


def _matrix(
    name: str, title: str, reading: str, found: list[dict[str, Any]], *axes: str
) -> list[Chart]:
    """Draw a square of encoders, in one order on both axes; axes are row, column and value."""
    if not found:
        return []
    names = [*distinct(found, axes[0]), *distinct(found, axes[1])]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    columns = {"row": axes[0], "column": axes[1], "value": axes[2]}
    rows, choices = drawn_rows(found, ("corpus", "metric"), **columns)
    for row in rows:
        row |= {f"{axis}_order": places[str(row[axis])] for axis in ("row", "column")}
    titles = (axes[0].replace("_", " "), axes[1].replace("_", " "))
    tips = (f"row|{titles[0]}", f"column|{titles[1]}", f"shown|{axes[2]}")
    rows, body = _cells(rows, titles, *tips)
    return [Chart(name, title, reading, body, rows, choices, panel=(280, 560))]


def _cells(
    rows: list[Row], titles: tuple[str, str], *tips: str
) -> tuple[list[Row], alt.TopLevelMixin]:
    """Draw coloured cells with their values as text, which are added to the rows."""
    rows = [row | {"shown": _format(row["value"])} for row in rows]
    angle = alt.Axis(labelAngle=-35)
    base = alt.Chart(ROWS).encode(
        x=alt.X("column:N", title=titles[1] or None, sort=chart.by_order("column"), axis=angle),
        y=alt.Y("row:N", title=titles[0] or None, sort=chart.by_order("row")),
        tooltip=chart.tooltips(*tips),
    )
    is_dark = "abs(datum.value) > 0.55 && isValid(datum.value)"
    ink = alt.condition(is_dark, alt.value("#fff"), alt.value("#111"))
    defined = base.transform_filter("isValid(datum.value)")
    text: dict[str, Any] = {"fontSize": 11}
    colour = alt.Color("value:Q", title=None, scale=CORRELATION, legend=None)
    layers = [
        defined.mark_rect(stroke="#fff", strokeWidth=1).encode(color=colour),
        defined.mark_text(**text).encode(text="shown:N", color=ink),
        base.transform_filter("!isValid(datum.value)").mark_text(**text).encode(text="shown:N"),
    ]
    return rows, chart.panels(layers, rows, 280, alt.Step(26))


def _format(value: Any) -> str:  # noqa: ANN401  (a number or none)
    return "–" if value is None else f"{value:.2f}".replace("-", "−")
