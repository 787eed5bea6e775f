"""Scores as a result: wide tables to read, a tidy one for programs, explanations in the text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reffree.evaluate.result import DocumentText, Field, Result, Table, columns, format_value
from reffree.evaluate.table import (
    POSTERIOR,
    CorpusScore,
    NullTest,
    PartScore,
    ScoreTable,
    is_published,
)
from reffree.report.grid import console
from reffree.util.errors import counted, listed_briefly, visible

if TYPE_CHECKING:
    from rich.text import Text

PUBLISHED = "Published scores of cohesion, which need no gold"

NEGLIGIBLE = 5e-4
"""Changes of the loss that the three decimals shown do not see."""

MOST_COLUMNS = 7
"""Of more metrics the published ones that need no gold get a table of their own."""

SYSTEMS = (
    *columns("text", "system"),
    *columns("count", segments="segs"),
    *columns("text", "metric"),
    Field("value", "value", "score", interval="ci", best="best", beside="spread", below="null"),
    *columns("interval", "ci"),
    *columns("count", best=""),
    *columns("text", "spread", "null"),
)
DOCUMENTS = (
    *columns("text", "document", "system", "metric"),
    Field("value", "value", "number", beside="weight", below="parts"),
    *columns("text", "weight", "parts"),
)
SCORES = (
    *columns("text", "system", "document"),
    *columns("count", "segment"),
    *columns("text", "metric"),
    *columns("number", "value", "raw"),
    *columns("interval", "ci"),
    *columns("count", "documents", "undefined"),
    *columns("number", "weight", *POSTERIOR, "null_z", "null_p"),
    *columns("text", "direction"),
    *columns("interval", "allowed"),
)
EXPLANATIONS = (
    *columns("text", "document", "system", "metric", "kind"),
    *columns("count", "at"),
    *columns("number", "contribution", "best_shift", "shift_gain"),
)


def result_of_scores(table: ScoreTable) -> Result:
    """Return the tables that people read, the one for CSV, and what is to be known of them."""
    tables = list(_system_tables(table))
    explained = [row for row in table.documents or () if row.explanations is not None]
    if table.documents is not None:
        rows = list(_document_rows(table))
        shown = not explained
        tables.append(Table.of("documents", "", DOCUMENTS, rows, wide="metric", shown=shown))
    if explained:
        tables.append(Table.of("explanations", "", EXPLANATIONS, list(_explanation_rows(table))))
    else:
        tables.append(Table.of("scores", "", SCORES, list(_tidy_rows(table)), shown=False))
    return Result(
        command="score",
        question="How good are these segmentations?",
        verdict=table.verdict,
        signature=table.signature,
        settings={},
        corpora=(dict(table.corpus),),
        tables=tuple(tables),
        notes=table.notes,
        texts=tuple(DocumentText("", row.id, row.units, {}, row.clocks) for row in explained),
        legend=(_legend(table), *_counts(table)),
    )


def _system_tables(table: ScoreTable) -> Iterator[Table]:
    """Yield the table of systems, and where it would be too wide one of the published scores."""
    apart = [name for name in table.metrics if is_published(name)]
    if len(table.metrics) <= MOST_COLUMNS or len(apart) == len(table.metrics):
        apart = []
    kept = [name for name in table.metrics if name not in apart]
    yield Table.of("systems", "", SYSTEMS, list(_system_rows(table, kept)), wide="metric")
    if apart:
        rows = list(_system_rows(table, apart))
        yield Table.of("published", PUBLISHED, SYSTEMS, rows, wide="metric")


def _system_rows(table: ScoreTable, metrics: Sequence[str]) -> Iterator[dict[str, Any]]:
    best = {name: table.best(name) for name in metrics}
    for row in table.systems:
        for name in metrics:
            score = row.metrics[name]
            yield {
                "system": row.system,
                "segments": row.segments,
                "metric": name,
                "value": score.value,
                "ci": score.ci,
                "best": int(row.system in best[name] and score.allowed is None),
                "spread": _spread(score),
                "null": _below(score),
            }


def _document_rows(table: ScoreTable) -> Iterator[dict[str, Any]]:
    for row in table.documents or ():
        for name, score in row.metrics.items():
            segments = [format_value(each.value, "number") for each in score.segments or ()]
            weight = "" if score.weight is None else f"× {score.weight:.3g}"
            yield {
                **{"document": row.id, "system": row.system, "metric": name},
                "value": score.value,
                "weight": "" if score.value is None else _spread(score) or weight,
                "parts": " ".join(filter(None, [*segments, _chance(score.null)])),
            }


def _tidy_rows(table: ScoreTable) -> Iterator[dict[str, Any]]:
    """One row per system and metric, then per document, then per segment where there are any."""

    def numbers(score: CorpusScore | PartScore, name: str) -> dict[str, Any]:
        z, p = (None, None) if score.null is None else (score.null.z, score.null.p)
        direction = table.systems[0].metrics[name].direction
        own = {"metric": name, "direction": direction, "value": score.value, "raw": score.raw}
        return {**own, **score.posterior, "allowed": score.allowed, "null_z": z, "null_p": p}

    for row in table.systems:
        for name, score in row.metrics.items():
            counts = {"documents": score.documents, "undefined": score.undefined, "ci": score.ci}
            yield {"system": row.system, **counts, **numbers(score, name)}
    for document in table.documents or ():
        of = {"system": document.system, "document": document.id}
        for name, part in document.metrics.items():
            for segment, each in enumerate([part, *(part.segments or ())]):
                part_of = {"segment": segment or None, "undefined": int(each.value is None)}
                yield {**of, **part_of, "weight": each.weight, **numbers(each, name)}


def _explanation_rows(table: ScoreTable) -> Iterator[tuple[Any, ...]]:
    """One row per boundary, and one per document for the best addition."""
    for row in table.documents or ():
        for name, explanation in (row.explanations or {}).items():
            own = (row.id, row.system, name)
            for each in explanation.boundaries:
                effect = (each.contribution, each.best_shift, each.shift_gain)
                yield (*own, "boundary", each.at, *effect)
            if (addition := explanation.addition) is not None:
                yield (*own, "addition", addition.at, addition.gain, None, None)


def _spread(score: CorpusScore | PartScore) -> str:
    return "" if score.spread is None else f"± {format_value(score.spread, 'score')}"


def _below(score: CorpusScore) -> str:
    """Say what stands below a score: that there is none, its p, or that it is not allowed."""
    if score.value is None:
        return "undefined"
    low, high = score.allowed or (-math.inf, math.inf)
    if low <= score.value <= high:
        return _chance(score.null)
    return "coarse" if score.value < low else "fine"


def _chance(null: NullTest | None) -> str:
    return "" if null is None else f"p {null.p:.3f}".replace("p 0.", "p .")


def _legend(table: ScoreTable) -> str:
    """Say how to read the cells, as far as there is something in them."""
    cells = [score for row in table.systems for score in row.metrics.values()]
    legend = (
        f"{counted(table.corpus['documents'], 'document')}, "
        f"{counted(table.corpus['units'], 'unit')}. {_directions(table)}; the best of a column is "
        "marked."
    )
    allowed = next((score.allowed for score in cells if score.allowed), None)
    if allowed is not None:
        legend += (
            f" granularity: the text allows {allowed[0]:.2f} to {allowed[1]:.2f}; less is coarse, "
            "more is fine."
        )
    if any(score.ci for score in cells):
        legend += " With each score: its 95 % interval over documents."
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
    higher, toward = (
        [name for name, direction in directions.items() if direction == wanted]
        for wanted in ("higher", "toward_1")
    )
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
            undefined.setdefault(listed_briefly(without), []).append(name)
        if bare:
            which = "" if len(bare) == len(scores) else f" of {listed_briefly(bare)}"
            withheld.setdefault(which, []).append(name)
    lines = [
        f"Documents without a defined {', '.join(names)}: {listed}."
        for listed, names in undefined.items()
    ]
    for which, names in withheld.items():
        listed = "" if len(names) == len(table.metrics) else f" for {', '.join(names)}"
        lines.append(f"No interval{listed}{which}: too few documents with a score.")
    cells = [(row.system, score) for row in table.systems for score in row.metrics.values()]
    if left_out := [f"{system} {score.left_out}" for system, score in cells if score.left_out]:
        lines.append(f"Neighbours with equal centroids left out: {listed_briefly(left_out)}.")
    return lines + _failure_modes(table)


def _failure_modes(table: ScoreTable) -> list[str]:
    """Name each system's regime, and by which thresholds."""
    modes = {row.system: row.failure_mode for row in table.systems if row.failure_mode is not None}
    if not modes:
        return []
    listed = listed_briefly([f"{system} {mode.label}" for system, mode in modes.items()])
    limits = next(iter(modes.values())).thresholds
    return [
        f"Regimes of Coen's Table 2: {listed}; high is w_f1 from {limits.high_w_f1:g}, purity and "
        f"coverage from {limits.high_overlap:g}, and bor is 1 from {limits.sparse_bor:g} to "
        f"{limits.dense_bor:g}."
    ]


