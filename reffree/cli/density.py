"""``reffree density``: quality against the number of boundaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from reffree.bounds import Positive
from reffree.cli.corpora import StudyInputs, StudyOptions
from reffree.cli.encoding_options import encoding_options
from reffree.cli.file_options import corpora_argument, output_options, reading_options
from reffree.cli.options import whole
from reffree.cli.scoring_options import (
    metric_option,
    system_of_one_corpus,
    unsegmented_option,
    vector_options,
)

if TYPE_CHECKING:
    from reffree.scoring.engine import Unsegmented
    from reffree.studies.density_curves.points import Matching


@click.command(name="density")
@corpora_argument
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="METHOD",
    help="With a score per gap: depth, texttiling, scorer:path=FOLDER or random; may be repeated.  "
    "[default: depth, texttiling, random]",
)
@click.option(
    "--gap",
    "min_gap",
    type=whole(Positive),
    default=3,
    show_default=True,
    help="Units between two boundaries of a sweep.",
)
@click.option(
    "--matching",
    "matchings",
    multiple=True,
    type=click.Choice(["many_to_one", "one_to_one"]),
    help="Of boundaries in W-F1; may be repeated.  [default: both]",
)
@metric_option(
    "Further metrics on the sweep, as in reffree score; may be repeated.  [default: expected_pk, "
    "arp_pair, silhouette]"
)
@system_of_one_corpus
@unsegmented_option()
@vector_options
@reading_options
@encoding_options
@output_options
def command(
    methods: tuple[str, ...],
    min_gap: int,
    matchings: tuple[Matching, ...],
    metrics: tuple[str, ...],
    unsegmented: Unsegmented,
    **given: Unpack[StudyOptions],
) -> None:
    """How far quality depends on how many boundaries there are.

    Sweeps the threshold of methods that score every gap, with W-F1, coverage, purity and
    reference-free losses at each; says which thresholds give too few and too many boundaries; and
    compares methods and the corpus's systems in pairs, as they are and at equal density. Each
    CORPUS is a corpus of its own and needs gold. With -f csv the curves are written.
    """
    inputs = StudyInputs.of(given)

    from reffree.studies.density_curves.density import METHODS, METRICS, density
    from reffree.studies.density_curves.points import MATCHINGS

    result = density(
        inputs.corpora,
        methods=methods or METHODS,
        min_gap=min_gap,
        matchings=matchings or MATCHINGS,
        metrics=metrics or METRICS,
        embeddings=inputs.vectors,
        unsegmented=unsegmented,
        **inputs.keywords,
    )
    inputs.write(result)
