"""``reffree compare``: which system is better, paired over documents."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from reffree.cli.encoding_options import encoding_options
from reffree.cli.file_options import corpora_argument, output_options, reading_options
from reffree.cli.inputs import Given, input_files, read_inputs, read_vectors, scoring_of
from reffree.cli.output import Output
from reffree.cli.scoring_options import system_options, vector_options


@click.command(name="compare")
@corpora_argument
@system_options
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    help="Systems are told apart where the corrected p is at most this.",
)
@vector_options
@reading_options
@encoding_options
@output_options
def command(
    alpha: float, output_format: str | None, output: Path | None, **given: Unpack[Given]
) -> None:
    """Which system is better, paired over documents.

    For every metric: a ranking, with letters for systems that cannot be told apart, and every
    pair's difference with its interval over documents, its permutation p and the p corrected for
    the number of pairs (Holm). CORPUS is a file or folder of documents with the segmentations of
    two or more systems; - reads standard input.
    """
    if not 0 < alpha < 1:
        raise click.UsageError(f"--alpha {alpha:g}: expected a number between 0 and 1.")
    out = Output.of(output_format, output, input_files(given))
    corpus = read_inputs(given)
    vectors = read_vectors(corpus, given["embeddings"])

    from reffree.report.compare import render
    from reffree.studies import compare

    comparison = compare(corpus, alpha=alpha, embeddings=vectors, **scoring_of(given))
    rendered = render(comparison, out.format, color=out.color, width=out.width)
    out.write(rendered, comparison.notes)
