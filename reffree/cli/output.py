"""How results reach the user: format, colour, width, and a file written whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reffree.cli.messages import tell, tell_notes, waiting
from reffree.report.grid import OUTPUT_FORMATS
from reffree.util.atomic import check_stdout, check_writable, write_file, write_stdout
from reffree.util.errors import InputError, shorten
from reffree.util.optional import require

if TYPE_CHECKING:
    from reffree.evaluate.result import Result

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

PAGE_PACKAGES = ("altair", "vl_convert", "jinja2", "markupsafe")


@dataclass(frozen=True, slots=True)
class Output:
    """Where a result goes, and in what form."""

    format: str
    path: Path | None  # None is standard output

    @classmethod
    def of(
        cls,
        format: str | None,
        path: Path | None,
        inputs: Iterable[str] = (),
        formats: Sequence[str] = OUTPUT_FORMATS,
    ) -> Output:
        """Choose one of the formats by the file's ending if none is given; spare the inputs."""
        if path is not None and str(path) == "-":
            path = None
        if path is None:
            check_stdout()
        else:
            check_writable(path)  # before the work, not after it
            spare_inputs("-o", path, inputs)
        return cls(format or ("table" if path is None else _by_ending(path, formats)), path)

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

    def show(self, render: Callable[..., str], result: object, notes: Sequence[str]) -> None:
        """Write what ``render`` makes of a result in the format, colours and width that fit."""
        text = render(result, self.format, color=self.color, width=self.width)
        self.write(text, notes)

    def show_study(self, result: Result, table: str | None = None) -> None:
        """Write the result of a study, as a page with its charts or as `show` does."""
        if self.format == "html":
            with waiting("Drawing"):
                page = require_report("reffree.report.page").render_page(result)
            self.write(page)
            return
        from reffree.report.study import render

        self.show(partial(render, table=table), result, result.notes)

    def write(self, text: str, notes: Sequence[str] = ()) -> None:
        """Write the result as UTF-8; say the notes, unless it is on the screen and shows them."""
        if self.path is not None:
            write_file(self.path, [text])
        else:
            write_stdout([text])
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
        if _is_same(path, Path(file)):
            raise click.UsageError(f"{flag} {path}: this is an input; choose another file.")


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False  # one is not there; reading or writing it says what is wrong


def require_report(module: str) -> Any:  # noqa: ANN401  (a module)
    """Import a module of reffree that draws pages or charts, or say what to install."""
    return require(
        module,
        lambda name: InputError(
            f"no installed {name}",
            expected="the libraries that draw charts",
            remedy="install them with pip install 'reffree[report]', or choose -f table, md, "
            "latex, csv or json, which do without",
        ),
        PAGE_PACKAGES,
    )
