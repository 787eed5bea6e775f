"""Metrics of both kinds by name, in the order of the table's columns, and what they read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import Corpus
from reffree.encoders.base import EncoderSpec
from reffree.encoders.options import EncoderOptions
from reffree.evaluate.corpus_counts import CorpusCounts
from reffree.metrics.free.result import FreeMetric
from reffree.metrics.gold.metric import GoldMetric, Golds
from reffree.metrics.registry import DEFAULT, FREE_METRICS, GOLD_DEFAULT, GOLD_METRICS, parse_metric
from reffree.util.errors import InputError
from reffree.util.naming import spelling_of

if TYPE_CHECKING:
    from reffree.metrics.free.evidence import Reading

ALL = {"all": FREE_METRICS, "gold": GOLD_METRICS}
"""Names that stand for every metric of a kind."""

READERS = {
    "vectors": ("depth", "changepoint", "greedy", "optimal"),
    "words": ("texttiling", "c99", "textseg"),
}
"""Methods of ``reffree segment`` by what they look for coherence in; systems are called as they."""

JUDGES = ("placement", "expected_pk")
"""What a verdict opens with that reads all sources."""


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
    if names is None:
        counts = corpus if isinstance(corpus, CorpusCounts) else CorpusCounts.of(corpus)
        names = without_read_sources(DEFAULT, counts.systems)
        if counts.systems and counts.n_compared == counts.n_documents:
            names = [*names, *GOLD_DEFAULT]
    given = [names] if isinstance(names, str) else names
    free: dict[str, FreeMetric] = {}
    gold: dict[str, GoldMetric] = {}
    order = []
    for text in [one for name in given for one in ALL.get(name, [name])]:
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


# Sources that systems have read


def known_readers(systems: Iterable[str]) -> dict[str, list[str]]:
    """Return the systems that are known to have looked for coherence in a source, by source."""
    named = {system: system.partition(":")[0] for system in systems}
    found = {s: [n for n, name in named.items() if name in names] for s, names in READERS.items()}
    return {source: names for source, names in found.items() if names}


def without_read_sources(metrics: Sequence[str], systems: Iterable[str]) -> list[str]:
    """Put before metrics that read all sources the same without the one that systems have read.

    Nothing is added where systems have read several: leaving out all of them leaves too little.
    """
    readers = list(known_readers(systems))
    found = []
    for metric in metrics:
        if len(readers) == 1 and metric in JUDGES:
            found.append(f"{metric}:without={readers[0]}")
        found.append(metric)
    return found


# Trained scorers: their probabilities reach a metric as what it reads


def _scorer_folders(metrics: Iterable[object]) -> list[str]:
    """Folders of the trained scorers that expected errors name, each once."""
    return list(dict.fromkeys(filter(None, (getattr(each, "scorer", "") for each in metrics))))


def check_scorers(metrics: Iterable[object], encoder: EncoderSpec | None) -> None:
    """Refuse what metrics name as trained scorers and is none, or is of another encoder.

    ``encoder`` is what will make the vectors, so nothing need be encoded first; None where that is
    not known.
    """
    for folder in _scorer_folders(metrics):
        from reffree.segmenters.trained.scorer import check_scorer

        check_scorer(folder, encoder)


def with_scorers_encoder(metrics: Iterable[object], options: EncoderOptions) -> EncoderOptions:
    """Return options with the encoder of trained scorers that metrics name, if none is given."""
    folders = _scorer_folders(metrics)
    if not folders or options.encoder is not None:
        return options
    from reffree.segmenters.trained.folder import encoders_of, trained_encoding

    return trained_encoding(options, encoders_of(folders))


def readings(
    corpus: Corpus,
    metrics: Iterable[object],
    vectors: Sequence[NDArray[np.generic]] | None,
    encoder: EncoderSpec | None,
    device: str = "auto",
) -> list[Reading]:
    """Every document's text, and the gaps scored by each trained scorer that a metric names.

    That is what expected errors read besides vectors; other metrics read nothing.
    """
    from reffree.metrics.free.evidence import Reading

    scored = {}
    for folder in _scorer_folders(metrics):
        from reffree.segmenters.trained.scorer import gap_probabilities

        scored[folder] = gap_probabilities(folder, corpus, vectors, encoder, device)
    return [
        Reading(document.units, {folder: scores[d] for folder, scores in scored.items()})
        for d, document in enumerate(corpus)
    ]
