"""Raw scores of hypotheses, and how they become losses. NaN is undefined, in arrays only."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from reffree.data.masses import Masses
from reffree.metrics.registry import Metric
from reffree.statistics.losses import Direction
from reffree.util.arrays import Floats
from reffree.util.errors import OptionError

if TYPE_CHECKING:
    from reffree.metrics.free.posterior import PosteriorFacts

Unsegmented = Literal["neutral", "skip", "worst"]
"""What a document without a boundary scores."""


def check_unsegmented(unsegmented: str) -> None:
    """Refuse a policy for documents without a boundary that does not exist."""
    if unsegmented not in get_args(Unsegmented):
        found = f"the policy {unsegmented!r} for documents without a boundary"
        expected = " or ".join(get_args(Unsegmented))
        raise OptionError(found, expected=expected, remedy="leave it out for neutral")


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


SIMILARITY = Orientation(offset=0.5, slope=-0.5, neutral=0.0, worst=-1.0)
"""From -1 (worst) to 1 (best): the loss is ``(1 - raw) / 2`` (ARP paper, eq. 12)."""

Rule = Literal["released", "paper"]
"""What one-unit segments score: as in the released code, or as the ARP paper prints it."""

Pool = Literal["mean", "median", "length"]

UNUSUAL = {"shown": "unusual"}
"""Of an option that a signature shows where it is not the default."""

OF_SEGMENTS, OF_DOCUMENTS = "mean(segments)>mean(documents)", "mean(documents)"
"""How segments become a document's score, and documents a corpus's."""


class FreeMetric(Metric):
    """A metric that needs no gold."""

    __slots__ = ()
    needs = frozenset({"vectors"})
    orientation: ClassVar[Orientation]
    reads_order: ClassVar[bool] = True  # whether the same lengths in another order may score else

    def __init_subclass__(cls) -> None:
        """Take the direction from the orientation."""
        if "orientation" in vars(cls):
            cls.direction = cls.orientation.direction

    @property
    def aggregation(self) -> str:
        """How segments become a document's score, and documents a corpus's."""
        raise NotImplementedError

    def losses(self, raw: Floats) -> Floats:
        """Turn raw scores so that lower is better."""
        return self.orientation.offset + self.orientation.slope * raw

    def shown(self, raw: float) -> float:
        """Return what tables show: the loss, or the score in its own unit."""
        return raw if self.orientation.in_own_unit else self.orientation.loss(raw)


@dataclass(frozen=True, slots=True)
class RawScores:
    """Raw scores of ``h`` hypotheses by one metric: arrays, or tensors on the document's device."""

    documents: Any  # (h,) NaN where a document has none
    weights: Any  # (h,) what a document counts for in the corpus mean
    left_out: Any  # (h,) parts left out of a document's score: they are infinite
    segments: Any  # (h, s) NaN where a segment has no score; or (h, 0), not kept
    spread: Floats = field(default_factory=lambda: np.empty(0))
    """(h,) of an expected error over draws; empty unless asked for."""
    facts: PosteriorFacts | None = None  # behind an expected error; none unless asked for

    def on_host(self) -> RawScores:
        """Return the same as NumPy arrays; waits for a device that has them."""
        names = ("documents", "weights", "left_out", "segments")
        arrays = {name: getattr(self, name) for name in names}
        there = {k: x.cpu().numpy() for k, x in arrays.items() if not isinstance(x, np.ndarray)}
        return replace(self, **there)


# From segments to documents, and from documents to a corpus (Ghinassi et al. 2024, eq. 3): both are
# means in the paper. ``median`` is of the middle two where they are two; ``length`` is the mean
# weighted by units, of the segment or of the document. What has no score is left out.


@dataclass(frozen=True, kw_only=True)
class Pooled(FreeMetric):
    """A metric that scores segments: how they become a document, and documents the corpus."""

    pool_n: Pool = field(default="mean", metadata=UNUSUAL)
    pool_d: Pool = field(default="mean", metadata=UNUSUAL)

    @property
    def aggregation(self) -> str:
        """How segments become a document's score, and documents a corpus's."""
        return f"{pool_name(self.pool_n)}(segments)>{pool_name(self.pool_d)}(documents)"


def pool_name(pool: str) -> str:
    """Name a pooling as signatures do."""
    return "length-weighted" if pool == "length" else pool


def document_pool(metric: object) -> str:
    """How documents become a corpus's score under a metric of any kind."""
    return getattr(metric, "pool_d", "mean")


def pool_segments(segments: Floats, masses: Masses, pool: Pool) -> Floats:
    """Pool the scores of segments (h, s), NaN where there is none; NaN where none has any.

    >>> segments = np.array([[1.0, 2.0, 6.0], [4.0, np.nan, np.nan]])
    >>> masses = np.array([[3, 1, 1], [2, 2, 0]])
    >>> [pool_segments(segments, masses, pool).tolist() for pool in ("mean", "median", "length")]
    [[3.0, 4.0], [2.0, 4.0], [2.2, 4.0]]
    """
    is_defined = ~np.isnan(segments)
    count = is_defined.sum(1)
    if pool == "median":
        ordered = np.sort(segments, axis=1)  # NaN comes last
        ordered = np.concatenate([ordered, np.full((len(ordered), 1), np.nan)], axis=1)
        middle = np.stack([np.maximum(count - 1, 0) // 2, count // 2], axis=1)
        pooled = np.take_along_axis(ordered, middle, axis=1).sum(1) / 2
    else:
        weights = np.where(is_defined, masses if pool == "length" else 1.0, 0.0)
        # One after the other, so that padding at the end changes no bit.
        sums = np.cumsum(np.pad(weights * np.nan_to_num(segments), ((0, 0), (1, 0))), axis=1)
        pooled = sums[:, -1] / np.where(count > 0, weights.sum(1), 1.0)
    return np.where(count > 0, pooled, np.nan)
