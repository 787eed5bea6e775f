"""What commands say on the terminal: lines, notes, errors, and how far along they are."""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click

from reffree.util.errors import shorten, visible
from reffree.util.progress import ProgressLines


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
    """Within it, say on standard error, once, what the package logs as a warning or worse.

    A person who is watching is also told why nothing seems to happen.
    """
    logger, compiling = logging.getLogger("reffree"), logging.getLogger("reffree.util.compiling")
    if any(isinstance(each, _LogHandler) for each in logger.handlers):
        yield
        return
    handler = _LogHandler()
    logger.addHandler(handler)
    before = compiling.level
    compiling.setLevel(logging.INFO if sys.stderr.isatty() else logging.WARNING)
    try:
        yield
    finally:
        compiling.setLevel(before)
        logger.removeHandler(handler)


@contextmanager
def waiting(stage: str) -> Iterator[None]:
    """Name on standard error what is under way, if a person is watching it."""
    with progress(stage, 1):
        yield


@contextmanager
def progress(stage: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error if a person is watching it, else a line every some seconds."""
    if not sys.stderr.isatty():
        # A command's stages share one clock.
        context = click.get_current_context(silent=True)
        shared = {} if context is None else context.meta
        lines = shared.setdefault("reffree.lines", ProgressLines(partial(tell, err=True)))
        with lines(stage, total) as advance:
            yield advance
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<9}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(stage, total=total)
        yield lambda done: bars.advance(task, done)
