"""One corpus under one encoder: systems, losses of every metric, and the statistics per pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors
from reffree.encoders.models import DEFAULT_ENCODER
from reffree.encoders.opening import open_encoder
from reffree.evaluate.metric_set import MetricSet, check_metrics, choose_metrics
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import Average, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.metrics.free.result import Unsegmented
from reffree.metrics.registry import DEFAULT, GOLD_DEFAULT, GOLD_METRICS
from reffree.segmenters.labeller.description import ARCHITECTURES, Architecture
from reffree.segmenters.segment import parse_segmenter, segment
from reffree.statistics.coefficients import MIN_SYSTEMS
from reffree.statistics.losses import MeanOverDocuments, SystemLosses
from reffree.statistics.meta_evaluation import MetaEvaluation
from reffree.statistics.resampling import Counts
from reffree.studies.correlation.pool import (
    Choice,
    Member,
    check_pool,
    complete_pool,
    supervised_methods,
)
from reffree.studies.study import CorpusPart, StudiedCorpus, StudySettings, corpus_parts
from reffree.util.arrays import Booleans, Floats, Integers
from reffree.util.errors import CacheError, EncoderError, UnknownNameError
from reffree.util.seeds import rng_for

POOLS = ("independent", "blind", "cohesion", "all")
FOLDS = 5

SENTINELS = {
    "n_segments": "number of segments of a document; reads no text",
    "mean_length": "mean units per segment of a document; reads no text",
    "random_score": "a random number for every system and document; knows nothing",
}
"""Metrics that read nothing of the text: what any metric must beat to say something.

After the sentinel metrics of Perrella et al. (2024, arXiv 2408.13831). Perturbations and random
baselines change how many segments there are, so that a count of segments alone correlates with
every gold-based metric.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSettings(StudySettings):
    """What all cases of a study share, but for the encoder."""

    metrics: tuple[str, ...]
    pool: Choice = "auto"
    supervised: tuple[Architecture, ...] = ()
    folds: int = FOLDS
    cohesion: tuple[str, ...] = ()
    unsegmented: Unsegmented = "neutral"
    average: Average = "macro"
    resamples: int

    def scoring(self) -> ScoreSettings:
        """How all systems are scored."""
        return ScoreSettings(
            self,
            unsegmented=self.unsegmented,
            average=self.average,
            seed=self.seed,
            memory=self.memory,
        )


@dataclass(frozen=True, slots=True)
class Case(StudiedCorpus):
    """A corpus with all systems of the study under an encoder, scored."""

    embedded: Embeddings
    encoder: str
    members: tuple[Member, ...]  # in the order of the corpus's systems
    chosen: MetricSet
    losses: dict[str, SystemLosses]  # sentinels included
    pools: dict[str, MetaEvaluation]  # those with enough systems
    n_left_out: int  # documents of systems, without a boundary, that nothing is correlated of

    @property
    def free(self) -> list[str]:
        """Names of the reference-free metrics."""
        return [name for name in self.chosen.names if name in self.chosen.reference_free]

    @property
    def judged(self) -> list[str]:
        """Names of what is held against gold-based metrics: reference-free ones and sentinels."""
        return [*self.free, *SENTINELS]

    @property
    def gold(self) -> list[str]:
        """Names of the gold-based metrics."""
        return [name for name in self.chosen.names if name in self.chosen.gold_based]

    @property
    def corpus_losses(self) -> dict[str, Floats]:
        """Loss of every system over all documents, by metric."""
        once = np.ones((1, len(self.corpus)))
        return {metric: losses.over(once)[0] for metric, losses in self.losses.items()}


def both_kinds(metrics: Sequence[str] | None) -> tuple[str, ...]:
    """Fill in the default of the kind of metric that is missing."""
    given = tuple(metrics or ())
    check_metrics(given)
    is_gold = [name.partition(":")[0] in GOLD_METRICS or name == "gold" for name in given]
    free = () if not all(is_gold) else tuple(DEFAULT)
    gold = () if any(is_gold) else tuple(GOLD_DEFAULT)
    return (*free, *given, *gold)


