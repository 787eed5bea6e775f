"""What a study works on: a corpus per argument, by name, and what else its options name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired

import click

from reffree.cli.encoding_options import check_encoding
from reffree.cli.inputs import (
    Inputs,
    Keywords,
    Reading,
    input_files,
    keywords_of,
    read_corpus,
    read_vectors,
    with_systems,
)
from reffree.cli.output import Output
from reffree.formats import corpus_names

if TYPE_CHECKING:
    from reffree.corpus import Corpus
    from reffree.encoders.embed import Embeddings
    from reffree.studies.result import StudyResult


class StudyOptions(Inputs):
    """Values of the options that studies share; those with several encoders have no `encoder`."""

    encoders: NotRequired[tuple[str, ...]]
    output_format: str | None
    output: Path | None


@dataclass(frozen=True, slots=True)
class StudyInputs:
    """A study's corpora, the user's vectors of them, how to run it and where its result goes."""

    corpora: dict[str, Corpus]
    vectors: dict[str, Embeddings] | None
    keywords: Keywords
    out: Output

    @classmethod
    def of(cls, given: StudyOptions) -> StudyInputs:
        """Check the options, then read every file they name."""
        embeddings, systems = given.get("embeddings"), given.get("systems", ())
        files = input_files(given)
        n_corpora = len(given["corpora"])
        if n_corpora > 1 and (systems or embeddings):
            option = "--system" if systems else "--embeddings"
            raise click.UsageError(f"{option} with {n_corpora} corpora: name one CORPUS.")
        check_encoding(given, embeddings, given.get("encoders", ()))
        out = Output.of(given["output_format"], given["output"], files)
        corpora = {
            name: with_systems(corpus, systems, given["convention"])
            for name, corpus in _read_apart(given).items()
        }
        vectors = {
            name: own
            for name, corpus in corpora.items()
            if (own := read_vectors(corpus, embeddings)) is not None
        }
        return cls(corpora, vectors or None, keywords_of(given), out)

    def write(self, result: StudyResult, table: str | None = None) -> None:
        """Write what the study found; ``table`` is the only one to show."""
        from reffree.report.study import render

        out = self.out
        text = render(result, out.format, table=table, color=out.color, width=out.width)
        out.write(text, result.notes)


def _read_apart(given: Reading) -> dict[str, Corpus]:
    """Read every argument as a corpus of its own, called by its file's name without extension."""
    named = corpus_names(given["corpora"])
    return {name: read_corpus({**given, "corpora": (path,)}) for name, path in named.items()}
