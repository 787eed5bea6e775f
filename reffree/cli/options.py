"""Options that several commands share, each said once, and the groups they come in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import click

from reffree.cli.completion import METRICS, encoder_names, file_names, names
from reffree.data.segmentation import CONVENTIONS
from reffree.encoders.options import Dropped
from reffree.formats import FORMATS
from reffree.formats.labels import CodersAs
from reffree.formats.readers import TextDocuments, check_names
from reffree.formats.tables import COLUMNS, check_columns
from reffree.metrics.names import HELP
from reffree.report.grid import OUTPUT_FORMATS
from reffree.util.bounds import (
    MOST_SEED,
    bounds_in,
    check_limit,
    check_whole,
    parse_bytes,
)
from reffree.util.errors import shorten

LEAST_MEMORY = 2**20

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def whole(hint: object) -> click.IntRange:
    """Take whole numbers within the bounds that stand beside a keyword's type."""
    bounds = bounds_in(hint)
    if bounds is None:
        raise TypeError(f"{hint} has no bounds")
    return click.IntRange(bounds.least, bounds.most)


def option_group(*options: Decorator) -> Decorator:
    """Make one decorator of several options, in the order in which the help shows them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


# What is read and written


def _input_format(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    check_names(text, None)
    return text


def _columns(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> dict[str, str] | None:
    """Read COLUMN=NAME."""
    pairs = [text.partition("=")[::2] for text in given]
    columns = dict(pairs)
    if len(columns) < len(pairs):
        raise click.UsageError("--column: a column twice; keep one of the two.")
    check_columns(columns)
    return columns or None


corpora_argument = click.argument(
    "corpora", nargs=-1, required=True, metavar="CORPUS...", shell_complete=file_names
)

reading_options = option_group(
    click.option(
        "--format",
        "input_format",
        metavar="FORMAT",
        callback=_input_format,
        shell_complete=names(FORMATS),
        help="Of the input, where name and content do not tell.",
    ),
    click.option(
        "--column",
        "columns",
        multiple=True,
        callback=_columns,
        metavar="COLUMN=NAME",
        help=f"Name of a table's column ({', '.join(COLUMNS)}), such as text=utterance; may be "
        "repeated.  [default: as here]",
    ),
    click.option(
        "--text",
        type=click.Path(),
        help="Text for formats without any (segeval, nltk, chapters): a corpus JSONL, subtitles "
        "or a transcript, a file with a unit a line and a blank line between documents, or a "
        "folder of <id>.txt.",
    ),
    click.option(
        "--text-documents",
        type=click.Choice(get_args(TextDocuments)),
        default="blank-line",
        show_default=True,
        help="What a text with a unit a line has: a document between blank lines, or one.",
    ),
    click.option(
        "--coders-as",
        type=click.Choice(get_args(CodersAs)),
        default="systems",
        show_default=True,
        help="What the coders of segeval files are; golds are annotators.",
    ),
    click.option(
        "--convention",
        type=click.Choice(CONVENTIONS),
        help="What a 1 means in 0/1 labels: the unit ends a segment, starts one, or a gap has a "
        "boundary.",
    ),
)


def format_option(
    formats: Sequence[str] = OUTPUT_FORMATS, what: str = "Of the output"
) -> Decorator:
    """``-f``, where ``-o`` tells the format by its ending."""
    return click.option(
        "-f",
        "output_format",
        type=click.Choice(formats),
        metavar="FORMAT",
        help=f"{what}: {', '.join(formats)}.  [default: by the ending of -o, else table]",
    )


output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write instead of standard output.",
)
output_options = option_group(format_option(), output_option)
table_option = click.option(
    "--table", metavar="NAME", help="One table instead of all; for CSV, which one."
)


# How texts become vectors


_how_to_encode = option_group(
    click.option(
        "--drop",
        multiple=True,
        type=click.Choice(get_args(Dropped)),
        help='Leave out units such as "yeah" (backchannels), or all but the first of equal units '
        "of a document (repeats); may be repeated.",
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        metavar="DEVICE",
        help="auto, cpu, mps, cuda:0,cuda:1, all, or ray:address=auto,actors=4.",
    ),
    click.option("--offline", is_flag=True, help="Never connect to a model hub or an endpoint."),
    click.option(
        "--cache",
        metavar="DIR",
        help="Folder of cached vectors, or off.  [default: the user's cache folder]",
    ),
)

encoding_options = option_group(
    click.option(
        "--encoder",
        shell_complete=encoder_names,
        metavar="NAME",
        help="Alias (see reffree models), folder, hub id or http://host/v1#model.  [default: "
        "minilm]",
    ),
    _how_to_encode,
)

several_encoders = option_group(
    click.option(
        "--encoder",
        "encoders",
        shell_complete=encoder_names,
        multiple=True,
        metavar="NAME",
        help="Alias (reffree models), folder, hub id or http://host/v1#model; may be repeated.  "
        "[default: minilm]",
    ),
    _how_to_encode,
)


# What is scored, with which vectors, and what of the scores is shown


def metric_option(text: str, known: Sequence[str] = METRICS) -> Decorator:
    """``-m``; which metrics a command takes, and which by default, is its own."""
    return click.option(
        "-m",
        "--metric",
        "metrics",
        multiple=True,
        metavar="METRIC",
        shell_complete=names(known),
        help=text,
    )


def _system_option(what: str) -> Decorator:
    return click.option(
        "--system",
        "systems",
        multiple=True,
        metavar="NAME=FILE",
        help=f"{what}, from its file; may be repeated.",
    )


def scores_option(what: str) -> Decorator:
    """``--scores``: gap scores of a scorer that is not one of the methods."""
    return click.option(
        "--scores",
        "score_files",
        multiple=True,
        metavar="NAME=FILE",
        help=f'{what}: JSONL of {{"id": "a", "scores": [0.1, 0.9]}}, a number for every gap '
        "between units, higher = more of a boundary; may be repeated.",
    )


candidates_option = click.option(
    "--candidates-speaker",
    multiple=True,
    metavar="NAME",
    help="Only this speaker's turns may start a segment; may be repeated.",
)

more_systems = _system_option("One more system")
system_of_one_corpus = _system_option("One more system of the one CORPUS")


def unsegmented_option(
    text: str = "Documents without a boundary: neutral, skip or worst.",
) -> Decorator:
    """``--unsegmented``."""
    return click.option(
        "--unsegmented",
        type=click.Choice(["neutral", "skip", "worst"]),
        metavar="RULE",
        default="neutral",
        show_default=True,
        help=text,
    )


scoring_options = option_group(
    metric_option(
        HELP,
        ("all", "gold", *METRICS),
    ),
    more_systems,
    unsegmented_option(),
)

average_option = click.option(
    "--average",
    type=click.Choice(["macro", "micro"]),
    metavar="HOW",
    default="macro",
    show_default=True,
    help="Gold-based metrics, macro or micro.",
)


def _draws(ctx: click.Context, param: click.Parameter, draws: int | None) -> int | None:
    check_limit("null_draws", draws or 0, f"--null {draws}")
    return draws


result_options = option_group(
    average_option,
    click.option(
        "--null",
        type=click.IntRange(min=1),
        callback=_draws,
        metavar="N",
        help="Hold every score against N random orders of the same segment lengths: z and p.",
    ),
    click.option(
        "--explain",
        is_flag=True,
        help="Also what boundaries contribute, and better places.",
    ),
    click.option("--per-document", is_flag=True, help="Also every document's scores."),
    click.option("--per-segment", is_flag=True, help="Also every segment's scores."),
    click.option(
        "--sort",
        shell_complete=names(("corpus", *METRICS)),
        metavar="METRIC",
        help="Best system first, or corpus for its order.  [default: expected_pk or the first; "
        "JSON, CSV: corpus]",
    ),
)


def _bytes(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Read a size such as 500M."""
    if text is None:
        return None
    size = parse_bytes(text)
    if size is None:
        raise click.UsageError(f"--memory {shorten(text)}: expected a size, such as 2G or 500M.")
    if size < LEAST_MEMORY:
        raise click.UsageError(
            f"--memory {shorten(text)}: expected 1M or more, such as 2G or 500M."
        )
    return size


