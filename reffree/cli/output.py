"""How results reach the user: format, colour, width, and a file written whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from reffree.cli.messages import tell, tell_notes, tell_written, waiting
from reffree.report.grid import OUTPUT_FORMATS
from reffree.util.atomic import check_stdout, check_writable, write_file, write_stdout
from reffree.util.errors import shorten

if TYPE_CHECKING:
    from reffree.evaluate.result import Result
    from reffree.evaluate.table import ScoreTable
    from reffree.report.grid import OutputFormat

ENDINGS = {
    ".json": "json",
    ".csv": "csv",
    ".md": "md",
    ".tex": "latex",
    ".html": "html",
    ".htm": "html",
    ".txt": "table",
    "": "table",
}
WORSE = 3
"""Exit code of a result that is there, but worse than the user lets pass."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where a result goes, and in what form."""

    format: OutputFormat
    path: Path | None  # None is standard output

    @classmethod
    def of(
        cls,
        format: str | None,
        path: Path | None,
        inputs: Iterable[str] = (),
        formats: Sequence[str] = OUTPUT_FORMATS,
        *,
        command: str = "",
    ) -> Output:
        """Choose one of the formats by the file's ending if none is given; spare the inputs.

        ``command`` is the one whose result it is, for whose page there must be what draws charts.
        """
        if path is not None and str(path) == "-":
            path = None
        if path is None:
            check_stdout()
        else:
            check_writable(path)  # before the work, not after it
            spare_inputs("-o", path, inputs)
        chosen = format or ("table" if path is None else _by_ending(path, formats))
        if chosen == "html":
            from reffree.report.charts import CHARTS, require_drawing

            if command in CHARTS:
                require_drawing(", or choose -f table, md, latex, csv or json, which do without")
        return cls(cast("OutputFormat", chosen), path)

    @property
    def color(self) -> bool:
        """Whether the result goes to a person's terminal that wants colours."""
        return self.path is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    @property
    def width(self) -> int | None:
        """Return the columns of the terminal the result goes to; None where there is none."""
        if self.path is not None or not sys.stdout.isatty():
            return None
        return os.get_terminal_size(sys.stdout.fileno()).columns

    def show(
        self, result: Result | ScoreTable, table: str | None = None, *, after: str = ""
    ) -> None:
        """Write a result in the format, colours and width that fit.

        ``table`` names the one to write alone, ``after`` is what only the table format says below.
        """
        from reffree.report.render import render

        with waiting("Drawing") if self.format == "html" else nullcontext():
            text = render(result, self.format, table=table, color=self.color, width=self.width)
        self.write(text + (after if self.format == "table" else ""), result.notes, result.verdict)

    def write(self, text: str, notes: Sequence[str] = (), verdict: Sequence[str] = ()) -> None:
        """Write the result as UTF-8; say notes and verdict, unless the screen shows them."""
        if self.path is None:
            write_stdout([text])
        else:
            write_file(self.path, [text])
            tell_written(self.path, *verdict)
        if self.path is not None or self.format not in ("table", "html"):
            tell_notes(notes)


def _by_ending(path: Path, formats: Sequence[str]) -> str:
    """Return the format of a file's ending; refuse one that is none of the formats."""
    format = ENDINGS.get(path.suffix.lower(), "")
    if format not in formats:
        known = [ending for ending, each in ENDINGS.items() if ending and each in formats]
        raise click.UsageError(
            f"-o {path}: no format has the ending {shorten(path.suffix)}; expected "
            f"{', '.join(known)}, or say which with -f."
        )
    return format


def fail_if(sentences: Sequence[str]) -> None:
    """Say what is worse than it may be, if anything, and end with the exit code for that."""
    for sentence in sentences:
        tell(f"reffree: worse: {sentence}", err=True)
    if sentences:
        sys.exit(WORSE)


def spare_inputs(flag: str, path: Path, inputs: Iterable[str]) -> None:
    """Refuse to write over a file that is read."""
    for file in inputs:
        with suppress(OSError, ValueError):  # one is not there: reading or writing it says so
            if path.samefile(file):
                raise click.UsageError(f"{flag} {path}: this is an input; choose another file.")
