"""Why metrics may mislead on a corpus, and which of them can be trusted there; needs no gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Unpack

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors
from reffree.evaluate.metric_set import MetricSet, choose_metrics
from reffree.evaluate.result import Result
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import ScoreSettings, corpus_mean
from reffree.evaluate.signature import Signature
from reffree.metrics.free.expected import FEWEST_UNITS, ExpectedPk
from reffree.metrics.registry import DEFAULT, GOLD_METRICS
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.diagnosis.checks import (
    RULES,
    Check,
    CorpusMeasurements,
    measure,
    run_checks,
)
from reffree.studies.diagnosis.damage_test import (
    DAMAGES,
    STRENGTHS,
    UNSEGMENTED,
    DamageTest,
    run_damage_tests,
)
from reffree.studies.diagnosis.embedding_space import THRESHOLD
from reffree.studies.diagnosis.tables import READING, diagnosis_answer, diagnosis_tables
from reffree.studies.study import (
    CorpusPart,
    StudiedCorpus,
    StudyKeywords,
    StudySettings,
    corpus_parts,
    study_result,
)
from reffree.util.bounds import Repetitions, with_keywords, within_bounds
from reffree.util.errors import InputError, OptionError, UnknownNameError, counted
from reffree.util.seeds import rng_for

SEEDS = 5
"""Draws of every damage: enough that its chance weighs less than that of the documents."""


@with_keywords(StudyKeywords)
@within_bounds
def diagnose(
    corpora: Mapping[str, Corpus],
    *,
    source: str | None = None,
    metrics: Sequence[str] | None = None,
    threshold: float = THRESHOLD,
    seeds: Repetitions = SEEDS,
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Check what misleads reference-free metrics, and which of them notice damage.

    Twins, returns and singletons are those of the source, which is also what is damaged.

    Args:
        corpora: from `reffree.load`, by name, each with a system or a complete gold.
        source: the segmentation to trust most; gold where every document has it, else the system
            with the lowest ``expected_pk``.
        metrics: reference-free names as for `reffree.score`, and the same by default.
        threshold: cosine from which two units are near twins.
        seeds: draws of every damage.
        embeddings: arrays of every document by corpus, instead of an encoder.
        **keywords: how to encode and run: see `StudySettings`.
    """
    settings = StudySettings(**keywords)
    _check_options(metrics, threshold)
    parts = corpus_parts(corpora, embeddings, settings, one_gold=True)
    wanted = DEFAULT if metrics is None else metrics
    chosen = choose_metrics(wanted, parts[0].corpus, seed=settings.seed, offline=settings.offline)
    for part in parts:
        _check_source(part.corpus, source)
        part.check(chosen.reference_free.values(), (), settings)
    diagnosed = [_diagnose(part, source, chosen, threshold, seeds, settings) for part in parts]
    return study_result(
        "diagnose",
        diagnosed,
        question="What makes metrics mislead on this corpus, and which of them can be trusted?",
        verdict=diagnosis_answer(diagnosed),
        tables=diagnosis_tables(diagnosed),
        signature={
            "source": "+".join(dict.fromkeys(each.source.name for each in diagnosed)),
            "threshold": f"{threshold:g}",
            "damage": "+".join(f"{k}({','.join(s)})" for k, s in STRENGTHS.items()) + "+random",
            "seeds": f"{seeds}",
        },
        short_signature=settings.short_signature,
        settings={
            "sources": {each.name: asdict(each.source) for each in diagnosed},
            "metrics": list(diagnosed[0].damage_tests),
            "threshold": threshold,
            "damages": [list(damage) for damage in DAMAGES],
            "seeds": seeds,
            "seed": settings.seed,
            "unsegmented": UNSEGMENTED,
            "rules": {
                name: {"watch": rule.watch, "problem": rule.problem} for name, rule in RULES.items()
            },
        },
        notes=(),
        reading=READING,
    )


@dataclass(frozen=True, slots=True)
class SourceSystem:
    """The best segmentation at hand, which is what is damaged, and why it was taken."""

    name: str
    reason: str


@dataclass(frozen=True)
class CorpusDiagnosis(StudiedCorpus):
    """One corpus, looked at from every side."""

    source: SourceSystem
    measured: CorpusMeasurements
    checks: list[Check]
    damage_tests: dict[str, DamageTest]  # by metric

    @property
    def notes(self) -> list[str]:
        """What a reader must know before trusting the verdicts."""
        told = (
            f"{self.name}: checked with and damaged was {self.source.name}, {self.source.reason}."
        )
        if self.source.name != GOLD:
            told += (
                " Metrics that resemble what this system looks for notice any damage to it: that "
                "they do says less than with gold."
            )
        notes = [*super().notes, told]
        undamaged = sum(len(each) == 1 for each in self.corpus.hypotheses[self.source.name])
        if undamaged:
            were = "was" if undamaged == 1 else "were"
            documents = counted(undamaged, "document")
            notes.append(f"{self.name}: {documents} without a boundary {were} not damaged.")
        return notes


