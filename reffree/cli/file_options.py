"""Options of what is read and what is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from reffree.cli.options import Decorator, together
from reffree.formats import FORMATS
from reffree.report.score import OUTPUT_FORMATS
from reffree.segmentation import CONVENTIONS

corpora_argument = click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")

reading_options = together(
    click.option(
        "--format",
        "input_format",
        type=click.Choice(FORMATS),
        help="Format of the input, where its name and content do not tell.",
    ),
    click.option(
        "--text",
        type=click.Path(),
        help="Text for formats without any (segeval, nltk): a corpus JSONL, a file with a unit a "
        "line and a blank line between documents, or a folder of <id>.txt.",
    ),
    click.option(
        "--convention",
        type=click.Choice(CONVENTIONS),
        help="What a 1 means in 0/1 labels: the unit ends a segment, starts one, or a gap has a "
        "boundary.",
    ),
)


def format_option(
    formats: Sequence[str] = OUTPUT_FORMATS, what: str = "Format of the output."
) -> Decorator:
    """``-f``, where ``-o`` tells the format by its ending."""
    return click.option(
        "-f",
        "output_format",
        type=click.Choice(formats),
        help=f"{what}  [default: by the ending of -o FILE, else table]",
    )


output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file instead of standard output.",
)
output_options = together(format_option(), output_option)
table_option = click.option(
    "--table", metavar="NAME", help="One table instead of all that are shown; for CSV, which one."
)
