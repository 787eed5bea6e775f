"""``reffree agreement``: how far annotators agree."""

from __future__ import annotations

from typing import Unpack

import click

from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import FileOptions, input_files, read_files
from reffree.cli.options import corpus_options, output_options, whole
from reffree.cli.output import Output
from reffree.util.bounds import Positive


@click.command(cls=PagedCommand, name="agreement")
@click.option(
    "--systems",
    "of_systems",
    is_flag=True,
    help="Take the corpus's systems as annotators, as in segeval files.",
)
@click.option(
    "--n-t",
    type=whole(Positive),
    default=2,
    show_default=True,
    help="Boundaries nearer than this many units are near misses.",
)
@corpus_options
@output_options
def command(of_systems: bool, n_t: int, **given: Unpack[FileOptions]) -> None:
    """Measure how far annotators agree on the same documents, beyond chance.

    CORPUS has several annotators' segmentations under "golds": annotator, then masses; or is a
    segeval file with --format segeval:coders=golds. No text is needed.
    """
    out = Output.of(given["output_format"], given["output"], input_files(given))

    from reffree.formats import corpus_names
    from reffree.studies import agreement

    corpora = {
        name: read_files([path], given, text_needed=False)
        for name, path in corpus_names(given["corpora"]).items()
    }
    out.show(agreement(corpora, systems=of_systems, n_t=n_t))
