"""``reffree density``: quality against the number of boundaries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

import click

from reffree.cli.corpora import load_corpora
from reffree.cli.inputs import split_system, with_systems
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
    from reffree.scoring.engine import Unsegmented
    from reffree.segmentation import Convention
    from reffree.study.plane import Matching


@click.command(name="density")
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
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
    type=click.IntRange(min=1),
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
@click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    help="Further metrics on the sweep, as in reffree score; may be repeated.  [default: "
    "arp_pair, silhouette, sag]",
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="NAME=FILE",
    help="One more system of the one CORPUS, from a file of segmentations; may be repeated.",
)
@click.option(
    "--unsegmented",
    type=click.Choice(["neutral", "skip", "worst"]),
    default="neutral",
    show_default=True,
    help="What a document without a boundary scores.",
)
@vector_options
@reading_options
@encoding_options
@output_options
def command(
    corpora: tuple[str, ...],
    methods: tuple[str, ...],
    min_gap: int,
    matchings: tuple[str, ...],
    metrics: tuple[str, ...],
    systems: tuple[str, ...],
    unsegmented: Unsegmented,
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
    """How far quality depends on how many boundaries there are.

    Sweeps the threshold of methods that score every gap, with W-F1, coverage, purity and
    reference-free losses at each; says which thresholds give too few and too many boundaries; and
    compares methods and the corpus's systems in pairs, as they are and at equal density. Each
    CORPUS is a corpus of its own and needs gold. With -f csv the curves are written.
    """
    named = [split_system(system) for system in systems]
    if len(corpora) > 1 and (systems or embeddings):
        option = "--system" if systems else "--embeddings"
        raise click.UsageError(f"{option} with {len(corpora)} corpora: name one CORPUS.")
    if seed < 0:
        raise click.UsageError(f"--seed {seed} is negative: use 0 or more.")
    check_encoding(encoding, embeddings)
    files = [*corpora, *(file for _, file in named), *(str(x) for x in (text, embeddings) if x)]
    out = Output.of(output_format, output, files)
    loaded = load_corpora(corpora, input_format, text, convention)
    loaded = {name: with_systems(corpus, named, convention) for name, corpus in loaded.items()}

    from reffree.encoders.precomputed import from_file
    from reffree.report.study import render
    from reffree.study.density import METHODS, METRICS, density
    from reffree.study.plane import MATCHINGS

    result = density(
        loaded,
        methods=methods or METHODS,
        min_gap=min_gap,
        matchings=cast("tuple[Matching, ...]", matchings) or MATCHINGS,
        metrics=metrics or METRICS,
        embeddings=None
        if embeddings is None
        else {name: from_file(corpus, embeddings) for name, corpus in loaded.items()},
        unsegmented=unsegmented,
        seed=seed,
        short_signature=short,
        memory=memory,
        progress=progress,
        **encoding,
    )
    out.write(render(result, out.format, color=out.color, width=out.width), result.notes)
