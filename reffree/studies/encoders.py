"""Which encoder: the correlation study under each, their agreement, and how they judge each other.

Cross-judging: systems that optimise similarity under one encoder are scored with another. Where
they beat gold under their own encoder only, their low loss is the encoder's, not the text's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations, product
from statistics import fmean
from typing import Unpack

import numpy as np
import psutil
import torch

from reffree.arrays import Floats
from reffree.bounds import Count, Folds, Resamples, with_keywords, within_bounds
from reffree.corpus import GOLD, Corpus
from reffree.encoders.address import is_endpoint
from reffree.encoders.device import choose_device
from reffree.encoders.embed import distinct_texts
from reffree.encoders.options import EncoderOptions
from reffree.encoders.sentence_transformer import open_encoder
from reffree.errors import InputError, listed
from reffree.evaluate.scores import Average
from reffree.scoring.engine import Unsegmented
from reffree.seeds import rng_for
from reffree.segmenters.labeller.description import Architecture
from reffree.statistics.meta_evaluation import MetaEvaluation
from reffree.statistics.resampling import RESAMPLES
from reffree.studies.correlation.cases import (
    FOLDS,
    Case,
    CaseSettings,
    SystemSubset,
    both_kinds,
    check_cases,
    chosen_architectures,
    make_cases,
    score_case,
)
from reffree.studies.correlation.correlate import correlation_result
from reffree.studies.correlation.pool import Choice
from reffree.studies.diagnosis.embedding_space import VectorShape, directions
from reffree.studies.result import Field, StudyResult, Table, columns, estimate
from reffree.studies.study import StudyKeywords

SAMPLE = 256
"""Distinct texts that are encoded to measure speed, drawn at random."""

Cases = Mapping[tuple[str, str], Case]
"""By encoder and corpus."""


@with_keywords(StudyKeywords)
@within_bounds
def compare_encoders(
    corpora: Mapping[str, Corpus],
    *,
    encoders: Sequence[str],
    metrics: Sequence[str] | None = None,
    pool: Choice = "auto",
    supervised: Sequence[Architecture] | None = None,
    folds: Folds = FOLDS,
    cohesion: Sequence[str] = (),
    measure: bool = True,
    unsegmented: Unsegmented = "neutral",
    average: Average = "macro",
    texts: Count = 0,
    resamples: Resamples = RESAMPLES,
    **keywords: Unpack[StudyKeywords],
) -> StudyResult:
    """Run the correlation study under several encoders and compare them.

    ``encoders`` are two or more aliases, folders, hub ids or endpoints; cohesion-seeking systems
    are made with each of them. With ``measure``, speed and memory of all but endpoints, whose
    requests may cost, are measured here, so that results differ between runs. All
    other keywords are those of `correlate`.
    """
    settings = CaseSettings(
        metrics=both_kinds(metrics),
        pool=pool,
        supervised=chosen_architectures(supervised, pool),
        folds=folds,
        cohesion=tuple(cohesion),
        unsegmented=unsegmented,
        average=average,
        resamples=resamples,
        **keywords,
    )
    for name in encoders:
        EncoderOptions(encoder=name)  # an address that may hold a secret is repeated nowhere
    chosen = list(dict.fromkeys(encoders))
    if len(chosen) < 2:
        raise InputError(
            f"the encoders {listed(map(repr, encoders)) if encoders else 'none'}",
            expected="at least two different ones",
            remedy="repeat --encoder, such as --encoder minilm --encoder wordllama",
        )
    checked = check_cases(corpora, None, chosen, settings)
    cases = {
        (encoder, part.name): replace(case, encoder=encoder)
        for (part, own), case in zip(checked, make_cases(checked), strict=True)
        if (encoder := own.encoder)
    }
    base = correlation_result(list(cases.values()), settings, texts)
    speeds = {}
    if measure:
        sample = distinct_texts(next(iter(corpora.values())))
        with settings.progress("Measuring", len(chosen)) as advance:
            for encoder in chosen:
                if not is_endpoint(encoder):  # whose requests may cost, and are its network's
                    speeds[encoder] = measure_speed(
                        replace(settings, encoder=encoder), sample, settings.seed
                    )
                advance(1)
    agreement = _agreement_table(cases, settings)
    cross = _cross_table(cases, settings)
    return replace(
        base,
        study="encoders",
        question="Which encoder's scores agree best with gold, and do encoders agree with one "
        "another?",
        answer=_answer(base, agreement, cross, chosen),
        tables=(_encoder_table(cases, speeds), agreement, cross, *base.tables),
        settings={**base.settings, "encoders": chosen, "measure": measure},
    )


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast an encoder is here, and what memory it takes: measured, so never twice the same."""

    units_per_second: float
    load_seconds: float
    memory_mb: float  # peak on the device if it is CUDA, else growth of the process
    texts: int
    device: str