def _seed(ctx: click.Context, param: click.Parameter, seed: int) -> int:
    if seed < 0:
        raise click.UsageError(f"--seed {seed} is negative: use 0 or more.")
    check_whole("--seed", seed, most=MOST_SEED)
    return seed


seed_option = click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    callback=_seed,
    help="Seed of everything random.",
)

short_option = click.option(
    "--short", "short_signature", is_flag=True, help="Abbreviate the signature."
)

run_options = option_group(
    click.option(
        "--memory",
        callback=_bytes,
        metavar="SIZE",
        help="For scoring's tables, such as 2G; changes no score.  [default: a quarter of what is "
        "free]",
    ),
    seed_option,
    short_option,
)


def embeddings_option(text: str) -> Decorator:
    """``--embeddings``."""
    return click.option("--embeddings", type=click.Path(dir_okay=False, path_type=Path), help=text)


own_vectors_option = embeddings_option("Your vectors: .npz by document id, .npy of all units.")

vector_options = option_group(run_options, own_vectors_option)


# Where it runs

engine_options = option_group(
    click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="This process, or Ray's actors (needs reffree[ray]); results are the same.",
    ),
    click.option(
        "--ray-address",
        metavar="ADDRESS",
        help="A running cluster for --engine ray, such as auto.  [default: start one here]",
    ),
    click.option(
        "--ray-actors",
        type=click.IntRange(min=1),
        metavar="N",
        help="Actors of --engine ray.  [default: 2 on this host, else all GPUs or CPUs]",
    ),
)


# What commands read, as one decorator

corpus_options = option_group(corpora_argument, reading_options)
encoded_corpus_options = option_group(corpus_options, encoding_options)
scored_corpus_options = option_group(vector_options, encoded_corpus_options)
