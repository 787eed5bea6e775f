"""From the options of commands: a corpus with its systems and vectors, and how to score it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict

import click

from reffree.cli.encoding_options import check_encoding, encoding_of
from reffree.cli.progress import progress
from reffree.encoders.options import Encoding

if TYPE_CHECKING:
    from reffree.corpus import Corpus
    from reffree.encoders.embed import Embeddings
    from reffree.progress import Progress
    from reffree.scoring.engine import Unsegmented
    from reffree.segmentation import Convention


class Reading(TypedDict):
    """Values of the corpus argument and the reading options."""

    corpora: tuple[str, ...]
    input_format: str | None
    text: str | None
    convention: Convention | None


class Encoded(Reading, Encoding):
    """Values of the corpus argument, reading and encoding options."""


class Running(Encoding):
    """Values of run and encoding options, and of --system and --embeddings where there are such."""

    seed: int
    short: bool
    memory: int | None
    systems: NotRequired[tuple[str, ...]]
    embeddings: NotRequired[Path | None]


class Inputs(Reading, Running):
    """Everything that says what to read."""


class Given(Inputs):
    """Values of the options of the commands that score one corpus."""

    metrics: tuple[str, ...]
    unsegmented: Unsegmented


class Keywords(Encoding):
    """Keywords that `reffree.evaluate.score.score` and every study take."""

    seed: int
    short_signature: bool
    memory: int | None
    progress: Progress


class Scoring(Keywords):
    """Keywords of `reffree.evaluate.score.score` that every command that scores passes on."""

    metrics: tuple[str, ...] | None
    unsegmented: Unsegmented


def split_system(system: str, flag: str = "--system") -> tuple[str, str]:
    """Read NAME=FILE; ``flag`` is for messages."""
    name, separator, file = system.partition("=")
    if not (name and separator and file):
        raise click.UsageError(f"{flag} {system!r}: expected NAME=FILE, such as even=even.jsonl.")
    return name, file


def input_files(given: Inputs) -> list[str]:
    """Every file the user named to read from."""
    systems = [file for _, file in map(split_system, given.get("systems", ()))]
    others = (given["text"], given.get("embeddings"))
    return [*given["corpora"], *systems, *(str(file) for file in others if file)]


def read_corpus(given: Reading) -> Corpus:
    """Read all arguments as one corpus."""
    from reffree.formats import load

    return load(
        *given["corpora"],
        format=given["input_format"],
        text=given["text"],
        convention=given["convention"],
    )


def read_inputs(given: Given) -> Corpus:
    """Check the options, then read the corpus and its further systems."""
    check_encoding(given, given["embeddings"])
    return with_systems(read_corpus(given), given["systems"], given["convention"])


def with_systems(
    corpus: Corpus, systems: Sequence[str], convention: Convention | None = None
) -> Corpus:
    """Add systems, each NAME=FILE, from their files."""
    from reffree.formats import read_system

    for name, file in map(split_system, systems):
        corpus = read_system(file, name, corpus, convention=convention)
    return corpus


def read_vectors(corpus: Corpus, file: Path | None) -> Embeddings | None:
    """Read the user's own vectors, if there are any."""
    if file is None:
        return None
    # Torch is imported only once the input is known to be good.
    from reffree.encoders.embed import from_file

    return from_file(corpus, file)


def keywords_of(given: Running) -> Keywords:
    """How to run, for a study or for `reffree.evaluate.score.score`."""
    return Keywords(
        seed=given["seed"],
        short_signature=given["short"],
        memory=given["memory"],
        progress=progress,
        **encoding_of(given),
    )


def scoring_of(given: Given) -> Scoring:
    """How to score a corpus."""
    return Scoring(
        metrics=given["metrics"] or None,
        unsegmented=given["unsegmented"],
        **keywords_of(given),
    )
