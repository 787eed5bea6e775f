"""The density study in tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from reffree.evaluate.result import Table, columns, estimate
from reffree.metrics.free.result import Unsegmented
from reffree.segmenters.gap_scores import CHANCE
from reffree.statistics.coefficients import correlation
from reffree.studies.density_curves.points import (
    LIMITS,
    REGIMES,
    W_F1,
    DensityResult,
    Matching,
)
from reffree.util.errors import listed

POINT_MEASURES = ("w_f1", "w_f1_one_to_one", "f1", "purity", "coverage")

CURVES = (
    *columns("text", "corpus", "method", "matching"),
    *columns("number", "threshold", bor="BOR", density="boundaries per gap"),
    *columns("text", "measure"),
    *columns("number", "value", "low", "high"),
)
POINTS = (
    *columns("text", "corpus", "method", "point"),
    *columns("count", target="boundaries wanted", boundaries="boundaries"),
    *columns("number", "threshold", bor="BOR", density="boundaries per gap"),
    *columns("number", *POINT_MEASURES),
)
BY_REGIME = (
    *columns("text", "corpus", "method", "matching", *REGIMES),
    *estimate("best", "best W-F1"),
    *columns("number", threshold="at threshold", bor="BOR"),
    *columns("text", mode="failure mode"),
    *columns("number", span="W-F1 over sweep"),
    *estimate("own", "own W-F1"),
    *columns("number", own_bor="own BOR"),
    *columns("text", own_regime="own density"),
)
AUDIT = (
    *columns("text", "corpus", "first", "second", at="density"),
    *columns("number", f1="ΔF1"),
    *estimate("w_f1", "ΔW-F1"),
    *estimate("w_f1_one_to_one", "one to one"),
    *estimate("bor", "ΔBOR"),
    *columns("text", shift="from second to first"),
)
LOSSES = (
    *columns("text", "corpus", "method", "metric"),
    *estimate("lowest", "lowest loss"),
    *columns("number", threshold="at threshold", bor="BOR", w_f1="W-F1 there", best="best W-F1"),
    *columns("number", rho="Spearman with 1 − W-F1"),
)
UNMATCHED = ("bor", "coverage", "purity")
"""Measures that no matching changes."""


def density_tables(
    results: Sequence[DensityResult], matchings: Sequence[Matching]
) -> Iterator[Table]:
    """Densities, pairs and losses to be read, then what charts are made from."""
    rows = [row for each in results for row in _regime_rows(each, matchings)]
    yield Table.of("regimes", "Thresholds by density, and the best of them", BY_REGIME, rows)
    title = "Pairs as they are and at equal density: first minus second"
    yield Table.of("audit", title, AUDIT, [row for each in results for row in _audit_rows(each)])
    title = "Where reference-free losses are lowest on the same sweep"
    rows = [row for each in results for row in _loss_rows(each, matchings[0])]
    yield Table.of("losses", title, LOSSES, rows)
    title = "Density and quality of every threshold and system"
    rows = [row for each in results for row in _curve_rows(each, matchings)]
    yield Table.of("curves", title, CURVES, rows, shown=False)
    title = "Systems, operating points and points of equal density"
    rows = [row for each in results for row in _point_rows(each)]
    yield Table.of("points", title, POINTS, rows, shown=False)


def _curve_rows(result: DensityResult, matchings: Sequence[Matching]) -> Iterator[dict[str, Any]]:
    """One row per threshold or system, matching and measure; most measures need no matching."""
    further = [name for name in result.scores if name not in (*W_F1.values(), *UNMATCHED)]
    for matching in matchings:
        for measure in (W_F1[matching], *UNMATCHED, *further):
            for i, point in enumerate(result.layout.points):
                if point.kind not in ("own", "matched"):
                    low, high = result.interval(measure, i) or (None, None)
                    yield {
                        **_place(result, i),
                        "matching": matching,
                        "measure": "w_f1" if measure == W_F1[matching] else measure,
                        "value": result.value(measure, i),
                        "low": low,
                        "high": high,
                    }


def _point_rows(result: DensityResult) -> Iterator[dict[str, Any]]:
    """Points that are on no curve: what the audit compares."""
    for i, point in enumerate(result.layout.points):
        if point.kind != "sweep":
            yield {
                **_place(result, i),
                "point": point.kind,
                "target": point.target,
                "boundaries": point.n_boundaries,
                **{name: result.value(name, i) for name in POINT_MEASURES},
            }


def _place(result: DensityResult, i: int) -> dict[str, Any]:
    point = result.layout.points[i]
    return {
        "corpus": result.name,
        "method": point.name,
        "threshold": point.threshold,
        "bor": result.value("bor", i),
        "density": point.n_boundaries / result.layout.n_gaps,
    }


def _regime_rows(result: DensityResult, matchings: Sequence[Matching]) -> Iterator[dict[str, Any]]:
    """Where each method's thresholds lie, its best point and its own; systems have one point."""
    layout = result.layout
    for name in (*layout.methods, *layout.systems):
        sweep, own = layout.sweep(name), layout.own(name)
        for matching in matchings:
            measure = W_F1[matching]
            row: dict[str, Any] = {
                "corpus": result.name,
                "method": name,
                "matching": matching,
                "own": result.value(measure, own),
                "own_ci": result.interval(measure, own),
                "own_bor": result.value("bor", own),
                "own_regime": result.regime(own),
                "mode": result.failure_mode(measure, own),
            }
            if sweep:
                best = result.best(name, measure)
                for regime in REGIMES:
                    found = [
                        layout.points[i].threshold for i in sweep if result.regime(i) == regime
                    ]
                    row[regime] = _spelt_range([each or 0.0 for each in found])
                row |= {
                    "best": result.value(measure, best),
                    "best_ci": result.interval(measure, best),
                    "threshold": layout.points[best].threshold,
                    "bor": result.value("bor", best),
                    "mode": result.failure_mode(measure, best),
                    "span": result.spread(name, measure),
                }
            yield row


