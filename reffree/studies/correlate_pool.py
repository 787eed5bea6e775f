"""Systems of a correlation study: what the corpus brings, a default pool, and how all are scored.

Two pools are kept apart. *Independent* systems do not seek cohesion in vectors: gold, random and
lexical segmentations, perturbed gold, and supervised systems, which read vectors but have learnt
from gold what a boundary is. *Cohesion-seeking* ones optimise similarity in the
embedding space, which is what reference-free metrics measure, so on them a low loss says little.
Among the independent ones, the *blind* do not read the text at all; lexical segmenters do, and look
for cohesion in its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.data.perturbation import parse_perturbation, perturb
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Embeddings
from reffree.encoders.options import DEFAULT_ENCODER
from reffree.evaluate.metric_set import READERS, MetricSet
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.segmenters.segment import ARP_BASELINES, segment
from reffree.statistics.coefficients import MIN_SYSTEMS
from reffree.statistics.losses import MeanOverDocuments, SystemLosses
from reffree.statistics.meta_evaluation import MetaEvaluation
from reffree.studies.study import CorpusPart, StudiedCorpus, StudySettings
from reffree.util.arrays import Booleans, Floats
from reffree.util.seeds import rng_for

Pool = Literal["independent", "cohesion"]
Kind = Literal["gold", "random", "perturbed", "lexical", "cohesion", "supervised", "given"]
POOLS = ("independent", "blind", "cohesion", "all")

ENOUGH_SYSTEMS = 8
"""With as many systems of its own, a corpus needs no default pool."""

PERTURBED = (
    *("removal:0.25", "removal:0.5", "removal:0.75"),
    *("insertion:0.5", "insertion:1.0", "insertion:2.0"),
    *("transposition:1", "transposition:2", "transposition:3"),
    *("replacement:0.25", "replacement:0.5", "replacement:0.75"),
    *("mixture:0.3", "mixture:0.6"),
)
LEXICAL = ("texttiling", "c99", "textseg")
COHESION = (
    *("depth", "depth:threshold=1", "depth:k=gold"),
    *("changepoint", "changepoint:k=gold", "changepoint:kernel=linear,k=gold"),
    *("greedy:metric=arp_pair,climb=false", "greedy:metric=arp_pair,k=gold,climb=false"),
    *("greedy:metric=silhouette,climb=false", "greedy:metric=silhouette,k=gold,climb=false"),
    *("optimal:metric=arp_std", "optimal:metric=arp_std,k=gold"),
    "posterior",
)
STEPS: tuple[tuple[Kind, Pool, tuple[str, ...]], ...] = (
    ("random", "independent", (ARP_BASELINES,)),
    ("lexical", "independent", LEXICAL),
    ("cohesion", "cohesion", COHESION),
)
"""What the default pool is made with, beside perturbed gold; the first is the paper's too."""

BLIND = ("gold", "random", "perturbed")
SEEKERS = (*READERS["vectors"], "posterior", "scorer")
"""Methods of ``reffree segment`` that look at vectors: a system so called is cohesion-seeking."""


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
    """The values of `CorrelationKeywords`, but that metrics are of both kinds."""

    metrics: Sequence[str]
    pool: Literal["auto", "given", "default", "both", "paper"] = "auto"
    supervised: Sequence[str] = ()
    folds: int = 5
    cohesion: Sequence[str] = ()
    unsegmented: Literal["neutral", "skip", "worst"] = "neutral"
    average: Literal["macro", "micro"] = "macro"
    resamples: int = 1000
    texts: int = 3

    @property
    def methods(self) -> dict[str, str]:
        """Supervised methods of ``reffree segment`` by architecture."""
        return {a: f"supervised:architecture={a},folds={self.folds}" for a in self.supervised}


@dataclass(frozen=True, slots=True)
class Member:
    """A system and where it belongs."""

    system: str
    kind: Kind
    pool: Pool

    def is_in(self, pool: str) -> bool:
        """Whether the system counts in a pool: its own, ``all``, or ``blind``."""
        return pool in (self.pool, "all") or (pool == "blind" and self.kind in BLIND)


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


def make_cases(checked: Sequence[tuple[CorpusPart, CaseSettings]]) -> list[Case]:
    """Make the supervised systems with every encoder, then score all systems of every case.

    So a case has those of all encoders: Ghinassi et al. (2024) have three architectures by three
    encoders, and judge the nine by each encoder. Called as their architecture, and the encoder
    where vectors are not the user's own.
    """
    trained: dict[str, dict[str, tuple[Segmentation, ...]]] = {}
    cases = []
    for part, own in checked:
        if own.supervised:
            x = part.encode(own)
            label = "" if part.vectors else f" ({own.encoder or DEFAULT_ENCODER})"
            named = {f"{name}{label}": text for name, text in own.methods.items()}
            bare = part.corpus.only_systems(())
            made = segment(
                *(bare, named),
                seed=own.seed,
                embeddings=x,
                device=own.device,
                progress=own.progress,
            )
            found = trained.setdefault(part.name, {})
            found |= {name: made.hypotheses[name] for name in named}
            part = replace(part, vectors=x)
        cases.append((part, own))
    scored = []
    for part, own in cases:
        embedded = part.encode(own)
        pooled = complete_pool(part.corpus, embedded, own, trained.get(part.name, {}))
        scored.append(score_case(part.name, *pooled, embedded, own))
    return scored


