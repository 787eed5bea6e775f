"""The ``reffree`` command; subcommands are imported only when they run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
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
    "demo": ("demo", "Score the corpus that ships with reffree."),
    "score": ("score", "Score segmentations, without gold labels or with them."),
    "boundaries": ("boundaries", "How likely a boundary is in every gap of the text."),
    "compare": ("compare", "Which system is better, paired over documents."),
    "agreement": ("agreement", "How far annotators agree, beyond chance."),
    "segment": ("segment", "Make hypotheses with published methods and baselines."),
    "perturb": ("perturb", "Make segmentations worse by a known amount."),
    "chunkers": ("chunkers", "Score text splitters on plain text."),
    "tune": ("tune", "Choose a text splitter's parameters without gold."),
    "train-scorer": ("train_scorer", "Train a boundary scorer for reffree segment."),
    "train-csm": ("train_csm", "Train a coherence model for reffree segment."),
    "train-segmenter": ("train_segmenter", "Train a supervised segmenter for reffree segment."),
    "correlate": ("studies:correlate", "Do metrics without gold rank systems as gold does?"),
    "encoders": ("studies:encoders", "Compare encoders on your corpus."),
    "density": ("studies:density", "Quality against the number of boundaries."),
    "selection": ("studies:selection", "Fine and coarse candidates, one rate of boundaries."),
    "granularity": ("studies:granularity", "Expected errors against assumed segments."),
    "diagnose": ("studies:diagnose", "What misleads metrics on a corpus; which to trust."),
    "baselines": ("studies:baselines", "Metrics on systems that read no text, and others."),
    "moves": ("studies:moves", "Can metrics tell small errors from large ones?"),
    "pairs": ("studies:pairs", "Do metrics prefer what people prefer?"),
    "transfer": ("studies:transfer", "A boundary scorer on corpora it was not trained on."),
    "run": ("run", "Run a whole study from a YAML file."),
    "report": ("report", "Show a study's results: a page, tables, charts for papers."),
    "convert": ("convert", "Convert between corpus formats."),
    "models": ("models", "List encoders: size, licence, speed, what is here."),
    "cache": ("cache", "List, check, fill and remove cached vectors."),
}
"""Each with its module, and the name in it if that is not ``command``; then its help in a line."""


class LazyGroup(click.Group):
    """Knows its commands' names and one-line helps without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order a user meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        home = importlib.import_module(f"reffree.cli.{module}")
        command: click.Command = getattr(home, name or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest command for a misspelt one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(str(UnknownNameError("command", args[0], COMMANDS)), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
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
        _run_plugin(file)


def _run_plugin(file: str) -> None:
    """Run a user's file, once, for what it registers."""
    import runpy

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
        if not _is_of_stdout(error):
            raise
        tell(f"reffree: error: {lost_output(error)}", err=True)
        sys.exit(1)


def _is_of_stdout(error: OSError) -> bool:
    """Whether it was click that could not write a line, rather than anything of a file."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and frame.tb_frame.f_globals.get("__name__") == "click.utils"
