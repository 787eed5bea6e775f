"""``reffree encoders``: the correlation study under several encoders, compared."""

from __future__ import annotations

from typing import Unpack

import click

from reffree.cli.corpora import StudyInputs
from reffree.cli.correlation import CorrelationOptions, correlating_of, correlation_options
from reffree.cli.encoding_options import several_encoders
from reffree.cli.file_options import corpora_argument, output_options, reading_options


@click.command(name="encoders")
@corpora_argument
@click.option(
    "--measure/--no-measure",
    default=True,
    show_default=True,
    help="Measure speed and memory of every encoder here.",
)
@correlation_options
@reading_options
@several_encoders
@output_options
def command(measure: bool, **given: Unpack[CorrelationOptions]) -> None:
    """Compare encoders: agreement with gold, speed, anisotropy, and how they judge each other.

    Runs reffree correlate under every --encoder, on the same systems; those that seek cohesion are
    made with every encoder and scored with every other. --no-measure leaves out speed and memory,
    which no two runs measure alike.
    """
    from reffree.studies import check_table

    check_table("encoders", given["table"])
    inputs = StudyInputs.of(given)

    from reffree.studies import compare_encoders

    result = compare_encoders(
        inputs.corpora,
        encoders=given["encoders"],
        measure=measure,
        **correlating_of(given),
        **inputs.keywords,
    )
    inputs.write(result, given["table"])
