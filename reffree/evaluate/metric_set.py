"""Metrics of both kinds by name, in the order of the table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reffree.data.corpus import Corpus
from reffree.evaluate.corpus_counts import CorpusCounts
from reffree.evaluate.judges import without_read_sources
from reffree.metrics.free.result import FreeMetric
from reffree.metrics.gold.metric import GoldMetric, Golds
from reffree.metrics.registry import (
    DEFAULT,
    FREE_METRICS,
    GOLD_DEFAULT,
    GOLD_METRICS,
    parse_metric,
)
from reffree.util.errors import InputError
from reffree.util.naming import spelling_of

ALL = {"all": FREE_METRICS, "gold": GOLD_METRICS}
"""Names that stand for every metric of a kind."""


@dataclass(frozen=True, slots=True)
class MetricSet:
    """What to score: names in the order of the columns, and the metrics of each kind."""

    names: tuple[str, ...]
    reference_free: dict[str, FreeMetric]
    gold_based: dict[str, GoldMetric]

    def over(self, golds: Golds) -> MetricSet:
        """Settle what metrics take from a whole corpus, such as ``k=corpus``."""
        return replace(self, gold_based={n: m.over(golds) for n, m in self.gold_based.items()})

    def metric(self, name: str) -> FreeMetric | GoldMetric:
        """Return the metric of a column."""
        return self.gold_based.get(name) or self.reference_free[name]


def choose_metrics(
    names: Sequence[str] | None, corpus: Corpus | CorpusCounts, *, seed: int, offline: bool
) -> MetricSet:
    """Read names such as ``arp_pair``, ``pk:k=3``, ``all`` or ``gold``, each once.

    None means the default: the reference-free ones, and `GOLD_DEFAULT` where every document has
    gold and there is a system to hold against it.
    """
    given = [names] if isinstance(names, str) else _default(corpus) if names is None else [*names]
    every = [one for name in given for one in ALL.get(name, [name])]
    free: dict[str, FreeMetric] = {}
    gold: dict[str, GoldMetric] = {}
    order = []
    for text in every:
        metric = parse_metric(text)
        name = spelling_of(metric)
        order.append(name)
        if "word_vectors" in metric.needs:
            from reffree.encoders.word_vectors import open_word_vectors

            vectors = open_word_vectors(metric.vectors, pieces=metric.pieces, offline=offline)
            gold[name] = metric.with_vectors(vectors)
        elif "gold" in metric.needs:
            gold[name] = metric
        else:
            free[name] = replace(metric, seed=seed) if hasattr(metric, "seed") else metric
        if getattr(metric, "scorer", ""):
            from reffree.segmenters.trained.folder import read_description

            read_description(Path(metric.scorer), "scorer")  # refuses what is none before any work
    if not order:
        raise InputError(
            "no metrics", expected="at least one", remedy="leave metrics out for the default ones"
        )
    return MetricSet(tuple(dict.fromkeys(order)), free, gold)


def check_metric(name: str) -> None:
    """Refuse the name of no metric; ``all`` and ``gold`` stand for several."""
    if name not in ALL:
        parse_metric(name)


def check_metrics(names: Sequence[str]) -> None:
    """Refuse names of no metric, before any work."""
    for name in names:
        check_metric(name)


def _default(corpus: Corpus | CorpusCounts) -> list[str]:
    counts = corpus if isinstance(corpus, CorpusCounts) else CorpusCounts.of(corpus)
    has_gold = counts.n_compared == counts.n_documents
    return [
        *without_read_sources(DEFAULT, counts.systems),
        *(GOLD_DEFAULT if has_gold and counts.systems else ()),
    ]
