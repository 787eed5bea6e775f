"""``reffree convert``: between corpus formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reffree.cli.messages import tell, tell_notes
from reffree.cli.options import reading_options
from reffree.errors import counted
from reffree.formats import FORMATS

if TYPE_CHECKING:
    from reffree.segmentation import Convention


@click.command(name="convert")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--to",
    "target_format",
    type=click.Choice([name for name in FORMATS if name not in ("tiage", "qmsum")]),
    help="Format of OUT, where its name does not tell.",
)
@reading_options
def command(
    source: str,
    target: str,
    target_format: str | None,
    input_format: str | None,
    text: str | None,
    convention: Convention | None,
) -> None:
    """Convert a corpus between formats.

    IN is read by name and content (- is standard input), OUT is written by name: .jsonl, .tsv,
    .txt, .ref, a folder, or as --to says.
    """
    from reffree.formats import load, save

    corpus = load(source, format=input_format, text=text, convention=convention)
    left_out = save(corpus, target, format=target_format)
    tell_notes((*corpus.notes, *left_out))
    tell(
        f"{target}: {counted(len(corpus), 'document')}, {counted(corpus.n_units, 'unit')}", err=True
    )
