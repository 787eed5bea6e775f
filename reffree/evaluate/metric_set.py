"""Metrics of both kinds by name, in the order of the table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from reffree.corpus import Corpus
from reffree.encoders.word_vectors import open_word_vectors
from reffree.errors import InputError, UnknownNameError
from reffree.evaluate.corpus_counts import Survey
from reffree.naming import spelling_of
from reffree.reference.metric import GoldMetric
from reffree.reference.metrics import GOLD_DEFAULT, GOLD_METRICS, SedOver, parse_gold_metric
from reffree.scoring.expected import Expected
from reffree.scoring.metrics import DEFAULT, METRICS, Metric, parse_metric, parse_metrics
from reffree.segmenters.scorer.description import read_description

ALL = {"all": METRICS, "gold": GOLD_METRICS}
"""Names that stand for every metric of a kind."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to score: names in the order of the columns, and the metrics of each kind."""

    names: tuple[str, ...]
    reference_free: dict[str, Metric]
    gold_based: dict[str, GoldMetric]


def choose_metrics(
    names: Sequence[str] | None, corpus: Corpus | Survey, *, seed: int, offline: bool
) -> Chosen:
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
            vectors = open_word_vectors(parsed.vectors, offline=offline)
            gold_based[order[-1]] = parsed.over(vectors)
        elif parsed.name in GOLD_METRICS:
            gold_based[order[-1]] = cast(GoldMetric, parsed)
        else:
            (metric,) = parse_metrics([text], seed)
            reference_free[order[-1]] = metric
            if isinstance(metric, Expected) and metric.scorer:
                read_description(Path(metric.scorer))  # refuses what is none before any work
    if not order:
        raise InputError(
            "no metrics", expected="at least one", remedy="leave metrics out for the default ones"
        )
    return Chosen(tuple(dict.fromkeys(order)), reference_free, gold_based)


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


def _default(corpus: Corpus | Survey) -> list[str]:
    survey = corpus if isinstance(corpus, Survey) else Survey.of(corpus)
    has_gold = survey.n_compared == survey.n_documents
    return [*DEFAULT, *(GOLD_DEFAULT if has_gold and survey.systems else ())]
