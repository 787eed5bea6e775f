"""``reffree segment``: make hypotheses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reffree.cli.declaration import read_declaration
from reffree.cli.derive import derived_command, derived_options, given_options
from reffree.cli.files import input_files, read_corpus, read_vectors, save_corpus, spare_inputs
from reffree.cli.messages import progress, tell, tell_written
from reffree.cli.options import INPUT_OPTIONS, complete, corpora_argument, files_by_name
from reffree.util.atomic import check_writable
from reffree.util.errors import counted

DECLARATION = read_declaration("reffree.segmenters.segment", "segment")


@derived_command(
    DECLARATION,
    corpora_argument(),
    click.option(
        "--method",
        "methods",
        shell_complete=complete("methods"),
        multiple=True,
        metavar="METHOD",
        help="Naive: none, all, even:k=5, random:p=0.1, random_known, random_unknown, "
        "oracle_random, oracle_periodic, arp_baselines (nine random ones). Lexical: texttiling, "
        "c99, textseg. "
        "Embedding: depth, changepoint, greedy, optimal, posterior:length=12, scorer:path=FOLDER, "
        "csm:path=FOLDER. Supervised: trained:path=FOLDER, or supervised:architecture=bilstm "
        "(sheikh-bilstm, transformer), trained on the corpus's other documents. k is the number of "
        "segments for even, of boundaries for the others. May be repeated; a system is called as "
        "its method is written.",
    ),
    click.option(
        "--scores",
        "score_files",
        shell_complete=complete("files"),
        multiple=True,
        metavar="NAME=FILE",
        callback=files_by_name,
        help="A system NAME from any scorer's gap scores, a JSON object with a document's id and "
        "its scores on every line; may be repeated.",
    ),
    click.option(
        "--save-scores",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Also write the gap scores of the one --method, as --scores reads them; they are made "
        "once more for that.",
    ),
    click.option(
        *("-o", "--output", "target"),
        required=True,
        shell_complete=complete("files"),
        metavar="FILE",
        help="The corpus with the new systems; - too.",
    ),
    derived_options(DECLARATION),
    INPUT_OPTIONS,
)
def command(
    methods: tuple[str, ...],
    score_files: dict[str, str],
    save_scores: Path | None,
    target: str,
    **given: Any,  # noqa: ANN401  (values of any option)
) -> None:
    """Segment a corpus."""
    from reffree.formats import read_scores, write_scores
    from reffree.formats.saving import check_target

    check_target(target)
    if not methods and not score_files:
        raise click.UsageError("Missing option '--method': or give --scores NAME=FILE.")
    if save_scores is not None:
        _check_scored(methods, save_scores, target)
    options = given_options(DECLARATION, given)
    if save_scores is not None and str(save_scores) != "-":
        check_writable(save_scores)
        spare_inputs("--save-scores", save_scores, input_files(given, *score_files.values()))
    corpus = read_corpus(given)
    options["embeddings"] = read_vectors(corpus, given["embeddings"])

    from reffree.encoders.options import Encoding
    from reffree.segmenters.gap_scores import boundary_scores
    from reffree.segmenters.segment import segment

    kept = ("seed", "embeddings", *Encoding.__annotations__)
    scoring = {name: value for name, value in options.items() if name in kept}
    if save_scores is not None:
        found = boundary_scores(corpus, methods[0], progress=progress, **scoring)
    scores = {name: read_scores(file, corpus, name) for name, file in score_files.items()}
    made = segment(corpus, methods, scores=scores, progress=progress, **options)
    if save_scores is not None:
        write_scores(save_scores, found)
        tell_written(save_scores)
    save_corpus(made, target, corpus.notes)
    for name in [each for each in made.hypotheses if each not in corpus.hypotheses]:
        n_segments = sum(map(len, made.hypotheses[name]))
        segments, documents = counted(n_segments, "segment"), counted(len(made), "document")
        tell(f"{name}: {segments} in {documents}", err=True)


def _check_scored(methods: tuple[str, ...], save_scores: Path, target: str) -> None:
    """Refuse scores that cannot be written or told apart."""
    if len(methods) != 1:
        raise click.UsageError(
            f"--save-scores with {len(methods)} methods: a file has the scores of one."
        )
    if str(save_scores) == target:
        raise click.UsageError(f"--save-scores {target}: this is also -o; choose another file.")

    from reffree.segmenters.gap_scores import CHANCE, parse_scored_method

    if methods[0] == CHANCE or parse_scored_method(methods[0]) is None:
        raise click.UsageError(f"--save-scores: {methods[0]} gives no score per gap.")
