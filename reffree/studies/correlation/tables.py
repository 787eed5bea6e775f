"""Tables of a correlation study, all read off one long list of correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from reffree.data.corpus import GOLD
from reffree.evaluate.result import DocumentText, Field, Table, columns, estimate
from reffree.evaluate.table import judged_by
from reffree.studies.correlation.cases import SENTINELS, Case
from reffree.studies.correlation.measures import Correlations, Row

DOCUMENT_ROWS = 20_000
"""Scores of single documents kept per case, for the report's strip chart."""

POOL_TITLES = {
    "independent": "independent systems",
    "cohesion": "cohesion-seeking systems",
}
LEVELS = {
    ("corpus", "pearson"): "Pearson",
    ("corpus", "spearman"): "Spearman",
    ("corpus", "kendall"): "Kendall",
    ("corpus", "spa"): "SPA",
    ("document", "pearson"): "Pearson in documents",
    ("document", "spearman"): "Spearman in documents",
    ("document", "kendall"): "Kendall in documents",
    ("document", "acc_eq"): "acc-eq in documents",
}


def correlation_table(found: Correlations) -> Table:
    """All of them: a row per corpus, encoder, pool, level, pair of metrics and coefficient."""
    fields = [
        *columns("text", "corpus", "encoder", "pool", "level", "free", "gold", "coefficient"),
        *estimate("value", "value", ci="ci", ci_label="95 % interval"),
        *estimate("noiseless", "without noise", ci_label="its 95 % interval"),
        *columns("count", "n_systems", "documents", "undefined"),
        *columns("text", is_sentinel="sentinel", reason="why undefined"),
    ]
    return Table.of("correlations", "All correlations", fields, found.rows, shown=False)


def pool_table(cases: Sequence[Case], found: Correlations, pool: str) -> Table:
    """Pearson of every metric with every gold-based one over a pool: the paper's Table 1."""
    gold = cases[0].gold
    fields = [*_label_fields(cases), Field("n_systems", "systems", "count")]
    for name in gold:
        fields += estimate(name, name, ci_label="")
    title = f"Pearson correlation with gold-based metrics over {POOL_TITLES[pool]}"
    rows = _rows(cases, found, {name: (pool, name) for name in gold})
    return Table.of(pool, title, fields, rows)


def change_table(cases: Sequence[Case], found: Correlations) -> Table:
    """How far a metric's correlation falls from independent to cohesion-seeking systems."""
    gold = cases[0].gold[0]
    pools = ("blind", "independent", "cohesion", "all")
    rows = _rows(cases, found, {pool: (pool, gold) for pool in pools})
    for row in rows:
        if row["independent"] is not None and row["cohesion"] is not None:
            row["change"] = row["cohesion"] - row["independent"]
    fields = [
        *_label_fields(cases),
        *estimate("blind", "blind", ci_label=""),
        *estimate("independent", "independent", ci_label=""),
        *estimate("cohesion", "cohesion-seeking", ci_label=""),
        Field("change", "change"),
        *estimate("all", "all", ci_label=""),
    ]
    return Table.of("pools", f"Pearson correlation with {gold} by pool of systems", fields, rows)


def level_table(cases: Sequence[Case], found: Correlations) -> Table:
    """Every coefficient at both levels, for the first gold-based metric."""
    gold = cases[0].gold[0]
    named = {"_".join(key): key for key in LEVELS}
    fields = [*_label_fields(cases), *(Field(n, LEVELS[key]) for n, key in named.items())]
    rows = _rows(cases, found, {n: ("independent", gold, *key) for n, key in named.items()})
    title = f"Agreement with {gold} over independent systems, by coefficient and level"
    return Table.of("levels", title, fields, rows)


def test_table(cases: Sequence[Case], tests: Sequence[Row]) -> Table:
    """Every metric against the best sentinel."""
    fields = [
        *_label_fields(cases),
        Field("value", "Pearson"),
        Field("sentinel", "best sentinel", "text"),
        *columns("number", sentinel_value="its |Pearson|", difference="difference"),
        *columns("p", p="p PERM-SYSTEMS", p_bh="corrected", p_both="p PERM-BOTH"),
        Field("p_williams", "p Williams", "p"),
        Field("n_systems", "systems", "count"),
    ]
    gold = cases[0].gold[0]
    title = f"Does a metric say more about {gold} than a sentinel? (independent systems)"
    return Table.of("beyond_sentinels", title, fields, tests)


