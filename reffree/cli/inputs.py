"""From the options of the commands that score: a corpus with its systems, and how to score it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from reffree.cli.options import go_offline, progress

if TYPE_CHECKING:
    from reffree.corpus import Corpus
    from reffree.encoders.embed import Embeddings
    from reffree.scoring.engine import Unsegmented
    from reffree.segmentation import Convention
    from reffree.study.progress import Progress


class Given(TypedDict):
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
    encoder: str | None
    device: str
    batch_tokens: int | None
    offline: bool
    no_cache: bool
    cache_dir: Path | None


class Scoring(TypedDict):
    """Keywords of `reffree.study.score.score` that every command that scores passes on."""

    metrics: tuple[str, ...] | None
    encoder: str | None
    embeddings: Embeddings | None
    unsegmented: Unsegmented
    seed: int
    short_signature: bool
    device: str
    batch_tokens: int | None
    offline: bool
    cache: bool
    cache_dir: Path | None
    memory: int | None
    progress: Progress


def input_files(given: Given) -> list[str]:
    """Every file the user named to read from."""
    named = [*given["corpora"], *(file for _, file in map(_split, given["systems"]))]
    return [*named, *(str(given[key]) for key in ("text", "embeddings") if given[key])]


def read_inputs(given: Given) -> tuple[Corpus, Scoring]:
    """Check the options, then read the corpus, its further systems and the user's vectors."""
    named = [_split(system) for system in given["systems"]]
    if given["embeddings"] is not None and given["encoder"] is not None:
        raise click.UsageError("--embeddings and --encoder exclude each other: keep one.")
    if given["seed"] < 0:
        raise click.UsageError(f"--seed {given['seed']} is negative: use 0 or more.")
    if given["offline"]:
        go_offline()

    from reffree.formats import load, read_system

    convention = given["convention"]
    corpus = load(
        *given["corpora"], format=given["input_format"], text=given["text"], convention=convention
    )
    for name, file in named:
        corpus = read_system(file, name, corpus, convention=convention)

    # Torch is imported only once the input is known to be good.
    from reffree.encoders.precomputed import from_file

    vectors = None if given["embeddings"] is None else from_file(corpus, given["embeddings"])
    return corpus, Scoring(
        metrics=given["metrics"] or None,
        encoder=given["encoder"],
        embeddings=vectors,
        unsegmented=given["unsegmented"],
        seed=given["seed"],
        short_signature=given["short"],
        device=given["device"],
        batch_tokens=given["batch_tokens"],
        offline=given["offline"],
        cache=not given["no_cache"],
        cache_dir=given["cache_dir"],
        memory=given["memory"],
        progress=progress,
    )


def _split(system: str) -> tuple[str, str]:
    name, separator, file = system.partition("=")
    if not (name and separator and file):
        raise click.UsageError(f"--system {system!r}: expected NAME=FILE, such as even=even.jsonl.")
    return name, file
