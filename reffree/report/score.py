"""A score table in every output format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal, get_args

from reffree.report.grid import Cell, Grid, to_csv
from reffree.report.terminal import render_terminal
from reffree.study.table import CorpusScore, PartScore, ScoreTable, rounded

OutputFormat = Literal["table", "json", "csv", "md", "latex"]
OUTPUT_FORMATS: tuple[str, ...] = get_args(OutputFormat)

LEGEND = (
    "Losses: lower is better; * marks the best of a column. "
    "Under each score: its 95 % interval over documents."
)
CSV_HEADER = (
    *("system", "document", "metric", "value", "raw", "ci_low", "ci_high"),
    *("documents", "undefined", "direction", "signature"),
)


def render(table: ScoreTable, format: OutputFormat, *, color: bool, width: int | None) -> str:
    """Write a score table as text; ``color`` and ``width`` matter to the terminal format only."""
    if format == "json":
        return json.dumps(table.to_dict(), ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    if format == "csv":
        return to_csv(CSV_HEADER, list(_csv_rows(table)))
    grids = [systems_grid(table)]
    if table.documents is not None:
        grids.append(documents_grid(table))
    if format == "table":
        return render_terminal(grids, _remarks(table), color=color, width=width)
    if format == "md":
        remarks = "\n\n".join([*table.notes, f"`{table.signature}`"])
        return "\n".join(grid.to_markdown() for grid in grids) + f"\n{remarks}\n"
    comments = "".join(f"% {line}\n" for line in [table.signature, *table.notes])
    return comments + "\n".join(grid.to_latex() for grid in grids)


def systems_grid(table: ScoreTable) -> Grid:
    """One row per system: segments, then each metric with its interval."""
    best = {name: table.best(name) for name in table.metrics}
    rows = []
    for row in table.systems:
        cells = [Cell(row.system), Cell(str(row.segments))]
        for name, score in row.metrics.items():
            cells.append(_corpus_cell(score, is_best=row.system in best[name]))
        rows.append(tuple(cells))
    return Grid(("system", "segs", *table.metrics), tuple(rows))


def documents_grid(table: ScoreTable) -> Grid:
    """One row per document and system; with segments, their scores in order below."""
    rows = []
    for row in table.documents or ():
        cells = [Cell(row.id), Cell(row.system)]
        cells += [_part_cell(score) for score in row.metrics.values()]
        rows.append(tuple(cells))
    return Grid(("document", "system", *table.metrics), tuple(rows), n_labels=2)


def _corpus_cell(score: CorpusScore, *, is_best: bool) -> Cell:
    if score.value is None:
        return Cell("–", "undefined")
    detail = "" if score.ci is None else f"[{score.ci[0]:.3f}, {score.ci[1]:.3f}]"
    return Cell(f"{score.value:.3f}", detail, is_best)


def _part_cell(score: PartScore) -> Cell:
    detail = ""
    if score.segments is not None:
        detail = " ".join("–" if s.value is None else f"{s.value:.3f}" for s in score.segments)
    return Cell("–" if score.value is None else f"{score.value:.3f}", detail)


def _remarks(table: ScoreTable) -> list[str]:
    sizes = table.corpus
    remarks = [f"{sizes['documents']} documents, {sizes['units']} units. {LEGEND}"]
    if any(score.ci_reason for row in table.systems for score in row.metrics.values()):
        reasons = {s.ci_reason for row in table.systems for s in row.metrics.values()} - {None}
        remarks.append(f"No interval: {', '.join(sorted(map(str, reasons)))}.")
    undefined = {
        name: counts
        for name in table.metrics
        if any(counts := [row.metrics[name].undefined for row in table.systems])
    }
    for name, counts in undefined.items():
        listed = ", ".join(
            f"{row.system} {count}"
            for row, count in zip(table.systems, counts, strict=True)
            if count
        )
        remarks.append(f"Documents without a defined {name}: {listed}.")
    return [*remarks, *table.notes, table.signature]


def _csv_rows(table: ScoreTable) -> Iterator[list[object]]:
    for row in table.systems:
        for name, score in row.metrics.items():
            low, high = score.ci or (None, None)
            yield [
                row.system,
                None,
                name,
                rounded(score.value),
                rounded(score.raw),
                rounded(low),
                rounded(high),
                score.documents,
                score.undefined,
                score.direction,
                table.signature,
            ]
    for part_row in table.documents or ():
        for name, part in part_row.metrics.items():
            values = [rounded(part.value), rounded(part.raw), None, None, None]
            is_undefined = int(part.value is None)
            direction = table.systems[0].metrics[name].direction
            yield [
                part_row.system,
                part_row.id,
                name,
                *values,
                is_undefined,
                direction,
                table.signature,
            ]
