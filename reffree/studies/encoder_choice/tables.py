"""Tables of the encoder study: what each encoder is like, and how they judge and agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from reffree.corpus import GOLD
from reffree.encoders.options import EncoderOptions
from reffree.seeds import rng_for
from reffree.statistics.meta_evaluation import MetaEvaluation
from reffree.studies.correlation.cases import (
    Case,
    OfSystems,
    Settings,
    score_case,
)
from reffree.studies.diagnosis.anisotropy import shape
from reffree.studies.diagnosis.directions import directions
from reffree.studies.result import Field, Table


def encoder_table(cases: Mapping[tuple[str, str], Case], speeds: Mapping[str, Any]) -> Table:
    """Dimension, shape of the vectors, speed and memory of every encoder on every corpus."""
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


def agreement_table(
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
                evaluation = MetaEvaluation(
                    parts, rng=partial(rng_for, settings.seed), resamples=settings.resamples
                )
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


def cross_table(
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


def _nanmean(values: Any) -> float:  # noqa: ANN401  (any array)
    defined = np.asarray(values)[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
