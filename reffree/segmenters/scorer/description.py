"""What is known of a trained scorer, as JSON beside its weights: above all how it was trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from reffree.bounds import check_whole
from reffree.encoders.base import EncoderSpec
from reffree.errors import InputError
from reffree.segmenters.network_folder import Kind, check_encoder, read_values
from reffree.selection import MIN_GAP

FORMAT = 2
KIND: Kind = "scorer"

Stage = Literal["splices", "gold"]

HEAD_RATE = 3e-4
FINETUNE_RATE = 2e-5
HEAD_BATCH = 64
FINETUNE_BATCH = 16


@dataclass(frozen=True, slots=True)
class Training:
    """Settings of the three stages of Coen, "When F1 Fails", §5.3.

    From the paper: ``window`` (§5.2), ``splice_epochs`` and ``epochs`` (Tables 7 and 8),
    ``min_gap`` (§5.1). It does not give learning rate, batch size, schedule or the share of
    held-out documents. When the encoder is fine-tuned, rate and batch size are those of the code
    the paper names (mhcoen/episodic), as are, in any case, half the rate in the second stage,
    weight decay, the linear schedule with a warm-up over a tenth of the steps, and gradients
    clipped at 1. The rate and batch size of the head on frozen vectors are ours.
    """

    window: int = 4
    splice_epochs: int = 3
    epochs: int = 5
    splices: int = 4  # synthetic documents in an epoch, for every training document
    learning_rate: float | None = None
    batch_size: int | None = None
    weight_decay: float = 0.01
    hidden: int = 128
    dropout: float = 0.5
    held_out: float = 0.2
    min_gap: int = MIN_GAP
    seed: int = 0
    finetune: bool = False

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for option, least in (
            *(("window", 1), ("splice_epochs", 0), ("epochs", 0), ("splices", 1)),
            *(("hidden", 1), ("min_gap", 1), ("seed", 0)),
        ):
            check_whole(option, getattr(self, option), least)
        if self.splice_epochs + self.epochs == 0:
            raise InputError(
                "no epochs", expected="at least one of either stage", remedy="write epochs=5"
            )
        if not 0 < self.held_out < 1 or not 0 <= self.dropout < 1:
            raise InputError(
                f"held_out = {self.held_out} and dropout = {self.dropout}",
                expected="shares below 1, and above 0 for the held-out documents",
                remedy="leave them out for the defaults",
            )
        check_whole("batch_size", self.batch, 1, remedy="write batch_size=64")
        if not 0 < self.rate < math.inf or not 0 <= self.weight_decay < math.inf:
            raise InputError(
                f"learning_rate = {self.rate} and weight_decay = {self.weight_decay}",
                expected="a rate above 0 and a decay of at least 0",
                remedy="leave them out for the defaults",
            )

    @property
    def rate(self) -> float:
        """Learning rate of the first stage: the one given, else by what is trained."""
        if self.learning_rate is not None:
            return self.learning_rate
        return FINETUNE_RATE if self.finetune else HEAD_RATE

    @property
    def batch(self) -> int:
        """Gaps in a training step: the number given, else by what is trained."""
        if self.batch_size is not None:
            return self.batch_size
        return FINETUNE_BATCH if self.finetune else HEAD_BATCH

    def resolved(self) -> Training:
        """Return the settings with the values that depend on others filled in."""
        return replace(self, learning_rate=self.rate, batch_size=self.batch)


@dataclass(frozen=True, slots=True)
class Figures:
    """How far boundaries agree with gold.

    F1 is that of exact boundaries, pooled over documents; W-F1 (appendix A) a mean over them.
    """

    f1: float
    w_f1: float
    bor: float | None  # None where gold has no boundary


@dataclass(frozen=True, slots=True)
class Epoch(Figures):
    """How what a stage is judged on fares after one epoch, without a temperature.

    Splices are judged on splices of held-out documents, gold on held-out gold (Coen Tables 7 and
    8). Boundaries are those of the paper's static rule at a threshold of 0.5. ``mean_score`` is the
    paper's mean |score|, a diagnostic for collapse, over the real-valued scores of §5.2: logits;
    ``negative_control`` the share of gaps with a boundary when every held-out segment is a document
    of its own. ``corpora`` has the figures of each corpus.
    """

    stage: Stage
    epoch: int
    training_loss: float
    log_loss: float
    mean_score: float
    negative_control: float
    corpora: Mapping[str, Figures]


@dataclass(frozen=True, slots=True)
class Description:
    """Everything about a checkpoint but its weights."""

    version: str  # of reffree
    settings: Training
    encoder: EncoderSpec
    dimension: int
    temperature: float
    threshold: float  # of the highest F1 on what it was calibrated on
    log_loss: float  # there, with the temperature
    corpora: Mapping[str, tuple[str, ...]]  # names of splices, gold and calibration
    counts: Mapping[str, int]
    history: tuple[Epoch, ...]
    is_interrupted: bool
    weights: str  # sha256

    def check_encoder(self, spec: EncoderSpec | None) -> None:
        """Refuse vectors of another encoder than the one the scorer was trained on."""
        if not self.settings.finetune:
            check_encoder(KIND, spec, self.encoder)

    def to_dict(self) -> dict[str, Any]:
        """Return what is written, with the encoder's fingerprint for people who compare files."""
        return {"format": FORMAT, **asdict(self), "fingerprint": self.encoder.fingerprint}


def read_description(folder: Path) -> Description:
    """Read a checkpoint's description; says what is wrong with one that is none."""
    return read_values(folder, KIND, FORMAT, _described)


def _described(values: dict[str, Any]) -> Description:
    del values["fingerprint"]
    return Description(
        **values
        | {
            "settings": Training(**values["settings"]),
            "encoder": EncoderSpec(**values["encoder"]),
            "corpora": {stage: tuple(names) for stage, names in values["corpora"].items()},
            "history": tuple(map(_epoch, values["history"])),
        }
    )


def _epoch(values: Mapping[str, Any]) -> Epoch:
    corpora = {name: Figures(**figures) for name, figures in values["corpora"].items()}
    return Epoch(**{**values, "corpora": corpora})
