"""Options that several commands share, and how results reach the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from reffree.errors import InputError, Place
from reffree.formats import FORMATS
from reffree.report.score import OUTPUT_FORMATS
from reffree.segmentation import CONVENTIONS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _all(*options: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


reading_options = _all(
    click.option(
        "--format",
        "input_format",
        type=click.Choice(FORMATS),
        help="Format of the input, where its name and content do not tell.",
    ),
    click.option(
        "--text",
        type=click.Path(),
        help="Text for formats without any (segeval, nltk): a corpus JSONL, a file with a unit a "
        "line and a blank line between documents, or a folder of <id>.txt.",
    ),
    click.option(
        "--convention",
        type=click.Choice(CONVENTIONS),
        help="What a 1 means in 0/1 labels: the unit ends a segment, starts one, or a gap has a "
        "boundary.",
    ),
)

encoding_options = _all(
    click.option(
        "--encoder",
        metavar="NAME",
        help="Alias (minilm, mpnet, roberta, falcon-7b), folder or hub id.  [default: minilm]",
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        metavar="DEVICE",
        help="auto, cpu, cuda, cuda:1 or mps.",
    ),
    click.option(
        "--batch-tokens",
        type=click.IntRange(min=1),
        help="Tokens per encoder batch, padding included; by default chosen for the device.",
    ),
    click.option("--offline", is_flag=True, help="Never connect to a model hub."),
    click.option("--no-cache", is_flag=True, help="Neither read nor write cached embeddings."),
    click.option(
        "--cache-dir",
        type=click.Path(file_okay=False, path_type=Path),
        envvar="REFFREE_CACHE_DIR",
        help="Folder of the embedding cache.  [default: the user's cache folder]",
    ),
)

output_options = _all(
    click.option(
        "-f",
        "output_format",
        type=click.Choice(OUTPUT_FORMATS),
        default="table",
        show_default=True,
        help="Format of the output.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write to this file instead of standard output.",
    ),
)


def go_offline() -> None:
    """Tell the hub's library before it is first imported."""
    os.environ["HF_HUB_OFFLINE"] = "1"


@contextmanager
def progress(stage: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error, if a person is watching it."""
    if not sys.stderr.isatty():
        yield lambda done: None
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


def is_colorful(output: Path | None) -> bool:
    """Whether the result goes to a person's terminal that wants colours."""
    return output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def terminal_width(output: Path | None) -> int | None:
    """Return the columns of the terminal the result goes to; None where there is none."""
    if output is not None or not sys.stdout.isatty():
        return None
    return os.get_terminal_size(sys.stdout.fileno()).columns


def emit(text: str, output: Path | None) -> None:
    """Write the result to a file, whole or not at all, or to standard output."""
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    part = output.with_name(f".{output.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(output)
    except OSError as error:
        raise InputError(
            f"a path that cannot be written ({error.strerror})",
            expected="an existing folder with write permission",
            remedy="create the folder or choose another -o FILE",
            place=Place(file=str(output)),
        ) from None