def _spelt_range(thresholds: Sequence[float]) -> str | None:
    """First and last of thresholds, as a reader writes them.

    >>> _spelt_range([0.05, 0.1, 0.15]), _spelt_range([0.5]), _spelt_range([])
    ('0.05–0.15', '0.5', None)
    """
    if not thresholds:
        return None
    low, high = f"{min(thresholds):g}", f"{max(thresholds):g}"
    return low if low == high else f"{low}–{high}"


def _audit_rows(result: DensityResult) -> Iterator[dict[str, Any]]:
    """Every pair at its operating points, then at equal density where one can be had."""
    layout = result.layout
    for first, second in combinations((*layout.methods, *layout.systems), 2):
        as_they_are = "own", layout.own(first), layout.own(second)
        for at, a, b in filter(None, (as_they_are, layout.matched(first, second))):
            row: dict[str, Any] = {
                "corpus": result.name,
                "first": first,
                "second": second,
                "at": at,
                "shift": f"{result.regime(b)} → {result.regime(a)}",
            }
            for measure in ("f1", "w_f1", "w_f1_one_to_one", "bor"):
                row[measure] = result.value(measure, a) - result.value(measure, b)
                row[f"{measure}_ci"] = result.interval(measure, a, b)
            yield row


def _loss_rows(result: DensityResult, matching: Matching) -> Iterator[dict[str, Any]]:
    """Where on a sweep each reference-free metric would stop, and what W-F1 is there."""
    measure = W_F1[matching]
    for method in result.layout.methods:
        sweep = result.layout.sweep(method)
        w_f1 = result.values[measure][sweep]
        for metric in result.metrics:
            losses = result.values[metric][sweep]
            row: dict[str, Any] = {"corpus": result.name, "method": method, "metric": metric}
            row["best"] = float(w_f1.max())
            if not np.isnan(losses).all():
                lowest = sweep[int(np.nanargmin(losses))]
                row |= {
                    "lowest": result.value(metric, lowest),
                    "lowest_ci": result.interval(metric, lowest),
                    "threshold": result.layout.points[lowest].threshold,
                    "bor": result.value("bor", lowest),
                    "w_f1": result.value(measure, lowest),
                    "rho": float(correlation(losses, 1 - w_f1, "spearman")),
                }
            yield row


