"""``reffree chunks``: text splitters of other libraries, or the user's own, scored like systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reffree.cli.declaration import read_declaration
from reffree.cli.derive import derived_command, derived_options, given_options
from reffree.cli.files import Output, fail_if, spare_inputs
from reffree.cli.messages import progress
from reffree.cli.options import OUTPUT_OPTIONS, TABLE_OPTION, complete
from reffree.cli.score import check_limits, fail_under_option

METRICS = ("placement", "granularity", "expected_pk")
"""Those that are scored unless others are named; a test holds them to the study's."""

DECLARATION = read_declaration("reffree.studies.chunks", "chunks")


@derived_command(
    DECLARATION,
    click.argument(
        "texts", nargs=-1, required=True, metavar="TEXT...", shell_complete=complete("files")
    ),
    derived_options(DECLARATION),
    fail_under_option("Exit with 3 where a chunker is worse; may be repeated."),
    OUTPUT_OPTIONS,
    TABLE_OPTION,
)
def command(limits: dict[str, float], **given: Any) -> None:  # noqa: ANN401  (of any option)
    """Chunk the texts, move boundaries to units, score."""
    options = given_options(DECLARATION, given)
    named = [*options.get("systems", {}).values(), options.get("embeddings")]
    inputs = [*given["texts"], *filter(None, named)]
    check_limits(limits, options.get("metrics", METRICS))
    out = Output(given, inputs, command="chunks")
    if (save := options.get("save_corpus")) is not None:
        if save == "-":
            raise click.UsageError("--save -: standard output is for the scores; name a file.")
        if Path(save) == out.path:
            raise click.UsageError(f"--save {save}: this is also -o; choose another file.")
        spare_inputs("--save", Path(save), inputs)
    texts = [text if text == "-" else Path(text) for text in given["texts"]]
    result = DECLARATION.load()(texts, progress=progress, fail_under=limits, **options)
    out.show(result)
    fail_if(result.settings["worse"])
