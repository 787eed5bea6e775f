"""``reffree segment``: make hypotheses."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from reffree.cli.encoding_options import check_encoding, encoding_of, encoding_options
from reffree.cli.file_options import corpora_argument, reading_options
from reffree.cli.inputs import Encoded, read_corpus, read_vectors
from reffree.cli.output import tell_notes
from reffree.cli.progress import progress
from reffree.cli.scoring_options import embeddings_option, seed_option
from reffree.cli.telling import tell
from reffree.errors import counted


@click.command(name="segment")
@corpora_argument
@click.option(
    "--method",
    "methods",
    multiple=True,
    required=True,
    metavar="METHOD",
    help="Naive: none, all, even:k=5, random:p=0.1, random_known, random_unknown, oracle_random, "
    "oracle_periodic, arp_baselines (nine random ones). Lexical: texttiling, c99, textseg. "
    "Embedding: depth, changepoint, greedy, optimal, posterior:length=12, scorer:path=FOLDER. k is "
    "the number of segments for even, of boundaries for the others. May be repeated; a system is "
    "called as its method is written.",
)
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="The corpus with the new systems; - too."
)
@seed_option
@embeddings_option("Your own vectors instead of an encoder, as in reffree score.")
@reading_options
@encoding_options
def command(
    methods: tuple[str, ...],
    output: str,
    seed: int,
    embeddings: Path | None,
    **given: Unpack[Encoded],
) -> None:
    """Segment a corpus with published methods and baselines.

    CORPUS is read as in reffree score; FILE is written by its ending (.jsonl keeps everything).
    """
    check_encoding(given, embeddings)
    corpus = read_corpus(given)

    from reffree.formats import save
    from reffree.segmenters.segment import segment

    made = segment(
        corpus,
        methods,
        seed=seed,
        embeddings=read_vectors(corpus, embeddings),
        progress=progress,
        **encoding_of(given),
    )
    tell_notes((*corpus.notes, *save(made, output)))
    known = corpus.hypotheses
    for name, segmentations in made.hypotheses.items():
        if name not in known:
            n_segments = sum(map(len, segmentations))
            tell(
                f"{name}: {counted(n_segments, 'segment')} in {counted(len(made), 'document')}",
                err=True,
            )
