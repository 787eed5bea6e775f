"""A comparison of systems in every output format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reffree.evaluate.table import rounded
from reffree.report.grid import Cell, Grid, json_text, latex_page, markdown_page, to_csv
from reffree.report.score import OutputFormat
from reffree.report.terminal import render_terminal
from reffree.statistics.resampling import MIN_DOCUMENTS

if TYPE_CHECKING:
    from reffree.studies.comparison import Comparison, MetricComparison

CSV_HEADER = (
    *("metric", "a", "b", "difference", "ci_low", "ci_high", "p", "p_holm", "documents", "better"),
    *("value_a", "value_b", "letters_a", "letters_b", "direction", "alpha", "signature"),
)


def render(comparison: Comparison, format: OutputFormat, *, color: bool, width: int | None) -> str:
    """Write a comparison as text; ``color`` and ``width`` matter to the terminal format only."""
    if format == "json":
        return json_text(comparison.to_dict())
    if format == "csv":
        return to_csv(CSV_HEADER, list(_csv_rows(comparison)))
    grids = [
        grid
        for name, metric in comparison.metrics.items()
        for grid in (ranking_grid(name, metric), pairs_grid(name, metric))
    ]
    remarks = [*_legend(comparison), *comparison.notes]
    if format == "table":
        remarks = [*remarks, comparison.signature]
        return render_terminal(grids, remarks, color=color, width=width)
    if format == "md":
        return markdown_page(grids, remarks, comparison.signature)
    return latex_page(grids, [comparison.signature, *remarks])


def ranking_grid(name: str, metric: MetricComparison) -> Grid:
    """One row per system, best first."""
    rows = [
        (
            Cell(row.system),
            Cell("–" if row.value is None else f"{row.value:.3f}"),
            Cell(row.letters or "–"),
            Cell(str(row.documents)),
        )
        for row in metric.ranking
    ]
    return Grid((name, "value", "letters", "documents"), tuple(rows))


def pairs_grid(name: str, metric: MetricComparison) -> Grid:
    """One row per pair: the first system minus the second."""
    rows = [
        (
            Cell(pair.a),
            Cell(pair.b),
            Cell(_number(pair.difference, "+.3f")),
            Cell("–" if pair.ci is None else f"[{pair.ci[0]:+.3f}, {pair.ci[1]:+.3f}]"),
            Cell(_number(pair.p, ".4f")),
            Cell(_number(pair.p_holm, ".4f")),
            Cell(str(pair.documents)),
            Cell(pair.better or "–"),
        )
        for pair in metric.pairs
    ]
    header = ("difference", "95 % interval", "p", "p Holm", "documents", "better")
    return Grid((f"{name}: a", "b", *header), tuple(rows), n_labels=2)


def _number(value: float | None, spec: str) -> str:
    return "–" if value is None else format(rounded(value), spec)


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
                name,
                pair.a,
                pair.b,
                *map(rounded, (pair.difference, low, high, pair.p, pair.p_holm)),
                pair.documents,
                pair.better,
                rounded(a.value),
                rounded(b.value),
                a.letters,
                b.letters,
                metric.direction,
                comparison.alpha,
                comparison.signature,
            ]
