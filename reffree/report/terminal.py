"""Grids as rich tables."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reffree.report.grid import Cell, Grid

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

PLAIN_WIDTH = 200
"""Columns of output that no terminal shows, so that nothing is folded in files and pipes."""


def render_terminal(
    grids: Sequence[Grid], remarks: Sequence[str], *, color: bool, width: int | None
) -> str:
    """Draw the grids, then one remark a line; the last one, the signature, is dimmed."""
    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=color,
        no_color=not color,
        width=width or PLAIN_WIDTH,
        highlight=False,
        soft_wrap=False,
    )
    for grid in grids:
        console.print(_table(grid))
    drawn = out.getvalue().splitlines()
    out.seek(0)
    out.truncate()
    # The box draws empty lines above and below; one below is enough.
    out.write("\n".join(line.rstrip() for line in drawn[1:]) + "\n")
    for i, remark in enumerate(remarks):
        style = "dim" if i == len(remarks) - 1 else ""
        console.print(Text(remark, style=style), soft_wrap=width is None)
    return out.getvalue()


def _table(grid: Grid) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    for i, name in enumerate(grid.header):
        is_label = i < grid.n_labels
        justify = "left" if is_label else "right"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=not is_label)  # type: ignore[arg-type]
    for row in grid.rows:
        table.add_row(*(_cell(cell) for cell in row))
    return table


def _cell(cell: Cell) -> Text:
    from rich.text import Text

    text = Text(f"*{cell.text}" if cell.is_best else cell.text)
    if cell.is_best:
        text.stylize("bold green")
    if cell.detail:
        text.append(f"\n{_compact(cell.detail)}", style="dim")
    return text


def _compact(detail: str) -> str:
    """``[0.391, 0.431]`` as ``.391–.431``: columns stay narrow."""
    if detail.startswith("["):
        low, high = detail.strip("[]").split(", ")
        return f"{_no_zero(low)}–{_no_zero(high)}"
    return detail


def _no_zero(number: str) -> str:
    return number[1:] if number.startswith("0.") else number
