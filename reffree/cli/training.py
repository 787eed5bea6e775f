"""What the commands that train a network have in common."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import click

from reffree.cli.inputs import is_given
from reffree.cli.interrupts import INTERRUPTED
from reffree.cli.messages import tell, tell_notes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from reffree.segmenters.network_folder import NetworkDescription

SettingsT = TypeVar("SettingsT", bound="DataclassInstance")
EpochT = TypeVar("EpochT")
Command = TypeVar("Command", bound=Callable[..., Any])


class TrainedNetwork(Protocol):
    """What a training returns."""

    @property
    def description(self) -> NetworkDescription:
        """What is known of it."""
        ...

    def save(self, folder: Path) -> None:
        """Write a new folder."""
        ...


def output_folder_option(noun: str) -> Callable[[Command], Command]:
    """``-o``: where the network is kept."""
    return click.option(
        "-o",
        "--output",
        "folder",
        required=True,
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help=f"New folder for the {noun}.",
    )


def finetune_option(pairs: str) -> Callable[[Command], Command]:
    """``--finetune``: the encoder itself, on pairs of something."""
    return click.option(
        "--finetune",
        is_flag=True,
        help=f"Train the encoder itself on pairs of {pairs}, not a small network on its vectors: "
        "slow without a GPU.",
    )


mixed_precision_option = click.option(
    "--mixed-precision",
    type=click.Choice(["auto", "no", "bf16", "fp16"]),
    help="Of the training.  [default: auto, bf16 on a GPU that has it]",
)


def settings_of(kind: type[SettingsT], given: Mapping[str, Any]) -> SettingsT:
    """Make settings of the options that were given."""
    names = {field.name for field in fields(kind)}
    return kind(**{k: v for k, v in given.items() if k in names and is_given(v)})


def is_first_process() -> bool:
    """Whether this is the only process, or the first of those that a launcher started."""
    return int(os.environ.get("RANK", "0")) == 0


def told_once(tell_epoch: Callable[[EpochT], None]) -> Callable[[EpochT], None]:
    """Tell of epochs in the first process only."""
    return tell_epoch if is_first_process() else lambda epoch: None


def keep_network(made: TrainedNetwork, folder: Path, notes: Iterable[str], told: str) -> None:
    """Save what was trained, once, and say so; ends the program if training was interrupted.

    A launcher's process ends here in any case.
    """
    is_interrupted: bool = made.description.is_interrupted
    if is_first_process():
        made.save(folder)
        tell_notes([*notes, *(["interrupted; the best state so far is kept"] * is_interrupted)])
        tell(f"{folder}: {told}", err=True)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        end_process(INTERRUPTED if is_interrupted else 0)
    if is_interrupted:
        sys.exit(INTERRUPTED)


def end_process(code: int) -> NoReturn:
    """End a launcher's process with an exit code, without the interpreter's own way down.

    Modules that are imported after the processes have met keep their group as a default argument,
    so gloo's threads outlive the group's end; one that then lets go of a tensor while the
    interpreter ends aborts the process, now and then
    (https://github.com/pytorch/pytorch/pull/179291).
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or nobody reads it any more
            stream.flush()
    os._exit(code)
