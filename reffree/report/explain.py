"""Explanations as a table, and as the text itself with its boundaries drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reffree.evaluate.table import DocumentScores, ScoreTable, rounded
from reffree.report.grid import Grid, console
from reffree.util.errors import visible

if TYPE_CHECKING:
    from rich.text import Text

    from reffree.evaluate.table import Addition, BoundaryEffect

HEADER = ("document", "system", "metric", "kind", "at", "contribution", "best_shift", "shift_gain")
NEGLIGIBLE = 5e-4
"""Changes of the loss that the three decimals shown do not see."""


def explanation_rows(table: ScoreTable) -> Iterator[list[object]]:
    """One row per boundary, and one per document for the best addition."""
    for row in table.documents or ():
        for name, explanation in (row.explanations or {}).items():
            for b in explanation.boundaries:
                effect = [rounded(b.contribution), b.best_shift, rounded(b.shift_gain)]
                yield [row.id, row.system, name, "boundary", b.at, *effect]
            if explanation.addition is not None:
                addition = explanation.addition
                gain = rounded(addition.gain)
                yield [row.id, row.system, name, "addition", addition.at, gain, None, None]


def explanations_grid(table: ScoreTable) -> Grid:
    """Write the same as cells of text."""
    rows = (map(_text, row) for row in explanation_rows(table))
    return Grid.of(HEADER, rows, n_labels=4)


def render_texts(table: ScoreTable, *, color: bool, width: int | None) -> str:
    """Draw every document under every system, for the table's first metric."""
    out, file = console(color=color, width=width)
    metric = table.metrics[0]
    for row in table.documents or ():
        if row.explanations is not None:
            for line in _drawn(row, metric):
                out.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    return file.getvalue()


def _drawn(row: DocumentScores, metric: str) -> Iterator[Text]:
    from rich.text import Text

    explanation = (row.explanations or {})[metric]
    value = row.metrics[metric].value
    shown = "undefined" if value is None else f"{value:.3f}"
    title = f"{row.id} · {row.system} · {metric} {shown}"
    yield Text(visible(title), style="bold")
    effects = {effect.at: effect for effect in explanation.boundaries}
    for i, unit in enumerate(row.units):
        if i in effects:
            yield _boundary(effects[i])
        time = f"[{row.clocks[i]}] " if row.clocks else ""
        yield Text(f"{i + 1:5}  {time}{visible(' '.join(unit.split()))}")
    yield Text(f"       {_addition(explanation.addition)}\n", style="italic")


def _boundary(effect: BoundaryEffect) -> Text:
    from rich.text import Text

    contribution = effect.contribution
    if contribution is None:
        style, said = "dim", "its effect is undefined"
    elif abs(contribution) < NEGLIGIBLE:
        style, said = "yellow", "makes no difference"
    elif contribution > 0:
        style, said = "green", f"helps by {contribution:.3f}"
    else:
        style, said = "red", f"harms by {-contribution:.3f}"
    if effect.best_shift and effect.shift_gain >= NEGLIGIBLE:
        units = "unit" if abs(effect.best_shift) == 1 else "units"
        side = "later" if effect.best_shift > 0 else "earlier"
        said += f"; {abs(effect.best_shift)} {units} {side} would gain {effect.shift_gain:.3f}"
    return Text(f"  ─── {said} ───", style=style)


def _addition(addition: Addition | None) -> str:
    if addition is None:
        return "Every unit is a segment: there is no place for one more boundary."
    if addition.gain < NEGLIGIBLE:
        return "No further boundary would lower the loss."
    return (
        f"One more boundary after unit {addition.at} would lower the loss by {addition.gain:.3f}."
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)
