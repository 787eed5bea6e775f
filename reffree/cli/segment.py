"""``reffree segment``: make hypotheses."""

from __future__ import annotations

from typing import Unpack

import click

from reffree.cli.inputs import CommandOptions, keywords_of, read_inputs
from reffree.cli.messages import progress, tell, tell_notes
from reffree.cli.options import embeddings_option, encoded_corpus_options, seed_option
from reffree.encoders.options import Encoding
from reffree.errors import counted


@click.command(name="segment")
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
    "-o",
    "--output",
    "target",
    required=True,
    metavar="FILE",
    help="The corpus with the new systems; - too.",
)
@seed_option
@embeddings_option("Your own vectors instead of an encoder, as in reffree score.")
@encoded_corpus_options
def command(methods: tuple[str, ...], target: str, **given: Unpack[CommandOptions]) -> None:
    """Segment a corpus with published methods and baselines.

    CORPUS is read as in reffree score; FILE is written by its ending (.jsonl keeps everything).
    """
    from reffree.formats import save
    from reffree.formats.saving import check_target

    check_target(target)
    corpus, vectors = read_inputs(given)

    from reffree.segmenters.segment import segment

    made = segment(
        corpus,
        methods,
        seed=given["seed"],
        embeddings=vectors,
        progress=progress,
        **keywords_of(given, Encoding),
    )
    tell_notes((*corpus.notes, *save(made, target)))
    known = corpus.hypotheses
    for name, segmentations in made.hypotheses.items():
        if name not in known:
            n_segments = sum(map(len, segmentations))
            tell(
                f"{name}: {counted(n_segments, 'segment')} in {counted(len(made), 'document')}",
                err=True,
            )
