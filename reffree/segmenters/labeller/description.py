"""What is known of a trained labeller, as JSON beside its weights: above all how it was trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from reffree.bounds import check_whole
from reffree.encoders.base import EncoderSpec
from reffree.errors import InputError
from reffree.segmenters.network_folder import Kind, read_values

FORMAT = 1
KIND: Kind = "segmenter"

Architecture = Literal["bilstm", "sheikh-bilstm", "transformer"]
Precision = Literal["auto", "no", "bf16", "fp16"]

ARCHITECTURES: tuple[Architecture, ...] = get_args(Architecture)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
RECURRENT_RATE = 1e-3
TRANSFORMER_RATE = 2e-4


@dataclass(frozen=True, slots=True)
class LabellerTraining:
    """Settings of a training.

    Ghinassi et al. (2024), §3.4.1, names the three architectures and refers to their earlier paper
    for all parameters; of those, the released results name the batch of 8 documents and Pk as what
    the threshold was chosen by. Everything else is ours.
    """

    architecture: Architecture = "bilstm"
    hidden: int = 128  # per direction of a BiLSTM
    layers: int = 2
    heads: int = 4  # of the transformer
    dropout: float = 0.3
    epochs: int = 40  # at most
    patience: int = 6  # epochs without a lower held-out log loss, after which training ends
    batch_size: int = 8  # documents
    learning_rate: float | None = None
    weight_decay: float = 0.01
    held_out: float = 0.2
    seed: int = 0
    mixed_precision: Precision = "auto"

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for option, known in (
            ("architecture", ARCHITECTURES),
            ("mixed_precision", PRECISIONS),
        ):
            if getattr(self, option) not in known:
                raise InputError(
                    f"{option} = {getattr(self, option)}",
                    expected=" or ".join(known),
                    remedy=f"write {option}={known[0]}",
                )
        for option in ("hidden", "layers", "heads", "epochs", "patience", "batch_size"):
            check_whole(option, getattr(self, option), 1)
        check_whole("seed", self.seed, 0)
        if self.architecture == "transformer" and self.hidden % (2 * self.heads):
            raise InputError(
                f"hidden = {self.hidden} with heads = {self.heads}",
                expected="a multiple of twice the heads",
                remedy="write hidden=128,heads=4",
            )
        if not 0 < self.held_out < 1 or not 0 <= self.dropout < 1:
            raise InputError(
                f"held_out = {self.held_out} and dropout = {self.dropout}",
                expected="shares below 1, and above 0 for the held-out documents",
                remedy="leave them out for the defaults",
            )
        if not 0 < self.rate < math.inf or not 0 <= self.weight_decay < math.inf:
            raise InputError(
                f"learning_rate = {self.rate} and weight_decay = {self.weight_decay}",
                expected="a rate above 0 and a decay of at least 0",
                remedy="leave them out for the defaults",
            )

    @property
    def rate(self) -> float:
        """Learning rate: the one given, else by architecture."""
        if self.learning_rate is not None:
            return self.learning_rate
        return TRANSFORMER_RATE if self.architecture == "transformer" else RECURRENT_RATE

    def resolved(self) -> LabellerTraining:
        """Return the settings with the values that depend on others filled in."""
        return replace(self, learning_rate=self.rate)


@dataclass(frozen=True, slots=True)
class LabellerEpoch:
    """How the held-out documents fare after one epoch."""

    epoch: int
    training_loss: float
    log_loss: float
    threshold: float  # of the lowest held-out Pk
    pk: float | None  # with it; None where no held-out document has any


@dataclass(frozen=True, slots=True)
class LabellerDescription:
    """Everything about a labeller but its weights."""

    version: str  # of reffree
    settings: LabellerTraining
    encoder: EncoderSpec
    dimension: int
    epoch: int  # whose weights these are
    threshold: float
    log_loss: float
    pk: float | None
    f1: float | None  # both held out, and so what the threshold, or the epoch, was chosen by
    counts: Mapping[str, int]
    history: tuple[LabellerEpoch, ...]
    is_interrupted: bool
    device: str
    precision: str
    weights: str  # sha256

    def to_dict(self) -> dict[str, Any]:
        """Return what is written, with the encoder's fingerprint for people who compare files."""
        return {"format": FORMAT, **asdict(self), "fingerprint": self.encoder.fingerprint}


def read_labeller_description(folder: Path) -> LabellerDescription:
    """Read a labeller's description; says what is wrong with one that is none."""
    return read_values(folder, KIND, FORMAT, _described)


def _described(values: dict[str, Any]) -> LabellerDescription:
    del values["fingerprint"]
    return LabellerDescription(
        **values
        | {
            "settings": LabellerTraining(**values["settings"]),
            "encoder": EncoderSpec(**values["encoder"]),
            "history": tuple(LabellerEpoch(**epoch) for epoch in values["history"]),
        }
    )
