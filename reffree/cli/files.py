"""What commands read, and how results reach the user: format, colour, width, whole files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reffree.cli.messages import progress, tell, tell_notes, tell_written
from reffree.report.grid import OUTPUT_FORMATS
from reffree.util.atomic import check_stdout, check_writable, write_file, write_stdout
from reffree.util.errors import shorten

if TYPE_CHECKING:
    from reffree.data.corpus import Corpus
    from reffree.encoders.embed import Embeddings
    from reffree.evaluate.result import Result
    from reffree.evaluate.table import ScoreTable
    from reffree.report.grid import OutputFormat

ENDINGS: dict[str, OutputFormat] = {
    **{".json": "json", ".csv": "csv", ".md": "md", ".tex": "latex"},
    **{".html": "html", ".htm": "html", ".txt": "table", "": "table"},
}
WORSE = 3
"""Exit code of a result that is there, but worse than the user lets pass."""


def input_files(given: Mapping[str, Any], *others: str) -> list[str]:
    """Return every file the user named to read from."""
    systems = [file for _, file in given.get("system_files", ())]
    single = [given.get("text"), given.get("embeddings")]
    return [*given["corpora"], *systems, *others, *(str(file) for file in single if file)]


def check_encoding(options: Mapping[str, Any], embeddings: object) -> None:
    """Refuse an encoder beside the user's vectors; tell the hub's library to stay offline.

    That library reads its setting when it is first imported.
    """
    if embeddings is not None and (options.get("encoder") or options.get("encoders")):
        raise click.UsageError("--embeddings and --encoder exclude each other: keep one.")
    if options.get("offline"):
        os.environ["HF_HUB_OFFLINE"] = "1"


def read_corpus(given: Mapping[str, Any], *, text_needed: bool = True) -> Corpus:
    """Read all arguments as one corpus, with the systems of --system."""
    from reffree.formats import load, read_system

    text, format = given.get("text"), given.get("input_format")
    if text is None and not text_needed:
        text = False
    corpus = load(*given["corpora"], format=format, text=text)
    for name, file in given.get("system_files", ()):
        corpus = read_system(file, name, corpus, corpus_format=format)
    return corpus


def read_corpora(given: Mapping[str, Any], *, text_needed: bool = True) -> dict[str, Corpus]:
    """Read every argument as a corpus of its own, called by its file's name."""
    from reffree.formats import corpus_names

    named = corpus_names(given["corpora"])
    for option, flag in (("system_files", "--system"), ("embeddings", "--embeddings")):
        if len(named) > 1 and given.get(option):
            raise click.UsageError(f"{flag} with {len(named)} corpora: name one CORPUS.")
    return {
        name: read_corpus({**given, "corpora": (path,)}, text_needed=text_needed)
        for name, path in named.items()
    }


def read_vectors(corpus: Corpus, file: Path | None) -> Embeddings | None:
    """Read the user's own vectors, if there are any."""
    if file is None:
        return None
    # Torch is imported only once the input is known to be good.
    from reffree.encoders.embed import from_file

    return from_file(corpus, file)


class Output:
    """Where a result goes, and in what form."""

    def __init__(
        self,
        given: Mapping[str, Any],
        inputs: Iterable[str] = (),
        *,
        formats: Sequence[str] = OUTPUT_FORMATS,
        command: str = "",
    ) -> None:
        """Choose one of the formats by the file's ending if none is given; spare the inputs.

        ``command`` is the one whose result it is, for whose page there must be what draws charts.
        """
        self.path: Path | None = None if str(given["output"]) == "-" else given["output"]
        if self.path is None:
            check_stdout()
        else:
            check_writable(self.path)  # before the work, not after it
            spare_inputs("-o", self.path, inputs)
        suffix = "" if self.path is None else self.path.suffix
        found = given["output_format"] or ENDINGS.get(suffix.lower(), "")
        if found not in formats:
            known = [ending for ending, each in ENDINGS.items() if ending and each in formats]
            raise click.UsageError(
                f"-o {self.path}: no format has the ending {shorten(suffix)}; expected "
                f"{', '.join(known)}, or say which with -f."
            )
        if found == "html":
            from reffree.report.charts import CHARTS, require_drawing

            if command in CHARTS:
                require_drawing(", or choose -f table, md, latex, csv or json, which do without")
        self.format: OutputFormat = found
        self.table: str | None = given.get("table")

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

    def show(self, result: Result | ScoreTable, *, after: str = "") -> None:
        """Write a result, and ``after`` below it in the table format."""
        from reffree.report.render import render

        with progress("Drawing", 1) if self.format == "html" else nullcontext():
            text = render(result, self.format, table=self.table, color=self.color, width=self.width)
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


def save_corpus(corpus: Corpus, target: Path | str, notes: Iterable[str]) -> None:
    """Write a corpus; say so, and what there is to know of it."""
    from reffree.formats import save

    left_out = save(corpus, target)
    tell_written(target)
    tell_notes((*notes, *left_out))


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