def chosen_architectures(
    supervised: Sequence[Architecture] | None, pool: Choice
) -> tuple[Architecture, ...]:
    """Return the architectures given, else all for the paper's pool and none for others."""
    if supervised is None:
        return ARCHITECTURES if pool == "paper" else ()
    return tuple(dict.fromkeys(supervised))


def found_encoders(
    encoders: Sequence[str | None], fallback: str | None, settings: CaseSettings
) -> tuple[Sequence[str | None], list[str]]:
    """Return the encoders that are to be had, or the fallback; and a note on each that is not.

    Without a fallback all are returned, for the study to refuse what is not there.
    """
    if fallback is None:
        return encoders, []
    found, notes = [], []
    for encoder in encoders:
        try:
            open_encoder(replace(settings, encoder=encoder or settings.encoder))
        except CacheError:
            raise
        except EncoderError as error:
            notes.append(f"left out: {error}")
        else:
            found.append(encoder)
    if not found:
        notes.append(f"none of the encoders is to be had: {fallback} was taken instead.")
    return found or [fallback], notes


def check_cases(
    corpora: Mapping[str, Corpus],
    vectors: Mapping[str, Vectors] | None,
    encoders: Sequence[str | None],
    settings: CaseSettings,
) -> list[tuple[CorpusPart, CaseSettings]]:
    """Refuse what cannot be studied before anything is encoded; a case for every encoder."""
    parts = corpus_parts(corpora, vectors, settings, one_gold=True)
    everything = {name for part in parts for name in part.corpus.hypotheses}
    for name in settings.cohesion:
        if name not in everything:
            raise UnknownNameError("system", name, everything)
    for part in parts:
        check_pool(part.corpus, settings.pool)
    chosen = choose_metrics(
        settings.metrics, parts[0].corpus, seed=settings.seed, offline=settings.offline
    )
    settings.scoring()  # which refuses policies and averages that do not exist
    cases = [
        (part, replace(settings, encoder=encoder or settings.encoder))
        for encoder in encoders
        for part in parts
    ]
    methods = [
        parse_segmenter(text)
        for text in supervised_methods(settings.supervised, settings.folds).values()
    ]
    for part, own in cases:
        part.check(chosen.reference_free.values(), methods, own)
    return cases


def make_cases(checked: Sequence[tuple[CorpusPart, CaseSettings]]) -> list[Case]:
    """Make the supervised systems with every encoder, then score all systems of every case.

    So a case has those of all encoders: Ghinassi et al. (2024) have three architectures by three
    encoders, and judge the nine by each encoder. Called as their architecture, and the encoder
    where vectors are not the user's own.
    """
    trained: dict[str, dict[str, tuple[Segmentation, ...]]] = {}
    cases = []
    for part, own in checked:
        methods = supervised_methods(own.supervised, own.folds)
        if methods:
            vectors = corpus_vectors(part.corpus, part.vectors, own, own.progress)
            label = "" if part.vectors else f" ({own.encoder or DEFAULT_ENCODER})"
            named = {f"{name}{label}": text for name, text in methods.items()}
            bare = part.corpus.only_systems(())
            made = segment(
                bare,
                named,
                seed=own.seed,
                embeddings=vectors,
                device=own.device,
                progress=own.progress,
            )
            found = trained.setdefault(part.name, {})
            found |= {name: made.hypotheses[name] for name in named}
            part = replace(part, vectors=vectors)
        cases.append((part, own))
    return [make_case(part, own, trained.get(part.name, {})) for part, own in cases]


