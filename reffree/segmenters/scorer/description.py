"""What is known of a trained scorer, as JSON beside its weights: above all how it was trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from reffree.encoders.base import EncoderSpec
from reffree.segmenters.network_folder import Kind, NetworkDescription, read_values
from reffree.segmenters.network_settings import (
    PRECISIONS,
    HeadOrEncoder,
    Precision,
    check_choice,
    check_rates,
    check_shares,
)
from reffree.segmenters.selection import MIN_GAP
from reffree.util.bounds import check_whole
from reffree.util.errors import InputError

Stage = Literal["splices", "gold"]

FINETUNE_BATCH = 16


@dataclass(frozen=True, slots=True)
class Training(HeadOrEncoder):
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
    mixed_precision: Precision = "auto"
    finetune_batch: ClassVar[int] = FINETUNE_BATCH

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
        check_shares(self.held_out, self.dropout)
        self.check_batch()
        check_rates(self.rate, self.weight_decay)
        check_choice("mixed_precision", self.mixed_precision, PRECISIONS)


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
class Description(NetworkDescription):
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
    weights: str  # sha256; none until they are saved
    kind: ClassVar[Kind] = "scorer"
    format: ClassVar[int] = 2


def read_description(folder: Path) -> Description:
    """Read a checkpoint's description; says what is wrong with one that is none."""
    return read_values(
        folder,
        Description,
        settings=lambda values: Training(**values),
        corpora=lambda roles: {stage: tuple(names) for stage, names in roles.items()},
        history=lambda epochs: tuple(map(_epoch, epochs)),
    )


def _epoch(values: Mapping[str, Any]) -> Epoch:
    corpora = {name: Figures(**figures) for name, figures in values["corpora"].items()}
    return Epoch(**{**values, "corpora": corpora})
