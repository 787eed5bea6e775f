"""The registry of gold-based metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from reffree.naming import parse_named
from reffree.reference.alignment import Alignment
from reffree.reference.boundary_edits import (
    Bed,
    BedPrecision,
    BedRecall,
    BoundarySimilarity,
    Ghd,
    SegmentationSimilarity,
)
from reffree.reference.cohesion import WordVectors
from reffree.reference.granularity import F1, WF1, Bor, Coverage, Purity, WF1OneToOne
from reffree.reference.metric import GoldMetric
from reffree.reference.sed import Sed
from reffree.reference.windows import (
    Pk,
    PkPrime,
    PrError,
    PrFalseAlarm,
    PrMiss,
    WindowDiff,
    WinPr,
    WinPrPrecision,
    WinPrRecall,
)


@dataclass(frozen=True, slots=True)
class SedOver:
    """`Sed` as it is named: ``vectors`` is the encoder or file its word vectors come from.

    A word goes through an encoder as a text of its own; with ``pieces`` it is the mean of the
    encoder's input embeddings.
    """

    name: ClassVar[str] = "sed"
    vectors: str = "minilm"
    pieces: bool = False
    threshold: float | None = None

    def over(self, vectors: WordVectors) -> Sed:
        """Make the metric once the vectors are there."""
        return Sed(vectors, self.threshold)


GOLD_METRICS: dict[str, type[Any]] = {
    metric.name: metric
    for metric in (
        *(Pk, WindowDiff, PkPrime, PrError, PrMiss, PrFalseAlarm),
        *(WinPr, WinPrPrecision, WinPrRecall),
        *(BoundarySimilarity, SegmentationSimilarity, Bed, BedPrecision, BedRecall, Ghd),
        *(Alignment, SedOver, F1, WF1, WF1OneToOne, Bor, Purity, Coverage),
    )
}

GOLD_DEFAULT = ("pk", "windowdiff", "boundary_similarity")
"""Shown beside the reference-free metrics where there is gold."""


def parse_gold_metric(text: str) -> GoldMetric | SedOver:
    """Read ``name`` or ``name:option=value,…``, such as ``windowdiff:padding=exact``."""
    parsed: GoldMetric | SedOver = parse_named(text, GOLD_METRICS, "metric", "-m")
    return parsed
