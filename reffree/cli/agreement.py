"""``reffree agreement``: how far annotators agree."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from reffree.bounds import Positive
from reffree.cli.file_options import corpora_argument, output_options, reading_options
from reffree.cli.inputs import Reading, read_corpus
from reffree.cli.options import whole
from reffree.cli.output import Output


@click.command(name="agreement")
@corpora_argument
@click.option(
    "--systems", is_flag=True, help="Take the corpus's systems as annotators, as in segeval files."
)
@click.option(
    "--n-t",
    type=whole(Positive),
    default=2,
    show_default=True,
    help="Boundaries nearer than this many units are near misses.",
)
@reading_options
@output_options
def command(
    systems: bool,
    n_t: int,
    output_format: str | None,
    output: Path | None,
    **given: Unpack[Reading],
) -> None:
    """Measure how far annotators agree on the same documents, beyond chance.

    CORPUS has several annotators' segmentations under "golds": annotator, then masses.
    """
    out = Output.of(output_format, output, filter(None, (*given["corpora"], given["text"])))

    from reffree.report.agreement import render
    from reffree.studies import agreement

    result = agreement(read_corpus(given), systems=systems, n_t=n_t)
    out.write(render(result, out.format, color=out.color, width=out.width), result.notes)
