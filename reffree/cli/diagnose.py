"""``reffree diagnose``: what in a corpus makes metrics mislead, and which to trust there."""

from __future__ import annotations

from typing import Unpack

import click

from reffree.bounds import Repetitions
from reffree.cli.corpora import StudyInputs, StudyOptions
from reffree.cli.encoding_options import encoding_options
from reffree.cli.file_options import corpora_argument, output_options, reading_options
from reffree.cli.options import whole
from reffree.cli.scoring_options import metric_option, system_of_one_corpus, vector_options


@click.command(name="diagnose")
@corpora_argument
@metric_option(
    "Reference-free, as in reffree score; may be repeated.  [default: those of reffree score]"
)
@system_of_one_corpus
@click.option(
    "--source",
    metavar="NAME",
    help="The segmentation to trust most.  [default: gold where it is complete, else the system "
    "with the lowest expected_pk]",
)
@click.option(
    "--threshold",
    type=float,
    default=0.95,
    show_default=True,
    help="Cosine from which two units are near twins.",
)
@click.option(
    "--seeds",
    type=whole(Repetitions),
    default=5,
    show_default=True,
    help="Draws of every damage.",
)
@vector_options
@reading_options
@encoding_options
@output_options
def command(
    metrics: tuple[str, ...],
    source: str | None,
    threshold: float,
    seeds: int,
    **given: Unpack[StudyOptions],
) -> None:
    """What makes metrics mislead on a corpus, and which of them can be trusted there.

    Looks for units with twins in other segments, topics that come back, one-unit segments, text
    that was cut off and vectors that say little. Then damages the best segmentation at hand and
    sees which metrics notice; no gold is needed. Each CORPUS is a corpus of its own.
    """
    inputs = StudyInputs.of(given)

    from reffree.studies.diagnosis.diagnose import diagnose

    result = diagnose(
        inputs.corpora,
        source=source,
        metrics=metrics or None,
        threshold=threshold,
        seeds=seeds,
        embeddings=inputs.vectors,
        **inputs.keywords,
    )
    inputs.write(result)
