"""The door to the terminal for all that is said in lines: results, notes, errors."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click

from reffree.errors import visible


def tell(text: str, *, err: bool = False) -> None:
    """Say one line; whatever others have named or written in it, it stays one line of text."""
    click.echo(visible(text), err=err)


def tell_json(data: object) -> None:
    """Say JSON in ASCII, in as many lines as it takes."""
    click.echo(json.dumps(data, indent=2))


def tell_usage(error: click.ClickException) -> None:
    """Say what click has to say of a command line."""
    said = io.StringIO()
    error.show(said)
    for line in said.getvalue().removesuffix("\n").split("\n"):
        tell(line, err=True)


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        tell(record.getMessage(), err=True)


@contextmanager
def told_notes() -> Iterator[None]:
    """Meanwhile, what the rooms below log is said on standard error, once."""
    logger, notes = logging.getLogger("reffree"), _Notes(logging.WARNING)
    if any(isinstance(handler, _Notes) for handler in logger.handlers):
        yield
        return
    logger.addHandler(notes)
    try:
        yield
    finally:
        logger.removeHandler(notes)
