"""``reffree compare``: which system is better, paired over documents."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import (
    CommandOptions,
    CompareKeywords,
    input_files,
    keywords_of,
    read_inputs,
)
from reffree.cli.messages import progress, waiting
from reffree.cli.options import output_options, scored_corpus_options, scoring_options
from reffree.cli.output import Output, fail_if


@click.command(cls=PagedCommand, name="compare")
@scoring_options
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    help="Systems are told apart where the corrected p is at most this.",
)
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Compare every system with itself instead, as reffree score --per-document -o FILE.json "
    "found it before; exit with 3 where one has become worse.",
)
@scored_corpus_options
@output_options
def command(alpha: float, baseline: Path | None, **given: Unpack[CommandOptions]) -> None:
    """Which system is better, paired over documents.

    For every metric: a ranking, with letters for systems that cannot be told apart, and every
    pair's difference with its interval over documents, its permutation p and the p corrected for
    the number of pairs (Holm). CORPUS is a file or folder of documents with the segmentations of
    two or more systems; - reads standard input.
    """
    if not 0 < alpha < 1:
        raise click.UsageError(f"--alpha {alpha:g}: expected a number between 0 and 1.")
    files = [*input_files(given), *([] if baseline is None else [str(baseline)])]
    out = Output.of(given["output_format"], given["output"], files)
    keywords = keywords_of(given, CompareKeywords)
    if baseline is not None:
        _compare_with(baseline, alpha, given, out)
        return
    corpus, vectors = read_inputs(given)

    from reffree.studies import compare

    result = compare(corpus, alpha=alpha, embeddings=vectors, progress=progress, **keywords)
    out.show(result)


def _compare_with(file: Path, alpha: float, given: CommandOptions, out: Output) -> None:
    """Hold scores of now against those of a file."""
    corpus, vectors = read_inputs(given)

    with waiting("Loading"):
        from reffree.evaluate.score import score
    from reffree.studies.changes import changes_since, read_baseline, worse_systems

    before = read_baseline(file)
    keywords = keywords_of(given, CompareKeywords)
    table = score(corpus, embeddings=vectors, per_document=True, progress=progress, **keywords)
    result = changes_since(table, before, alpha=alpha, seed=given["seed"])
    out.show(result)
    fail_if(worse_systems(result.table("changes")))
