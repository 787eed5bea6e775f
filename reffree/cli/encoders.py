"""``reffree encoders``: the correlation study under several encoders, compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.corpora import load_corpora
from reffree.cli.options import (
    check_encoding,
    correlation_options,
    output_options,
    progress,
    reading_options,
    several_encoders,
)
from reffree.cli.output import Output

if TYPE_CHECKING:
    from reffree.encoders.options import Encoding
    from reffree.scoring.engine import Unsegmented
    from reffree.segmentation import Convention
    from reffree.study.columns import Average
    from reffree.study.pool import Choice


@click.command(name="encoders")
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
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
def command(
    corpora: tuple[str, ...],
    measure: bool,
    metrics: tuple[str, ...],
    pool: Choice,
    cohesion: tuple[str, ...],
    unsegmented: Unsegmented,
    average: Average,
    resamples: int,
    seed: int,
    memory: int | None,
    short: bool,
    texts: int,
    table: str | None,
    input_format: str | None,
    text: str | None,
    convention: Convention | None,
    encoders: tuple[str, ...],
    output_format: str | None,
    output: Path | None,
    **encoding: Unpack[Encoding],
) -> None:
    """Compare encoders: agreement with gold, speed, anisotropy, and how they judge each other.

    Runs reffree correlate under every --encoder, on the same systems; those that seek cohesion are
    made with every encoder and scored with every other. --no-measure leaves out speed and memory,
    which no two runs measure alike.
    """
    if seed < 0:
        raise click.UsageError(f"--seed {seed} is negative: use 0 or more.")
    check_encoding(encoding)
    out = Output.of(output_format, output, [*corpora, *([text] if text else [])])
    loaded = load_corpora(corpora, input_format, text, convention)

    from reffree.report.study import render
    from reffree.study.encoders import compare_encoders

    result = compare_encoders(
        loaded,
        metrics=metrics or None,
        encoders=encoders,
        measure=measure,
        pool=pool,
        cohesion=cohesion,
        unsegmented=unsegmented,
        average=average,
        texts=texts,
        seed=seed,
        resamples=resamples,
        memory=memory,
        short_signature=short,
        progress=progress,
        **encoding,
    )
    rendered = render(result, out.format, table=table, color=out.color, width=out.width)
    out.write(rendered, result.notes)
