"""What is known of a trained labeller, as JSON beside its weights: above all how it was trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, get_args

from reffree.encoders.base import EncoderSpec
from reffree.segmenters.network_folder import Kind, NetworkDescription, read_values
from reffree.segmenters.network_settings import (
    PRECISIONS,
    Precision,
    check_choice,
    check_rates,
    check_shares,
)
from reffree.util.bounds import check_whole
from reffree.util.errors import InputError

Architecture = Literal["bilstm", "sheikh-bilstm", "transformer"]
Criterion = Literal["pk", "f1"]

ARCHITECTURES: tuple[Architecture, ...] = get_args(Architecture)
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)
PAPER_BATCH = 8
LEAST_STEPS = 8
RECURRENT_DROPOUT = 0.3
TRANSFORMER_DROPOUT = 0.1


@dataclass(frozen=True, slots=True)
class LabellerTraining:
    """Settings of a training.

    Ghinassi et al. (2024), §3.4.1, names the three architectures and refers to an earlier paper for
    all parameters. The names of the released results tell the batch of 8 documents and that the
    threshold was chosen by Pk on documents held out. Everything else is ours.
    """

    architecture: Architecture = "bilstm"
    hidden: int = 128  # per direction of a BiLSTM
    layers: int = 2
    heads: int = 4  # of the transformer
    dropout: float | None = None
    epochs: int = 40  # at most
    patience: int = 6  # epochs without a lower held-out log loss, after which training ends
    batch_size: int | None = None  # documents
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    held_out: float = 0.2
    criterion: Criterion = "pk"  # by which the threshold is chosen
    seed: int = 0
    mixed_precision: Precision = "auto"

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for option, known in (
            ("architecture", ARCHITECTURES),
            ("criterion", CRITERIA),
            ("mixed_precision", PRECISIONS),
        ):
            check_choice(option, getattr(self, option), known)
        for option in ("hidden", "layers", "heads", "epochs", "patience"):
            check_whole(option, getattr(self, option), 1)
        if self.batch_size is not None:
            check_whole("batch_size", self.batch_size, 1)
        check_whole("seed", self.seed, 0)
        if self.architecture == "transformer" and self.hidden % self.heads:
            raise InputError(
                f"hidden = {self.hidden} with heads = {self.heads}",
                expected="a multiple of the heads",
                remedy="write hidden=128,heads=4",
            )
        check_shares(self.held_out, self.dropped)
        check_rates(self.learning_rate, self.weight_decay)

    @property
    def dropped(self) -> float:
        """Share that is dropped out: the one given, else by architecture."""
        if self.dropout is not None:
            return self.dropout
        return TRANSFORMER_DROPOUT if self.architecture == "transformer" else RECURRENT_DROPOUT

    def batch(self, n_documents: int) -> int:
        """Documents in a step: the number given, else 8, fewer where an epoch had under 8 steps."""
        if self.batch_size is not None:
            return self.batch_size
        return max(1, min(PAPER_BATCH, n_documents // LEAST_STEPS))

    def resolved(self, n_documents: int) -> LabellerTraining:
        """Return the settings with the values that depend on others filled in."""
        return replace(self, dropout=self.dropped, batch_size=self.batch(n_documents))


@dataclass(frozen=True, slots=True)
class LabellerEpoch:
    """How the held-out documents fare after one epoch."""

    epoch: int
    training_loss: float
    log_loss: float
    threshold: float  # that does best on them
    pk: float | None  # with it; None where no held-out document has any
    f1: float | None


@dataclass(frozen=True, slots=True)
class LabellerDescription(NetworkDescription):
    """Everything about a labeller but its weights."""

    version: str  # of reffree
    settings: LabellerTraining
    encoder: EncoderSpec
    dimension: int
    epoch: int  # whose weights these are
    threshold: float
    log_loss: float
    pk: float | None
    f1: float | None  # all three of the held-out documents, which epoch and threshold come from
    counts: Mapping[str, int]
    history: tuple[LabellerEpoch, ...]
    is_interrupted: bool
    device: str
    precision: str
    weights: str  # sha256; none until they are saved
    kind: ClassVar[Kind] = "segmenter"
    format: ClassVar[int] = 1


def read_labeller_description(folder: Path) -> LabellerDescription:
    """Read a labeller's description; says what is wrong with one that is none."""
    return read_values(
        folder,
        LabellerDescription,
        settings=lambda values: LabellerTraining(**values),
        history=lambda epochs: tuple(LabellerEpoch(**epoch) for epoch in epochs),
    )
