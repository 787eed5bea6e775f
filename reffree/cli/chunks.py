"""``reffree chunks``: text splitters of other libraries, or the user's own, scored like systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reffree.cli.completion import complete
from reffree.cli.declaration import read_declaration
from reffree.cli.derive import derived_options, given_options
from reffree.cli.help_page import PagedCommand
from reffree.cli.messages import progress, waiting
from reffree.cli.output import Output, spare_inputs
from reffree.cli.reading import OUTPUT_OPTIONS, TABLE_OPTION, check_encoding, files_by_name

DECLARATION = read_declaration("reffree.studies.chunks", "chunks")


@click.command(name="chunks", cls=PagedCommand, help=DECLARATION.help)
@click.argument(
    "texts", nargs=-1, required=True, metavar="TEXT...", shell_complete=complete("files")
)
@derived_options(DECLARATION)
@OUTPUT_OPTIONS
@TABLE_OPTION
def command(**given: Any) -> None:  # noqa: ANN401  (values of any option)
    """Chunk the texts, move boundaries to sentences, score."""
    options = given_options(DECLARATION, given)
    if "systems" in options:
        options["systems"] = files_by_name(options["systems"], "--system")
    named = [*options.get("systems", {}).values(), options.get("embeddings")]
    inputs = [*given["texts"], *filter(None, named)]
    out = Output.of(given["output_format"], given["output"], inputs, command="chunks")
    check_encoding(options, options.get("embeddings"))
    if (save := options.get("save_corpus")) is not None:
        if save == "-":
            raise click.UsageError("--save -: standard output is for the scores; name a file.")
        if Path(save) == out.path:
            raise click.UsageError(f"--save {save}: this is also -o; choose another file.")
        spare_inputs("--save", Path(save), inputs)
    with waiting("Loading"):
        chunks = DECLARATION.load()
    out.show(chunks(given["texts"], progress=progress, **options), given["table"])
