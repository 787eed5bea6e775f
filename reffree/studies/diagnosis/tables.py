"""The tables of a diagnosis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reffree.studies.diagnosis.checks import densities, repeated_texts
from reffree.studies.diagnosis.damage_test import KINDS, PREFERS, Noticing, Share
from reffree.studies.result import Field, Table

if TYPE_CHECKING:
    from reffree.studies.diagnosis.diagnose import Diagnosed

CORPUS = Field("corpus", "corpus", "text")
METRIC = Field("metric", "metric", "text")
SHARE = (
    Field("share", "noticed", "share", interval="ci"),
    Field("ci", "95 %", "interval"),
    Field("documents", "documents", "count"),
    Field("undefined", "undefined", "count"),
    Field("turned", "by chance", "share"),
    Field("excess_ci", "beyond chance, 95 %", "interval"),
    Field("verdict", "verdict", "text"),
)
CHECKS = (
    CORPUS,
    Field("check", "check", "text"),
    Field("verdict", "verdict", "text"),
    Field("advice", "advice", "text"),
    Field("unit", "what", "text"),
    Field("value", "value", "number", interval="ci"),
    Field("ci", "95 %", "interval"),
)
METRICS = (
    CORPUS,
    METRIC,
    Field("verdict", "verdict", "text"),
    Field("prefers", "prefers", "text"),
    Field("misses", "may miss", "text"),
    Field("share", "noticed", "share", interval="ci"),
    Field("ci", "95 %", "interval"),
    Field("turned", "by chance", "share"),
    *(Field(kind, kind, "share") for kind in KINDS),
    Field("gap", "gap", "number", interval="gap_ci"),
    Field("gap_ci", "95 %", "interval"),
)
ADVICE = (CORPUS, Field("about", "about", "text"), Field("advice", "advice", "text"))
REPEATED = (CORPUS, Field("text", "text", "text"), Field("units", "units", "count"))
NOTICED = (
    CORPUS,
    METRIC,
    Field("kind", "kind", "text"),
    Field("strength", "strength", "number"),
    *SHARE,
)
KIND_SHARES = (CORPUS, METRIC, Field("kind", "kind", "text"), *SHARE)
DENSITY = (
    CORPUS,
    Field("system", "system", "text"),
    Field("segments", "segments", "count"),
    Field("per_unit", "per unit", "number"),
    Field("ratio", "of the source's", "number"),
)

READING = {
    "value": "shares are over the whole corpus, with an interval over documents",
    "verdict": "of a check: ok, watch or problem, by limits in the settings; none where it cannot "
    "be judged",
    "noticed": "share of documents in which damage to the source raises the metric's loss, mean "
    "over kinds of damage; equal losses count half",
    "by chance": "the same share with the same segmentations on turned documents, whose units "
    "begin elsewhere and form a ring: what the number and lengths of segments do wherever the "
    "boundaries are; 50 % for a metric that they do not move",
    "notices": "the interval lies above 50 %, the share is 55 % or more, and it is surely more "
    "than by chance",
    "does not notice": "what is neither noticed nor preferred by these rules",
    "prefers the damage": "of one kind at least: the interval lies below 50 %, the share at 45 % "
    "or less",
    "random": "as many boundaries as the source has, in random places",
    "gap": "mean loss of those random boundaries minus that of the source",
    "resolution": "half the width of the gap's interval as a part of the gap, for the metric where "
    "it is smallest: smaller differences between systems drown in noise",
    "semantic returns": "segments whose nearest segment by centroid is no neighbour; by chance: if "
    "the order of segments said nothing",
    "information": "what the text adds to a prior over segmentations, for each nat that its units "
    "in random order would add: at 1, expected errors rest on the prior",
    "consecutive gain": "what the order of units says about their vectors; without it no boundary "
    "can show",
}


def diagnosis_tables(
    diagnosed: Mapping[str, Diagnosed], advised: Mapping[str, Sequence[tuple[str, str]]]
) -> tuple[Table, ...]:
    """Verdicts and advice to be read, then what charts are made from."""
    checks = [
        {
            "corpus": name,
            "check": check.check,
            "value": check.value,
            "ci": check.ci,
            "unit": check.unit,
            "verdict": check.verdict,
            "advice": check.advice,
        }
        for name, each in diagnosed.items()
        for check in each.checks
    ]
    texts = [
        {"corpus": name, "text": text, "units": n}
        for name, each in diagnosed.items()
        for text, n in repeated_texts(each.measured)
    ]
    advice = [
        {"corpus": name, "about": about, "advice": text}
        for name, each in advised.items()
        for about, text in each
    ]
    metrics = [
        (name, metric, noticed)
        for name, each in diagnosed.items()
        for metric, noticed in each.noticed.items()
    ]
    noticed_rows = [
        {"corpus": name, "metric": metric, "kind": kind, "strength": float(strength), **_cells(s)}
        for name, metric, noticed in metrics
        for (kind, strength), s in noticed.damages.items()
    ]
    kind_rows = [
        {"corpus": name, "metric": metric, "kind": kind, **_cells(share)}
        for name, metric, noticed in metrics
        for kind, share in noticed.kinds.items()
    ]
    repeated = Table.of("repeated", "Most frequent exact twins", REPEATED, texts)
    return (
        Table.of("checks", "What may mislead metrics", CHECKS, checks),
        *([repeated] if texts else []),
        Table.of(
            "metrics",
            "Share of documents in which damage raises the loss",
            METRICS,
            [_metric_row(*each) for each in metrics],
        ),
        Table.of("advice", "Advice", ADVICE, advice),
        Table.of("noticed", "By kind and strength", NOTICED, noticed_rows, shown=False),
        Table.of("kinds", "By kind", KIND_SHARES, kind_rows, shown=False),
        Table.of("density", "Segments of systems", DENSITY, _densities(diagnosed), shown=False),
    )


def _metric_row(corpus: str, metric: str, noticed: Noticing) -> dict[str, Any]:
    return {
        "corpus": corpus,
        "metric": metric,
        "verdict": noticed.verdict,
        "prefers": ", ".join(noticed.kinds_with(PREFERS)) or None,
        "misses": ", ".join(noticed.unnoticed) or None,
        "share": noticed.overall.share,
        "ci": noticed.overall.ci,
        "turned": noticed.overall.turned,
        **{kind: share.share for kind, share in noticed.kinds.items()},
        "gap": noticed.gap,
        "gap_ci": noticed.gap_ci,
    }


def _cells(share: Share) -> dict[str, Any]:
    return {
        "share": share.share,
        "ci": share.ci,
        "documents": share.documents,
        "undefined": share.undefined,
        "turned": share.turned,
        "excess_ci": share.excess_ci,
        "verdict": share.verdict,
    }


def _densities(diagnosed: Mapping[str, Diagnosed]) -> list[dict[str, Any]]:
    rows = []
    for name, each in diagnosed.items():
        ratios = {each.source.name: 1.0, **densities(each.corpus, each.source.name)}
        for system, segmentations in each.corpus.hypotheses.items():
            segments = sum(map(len, segmentations))
            per_unit = segments / each.corpus.n_units
            cells = {"segments": segments, "per_unit": per_unit, "ratio": ratios[system]}
            rows.append({"corpus": name, "system": system, **cells})
    return rows
