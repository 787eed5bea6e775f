"""The ``reffree`` command; subcommands are imported only when they run."""

from __future__ import annotations

import importlib
import runpy
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import click

from reffree.cli.interrupts import INTERRUPTED, MESSAGE, Interrupts
from reffree.cli.messages import log_to_terminal, tell, tell_usage
from reffree.util.atomic import lost_output
from reffree.util.errors import (
    InputError,
    OptionError,
    Place,
    ReffreeError,
    UnknownNameError,
    first_line,
)

COMMANDS = {
    "demo": "Score the corpus that ships with reffree.",
    "score": "Score segmentations, without gold labels or with them.",
    "compare": "Which system is better, paired over documents.",
    "boundaries": "How likely a boundary is in every gap of the text.",
    "segment": "Make hypotheses with published methods and baselines.",
    "perturb": "Make segmentations worse by a known amount.",
    "train": "Train a scorer, a coherence model or a segmenter.",
    "chunks": "Choose a text splitter, and its parameters, without gold.",
    "study": "Studies of metrics: correlation with gold, encoders, density, …",
    "run": "Run a whole study from a YAML file.",
    "report": "Show a result: a page, tables, charts for papers.",
    "convert": "Convert between corpus formats.",
    "models": "List encoders: size, licence, speed, what is here.",
    "cache": "List, check, fill and remove cached embeddings.",
}
"""Help of every command in a line; each is ``command`` in the module of its name."""


class LazyGroup(click.Group):
    """Knows its commands' names and one-line helps, and makes each when it is asked for."""

    def __init__(
        self,
        *args: Any,  # noqa: ANN401
        helps: Mapping[str, str],
        load: Callable[[str], click.Command],
        **keywords: Any,  # noqa: ANN401
    ) -> None:
        """Take the commands' helps, in the order a user meets them, and what makes one."""
        super().__init__(*args, **keywords)
        self.helps, self.load = helps, load

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order a user meets them."""
        return list(self.helps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command, if there is one of that name."""
        return self.load(cmd_name) if cmd_name in self.helps else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest command for a misspelt one."""
        if args and args[0] not in self.helps and not args[0].startswith("-"):
            raise click.UsageError(str(UnknownNameError("command", args[0], self.helps)), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.helps.items()))


def _load(name: str) -> click.Command:
    """Import one command, or derive it from its function."""
    if name in ("study", "boundaries"):
        from reffree.cli.derive import study_command, study_group

        is_group = name == "study"
        return study_group() if is_group else study_command(f"reffree.studies.{name}", name)
    command: click.Command = importlib.import_module(f"reffree.cli.{name}").command
    return command


@click.group(
    cls=LazyGroup,
    helps=COMMANDS,
    load=_load,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="reffree", message="reffree %(version)s")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE.py",
    help="Run a file of yours first, which registers metrics (reffree.register_metric); may be "
    "repeated.",
)
def cli(plugins: tuple[str, ...]) -> None:
    """Score any text segmentation without gold labels, in the embedding space."""
    for file in plugins:
        try:
            runpy.run_path(file)
        except ReffreeError:
            raise
        except Exception as error:
            raise InputError(
                f"{type(error).__name__} ({first_line(error)})",
                expected="a Python file that runs and registers metrics",
                remedy="correct it there",
                place=Place(file=file),
            ) from error


def main(args: Sequence[str] | None = None) -> Any:  # noqa: ANN401  (click's own signature)
    """Run the command line: exit 0 ok, 1 failure, 2 usage, 3 worse than allowed, 130 interrupted.

    Without ``args`` it is that of the process, which belongs to the command and ends with it.
    """
    try:
        with Interrupts() if args is None else nullcontext(), log_to_terminal():
            return cli.main(args=None if args is None else list(args), standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        tell_usage(error)
        sys.exit(error.exit_code)
    except ReffreeError as error:
        tell(f"reffree: error: {error}", err=True)
        sys.exit(2 if isinstance(error, (OptionError, UnknownNameError)) else 1)
    except (click.Abort, KeyboardInterrupt) as stop:
        if isinstance(stop.__cause__, EOFError):  # click takes one for Ctrl-D at a prompt
            raise stop.__cause__ from None
        tell(MESSAGE, err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone; leave quietly, also when Python flushes at exit.
        sys.stdout = None
        sys.exit(1)
    except OSError as error:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__") != "click.utils":  # which could not write a line
            raise
        tell(f"reffree: error: {lost_output(error)}", err=True)
        sys.exit(1)
