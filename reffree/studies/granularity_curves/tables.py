"""The granularity study in tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reffree.evaluate.scores import corpus_mean
from reffree.studies.granularity_curves.curves import POINTS, Curves
from reffree.studies.result import Field, Table

CORPUS_AND_METRIC = (Field("corpus", "corpus", "text"), Field("metric", "metric", "text"))
SYSTEMS = (
    *CORPUS_AND_METRIC,
    Field("system", "system", "text"),
    Field("segments", "segments", "count"),
    Field("at_own", "at as many", interval="at_own_ci"),
    Field("at_own_ci", "95 %", "interval"),
    Field("best_at", "best at", "count"),
    Field("overall", "as reffree score", interval="overall_ci"),
    Field("overall_ci", "95 %", "interval"),
    Field("real", "against gold", interval="real_ci"),
    Field("real_ci", "95 %", "interval"),
)
CROSSINGS = (
    *CORPUS_AND_METRIC,
    Field("below", "better below", "text"),
    Field("above", "better above", "text"),
    Field("at", "crossing at", "count"),
    Field("clear_to", "clear up to", "count"),
    Field("clear_from", "clear from", "count"),
)
CURVES = (
    *CORPUS_AND_METRIC,
    Field("system", "system", "text"),
    Field("point", "point", "text"),
    Field("segments", "segments", "count"),
    Field("value", "value"),
    Field("low", "low"),
    Field("high", "high"),
    Field("real", "against gold"),
)
MARKS = (
    *CORPUS_AND_METRIC,
    Field("point", "point", "text"),
    Field("low", "from", "count"),
    Field("segments", "segments", "count"),
    Field("high", "to", "count"),
)


def granularity_tables(curves: Sequence[Curves]) -> tuple[Table, ...]:
    """Systems, errors by assumed number, crossings where there are any, and what charts draw."""
    crossings = [row for each in curves for row in _crossing_rows(each)]
    systems = list(dict.fromkeys(name for each in curves for name in each.systems))
    return (
        Table.of(
            "systems",
            "Systems: segments a document, and errors",
            SYSTEMS,
            [row for each in curves for row in _system_rows(each)],
        ),
        Table.of(
            "errors",
            "Errors by the segments a document that annotators are assumed to make",
            (
                *CORPUS_AND_METRIC,
                Field("segments", "assumed", "count"),
                Field("best", "best", "text"),
                *(Field(_column(name), name) for name in systems),
            ),
            [row for each in curves for row in _error_rows(each)],
        ),
        Table.of(
            "crossings",
            "Where another system becomes the best",
            CROSSINGS,
            crossings,
            shown=bool(crossings),
        ),
        Table.of(
            "curves",
            "Errors at every assumed number of segments",
            CURVES,
            [row for each in curves for row in _curve_rows(each)],
            shown=False,
        ),
        Table.of(
            "marks",
            "Numbers of segments that the metric assumes and that gold has",
            MARKS,
            [row for each in curves for row in _mark_rows(each)],
            shown=False,
        ),
    )


def _column(system: str) -> str:
    return f"error of {system}"


def _place(curves: Curves) -> dict[str, Any]:
    return {"corpus": curves.corpus_name, "metric": curves.metric_name}


def _system_rows(curves: Curves) -> Iterator[dict[str, Any]]:
    for s, name in enumerate(curves.systems):
        overall = corpus_mean(curves.overall[s], np.ones(len(curves.corpus)))
        row = {
            **_place(curves),
            "system": name,
            "segments": curves.own_numbers[s],
            "at_own": curves.means[curves.own(s), s],
            "at_own_ci": curves.interval(curves.own(s), s),
            "best_at": curves.grid[int(curves.losses[:POINTS, s].argmin())],
            "overall": overall,
            "overall_ci": curves.bootstrap.interval(overall, curves.overall[s]),
        }
        real = curves.real(s)
        if real is not None:
            row |= {"real": real.value, "real_ci": real.ci}
        yield row


def _error_rows(curves: Curves) -> Iterator[dict[str, Any]]:
    for g, segments in enumerate(curves.grid):
        best = curves.best(g)
        yield {
            **_place(curves),
            "segments": segments,
            "best": None if best is None else curves.systems[best],
            **{_column(name): curves.means[g, s] for s, name in enumerate(curves.systems)},
        }


def _crossing_rows(curves: Curves) -> Iterator[dict[str, Any]]:
    for each in curves.crossings:
        yield {
            **_place(curves),
            "below": each.below,
            "above": each.above,
            "at": each.at,
            "clear_to": each.clear_to,
            "clear_from": each.clear_from,
        }


def _curve_rows(curves: Curves) -> Iterator[dict[str, Any]]:
    """Every system at the numbers of the grid and at its own."""
    for s, name in enumerate(curves.systems):
        real = curves.real(s)
        for at in (*range(POINTS), curves.own(s)):
            interval = curves.interval(at, s)
            yield {
                **_place(curves),
                "system": name,
                "point": "grid" if at < POINTS else "own",
                "segments": curves.assumed.numbers[at],
                "value": curves.means[at, s],
                "low": interval[0] if interval else None,
                "high": interval[1] if interval else None,
                "real": None if real is None else real.value,
            }


def _mark_rows(curves: Curves) -> Iterator[dict[str, Any]]:
    low, middle, high = curves.mean_span
    yield {**_place(curves), "point": "assumed", "low": low, "segments": middle, "high": high}
    if curves.assumed.gold is not None:
        yield {**_place(curves), "point": "gold", "segments": curves.assumed.gold}
