"""``reffree diagnose``: what in a corpus makes metrics mislead, and which to trust there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.corpora import load_corpora
from reffree.cli.inputs import encoding_of, split_system, with_systems
from reffree.cli.options import (
    check_encoding,
    encoding_options,
    output_options,
    progress,
    reading_options,
    vector_options,
)
from reffree.cli.output import Output
from reffree.encoders.options import Encoding

if TYPE_CHECKING:
    from reffree.segmentation import Convention


@click.command(name="diagnose")
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    help="Reference-free, as in reffree score; may be repeated.  [default: all]",
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="NAME=FILE",
    help="One more system of the one CORPUS, from a file of segmentations; may be repeated.",
)
@click.option(
    "--source",
    metavar="NAME",
    help="The segmentation to trust most.  [default: gold where it is complete, else the system "
    "with the lowest sag loss]",
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
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Draws of every damage.",
)
@vector_options
@reading_options
@encoding_options
@output_options
def command(
    corpora: tuple[str, ...],
    metrics: tuple[str, ...],
    systems: tuple[str, ...],
    source: str | None,
    threshold: float,
    seeds: int,
    memory: int | None,
    seed: int,
    short: bool,
    embeddings: Path | None,
    input_format: str | None,
    text: str | None,
    convention: Convention | None,
    output_format: str | None,
    output: Path | None,
    **encoding: Unpack[Encoding],
) -> None:
    """What makes metrics mislead on a corpus, and which of them can be trusted there.

    Looks for units with twins in other segments, topics that come back, one-unit segments, text
    that was cut off and vectors that say little. Then damages the best segmentation at hand and
    sees which metrics notice; no gold is needed. Each CORPUS is a corpus of its own.
    """
    named = [split_system(system) for system in systems]
    if len(corpora) > 1 and (systems or embeddings):
        option = "--system" if systems else "--embeddings"
        raise click.UsageError(f"{option} with {len(corpora)} corpora: name one CORPUS.")
    if seed < 0:
        raise click.UsageError(f"--seed {seed} is negative: use 0 or more.")
    check_encoding(encoding, embeddings)
    files = [*corpora, *(file for _, file in named), *([text] if text else [])]
    out = Output.of(output_format, output, [*files, *([str(embeddings)] if embeddings else [])])
    loaded = load_corpora(corpora, input_format, text, convention)
    loaded = {name: with_systems(corpus, named, convention) for name, corpus in loaded.items()}

    from reffree.encoders.precomputed import from_file
    from reffree.report.study import render
    from reffree.study.diagnose import diagnose

    result = diagnose(
        loaded,
        source=source,
        metrics=metrics or None,
        threshold=threshold,
        seeds=seeds,
        embeddings={name: from_file(corpus, embeddings) for name, corpus in loaded.items()}
        if embeddings
        else None,
        seed=seed,
        short_signature=short,
        memory=memory,
        progress=progress,
        **encoding_of(encoding),
    )
    out.write(render(result, out.format, color=out.color, width=out.width), result.notes)