def aggregate_table(cases: Sequence[Case], found: Correlations) -> Table:
    """Mean and standard deviation over corpora and encoders: the paper's Table 2.

    Deviations are those of a population, as the paper's. Under ``all`` stand those of the
    correlations with all gold-based metrics together, as its caption says; what it prints there is
    the mean of the three deviations.
    """
    gold = cases[0].gold
    rows = []
    for pool in POOL_TITLES:
        for metric in cases[0].judged:
            values = {name: found.values(cases, metric, pool, name) for name in gold}
            every = [value for own in values.values() for value in own]
            row: dict[str, Any] = {"pool": pool, "metric": metric, "defined": len(every)}
            for name, own in values.items():
                row[name], row[f"{name}_sd"] = mean_and_sd(own)
            row["mean"], row["sd"] = mean_and_sd(every)
            rows.append(row)
    fields = [*columns("text", "pool", "metric")]
    for name in gold:
        fields += [Field(name, name), Field(f"{name}_sd", "sd")]
    if len(gold) > 1:
        fields += [Field("mean", "all"), Field("sd", "sd")]
    fields.append(Field("defined", "defined", "count"))
    title = f"Mean and standard deviation of Pearson correlations over {len(cases)} cases"
    return Table.of("aggregate", title, fields, rows)


def score_table(cases: Sequence[Case]) -> Table:
    """Every system's score under every metric."""
    rows = []
    for case in cases:
        kinds = dict.fromkeys(case.free, "free") | dict.fromkeys(case.gold, "gold")
        kinds |= dict.fromkeys(SENTINELS, "sentinel")
        losses = case.corpus_losses
        for metric, kind in kinds.items():
            for member, loss in zip(case.members, losses[metric].tolist(), strict=True):
                value = _own_value(case, metric, loss)
                made = (member.system, member.pool, member.kind)
                rows.append((case.name, case.encoder, *made, metric, kind, value, loss))
    fields = [
        *columns("text", "corpus", "encoder", "system", "pool", "kind", "metric", "metric_kind"),
        *columns("number", "value", "loss"),
    ]
    return Table.of("scores", "Scores of every system", fields, rows, shown=False)


def document_table(cases: Sequence[Case]) -> tuple[Table, list[str]]:
    """Scores of single documents, and what of them was left out."""
    rows, notes = [], []
    for case in cases:
        metrics = (*case.free, *case.gold)
        ids = [document.id for document in case.corpus.documents]
        kept = max(1, DOCUMENT_ROWS // (len(metrics) * len(case.members)))
        if kept < len(ids):
            notes.append(
                f"{case.name}: scores of single documents are kept for the first {kept} of "
                f"{len(ids)}."
            )
        for metric in metrics:
            for member, losses in zip(case.members, case.losses[metric].values, strict=True):
                for id, loss in zip(ids[:kept], losses[:kept].tolist(), strict=True):
                    value = _own_value(case, metric, loss)
                    rows.append((case.name, case.encoder, id, member.system, metric, value))
    fields = [
        *columns("text", "corpus", "encoder", "document", "system", "metric"),
        Field("value", "value"),
    ]
    return Table.of("documents", "Scores of single documents", fields, rows, shown=False), notes


def texts_of(cases: Sequence[Case], count: int) -> list[DocumentText]:
    """The first documents of every corpus, with all its systems under the first encoder.

    Gold comes first, then the systems by the metric to judge by, best first.
    """
    made: dict[str, list[DocumentText]] = {}
    for case in cases:
        metric = judged_by(case.chosen.names)
        losses = case.losses[metric].over(np.ones((1, len(case.corpus))))[0].tolist()
        loss = dict(zip((member.system for member in case.members), losses, strict=True))
        hypotheses = case.corpus.hypotheses
        systems = {
            name: hypotheses[name]
            for name in sorted(hypotheses, key=lambda s: (s != GOLD, loss.get(s, np.inf)))
        }
        texts = [
            DocumentText(
                case.name, document.id, document.units, {s: systems[s][d].masses for s in systems}
            )
            for d, document in enumerate(case.corpus.documents[:count])
        ]
        made.setdefault(case.name, texts)
    return [text for texts in made.values() for text in texts]


def mean_and_sd(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and population standard deviation; the latter of at least two."""
    return fmean(values) if values else None, pstdev(values) if len(values) > 1 else None


def _own_value(case: Case, metric: str, loss: float) -> float:
    """A gold-based metric's own value; those best at 1 stay a distance from it."""
    gold = case.chosen.gold_based.get(metric)
    return -loss if gold is not None and gold.direction == "higher" else loss


def _rows(
    cases: Sequence[Case], found: Correlations, cells: Mapping[str, tuple[str, ...]]
) -> list[dict[str, Any]]:
    """Return a row per case and metric; ``cells`` are what `Correlations.get` takes, by column."""
    rows = []
    for case in cases:
        for metric in case.judged:
            label = f"{metric} (sentinel)" if metric in SENTINELS else metric
            row: dict[str, Any] = {"corpus": case.name, "encoder": case.encoder, "metric": label}
            for column, key in cells.items():
                cell = found.get(case, metric, *key)
                row |= {column: cell["value"], f"{column}_ci": cell["ci"]}
                row.setdefault("n_systems", cell["n_systems"])
            rows.append(row)
    return rows


def _label_fields(cases: Sequence[Case]) -> list[Field]:
    """Corpus and encoder only where there are several."""
    several = {
        "corpus": len({case.name for case in cases}) > 1,
        "encoder": len({case.encoder for case in cases}) > 1,
    }
    return [*columns("text", *(name for name, shown in several.items() if shown), "metric")]
