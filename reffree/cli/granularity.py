"""``reffree granularity``: expected errors against the assumed number of segments."""

from __future__ import annotations

from typing import Unpack

import click

from reffree.cli.corpora import StudyInputs, StudyOptions
from reffree.cli.encoding_options import encoding_options
from reffree.cli.file_options import corpora_argument, output_options, reading_options
from reffree.cli.scoring_options import metric_option, system_of_one_corpus, vector_options


@click.command(name="granularity")
@corpora_argument
@metric_option(
    "expected_pk, expected_windowdiff, expected_boundary_similarity or expected_w_f1; may be "
    "repeated.  [default: expected_pk]"
)
@click.option(
    "--length",
    type=float,
    metavar="UNITS",
    help="Units that a segment is expected to have, where that is known.",
)
@click.option(
    "--evidence",
    default="all",
    show_default=True,
    metavar="SOURCE",
    help="What the posterior rests on: embedding, words, scorer:FOLDER or all that is at hand.",
)
@system_of_one_corpus
@vector_options
@reading_options
@encoding_options
@output_options
def command(
    metrics: tuple[str, ...],
    length: float | None,
    evidence: str,
    **given: Unpack[StudyOptions],
) -> None:
    """Which system is better where annotators cut coarsely, and where finely.

    Follows every system's expected error along the number of segments that annotators are assumed
    to make, and says where another system becomes the best. Beside the curves: how many segments
    each system has, how many the metric itself assumes, and where there is gold, how many gold has
    and the metric against it. No gold is needed. Each CORPUS is a corpus of its own. With -f csv
    the curves are written.
    """
    inputs = StudyInputs.of(given)

    from reffree.studies.granularity_curves.granularity import METRICS, granularity

    result = granularity(
        inputs.corpora,
        metrics=metrics or METRICS,
        length=length,
        evidence=evidence,
        embeddings=inputs.vectors,
        **inputs.keywords,
    )
    inputs.write(result)
