"""``reffree correlate``: do reference-free metrics rank systems as gold-based ones do?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.corpora import load_corpora
from reffree.cli.inputs import split_system, with_systems
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


@click.command(name="correlate")
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="NAME=FILE",
    help="One more system of the one CORPUS, from a file of segmentations; may be repeated.",
)
@click.option(
    "--embeddings",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Your own vectors of the one CORPUS instead of an encoder, as in reffree score.",
)
@correlation_options
@reading_options
@several_encoders
@output_options
def command(
    corpora: tuple[str, ...],
    systems: tuple[str, ...],
    embeddings: Path | None,
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
    """Correlate reference-free with gold-based metrics over the systems of every CORPUS.

    Each CORPUS is read as in reffree score and needs gold; where it has fewer than eight systems,
    gold, random, perturbed, lexical and cohesion-seeking ones are added. Systems that seek cohesion
    in the embedding space are reported apart: on them a low loss means little.
    """
    named = [split_system(system) for system in systems]
    if len(corpora) > 1 and (systems or embeddings):
        option = "--system" if systems else "--embeddings"
        raise click.UsageError(f"{option} with {len(corpora)} corpora: name one CORPUS.")
    if encoders and embeddings:
        raise click.UsageError("--embeddings and --encoder exclude each other: keep one.")
    if seed < 0:
        raise click.UsageError(f"--seed {seed} is negative: use 0 or more.")
    check_encoding(encoding)
    files = [*corpora, *(file for _, file in named), *(str(x) for x in (text, embeddings) if x)]
    out = Output.of(output_format, output, files)
    loaded = load_corpora(corpora, input_format, text, convention)
    loaded = {name: with_systems(corpus, named, convention) for name, corpus in loaded.items()}

    from reffree.encoders.precomputed import from_file
    from reffree.report.study import render
    from reffree.study.correlate import correlate

    result = correlate(
        loaded,
        metrics=metrics or None,
        encoders=encoders or (None,),
        pool=pool,
        cohesion=cohesion,
        unsegmented=unsegmented,
        average=average,
        texts=texts,
        seed=seed,
        resamples=resamples,
        embeddings=None
        if embeddings is None
        else {name: from_file(corpus, embeddings) for name, corpus in loaded.items()},
        memory=memory,
        short_signature=short,
        progress=progress,
        **encoding,
    )
    rendered = render(result, out.format, table=table, color=out.color, width=out.width)
    out.write(rendered, result.notes)
