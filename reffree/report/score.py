"""A score table in every output format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from reffree.errors import counted
from reffree.evaluate.table import (
    POSTERIOR,
    CorpusScore,
    NullTest,
    PartScore,
    ScoreTable,
    rounded,
)
from reffree.report import explain
from reffree.report.grid import Cell, Grid, json_text, latex_page, markdown_page, to_csv
from reffree.report.terminal import render_terminal

OutputFormat = Literal["table", "json", "csv", "md", "latex"]
OUTPUT_FORMATS: tuple[str, ...] = get_args(OutputFormat)

CSV_HEADER = (
    *("system", "document", "segment", "metric", "value", "raw", "ci_low", "ci_high"),
    *("documents", "undefined", "weight", *POSTERIOR, "null_z", "null_p", "direction", "signature"),
)


def render(table: ScoreTable, format: OutputFormat, *, color: bool, width: int | None) -> str:
    """Write a score table as text; ``color`` and ``width`` matter to the terminal format only."""
    if format == "json":
        return json_text(table.to_dict())
    is_explained = any(row.explanations is not None for row in table.documents or ())
    if format == "csv":
        if is_explained:
            return to_csv(explain.HEADER, list(explain.explanation_rows(table)))
        return to_csv(CSV_HEADER, list(_csv_rows(table)))
    grids = [systems_grid(table)]
    if format == "table" and is_explained:
        texts = explain.render_texts(table, color=color, width=width)
        return f"{texts}{render_terminal(grids, _remarks(table), color=color, width=width)}"
    if is_explained:
        grids.append(explain.explanations_grid(table))
    elif table.documents is not None:
        grids.append(documents_grid(table))
    if format == "table":
        return render_terminal(grids, _remarks(table), color=color, width=width)
    legend = _legend(table).replace("* marks", "bold marks").replace("Under", "Beside")
    remarks = [legend, *_counts(table), *table.notes]
    if format == "md":
        return markdown_page(grids, remarks, table.signature)
    return latex_page(grids, [*remarks, table.signature])


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
    detail = "" if score.ci is None else f"[{_short(score.ci[0])}, {_short(score.ci[1])}]"
    return Cell(_short(score.value), detail, is_best, _chance(score.null), _spread(score))


def _short(value: float) -> str:
    """Three decimals, or three digits where there are more before the point."""
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def _part_cell(score: PartScore) -> Cell:
    detail = ""
    if score.segments is not None:
        detail = " ".join("–" if s.value is None else f"{s.value:.3f}" for s in score.segments)
    if score.value is None:
        return Cell("–", detail, chance=_chance(score.null))
    beside = _spread(score) or ("" if score.weight is None else f"× {score.weight:.3g}")
    return Cell(f"{score.value:.3f}", detail, chance=_chance(score.null), beside=beside)


def _spread(score: CorpusScore | PartScore) -> str:
    return "" if score.spread is None else f"± {_short(score.spread)}"


def _chance(null: NullTest | None) -> str:
    if null is None:
        return ""
    return f"p {null.p:.3f}".replace("p 0.", "p .")


def _remarks(table: ScoreTable) -> list[str]:
    documents = counted(table.corpus["documents"], "document")
    size = f"{documents}, {counted(table.corpus['units'], 'unit')}."
    return [f"{size} {_legend(table)}", *_counts(table), *table.notes, table.signature]


def _legend(table: ScoreTable) -> str:
    """Say how to read the cells, as far as there is something in them."""
    cells = [score for row in table.systems for score in row.metrics.values()]
    legend = f"{_directions(table)}; * marks the best of a column."
    if any(score.ci for score in cells):
        legend += " Under each score: its 95 % interval over documents."
    if any(score.spread is not None for score in cells):
        legend += " ±: standard deviation over segmentations that the text makes likely."
    parts = [score for row in table.documents or () for score in row.metrics.values()]
    if any(score.weight is not None for score in parts):
        legend += " ×: what a document counts for in the corpus's score, where that is not 1."
    if any(score.null for score in cells):
        legend += (
            " p: how often the same segment lengths in random order do as well; if small, the "
            "boundaries are not where chance would put them."
        )
    return legend


def _directions(table: ScoreTable) -> str:
    """Say which way is better."""
    directions = {name: score.direction for name, score in table.systems[0].metrics.items()}
    higher = [name for name, direction in directions.items() if direction == "higher"]
    toward = [name for name, direction in directions.items() if direction == "toward_1"]
    others = len(directions) - len(higher) - len(toward)
    parts = ["lower is better"] if others else []
    if higher:
        parts.append(f"for {', '.join(higher)} higher" if others else "higher is better")
    if toward:
        parts.append(f"for {', '.join(toward)} 1 is best")
    return "; ".join(parts).capitalize()


def _counts(table: ScoreTable) -> list[str]:
    """Documents without a score and scores without an interval, metrics that agree merged."""
    undefined: dict[str, list[str]] = {}
    withheld: dict[str, list[str]] = {}
    for name in table.metrics:
        scores = {row.system: row.metrics[name] for row in table.systems}
        without = [f"{system} {s.undefined}" for system, s in scores.items() if s.undefined]
        bare = [system for system, s in scores.items() if s.ci_reason is not None]
        if without:
            undefined.setdefault(", ".join(without), []).append(name)
        if bare:
            which = "" if len(bare) == len(scores) else f" of {', '.join(bare)}"
            withheld.setdefault(which, []).append(name)
    lines = [
        f"Documents without a defined {', '.join(names)}: {listed}."
        for listed, names in undefined.items()
    ]
    for which, names in withheld.items():
        listed = "" if len(names) == len(table.metrics) else f" for {', '.join(names)}"
        lines.append(f"No interval{listed}{which}: too few documents with a score.")
    left_out = [
        f"{row.system} {score.left_out}"
        for row in table.systems
        for score in row.metrics.values()
        if score.left_out
    ]
    if left_out:
        lines.append(f"Neighbours with equal centroids left out: {', '.join(left_out)}.")
    return lines + _failure_modes(table)


def _failure_modes(table: ScoreTable) -> list[str]:
    """Name each system's regime, and by which thresholds."""
    modes = {row.system: row.failure_mode for row in table.systems if row.failure_mode is not None}
    if not modes:
        return []
    listed = ", ".join(f"{system} {mode.label}" for system, mode in modes.items())
    limits = next(iter(modes.values())).thresholds
    return [
        f"Regimes of Coen's Table 2: {listed}; high is w_f1 from {limits.high_w_f1:g}, purity and "
        f"coverage from {limits.high_overlap:g}, and bor is 1 from {limits.sparse_bor:g} to "
        f"{limits.dense_bor:g}."
    ]


