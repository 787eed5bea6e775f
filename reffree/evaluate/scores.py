"""Scores of systems on documents by metrics of both kinds, as arrays.

`Scores` of blocks of documents, put behind one another, are those of the corpus; from these come
corpus scores, documents' rows and the losses that studies resample.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from reffree.data.segmentation import Segmentation
from reffree.encoders.options import EncoderOptions
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.table import POSTERIOR, CorpusScore, NullTest, PartScore, SystemScores
from reffree.metrics.free.result import document_pool
from reffree.statistics.losses import (
    MeanOverDocuments,
    MedianOverDocuments,
    PooledOverDocuments,
    SystemLosses,
)
from reffree.statistics.resampling import MIN_DOCUMENTS, DocumentBootstrap
from reffree.util.arrays import Booleans, Floats, Integers

if TYPE_CHECKING:
    from reffree.encoders.embed import Embeddings
    from reffree.evaluate.table import DocumentScores
    from reffree.metrics.free.result import RawScores, Unsegmented

Average = Literal["macro", "micro"]

TOO_FEW = f"fewer than {MIN_DOCUMENTS} documents with a score"
FACTS = ("information", "chance_information", "assumed_segments", "fewest", "most")
"""What the posterior behind an expected error is described by (`PosteriorFacts`)."""

REGIME = ("w_f1", "bor", "purity", "coverage")
"""Figures that a failure mode rests on; only bor may be undefined."""

OVER_DOCUMENTS = {"n_segments": 0, "has_gold": 0} | dict.fromkeys(
    ("raw", "weights", "left_out", "spread", "facts", "excess"), 1
)
"""Arrays of `Scores`, and their axis of documents."""


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """All that scores depend on, besides documents, their vectors and the metrics."""

    options: EncoderOptions = field(default_factory=EncoderOptions)
    unsegmented: Unsegmented = "neutral"
    average: Average = "macro"
    seed: int = 0
    null: int = 0
    keep_spread: bool = False  # of expected errors, and what they rest on
    per_document: bool = False
    per_segment: bool = False
    explain: bool = False

    @property
    def has_rows(self) -> bool:
        """Whether every document gets a row of its own."""
        return self.per_document or self.per_segment


@dataclass(frozen=True, slots=True)
class Scores:
    """Systems × documents × metrics; metrics in the order of ``metrics.names``."""

    metrics: MetricSet
    settings: ScoreSettings
    systems: tuple[str, ...]
    n_segments: Integers  # (documents, systems)
    has_gold: Booleans  # (documents,)
    raw: Floats  # (metrics, documents, systems) a gold-based metric's value; NaN where undefined
    weights: Floats  # (metrics, documents, systems) in the corpus mean
    left_out: Floats  # (metrics, documents, systems) infinite parts left out
    spread: Floats  # (metrics, documents, systems) of expected errors; NaN without
    facts: Floats  # (metrics, documents, facts) `FACTS` behind them; NaN without
    counts: dict[str, Floats]  # of gold-based metrics: (documents, systems, c), 0 without gold
    excess: Floats | None = None  # (2, documents, systems) `Excess` and weights, if looked at
    null: Floats | None = None  # (2, systems, metrics, draws) `null.draw_sums`
    embedded: Embeddings | None = None  # without its vectors
    rows: tuple[DocumentScores, ...] = ()  # of every document, where they are wanted

    @classmethod
    def empty(
        cls,
        metrics: MetricSet,
        settings: ScoreSettings,
        hypotheses: Mapping[str, Sequence[Segmentation]],
        has_gold: Sequence[bool],
    ) -> Scores:
        """Make room for the scores of documents: all undefined, of equal weight."""
        lengths = [[len(each) for each in row] for row in hypotheses.values()]
        shape = (len(metrics.names), len(has_gold), len(lengths))
        return cls(
            *(metrics, settings, tuple(hypotheses)),
            n_segments=np.array(lengths, dtype=np.int64).T,
            has_gold=np.array(has_gold),
            raw=np.full(shape, np.nan),
            weights=np.ones(shape),
            left_out=np.zeros(shape),
            spread=np.full(shape, np.nan),
            facts=np.full((*shape[:2], len(FACTS)), np.nan),
            counts={},
        )

    def put(self, name: str, found: Sequence[RawScores]) -> None:
        """Put a reference-free metric's scores of every document into their places."""
        m = self.index(name)
        for d, scores in enumerate(found):
            self.raw[m, d] = scores.documents
            self.weights[m, d] = scores.weights
            self.left_out[m, d] = scores.left_out
            if scores.facts is not None:
                self.spread[m, d] = scores.spread
                self.facts[m, d] = scores.facts

    @classmethod
    def concatenate(cls, blocks: Sequence[Scores]) -> Scores:
        """Put blocks behind one another and add up their null draws."""
        first = blocks[0]
        null, embedded = first.null, first.embedded
        for block in blocks[1:]:
            null = None if null is None or block.null is None else null + block.null
            if embedded is not None and block.embedded is not None:
                embedded = replace(
                    embedded,
                    n_truncated=embedded.n_truncated + block.embedded.n_truncated,
                    unread=dict(Counter(embedded.unread) + Counter(block.embedded.unread)),
                )
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(block, name) for block in blocks], axis)
            for name, axis in OVER_DOCUMENTS.items()
            if getattr(first, name) is not None
        }
        for name in first.metrics.gold_based:  # a block without gold has no counts: 0 of each
            counts = [b.counts.get(name, np.zeros((*b.n_segments.shape, 0))) for b in blocks]
            width = max(each.shape[2] for each in counts)
            wide = [c if c.shape[2] else np.zeros((*c.shape[:2], width)) for c in counts]
            joined.setdefault("counts", {})[name] = np.concatenate(wide)
        rows = tuple(row for block in blocks for row in block.rows)
        return replace(first, **joined, null=null, embedded=embedded, rows=rows)

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
        return metric is not None and (self.settings.average == "micro" or metric.pooled)

    def is_median(self, name: str) -> bool:
        """Whether a metric's corpus score is the median over documents."""
        return document_pool(self.metrics.reference_free.get(name)) == "median"

    def shown(self, name: str) -> Floats:
        """What tables show of one metric's scores: (documents, systems)."""
        raw = self.raw[self.index(name)]
        return np.array([[self.metrics.metric(name).shown(x) for x in row] for row in raw.tolist()])

    def losses(self, name: str) -> SystemLosses:
        """One metric of all systems as losses, lower is better, ready to be resampled."""
        return self._over_documents(name, self.metrics.metric(name).losses)

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
        weights = self.weights[self.index(name)].T
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
        m, metric = self.index(name), self.metrics.metric(name)
        raw, weights = self.raw[m, :, s], self.weights[m, :, s]
        is_defined = ~np.isnan(raw)
        mean: float | None
        if self.is_pooled(name):
            value, counts = self.metrics.gold_based[name].value, self.counts[name][:, s]
            is_defined, total = self.has_gold, float(value(counts.sum(0)))
            mean = None if math.isnan(total) else total
            interval = bootstrap.pooled_interval(mean, counts, is_defined, value)
        elif self.is_median(name):
            mean = float(np.median(raw[is_defined])) if is_defined.any() else None
            interval = bootstrap.median_interval(mean, raw)
        else:
            mean = corpus_mean(raw, weights)
            interval = bootstrap.interval(mean, raw, weights)
        low, high = sorted(metric.shown(x) for x in interval or (0.0, 0.0))
        known: dict[str, Any] = {}
        if (with_facts := ~np.isnan(self.facts[m, :, 2])).any():
            means = self.facts[m, with_facts].mean(0)
            # Means of numbers of segments are geometric.
            means[2:] = np.exp(np.log(self.facts[m, with_facts, 2:]).mean(0))
            known = _named_facts(float(self.spread[m, with_facts, s].mean()), means)
        return CorpusScore(
            value=None if mean is None else metric.shown(mean),
            raw=mean,
            ci=(low, high) if interval else None,
            ci_reason=None if interval else TOO_FEW,
            documents=int(is_defined.sum()),
            undefined=int((~is_defined).sum()),
            left_out=int(self.left_out[m, :, s].sum()),
            null=null,
            direction=metric.direction,
            **known,
        )

    def system_rows(
        self, nulls: Mapping[tuple[str, str], NullTest | None]
    ) -> tuple[SystemScores, ...]:
        """Average over documents, with intervals from the same resamples everywhere."""
        rng = np.random.default_rng(self.settings.seed)
        bootstrap = DocumentBootstrap(len(self.has_gold), rng)
        rows = []
        for s, system in enumerate(self.systems):
            scores = {
                name: self.corpus_score(name, s, bootstrap, nulls.get((system, name)))
                for name in self.metrics.names
            }
            figures = [scores[name].value for name in REGIME if name in scores]
            mode = None
            if len(figures) == len(REGIME) and None not in (figures[0], *figures[2:]):
                from reffree.metrics.gold.granularity import failure_mode

                mode = failure_mode(*figures)  # type: ignore[arg-type]
            n, n_single = int(self.n_segments[:, s].sum()), int((self.n_segments[:, s] == 1).sum())
            rows.append(SystemScores(system, n, n_single, scores, mode))
        return tuple(rows)

    def part_score(self, name: str, d: int, s: int) -> PartScore:
        """Score of a system on one document."""
        m, metric = self.index(name), self.metrics.gold_based.get(name)
        raw, weight = float(self.raw[m, d, s]), float(self.weights[m, d, s])
        is_weighed = weight != 1.0
        if metric is not None:
            is_weighed = metric.pooled and not math.isnan(raw)
            weight = float(self.counts[name][d, s, -1]) if is_weighed else 1.0
        known = _named_facts(float(self.spread[m, d, s]), self.facts[m, d])
        known["weight"] = weight if is_weighed else None
        if not math.isnan(raw):
            return PartScore(self.metrics.metric(name).shown(raw), raw, **known)
        if metric is not None:
            reason = metric.undefined if self.has_gold[d] else "the document has no gold"
        elif self.n_segments[d, s] == 1:
            reason = f"no boundary (unsegmented={self.settings.unsegmented})"
        else:
            reason = self.metrics.reference_free[name].undefined
        return PartScore(None, None, reason=reason, **known)


