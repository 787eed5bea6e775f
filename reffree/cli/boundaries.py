"""``reffree boundaries``: how likely a boundary is in every gap, beside the text."""

from __future__ import annotations

from typing import Any

import click

from reffree.cli.declaration import read_declaration
from reffree.cli.derive import derived_options, given_options
from reffree.cli.help_page import PagedCommand
from reffree.cli.messages import progress, waiting
from reffree.cli.output import Output
from reffree.cli.reading import (
    INPUT_OPTIONS,
    OUTPUT_OPTIONS,
    corpora_argument,
    input_files,
    read_inputs,
)

DECLARATION = read_declaration("reffree.studies.boundaries", "boundaries")


@click.command(cls=PagedCommand, name="boundaries", help=DECLARATION.help)
@corpora_argument()
@derived_options(DECLARATION)
@INPUT_OPTIONS
@OUTPUT_OPTIONS
def command(**given: Any) -> None:  # noqa: ANN401  (values of any option)
    """Show where the text has boundaries."""
    options = given_options(DECLARATION, given)
    out = Output.of(given["output_format"], given["output"], input_files(given))
    corpus, vectors = read_inputs(given, options)
    with waiting("Loading"):
        boundaries = DECLARATION.load()
    out.show(boundaries(corpus, embeddings=vectors, progress=progress, **options))
