"""Options that several commands share, and how results reach the user."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from reffree.encoders.options import Encoding
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


system_options = _all(
    click.option(
        "-m",
        "--metric",
        "metrics",
        multiple=True,
        help="Reference-free: arp_std, arp_cos, arp_pair, silhouette, segrefree, sag, or all of "
        "them. Gold-based: pk, windowdiff, boundary_similarity, w_f1 and many more (see the "
        "README), or all of them as gold. With options as in arp_std:p=1 or pk:k=3; may be "
        "repeated.  [default: all, and pk, windowdiff, boundary_similarity where there is gold]",
    ),
    click.option(
        "--system",
        "systems",
        multiple=True,
        metavar="NAME=FILE",
        help="One more system, from a file of segmentations; may be repeated.",
    ),
    click.option(
        "--unsegmented",
        type=click.Choice(["neutral", "skip", "worst"]),
        default="neutral",
        show_default=True,
        help="What a document without a boundary scores.",
    ),
)

result_options = _all(
    click.option(
        "--average",
        type=click.Choice(["macro", "micro"]),
        default="macro",
        show_default=True,
        help="Gold-based metrics over documents: the mean of values, or the value of pooled "
        "counts.",
    ),
    click.option(
        "--null",
        type=click.IntRange(min=1),
        metavar="N",
        help="Hold every score against N random orders of the same segment lengths: z and p.",
    ),
    click.option(
        "--explain",
        is_flag=True,
        help="Also show what every boundary contributes, where it would be better, and the best "
        "place for one more.",
    ),
    click.option("--per-document", is_flag=True, help="Also show every document's scores."),
    click.option("--per-segment", is_flag=True, help="Also show every segment's scores."),
)

vector_options = _all(
    click.option(
        "--memory",
        callback=lambda ctx, param, value: _bytes(value),
        metavar="SIZE",
        help="What scoring may use, such as 2G or 500M.  [default: a quarter of what is free]",
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, help="Seed of everything random."
    ),
    click.option("--short", is_flag=True, help="Abbreviate the signature."),
    click.option(
        "--embeddings",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Your own vectors instead of an encoder: .npz with an array per document id, or .npy "
        "with all units stacked.",
    ),
)

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
    click.option(
        "--no-cache",
        "cache",
        is_flag=True,
        callback=lambda ctx, param, value: not value,
        help="Neither read nor write cached embeddings.",
    ),
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
        help="Format of the output.  [default: by the ending of -o FILE, else table]",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write to this file instead of standard output.",
    ),
)


def _bytes(text: str | None) -> int | None:
    """Read a size such as 500M."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", text.strip().lower())
    if not found or float(found[1]) == 0:
        raise click.UsageError(f"--memory {text}: expected a size, such as 2G or 500M.")
    return int(float(found[1]) * 1024 ** " kmgt".index(found[2] or " "))


def check_encoding(encoding: Encoding, embeddings: Path | None = None) -> None:
    """Refuse an encoder beside the user's vectors; tell the hub's library to stay offline.

    That library reads its setting when it is first imported.
    """
    if embeddings is not None and encoding.get("encoder") is not None:
        raise click.UsageError("--embeddings and --encoder exclude each other: keep one.")
    if encoding.get("offline"):
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
