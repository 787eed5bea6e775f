"""``reffree compare``: which system is better, paired over documents."""

from __future__ import annotations

from typing import Unpack

import click

from reffree.cli.inputs import (
    CommandOptions,
    CompareKeywords,
    input_files,
    keywords_of,
    read_inputs,
)
from reffree.cli.messages import progress
from reffree.cli.options import output_options, scored_corpus_options, scoring_options
from reffree.cli.output import Output


@click.command(name="compare")
@scoring_options
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    help="Systems are told apart where the corrected p is at most this.",
)
@scored_corpus_options
@output_options
def command(alpha: float, **given: Unpack[CommandOptions]) -> None:
    """Which system is better, paired over documents.

    For every metric: a ranking, with letters for systems that cannot be told apart, and every
    pair's difference with its interval over documents, its permutation p and the p corrected for
    the number of pairs (Holm). CORPUS is a file or folder of documents with the segmentations of
    two or more systems; - reads standard input.
    """
    if not 0 < alpha < 1:
        raise click.UsageError(f"--alpha {alpha:g}: expected a number between 0 and 1.")
    out = Output.of(given["output_format"], given["output"], input_files(given))
    corpus, vectors = read_inputs(given)

    from reffree.report.compare import render
    from reffree.studies import compare

    keywords = keywords_of(given, CompareKeywords)
    result = compare(corpus, alpha=alpha, embeddings=vectors, progress=progress, **keywords)
    out.show(render, result, result.notes)
