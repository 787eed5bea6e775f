"""A table of text cells and its spellings in markdown, LaTeX and CSV.

Names and notes are other people's text: every spelling neutralises what would be read as more.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from reffree.errors import visible, visible_json

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


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text, smaller parts beside and below it, whether it is best of its column."""

    text: str
    detail: str = ""
    is_best: bool = False
    chance: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A header and rows; the first ``n_labels`` columns are text, the others numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    n_labels: int = 1
    title: str = ""

    def columns(self, chosen: Sequence[int]) -> Grid:
        """Return the grid of some columns."""
        return Grid(
            tuple(self.header[i] for i in chosen),
            tuple(tuple(row[i] for i in chosen) for row in self.rows),
            sum(i < self.n_labels for i in chosen),
            self.title,
        )

    def to_markdown(self) -> str:
        """Pipe table, best cells in bold."""
        align = [":--" if i < self.n_labels else "--:" for i in range(len(self.header))]
        header = [escape_markdown(name) for name in self.header]
        lines = [header, align, *([_markdown(cell) for cell in row] for row in self.rows)]
        title = f"**{escape_markdown(self.title)}**\n\n" if self.title else ""
        return title + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"

    def to_latex(self) -> str:
        """Booktabs tabular, best cells in bold."""
        columns = "l" * self.n_labels + "r" * (len(self.header) - self.n_labels)
        body = [r" & ".join(_latex(cell) for cell in row) + r" \\" for row in self.rows]
        head = " & ".join(escape_latex(name) for name in self.header) + r" \\"
        title = [_comment(self.title)] if self.title else []
        lines = [*title, rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def to_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Comma-separated values; None is empty, and a text that looks like a formula gets a ``'``."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([_csv(value) for value in row] for row in (header, *rows))
    return out.getvalue()


def json_text(data: object) -> str:
    """Write JSON, indented, whose strings show what would steer a terminal as escapes."""
    return visible_json(json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2)) + "\n"


def markdown_page(
    grids: Sequence[Grid], remarks: Sequence[str], signature: str, opening: Sequence[str] = ()
) -> str:
    """Opening paragraphs, tables, a paragraph for every remark, then the signature as code."""
    above = "".join(f"{escape_markdown(each)}\n\n" for each in opening)
    below = "\n\n".join([*map(escape_markdown, remarks), _code(signature)])
    return above + "\n".join(grid.to_markdown() for grid in grids) + f"\n{below}\n"


def latex_page(grids: Sequence[Grid], comments: Sequence[str]) -> str:
    """A comment for every line, then the tables."""
    above = "".join(f"{_comment(line)}\n" for line in comments)
    return above + "\n".join(grid.to_latex() for grid in grids)


def escape_latex(text: str) -> str:
    """Make any text safe inside a LaTeX table."""
    return re.sub(r"[\\~^&%$#_{}\[]", lambda match: LATEX_SPECIAL[match.group()], visible(text))


def escape_markdown(text: str) -> str:
    """Make any text safe in tables and paragraphs: no column, HTML, link or code of its own."""
    for found, written in MARKDOWN_SPECIAL.items():
        text = text.replace(found, written)
    return visible(text)


def _code(text: str) -> str:
    """Write code between more backticks than it has in a row."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    space = " " if longest else ""
    return f"{'`' * (longest + 1)}{space}{visible(text)}{space}{'`' * (longest + 1)}"


def _comment(line: str) -> str:
    return f"% {visible(line)}"


def _csv(value: object) -> object:
    if not isinstance(value, str):
        return value
    return f"'{visible(value)}" if value.startswith(FORMULA) else visible(value)


def _markdown(cell: Cell) -> str:
    text = escape_markdown(cell.text)
    text = f"**{text}**" if cell.is_best else text
    small = (cell.beside, cell.detail, cell.chance)
    return " ".join(filter(None, [text, *map(escape_markdown, small)]))


def _latex(cell: Cell) -> str:
    text = escape_latex(cell.text)
    text = rf"\textbf{{{text}}}" if cell.is_best else text
    small = " ".join(filter(None, [cell.beside, cell.detail, cell.chance]))
    return f"{text} {{\\small {escape_latex(small)}}}" if small else text
