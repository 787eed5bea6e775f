"""Scores of systems on documents by metrics of both kinds, as arrays.

A block of documents gives `Scores`, blocks behind one another give those of the corpus, and from
these come corpus scores, documents' rows and the losses that studies resample. What is added up
over documents is added exactly or in their order, so blocks change no bit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from reffree.encoders.embed import Embeddings
from reffree.encoders.options import EncoderOptions
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.table import CorpusScore, NullTest, PartScore, SystemScores
from reffree.metrics.free.pooling import document_pool
from reffree.metrics.free.posterior import PosteriorFacts
from reffree.metrics.free.result import RawScores, Unsegmented, check_unsegmented
from reffree.metrics.gold.failure_modes import FailureMode, failure_mode
from reffree.statistics.losses import (
    MeanOverDocuments,
    MedianOverDocuments,
    PooledOverDocuments,
    SystemLosses,
)
from reffree.statistics.resampling import MIN_DOCUMENTS, DocumentBootstrap
from reffree.util.arrays import Booleans, Floats, Integers
from reffree.util.bounds import check_choice

if TYPE_CHECKING:
    from reffree.evaluate.null import NullSums

Average = Literal["macro", "micro"]

TOO_FEW = f"fewer than {MIN_DOCUMENTS} documents with a score"


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """All that scores depend on, besides documents, their vectors and the metrics."""

    options: EncoderOptions = field(default_factory=EncoderOptions)
    unsegmented: Unsegmented = "neutral"
    average: Average = "macro"
    seed: int = 0
    null: int = 0
    memory: int | None = None
    keep_spread: bool = False  # of expected errors, and what they rest on
    per_document: bool = False
    per_segment: bool = False
    explain: bool = False

    def __post_init__(self) -> None:
        """Refuse policies and averages that do not exist."""
        check_unsegmented(self.unsegmented)
        check_choice("average", self.average, get_args(Average), "macro")

    @property
    def has_rows(self) -> bool:
        """Whether every document gets a row of its own."""
        return self.per_document or self.per_segment or self.explain


@dataclass(frozen=True, slots=True)
class Scores:
    """Systems × documents × metrics; metrics in the order of ``metrics.names``."""

    metrics: MetricSet
    settings: ScoreSettings
    systems: tuple[str, ...]
    n_segments: Integers  # (documents, systems)
    has_gold: Booleans  # (documents,)
    raw: Floats  # (metrics, documents, systems) a gold-based metric's value; NaN where undefined
    weights: Floats  # (metrics, documents, systems) in the corpus mean; 0: none of its own
    left_out: Floats  # (metrics, documents, systems) infinite parts left out
    spread: Floats  # (metrics, documents, systems) of expected errors; NaN without
    facts: Floats  # (metrics, documents, 3) `PosteriorFacts` behind them; NaN without
    counts: dict[str, Floats]  # of gold-based metrics: (documents, systems, c), 0 without gold
    null: NullSums | None = None
    embedded: Embeddings | None = None  # without its vectors

    @classmethod
    def empty(
        cls,
        metrics: MetricSet,
        settings: ScoreSettings,
        systems: tuple[str, ...],
        n_segments: Integers,
        has_gold: Booleans,
    ) -> Scores:
        """Make room for the scores of documents: all undefined, of equal weight."""
        shape = (len(metrics.names), *n_segments.shape)
        return cls(
            *(metrics, settings, systems, n_segments, has_gold),
            raw=np.full(shape, np.nan),
            weights=np.ones(shape),
            left_out=np.zeros(shape),
            spread=np.full(shape, np.nan),
            facts=np.full((*shape[:2], len(PosteriorFacts._fields)), np.nan),
            counts={},
        )

    def put(self, name: str, found: Sequence[RawScores]) -> None:
        """Put a reference-free metric's scores of every document into their places."""
        m = self.index(name)
        for d, scores in enumerate(found):
            scores = scores.on_host()
            self.raw[m, d] = scores.documents
            self.weights[m, d] = scores.weights
            self.left_out[m, d] = scores.left_out
            if scores.facts is not None:
                self.spread[m, d] = scores.spread
                self.facts[m, d] = scores.facts

    @classmethod
    def concatenate(cls, blocks: Iterable[Scores]) -> Scores:
        """Put blocks behind one another; their null draws are added up as they come."""
        parts: list[Scores] = []
        null: NullSums | None = None
        embedded: Embeddings | None = None
        for block in blocks:
            if block.null is not None:
                null = block.null if null is None else null + block.null
            if block.embedded is not None:
                embedded = _joined(embedded, block.embedded)
            parts.append(replace(block, null=None, embedded=None))
        return replace(
            parts[0],
            n_segments=np.concatenate([part.n_segments for part in parts]),
            has_gold=np.concatenate([part.has_gold for part in parts]),
            raw=np.concatenate([part.raw for part in parts], axis=1),
            weights=np.concatenate([part.weights for part in parts], axis=1),
            left_out=np.concatenate([part.left_out for part in parts], axis=1),
            spread=np.concatenate([part.spread for part in parts], axis=1),
            facts=np.concatenate([part.facts for part in parts], axis=1),
            counts={name: _counts(parts, name) for name in parts[0].metrics.gold_based},
            null=null,
            embedded=embedded,
        )

    def without(self, is_out: Booleans) -> Scores:
        """Leave documents out of systems' scores, (documents, systems), by every metric."""
        return replace(
            self,
            raw=np.where(is_out, np.nan, self.raw),
            counts={n: np.where(is_out[:, :, None], 0.0, c) for n, c in self.counts.items()},
        )

    def index(self, name: str) -> int:
        """Place of a metric."""
        return self.metrics.names.index(name)

    def is_pooled(self, name: str) -> bool:
        """Whether a metric's counts are summed over the corpus before the value is taken."""
        metric = self.metrics.gold_based.get(name)
        is_micro = self.settings.average == "micro"
        return metric is not None and (is_micro or metric.pooled)

    def is_median(self, name: str) -> bool:
        """Whether a metric's corpus score is the median over documents."""
        return document_pool(self.metrics.reference_free.get(name)) == "median"

    def losses(self, name: str) -> SystemLosses:
        """One metric of all systems as losses, lower is better, ready to be resampled."""
        return self._over_documents(name, partial(self.metrics.losses, name))

    def own_values(self, name: str) -> SystemLosses:
        """As `losses`, but values of a gold-based metric as they are."""
        is_gold_based = name in self.metrics.gold_based
        return self._over_documents(name, np.asarray) if is_gold_based else self.losses(name)

    def _over_documents(self, name: str, turn: Callable[[Floats], Floats]) -> SystemLosses:
        """Means over documents, or the value of all counts together."""
        values = turn(self.raw[self.index(name)].T)
        if self.is_pooled(name):
            value = self.metrics.gold_based[name].value
            counts = self.counts[name]
            return PooledOverDocuments(values, counts, lambda c: turn(value(c)), self.has_gold)
        if self.is_median(name):
            return MedianOverDocuments(values)
        weights = np.stack([filled_weights(row) for row in self.weights[self.index(name)].T])
        return MeanOverDocuments(values, None if (weights == 1.0).all() else weights)

    def is_comparable(self, name: str) -> bool:
        """Whether every document is defined for all systems or for none."""
        missing = np.isnan(self.raw[self.index(name)]).sum(1)
        some_lack_it = ((missing > 0) & (missing < len(self.systems))).any()
        return self.is_pooled(name) or not some_lack_it

    def corpus_score(
        self, name: str, s: int, bootstrap: DocumentBootstrap, null: NullTest | None = None
    ) -> CorpusScore:
        """Weighted mean over documents of a system, or the value of all counts together."""
        m = self.index(name)
        raw, weights = self.raw[m, :, s], filled_weights(self.weights[m, :, s])
        is_defined = ~np.isnan(raw)
        if self.is_pooled(name):
            value, counts = self.metrics.gold_based[name].value, self.counts[name][:, s]
            is_defined = self.has_gold
            total = float(value(counts.sum(0)))
            mean = None if math.isnan(total) else total
            interval = bootstrap.pooled_interval(mean, counts, is_defined, value)
        elif self.is_median(name):
            mean = float(np.median(raw[is_defined])) if is_defined.any() else None
            interval = bootstrap.median_interval(mean, raw)
        else:
            mean = corpus_mean(raw, weights)
            interval = bootstrap.interval(mean, raw, weights)
        low, high = sorted(self.metrics.shown(name, x) for x in interval or (0.0, 0.0))
        return CorpusScore(
            value=None if mean is None else self.metrics.shown(name, mean),
            raw=mean,
            ci=(low, high) if interval else None,
            ci_reason=None if interval else TOO_FEW,
            documents=int(is_defined.sum()),
            undefined=int((~is_defined).sum()),
            left_out=int(self.left_out[m, :, s].sum()),
            null=null,
            direction=self.metrics.direction(name),
            **self._mean_facts(m, s),
        )

    def _mean_facts(self, m: int, s: int) -> dict[str, float]:
        """Mean over documents of what an expected error is to be read with."""
        known = ~np.isnan(self.facts[m, :, 0])
        if not known.any():
            return {}
        information, chance, segments = self.facts[m, known].T
        return {
            "spread": float(self.spread[m, known, s].mean()),
            "information": float(information.mean()),
            "chance_information": float(chance.mean()),
            "assumed_segments": float(np.exp(np.log(segments).mean())),
        }

    def system_rows(
        self, bootstrap: DocumentBootstrap, nulls: Mapping[tuple[str, str], NullTest | None]
    ) -> tuple[SystemScores, ...]:
        """Average over documents, with intervals from the same resamples everywhere."""
        rows = []
        for s, system in enumerate(self.systems):
            scores = {
                name: self.corpus_score(name, s, bootstrap, nulls.get((system, name)))
                for name in self.metrics.names
            }
            n_segments = self.n_segments[:, s]
            rows.append(
                SystemScores(
                    system=system,
                    segments=int(n_segments.sum()),
                    unsegmented=int((n_segments == 1).sum()),
                    metrics=scores,
                    failure_mode=_failure_mode(scores),
                )
            )
        return tuple(rows)

    def part_score(self, name: str, d: int, s: int) -> PartScore:
        """Score of a system on one document."""
        m = self.index(name)
        raw = float(self.raw[m, d, s])
        if math.isnan(raw):
            part = PartScore(None, None, reason=self._reason(name, d, s))
        else:
            part = PartScore(self.metrics.shown(name, raw), raw)
        metric = self.metrics.gold_based.get(name)
        if metric is not None:
            has_weight = metric.pooled and part.value is not None
            return replace(part, weight=float(self.counts[name][d, s, -1]) if has_weight else None)
        weight = float(self.weights[m, d, s])
        facts = self.facts[m, d].tolist()
        if not math.isnan(facts[0]):
            part = replace(
                part,
                spread=float(self.spread[m, d, s]),
                information=facts[0],
                chance_information=facts[1],
                assumed_segments=facts[2],
            )
        return replace(part, weight=None if weight in (0.0, 1.0) else weight)

    def _reason(self, name: str, d: int, s: int) -> str:
        """Why a system has no score on a document."""
        metric = self.metrics.gold_based.get(name)
        if metric is not None:
            return metric.undefined if self.has_gold[d] else "the document has no gold"
        if self.n_segments[d, s] == 1:
            return f"no boundary (unsegmented={self.settings.unsegmented})"
        return self.metrics.reference_free[name].undefined


