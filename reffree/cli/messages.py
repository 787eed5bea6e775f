"""What commands say on the terminal: lines, notes, errors, and how far along they are."""

from __future__ import annotations

import io
import logging
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from reffree.util.errors import shorten, visible

LINE_SECONDS = 10.0
"""Between two lines that say how far long work is."""

DUE = "reffree.due"


def tell(text: str, *, err: bool = False) -> None:
    """Say one line; whatever others have named or written in it, it stays one line of text."""
    click.echo(visible(text), err=err)


def tell_notes(notes: Iterable[str]) -> None:
    """Say on standard error what the user should know of a result."""
    for note in notes:
        tell(f"reffree: note: {note}", err=True)


def tell_written(file: Path | str, *sentences: str) -> None:
    """Say on standard error that a file is written, and what else there is to say."""
    if str(file) != "-":
        tell(" ".join([f"reffree: wrote {file}.", *sentences]), err=True)


def tell_usage(error: click.ClickException) -> None:
    """Say what click has to say of a command line."""
    written = io.StringIO()
    error.show(written)
    for line in written.getvalue().removesuffix("\n").split("\n"):
        tell(re.sub(r"\S{200,}", lambda word: shorten(word[0]), line), err=True)


class _LogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        tell(record.getMessage(), err=True)


@contextmanager
def log_to_terminal() -> Iterator[None]:
    """Within it, say on standard error, once, what the package logs as a warning or worse."""
    logger = logging.getLogger("reffree")
    if any(isinstance(each, _LogHandler) for each in logger.handlers):
        yield
        return
    handler = _LogHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def progress(stage: str, total: int = 1) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error if a person is watching it, else a line every some seconds."""
    if not sys.stderr.isatty():
        context = click.get_current_context(silent=True)
        clock = {} if context is None else context.meta  # one for all stages of a command
        clock.setdefault(DUE, time.monotonic() + LINE_SECONDS)
        n_done = 0

        def advance(done: int) -> None:
            nonlocal n_done
            n_done += done
            if time.monotonic() >= clock[DUE]:
                tell(f"{stage} {n_done:,} of {total:,} ({100 * n_done / total:.0f} %)", err=True)
                clock[DUE] = time.monotonic() + LINE_SECONDS

        yield advance
        return
    import rich.console
    import rich.progress as bars

    columns = (
        bars.TextColumn("{task.description:<9}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeRemainingColumn(),
    )
    console = rich.console.Console(stderr=True)
    with bars.Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(stage, total=total)
        yield lambda done: shown.advance(task, done)
