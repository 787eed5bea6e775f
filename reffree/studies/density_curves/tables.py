"""The density study in tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from reffree.reference.failure_modes import failure_mode
from reffree.statistics.coefficients import correlation
from reffree.studies.density_curves.points import (
    REGIMES,
    W_F1,
    Matching,
    Measured,
    Plane,
    by_regime,
    regime,
    spelt_range,
)
from reffree.studies.result import Field

CURVES = (
    Field("corpus", "corpus", "text"),
    Field("method", "method", "text"),
    Field("matching", "matching", "text"),
    Field("threshold", "threshold"),
    Field("bor", "BOR"),
    Field("density", "boundaries per gap"),
    Field("measure", "measure", "text"),
    Field("value", "value"),
    Field("low", "low"),
    Field("high", "high"),
)
POINTS = (
    Field("corpus", "corpus", "text"),
    Field("method", "method", "text"),
    Field("point", "point", "text"),
    Field("target", "boundaries wanted", "count"),
    Field("boundaries", "boundaries", "count"),
    Field("threshold", "threshold"),
    Field("bor", "BOR"),
    Field("density", "boundaries per gap"),
    *(Field(name, name) for name in ("w_f1", "w_f1_one_to_one", "f1", "purity", "coverage")),
)
REGIME_FIELDS = (
    Field("corpus", "corpus", "text"),
    Field("method", "method", "text"),
    Field("matching", "matching", "text"),
    Field("conservative", "conservative", "text"),
    Field("balanced", "balanced", "text"),
    Field("aggressive", "aggressive", "text"),
    Field("best", "best W-F1", interval="best_ci"),
    Field("best_ci", "95 %", "interval"),
    Field("threshold", "at threshold"),
    Field("bor", "BOR"),
    Field("mode", "failure mode", "text"),
    Field("span", "W-F1 over sweep"),
    Field("own", "own W-F1", interval="own_ci"),
    Field("own_ci", "95 %", "interval"),
    Field("own_bor", "own BOR"),
    Field("own_regime", "own density", "text"),
)
AUDIT = (
    Field("corpus", "corpus", "text"),
    Field("first", "first", "text"),
    Field("second", "second", "text"),
    Field("at", "density", "text"),
    Field("f1", "ΔF1"),
    Field("w_f1", "ΔW-F1", interval="w_f1_ci"),
    Field("w_f1_ci", "95 %", "interval"),
    Field("w_f1_one_to_one", "one to one", interval="w_f1_one_to_one_ci"),
    Field("w_f1_one_to_one_ci", "95 %", "interval"),
    Field("bor", "ΔBOR", interval="bor_ci"),
    Field("bor_ci", "95 %", "interval"),
    Field("shift", "from second to first", "text"),
)
LOSSES = (
    Field("corpus", "corpus", "text"),
    Field("method", "method", "text"),
    Field("metric", "metric", "text"),
    Field("lowest", "lowest loss", interval="lowest_ci"),
    Field("lowest_ci", "95 %", "interval"),
    Field("threshold", "at threshold"),
    Field("bor", "BOR"),
    Field("w_f1", "W-F1 there"),
    Field("best", "best W-F1"),
    Field("rho", "Spearman with 1 − W-F1"),
)
SHARED = ("bor", "coverage", "purity")
"""Measures that no matching changes."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """One corpus's plane with its measures."""

    name: str
    plane: Plane
    measured: Measured
    metrics: tuple[str, ...]  # reference-free ones

    def value(self, measure: str, point: int) -> float:
        """Value of a measure at a point."""
        return float(self.measured.values[measure][point])

    def best(self, method: str, measure: str) -> int:
        """Number of the point of a sweep with the highest value, of equals the sparsest."""
        sweep = self.plane.sweep(method)[::-1]
        return max(sweep, key=lambda i: self.value(measure, i))

    def spread(self, method: str, measure: str) -> float:
        """Highest minus lowest value on a sweep."""
        values = [self.value(measure, i) for i in self.plane.sweep(method)]
        return max(values) - min(values)

    def own(self, name: str) -> int:
        """Number of a method's operating point, or of a system."""
        found = self.plane.find(name, ("own", "system"))
        assert found is not None  # every method and every system has one
        return found

    def mode(self, measure: str, point: int) -> str:
        """Failure mode of a point (Coen's Table 2)."""
        w_f1, bor, purity, coverage = (
            self.value(each, point) for each in (measure, "bor", "purity", "coverage")
        )
        return failure_mode(w_f1, bor, purity, coverage).label


def curve_rows(mapped: Mapped, matchings: Sequence[Matching]) -> Iterator[dict[str, Any]]:
    """One row per threshold or system, matching and measure; most measures need no matching."""
    measured = mapped.measured
    further = [name for name in measured.values if name not in (*W_F1.values(), *SHARED)]
    for matching in matchings:
        for measure in (W_F1[matching], *SHARED, *further):
            for i, point in enumerate(mapped.plane.points):
                if point.kind in ("own", "matched"):
                    continue
                interval = measured.interval(measure, i)
                yield {
                    **_place(mapped, i),
                    "matching": matching,
                    "measure": "w_f1" if measure == W_F1[matching] else measure,
                    "value": mapped.value(measure, i),
                    "low": interval[0] if interval else None,
                    "high": interval[1] if interval else None,
                }


