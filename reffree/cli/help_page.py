"""Help pages: a command's options under headings, its own first, on one screen."""

from __future__ import annotations

import re
from typing import Any

import click

SECTIONS = ("Options", "Input", "Encoder", "Run", "Output")
WIDTH = 22
"""Columns for an option and its value; a longer one has a line of its own."""

_BOUNDS = re.compile(r"; [\d<=]*x[<>]=\d+|  \[[\d<=]*x[<>]=\d+\]")
"""Of numbers, which the refusal of one beyond them tells."""


class SectionOption(click.Option):
    """An option that stands under a heading of the help page."""

    def __init__(self, *args: Any, section: str = "Options", **keywords: Any) -> None:  # noqa: ANN401
        """Take what click's option takes, and the heading."""
        super().__init__(*args, **keywords)
        self.section = section


class PagedCommand(click.Command):
    """A command whose help page is in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        for heading in SECTIONS:
            own = [each for each in options if getattr(each, "section", "Options") == heading]
            if own:
                with formatter.section(heading):
                    write_options(ctx, formatter, own)


def write_options(
    ctx: click.Context, formatter: click.HelpFormatter, options: list[click.Option]
) -> None:
    """Write options and what they do in two columns, as wide in every section."""
    rows = []
    for option in options:
        record = option.get_help_record(ctx)
        if record is not None:  # None is hidden
            flags = re.sub("INTEGER( RANGE)?", "N", record[0])
            rows.append((flags.ljust(WIDTH), _BOUNDS.sub("", record[1])))
    if rows:
        formatter.write_dl(rows, col_max=WIDTH)
