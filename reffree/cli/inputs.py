"""From the options of the commands that score: a corpus with its systems, and how to score it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from reffree.cli.options import check_encoding, progress
from reffree.encoders.options import Encoding

if TYPE_CHECKING:
    from reffree.corpus import Corpus
    from reffree.encoders.embed import Embeddings
    from reffree.scoring.engine import Unsegmented
    from reffree.segmentation import Convention
    from reffree.study.progress import Progress


class Given(Encoding):
    """Values of the corpus argument and of system, vector, reading and encoding options."""

    corpora: tuple[str, ...]
    metrics: tuple[str, ...]
    systems: tuple[str, ...]
    unsegmented: Unsegmented
    seed: int
    short: bool
    embeddings: Path | None
    memory: int | None
    input_format: str | None
    text: str | None
    convention: Convention | None


class Scoring(Encoding):
    """Keywords of `reffree.study.score.score` that every command that scores passes on."""

    metrics: tuple[str, ...] | None
    embeddings: Embeddings | None
    unsegmented: Unsegmented
    seed: int
    short_signature: bool
    memory: int | None
    progress: Progress


def input_files(given: Given) -> list[str]:
    """Every file the user named to read from."""
    named = [*given["corpora"], *(file for _, file in map(split_system, given["systems"]))]
    return [*named, *(str(given[key]) for key in ("text", "embeddings") if given[key])]


def check_options(given: Given) -> None:
    """Refuse options that exclude each other or make no sense, and go offline if asked to."""
    if given["seed"] < 0:
        raise click.UsageError(f"--seed {given['seed']} is negative: use 0 or more.")
    check_encoding(given, given["embeddings"])


def read_inputs(given: Given) -> tuple[Corpus, Scoring]:
    """Check the options, then read the corpus, its further systems and the user's vectors."""
    named = [split_system(system) for system in given["systems"]]
    check_options(given)

    from reffree.formats import load

    corpus = load(
        *given["corpora"],
        format=given["input_format"],
        text=given["text"],
        convention=given["convention"],
    )
    corpus = with_systems(corpus, named, given["convention"])
    return corpus, scoring_of(corpus, given)


def with_systems(
    corpus: Corpus, named: Sequence[tuple[str, str]], convention: Convention | None = None
) -> Corpus:
    """Add systems from their files."""
    from reffree.formats import read_system

    for name, file in named:
        corpus = read_system(file, name, corpus, convention=convention)
    return corpus


def scoring_of(corpus: Corpus, given: Given) -> Scoring:
    """How to score a corpus, with the user's vectors if there are any."""
    # Torch is imported only once the input is known to be good.
    from reffree.encoders.precomputed import from_file

    vectors = None if given["embeddings"] is None else from_file(corpus, given["embeddings"])
    return Scoring(
        metrics=given["metrics"] or None,
        embeddings=vectors,
        unsegmented=given["unsegmented"],
        seed=given["seed"],
        short_signature=given["short"],
        memory=given["memory"],
        progress=progress,
        **encoding_of(given),
    )


def encoding_of(given: Encoding) -> Encoding:
    """Only the encoding options among a command's values."""
    return cast(Encoding, {k: v for k, v in given.items() if k in Encoding.__annotations__})


def split_system(system: str, flag: str = "--system") -> tuple[str, str]:
    """Read NAME=FILE; ``flag`` is for messages."""
    name, separator, file = system.partition("=")
    if not (name and separator and file):
        raise click.UsageError(f"{flag} {system!r}: expected NAME=FILE, such as even=even.jsonl.")
    return name, file