def _diagnose(
    part: CorpusPart,
    source_name: str | None,
    chosen: MetricSet,
    threshold: float,
    seeds: int,
    settings: StudySettings,
) -> CorpusDiagnosis:
    """Choose the source of a corpus, measure, damage, judge."""
    corpus = part.corpus
    embedded = corpus_vectors(corpus, part.vectors, settings, settings.progress)
    source = _choose_source(corpus, embedded, source_name, settings)
    bootstrap = DocumentBootstrap(len(corpus), rng_for(settings.seed, "documents"))
    hypotheses = corpus.hypotheses[source.name]
    measured = measure(corpus, embedded, hypotheses, threshold, settings.seed, settings.progress)
    damage_tests = run_damage_tests(
        corpus,
        embedded,
        source.name,
        chosen,
        seeds=seeds,
        bootstrap=bootstrap,
        settings=settings,
    )
    checks = run_checks(corpus, embedded, source.name, measured, damage_tests, bootstrap, threshold)
    signature = Signature.of(chosen, corpus, embedded, unsegmented=UNSEGMENTED, seed=settings.seed)
    return CorpusDiagnosis(
        part.name, corpus, embedded, signature, source, measured, checks, damage_tests
    )


def _choose_source(
    corpus: Corpus, embedded: Embeddings, name: str | None, settings: StudySettings
) -> SourceSystem:
    """Take the named one, else gold, else the system with the lowest ``expected_pk``.

    It is the one metric here that punishes too many boundaries and too few: others would pick the
    system that searched hardest, or cut most. Of equal systems the first is taken.
    """
    systems = list(corpus.hypotheses)
    if name is not None:
        return SourceSystem(name, "as asked for")
    if GOLD in systems:
        return SourceSystem(GOLD, "complete in every document")
    if len(systems) == 1:
        return SourceSystem(systems[0], "the only system")
    metric = ExpectedPk(seed=settings.seed)
    metrics = MetricSet((metric.name,), {metric.name: metric}, {})
    how = ScoreSettings(settings, seed=settings.seed, memory=settings.memory)
    scores = scores_of(corpus, metrics, how, embedded)
    means = [corpus_mean(raw, np.ones(len(corpus))) for raw in scores.raw[0].T]
    losses = [np.inf if mean is None else metric.orientation.loss(mean) for mean in means]
    best = int(np.argmin(losses))
    return SourceSystem(
        systems[best], f"the lowest expected_pk of {len(systems)} systems ({losses[best]:.3f})"
    )


def _check_source(corpus: Corpus, name: str | None) -> None:
    """Refuse a corpus without any segmentation, and a name that it does not have."""
    if not corpus.hypotheses:
        raise InputError(
            "no segmentation to diagnose with: no systems, and no gold in every document",
            expected="at least one system or a complete gold",
            remedy='add "systems" to the corpus, or make some with reffree segment',
            place=corpus.documents[0].place,
        )
    if name is not None and name not in corpus.hypotheses:
        raise UnknownNameError("system", name, corpus.hypotheses)
    must_choose = name is None and GOLD not in corpus.hypotheses and len(corpus.hypotheses) > 1
    if must_choose and all(len(document.units) < FEWEST_UNITS for document in corpus):
        raise InputError(
            "no system with an expected_pk to choose the source by",
            expected=f"a document of {FEWEST_UNITS} units or more",
            remedy="name the system to trust most with --source",
            place=corpus.documents[0].place,
        )


def _check_options(metrics: Sequence[str] | None, threshold: float) -> None:
    """Refuse gold-based metrics and values out of range."""
    given = [metrics] if isinstance(metrics, str) else metrics or []
    for name in given:
        if name == "gold" or name.partition(":")[0] in GOLD_METRICS:
            raise OptionError(
                f"the gold-based metric {name!r}",
                expected="reference-free metrics",
                remedy="leave it out: what is diagnosed here are scores without gold",
            )
    if not 0 < threshold <= 1:
        raise OptionError(
            f"threshold {threshold}",
            expected="a cosine above 0, at most 1",
            remedy=f"leave it out for {THRESHOLD}",
        )
