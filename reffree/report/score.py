"""A score table in every output format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reffree.evaluate.table import (
    POSTERIOR,
    CorpusScore,
    NullTest,
    PartScore,
    ScoreTable,
    rounded,
)
from reffree.report import explain
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
from reffree.util.errors import counted

CSV_HEADER = (
    *("system", "document", "segment", "metric", "value", "raw", "ci_low", "ci_high"),
    *("documents", "undefined", "weight", *POSTERIOR, "null_z", "null_p", "direction", "signature"),
)


def render(
    table: ScoreTable,
    format: OutputFormat,
    *,
    color: bool,
    width: int | None,
    chunkers: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Write a score table as text; ``color`` and ``width`` matter to the terminal format only.

    ``chunkers`` are sizes of chunks, a row for every chunker.
    """
    if format == "json":
        beside = {"chunkers": [dict(row) for row in chunkers]} if chunkers else {}
        return json_text(table.to_dict() | beside)
    is_explained = any(row.explanations is not None for row in table.documents or ())
    if format == "csv":
        if is_explained:
            return to_csv(explain.HEADER, explain.explanation_rows(table))
        return to_csv(CSV_HEADER, _csv_rows(table))
    grids = [systems_grid(table), *([chunks_grid(chunkers)] if chunkers else [])]
    texts = ""
    if is_explained and format == "table":
        texts = explain.render_texts(table, color=color, width=width)
    elif is_explained:
        grids.append(explain.explanations_grid(table))
    elif table.documents is not None:
        grids.append(documents_grid(table))
    legend = _legend(table)
    if format == "table":
        documents = counted(table.corpus["documents"], "document")
        legend = f"{documents}, {counted(table.corpus['units'], 'unit')}. {legend}"
    else:
        legend = legend.replace("* marks", "bold marks")
        legend = legend if format == "html" else legend.replace("Under", "Beside")
    remarks = [legend, *_counts(table), *table.notes]
    return texts + render_grids(
        *(grids, remarks, table.signature, format),
        color=color,
        width=width,
        opening=opening_of(table.verdict, format),
        command="score",
        question="How good are these segmentations?",
    )


def systems_grid(table: ScoreTable) -> Grid:
    """One row per system: segments, then each metric with its interval."""
    best = {name: table.best(name) for name in table.metrics}
    rows: list[list[Cell | str]] = []
    for row in table.systems:
        scores = [_corpus_cell(s, is_best=row.system in best[n]) for n, s in row.metrics.items()]
        rows.append([row.system, str(row.segments), *scores])
    return Grid.of(("system", "segs", *table.metrics), rows)


def chunks_grid(chunkers: Sequence[Mapping[str, Any]]) -> Grid:
    """One row per chunker: how large its chunks are, and what they cut apart."""
    rows = []
    for row in chunkers:
        sizes = [
            " / ".join(shown(row[f"{unit}_{which}"], ",d") for which in ("p50", "p95", "max"))
            if row[f"{unit}_max"] is not None
            else "–"
            for unit in ("characters", "tokens")
        ]
        parts = [
            f"{row[f'{kind}_cut']} of {row[kind]}" for kind in ("fences", "tables", "headings")
        ]
        rows.append(
            [row["chunker"], f"{row['chunks']:,}", *sizes, shown(row["at_cap"], ".0%"), *parts]
        )
    header = ("chunker", "chunks", "characters", "tokens", "at the cap", "fences cut")
    title = "Sizes of chunks (50 % / 95 % / largest), and what no chunk holds whole"
    return Grid.of((*header, "tables cut", "headings cut"), rows, title=title)


def documents_grid(table: ScoreTable) -> Grid:
    """One row per document and system; with segments, their scores in order below."""
    rows: list[list[Cell | str]] = []
    for row in table.documents or ():
        rows.append([row.id, row.system, *map(_part_cell, row.metrics.values())])
    return Grid.of(("document", "system", *table.metrics), rows, n_labels=2)


def _corpus_cell(score: CorpusScore, *, is_best: bool) -> Cell:
    if score.value is None:
        return Cell("–", ("undefined",))
    interval = [] if score.ci is None else [f"[{_short(score.ci[0])}, {_short(score.ci[1])}]"]
    return Cell(_short(score.value), (*interval, *_chance(score.null)), _spread(score), is_best)


def _short(value: float) -> str:
    """Three decimals, or three digits where there are more before the point."""
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def _part_cell(score: PartScore) -> Cell:
    segments = " ".join(shown(segment.value) for segment in score.segments or ())
    below = (*filter(None, [segments]), *_chance(score.null))
    beside = ""
    if score.value is not None:
        beside = _spread(score) or ("" if score.weight is None else f"× {score.weight:.3g}")
    return Cell(shown(score.value), below, beside)


def _spread(score: CorpusScore | PartScore) -> str:
    return "" if score.spread is None else f"± {_short(score.spread)}"


def _chance(null: NullTest | None) -> list[str]:
    return [] if null is None else [f"p {null.p:.3f}".replace("p 0.", "p .")]


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
        legend += " p: how often the same segment lengths in random order do as well."
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
            interval = map(rounded, score.ci or (None, None))
            counts = (*interval, score.documents, score.undefined, None)
            yield [
                *(row.system, None, None, name),
                *_csv_cells(score, counts),
                *(score.direction, table.signature),
            ]
    for document in table.documents or ():
        for name, part in document.metrics.items():
            for segment, score_of_part in enumerate([part, *(part.segments or ())]):
                is_undefined = int(score_of_part.value is None)
                counts = (None, None, None, is_undefined, rounded(score_of_part.weight))
                yield [
                    *(document.system, document.id, segment or None, name),
                    *_csv_cells(score_of_part, counts),
                    *(table.systems[0].metrics[name].direction, table.signature),
                ]


def _csv_cells(score: CorpusScore | PartScore, counts: tuple[object, ...]) -> list[object]:
    """From ``value`` to ``null_p``; ``counts`` are the interval, the counts and the weight."""
    z, p = (None, None) if score.null is None else (score.null.z, score.null.p)
    values = rounded(score.value), rounded(score.raw)
    return [*values, *counts, *score.posterior.values(), rounded(z), rounded(p)]
