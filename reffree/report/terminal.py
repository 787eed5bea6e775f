"""Grids as rich tables."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from reffree.errors import visible
from reffree.report.grid import Cell, Grid

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

PLAIN_WIDTH = 10_000
"""Columns of output that no terminal shows, so that nothing is folded in files and pipes."""

LONG_NAME = 12

MOST_LABELS = 2 / 3
"""Of the terminal's width: where names of rows take more, fewer of them are repeated."""


def console(*, color: bool, width: int | None) -> tuple[Console, io.StringIO]:
    """Return a console that writes into a string."""
    from rich.console import Console

    out = io.StringIO()
    made = Console(
        file=out,
        force_terminal=color,
        no_color=not color,
        width=width or PLAIN_WIDTH,
        highlight=False,
    )
    return made, out


def render_terminal(
    grids: Sequence[Grid],
    remarks: Sequence[str],
    *,
    color: bool,
    width: int | None,
    opening: Sequence[str] = (),
) -> str:
    """Draw the grids, then one remark a line; the last one, the signature, is dimmed.

    ``opening`` stands above the grids, one sentence a line.
    """
    from rich.text import Text

    # A column too wide for the terminal runs over its edge: cut numbers would lie.
    wide, drawn = console(color=color, width=None)
    for grid in grids:
        if grid.title:
            wide.print(Text(f"\n{visible(grid.title)}", style="bold"))
        for part in _fitting(grid, wide, width):
            wide.print(_table(part, gap=2))
    screen, out = console(color=color, width=width)
    # The box draws empty lines above and below; one below is enough.
    lines = ["", *(line.rstrip() for line in drawn.getvalue().splitlines())]
    kept = [line for before, line in pairwise(lines) if line or before]
    if opening:
        kept = ["", *kept]
    for sentence in opening:
        screen.print(Text(visible(sentence), style="bold"), soft_wrap=width is None)
    out.write("\n".join(kept) + "\n")
    for i, remark in enumerate(remarks):
        style = "dim" if i == len(remarks) - 1 else ""
        screen.print(Text(visible(remark), style=style), soft_wrap=width is None)
    return out.getvalue()


def _fitting(grid: Grid, wide: Console, width: int | None) -> Iterator[Grid]:
    """Split a grid that is too wide into several, each with the columns that name its rows."""
    n_fixed = max(2, grid.n_labels)
    if width is None or n_fixed >= len(grid.header):
        yield grid
        return
    while n_fixed > 2 and _width(grid.columns(range(n_fixed)), wide) > MOST_LABELS * width:
        n_fixed -= 1
    start = n_fixed
    while start < len(grid.header):
        stop = len(grid.header)
        while stop > start + 1:
            part = grid.columns([*range(n_fixed), *range(start, stop)])
            if _width(part, wide) <= width:
                break
            stop -= 1
        yield grid.columns([*range(n_fixed), *range(start, stop)])
        start = stop


def _width(grid: Grid, wide: Console) -> int:
    return wide.measure(_table(grid, gap=2)).maximum


def _heading(name: str) -> str:
    """A long name on two lines."""
    name = visible(name)
    head, separator, tail = name.rpartition("_")
    return f"{head}{separator}\n{tail}" if head and len(name) > LONG_NAME else name


def _table(grid: Grid, *, gap: int) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, gap - 1))
    for i, name in enumerate(grid.header):
        is_label = i < grid.n_labels
        justify = "left" if is_label else "right"
        table.add_column(_heading(name), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in grid.rows:
        table.add_row(*(_cell(cell) for cell in row))
    return table


def _cell(cell: Cell) -> Text:
    from rich.text import Text

    shown = visible(cell.text)
    text = Text(f"*{shown}" if cell.is_best else shown)
    if cell.is_best:
        text.stylize("bold green")
    if cell.beside:
        text.append(f" {visible(_compact(cell.beside))}", style="dim")
    if cell.detail:
        text.append(f"\n{visible(_compact(cell.detail))}", style="dim")
    if cell.chance:
        text.append(f"\n{cell.chance}", style="dim")
    return text


def _compact(detail: str) -> str:
    """``[0.391, 0.431]`` as ``.391–.431``, ``± 0.113`` as ``±.113``: columns stay narrow."""
    if detail.startswith("["):
        low, high = map(_no_zero, detail.strip("[]").split(", "))
        return f"{low}–{high}" if not high.startswith("-") else f"{low} to {high}"
    if detail.startswith("± "):
        return f"±{_no_zero(detail.removeprefix('± '))}"
    return detail


def _no_zero(number: str) -> str:
    return number.replace("0.", ".", 1) if number.startswith(("0.", "-0.")) else number
