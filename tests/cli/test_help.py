"""Help pages: every option under a heading, on one screen; nothing that no page describes."""

from __future__ import annotations

import click
import pytest
from reffree.cli.options import model_settings

from reffree.cli import cli
from reffree.cli.help_page import DESCRIBED, OWN, SECTIONS, PagedCommand

WIDTH, HEIGHT = 80, 60


def contexts(command, parent=None):
    """Contexts of a command and all below it, by name."""
    name = "reffree" if parent is None else command.name
    ctx = click.Context(
        command,
        parent,
        name,
        terminal_width=WIDTH,
        help_option_names=cli.context_settings["help_option_names"],
    )
    yield ctx.command_path, ctx
    if isinstance(command, click.Group):
        for each in command.list_commands(ctx):
            yield from contexts(command.get_command(ctx, each), ctx)


CONTEXTS = dict(contexts(cli))
PAGES = {path: ctx.command.get_help(ctx) for path, ctx in CONTEXTS.items()}


def sections(page):
    """Lines of a page by the heading they stand under."""
    found, heading = {}, ""
    for line in page.splitlines():
        if line and not line.startswith(" "):
            heading = line.removesuffix(":")
        found.setdefault(heading, []).append(line)
    return found


def described(lines):
    """Flags that have a line of their own."""
    starts = [line.split("  ")[1] for line in lines if line.startswith("  -")]
    return {word.split(" ")[0] for start in starts for word in start.split(", ")}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_the_screen(path):
    lines = PAGES[path].splitlines()
    assert len(lines) < HEIGHT
    assert max(map(len, lines)) <= WIDTH
    assert not [line for line in lines if line != line.rstrip() and line.strip()]


@pytest.mark.parametrize("path", PAGES)
def test_every_option_is_under_its_heading_once(path):
    ctx, under = CONTEXTS[path], sections(PAGES[path])
    assert isinstance(ctx.command, PagedCommand | click.Group)
    places = {flag: heading for heading, flags in SECTIONS.items() for flag in flags}
    for param in ctx.command.get_params(ctx):
        if not isinstance(param, click.Option) or param.hidden:
            continue
        flag = param.opts[0]
        lines = under[places.get(flag, OWN)]
        named = " ".join(lines).replace(",", " ").replace(".", " ").split()
        homes = [home for home, flags in DESCRIBED.items() if flag in flags]
        assert flag in described(lines) or (homes and flag in named), flag
        if flag not in described(lines):
            told = " ".join(" ".join(lines).split())
            assert f"See reffree {homes[0]} --help for" in told


@pytest.mark.parametrize("home", DESCRIBED)
def test_what_a_page_is_said_to_describe_it_does(home):
    assert set(DESCRIBED[home]) <= described(PAGES[f"reffree {home}"].splitlines())


def test_hidden_options_are_described_by_models():
    settings = click.command(model_settings(hidden=True)(lambda: None)).params
    told = described(PAGES["reffree models"].splitlines())
    assert {param.opts[0] for param in settings} <= told
    for path, ctx in CONTEXTS.items():
        hidden = {param.opts[0] for param in ctx.command.params if getattr(param, "hidden", False)}
        assert hidden <= told, path


def test_common_options_come_first():
    page = sections(PAGES["reffree score"])
    assert list(page)[1:] == [OWN, "Input", "Encoder", "Output", "Run"]
    assert page[OWN][1].startswith("  -m, --metric")
    assert page["Encoder"][1].startswith("  --encoder")
    assert page["Output"][1].startswith("  -o, --output")


def test_bounds_of_numbers_stay_out_of_the_page():
    assert "x<=" not in "".join(PAGES.values())
    assert "x>=" not in "".join(PAGES.values())