def measure_speed(options: EncoderOptions, texts: Sequence[str], seed: int) -> Speed:
    """Load the encoder anew and encode a sample without the cache; loading is timed apart."""
    chosen = np.random.default_rng(seed).permutation(len(texts))[:SAMPLE]
    sample = [texts[i] for i in sorted(chosen)]
    device = choose_device(options.device)
    process = psutil.Process()
    before = process.memory_info().rss
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    start = time.perf_counter()
    encoder = open_encoder(replace(options, cache=False))
    for _ in encoder.stream(sample[:1]):
        pass
    loaded = time.perf_counter()
    done = sum(len(encoded.positions) for encoded in encoder.stream(sample))
    seconds = time.perf_counter() - loaded
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device)
    else:
        peak = max(0, process.memory_info().rss - before)
    return Speed(done / seconds, loaded - start, peak / 1e6, len(sample), str(device))


def _encoder_table(cases: Cases, speeds: Mapping[str, Speed]) -> Table:
    """Dimension, shape of the vectors, speed and memory of every encoder on every corpus."""
    rows = []
    for (encoder, corpus), case in cases.items():
        vectors = [directions(x) for x in case.embedded.vectors]
        found = VectorShape.of(vectors)
        rows.append(
            {
                "encoder": encoder,
                "corpus": corpus,
                "dimension": vectors[0].shape[1],
                "max_length": case.embedded.spec.max_length,
                "truncated": case.embedded.n_truncated / case.corpus.n_units,
                "anisotropy": found.random_cosine,
                "effective_dimension": found.effective_dimension,
                "consecutive_gain": _mean_of_defined(found.consecutive_gain),
                **(asdict(speeds[encoder]) if encoder in speeds else {}),
            }
        )
    fields = [
        *columns("text", "encoder", "corpus"),
        *columns("count", dimension="dimension", max_length="max length"),
        Field("truncated", "truncated", "share"),
        *columns("number", anisotropy="anisotropy", effective_dimension="effective dimension"),
        Field("consecutive_gain", "neighbours' gain"),
    ]
    if speeds:
        fields += [
            Field("units_per_second", "units/s", "count", best="high"),
            Field("load_seconds", "load s"),
            Field("memory_mb", "memory MB", "count", best="low"),
            Field("device", "device", "text"),
        ]
    return Table.of("encoders", "Encoders", fields, rows)


