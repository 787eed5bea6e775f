"""Options of the command line: their help pages, what a shell completes, those that many share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from reffree.metrics.names import FREE, GOLD
from reffree.report.grid import OUTPUT_FORMATS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

SECTIONS = ("Options", "Input", "Encoder", "Run", "Output")
WIDTH = 22
"""Columns for an option and its value; a longer one has a line of its own."""

_BOUNDS = re.compile(r"; [\d<=]*x[<>]=\d+|  \[[\d<=]*x[<>]=\d+\]")
"""Of numbers, which the refusal of one beyond them tells."""

NAMES: dict[str, tuple[str, ...]] = {
    "expected": tuple(name for name in FREE if name.startswith("expected")),
    "free": tuple(FREE),
    "gold": tuple(GOLD),
    "metrics": ("all", "gold", *FREE, *GOLD),
    "methods": (
        *("none", "all", "even", "random", "random_known", "random_unknown"),
        *("oracle_random", "oracle_periodic", "arp_baselines"),
        *("texttiling", "c99", "textseg", "depth", "changepoint", "greedy", "optimal", "posterior"),
        *("scorer", "csm", "trained", "supervised"),
    ),
    "gap_methods": ("depth", "texttiling", "posterior", "scorer", "csm", "random"),
    "selections": ("static", "density", "adaptive"),
    "perturbations": ("removal", "insertion", "replacement", "transposition", "mixture"),
}
"""Names that a shell completes, listed here so that a Tab imports no torch."""


class SectionOption(click.Option):
    """An option that stands under a heading of the help page."""

    def __init__(self, *args: Any, section: str = "Options", **keywords: Any) -> None:  # noqa: ANN401
        """Take what click's option takes, and the heading."""
        super().__init__(*args, **keywords)
        self.section = section


class PagedCommand(click.Command):
    """A command whose options are under headings, in two columns that are as wide in each."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options and what they do."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        for heading in SECTIONS:
            rows = []
            for option in options:
                record = option.get_help_record(ctx)
                if record is not None and getattr(option, "section", "Options") == heading:
                    flags = re.sub("INTEGER( RANGE)?", "N", record[0])
                    rows.append((flags.ljust(WIDTH), _BOUNDS.sub("", record[1])))
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows, col_max=WIDTH)


def complete(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Offer the names of a kind that begin as what is typed; files and folders are the shell's."""

    def offer(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if kind == "files":
            return [CompletionItem(incomplete, type="file")]
        if kind == "encoders" and incomplete.startswith((".", "/", "~")):
            return [CompletionItem(incomplete, type="dir")]
        return [CompletionItem(name) for name in _names_of(kind) if name.startswith(incomplete)]

    return offer


def _names_of(kind: str) -> Iterable[str]:
    """Return all names of a kind; those of registries import modules."""
    match kind:
        case "encoders":
            from reffree.encoders.aliases import ALIASES

            return ALIASES
        case "chunkers":
            from reffree.chunkers.registry import CHUNKERS

            return CHUNKERS
        case "formats":
            from reffree.formats.format import format_names

            return format_names()
    return NAMES[kind]


def option_group(*options: Decorator) -> Decorator:
    """Make one decorator of several options, in the order in which the help shows them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def corpora_argument(*, required: bool = True) -> Decorator:
    """Take any number of files and folders, or at least one."""
    metavar = "CORPUS..." if required else "[CORPUS...]"
    offer = complete("files")
    return click.argument(
        "corpora", nargs=-1, required=required, metavar=metavar, shell_complete=offer
    )


def split_files(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Read every NAME=FILE."""
    found = []
    for text in texts:
        name, _, file = text.partition("=")
        if not (name and file):
            raise click.UsageError(
                f"{param.opts[0]} {text!r}: expected NAME=FILE, such as even=even.jsonl."
            )
        found.append((name, file))
    return tuple(found)


def files_by_name(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Read every NAME=FILE; refuse a name that comes twice."""
    found: dict[str, str] = {}
    for name, file in split_files(ctx, param, texts):
        if name in found:
            flag = param.opts[0]
            raise click.UsageError(f"{flag} {name}=… twice: give one of them another name.")
        found[name] = file
    return found


_input = partial(click.option, cls=SectionOption, section="Input")
_output = partial(click.option, cls=SectionOption, section="Output")

READING_OPTIONS = option_group(
    _input(
        "--format",
        "input_format",
        metavar="FORMAT",
        shell_complete=complete("formats"),
        help="Of the input, where name and content do not tell; with its settings, such as "
        "table:text=utterance, segeval:coders=golds, jsonl:convention=end.",
    ),
    _input(
        "--text",
        type=click.Path(),
        help="Text for formats without any (segeval, nltk, chapters): a corpus, subtitles, a file "
        "with a unit a line, or a folder of <id>.txt.",
    ),
)
"""How files are read."""

EMBEDDINGS_OPTION = _input(
    "--embeddings",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Your vectors of the one CORPUS instead of an encoder's: .npz by document id, .npy of "
    "all units.",
)
INPUT_OPTIONS = option_group(
    _input(
        "--system",
        "system_files",
        multiple=True,
        metavar="NAME=FILE",
        callback=split_files,
        help="One more system of the one CORPUS, from its file; may be repeated.",
    ),
    EMBEDDINGS_OPTION,
    READING_OPTIONS,
)
"""How files are read, and what comes beside them."""


def output_options(formats: Sequence[str] = OUTPUT_FORMATS) -> Decorator:
    """``-f`` and ``-o``, whose ending tells the format."""
    return option_group(
        _output(
            *("-f", "output_format"),
            type=click.Choice(formats),
            metavar="FORMAT",
            help=f"{', '.join(formats)}.  [default: by the ending of -o, else table]",
        ),
        _output(
            *("-o", "--output"),
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="File to write instead of standard output.",
        ),
    )


OUTPUT_OPTIONS = output_options()
TABLE_OPTION = _output(
    "--table", metavar="NAME", help="One table instead of all; for CSV, which one."
)
