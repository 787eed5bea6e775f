"""What is known of a trained coherence model, as JSON beside its weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from reffree.bounds import check_whole
from reffree.encoders.base import EncoderSpec
from reffree.errors import InputError
from reffree.segmenters.network_folder import Kind, check_encoder, read_values
from reffree.segmenters.scorer.description import FINETUNE_RATE, HEAD_BATCH, HEAD_RATE

COHERENCE_FORMAT = 1
CSM: Kind = "csm"

PAPER_BATCH = 12


@dataclass(frozen=True, slots=True)
class CoherenceTraining:
    """Settings of Xing and Carenini (2021), "Improving Unsupervised Dialogue Topic Segmentation".

    From their code (lxing532/Dialogue-Topic-Segmenter), where the encoder is fine-tuned: epochs,
    margin, learning rate, batch size, the linear schedule without warm-up, no weight decay, and
    gradients clipped at 1. Rate and batch size of the small network on frozen vectors, its width
    and its dropout, and the share of held-out documents are ours.
    """

    epochs: int = 10
    margin: float = 1.0
    learning_rate: float | None = None
    batch_size: int | None = None
    hidden: int = 128
    dropout: float = 0.5
    held_out: float = 0.2
    seed: int = 0
    finetune: bool = False

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for option, least in (("epochs", 1), ("hidden", 1), ("seed", 0)):
            check_whole(option, getattr(self, option), least)
        check_whole("batch_size", self.batch, 1, remedy="write batch_size=64")
        if not 0 < self.held_out < 1 or not 0 <= self.dropout < 1:
            raise InputError(
                f"held_out = {self.held_out} and dropout = {self.dropout}",
                expected="shares below 1, and above 0 for the held-out documents",
                remedy="leave them out for the defaults",
            )
        if not 0 < self.rate < math.inf or not 0 < self.margin < math.inf:
            raise InputError(
                f"learning_rate = {self.rate} and margin = {self.margin}",
                expected="both above 0",
                remedy="leave them out for the defaults",
            )

    @property
    def rate(self) -> float:
        """Learning rate: the one given, else by what is trained."""
        if self.learning_rate is not None:
            return self.learning_rate
        return FINETUNE_RATE if self.finetune else HEAD_RATE

    @property
    def batch(self) -> int:
        """Triples in a training step: the number given, else by what is trained."""
        if self.batch_size is not None:
            return self.batch_size
        return PAPER_BATCH if self.finetune else HEAD_BATCH

    def resolved(self) -> CoherenceTraining:
        """Return the settings with the values that depend on others filled in."""
        return replace(self, learning_rate=self.rate, batch_size=self.batch)


@dataclass(frozen=True, slots=True)
class CoherenceEpoch:
    """How held-out triples fare after one epoch.

    ``accuracy`` is the share of their three orders (next before same, same before other, next
    before other) that the model has right.
    """

    epoch: int
    training_loss: float
    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class CoherenceDescription:
    """Everything about a coherence model but its weights."""

    version: str  # of reffree
    settings: CoherenceTraining
    encoder: EncoderSpec
    dimension: int
    threshold: float | None  # of the lowest held-out Pk; None where a held-out one has no gold
    accuracy: float  # held-out
    corpora: tuple[str, ...]
    counts: Mapping[str, int]
    history: tuple[CoherenceEpoch, ...]
    is_interrupted: bool
    weights: str  # sha256

    def check_encoder(self, spec: EncoderSpec | None) -> None:
        """Refuse vectors of another encoder than the one it was trained on."""
        if not self.settings.finetune:
            check_encoder(CSM, spec, self.encoder)

    def to_dict(self) -> dict[str, Any]:
        """Return what is written, with the encoder's fingerprint for people who compare files."""
        values = {"format": COHERENCE_FORMAT, **asdict(self)}
        return {**values, "fingerprint": self.encoder.fingerprint}


def read_coherence_description(folder: Path) -> CoherenceDescription:
    """Read a model's description; says what is wrong with one that is none."""
    return read_values(folder, CSM, COHERENCE_FORMAT, _described)


def _described(values: dict[str, Any]) -> CoherenceDescription:
    del values["fingerprint"]
    return CoherenceDescription(
        **values
        | {
            "settings": CoherenceTraining(**values["settings"]),
            "encoder": EncoderSpec(**values["encoder"]),
            "corpora": tuple(values["corpora"]),
            "history": tuple(CoherenceEpoch(**epoch) for epoch in values["history"]),
        }
    )
