"""Options of the correlation study, under one encoder or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import click

from reffree.bounds import Count, Resamples
from reffree.cli.corpora import StudyOptions
from reffree.cli.file_options import table_option
from reffree.cli.options import together, whole
from reffree.cli.scoring_options import (
    average_option,
    metric_option,
    run_options,
    unsegmented_option,
)

if TYPE_CHECKING:
    from reffree.evaluate.scores import Average
    from reffree.scoring.engine import Unsegmented
    from reffree.studies.correlation.pool import Choice

correlation_options = together(
    metric_option(
        "As in reffree score, of both kinds; may be repeated.  [default: all reference-free ones, "
        "and pk, windowdiff, boundary_similarity]"
    ),
    click.option(
        "--pool",
        type=click.Choice(["auto", "given", "default", "both"]),
        default="auto",
        show_default=True,
        help="Systems: the corpus's own (given), reffree's, both, or both where there are few.",
    ),
    click.option(
        "--cohesion",
        multiple=True,
        metavar="SYSTEM",
        help="A system of the corpus that optimises embedding similarity; may be repeated.",
    ),
    unsegmented_option(),
    average_option,
    click.option(
        "--resamples",
        type=whole(Resamples),
        default=1000,
        show_default=True,
        help="Resamples of documents, for intervals.",
    ),
    click.option(
        "--texts",
        type=whole(Count),
        default=3,
        show_default=True,
        help="Documents of each corpus whose text goes into the JSON, for reffree report.",
    ),
    table_option,
    run_options,
)


class Correlating(TypedDict):
    """Keywords of the correlation study beside those that every study takes."""

    metrics: tuple[str, ...] | None
    pool: Choice
    cohesion: tuple[str, ...]
    unsegmented: Unsegmented
    average: Average
    resamples: int
    texts: int


class CorrelationOptions(StudyOptions, Correlating):
    """Values of correlation options and of those that studies share."""

    table: str | None


def correlating_of(given: CorrelationOptions) -> Correlating:
    """How to correlate."""
    return Correlating(
        metrics=given["metrics"] or None,
        pool=given["pool"],
        cohesion=given["cohesion"],
        unsegmented=given["unsegmented"],
        average=given["average"],
        resamples=given["resamples"],
        texts=given["texts"],
    )
