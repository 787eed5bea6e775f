"""``reffree boundaries``: how likely a boundary is in every gap, beside the text."""

from __future__ import annotations

from typing import Unpack

import click

from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import CommandOptions, input_files, keywords_of, read_inputs
from reffree.cli.messages import progress
from reffree.cli.options import (
    encoded_corpus_options,
    format_option,
    more_systems,
    output_option,
    own_vectors_option,
)
from reffree.cli.output import Output
from reffree.encoders.options import Encoding


@click.command(cls=PagedCommand, name="boundaries")
@click.option(
    "--document",
    "documents",
    multiple=True,
    metavar="ID",
    help="Only this document; may be repeated.  [default: all; in a terminal the first are drawn]",
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="Only this system, or gold; may be repeated.  [default: all]",
)
@more_systems
@click.option(
    "--length",
    type=float,
    metavar="UNITS",
    help="Units a segment is expected to have.  [default: as in 15 public corpora, and by the "
    "text]",
)
@click.option(
    "--evidence",
    default="all",
    show_default=True,
    metavar="SOURCE",
    help="What the probabilities rest on: embedding, words, cues, scorer:FOLDER, or all at hand.",
)
@own_vectors_option
@encoded_corpus_options
@format_option()
@output_option
def command(
    documents: tuple[str, ...],
    only: tuple[str, ...],
    length: float | None,
    evidence: str,
    **given: Unpack[CommandOptions],
) -> None:
    """How likely a boundary is in every gap of the text, and which systems have one there.

    The probabilities are those behind the expected errors of reffree score: the text's own, no gold
    is needed. For every system: the mean probability of its boundaries, and its expected Pk.
    CORPUS is read as in reffree score, with or without systems; an -o FILE that ends in .html is a
    page with all documents.
    """
    out = Output.of(given["output_format"], given["output"], input_files(given))
    corpus, vectors = read_inputs(given)

    from reffree.studies.boundary_posterior import boundaries

    result = boundaries(
        corpus,
        length=length,
        evidence=evidence,
        documents=documents or None,
        systems=only or None,
        embeddings=vectors,
        progress=progress,
        **keywords_of(given, Encoding),
    )
    out.show(result)
