"""What is known of a trained coherence model, as JSON beside its weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from reffree.encoders.base import EncoderSpec
from reffree.segmenters.network_folder import Kind, NetworkDescription, read_values
from reffree.segmenters.network_settings import (
    PRECISIONS,
    HeadOrEncoder,
    Precision,
    check_choice,
    check_shares,
)
from reffree.util.bounds import check_whole
from reffree.util.errors import InputError

PAPER_BATCH = 12


@dataclass(frozen=True, slots=True)
class CoherenceTraining(HeadOrEncoder):
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
    mixed_precision: Precision = "auto"
    finetune_batch: ClassVar[int] = PAPER_BATCH

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for option, least in (("epochs", 1), ("hidden", 1), ("seed", 0)):
            check_whole(option, getattr(self, option), least)
        self.check_batch()
        check_shares(self.held_out, self.dropout)
        check_choice("mixed_precision", self.mixed_precision, PRECISIONS)
        if not 0 < self.rate < math.inf or not 0 < self.margin < math.inf:
            raise InputError(
                f"learning_rate = {self.rate} and margin = {self.margin}",
                expected="both above 0",
                remedy="leave them out for the defaults",
            )


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
class CoherenceDescription(NetworkDescription):
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
    weights: str  # sha256; none until they are saved
    kind: ClassVar[Kind] = "csm"
    format: ClassVar[int] = 1


def read_coherence_description(folder: Path) -> CoherenceDescription:
    """Read a model's description; says what is wrong with one that is none."""
    return read_values(
        folder,
        CoherenceDescription,
        settings=lambda values: CoherenceTraining(**values),
        corpora=tuple,
        history=lambda epochs: tuple(CoherenceEpoch(**epoch) for epoch in epochs),
    )
