"""``reffree segment``: make hypotheses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.options import check_encoding, encoding_options, progress, reading_options
from reffree.errors import counted

if TYPE_CHECKING:
    from reffree.encoders.options import Encoding
    from reffree.segmentation import Convention


@click.command(name="segment")
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@click.option(
    "--method",
    "methods",
    multiple=True,
    required=True,
    metavar="METHOD",
    help="Naive: none, all, even:k=5, random:p=0.1, random_known, random_unknown, oracle_random, "
    "oracle_periodic, arp_baselines (nine random ones). Lexical: texttiling, c99, textseg. "
    "Embedding: depth, changepoint, greedy, optimal, scorer:path=FOLDER. May be repeated; a system "
    "is called as its method is written.",
)
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="The corpus with the new systems; - too."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--embeddings",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Your own vectors instead of an encoder, as in reffree score.",
)
@reading_options
@encoding_options
def command(
    corpora: tuple[str, ...],
    methods: tuple[str, ...],
    output: str,
    seed: int,
    embeddings: Path | None,
    input_format: str | None,
    text: str | None,
    convention: Convention | None,
    **encoding: Unpack[Encoding],
) -> None:
    """Segment a corpus with published methods and baselines.

    CORPUS is read as in reffree score; FILE is written by its ending (.jsonl keeps everything).
    """
    check_encoding(encoding, embeddings)

    from reffree.formats import load, save

    corpus = load(*corpora, format=input_format, text=text, convention=convention)

    from reffree.encoders.precomputed import from_file
    from reffree.study.segment import segment

    made = segment(
        corpus,
        methods,
        seed=seed,
        embeddings=None if embeddings is None else from_file(corpus, embeddings),
        progress=progress,
        **encoding,
    )
    for note in (*corpus.notes, *save(made, output)):
        click.echo(f"reffree: note: {note}", err=True)
    known = corpus.hypotheses
    for name, segmentations in made.hypotheses.items():
        if name not in known:
            n_segments = sum(map(len, segmentations))
            click.echo(
                f"{name}: {counted(n_segments, 'segment')} in {counted(len(made), 'document')}",
                err=True,
            )
