"""``reffree agreement``: how far annotators agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reffree.cli.options import output_options, reading_options
from reffree.cli.output import Output

if TYPE_CHECKING:
    from reffree.segmentation import Convention


@click.command(name="agreement")
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@click.option(
    "--systems", is_flag=True, help="Take the corpus's systems as annotators, as in segeval files."
)
@click.option(
    "--n-t",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Boundaries nearer than this many units are near misses.",
)
@reading_options
@output_options
def command(
    corpora: tuple[str, ...],
    systems: bool,
    n_t: int,
    input_format: str | None,
    text: str | None,
    convention: Convention | None,
    output_format: str | None,
    output: Path | None,
) -> None:
    """Measure how far annotators agree on the same documents, beyond chance.

    CORPUS has several annotators' segmentations under "golds": annotator, then masses.
    """
    out = Output.of(output_format, output, corpora)

    from reffree.formats import load
    from reffree.report.agreement import render
    from reffree.study.agreement import corpus_agreement

    corpus = load(
        *corpora,
        format=input_format,
        text=text,
        convention=convention,
    )
    result = corpus_agreement(corpus, systems=systems, n_t=n_t)
    out.write(render(result, out.format, color=out.color, width=out.width), result.notes)