def density_answer(
    results: Sequence[DensityResult], matchings: Sequence[Matching]
) -> Iterator[str]:
    """What density does, what methods do at equal density, where losses would stop."""
    measure = W_F1[matchings[0]]
    for result in results:
        where = f"{result.name}: " if len(results) > 1 else ""
        layout = result.layout
        spans = [f"{result.spread(name, measure):.2f} ({name})" for name in layout.methods]
        sentence = f"{where}Sweeping the threshold moves W-F1 by {listed(spans)}"
        pairs = [layout.matched(*names) for names in combinations(layout.methods, 2)]
        gaps = [abs(result.value(measure, p[1]) - result.value(measure, p[2])) for p in pairs if p]
        if gaps:
            sentence += f"; at gold's density the methods differ by at most {max(gaps):.2f}"
        yield f"{sentence}."
        peaks = []
        for name in layout.methods:
            best = result.best(name, measure)
            value, bor = result.value(measure, best), result.value("bor", best)
            at_edge = ", its densest point" if best == layout.sweep(name)[0] else ""
            peaks.append(f"{value:.2f} at BOR {bor:.2f} ({name}{at_edge})")
        yield f"{where}W-F1 is highest at {listed(peaks)}."
        if CHANCE in layout.methods and len(layout.methods) > 1:
            yield f"{where}At gold's density {_beyond_chance(result, measure)}."


def _beyond_chance(result: DensityResult, measure: str) -> str:
    """Which methods rank gaps better than random scores do, at gold's density."""
    better: list[str] = []
    unclear: list[str] = []
    for name in result.layout.methods:
        pair = None if name == CHANCE else result.layout.matched(name, CHANCE)
        if pair is not None:
            interval = result.interval(measure, pair[1], pair[2])
            (better if interval and interval[0] > 0 else unclear).append(name)
    said = []
    if better:
        said.append(f"W-F1 puts {listed(better)} above random scores (95 % interval)")
    if unclear:
        said.append(f"W-F1 cannot tell {listed(unclear)} from random scores, or not for the better")
    return " and ".join(said)


def density_notes(result: DensityResult, unsegmented: Unsegmented) -> Iterator[str]:
    """Where densities could not be had, and where reference-free losses are of no boundary."""
    layout = result.layout
    for point in layout.points:
        if point.kind == "matched" and point.n_boundaries != point.target:
            yield (
                f"{result.name}: {point.name} has {point.n_boundaries:,} boundaries where it was "
                f"matched to {point.target:,}; no threshold comes nearer."
            )
    hypotheses = list(layout.corpus.hypotheses.values())
    bare = []
    for name in layout.methods:
        last = layout.sweep(name)[-1]
        n_bare = sum(len(each) == 1 for each in hypotheses[last])
        if n_bare:
            bare.append(f"{name} {n_bare}")
    if bare and result.metrics:
        yield (
            f"{result.name}: documents without a boundary ({unsegmented}) at the highest "
            f"threshold: {listed(bare)} of {len(layout.corpus)}."
        )


def density_reading(min_gap: int, metrics: Sequence[str]) -> dict[str, str]:
    """How to read columns and measures."""
    return {
        "bor": "Boundaries per gold boundary over the corpus: 1 is gold's density.",
        "conservative": f"Thresholds with BOR below {LIMITS.sparse_bor:g}: too few boundaries.",
        "balanced": f"Thresholds with BOR from {LIMITS.sparse_bor:g} to {LIMITS.dense_bor:g}.",
        "aggressive": f"Thresholds with BOR above {LIMITS.dense_bor:g}: too many boundaries.",
        "threshold": "On scores from 0 to 1: probabilities, as of a trained scorer, otherwise the "
        f"share of lower scores among all boundaries that can be {min_gap} units apart.",
        "best": "The highest W-F1 of the sweep: chosen on the same gold, so it flatters.",
        "span": "Highest minus lowest W-F1 over the sweep: what density alone can do.",
        "own": "A method as reffree segment runs it, a system as given, scores of --scores at a "
        "threshold of 0.5; random, and scores not from 0 to 1, have as many boundaries as gold.",
        "at": "own: each at its own density; gold's, or a system's: thresholds with that many "
        "boundaries, so that only their places differ.",
        "w_f1": "F of boundaries at most 1 unit from one of the other side; with many_to_one one "
        "boundary may serve several.",
        "coverage": "Share of units in the predicted segment that holds most of their gold one.",
        "purity": "Share of units in the gold segment that holds most of their predicted one.",
        "rho": "Spearman's correlation along the sweep of a loss with 1 − W-F1: 1 is a loss that "
        "would choose as gold does.",
        **{name: "On the same sweep; a reference-free loss is best when low." for name in metrics},
    }