def point_rows(mapped: Mapped) -> Iterator[dict[str, Any]]:
    """Points that are on no curve: what the audit compares."""
    for i, point in enumerate(mapped.plane.points):
        if point.kind != "sweep":
            yield {
                **_place(mapped, i),
                "point": point.kind,
                "target": point.target,
                "boundaries": point.n_boundaries,
                **{
                    name: mapped.value(name, i)
                    for name in ("w_f1", "w_f1_one_to_one", "f1", "purity", "coverage")
                },
            }


def _place(mapped: Mapped, i: int) -> dict[str, Any]:
    point = mapped.plane.points[i]
    return {
        "corpus": mapped.name,
        "method": point.name,
        "threshold": point.threshold,
        "bor": mapped.value("bor", i),
        "density": point.n_boundaries / mapped.plane.n_gaps,
    }


def regime_rows(mapped: Mapped, matchings: Sequence[Matching]) -> Iterator[dict[str, Any]]:
    """Where each method's thresholds lie, its best point and its own; systems have one point."""
    plane, measured = mapped.plane, mapped.measured
    for name in (*plane.methods, *plane.systems):
        sweep, own = plane.sweep(name), mapped.own(name)
        for matching in matchings:
            measure = W_F1[matching]
            row: dict[str, Any] = {
                "corpus": mapped.name,
                "method": name,
                "matching": matching,
                "own": mapped.value(measure, own),
                "own_ci": measured.interval(measure, own),
                "own_bor": mapped.value("bor", own),
                "own_regime": regime(mapped.value("bor", own)),
            }
            if sweep:
                thresholds = [plane.points[i].threshold or 0.0 for i in sweep]
                found = by_regime(thresholds, [mapped.value("bor", i) for i in sweep])
                best = mapped.best(name, measure)
                row |= {each: spelt_range(found[each]) for each in REGIMES}
                row |= {
                    "best": mapped.value(measure, best),
                    "best_ci": measured.interval(measure, best),
                    "threshold": plane.points[best].threshold,
                    "bor": mapped.value("bor", best),
                    "mode": mapped.mode(measure, best),
                    "span": mapped.spread(name, measure),
                }
            else:
                row["mode"] = mapped.mode(measure, own)
            yield row


def audit_rows(mapped: Mapped) -> Iterator[dict[str, Any]]:
    """Every pair at its operating points, then at equal density where one can be had."""
    plane = mapped.plane
    for first, second in combinations((*plane.methods, *plane.systems), 2):
        yield _audit(mapped, first, second, "own", mapped.own(first), mapped.own(second))
        pair = matched_pair(mapped, first, second)
        if pair is not None:
            yield _audit(mapped, first, second, *pair)


def matched_pair(mapped: Mapped, first: str, second: str) -> tuple[str, int, int] | None:
    """Points of equal density: two methods at gold's, a method and a system at the system's."""
    plane = mapped.plane
    systems = [name for name in (first, second) if name in plane.systems]
    if len(systems) == 2:
        return None
    at, target = "gold's", plane.n_gold
    if systems:
        at, target = f"{systems[0]}'s", plane.points[mapped.own(systems[0])].n_boundaries
    places = [
        mapped.own(name) if name in systems else plane.find(name, ("matched",), target)
        for name in (first, second)
    ]
    assert places[0] is not None  # points were made for every such target
    assert places[1] is not None
    return at, places[0], places[1]


def _audit(mapped: Mapped, first: str, second: str, at: str, a: int, b: int) -> dict[str, Any]:
    row: dict[str, Any] = {"corpus": mapped.name, "first": first, "second": second, "at": at}
    for measure in ("f1", "w_f1", "w_f1_one_to_one", "bor"):
        row[measure] = mapped.value(measure, a) - mapped.value(measure, b)
        row[f"{measure}_ci"] = mapped.measured.interval(measure, a, b)
    densities = [regime(mapped.value("bor", each)) for each in (b, a)]
    return {**row, "shift": " → ".join(densities)}


def loss_rows(mapped: Mapped, matching: Matching) -> Iterator[dict[str, Any]]:
    """Where on a sweep each reference-free metric would stop, and what W-F1 is there."""
    plane, measured = mapped.plane, mapped.measured
    measure = W_F1[matching]
    for method in plane.methods:
        sweep = plane.sweep(method)
        w_f1 = measured.values[measure][sweep]
        for metric in mapped.metrics:
            losses = measured.values[metric][sweep]
            row: dict[str, Any] = {"corpus": mapped.name, "method": method, "metric": metric}
            row["best"] = float(w_f1.max())
            if not np.isnan(losses).all():
                lowest = sweep[int(np.nanargmin(losses))]
                row |= {
                    "lowest": mapped.value(metric, lowest),
                    "lowest_ci": measured.interval(metric, lowest),
                    "threshold": plane.points[lowest].threshold,
                    "bor": mapped.value("bor", lowest),
                    "w_f1": mapped.value(measure, lowest),
                    "rho": float(correlation(losses, 1 - w_f1, "spearman")),
                }
            yield row