def opening_scores(
    placed: Floats, room: Floats, factors: Floats, allowed: Floats, bootstrap: DocumentBootstrap
) -> dict[str, CorpusScore]:
    """Return placement and granularity over documents, for a sentence about them.

    Of every document: placement and what it counts for, the logarithm of granularity, and the
    least and the most granularity that the text allows; NaN where undefined.
    """
    mean, level = corpus_mean(placed, room), corpus_mean(factors, np.ones_like(factors))
    found = {"placement": CorpusScore(mean, mean, ci=bootstrap.interval(mean, placed, room))}
    if level is not None:
        low, high = np.exp(np.nanmean(np.log(allowed), axis=0)).tolist()
        found["granularity"] = CorpusScore(math.exp(level), level, allowed=(low, high))
    return found


def _named_facts(spread: float, facts: Floats) -> dict[str, Any]:
    """Name what is known of a spread and of `FACTS`; the range allowed is a factor."""
    information, chance, segments, fewest, most = facts.tolist()
    named = dict(zip(POSTERIOR, (spread, information, chance, segments), strict=True))
    known: dict[str, Any] = {name: x for name, x in named.items() if not math.isnan(x)}
    if not math.isnan(fewest):
        known["allowed"] = (fewest / segments, most / segments)
    return known


def corpus_mean(raw: Floats, weights: Floats) -> float | None:
    """Weighted mean over the documents with a score; None without any."""
    defined = ~np.isnan(raw)
    if not defined.any():
        return None
    return float(np.average(raw[defined], weights=weights[defined]))
