"""Commands have what their functions have, and help pages that fit a screen."""

from __future__ import annotations

import importlib

import click
import pytest

from reffree.cli import COMMANDS, LazyGroup, cli
from reffree.cli.declaration import UNKNOWN, Unknown, read_declaration
from reffree.cli.options import SECTIONS
from reffree.studies import STUDIES
from reffree.util.declare import options_of

MOST_COMMANDS, MOST_OPTIONS, SCREEN = 14, 20, 60


def commands(group, path=()):
    """Every command that runs, by its words."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands(cli))


def test_there_are_few_commands():
    assert len(COMMANDS) <= MOST_COMMANDS


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_a_command_has_few_options_and_fits_a_screen(words):
    command = ALL[words]
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert len(options) <= MOST_OPTIONS
    page = command.get_help(click.Context(command, terminal_width=100, max_content_width=100))
    lines = page.splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= 100
    assert "x<=" not in page
    headings = [line[:-1] for line in lines if line in {f"{each}:" for each in SECTIONS}]
    assert headings == [each for each in SECTIONS if each in headings]
    for option in options:
        assert len([line for line in lines if line.startswith(f"  {option.opts[0]}")]) >= 1
        assert option.help, option.opts


@pytest.mark.parametrize("name", STUDIES)
def test_the_source_says_what_the_function_has(name):
    read = read_declaration(STUDIES[name], name).options
    real = options_of(getattr(importlib.import_module(STUDIES[name]), name))
    assert [each.name for each in read] == [each.name for each in real]
    for ours, theirs in zip(read, real, strict=True):
        assert (ours.option.help, ours.option.flag) == (theirs.option.help, theirs.option.flag)
        if not isinstance(ours.default, Unknown):
            assert ours.default == theirs.default, ours.name


def test_what_is_unknown_stays_so():
    assert UNKNOWN.anything("x")["y"] is UNKNOWN
    assert UNKNOWN | str is str


def test_groups_import_nothing_to_list():
    assert all(isinstance(cli.get_command(click.Context(cli), n), LazyGroup) for n in ("study",))
