"""``reffree segment``: make hypotheses."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from reffree.cli.completion import METHODS, SELECTIONS, file_names, names
from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import CommandOptions, input_files, keywords_of, read_inputs, score_files
from reffree.cli.messages import progress, tell, tell_notes
from reffree.cli.options import (
    candidates_option,
    embeddings_option,
    encoded_corpus_options,
    scores_option,
    seed_option,
)
from reffree.cli.output import spare_inputs
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.util.atomic import check_writable
from reffree.util.errors import counted


@click.command(cls=PagedCommand, name="segment")
@click.option(
    "--method",
    "methods",
    shell_complete=names(METHODS),
    multiple=True,
    metavar="METHOD",
    help="Naive: none, all, even:k=5, random:p=0.1, random_known, random_unknown, oracle_random, "
    "oracle_periodic, arp_baselines (nine random ones). Lexical: texttiling, c99, textseg. "
    "Embedding: depth, changepoint, greedy, optimal, posterior:length=12, scorer:path=FOLDER, "
    "csm:path=FOLDER. Supervised: trained:path=FOLDER, or supervised:architecture=bilstm "
    "(sheikh-bilstm, transformer), trained on the corpus's other documents. k is the number of "
    "segments for even, of boundaries for the others. May be repeated; a system is called as its "
    "method is written.",
)
@scores_option("A system NAME from any scorer's gap scores")
@click.option(
    "--select",
    shell_complete=names(SELECTIONS),
    multiple=True,
    metavar="RULE",
    help="How boundaries are selected from scores, of --scores or of a method that scores gaps: "
    "static:tau=0.5,gap=3, density:rate=0.1,gap=3 (of every document's gaps) or "
    "adaptive:rho=0.1,gap=3 (over the corpus). May be repeated.  [default: static for --scores, "
    "the method's own for --method]",
)
@candidates_option
@click.option(
    "--save-scores",
    metavar="FILE",
    help="Also write the gap scores of the one --method, as --scores reads them; they are made "
    "once more for that.",
)
@click.option(
    "-o",
    "--output",
    "target",
    required=True,
    shell_complete=file_names,
    metavar="FILE",
    help="The corpus with the new systems; - too.",
)
@seed_option
@embeddings_option("Your own vectors instead of an encoder, as in reffree score.")
@encoded_corpus_options
def command(
    methods: tuple[str, ...],
    select: tuple[str, ...],
    candidates_speaker: tuple[str, ...],
    save_scores: str | None,
    target: str,
    **given: Unpack[CommandOptions],
) -> None:
    """Segment a corpus with published methods and baselines, or by any scorer's gap scores.

    CORPUS is read as in reffree score; FILE is written by its ending (.jsonl keeps everything).
    """
    from reffree.formats import read_scores, save, write_scores
    from reffree.formats.saving import check_target

    check_target(target)
    files = score_files(given)
    _check(methods, files, save_scores, target)
    if save_scores is not None and save_scores != "-":
        check_writable(Path(save_scores))
        spare_inputs("--save-scores", Path(save_scores), input_files(given))
    corpus, vectors = read_inputs(given)

    from reffree.segmenters.gap_scores import boundary_scores
    from reffree.segmenters.given import refuse_dropped
    from reffree.segmenters.segment import segment

    if save_scores is not None:
        refuse_dropped(EncoderOptions(**keywords_of(given, Encoding)))
    scores = {name: read_scores(file, corpus, name) for name, file in files.items()}
    encoding = keywords_of(given, Encoding)
    made = segment(
        corpus,
        methods,
        scores=scores,
        select=select,
        candidates_speaker=candidates_speaker,
        seed=given["seed"],
        embeddings=vectors,
        progress=progress,
        **encoding,
    )
    if save_scores is not None:
        found = boundary_scores(
            corpus,
            methods[0],
            seed=given["seed"],
            embeddings=vectors,
            progress=progress,
            **encoding,
        )
        write_scores(save_scores, found)
    tell_notes((*corpus.notes, *save(made, target)))
    known = corpus.hypotheses
    for name, segmentations in made.hypotheses.items():
        if name not in known:
            n_segments = sum(map(len, segmentations))
            tell(
                f"{name}: {counted(n_segments, 'segment')} in {counted(len(made), 'document')}",
                err=True,
            )


def _check(
    methods: tuple[str, ...], files: dict[str, str], save_scores: str | None, target: str
) -> None:
    """Refuse nothing to segment with, and scores that cannot be written or told apart."""
    if not methods and not files:
        raise click.UsageError("Missing option '--method': or give --scores NAME=FILE.")
    if save_scores is None:
        return
    if len(methods) != 1:
        raise click.UsageError(
            f"--save-scores with {len(methods)} methods: a file has the scores of one."
        )
    if save_scores == target:
        raise click.UsageError(f"--save-scores {target}: this is also -o; choose another file.")

    from reffree.segmenters.gap_scores import CHANCE, parse_scored_method

    if methods[0] == CHANCE or parse_scored_method(methods[0]) is None:
        raise click.UsageError(f"--save-scores: {methods[0]} gives no score per gap.")
