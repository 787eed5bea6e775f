"""Which encoder: the correlation study under each, their agreement, and how they judge each other.

Cross-judging: systems that optimise similarity under one encoder are scored with another. Where
they beat gold under their own encoder only, their low loss is the encoder's, not the text's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean
from typing import Any, Unpack

import numpy as np

from reffree.corpus import GOLD, Corpus
from reffree.encoders.embed import distinct_texts
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import InputError
from reffree.scoring.engine import Unsegmented
from reffree.study.bootstrap import RESAMPLES
from reffree.study.columns import Average
from reffree.study.correlation.cases import (
    Case,
    OfSystems,
    Settings,
    both_kinds,
    make_case,
    score_case,
)
from reffree.study.correlation.result import correlation_result
from reffree.study.diagnosis.anisotropy import shape
from reffree.study.diagnosis.directions import directions
from reffree.study.encoder_speed import measure_speed
from reffree.study.pool import Choice
from reffree.study.progress import Progress, no_progress
from reffree.study.provenance import check_study, listed
from reffree.study.result import Field, StudyResult, Table
from reffree.study.statistics.evaluation import MetaEvaluation

QUESTION = "Which encoder's scores agree best with gold, and do encoders agree with one another?"


def compare_encoders(
    corpora: Mapping[str, Corpus],
    *,
    encoders: Sequence[str],
    metrics: Sequence[str] | None = None,
    pool: Choice = "auto",
    cohesion: Sequence[str] = (),
    measure: bool = True,
    unsegmented: Unsegmented = "neutral",
    average: Average = "macro",
    texts: int = 0,
    seed: int = 0,
    resamples: int = RESAMPLES,
    memory: int | None = None,
    short_signature: bool = False,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> StudyResult:
    """Run the correlation study under several encoders and compare them.

    Args:
        corpora: by name, each with gold in every document.
        encoders: two or more aliases, folders or hub ids.
        metrics: as for `correlate`.
        pool: as for `correlate`; cohesion-seeking systems are made with every encoder.
        cohesion: systems of the corpora that optimise embedding similarity.
        measure: also measure speed and memory here, which makes results differ between runs.
        unsegmented: what a document without a boundary scores.
        average: of gold-based metrics over documents.
        texts: documents of each corpus whose text goes into the result.
        seed: of everything random.
        resamples: of documents, for intervals.
        memory: bytes that scoring may use; a quarter of what is free by default.
        short_signature: abbreviate the signature.
        progress: called as stages start.
        **encoding: how to encode: see `EncoderOptions`.
    """
    options = EncoderOptions(**encoding)
    check_study(corpora, None, seed)
    if len(set(encoders)) < 2:
        raise InputError(
            f"the encoders {listed(map(repr, encoders)) if encoders else 'none'}",
            expected="at least two different ones",
            remedy="repeat --encoder, such as --encoder minilm --encoder wordllama",
        )
    settings = Settings(
        both_kinds(metrics),
        pool,
        tuple(cohesion),
        unsegmented,
        average,
        seed,
        resamples,
        memory,
        progress,
    )
    chosen = {name: replace(options, encoder=name) for name in dict.fromkeys(encoders)}
    cases = {
        (encoder, name): replace(
            make_case(name, corpus, None, chosen[encoder], settings), encoder=encoder
        )
        for encoder in chosen
        for name, corpus in corpora.items()
    }
    base = correlation_result(
        list(cases.values()), settings, texts=texts, short_signature=short_signature
    )
    speeds = {}
    if measure:
        sample = distinct_texts(next(iter(corpora.values())))
        with progress("Measuring", len(chosen)) as advance:
            for encoder, each in chosen.items():
                speeds[encoder] = measure_speed(each, sample, seed)
                advance(1)
    agreement = _agreement(cases, list(chosen), list(corpora), settings)
    cross = _cross(cases, chosen, list(corpora), settings)
    described = _encoder_table(cases, speeds)
    return replace(
        base,
        study="encoders",
        question=QUESTION,
        answer=_answer(base, agreement, cross, list(chosen)),
        tables=(described, agreement, cross, *base.tables),
        settings={**base.settings, "encoders": list(chosen), "measure": measure},
    )


def _encoder_table(cases: Mapping[tuple[str, str], Case], speeds: Mapping[str, Any]) -> Table:
    rows = []
    for (encoder, corpus), case in cases.items():
        vectors = [directions(x) for x in case.embedded.vectors]
        found = shape(vectors)
        row: dict[str, Any] = {
            "encoder": encoder,
            "corpus": corpus,
            "dimension": vectors[0].shape[1],
            "max_length": case.embedded.spec.max_length,
            "truncated": case.embedded.n_truncated / case.scored.corpus.n_units,
            "anisotropy": found.random_cosine,
            "effective_dimension": found.effective_dimension,
            "consecutive_gain": _nanmean(found.consecutive_gain),
        }
        if encoder in speeds:
            speed = speeds[encoder]
            row |= {
                "units_per_second": speed.units_per_second,
                "load_seconds": speed.load_seconds,
                "memory_mb": speed.memory_mb,
                "device": speed.device,
            }
        rows.append(row)
    fields = [
        Field("encoder", "encoder", "text"),
        Field("corpus", "corpus", "text"),
        Field("dimension", "dimension", "count"),
        Field("max_length", "max length", "count"),
        Field("truncated", "truncated", "share"),
        Field("anisotropy", "anisotropy"),
        Field("effective_dimension", "effective dimension"),
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


def _agreement(
    cases: Mapping[tuple[str, str], Case],
    encoders: Sequence[str],
    corpora: Sequence[str],
    settings: Settings,
) -> Table:
    """Kendall of the rankings of the same systems under two encoders."""
    rows = []
    for corpus in corpora:
        for a, b in combinations(encoders, 2):
            one, other = cases[a, corpus], cases[b, corpus]
            # Cohesion-seeking systems were made with each encoder and are not the same ones.
            shared = [m.system for m in one.members if m.kind != "cohesion"]
            for metric in one.free:
                parts = {
                    name: OfSystems(
                        case.losses[metric],
                        np.array([case.scored.systems.index(system) for system in shared]),
                    )
                    for name, case in (("a", one), ("b", other))
                }
                evaluation = MetaEvaluation(parts, seed=settings.seed, resamples=settings.resamples)
                found = evaluation.corpus("a", "b", "kendall")
                rows.append(
                    {
                        "corpus": corpus,
                        "encoder_a": a,
                        "encoder_b": b,
                        "metric": metric,
                        "kendall": found.value,
                        "ci": found.ci,
                        "n_systems": found.systems,
                    }
                )
    fields = [
        *(Field(name, name.replace("_", " "), "text") for name in ("corpus", "encoder_a")),
        *(Field(name, name.replace("_", " "), "text") for name in ("encoder_b", "metric")),
        Field("kendall", "Kendall", interval="ci"),
        Field("ci", "", "interval"),
        Field("n_systems", "systems", "count"),
    ]
    title = "Do two encoders rank the same systems alike?"
    return Table.of("agreement", title, fields, rows)


def _cross(
    cases: Mapping[tuple[str, str], Case],
    chosen: Mapping[str, EncoderOptions],
    corpora: Sequence[str],
    settings: Settings,
) -> Table:
    """Cohesion-seeking systems made with one encoder and scored with another."""
    rows = []
    for corpus in corpora:
        for made_with in chosen:
            maker = cases[made_with, corpus]
            if "cohesion" not in maker.pools:
                continue
            for scored_with, options in chosen.items():
                judge = maker
                if scored_with != made_with:
                    judge = score_case(
                        corpus,
                        maker.scored.corpus,
                        maker.members,
                        cases[scored_with, corpus].embedded,
                        options,
                        settings,
                    )
                rows += [
                    {"corpus": corpus, "made_with": made_with, "scored_with": scored_with, **row}
                    for row in _judged(judge)
                ]
    fields = [
        *(Field(name, name.replace("_", " "), "text") for name in ("corpus", "made_with")),
        *(Field(name, name.replace("_", " "), "text") for name in ("scored_with", "metric")),
        Field("value", "Pearson", interval="ci"),
        Field("ci", "", "interval"),
        Field("beyond_gold", "loss minus gold's"),
    ]
    title = "Cohesion-seeking systems, made with one encoder, scored with another"
    return Table.of("cross", title, fields, rows)


def _judged(case: Case) -> list[dict[str, Any]]:
    """Correlation with the first gold-based metric, and mean loss against that of gold."""
    everything = np.ones((1, len(case.scored.corpus)))
    seekers = [i for i, m in enumerate(case.members) if m.pool == "cohesion"]
    gold = [m.system for m in case.members].index(GOLD)
    rows = []
    for metric in case.free:
        found = case.pools["cohesion"].corpus(metric, case.gold[0], "pearson")
        losses = case.losses[metric].over(everything)[0]
        rows.append(
            {
                "metric": metric,
                "value": found.value,
                "ci": found.ci,
                "beyond_gold": _nanmean(losses[seekers]) - float(losses[gold])
                if not np.isnan(losses[seekers]).all()
                else None,
            }
        )
    return rows


def _answer(
    base: StudyResult, agreement: Table, cross: Table, encoders: Sequence[str]
) -> tuple[str, ...]:
    rows = base.table("correlations").records()
    means = {}
    for encoder in encoders:
        values = [
            row["value"]
            for row in rows
            if row["encoder"] == encoder
            and (row["pool"], row["level"], row["coefficient"])
            == ("independent", "corpus", "pearson")
            and row["is_sentinel"] == "no"
            and isinstance(row["value"], float)
        ]
        means[encoder] = fmean(values) if values else None
    ranked = sorted((e for e in encoders if means[e] is not None), key=lambda e: -(means[e] or 0.0))
    sentences = []
    if ranked:
        told = listed(f"{e} {means[e]:.2f}" for e in ranked)
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
    beyond = [row for row in cross.records() if isinstance(row["beyond_gold"], float)]
    for is_own, words in ((True, "their own encoder"), (False, "another encoder")):
        part = [r for r in beyond if (r["made_with"] == r["scored_with"]) == is_own]
        better = sum(float(str(r["beyond_gold"])) < 0 for r in part)
        if part:
            sentences.append(
                f"Scored with {words}, cohesion-seeking systems look better than gold in {better} "
                f"of {len(part)} cases."
            )
    return tuple(sentences)


def _nanmean(values: Any) -> float:  # noqa: ANN401  (any array)
    defined = np.asarray(values)[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
