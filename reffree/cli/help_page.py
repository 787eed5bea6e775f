"""Help pages: a command's options under headings, what is used most first, on one screen."""

from __future__ import annotations

import re
import textwrap

import click

OWN = "Options"
SECTIONS = {
    "Input": (
        *("--system", "--scores", "--embeddings", "--language", "--format"),
        "--text",
    ),
    "Encoder": (
        *("--encoder", "--context", "--device", "--drop-backchannels", "--drop-repeats"),
        *("--batch-tokens", "--offline", "--no-cache", "--cache-dir"),
    ),
    "Output": (
        *("-o", "-f", "--table", "--sort", "--explain", "--per-document", "--per-segment"),
        *("--document", "--only", "--texts", "--save", "--save-scores", "--shards"),
        *("--fail-under", "--short"),
    ),
    "Run": ("--seed", "--memory", "--engine", "--ray-address", "--ray-actors"),
}
"""Flags by heading, in the order of the page; all others are a command's own and come first."""

DESCRIBED = {
    "convert": ("--text",),
    "models": (
        *("--drop-backchannels", "--drop-repeats", "--batch-tokens", "--offline", "--no-cache"),
        *("--cache-dir", "--context"),
    ),
    "score": (
        *("--unsegmented", "--average", "--sort", "--per-document", "--per-segment"),
        "--explain",
    ),
    "embed": ("--engine", "--ray-address", "--ray-actors"),
}
"""Flags that other commands only name, by the command whose page describes them."""

FURTHER = {"convert": ", and all formats", "models": ", and settings of models"}
"""What else such a page describes."""

WIDTH = 22
"""Columns for an option and its value; a longer one has a line of its own."""

_BOUNDS = re.compile(r"; [\d<=]*x[<>]=\d+|  \[[\d<=]*x[<>]=\d+\]")
"""Of numbers, which the refusal of one beyond them tells."""


class PagedCommand(click.Command):
    """A command whose help page is in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        params = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        for heading, options in _by_heading(params).items():
            rare = _described_elsewhere(options, self.name)
            named = [option for options in rare.values() for option in options]
            with formatter.section(heading):
                write_options(ctx, formatter, [each for each in options if each not in named])
                for command, options in rare.items():
                    flags = ", ".join(_flag(option) for option in options)
                    more = FURTHER.get(command, "")
                    _write_whole(formatter, f"See reffree {command} --help for {flags}{more}.")


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


def _write_whole(formatter: click.HelpFormatter, text: str) -> None:
    """Write a paragraph without breaking a flag at its hyphens."""
    indent = " " * formatter.current_indent
    formatter.write(
        textwrap.fill(
            text,
            formatter.width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
    )
    formatter.write("\n")


def _by_heading(options: list[click.Option]) -> dict[str, list[click.Option]]:
    """Options by heading, both in the order of the page; headings without any are left out."""
    places = {flag: heading for heading, flags in SECTIONS.items() for flag in flags}
    found: dict[str, list[click.Option]] = {heading: [] for heading in (OWN, *SECTIONS)}
    for option in options:
        if not option.hidden:
            found[places.get(_flag(option), OWN)].append(option)
    for heading, flags in SECTIONS.items():
        found[heading].sort(key=lambda option: flags.index(_flag(option)))
    return {heading: listed for heading, listed in found.items() if listed}


def _described_elsewhere(
    options: list[click.Option], command: str | None
) -> dict[str, list[click.Option]]:
    """Options that another command's page describes, by that command.

    One alone is described where it is: that takes no more room than saying where to look.
    """
    found = {
        home: [option for option in options if _flag(option) in flags]
        for home, flags in DESCRIBED.items()
        if home != command
    }
    return {home: listed for home, listed in found.items() if len(listed) > 1}


def _flag(option: click.Option) -> str:
    return option.opts[0]
