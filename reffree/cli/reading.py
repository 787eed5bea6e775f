"""What commands read: corpora, systems and vectors from the files that options name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from reffree.data.corpus import Corpus
    from reffree.encoders.embed import Embeddings


def input_files(given: Mapping[str, Any], *others: str) -> list[str]:
    """Return every file the user named to read from."""
    systems = [file for _, file in given.get("system_files", ())]
    single = [given.get("text"), given.get("embeddings")]
    return [*given["corpora"], *systems, *others, *(str(file) for file in single if file)]


def check_encoding(options: Mapping[str, Any], embeddings: object) -> None:
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

    text, format = given.get("text"), given.get("input_format")
    if text is None and not text_needed:
        text = False
    corpus = load(*given["corpora"], format=format, text=text)
    for name, file in given.get("system_files", ()):
        corpus = read_system(file, name, corpus, corpus_format=format)
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
