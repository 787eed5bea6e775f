"""From the values of options to what functions take: corpora, vectors, keywords."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

import click

from reffree.encoders.address import refuse_endpoint
from reffree.encoders.options import Encoding

if TYPE_CHECKING:
    from reffree.data.corpus import Corpus
    from reffree.encoders.embed import Embeddings
    from reffree.evaluate.scores import Average
    from reffree.metrics.free.result import Unsegmented


class FileOptions(TypedDict, total=False):
    """Values of the options of what is read and written; a command has some of them."""

    corpora: tuple[str, ...]
    input_format: str | None
    text: str | None
    systems: tuple[str, ...]
    score_files: tuple[str, ...]
    embeddings: Path | None
    table: str | None
    output_format: str | None
    output: Path | None
    sort: str | None


class CompareKeywords(Encoding, total=False):
    """Keywords that `reffree.studies.compare` and `reffree.score` take from options."""

    metrics: tuple[str, ...]
    unsegmented: Unsegmented
    seed: int


class ScoreKeywords(CompareKeywords, total=False):
    """Keywords that `reffree.score` takes from options."""

    short_signature: bool
    memory: int | None
    average: Average
    null: int
    explain: bool
    per_document: bool
    per_segment: bool


class CommandOptions(FileOptions, ScoreKeywords, total=False):
    """Values of all options that several commands share; a command has some, beside its own."""


KeywordsT = TypeVar("KeywordsT", Encoding, CompareKeywords, ScoreKeywords)


def keywords_of(given: CommandOptions, kind: type[KeywordsT]) -> KeywordsT:
    """Choose the values of a kind; what was not given is left to the function's own default."""
    names = kind.__annotations__
    return cast(KeywordsT, {k: v for k, v in given.items() if k in names and is_given(v)})


def is_given(value: object) -> bool:
    """Whether an option was given or has a default of its own."""
    return value is not None and value != ()


def check_encoding(
    encoding: Encoding, embeddings: Path | None = None, encoders: Sequence[str] = ()
) -> None:
    """Refuse an encoder beside the user's vectors; tell the hub's library to stay offline.

    That library reads its setting when it is first imported.
    """
    if embeddings is not None and (encoders or encoding.get("encoder") is not None):
        raise click.UsageError("--embeddings and --encoder exclude each other: keep one.")
    if encoding.get("offline"):
        os.environ["HF_HUB_OFFLINE"] = "1"


def check_engine(
    engine: str, ray_address: str | None, ray_actors: int | None, encoder: str | None
) -> None:
    """Refuse Ray's options without Ray, and Ray before an endpoint."""
    if engine == "ray":
        refuse_endpoint(encoder, "Ray's actors")
    if engine != "ray" and (ray_address is not None or ray_actors is not None):
        raise click.UsageError("--ray-address and --ray-actors need --engine ray.")


def split_named_file(text: str, flag: str = "--system") -> tuple[str, str]:
    """Read NAME=FILE; ``flag`` is for messages."""
    name, separator, file = text.partition("=")
    if not (name and separator and file):
        raise click.UsageError(f"{flag} {text!r}: expected NAME=FILE, such as even=even.jsonl.")
    return name, file


def score_files(given: FileOptions) -> dict[str, str]:
    """Files of --scores NAME=FILE by name."""
    found: dict[str, str] = {}
    for text in given.get("score_files", ()):
        name, file = split_named_file(text, "--scores")
        if name in found:
            raise click.UsageError(f"--scores {name}=… twice: give one of them another name.")
        found[name] = file
    return found


def input_files(given: FileOptions) -> list[str]:
    """Every file the user named to read from."""
    systems = [file for _, file in map(split_named_file, given.get("systems", ()))]
    systems += score_files(given).values()
    others = (given.get("text"), given.get("embeddings"))
    return [*given["corpora"], *systems, *(str(file) for file in others if file)]


def read_corpus(given: FileOptions, *, text_needed: bool = True) -> Corpus:
    """Read all arguments as one corpus, with the systems of --system."""
    return with_systems(read_files(given["corpora"], given, text_needed=text_needed), given)


def read_files(paths: Sequence[str], given: FileOptions, *, text_needed: bool = True) -> Corpus:
    """Read files as one corpus, as the options of reading say."""
    from reffree.formats import load

    text = given.get("text")
    return load(
        *paths,
        format=given.get("input_format"),
        text=text if text is not None or text_needed else False,
    )


def with_systems(corpus: Corpus, given: FileOptions) -> Corpus:
    """Add the systems of --system NAME=FILE; a convention that --format has is theirs, too."""
    from reffree.formats import read_system

    for name, file in map(split_named_file, given.get("systems", ())):
        corpus = read_system(file, name, corpus, corpus_format=given.get("input_format"))
    return corpus


def read_inputs(given: CommandOptions) -> tuple[Corpus, Embeddings | None]:
    """Check the options, then read the corpus and the user's own vectors of it."""
    check_encoding(given, given["embeddings"])
    corpus = read_corpus(given)
    return corpus, read_vectors(corpus, given["embeddings"])


def read_vectors(corpus: Corpus, file: Path | None) -> Embeddings | None:
    """Read the user's own vectors, if there are any."""
    if file is None:
        return None
    # Torch is imported only once the input is known to be good.
    from reffree.encoders.embed import from_file

    return from_file(corpus, file)
