"""Metrics of both kinds by name, in the order of the table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from reffree.data.corpus import Corpus
from reffree.evaluate.corpus_counts import CorpusCounts
from reffree.metrics.free.expected import Expected
from reffree.metrics.free.metrics import DEFAULT, METRICS, Metric, parse_metric, parse_metrics
from reffree.metrics.gold.metric import GoldMetric, Golds
from reffree.metrics.gold.metrics import GOLD_DEFAULT, GOLD_METRICS, SedOver, parse_gold_metric
from reffree.statistics.losses import Direction, as_loss
from reffree.util.arrays import Floats
from reffree.util.errors import InputError, UnknownNameError
from reffree.util.naming import spelling_of

ALL = {"all": METRICS, "gold": GOLD_METRICS}
"""Names that stand for every metric of a kind."""


@dataclass(frozen=True, slots=True)
class MetricSet:
    """What to score: names in the order of the columns, and the metrics of each kind."""

    names: tuple[str, ...]
    reference_free: dict[str, Metric]
    gold_based: dict[str, GoldMetric]

    def over(self, golds: Golds) -> MetricSet:
        """Settle what metrics take from a whole corpus, such as ``k=corpus``."""
        return replace(self, gold_based={n: m.over(golds) for n, m in self.gold_based.items()})

    def losses(self, name: str, raw: Floats) -> Floats:
        """Raw scores, turned so that lower is better."""
        if name in self.gold_based:
            return as_loss(raw, self.gold_based[name].direction)
        orientation = self.reference_free[name].orientation
        return orientation.offset + orientation.slope * raw

    def shown(self, name: str, raw: float) -> float:
        """Return what tables show of a raw score: mostly the loss, of gold-based ones the value."""
        metric = self.reference_free.get(name)
        return raw if metric is None else metric.orientation.shown(raw)

    def direction(self, name: str) -> Direction:
        """Which way what tables show is better."""
        if name in self.gold_based:
            return self.gold_based[name].direction
        return self.reference_free[name].orientation.direction


def choose_metrics(
    names: Sequence[str] | None, corpus: Corpus | CorpusCounts, *, seed: int, offline: bool
) -> MetricSet:
    """Read names such as ``arp_pair``, ``pk:k=3``, ``all`` or ``gold``, each once.

    None means the default: the reference-free ones, and `GOLD_DEFAULT` where every document has
    gold and there is a system to hold against it.
    """
    given = [names] if isinstance(names, str) else _default(corpus) if names is None else [*names]
    every = [one for name in given for one in ALL.get(name, [name])]
    reference_free: dict[str, Metric] = {}
    gold_based: dict[str, GoldMetric] = {}
    order = []
    for text in every:
        parsed = parse_any(text)
        order.append(spelling_of(parsed))
        if isinstance(parsed, SedOver):
            from reffree.encoders.word_vectors import open_word_vectors

            vectors = open_word_vectors(parsed.vectors, pieces=parsed.pieces, offline=offline)
            gold_based[order[-1]] = parsed.over(vectors)
        elif parsed.name in GOLD_METRICS:
            gold_based[order[-1]] = cast(GoldMetric, parsed)
        else:
            (metric,) = parse_metrics([text], seed)
            reference_free[order[-1]] = metric
            if isinstance(metric, Expected) and metric.scorer:
                # Refuses what is none before any work; imported only for those who name one.
                from reffree.segmenters.trained.folder import read_description

                read_description(Path(metric.scorer), "scorer")
    if not order:
        raise InputError(
            "no metrics", expected="at least one", remedy="leave metrics out for the default ones"
        )
    return MetricSet(tuple(dict.fromkeys(order)), reference_free, gold_based)


def parse_any(text: str) -> Metric | GoldMetric | SedOver:
    """Read a metric of either kind, such as ``arp_std:p=1`` or ``pk:k=3``."""
    name = text.partition(":")[0]
    if name in GOLD_METRICS:
        return parse_gold_metric(text)
    if name in METRICS or "," in name:
        return parse_metric(text)
    raise UnknownNameError("metric", name, [*METRICS, *GOLD_METRICS])


def check_metrics(names: Sequence[str]) -> None:
    """Refuse names of no metric, before any work; ``all`` and ``gold`` stand for several."""
    for name in names:
        if name not in ALL:
            parse_any(name)


def _default(corpus: Corpus | CorpusCounts) -> list[str]:
    counts = corpus if isinstance(corpus, CorpusCounts) else CorpusCounts.of(corpus)
    has_gold = counts.n_compared == counts.n_documents
    return [*DEFAULT, *(GOLD_DEFAULT if has_gold and counts.systems else ())]
