"""What commands read: options of the input, and corpora, systems and vectors from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reffree.cli.completion import complete
from reffree.cli.help_page import SectionOption
from reffree.report.grid import OUTPUT_FORMATS
from reffree.util.bounds import MOST_SEED

if TYPE_CHECKING:
    from reffree.data.corpus import Corpus
    from reffree.encoders.embed import Embeddings

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_input = partial(click.option, cls=SectionOption, section="Input")


def corpora_argument(*, required: bool = True) -> Decorator:
    """Take any number of files and folders, or at least one."""
    return click.argument(
        "corpora",
        nargs=-1,
        required=required,
        metavar="CORPUS..." if required else "[CORPUS...]",
        shell_complete=complete("files"),
    )


def option_group(*options: Decorator) -> Decorator:
    """Make one decorator of several options, in the order in which the help shows them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


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
        help="One more system of the one CORPUS, from its file; may be repeated.",
    ),
    EMBEDDINGS_OPTION,
    READING_OPTIONS,
)
"""How files are read, and what comes beside them."""

SEED_OPTION = click.option(
    "--seed",
    cls=SectionOption,
    section="Run",
    type=click.IntRange(0, MOST_SEED),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of everything random.",
)

_output = partial(click.option, cls=SectionOption, section="Output")


def output_options(formats: Sequence[str] = OUTPUT_FORMATS) -> Decorator:
    """``-f`` and ``-o``, whose ending tells the format."""
    return option_group(
        _output(
            "-f",
            "output_format",
            type=click.Choice(formats),
            metavar="FORMAT",
            help=f"{', '.join(formats)}.  [default: by the ending of -o, else table]",
        ),
        _output(
            "-o",
            "--output",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="File to write instead of standard output.",
        ),
    )


OUTPUT_OPTIONS = output_options()
TABLE_OPTION = _output(
    "--table", metavar="NAME", help="One table instead of all; for CSV, which one."
)


def split_named_file(text: str, flag: str = "--system") -> tuple[str, str]:
    """Read NAME=FILE; ``flag`` is for messages."""
    name, separator, file = text.partition("=")
    if not (name and separator and file):
        raise click.UsageError(f"{flag} {text!r}: expected NAME=FILE, such as even=even.jsonl.")
    return name, file


def files_by_name(texts: tuple[str, ...], flag: str) -> dict[str, str]:
    """Read several NAME=FILE; refuse a name that comes twice."""
    found: dict[str, str] = {}
    for name, file in (split_named_file(text, flag) for text in texts):
        if name in found:
            raise click.UsageError(f"{flag} {name}=… twice: give one of them another name.")
        found[name] = file
    return found


def input_files(given: Mapping[str, Any], *others: str) -> list[str]:
    """Return every file the user named to read from."""
    systems = [split_named_file(each)[1] for each in given.get("system_files", ())]
    single = [given.get("text"), given.get("embeddings")]
    return [*given["corpora"], *systems, *others, *(str(file) for file in single if file)]


def check_encoding(options: Mapping[str, Any], embeddings: Path | None) -> None:
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

    text = given.get("text")
    corpus = load(
        *given["corpora"],
        format=given.get("input_format"),
        text=text if text is not None or text_needed else False,
    )
    for name, file in map(split_named_file, given.get("system_files", ())):
        corpus = read_system(file, name, corpus, corpus_format=given.get("input_format"))
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
