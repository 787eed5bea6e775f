"""Raw scores of hypotheses to scores of systems and documents, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reffree.scoring.engine import RawScores, Unsegmented
from reffree.scoring.metrics import Metric, spelling
from reffree.segmentation import Segmentation
from reffree.study.bootstrap import MIN_DOCUMENTS, DocumentBootstrap
from reffree.study.null import NullTests
from reffree.study.table import CorpusScore, DocumentScores, PartScore, SystemScores
from reffree.study.weights import corpus_mean, values_and_weights


@dataclass(frozen=True, slots=True)
class Scored:
    """Everything the scorer returned for a corpus."""

    hypotheses: dict[str, tuple[Segmentation, ...]]
    raw: dict[str, RawScores]
    metrics: Sequence[Metric]
    nulls: NullTests
    unsegmented: Unsegmented

    @property
    def incomparable(self) -> frozenset[str]:
        """Metrics that are defined on different documents for different systems."""
        return frozenset(
            name
            for name, scores in self.raw.items()
            if any(0 < int(x.isnan().sum()) < len(x) for x in scores.documents)
        )

    def systems(self, rng: np.random.Generator) -> tuple[SystemScores, ...]:
        """Average over documents."""
        n_documents = len(next(iter(self.hypotheses.values())))
        bootstrap = DocumentBootstrap(n_documents, rng)
        return tuple(
            SystemScores(
                system=system,
                segments=sum(map(len, segmentations)),
                unsegmented=sum(len(segmentation) == 1 for segmentation in segmentations),
                metrics={
                    spelling(metric): self._corpus_score(system, s, metric, bootstrap)
                    for metric in self.metrics
                },
            )
            for s, (system, segmentations) in enumerate(self.hypotheses.items())
        )

    def _corpus_score(
        self, system: str, s: int, metric: Metric, bootstrap: DocumentBootstrap
    ) -> CorpusScore:
        scores = self.raw[spelling(metric)]
        raw, weights = values_and_weights(scores, s)
        mean = corpus_mean(raw, weights)
        loss = metric.orientation.loss
        interval = bootstrap.interval(raw, weights)
        low, high = sorted(map(loss, interval)) if interval else (0.0, 0.0)
        defined = int((~np.isnan(raw)).sum())
        return CorpusScore(
            value=None if mean is None else loss(mean),
            raw=mean,
            ci=(low, high) if interval else None,
            ci_reason=None if interval else f"fewer than {MIN_DOCUMENTS} documents with a score",
            documents=defined,
            undefined=len(raw) - defined,
            left_out=int(sum(float(x[s]) for x in scores.left_out)),
            null=self.nulls.corpus.get((system, spelling(metric))),
        )

    def documents(self, ids: Sequence[str], *, per_segment: bool) -> tuple[DocumentScores, ...]:
        """Every document under every system."""
        return tuple(
            DocumentScores(
                id,
                system,
                {
                    spelling(metric): self._document_score(metric, d, s, system, per_segment)
                    for metric in self.metrics
                },
            )
            for d, id in enumerate(ids)
            for s, system in enumerate(self.hypotheses)
        )

    def _document_score(
        self, metric: Metric, d: int, s: int, system: str, per_segment: bool
    ) -> PartScore:
        scores = self.raw[spelling(metric)]
        segmentation = self.hypotheses[system][d]
        part = _part(metric, float(scores.documents[d][s]))
        weight = float(scores.weights[d][s])
        return PartScore(
            part.value,
            part.raw,
            reason=None if part.value is not None else self._reason(metric, segmentation),
            weight=None if weight == 1.0 else weight,
            segments=tuple(
                _part(metric, float(x)) for x in scores.segments[d][s][: len(segmentation)]
            )
            if per_segment
            else None,
            null=self.nulls.documents.get((d, system, spelling(metric))),
        )

    def _reason(self, metric: Metric, segmentation: Segmentation) -> str:
        if len(segmentation) == 1:
            return f"no boundary (unsegmented={self.unsegmented})"
        return metric.undefined


def _part(metric: Metric, raw: float) -> PartScore:
    return PartScore(None, None) if raw != raw else PartScore(metric.orientation.loss(raw), raw)