def filled_weights(weights: Floats) -> Floats:
    """Weights of one system's documents, without gaps.

    Most metrics weigh documents equally. Where they do not, a document with a score but without a
    weight of its own (one without a boundary, under the policies neutral and worst) counts as much
    as the system's average document.
    """
    return np.where(weights > 0, weights, average_weight(weights))


def average_weight(weights: Floats) -> float:
    """Mean of one system's documents with a weight of their own; 1 without any."""
    is_weighted = weights > 0
    return float(weights[is_weighted].mean()) if is_weighted.any() else 1.0


def corpus_mean(raw: Floats, weights: Floats) -> float | None:
    """Weighted mean over the documents with a score; None without any."""
    defined = ~np.isnan(raw)
    if not defined.any():
        return None
    return float(np.average(raw[defined], weights=weights[defined]))


def _counts(blocks: Sequence[Scores], name: str) -> Floats:
    """Counts of all blocks; one without gold has none, which is 0 of each."""
    found = [block.counts.get(name) for block in blocks]
    width = max(0 if counts is None else counts.shape[2] for counts in found)
    return np.concatenate(
        [
            np.zeros((*block.n_segments.shape, width)) if counts is None else counts
            for block, counts in zip(blocks, found, strict=True)
        ]
    )


def _joined(one: Embeddings | None, other: Embeddings) -> Embeddings:
    """Add up what is known of two blocks' vectors; all actors may not have the same device."""
    if one is None:
        return other
    devices = dict.fromkeys([*one.device.split("+"), *other.device.split("+")])
    return replace(
        one,
        n_truncated=one.n_truncated + other.n_truncated,
        device="+".join(sorted(devices)),
        unread=dict(Counter(one.unread) + Counter(other.unread)),
    )


def _failure_mode(scores: Mapping[str, CorpusScore]) -> FailureMode | None:
    """Name the regime where all four figures it rests on were asked for and are defined."""
    values = {name: scores[name].value for name in ("w_f1", "purity", "coverage") if name in scores}
    known = {name: value for name, value in values.items() if value is not None}
    if len(known) < 3 or "bor" not in scores:
        return None
    return failure_mode(known["w_f1"], scores["bor"].value, known["purity"], known["coverage"])