def complete_pool(
    corpus: Corpus,
    embedded: Embeddings,
    settings: CaseSettings,
    supervised: Mapping[str, tuple[Segmentation, ...]],
) -> tuple[Corpus, list[Member]]:
    """Return the corpus with all systems of the study, and what each of them is.

    ``auto`` adds the default pool to a corpus with fewer than `ENOUGH_SYSTEMS` systems of its own;
    ``given`` never, ``both`` always; ``default`` leaves the corpus's own systems out, and so does
    ``paper``, the pool of Ghinassi et al. (2024), §3.4.1: gold, nine random systems and those of
    ``supervised``, which were made for the study and are in every pool. The setting ``cohesion``
    names systems of the corpus that optimise embedding similarity, beside those whose names say so.
    A default system whose name the corpus has already is not made again.
    """
    bare = corpus.only_systems(())
    if settings.pool in ("default", "paper"):
        corpus = bare
    systems = corpus.hypotheses
    given = [name for name in systems if name != GOLD]
    members = [Member(GOLD, "gold", "independent")]

    def add(made: Mapping[str, tuple[Segmentation, ...]], kind: Kind, pool: Pool) -> None:
        new = {name: segmentations for name, segmentations in made.items() if name not in systems}
        systems.update(new)
        members.extend(Member(name, kind, pool) for name in new)

    add(supervised, "supervised", "independent")
    for name in given:
        seeks = name in settings.cohesion or name.partition(":")[0] in SEEKERS
        members.append(Member(name, "given", "cohesion" if seeks else "independent"))
    is_enough = settings.pool == "auto" and len(given) >= ENOUGH_SYSTEMS
    steps = () if settings.pool == "given" or is_enough else STEPS
    there = set(systems)
    for kind, pool, methods in steps[:1] if settings.pool == "paper" else steps:
        if wanted := [method for method in methods if method not in there]:
            made = segment(
                *(bare, wanted), seed=settings.seed, embeddings=embedded, progress=settings.progress
            )
            add(made.hypotheses, kind, pool)
    if steps and settings.pool != "paper":
        perturbed = [perturb(bare, parse_perturbation(p), settings.seed) for p in PERTURBED]
        add({each.name: each.segmentations for each in perturbed}, "perturbed", "independent")
    return bare.with_systems({n: s for n, s in systems.items() if n != GOLD}), members


def score_case(
    name: str,
    corpus: Corpus,
    members: Sequence[Member],
    embedded: Embeddings,
    settings: CaseSettings,
) -> Case:
    """Score the systems of a corpus that is complete; vectors may be another encoder's."""
    chosen = settings.choose_metrics(settings.metrics, corpus)
    how = ScoreSettings(settings, settings.unsegmented, settings.average, settings.seed)
    scores = scores_of(corpus, chosen, how, embedded, settings.progress)
    is_out = (scores.n_segments == 1) & (settings.unsegmented == "skip")
    scores = scores.without(is_out)
    # Members come in the order in which they were made; losses in that of the corpus.
    place = {system: i for i, system in enumerate(corpus.hypotheses)}
    ordered = tuple(sorted(members, key=lambda member: place[member.system]))
    losses = {metric: scores.losses(metric) for metric in chosen.names}
    losses |= sentinel_scores(corpus, settings.seed, is_out)
    rng = partial(rng_for, settings.seed)
    every = MetaEvaluation(losses, rng=rng, resamples=settings.resamples)
    rows = {pool: np.flatnonzero([member.is_in(pool) for member in ordered]) for pool in POOLS}
    pools = {pool: every.among(at) for pool, at in rows.items() if len(at) >= MIN_SYSTEMS}
    signature = Signature.of(
        chosen, corpus, embedded, seed=how.seed, unsegmented=how.unsegmented, average=how.average
    )
    about = (name, corpus, embedded, signature, embedded.spec.name)
    return Case(*about, ordered, chosen, losses, pools, int(is_out.sum()))


def sentinel_scores(
    corpus: Corpus, seed: int, is_out: Booleans | None = None
) -> dict[str, SystemLosses]:
    """All sentinels over the systems and documents of a corpus, as if lower were better.

    With a minus before their name they are the other way round: tests take a sentinel as it
    correlates positively. ``is_out`` (documents, systems) says where a document is left out.
    """
    systems = corpus.hypotheses
    counts = np.array([[len(s) for s in each] for each in systems.values()], dtype=np.float64)
    kept = np.ones_like(counts) if is_out is None else np.where(is_out.T, np.nan, 1.0)
    n_units = np.array([len(document.units) for document in corpus.documents])
    chance = [
        [rng_for(seed, "random_score", name, document.id).random() for document in corpus]
        for name in systems
    ]
    found = {"n_segments": kept * counts, "mean_length": kept * n_units / counts}
    found["random_score"] = kept * np.array(chance)
    found |= {f"-{name}": -values for name, values in found.items()}
    return {name: MeanOverDocuments(values) for name, values in found.items()}