def make_case(
    part: CorpusPart,
    settings: CaseSettings,
    supervised: Mapping[str, tuple[Segmentation, ...]] | None = None,
) -> Case:
    """Encode, complete the pool, score all systems with all metrics."""
    corpus = part.corpus
    ids = [document.id for document in corpus.documents]
    for name, segmentations in (supervised or {}).items():
        corpus = corpus.with_system(name, dict(zip(ids, segmentations, strict=True)))
    embedded = corpus_vectors(part.corpus, part.vectors, settings, settings.progress)
    pooled, members = complete_pool(
        corpus,
        embedded,
        settings.pool,
        cohesion=settings.cohesion,
        supervised=tuple(supervised or ()),
        seed=settings.seed,
        progress=settings.progress,
    )
    return score_case(part.name, pooled, members, embedded, settings)


def score_case(
    name: str,
    corpus: Corpus,
    members: Sequence[Member],
    embedded: Embeddings,
    settings: CaseSettings,
) -> Case:
    """Score the systems of a corpus that is complete; vectors may be another encoder's."""
    chosen = choose_metrics(settings.metrics, corpus, seed=settings.seed, offline=settings.offline)
    scores = scores_of(corpus, chosen, settings.scoring(), embedded, settings.progress)
    is_out = (scores.n_segments == 1) & (settings.unsegmented == "skip")
    scores = scores.without(is_out)
    # Members come in the order in which they were made; losses in that of the corpus.
    place = {system: i for i, system in enumerate(corpus.hypotheses)}
    ordered = tuple(sorted(members, key=lambda member: place[member.system]))
    sentinels = sentinel_scores(corpus, settings.seed, is_out)
    losses = {metric: scores.losses(metric) for metric in chosen.names} | sentinels
    pools = {}
    for pool in POOLS:
        rows = np.array([i for i, m in enumerate(ordered) if m.is_in(pool)], dtype=np.int64)
        if len(rows) >= MIN_SYSTEMS:
            part = {metric: SystemSubset(each, rows) for metric, each in losses.items()}
            # Tests take a sentinel the way round in which it correlates positively.
            part |= {negated(s): SystemSubset(sentinels[s], rows, sign=-1) for s in sentinels}
            pools[pool] = MetaEvaluation(
                part, rng=partial(rng_for, settings.seed), resamples=settings.resamples
            )
    signature = Signature.of(
        chosen,
        corpus,
        embedded,
        seed=settings.seed,
        unsegmented=settings.unsegmented,
        average=settings.average,
    )
    encoder = embedded.spec.name
    n_out = int(is_out.sum())
    return Case(name, corpus, embedded, signature, encoder, ordered, chosen, losses, pools, n_out)


def sentinel_scores(
    corpus: Corpus, seed: int, is_out: Booleans | None = None
) -> dict[str, SystemLosses]:
    """All sentinels over the systems and documents of a corpus, as if lower were better.

    ``is_out`` (documents, systems) says where a document is left out.
    """
    systems = corpus.hypotheses
    shape = (len(systems), len(corpus))
    kept = np.where(np.zeros(shape, dtype=bool) if is_out is None else is_out.T, np.nan, 1.0)
    counts = np.array([[len(s) for s in each] for each in systems.values()], dtype=np.float64)
    n_units = np.array([len(document.units) for document in corpus.documents])
    chance = [
        [rng_for(seed, "random_score", name, document.id).random() for document in corpus]
        for name in systems
    ]
    return {
        "n_segments": MeanOverDocuments(kept * counts),
        "mean_length": MeanOverDocuments(kept * n_units / counts),
        "random_score": MeanOverDocuments(kept * np.array(chance)),
    }


def negated(sentinel: str) -> str:
    """Return the name of a sentinel whose losses are multiplied by -1."""
    return f"-{sentinel}"


class SystemSubset:
    """A metric's losses of some of the systems, multiplied by ``sign``."""

    def __init__(self, losses: SystemLosses, rows: Integers, sign: int = 1) -> None:
        """Keep the systems with these numbers."""
        self._losses = losses
        self._rows = rows
        self._sign = sign
        self.values: Floats = sign * losses.values[rows]
        self.contributions: Floats = sign * losses.contributions[rows]

    def over(self, counts: Counts) -> Floats:
        """System scores over resampled documents."""
        return self._sign * self._losses.over(counts)[:, self._rows]
