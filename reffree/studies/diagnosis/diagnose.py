"""Why metrics may mislead on a corpus, and which of them can be trusted there; needs no gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Unpack

from reffree.bounds import Repetitions, Seed, within_bounds
from reffree.corpus import Corpus
from reffree.encoders.device import choose_device, scoring_device
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import OptionError, counted
from reffree.evaluate.metric_set import Chosen, choose_metrics
from reffree.evaluate.signature import Signature
from reffree.progress import Progress, no_progress
from reffree.reference.metrics import GOLD_METRICS
from reffree.scoring.metrics import DEFAULT
from reffree.seeds import rng_for
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.diagnosis import rules
from reffree.studies.diagnosis.advice import answer, check_advice, metric_advice, source_note
from reffree.studies.diagnosis.checks import Check, Measured, measure, run_checks
from reffree.studies.diagnosis.damage_test import (
    DAMAGES,
    STRENGTHS,
    UNSEGMENTED,
    Noticing,
    n_scored,
    notice,
)
from reffree.studies.diagnosis.near_duplicates import THRESHOLD
from reffree.studies.diagnosis.source import Source, check_source, choose_source
from reffree.studies.diagnosis.tables import READING, diagnosis_tables
from reffree.studies.result import StudyResult
from reffree.studies.study import check_study, described, joint_signature, reading_notes

SEEDS = 5
"""Draws of every damage: enough that its chance weighs less than that of the documents."""


@within_bounds
def diagnose(
    corpora: Mapping[str, Corpus],
    *,
    source: str | None = None,
    metrics: Sequence[str] | None = None,
    threshold: float = THRESHOLD,
    seeds: Repetitions = SEEDS,
    embeddings: Mapping[str, Vectors] | None = None,
    seed: Seed = 0,
    short_signature: bool = False,
    memory: int | None = None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> StudyResult:
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
        seed: of damages, resamples and shuffles.
        short_signature: abbreviate the signature.
        memory: bytes that scoring lays out at most, beside vectors; a quarter of those free.
        progress: called as stages start.
        **encoding: which encoder, and how: see `EncoderOptions`.
    """
    options = EncoderOptions(**encoding)
    check_study(corpora, embeddings)
    _check(metrics, threshold)
    for corpus in corpora.values():
        check_source(corpus, source)
    diagnosed = {}
    for name, corpus in corpora.items():
        names = DEFAULT if metrics is None else metrics
        chosen = choose_metrics(names, corpus, seed=seed, offline=options.offline)
        part, given = units_taking_part(corpus, (embeddings or {}).get(name), options)
        embedded = corpus_vectors(part.corpus, given, options, progress)
        work = _Work(
            part.corpus, embedded, chosen, options, threshold, seeds, seed, memory, progress
        )
        diagnosed[name] = work.run(source)
    on_metrics = {name: metric_advice(each.noticed) for name, each in diagnosed.items()}
    checks = {name: each.checks for name, each in diagnosed.items()}
    advised = {name: [*on_metrics[name], *check_advice(checks[name])] for name in diagnosed}
    return StudyResult(
        study="diagnose",
        question="What makes metrics mislead on this corpus, and which of them can be trusted?",
        answer=answer(on_metrics, checks),
        tables=diagnosis_tables(diagnosed, advised),
        signature=joint_signature(
            [each.signature for each in diagnosed.values()],
            {
                "source": "+".join(dict.fromkeys(each.source.name for each in diagnosed.values())),
                "threshold": f"{threshold:g}",
                "damage": "+".join(f"{k}({','.join(s)})" for k, s in STRENGTHS.items()) + "+random",
                "seeds": f"{seeds}",
            },
            short=short_signature,
        ),
        settings={
            "sources": {name: asdict(each.source) for name, each in diagnosed.items()},
            "metrics": list(next(iter(diagnosed.values())).noticed),
            "threshold": threshold,
            "damages": [list(damage) for damage in DAMAGES],
            "seeds": seeds,
            "seed": seed,
            "unsegmented": UNSEGMENTED,
            "rules": {
                name.lower(): asdict(rule)
                for name, rule in vars(rules).items()
                if isinstance(rule, rules.Rule)
            },
        },
        corpora=tuple(
            described(name, each.corpus, each.embedded) for name, each in diagnosed.items()
        ),
        notes=tuple(note for name, each in diagnosed.items() for note in each.notes(name)),
        reading=READING,
    )


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """One corpus, looked at from every side."""

    corpus: Corpus
    embedded: Embeddings
    source: Source
    measured: Measured
    checks: list[Check]
    noticed: dict[str, Noticing]
    signature: Signature

    def notes(self, name: str) -> list[str]:
        """What a reader must know before trusting the verdicts."""
        notes = [*reading_notes(name, self.corpus, self.embedded), source_note(name, self.source)]
        undamaged = sum(len(each) == 1 for each in self.corpus.hypotheses[self.source.name])
        if undamaged:
            were = "was" if undamaged == 1 else "were"
            documents = counted(undamaged, "document")
            notes.append(f"{name}: {documents} without a boundary {were} not damaged.")
        return notes


@dataclass(frozen=True, slots=True)
class _Work:
    """One corpus, and how to look at it."""

    corpus: Corpus
    embedded: Embeddings
    chosen: Chosen
    options: EncoderOptions
    threshold: float
    seeds: int
    seed: int
    memory: int | None
    progress: Progress

    def run(self, source_name: str | None) -> Diagnosed:
        """Choose the source, measure, damage, judge."""
        device = scoring_device(choose_device(self.options.device))
        vectors = self.embedded.vectors
        how: dict[str, Any] = {"seed": self.seed, "device": device, "memory": self.memory}
        source = choose_source(self.corpus, vectors, source_name, **how)
        bootstrap = DocumentBootstrap(len(self.corpus), rng_for(self.seed, "documents"))
        measured = measure(
            self.corpus,
            self.embedded,
            self.corpus.hypotheses[source.name],
            self.threshold,
            self.seed,
            self.progress,
        )
        size = len(self.corpus) * n_scored(self.seeds)
        with self.progress("Scoring", size) as advance:
            noticed = notice(
                self.corpus,
                vectors,
                source.name,
                self.chosen.reference_free,
                seeds=self.seeds,
                bootstrap=bootstrap,
                progress=advance,
                **how,
            )
        checks = run_checks(
            self.corpus, self.embedded, source.name, measured, noticed, bootstrap, self.threshold
        )
        signature = Signature.of(
            self.chosen,
            self.corpus,
            self.embedded,
            unsegmented=UNSEGMENTED,
            average="macro",
            seed=self.seed,
            null=0,
        )
        return Diagnosed(self.corpus, self.embedded, source, measured, checks, noticed, signature)


def _check(metrics: Sequence[str] | None, threshold: float) -> None:
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
