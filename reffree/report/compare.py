"""A comparison of systems in every output format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reffree.evaluate.table import judged_by, rounded
from reffree.report.grid import (
    Cell,
    Grid,
    OutputFormat,
    json_text,
    opening_of,
    render_grids,
    shown,
    to_csv,
)
from reffree.statistics.resampling import MIN_DOCUMENTS

if TYPE_CHECKING:
    from reffree.studies.comparison import Comparison, MetricComparison, RankedSystem

CSV_HEADER = (
    *("metric", "a", "b", "difference", "ci_low", "ci_high", "p", "p_holm", "documents", "better"),
    *("value_a", "value_b", "letters_a", "letters_b", "direction", "alpha", "signature"),
)


def render(comparison: Comparison, format: OutputFormat, *, color: bool, width: int | None) -> str:
    """Write a comparison as text; ``color`` and ``width`` matter to the terminal format only."""
    if format == "json":
        return json_text(comparison.to_dict())
    if format == "csv":
        return to_csv(CSV_HEADER, _csv_rows(comparison))
    details = [
        grid
        for name, metric in comparison.metrics.items()
        for grid in (ranking_grid(name, metric), pairs_grid(name, metric))
    ]
    grids = [*([summary_grid(comparison)] if len(comparison.metrics) > 1 else []), *details]
    remarks = [*_legend(comparison), *comparison.notes]
    return render_grids(
        *(grids, remarks, comparison.signature, format),
        color=color,
        width=width,
        signature_first=True,
        opening=opening_of(comparison.verdict, format),
        command="compare",
        question="Which system is better?",
    )


def summary_grid(comparison: Comparison) -> Grid:
    """One row per system, best first by the metric to judge by: each metric's value, letters."""
    ranked = {
        name: {row.system: row for row in metric.ranking}
        for name, metric in comparison.metrics.items()
    }
    best = {name: metric.ranking[0].value for name, metric in comparison.metrics.items()}

    def cell(name: str, row: RankedSystem) -> Cell:
        is_best = row.value is not None and row.value == best[name]
        return Cell(shown(row.value), beside=row.letters, is_best=is_best)

    rows: list[list[Cell | str]] = [
        [system, *(cell(name, rows[system]) for name, rows in ranked.items())]
        for system in ranked[judged_by(tuple(ranked))]
    ]
    return Grid.of(("system", *ranked), rows)


def ranking_grid(name: str, metric: MetricComparison) -> Grid:
    """One row per system, best first."""
    rows = [
        (row.system, shown(row.value), row.letters or "–", str(row.documents))
        for row in metric.ranking
    ]
    return Grid.of((name, "value", "letters", "documents"), rows)


def pairs_grid(name: str, metric: MetricComparison) -> Grid:
    """One row per pair: the first system minus the second."""
    rows = [
        (
            *(pair.a, pair.b, shown(rounded(pair.difference), "+.3f")),
            "–" if pair.ci is None else f"[{pair.ci[0]:+.3f}, {pair.ci[1]:+.3f}]",
            *(shown(rounded(p), ".4f") for p in (pair.p, pair.p_holm)),
            *(str(pair.documents), pair.better or "–"),
        )
        for pair in metric.pairs
    ]
    header = ("difference", "95 % interval", "p", "p Holm", "documents", "better")
    return Grid.of((f"{name}: a", "b", *header), rows, n_labels=2)


def _legend(comparison: Comparison) -> list[str]:
    sizes, alpha = comparison.corpus, f"{comparison.alpha:g}"
    higher = [name for name, m in comparison.metrics.items() if m.direction == "higher"]
    direction = "Lower is better" + (f" (higher for {', '.join(higher)})" if higher else "")
    legend = [
        f"{sizes['documents']} documents, {sizes['units']} units. {direction}; systems that share "
        f"a letter cannot be told apart at alpha {alpha}.",
        "Documents are the unit: differences are a minus b over the documents both have a score "
        "for; p from swapping the two systems document by document, p Holm corrected for the "
        "metric's pairs, intervals not corrected.",
    ]
    pairs = [pair for metric in comparison.metrics.values() for pair in metric.pairs]
    if any(pair.ci is None for pair in pairs):
        legend.append(
            f"No interval: fewer than {MIN_DOCUMENTS} documents with a score from both systems."
        )
    return legend


def _csv_rows(comparison: Comparison) -> Iterator[list[object]]:
    for name, metric in comparison.metrics.items():
        ranked = {row.system: row for row in metric.ranking}
        for pair in metric.pairs:
            low, high = pair.ci or (None, None)
            a, b = ranked[pair.a], ranked[pair.b]
            yield [
                *(name, pair.a, pair.b),
                *map(rounded, (pair.difference, low, high, pair.p, pair.p_holm)),
                *(pair.documents, pair.better, rounded(a.value), rounded(b.value)),
                *(a.letters, b.letters, metric.direction, comparison.alpha, comparison.signature),
            ]
