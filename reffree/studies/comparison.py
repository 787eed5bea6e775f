"""Which system is better: score once, then compare every pair over documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from reffree.data.corpus import Corpus
from reffree.encoders.embed import Vectors
from reffree.evaluate.metric_set import choose_metrics
from reffree.evaluate.result import plain
from reffree.evaluate.score import refuse_medians, score
from reffree.evaluate.table import CorpusScore, ScoreTable, judged_by, rounded
from reffree.evaluate.verdict import GOLD, Rivals, rank
from reffree.metrics.free.result import Unsegmented
from reffree.statistics.losses import Direction, as_loss
from reffree.statistics.paired import SWAPS, PairedTest, holm, letters, paired_tests
from reffree.studies.study import StudyKeywords
from reffree.util.arrays import Floats
from reffree.util.bounds import with_keywords
from reffree.util.errors import InputError
from reffree.util.notebooks import sentences_html, table_html
from reffree.util.optional import require_pandas

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class RankedSystem:
    """One system in the ranking of a metric."""

    system: str
    value: float | None
    letters: str  # shared with the systems it cannot be told apart from; empty without a value
    documents: int  # with a score


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems on the documents where both have a score."""

    a: str
    b: str
    difference: float | None  # value of a - value of b
    ci: tuple[float, float] | None
    p: float | None
    p_holm: float | None  # corrected for the number of pairs
    documents: int
    better: str | None  # a, b, or None: cannot be told apart


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """All systems under one metric."""

    direction: Direction
    ranking: tuple[RankedSystem, ...]  # best first
    pairs: tuple[Pair, ...]  # in the order of the corpus's systems, the same for every metric


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything `reffree compare` prints, in one value."""

    signature: str
    corpus: dict[str, int]
    alpha: float
    metrics: dict[str, MetricComparison]
    notes: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()  # what it says at a glance, in sentences

    def to_dict(self) -> dict[str, Any]:
        """Return the structure of the JSON output."""
        made: dict[str, Any] = plain(self)
        return made

    def _repr_html_(self) -> str:
        """The verdict, and every metric's values with letters, for notebooks."""
        ranked = [{row.system: row for row in metric.ranking} for metric in self.metrics.values()]
        rows = [
            [
                system,
                *(
                    "–" if row.value is None else f"{row.value:.3f} {row.letters}"
                    for row in (each[system] for each in ranked)
                ),
            ]
            for system in ranked[0]
        ]
        return sentences_html(self.verdict) + table_html(("system", *self.metrics), rows)

    def to_pandas(self) -> pd.DataFrame:
        """One row per metric and pair (needs pandas)."""
        pd = require_pandas()

        rows = []
        for name, metric in self.metrics.items():
            for pair in metric.pairs:
                row = {"metric": name, **plain(pair)}
                row["ci_low"], row["ci_high"] = row.pop("ci") or (None, None)
                rows.append(row)
        return pd.DataFrame(rows)


@with_keywords(StudyKeywords)
def compare(
    corpus: Corpus,
    *,
    metrics: Sequence[str] | None = None,
    alpha: float = ALPHA,
    embeddings: Vectors | None = None,
    unsegmented: Unsegmented = "neutral",
    **keywords: Unpack[StudyKeywords],
) -> Comparison:
    """Compare all systems of a corpus, and its gold where every document has it, in pairs.

    Documents are the unit: a pair's difference is taken over the documents where both systems
    have a score, with a bootstrap interval and a permutation test; p-values are corrected (Holm)
    for the number of pairs of a metric.

    Args:
        corpus: from `reffree.load`, with at least two systems.
        metrics: names as for `reffree.score`, with the same default.
        alpha: two systems are told apart where the corrected p is at most this.
        embeddings: one array per document, in corpus order or by id, instead of an encoder.
        unsegmented: what a document without a boundary scores, as in `reffree.score`.
        **keywords: how to encode and to run, as for every study: see `StudySettings`.
    """
    if not 0 < alpha < 1:
        raise InputError(
            f"alpha {alpha}", expected="a number between 0 and 1", remedy="use 0.05 if in doubt"
        )
    if len(corpus.hypotheses) < 2:
        listed = ", ".join(map(repr, corpus.hypotheses)) or "none"
        raise InputError(
            f"too few systems to compare ({listed})",
            expected="at least two, gold included where every document has it",
            remedy='add "systems" to the corpus, or pass --system NAME=FILE',
            place=corpus.documents[0].place,
        )
    chosen = choose_metrics(
        metrics,
        corpus,
        seed=keywords.get("seed", 0),
        offline=keywords.get("offline", False),
    )
    refuse_medians(chosen, "compare, which tests differences of means")
    table = score(
        corpus,
        metrics=metrics,
        embeddings=embeddings,
        per_document=True,
        unsegmented=unsegmented,
        **keywords,
    )
    return compare_table(table, alpha=alpha, seed=keywords.get("seed", 0))


