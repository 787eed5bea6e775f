"""``reffree convert``: between corpus formats."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from reffree.cli.files import read_corpus
from reffree.cli.messages import tell, tell_notes
from reffree.cli.options import READING_OPTIONS, PagedCommand, complete
from reffree.formats.format import format_names, formats_with_options
from reffree.util.errors import counted

_OPTIONS = [each.replace(",", ", ") for each in formats_with_options()]  # to break lines there
_HELP = (
    "\b\nFormats:\n"
    + textwrap.indent(textwrap.fill(", ".join(format_names()), 76, break_on_hyphens=False), "  ")
    + "\n\n\b\nThose with options, and their defaults:\n"
    + "\n".join(
        textwrap.fill(each, 78, initial_indent="  ", subsequent_indent="    ") for each in _OPTIONS
    ).replace(", ", ",")
)


@click.command(name="convert", cls=PagedCommand, epilog=_HELP)
@click.argument("source", metavar="IN", shell_complete=complete("files"))
@click.argument("target", metavar="OUT", shell_complete=complete("files"))
@click.option(
    *("--to", "target_format"),
    type=click.Choice(format_names(writable=True)),
    help="Format of OUT, where its name does not tell.",
)
@READING_OPTIONS
def command(source: str, target: str, **given: Any) -> None:  # noqa: ANN401
    """Convert a corpus between formats.

    IN is read by name and content (- is standard input), OUT is written by name: .jsonl, .tsv,
    .txt, .ref, a folder, or as --to says; packed where .gz stands behind it.
    """
    from reffree.formats import save

    corpus = read_corpus({**given, "corpora": (source,)})
    left_out = save(corpus, target, format=given["target_format"])
    tell_notes((*corpus.notes, *left_out))
    documents, units = counted(len(corpus), "document"), counted(corpus.n_units, "unit")
    tell(f"{target}: {documents}, {units}", err=True)
