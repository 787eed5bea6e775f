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

from reffree.encoders.options import BACKENDS, CHOICES, Encoding
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

run_options = _all(
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
)

vector_options = _all(
    run_options,
    click.option(
        "--embeddings",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Your own vectors instead of an encoder: .npz with an array per document id, or .npy "
        "with all units stacked.",
    ),
)

correlation_options = _all(
    click.option(
        "-m",
        "--metric",
        "metrics",
        multiple=True,
        help="As in reffree score, of both kinds; may be repeated.  [default: all reference-free "
        "ones, and pk, windowdiff, boundary_similarity]",
    ),
    click.option(
        "--pool",
        type=click.Choice(["auto", "given", "default", "both"]),
        default="auto",
        show_default=True,
        help="Systems: the corpus's own (given), reffree's, both, or both where there are few.",
    ),
    click.option(
        "--cohesion",
        multiple=True,
        metavar="SYSTEM",
        help="A system of the corpus that optimises embedding similarity; may be repeated.",
    ),
    click.option(
        "--unsegmented",
        type=click.Choice(["neutral", "skip", "worst"]),
        default="neutral",
        show_default=True,
        help="What a document without a boundary scores.",
    ),
    click.option(
        "--average",
        type=click.Choice(["macro", "micro"]),
        default="macro",
        show_default=True,
        help="Gold-based metrics over documents: the mean of values, or of pooled counts.",
    ),
    click.option(
        "--resamples",
        type=click.IntRange(min=100),
        default=1000,
        show_default=True,
        help="Resamples of documents, for intervals.",
    ),
    click.option(
        "--texts",
        type=click.IntRange(min=0),
        default=3,
        show_default=True,
        help="Documents of each corpus whose text goes into the JSON, for reffree report.",
    ),
    click.option("--table", metavar="NAME", help="Only this table; for CSV the one to write."),
    run_options,
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


def model_settings(*, hidden: bool) -> Decorator:
    """How a model makes a vector; ``reffree models --help`` shows what other commands hide."""
    options: list[tuple[str, dict[str, Any]]] = [
        (
            "--pooling",
            {
                "type": click.Choice(CHOICES["pooling"]),
                "help": "Of the tokens' vectors, over a model's bare transformer.  [default: the "
                "model's own, else mean]",
            },
        ),
        (
            "--layer",
            {
                "type": int,
                "metavar": "N",
                "help": "Whose output is pooled: 0 embeddings, -1 last.  [default: -1]",
            },
        ),
        (
            "--dtype",
            {
                "type": click.Choice(CHOICES["dtype"]),
                "help": "Of the computation; auto is the weights' own.  [default: float32, "
                "falcon-7b bfloat16]",
            },
        ),
        (
            "--attention",
            {
                "type": click.Choice(CHOICES["attention"]),
                "help": "Implementation.  [default: the best the architecture has]",
            },
        ),
        (
            "--prompt",
            {"metavar": "TEXT", "help": "Put before every text.  [default: the model's own]"},
        ),
        (
            "--max-length",
            {
                "type": int,
                "metavar": "N",
                "help": "Tokens read of a text.  [default: the model's own]",
            },
        ),
        (
            "--quantisation",
            {
                "type": click.Choice(CHOICES["quantisation"]),
                "help": "Quantise the weights (needs bitsandbytes).",
            },
        ),
        (
            "--device-map",
            {
                "type": click.Choice(["auto", "balanced", "sequential"]),
                "help": "Spread a model too large for one device over all, memory and disk.",
            },
        ),
        (
            "--backend",
            {
                "type": click.Choice(BACKENDS),
                "default": "torch",
                "show_default": True,
                "help": "What runs the transformer; auto is the fastest of those installed that "
                "give torch's vectors; onnx-int8 moves them, and the signature says how far.",
            },
        ),
        (
            "--trust-remote-code",
            {"is_flag": True, "help": "Run code that comes with a model."},
        ),
        (
            "--allow-pickle",
            {"is_flag": True, "help": "Read .bin weights where there are no safetensors."},
        ),
    ]
    return _all(*(click.option(name, hidden=hidden, **how) for name, how in options))


_how_to_encode = _all(
    model_settings(hidden=True),
    click.option(
        "--context",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        metavar="K",
        help="Encode each unit with K units before and after it (helps short utterances).",
    ),
    click.option(
        "--drop-backchannels",
        is_flag=True,
        help='Leave out units such as "yeah" or "mm-hmm" (English), like units without text.',
    ),
    click.option(
        "--drop-repeats",
        is_flag=True,
        help="Of equal units of a document keep the first, so that a text counts once.",
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

encoding_options = _all(
    click.option(
        "--encoder",
        metavar="NAME",
        help="Alias, folder or hub id; reffree models lists aliases, its --help the settings of "
        "models.  [default: minilm]",
    ),
    _how_to_encode,
)

several_encoders = _all(
    click.option(
        "--encoder",
        "encoders",
        multiple=True,
        metavar="NAME",
        help="Alias, folder or hub id; reffree models lists aliases. May be repeated.  [default: "
        "minilm]",
    ),
    _how_to_encode,
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
