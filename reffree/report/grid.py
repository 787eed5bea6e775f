"""How tables are written: for a terminal, as Markdown, LaTeX, CSV, and JSON beside them.

Names and notes are other people's text: every spelling neutralises what would be read as more.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

from reffree.util.errors import visible, visible_json
from reffree.util.grid import Cell, Grid

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

OutputFormat = Literal["table", "json", "csv", "md", "latex", "html"]
OUTPUT_FORMATS: tuple[str, ...] = get_args(OutputFormat)

LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    # After a row's end LaTeX would read a bracket as an option.
    "[": "{[}",
}
MARKDOWN_SPECIAL = {
    **{"\\": "\\\\", "|": "\\|", "`": "\\`", "](": "]\\("},
    **{"&": "&amp;", "<": "&lt;", ">": "&gt;"},
}

FORMULA = tuple("=+-@＝＋－＠")
"""So begins what spreadsheets compute; a text that does gets an apostrophe in front."""

PLAIN_WIDTH = 10_000
"""Columns of output that no terminal shows, so that nothing is folded in files and pipes."""

LONG_NAME = 12

MOST_LABELS = 2 / 3
"""Of the terminal's width: where names of rows take more, fewer of them are repeated."""


def json_text(data: object) -> str:
    """Write JSON, indented, whose strings show what would steer a terminal as escapes."""
    return visible_json(json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2)) + "\n"


def to_csv(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Comma-separated values; None is empty, and a text that looks like a formula gets a ``'``."""

    def safe(value: object) -> object:
        if not isinstance(value, str):
            return value
        return f"'{visible(value)}" if value.startswith(FORMULA) else visible(value)

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([safe(value) for value in row] for row in (header, *rows))
    return out.getvalue()


def markdown_page(
    grids: Sequence[Grid], opening: str, remarks: Sequence[str], signature: str
) -> str:
    """An opening paragraph, tables, a paragraph for every remark, then the signature as code."""
    above = f"{escape_markdown(opening)}\n\n" if opening else ""
    # Code stands between more backticks than it has in a row.
    longest = max(map(len, re.findall("`+", signature)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    code = f"{fence}{space}{visible(signature)}{space}{fence}"
    below = "\n\n".join([*map(escape_markdown, remarks), code])
    return above + "\n".join(map(markdown_table, grids)) + f"\n{below}\n"


def markdown_table(grid: Grid) -> str:
    """Pipe table, best cells in bold."""

    def written(cell: Cell) -> str:
        text, *small = map(escape_markdown, (cell.text, cell.beside, *cell.below))
        return " ".join(filter(None, [f"**{text}**" if cell.is_best else text, *small]))

    align = ["--:" if is_number else ":--" for is_number in grid.is_number]
    header = [escape_markdown(name) for name in grid.header]
    lines = [header, align, *(list(map(written, row)) for row in grid.rows)]
    title = f"**{escape_markdown(grid.title)}**\n\n" if grid.title else ""
    return title + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def escape_markdown(text: str) -> str:
    """Make any text safe in tables and paragraphs: no column, HTML, link or code of its own."""
    for found, written in MARKDOWN_SPECIAL.items():
        text = text.replace(found, written)
    return visible(text)


def latex_table(grid: Grid) -> str:
    """Booktabs tabular, best cells in bold."""

    def written(cell: Cell) -> str:
        text = escape_latex(cell.text)
        text = rf"\textbf{{{text}}}" if cell.is_best else text
        small = " ".join(filter(None, (cell.beside, *cell.below)))
        return f"{text} {{\\small {escape_latex(small)}}}" if small else text

    columns = "".join("r" if is_number else "l" for is_number in grid.is_number)
    body = [r" & ".join(map(written, row)) + r" \\" for row in grid.rows]
    head = " & ".join(escape_latex(name) for name in grid.header) + r" \\"
    title = [f"% {visible(grid.title)}"] if grid.title else []
    lines = [*title, rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def escape_latex(text: str) -> str:
    """Make any text safe inside a LaTeX table."""
    return re.sub(r"[\\~^&%$#_{}\[]", lambda match: LATEX_SPECIAL[match.group()], visible(text))


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
    opening: str = "",
) -> str:
    """Draw an opening paragraph, the grids, then one remark a line; the last one is dimmed."""
    from rich.text import Text

    # A column too wide for the terminal runs over its edge: cut numbers would lie.
    wide, drawn = console(color=color, width=None)
    for grid in grids:
        if grid.title:
            wide.print(Text(f"\n{visible(grid.title)}", style="bold"))
        for part in _fitting(grid, wide, width):
            wide.print(_rich_table(part))
    screen, out = console(color=color, width=width)
    # The box draws empty lines above and below; one below is enough.
    lines = ["", *(line.rstrip() for line in drawn.getvalue().splitlines())]
    kept = [line for before, line in pairwise(lines) if line or before]
    if opening:
        screen.print(Text(visible(opening), style="bold"), soft_wrap=width is None)
        kept = ["", *kept]
    out.write("\n".join(kept) + "\n")
    for i, remark in enumerate(remarks):
        style = "dim" if i == len(remarks) - 1 else ""
        screen.print(Text(visible(remark), style=style), soft_wrap=width is None)
    return out.getvalue()


def _fitting(grid: Grid, wide: Console, width: int | None) -> Iterator[Grid]:
    """Split a grid that is too wide into several, each with the columns that name its rows."""

    def width_of(columns: Iterable[int]) -> int:
        return wide.measure(_rich_table(grid.columns(list(columns)))).maximum

    n_fixed, n = max(2, grid.n_labels), len(grid.header)
    if width is None or n_fixed >= n:
        yield grid
        return
    while n_fixed > 2 and width_of(range(n_fixed)) > MOST_LABELS * width:
        n_fixed -= 1
    start = n_fixed
    while start < n:
        stop = n
        while stop > start + 1 and width_of([*range(n_fixed), *range(start, stop)]) > width:
            stop -= 1
        yield grid.columns([*range(n_fixed), *range(start, stop)])
        start = stop


def _rich_table(grid: Grid) -> RichTable:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    for name, is_number in zip(map(visible, grid.header), grid.is_number, strict=True):
        head, separator, tail = name.rpartition("_")
        heading = f"{head}{separator}\n{tail}" if head and len(name) > LONG_NAME else name
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=True)
    for row in grid.rows:
        texts = []
        for cell in row:
            text = Text("*" * cell.is_best + visible(cell.text))
            text.stylize("bold green" if cell.is_best else "")
            text.append(f" {visible(_compact(cell.beside))}" if cell.beside else "", style="dim")
            for line in cell.below:
                text.append(f"\n{visible(_compact(line))}", style="dim")
            texts.append(text)
        table.add_row(*texts)
    return table


def _compact(detail: str) -> str:
    """``[0.391, 0.431]`` as ``.391–.431``, ``± 0.113`` as ``±.113``: columns stay narrow."""
    short = re.sub(r"(?<![\d.])0\.", ".", detail)
    if detail.startswith("["):
        low, high = short.strip("[]").split(", ")
        return f"{low}–{high}" if not high.startswith("-") else f"{low} to {high}"
    return short.replace("± ", "±", 1) if detail.startswith("± ") else detail
