"""Heat maps: correlations of reference-free with gold-based metrics, and between encoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from reffree.evaluate.result import Result
from reffree.report.charts.chart import (
    Chart,
    Row,
    by_order,
    choices_of,
    distinct,
    ordered,
    panels,
    parts,
    records_of,
    rows_of,
)

ACCURACIES = ("spa", "acc_eq")
CORRELATION = alt.Scale(domain=[-1, 1], scheme="blueorange", reverse=True)


def correlations(result: Result) -> list[Chart]:
    """Free metrics against gold-based ones, a panel per pool (per encoder, if those are compared).

    A row is a metric, a column what it is correlated with; sentinels come last.
    """
    needed = ("free", "gold", "value", "pool", "encoder", "level", "coefficient", "is_sentinel")
    found = records_of(result, "correlations", needed)
    if not found:
        return []
    facet = "encoder" if result.command == "encoders" else "pool"
    if len(distinct(found, "level")) > 1:
        # One choice of both, since not every coefficient is there at every level.
        found = [{**row, "coefficient": f"{row['coefficient']} ({row['level']})"} for row in found]
    names = [n for n in ("corpus", "encoder", "pool", "coefficient") if n != facet]
    choices = choices_of(found, *names)
    found.sort(key=_is_sentinel)
    rows: list[Row] = [
        {
            **parts(row, choices),
            "facet": str(row[facet]),
            "row": f"{row['free']} (sentinel)" if _is_sentinel(row) else str(row["free"]),
            "column": str(row["gold"]),
            "value": row["value"],
            "shown": _shown(row["value"]),
            "interval": _interval(row.get("ci")),
            "systems": row.get("n_systems"),
        }
        for row in found
    ]
    rows = ordered(rows, "row", "column", "facet")
    reading = (
        "Each cell is the correlation of a reference-free metric (row) with a gold-based one "
        "(column) over systems, both as losses: 1 (blue) is full agreement, 0 (white) none, −1 "
        "(orange) the opposite order, – undefined. A metric should beat the sentinels, which look "
        "at no text."
    )
    if any(name.startswith(ACCURACIES) for name in distinct(found, "coefficient")):
        reading += " Of the accuracies (spa, acc_eq), 0.5 is guessing."
    tooltips = [("row", "metric"), ("column", "with"), ("shown", "correlation")]
    tooltips += [("interval", "95 % interval"), ("systems", "systems")]
    body = _cells(rows, ("", ""), dict(tooltips))
    title = "Correlation of reference-free with gold-based metrics"
    return [Chart("correlations", title, reading, body, rows, choices, panel=(280, 430))]


def agreement(result: Result) -> list[Chart]:
    """How far two encoders order the systems alike, by each metric."""
    found = records_of(result, "agreement", ("encoder_a", "encoder_b", "metric", "kendall"))
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
    axes = {"row": "encoder_a", "column": "encoder_b", "value": "kendall"}
    reading = (
        "Each cell is Kendall's correlation between the orders that two encoders give the systems: "
        "1 (blue) is the same order, 0 (white) no relation, −1 (orange) the opposite order."
    )
    title = "Agreement between encoders"
    return _matrix("agreement", title, reading, found, axes)


def cross(result: Result) -> list[Chart]:
    """Segmentations made with one encoder, scored with another."""
    found = records_of(result, "cross", ("made_with", "scored_with", "metric", "value"))
    axes = {"row": "made_with", "column": "scored_with", "value": "value"}
    reading = (
        "Each cell is the correlation with gold over systems that look for cohesion, made with one "
        "encoder (row) and scored with another (column): 1 (blue) is full agreement, 0 (white) "
        "none, −1 (orange) the opposite order. Where the diagonal is worse than the rest, an "
        "encoder favours what was made with it."
    )
    title = "Made with one encoder, scored with another"
    return _matrix("cross", title, reading, found, axes)


def _matrix(
    name: str,
    title: str,
    reading: str,
    found: list[dict[str, Any]],
    axes: Mapping[str, str],
) -> list[Chart]:
    if not found:
        return []
    choices = choices_of(found, "corpus", "metric")
    names = distinct(found, axes["row"])  # in one order on both axes
    names += [name for name in distinct(found, axes["column"]) if name not in names]
    places = {name: place for place, name in enumerate(names)}
    rows = [
        row
        | {"shown": _shown(row["value"])}
        | {f"{axis}_order": places[str(row[axis])] for axis in ("row", "column")}
        for row in rows_of(found, choices, **axes)
    ]
    titles = (axes["row"].replace("_", " "), axes["column"].replace("_", " "))
    tooltips = {"row": titles[0], "column": titles[1], "shown": axes["value"]}
    body = _cells(rows, titles, tooltips)
    return [Chart(name, title, reading, body, rows, choices, panel=(280, 560))]


def _cells(
    rows: list[Row], titles: tuple[str, str], tooltips: Mapping[str, str]
) -> alt.TopLevelMixin:
    """Coloured cells with their values as text."""
    angle = alt.Axis(labelAngle=-35)
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("column:N", title=titles[1] or None, sort=by_order("column"), axis=angle),
        y=alt.Y("row:N", title=titles[0] or None, sort=by_order("row")),
        tooltip=[alt.Tooltip(f"{name}:N", title=title) for name, title in tooltips.items()],
    )
    is_dark = "abs(datum.value) > 0.55 && isValid(datum.value)"
    ink = alt.condition(is_dark, alt.value("#fff"), alt.value("#111"))
    cells = base.transform_filter("isValid(datum.value)").mark_rect(stroke="#fff", strokeWidth=1)
    numbers = base.transform_filter("isValid(datum.value)").mark_text(fontSize=11)
    undefined = base.transform_filter("!isValid(datum.value)").mark_text(fontSize=11)
    layers = [
        cells.encode(color=alt.Color("value:Q", title=None, scale=CORRELATION, legend=None)),
        numbers.encode(text="shown:N", color=ink),
        undefined.encode(text="shown:N"),
    ]
    return panels(layers, rows, 280, alt.Step(26))


def _is_sentinel(row: Mapping[str, Any]) -> bool:
    return row["is_sentinel"] in (True, "yes")


def _shown(value: Any) -> str:  # noqa: ANN401  (a number or none)
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def _interval(ci: list[float] | None) -> str:
    return "–" if ci is None else f"{_shown(ci[0])} to {_shown(ci[1])}"