def compare_table(table: ScoreTable, *, alpha: float = ALPHA, seed: int = 0) -> Comparison:
    """Compare the systems of a score table made with ``per_document=True``."""
    systems = [row.system for row in table.systems]
    pairs = list(combinations(range(len(systems)), 2))
    compared = {}
    hopeless: dict[str, list[str]] = {}
    for name in table.metrics:
        _, values, weights = values_by_document(table, name)
        tests = paired_tests(values, weights, pairs, np.random.default_rng(seed))
        compared[name] = _compare_metric(table, name, tests, alpha)
        if remark := _out_of_reach(tests, alpha):
            hopeless.setdefault(remark, []).append(name)
    notes = [
        f"{name}: the ranking's values come from different documents; every pair is compared on "
        "the documents where both systems have a score."
        for name in table.metrics
        if name in table.incomparable
    ]
    for remark, names in hopeless.items():
        where = "" if len(names) == len(compared) else f"{', '.join(names)}: "
        notes.append(where + remark)
    return Comparison(
        signature=f"{table.signature}|test:paired-permutation({SWAPS})+holm|alpha:{alpha:g}",
        corpus=dict(table.corpus),
        alpha=alpha,
        metrics=compared,
        notes=(*table.notes, *notes),
        verdict=_verdict(table, compared, has_power=not hopeless),
    )


def _verdict(
    table: ScoreTable, compared: Mapping[str, MetricComparison], *, has_power: bool
) -> tuple[str, ...]:
    """Say who is best by the metric to judge by, and by how many of all."""
    metric = judged_by(table.metrics)
    if metric in table.incomparable:
        return table.verdict
    rivals = _rivals(metric, compared[metric])
    best, *others = rivals.values or [GOLD]
    if not others:
        return tuple(rivals.sentences())
    pairs = compared[metric].pairs
    against = {
        (pair.b if pair.a == best else pair.a): pair for pair in pairs if best in (pair.a, pair.b)
    }
    sentences = replace(
        rivals,
        ci=_next_minus_best(against[others[0]], best),
        p=against[others[0]].p_holm,
        comparisons=len(pairs),
        unlike=frozenset(system for system, pair in against.items() if pair.better is not None),
        has_power=has_power,
    ).sentences()
    if len(compared) > 1:
        n_best = sum(_rivals(name, each).best == best for name, each in compared.items())
        sentences.append(f"It is best by {n_best} of {len(compared)} metrics.")
    return tuple(sentences)


def _next_minus_best(pair: Pair, best: str) -> tuple[float, float] | None:
    """Return the interval of a pair's difference, of the other's value minus the best one's."""
    return pair.ci if pair.ci is None or pair.b == best else (-pair.ci[1], -pair.ci[0])


def _rivals(metric: str, compared: MetricComparison) -> Rivals:
    return rank(metric, compared.direction, {row.system: row.value for row in compared.ranking})


def values_by_document(table: ScoreTable, metric: str) -> tuple[list[str], Floats, Floats]:
    """Return documents' ids, values and weights (systems, documents), NaN where undefined.

    Losses are linear in raw scores, so the mean of losses is the loss of the mean. They are
    rounded as in the output: what batching can change must not break a tie.
    """
    if table.documents is None:
        raise InputError(
            "a score table without documents",
            expected="every document's scores",
            remedy="make it with per_document=True",
        )
    system = {row.system: i for i, row in enumerate(table.systems)}
    document = {id: i for i, id in enumerate(dict.fromkeys(row.id for row in table.documents))}
    values = np.full((len(system), len(document)), np.nan)
    weights = np.ones_like(values)
    for row in table.documents:
        part = row.metrics[metric]
        at = system[row.system], document[row.id]
        value = rounded(part.value)
        if value is not None:
            values[at] = value
        if part.weight is not None:
            weights[at] = part.weight
    return list(document), values, weights


def _compare_metric(
    table: ScoreTable, metric: str, tests: Sequence[PairedTest], alpha: float
) -> MetricComparison:
    systems = [row.system for row in table.systems]
    scores = {row.system: row.metrics[metric] for row in table.systems}
    direction = scores[systems[0]].direction
    corrected = iter(holm([test.p for test in tests if test.p is not None]).tolist())
    pairs = []
    for (a, b), test in zip(combinations(systems, 2), tests, strict=True):
        p_holm = None if test.p is None else rounded(next(corrected))
        better = None
        if p_holm is not None and p_holm <= alpha and test.difference:
            better = _better(a, b, test.difference, scores, direction)
        pairs.append(Pair(a, b, test.difference, test.ci, test.p, p_holm, test.documents, better))
    values = {system: rounded(score.value) for system, score in scores.items()}
    scored = {
        system: as_loss(value, direction) for system, value in values.items() if value is not None
    }
    ranking = sorted(scored, key=scored.__getitem__)
    groups = letters(ranking, [(pair.a, pair.b) for pair in pairs if pair.better is not None])
    return MetricComparison(
        direction=direction,
        ranking=tuple(
            RankedSystem(system, values[system], groups.get(system, ""), scores[system].documents)
            for system in [*ranking, *(system for system in systems if system not in scored)]
        ),
        pairs=tuple(pairs),
    )


def _better(
    a: str, b: str, difference: float, scores: Mapping[str, CorpusScore], direction: Direction
) -> str:
    """Which of two systems is better, given that they differ."""
    if direction == "toward_1":
        return min(a, b, key=lambda system: abs((scores[system].value or 0.0) - 1))
    return a if (difference < 0) == (direction == "lower") else b


def _out_of_reach(tests: Sequence[PairedTest], alpha: float) -> str | None:
    """Say it where no difference, however large, could be found."""
    n_pairs = sum(test.p is not None for test in tests)
    n_documents = max(test.documents for test in tests)
    smallest = min(1.0, n_pairs * min(test.smallest_p for test in tests))
    if not n_pairs or smallest <= alpha:
        return None
    return (
        f"No pair can be told apart at alpha {alpha:g}, however large the difference: with "
        f"{n_documents} documents and {n_pairs} pairs the smallest corrected p is {smallest:.3g}."
    )
