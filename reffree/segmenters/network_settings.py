"""What the settings of all trainings have in common; imports no torch."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar, Literal, Self, get_args

from reffree.util.bounds import check_whole
from reffree.util.errors import InputError

Precision = Literal["auto", "no", "bf16", "fp16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

HEAD_RATE = 3e-4
FINETUNE_RATE = 2e-5
HEAD_BATCH = 64


class HeadOrEncoder:
    """Of a network on frozen vectors, or the encoder fine-tuned: rate and batch size by which."""

    __slots__ = ()
    finetune_batch: ClassVar[int]

    learning_rate: float | None
    batch_size: int | None
    finetune: bool

    @property
    def rate(self) -> float:
        """Learning rate at first: the one given, else by what is trained."""
        if self.learning_rate is not None:
            return self.learning_rate
        return FINETUNE_RATE if self.finetune else HEAD_RATE

    @property
    def batch(self) -> int:
        """Examples in a training step: the number given, else by what is trained."""
        if self.batch_size is not None:
            return self.batch_size
        return self.finetune_batch if self.finetune else HEAD_BATCH

    def resolved(self) -> Self:
        """Return the settings with the values that depend on others filled in."""
        return replace(self, learning_rate=self.rate, batch_size=self.batch)  # type: ignore[type-var]

    def check_batch(self) -> None:
        """Refuse batches of nothing."""
        check_whole("batch_size", self.batch, 1, remedy=f"write batch_size={HEAD_BATCH}")


def check_choice(option: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse what is none of the known."""
    if value not in known:
        raise InputError(
            f"{option} = {value}",
            expected=" or ".join(known),
            remedy=f"write {option}={known[0]}",
        )


def check_shares(held_out: float, dropout: float) -> None:
    """Refuse to hold out nothing, or to hold out or drop everything."""
    if not 0 < held_out < 1 or not 0 <= dropout < 1:
        raise InputError(
            f"held_out = {held_out} and dropout = {dropout}",
            expected="shares below 1, and above 0 for the held-out documents",
            remedy="leave them out for the defaults",
        )


def check_rates(rate: float, weight_decay: float) -> None:
    """Refuse to learn nothing, or backwards."""
    if not 0 < rate < math.inf or not 0 <= weight_decay < math.inf:
        raise InputError(
            f"learning_rate = {rate} and weight_decay = {weight_decay}",
            expected="a rate above 0 and a decay of at least 0",
            remedy="leave them out for the defaults",
        )
