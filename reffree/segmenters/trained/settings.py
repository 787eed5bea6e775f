"""How each kind of network is trained: settings with defaults and bounds; imports no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from reffree.encoders.options import EncoderOptions, Encoding
from reffree.util.bounds import Count, Positive, Seed
from reffree.util.declare import Option
from reffree.util.errors import InputError
from reffree.util.naming import check_options

Kind = Literal["scorer", "csm", "segmenter"]
Precision = Literal["auto", "no", "bf16", "fp16"]
Architecture = Literal["bilstm", "sheikh-bilstm", "transformer"]
Criterion = Literal["pk", "f1"]


class TrainingOptions(Encoding, total=False):
    """Options of every training, beside those of the encoder."""

    held_out: Annotated[
        float,
        Option(
            "Share of documents kept for choosing the epoch, and what is chosen with it.",
            initial=0.2,
        ),
    ]
    mixed_precision: Annotated[
        Precision,
        Option("Of the training.", default="auto, bf16 on a GPU that has it", initial="auto"),
    ]
    seed: Annotated[Seed, Option("Of the training.", initial=0)]


class GapOptions(TrainingOptions, total=False):
    """Options of networks that look at windows on both sides of a gap."""

    finetune: Annotated[
        bool,
        Option(
            "Train the encoder itself on pairs of texts, not a small network on its vectors: slow "
            "without a GPU.",
            initial=False,
        ),
    ]
    learning_rate: Annotated[
        float | None, Option("Of AdamW, at first.", default="3e-4, with --finetune 2e-5")
    ]
    hidden: Annotated[
        Positive, Option("Size of the small network's layer.", cli=False, initial=128)
    ]
    dropout: Annotated[float, Option("Share that is dropped out.", cli=False, initial=0.5)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """What all trainings have in common; None stands for a default that depends on the others."""

    epochs: Positive
    learning_rate: float | None = None
    weight_decay: float = 0.01
    batch_size: Positive | None = None
    hidden: Positive = 128
    dropout: float | None = 0.5
    held_out: float = 0.2  # share of the documents
    seed: Count = 0
    finetune: bool = False  # the encoder itself, not a network on its vectors
    mixed_precision: Precision = "auto"
    kind: ClassVar[Kind]
    head_rate: ClassVar[float] = 3e-4
    finetune_rate: ClassVar[float] = 2e-5
    head_batch: ClassVar[int] = 64
    finetune_batch: ClassVar[int]

    def __post_init__(self) -> None:
        check_options(self)
        defaults = {field.name: field.default for field in fields(self)}
        for option, is_right, expected in (
            ("held_out", 0 < self.held_out < 1, "a share above 0 and below 1"),
            ("dropout", 0 <= self.dropped < 1, "a share below 1"),
            ("learning_rate", 0 < self.rate < math.inf, "a number above 0"),
            ("weight_decay", 0 <= self.weight_decay < math.inf, "a number, 0 or more"),
        ):
            if not is_right:
                raise InputError(
                    f"{option} = {getattr(self, option)}",
                    expected=expected,
                    remedy=f"leave it out for {defaults[option] or 'the default'}",
                )

    @classmethod
    def choose(cls, values: Mapping[str, Any]) -> tuple[Self, EncoderOptions]:
        """Make settings of the values that are theirs, and of ``options`` those of the encoder."""
        given = {**values, **values["options"]}
        settings = cls(
            **{each.name: given[each.name] for each in fields(cls) if each.name in given}
        )
        names = given["options"].keys() & Encoding.__annotations__.keys()
        return settings, EncoderOptions(**{name: given[name] for name in names})

    @property
    def window(self) -> int:
        """Units that a network sees on either side of a gap."""
        return 1

    @property
    def rate(self) -> float:
        """Learning rate at first: the one given, else by what is trained."""
        default = self.finetune_rate if self.finetune else self.head_rate
        return default if self.learning_rate is None else self.learning_rate

    @property
    def dropped(self) -> float:
        """Share that is dropped out."""
        return self.dropout or 0.0

    def batch(self, n_documents: int = 0) -> int:
        """Examples in a training step: the number given, else by what is trained."""
        default = self.finetune_batch if self.finetune else self.head_batch
        return default if self.batch_size is None else self.batch_size

    def resolved(self, n_documents: int = 0) -> Self:
        """Return the settings with the values that depend on others filled in."""
        return replace(
            self, learning_rate=self.rate, batch_size=self.batch(n_documents), dropout=self.dropped
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerSettings(TrainingSettings):
    """Settings of the three stages of Coen, "When F1 Fails", §5.3.

    From the paper: ``window`` (§5.2), ``splice_epochs`` and ``epochs`` (Tables 7 and 8),
    ``min_gap`` (§5.1). From the code it names (mhcoen/episodic): rate and batch size when the
    encoder is fine-tuned, half the rate in the second stage, weight decay, the linear schedule with
    a warm-up over a tenth of the steps, and gradients clipped at 1. The rest is ours.
    """

    window: Positive = 4
    splice_epochs: Count = 3
    epochs: Count = 5
    splices_per_document: Positive = 4  # synthetic ones in an epoch, for every training document
    min_gap: Positive = 3
    kind: ClassVar[Kind] = "scorer"
    finetune_batch: ClassVar[int] = 16

    def __post_init__(self) -> None:
        TrainingSettings.__post_init__(self)
        if self.splice_epochs + self.epochs == 0:
            raise InputError(
                "no epochs", expected="at least one of either stage", remedy="write epochs=5"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CsmSettings(TrainingSettings):
    """Settings of Xing and Carenini (2021), "Improving Unsupervised Dialogue Topic Segmentation".

    From their code (lxing532/Dialogue-Topic-Segmenter), where the encoder is fine-tuned: epochs,
    margin, learning rate, batch size, the linear schedule without warm-up, no weight decay, and
    gradients clipped at 1. The small network on frozen vectors and the held-out share are ours.
    """

    epochs: Positive = 10
    margin: float = 1.0
    weight_decay: float = 0.0
    kind: ClassVar[Kind] = "csm"
    finetune_batch: ClassVar[int] = 12

    def __post_init__(self) -> None:
        TrainingSettings.__post_init__(self)
        if not 0 < self.margin < math.inf:
            raise InputError(
                f"margin = {self.margin}", expected="a number above 0", remedy="leave it out for 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabellerSettings(TrainingSettings):
    """Settings of a supervised segmenter.

    The three architectures are those of Ghinassi et al. (2024), §3.4.1; the names of the released
    results tell the batch of 8 documents and the threshold by Pk on documents held out. The rest is
    ours. The dropout is by architecture.
    """

    architecture: Architecture = "bilstm"
    layers: Positive = 2
    heads: Positive = 4  # of the transformer
    dropout: float | None = None
    epochs: Positive = 40  # at most
    patience: Positive = 6  # epochs without a lower held-out log loss, after which training ends
    criterion: Criterion = "pk"  # by which the threshold is chosen
    kind: ClassVar[Kind] = "segmenter"
    head_rate: ClassVar[float] = 1e-3
    head_batch: ClassVar[int] = 8
    least_steps: ClassVar[int] = 8

    def __post_init__(self) -> None:
        TrainingSettings.__post_init__(self)
        if self.architecture == "transformer" and self.hidden % self.heads:
            raise InputError(
                f"hidden = {self.hidden} with heads = {self.heads}",
                expected="a multiple of the heads",
                remedy="write hidden=128,heads=4",
            )

    @property
    def dropped(self) -> float:
        """Share that is dropped out: the one given, else by architecture."""
        default = 0.1 if self.architecture == "transformer" else 0.3
        return default if self.dropout is None else self.dropout

    def batch(self, n_documents: int = 0) -> int:
        """Documents in a step: the number given, else 8, fewer where an epoch had under 8 steps."""
        most = max(1, min(self.head_batch, n_documents // self.least_steps))
        return most if self.batch_size is None else self.batch_size