def _agreement_table(cases: Cases, settings: CaseSettings) -> Table:
    """Kendall of the rankings of the same systems under two encoders."""
    rows = []
    encoders, corpora = (dict.fromkeys(names) for names in zip(*cases, strict=True))
    for corpus, (a, b) in product(corpora, combinations(encoders, 2)):
        # Cohesion-seeking systems were made with each encoder and are not the same ones.
        shared = [m.system for m in cases[a, corpus].members if m.kind != "cohesion"]
        for metric in cases[a, corpus].free:
            parts = {}
            for name, encoder in (("a", a), ("b", b)):
                case = cases[encoder, corpus]
                systems = list(case.corpus.hypotheses)
                at = np.array([systems.index(system) for system in shared])
                parts[name] = SystemSubset(case.losses[metric], at)
            evaluation = MetaEvaluation(
                parts, rng=partial(rng_for, settings.seed), resamples=settings.resamples
            )
            found = evaluation.corpus("a", "b", "kendall")
            rows.append((corpus, a, b, metric, found.value, found.ci, found.systems))
    fields = [
        *columns("text", "corpus", encoder_a="encoder a", encoder_b="encoder b", metric="metric"),
        *estimate("kendall", "Kendall", ci="ci", ci_label=""),
        Field("n_systems", "systems", "count"),
    ]
    return Table.of("agreement", "Do two encoders rank the same systems alike?", fields, rows)


def _cross_table(cases: Cases, settings: CaseSettings) -> Table:
    """Cohesion-seeking systems made with one encoder and scored with another."""
    rows = []
    encoders, corpora = (dict.fromkeys(names) for names in zip(*cases, strict=True))
    for corpus, made_with, scored_with in product(corpora, encoders, encoders):
        case = cases[made_with, corpus]
        if "cohesion" not in case.pools:
            continue
        if scored_with != made_with:
            vectors = cases[scored_with, corpus].embedded
            options = replace(settings, encoder=scored_with)
            case = score_case(corpus, case.corpus, case.members, vectors, options)
        losses = case.corpus_losses
        seekers = [i for i, m in enumerate(case.members) if m.pool == "cohesion"]
        gold = [m.system for m in case.members].index(GOLD)
        for metric in case.free:
            found = case.pools["cohesion"].corpus(metric, case.gold[0], "pearson")
            beyond = _mean_of_defined(losses[metric][seekers]) - losses[metric][gold]
            rows.append((corpus, made_with, scored_with, metric, found.value, found.ci, beyond))
    fields = [
        *columns("text", "corpus", made_with="made with", scored_with="scored with"),
        Field("metric", "metric", "text"),
        *estimate("value", "Pearson", ci="ci", ci_label=""),
        Field("beyond_gold", "loss minus gold's"),
    ]
    title = "Cohesion-seeking systems, made with one encoder, scored with another"
    return Table.of("cross", title, fields, rows)


def _mean_of_defined(values: Floats) -> float:
    """Return NaN where none is defined."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _answer(
    base: StudyResult, agreement: Table, cross: Table, encoders: Sequence[str]
) -> tuple[str, ...]:
    means = {}
    for encoder in encoders:
        rows = base.table("correlations").records(
            encoder=encoder,
            pool="independent",
            level="corpus",
            coefficient="pearson",
            is_sentinel="no",
        )
        if values := [row["value"] for row in rows if isinstance(row["value"], float)]:
            means[encoder] = fmean(values)
    sentences = []
    if means:
        ranked = sorted(means, key=lambda encoder: -means[encoder])
        told = listed(f"{encoder} {means[encoder]:.2f}" for encoder in ranked)
        sentences.append(
            "Mean Pearson correlation of the reference-free with the gold-based metrics over "
            f"independent systems: {told}."
        )
    kendalls = [v for v in agreement.column("kendall") if isinstance(v, float)]
    if kendalls:
        sentences.append(
            f"Two encoders rank the same systems with a Kendall of {min(kendalls):.2f} to "
            f"{max(kendalls):.2f}."
        )
    for is_own, words in ((True, "their own encoder"), (False, "another encoder")):
        part = [
            row["beyond_gold"]
            for row in cross.records()
            if isinstance(row["beyond_gold"], float)
            and (row["made_with"] == row["scored_with"]) == is_own
        ]
        better = sum(each < 0 for each in part)
        if part:
            sentences.append(
                f"Scored with {words}, cohesion-seeking systems look better than gold in {better} "
                f"of {len(part)} cases."
            )
    return tuple(sentences)
