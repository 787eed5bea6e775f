"""A table of text cells and its spellings in markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    # After a row's end LaTeX would read a bracket as an option.
    "[": "{[}",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text, smaller parts below it, and whether it is the best of its column."""

    text: str
    detail: str = ""
    is_best: bool = False
    chance: str = ""


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
        header = [_escape_markdown(name) for name in self.header]
        lines = [header, align, *([_markdown(cell) for cell in row] for row in self.rows)]
        title = f"**{self.title}**\n\n" if self.title else ""
        return title + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"

    def to_latex(self) -> str:
        """Booktabs tabular, best cells in bold."""
        columns = "l" * self.n_labels + "r" * (len(self.header) - self.n_labels)
        body = [r" & ".join(_latex(cell) for cell in row) + r" \\" for row in self.rows]
        head = " & ".join(escape_latex(name) for name in self.header) + r" \\"
        title = [f"% {self.title}"] if self.title else []
        lines = [*title, rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def to_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Comma-separated values; None is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def escape_latex(text: str) -> str:
    """Make any text safe inside a LaTeX table."""
    return re.sub(r"[\\~^&%$#_{}\[]", lambda match: LATEX_SPECIAL[match.group()], text)


def _escape_markdown(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")


def _markdown(cell: Cell) -> str:
    text = _escape_markdown(cell.text)
    text = f"**{text}**" if cell.is_best else text
    return " ".join(filter(None, [text, cell.detail, cell.chance]))


def _latex(cell: Cell) -> str:
    text = escape_latex(cell.text)
    text = rf"\textbf{{{text}}}" if cell.is_best else text
    small = " ".join(filter(None, [cell.detail, cell.chance]))
    return f"{text} {{\\small {escape_latex(small)}}}" if small else text
