"""Raw scores of hypotheses, and how they become losses. NaN is undefined, in tensors only."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from reffree.metrics.free.arithmetic import row_sums
from reffree.statistics.losses import Direction
from reffree.util.errors import OptionError

if TYPE_CHECKING:
    from torch import Tensor

    from reffree.metrics.free.posterior import PosteriorFacts

Unsegmented = Literal["neutral", "skip", "worst"]
"""What a document without a boundary scores."""


def check_unsegmented(unsegmented: str) -> None:
    """Refuse a policy for documents without a boundary that does not exist."""
    if unsegmented not in get_args(Unsegmented):
        raise OptionError(
            f"the policy {unsegmented!r} for documents without a boundary",
            expected=" or ".join(get_args(Unsegmented)),
            remedy="leave it out for neutral",
        )


def _none() -> Tensor:
    import torch

    return torch.empty(0)


@dataclass(frozen=True, slots=True)
class Orientation:
    """How a raw score becomes a loss, and what documents without a boundary score."""

    offset: float
    slope: float
    neutral: float | None
    worst: float | None
    in_own_unit: bool = False  # whether tables show the raw score rather than the loss
    direction: Direction = "lower"  # which way what tables show is better

    def loss(self, raw: float) -> float:
        """Lower is better: ``offset + slope · raw``."""
        return self.offset + self.slope * raw

    def unsegmented(self, policy: Unsegmented) -> float:
        """Return the raw score of a document without a boundary: NaN, undefined, under ``skip``."""
        value = {"neutral": self.neutral, "skip": None, "worst": self.worst}[policy]
        return math.nan if value is None else value

    def shown(self, raw: float) -> float:
        """Return what tables show: the loss, or the score in its own unit."""
        return raw if self.in_own_unit else self.loss(raw)


SIMILARITY = Orientation(offset=0.5, slope=-0.5, neutral=0.0, worst=-1.0)
"""From -1 (worst) to 1 (best): the loss is ``(1 - raw) / 2`` (ARP paper, eq. 12)."""

Rule = Literal["released", "paper"]
"""What one-unit segments score: as in the released code, or as the ARP paper prints it."""

UNUSUAL = {"shown": "unusual"}
"""Of an option that a signature shows where it is not the default."""

OF_SEGMENTS = "mean(segments)>mean(documents)"
OF_DOCUMENTS = "mean(documents)"
WEIGHTED = "weighted_mean(documents)"
"""How segments become a document's score, and documents a corpus's."""


@dataclass(frozen=True, slots=True)
class RawScores:
    """Raw scores of ``h`` hypotheses by one metric."""

    documents: Tensor  # (h,) NaN where a document has none
    weights: Tensor  # (h,) what a document counts for in the corpus mean
    left_out: Tensor  # (h,) parts left out of a document's score because they are infinite
    segments: Tensor  # (h, s) NaN where a segment has no score; empty where they are not kept
    spread: Tensor = field(
        default_factory=_none
    )  # (h,) of an expected error over draws; empty unless asked for
    facts: PosteriorFacts | None = None  # behind an expected error; none unless asked for

    @classmethod
    def equally_weighted(cls, documents: Tensor, segments: Tensor) -> RawScores:
        """Scores of documents that count alike, with nothing left out."""
        import torch

        return cls(documents, torch.ones_like(documents), torch.zeros_like(documents), segments)

    @classmethod
    def from_segments(cls, segments: Tensor, is_defined: Tensor) -> RawScores:
        """Average the defined segments of each document (eq. 4)."""
        import torch

        segments = torch.where(is_defined, segments, torch.nan)
        documents = masked_mean(segments.nan_to_num(0.0), is_defined)
        return cls.equally_weighted(torch.where(is_defined.any(1), documents, torch.nan), segments)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the second dimension where ``mask`` holds; 0 where it never does."""
    import torch

    return row_sums(torch.where(mask, values, 0.0)) / mask.sum(1).clamp(min=1)
