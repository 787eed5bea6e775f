"""``reffree compare``: which system is better, paired over documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reffree.cli.declaration import read_declaration
from reffree.cli.derive import derived_command, derived_options, given_options, run_study
from reffree.cli.files import Output, fail_if, input_files, read_corpus, read_vectors
from reffree.cli.messages import progress
from reffree.cli.options import INPUT_OPTIONS, OUTPUT_OPTIONS, TABLE_OPTION, corpora_argument

DECLARATION = read_declaration("reffree.studies.compare", "compare")


@derived_command(
    DECLARATION,
    corpora_argument(),
    derived_options(DECLARATION),
    click.option(
        "--baseline",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Compare every system with itself instead, as reffree score --per-document -o "
        "FILE.json found it before; exit with 3 where one has become worse.",
    ),
    INPUT_OPTIONS,
    OUTPUT_OPTIONS,
    TABLE_OPTION,
)
def command(baseline: Path | None, **given: Any) -> None:  # noqa: ANN401  (values of any option)
    """Compare systems with each other, or with themselves before."""
    if baseline is None:
        run_study(DECLARATION, given)
        return
    options = given_options(DECLARATION, given)
    out = Output(given, input_files(given, str(baseline)))
    corpus = read_corpus(given)
    options["embeddings"] = read_vectors(corpus, given["embeddings"])
    with progress("Loading"):
        from reffree.evaluate.score import score
        from reffree.studies.compare import changes_since, read_baseline, worse_systems

    then = read_baseline(baseline)
    alpha = {"alpha": options.pop("alpha")} if "alpha" in options else {}
    table = score(corpus, per_document=True, progress=progress, **options)
    result = changes_since(table, then, seed=options.get("seed", 0), **alpha)
    out.show(result)
    fail_if(worse_systems(result.table("changes")))
