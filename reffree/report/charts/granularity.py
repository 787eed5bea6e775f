"""Expected errors against the assumed number of segments, with what is known of that number."""

from __future__ import annotations

from typing import Any

import altair as alt

from reffree.corpus import GOLD
from reffree.report.charts.chart import (
    Chart,
    Choice,
    Row,
    choices_of,
    colours,
    distinct,
    parts,
    records_of,
    shapes,
    thinned,
)
from reffree.studies.result import StudyResult

HEIGHT = 300
TICKS = tuple(digit * 10**power for power in range(6) for digit in (1, 1.5, 2, 3, 4, 5, 7))
"""Of the axis: more than documents have segments."""

READING = (
    "Each line is a system's expected error if annotators made so many segments a document, its "
    "band the interval over documents. The large mark on a line is the number of segments that the "
    "system itself has; the shaded stretch is what the metric assumes. Where there is gold, the "
    "dotted rule is its number of segments, and the dashed line of a system's colour is the metric "
    "against gold. Where lines cross, the better system depends on how finely one wants to cut."
)


def granularity(result: StudyResult) -> list[Chart]:
    """A line per system over a logarithmic axis."""
    needed = ("corpus", "metric", "system", "point", "segments", "value", "low", "high", "real")
    found = [
        row
        for row in records_of(result, "curves", needed)
        if row["value"] is not None and _is_positive(row["segments"])
    ]
    if not found:
        return []
    choices = choices_of(found, "corpus", "metric")
    lines: list[Row] = [
        {
            **parts(row, choices),
            **_cells(row["system"], row["point"], row["segments"], row["value"]),
            "low": row["low"],
            "high": row["high"],
        }
        for row in found
    ]
    lines, notes = thinned(lines, [*(c.field for c in choices), "line"])
    rows = [*lines, *_gold_lines(found, choices), *_marks(result, choices)]
    return [
        Chart(
            "granularity",
            "Expected errors by assumed segments a document",
            READING,
            _drawn(distinct(found, "system"), rows),
            rows,
            choices,
            required=("x",),
            panel=(280, 900),
            notes=notes,
        )
    ]


def _is_positive(number: Any) -> bool:  # noqa: ANN401  (any plain value)
    return number is not None and number > 0


def _cells(line: Any, kind: Any, x: Any, y: Any) -> Row:  # noqa: ANN401  (any plain values)
    return {"line": str(line), "kind": kind, "x": x, "y": y, "low": None, "high": None}


def _gold_lines(found: list[dict[str, Any]], choices: tuple[Choice, ...]) -> list[Row]:
    """Two ends of a level line for every system but gold that has a value against gold."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in found:
        if row["real"] is not None and row["system"] != GOLD:
            key = (*map(str, parts(row, choices).values()), str(row["system"]))
            groups.setdefault(key, []).append(row)
    ends = []
    for group in groups.values():
        numbers = [row["segments"] for row in group]
        for end in (min(numbers), max(numbers)):
            own = _cells(group[0]["system"], "real", end, group[0]["real"])
            ends.append({**parts(group[0], choices), **own})
    return ends


def _marks(result: StudyResult, choices: tuple[Choice, ...]) -> list[Row]:
    """What the metric assumes, and gold's number of segments."""
    needed = ("corpus", "metric", "point", "low", "segments", "high")
    return [
        {
            **parts(row, choices),
            **_cells("", row["point"], row["segments"], None),
            "low": row["low"],
            "high": row["high"],
        }
        for row in records_of(result, "marks", needed)
        if all(row[name] is None or _is_positive(row[name]) for name in ("low", "segments", "high"))
    ]


def _drawn(systems: list[str], rows: list[Row]) -> alt.TopLevelMixin:
    data = alt.NamedData("rows")
    x = _across("x", rows)
    y = alt.Y(
        "y:Q", title="expected error", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=6)
    )
    base = alt.Chart(data).encode(
        x=x,
        tooltip=[
            alt.Tooltip("line:N", title="system"),
            alt.Tooltip("x:Q", title="segments", format=".3~f"),
            alt.Tooltip("y:Q", title="error", format=".3f"),
            alt.Tooltip("low:Q", format=".3f"),
            alt.Tooltip("high:Q", format=".3f"),
        ],
    )
    colour = colours("line", systems, "system")
    on_lines = base.transform_filter("datum.kind === 'grid' || datum.kind === 'own'")
    bands = on_lines.transform_filter("isValid(datum.low) && isValid(datum.high)")
    own = base.transform_filter("datum.kind === 'own'")
    real = base.transform_filter("datum.kind === 'real'")
    return alt.layer(
        *_backdrop(data, rows),
        bands.mark_area(opacity=0.13).encode(
            y=alt.Y("low:Q", title="expected error"), y2="high:Q", color=colour
        ),
        real.mark_line(strokeWidth=1.4, strokeDash=[6, 4], opacity=0.9).encode(y=y, color=colour),
        on_lines.mark_line(strokeWidth=2).encode(y=y, color=colour),
        on_lines.mark_point(filled=True, size=12, opacity=1).encode(y=y, color=colour),
        own.mark_point(filled=True, size=120, opacity=1).encode(
            y=y, color=colour, shape=shapes("line", systems, "system")
        ),
    ).properties(width=290, height=HEIGHT)


def _across(field: str, rows: list[Row]) -> alt.X:
    return alt.X(
        f"{field}:Q",
        title="assumed segments a document (log scale)",
        scale=alt.Scale(type="log", nice=False, padding=6),
        axis=alt.Axis(values=_ticks(rows), format="~s", labelOverlap=True),
    )


def _backdrop(data: alt.NamedData, rows: list[Row]) -> list[alt.Chart]:
    """Stretch that is assumed, and rule of gold, each with its name."""
    assumed = alt.Chart(data).transform_filter("datum.kind === 'assumed'")
    gold = alt.Chart(data).transform_filter("datum.kind === 'gold'")
    x = _across("x", rows)
    return [
        assumed.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_rect(opacity=0.1)
        .encode(x=_across("low", rows), x2="high:Q"),
        assumed.mark_text(baseline="bottom", fontSize=10, opacity=0.8).encode(
            x=x, y=alt.value(HEIGHT - 3), text=alt.value("assumed")
        ),
        gold.mark_rule(strokeDash=[2, 3]).encode(x=x),
        gold.mark_text(baseline="top", align="left", dx=3, fontSize=10, opacity=0.8).encode(
            x=x, y=alt.value(2), text=alt.value("gold")
        ),
    ]


def _ticks(rows: list[Row]) -> list[float]:
    """Round numbers within what is drawn."""
    drawn = [
        float(row[name])  # type: ignore[arg-type]
        for row in rows
        for name in (("x", "low", "high") if row["kind"] == "assumed" else ("x",))
        if row[name] is not None
    ]
    return [tick for tick in TICKS if min(drawn) <= tick <= max(drawn)]
