"""One metric over all systems and documents: a column of the table, of either kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats
from reffree.evaluate.null import NullTests
from reffree.evaluate.table import CorpusScore, NullTest, PartScore
from reffree.evaluate.weights import corpus_mean, values_and_weights
from reffree.reference.metric import GoldMetric
from reffree.scoring.engine import RawScores, Unsegmented
from reffree.scoring.metrics import Metric
from reffree.segmentation import Segmentation
from reffree.statistics.resampling import MIN_DOCUMENTS, DocumentBootstrap

Average = Literal["macro", "micro"]

TOO_FEW = f"fewer than {MIN_DOCUMENTS} documents with a score"


class Column(Protocol):
    """Scores of systems and of their documents, by number."""

    @property
    def is_comparable(self) -> bool:
        """Whether all systems are scored on the same documents."""
        ...

    def corpus_score(self, s: int, bootstrap: DocumentBootstrap) -> CorpusScore:
        """Score of a system over the corpus."""
        ...

    def document_score(self, d: int, s: int, *, per_segment: bool) -> PartScore:
        """Score of a system on one document."""
        ...


@dataclass(frozen=True, slots=True)
class ReferenceFree:
    """Raw scores of hypotheses to losses."""

    name: str
    metric: Metric
    hypotheses: dict[str, tuple[Segmentation, ...]]
    raw: RawScores
    nulls: NullTests
    unsegmented: Unsegmented

    @property
    def is_comparable(self) -> bool:
        """Whether every document is defined for all systems or for none."""
        return not any(0 < int(x.isnan().sum()) < len(x) for x in self.raw.documents)

    def corpus_score(self, s: int, bootstrap: DocumentBootstrap) -> CorpusScore:
        """Weighted mean over documents."""
        raw, weights = values_and_weights(self.raw, s)
        left_out = int(sum(float(x[s]) for x in self.raw.left_out))
        null = self.nulls.corpus.get((self._system(s), self.name))
        return mean_loss(self.metric, raw, weights, left_out, null, bootstrap)

    def document_score(self, d: int, s: int, *, per_segment: bool) -> PartScore:
        """Score of one document, with its segments if asked for."""
        system = self._system(s)
        segmentation = self.hypotheses[system][d]
        part = self._part(float(self.raw.documents[d][s]))
        weight = float(self.raw.weights[d][s])
        return PartScore(
            part.value,
            part.raw,
            reason=None if part.value is not None else self._reason(segmentation),
            weight=None if weight in (0.0, 1.0) else weight,
            segments=tuple(
                self._part(float(x)) for x in self.raw.segments[d][s][: len(segmentation)]
            )
            if per_segment
            else None,
            null=self.nulls.documents.get((d, system, self.name)),
            **self._posterior(d, s),
        )

    def _posterior(self, d: int, s: int) -> dict[str, float]:
        """What an expected error is to be read with."""
        facts = self.raw.facts[d]
        if facts is None:
            return {}
        known = {
            "information": facts.information,
            "chance_information": facts.chance_information,
            "assumed_segments": facts.segments,
        }
        if len(self.raw.spread[d]):
            known["spread"] = float(self.raw.spread[d][s])
        return known

    def _system(self, s: int) -> str:
        return list(self.hypotheses)[s]

    def _part(self, raw: float) -> PartScore:
        if np.isnan(raw):
            return PartScore(None, None)
        return PartScore(self.metric.orientation.shown(raw), raw)

    def _reason(self, segmentation: Segmentation) -> str:
        if len(segmentation) == 1:
            return f"no boundary (unsegmented={self.unsegmented})"
        return self.metric.undefined


def mean_loss(
    metric: Metric,
    raw: Floats,
    weights: Floats,
    left_out: int,
    null: NullTest | None,
    bootstrap: DocumentBootstrap,
    posterior: Mapping[str, float] = MappingProxyType({}),
) -> CorpusScore:
    """Weighted mean over documents of one system's raw scores, as tables show it."""
    mean = corpus_mean(raw, weights)
    shown = metric.orientation.shown
    interval = bootstrap.interval(mean, raw, weights)
    low, high = sorted(map(shown, interval)) if interval else (0.0, 0.0)
    defined = int((~np.isnan(raw)).sum())
    return CorpusScore(
        value=None if mean is None else shown(mean),
        raw=mean,
        ci=(low, high) if interval else None,
        ci_reason=None if interval else TOO_FEW,
        documents=defined,
        undefined=len(raw) - defined,
        left_out=left_out,
        null=null,
        direction=metric.orientation.direction,
        **posterior,
    )


@dataclass(frozen=True, slots=True)
class GoldBased:
    """Counts against the gold to values."""

    metric: GoldMetric
    average: Average
    values: Floats  # (documents, systems) mean over annotators; NaN where undefined
    counts: Floats  # (documents, systems, c) sum over annotators
    has_gold: NDArray[np.bool_]  # (documents,)

    @property
    def is_pooled(self) -> bool:
        """Whether counts are summed over the corpus before the value is taken."""
        return self.average == "micro" or self.metric.pooled

    @property
    def is_comparable(self) -> bool:
        """Whether every document is defined for all systems or for none."""
        missing = np.isnan(self.values).sum(1)
        return self.is_pooled or not ((missing > 0) & (missing < self.values.shape[1])).any()

    def corpus_score(self, s: int, bootstrap: DocumentBootstrap) -> CorpusScore:
        """Mean over documents, or the value of all counts together."""
        values = self.values[:, s]
        if self.is_pooled:
            defined = int(self.has_gold.sum())
            total = float(self.metric.value(self.counts[:, s].sum(0)))
            value = None if np.isnan(total) else total
            interval = bootstrap.pooled_interval(
                value, self.counts[:, s], self.has_gold, self.metric.value
            )
        else:
            defined = int((~np.isnan(values)).sum())
            value = corpus_mean(values, np.ones_like(values))
            interval = bootstrap.interval(value, values)
        return CorpusScore(
            value=value,
            raw=value,
            ci=interval,
            ci_reason=None if interval else TOO_FEW,
            documents=defined,
            undefined=len(values) - defined,
            left_out=0,
            direction=self.metric.direction,
        )

    def document_score(self, d: int, s: int, *, per_segment: bool) -> PartScore:
        """Value of one document; segments have none."""
        value = float(self.values[d, s])
        weight = float(self.counts[d, s, -1]) if self.metric.pooled else None
        if not np.isnan(value):
            return PartScore(value, value, weight=weight)
        reason = self.metric.undefined if self.has_gold[d] else "the document has no gold"
        return PartScore(None, None, reason=reason)