def _csv_rows(table: ScoreTable) -> Iterator[list[object]]:
    for row in table.systems:
        for name, score in row.metrics.items():
            low, high = score.ci or (None, None)
            yield [
                row.system,
                None,
                None,
                name,
                rounded(score.value),
                rounded(score.raw),
                rounded(low),
                rounded(high),
                score.documents,
                score.undefined,
                None,
                *_posterior_columns(score),
                *_null_columns(score.null),
                score.direction,
                table.signature,
            ]
    for part_row in table.documents or ():
        for name, part in part_row.metrics.items():
            direction = table.systems[0].metrics[name].direction
            for segment, score_of_part in enumerate([part, *(part.segments or ())]):
                yield [
                    part_row.system,
                    part_row.id,
                    segment or None,
                    name,
                    rounded(score_of_part.value),
                    rounded(score_of_part.raw),
                    *(None, None, None),
                    int(score_of_part.value is None),
                    rounded(score_of_part.weight),
                    *_posterior_columns(score_of_part),
                    *_null_columns(score_of_part.null),
                    direction,
                    table.signature,
                ]


def _posterior_columns(score: CorpusScore | PartScore) -> list[float | None]:
    return [rounded(getattr(score, name)) for name in POSTERIOR]


def _null_columns(null: NullTest | None) -> list[float | None]:
    return [None, None] if null is None else [rounded(null.z), rounded(null.p)]
