"""One corpus under one encoder: systems, losses of every metric, and the statistics per pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats
from reffree.corpus import Corpus
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions
from reffree.evaluate.columns import Average
from reffree.evaluate.metric_set import check_metrics, choose_metrics
from reffree.evaluate.scored import Scored, score_columns
from reffree.evaluate.signature import Signature
from reffree.progress import Progress
from reffree.reference.metrics import GOLD_DEFAULT, GOLD_METRICS
from reffree.scoring.engine import Unsegmented
from reffree.scoring.metrics import DEFAULT
from reffree.statistics.coefficients import MIN_SYSTEMS
from reffree.statistics.evaluation import MetaEvaluation
from reffree.statistics.losses import Counts, SystemLosses
from reffree.studies.pool import Choice, Member, complete_pool
from reffree.studies.sentinels import sentinel_scores

POOLS = ("independent", "blind", "cohesion", "all")


@dataclass(frozen=True, slots=True)
class Settings:
    """What all cases of a study share."""

    metrics: tuple[str, ...]
    pool: Choice
    cohesion: tuple[str, ...]
    unsegmented: Unsegmented
    average: Average
    seed: int
    resamples: int
    memory: int | None
    progress: Progress


@dataclass(frozen=True, slots=True)
class Case:
    """A corpus under an encoder, scored."""

    corpus: str
    encoder: str
    scored: Scored
    embedded: Embeddings
    members: tuple[Member, ...]
    losses: dict[str, SystemLosses]  # sentinels included
    free: tuple[str, ...]
    gold: tuple[str, ...]
    sentinels: tuple[str, ...]
    pools: dict[str, MetaEvaluation]  # those with enough systems
    signature: Signature

    def systems(self, pool: str) -> list[str]:
        """Names of a pool's systems."""
        return [member.system for member in self.members if member.is_in(pool)]


def both_kinds(metrics: Sequence[str] | None) -> tuple[str, ...]:
    """Fill in the default of the kind of metric that is missing."""
    given = tuple(metrics or ())
    check_metrics(given)
    is_gold = [name.partition(":")[0] in GOLD_METRICS or name == "gold" for name in given]
    free = () if not all(is_gold) else tuple(DEFAULT)
    gold = () if any(is_gold) else tuple(GOLD_DEFAULT)
    return (*free, *given, *gold)


def make_case(
    name: str,
    corpus: Corpus,
    vectors: Vectors | None,
    options: EncoderOptions,
    settings: Settings,
) -> Case:
    """Encode, complete the pool, score all systems with all metrics."""
    chosen, vectors = units_taking_part(corpus, vectors, options)
    corpus = chosen.corpus
    embedded = corpus_vectors(corpus, vectors, options, settings.progress)
    pooled, members = complete_pool(
        corpus,
        embedded,
        settings.pool,
        cohesion=[each for each in settings.cohesion if each in corpus.hypotheses],
        seed=settings.seed,
        progress=settings.progress,
    )
    return score_case(name, pooled, members, embedded, options, settings)


def score_case(
    name: str,
    corpus: Corpus,
    members: Sequence[Member],
    embedded: Embeddings,
    options: EncoderOptions,
    settings: Settings,
) -> Case:
    """Score the systems of a corpus that is complete; vectors may be another encoder's."""
    chosen = choose_metrics(settings.metrics, corpus, seed=settings.seed, offline=options.offline)
    scored = score_columns(
        corpus,
        chosen,
        options,
        embeddings=embedded,
        unsegmented=settings.unsegmented,
        average=settings.average,
        seed=settings.seed,
        memory=settings.memory,
        progress=settings.progress,
    )
    # Members come in the order in which they were made; losses in that of the corpus.
    place = {system: i for i, system in enumerate(scored.systems)}
    ordered = tuple(sorted(members, key=lambda member: place[member.system]))
    sentinels = sentinel_scores(corpus, settings.seed)
    losses = {metric: scored.losses(metric) for metric in chosen.names} | sentinels
    pools = {}
    for pool in POOLS:
        rows = np.array([place[m.system] for m in ordered if m.is_in(pool)], dtype=np.intp)
        if len(rows) >= MIN_SYSTEMS:
            part = {metric: OfSystems(scores, rows) for metric, scores in losses.items()}
            # Sentinels have no better and worse: tests turn them as it suits them.
            part |= {turned_name(s): OfSystems(sentinels[s], rows, sign=-1) for s in sentinels}
            pools[pool] = MetaEvaluation(part, seed=settings.seed, resamples=settings.resamples)
    signature = Signature.of(
        chosen,
        corpus,
        embedded,
        unsegmented=settings.unsegmented,
        average=settings.average,
        seed=settings.seed,
        null=0,
    )
    return Case(
        corpus=name,
        encoder=embedded.spec.name,
        scored=scored,
        embedded=embedded,
        members=ordered,
        losses=losses,
        free=tuple(n for n in chosen.names if n in chosen.reference_free),
        gold=tuple(n for n in chosen.names if n in chosen.gold_based),
        sentinels=tuple(sentinels),
        pools=pools,
        signature=signature,
    )


def turned_name(sentinel: str) -> str:
    """Return how a sentinel is called where more is better."""
    return f"-{sentinel}"


class OfSystems:
    """A metric's losses of some of the systems, turned where the sign is -1."""

    def __init__(self, scores: SystemLosses, rows: NDArray[np.intp], sign: int = 1) -> None:
        """Keep the systems with these numbers."""
        self._scores = scores
        self._rows = rows
        self._sign = sign
        self.values: Floats = sign * scores.values[rows]
        self.contributions: Floats = sign * scores.contributions[rows]

    def over(self, counts: Counts) -> Floats:
        """System scores over resampled documents."""
        return self._sign * self._scores.over(counts)[:, self._rows]
