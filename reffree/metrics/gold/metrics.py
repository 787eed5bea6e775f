"""The registry of gold-based metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from reffree.metrics.gold.alignment import Alignment
from reffree.metrics.gold.boundary_edits import (
    Bed,
    BedPrecision,
    BedRecall,
    BoundarySimilarity,
    Ghd,
    SegmentationSimilarity,
)
from reffree.metrics.gold.cohesion import WordVectors
from reffree.metrics.gold.granularity import F1, WF1, Bor, Coverage, Purity, WF1OneToOne
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.gold.sed import Sed
from reffree.metrics.gold.windows import (
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
from reffree.util.naming import parse_named


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