def draw_explanations(result: Result, *, color: bool, width: int | None) -> str:
    """Draw every document under every system, with what its boundaries do to the first metric."""
    out, file = console(color=color, width=width)
    explanations = result.table("explanations")
    metric = result.table("systems").column("metric")[0]
    values = {
        (row["document"], row["system"]): row["value"]
        for row in result.table("documents").records(metric=metric)
    }
    for text, ((document, system), value) in zip(result.texts, values.items(), strict=True):
        of = explanations.records(document=document, system=system, metric=metric)
        shown = "undefined" if value is None else f"{value:.3f}"
        title = f"{document} · {system} · {metric} {shown}"
        for line in _text_lines(title, text, of):
            out.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    return file.getvalue()


def _text_lines(
    title: str, text: DocumentText, explained: Sequence[Mapping[str, Any]]
) -> Iterator[Text]:
    """Yield the title, the units with boundaries between them, and what one more would do."""
    from rich.text import Text

    yield Text(visible(title), style="bold")
    effects = {row["at"]: row for row in explained if row["kind"] == "boundary"}
    for i, unit in enumerate(text.units):
        if i in effects:
            yield _boundary_line(effects[i])
        time = f"[{text.clocks[i]}] " if text.clocks else ""
        yield Text(f"{i + 1:5}  {time}{visible(' '.join(unit.split()))}")
    more = next((row for row in explained if row["kind"] == "addition"), None)
    if more is None:
        said = "Every unit is a segment: there is no place for one more boundary."
    elif more["contribution"] < NEGLIGIBLE:
        said = "No further boundary would lower the loss."
    else:
        gain = more["contribution"]
        said = f"One more boundary after unit {more['at']} would lower the loss by {gain:.3f}."
    yield Text(f"       {said}\n", style="italic")


def _boundary_line(effect: Mapping[str, Any]) -> Text:
    """Say what a boundary does, and whether it would do better elsewhere."""
    from rich.text import Text

    contribution, shift, gain = (
        effect[name] for name in ("contribution", "best_shift", "shift_gain")
    )
    if contribution is None:
        style, said = "dim", "its effect is undefined"
    elif abs(contribution) < NEGLIGIBLE:
        style, said = "yellow", "makes no difference"
    elif contribution > 0:
        style, said = "green", f"helps by {contribution:.3f}"
    else:
        style, said = "red", f"harms by {-contribution:.3f}"
    if shift and gain >= NEGLIGIBLE:
        side = "later" if shift > 0 else "earlier"
        said += f"; {counted(abs(shift), 'unit')} {side} would gain {gain:.3f}"
    return Text(f"  ─── {said} ───", style=style)
