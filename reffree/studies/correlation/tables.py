"""Tables of a correlation study, all read off one long list of correlations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np

from reffree.studies.correlation.cases import Case
from reffree.studies.result import Field, Table, Text

DOCUMENT_ROWS = 20_000
"""Scores of single documents kept per case, for the report's strip chart."""

POOL_LABELS = {
    "independent": "independent systems",
    "blind": "systems that do not read the text",
    "cohesion": "cohesion-seeking systems",
    "all": "all systems together",
}
LEVEL_LABELS = {
    ("corpus", "pearson"): "Pearson",
    ("corpus", "spearman"): "Spearman",
    ("corpus", "kendall"): "Kendall",
    ("corpus", "spa"): "SPA",
    ("document", "pearson"): "Pearson in documents",
    ("document", "spearman"): "Spearman in documents",
    ("document", "kendall"): "Kendall in documents",
    ("document", "acc_eq"): "acc-eq in documents",
}
Row = Mapping[str, Any]


class Correlations:
    """The long list, looked up by what a cell of a table needs."""

    def __init__(self, rows: Sequence[Row]) -> None:
        """Index the rows."""
        self.rows = rows
        self._by_key = {_key(row): row for row in rows}

    def get(self, case: Case, pool: str, free: str, gold: str, level: str, measure: str) -> Row:
        """Return one correlation; nothing where the pool has too few systems."""
        key = (case.corpus, case.encoder, pool, level, free, gold, measure)
        return self._by_key.get(key, {"value": None, "ci": None, "n_systems": None})

    def table(self) -> Table:
        """All of them: a row per corpus, encoder, pool, level, pair of metrics and coefficient."""
        fields = [
            *(Field(name, name, "text") for name in ("corpus", "encoder", "pool", "level")),
            *(Field(name, name, "text") for name in ("free", "gold", "coefficient")),
            Field("value", "value", interval="ci"),
            Field("ci", "95 % interval", "interval"),
            Field("noiseless", "without noise", interval="noiseless_ci"),
            Field("noiseless_ci", "its 95 % interval", "interval"),
            *(Field(name, name, "count") for name in ("n_systems", "documents", "undefined")),
            Field("is_sentinel", "sentinel", "text"),
            Field("reason", "why undefined", "text"),
        ]
        return Table.of("correlations", "All correlations", fields, self.rows, shown=False)


def pool_table(cases: Sequence[Case], found: Correlations, pool: str) -> Table:
    """Pearson of every metric with every gold-based one over a pool: the paper's Table 1."""
    gold = cases[0].gold
    rows = []
    for case in cases:
        for metric in (*case.free, *case.sentinels):
            cells = {g: found.get(case, pool, metric, g, "corpus", "pearson") for g in gold}
            row: dict[str, Any] = {**_labels(case, metric)}
            row["n_systems"] = next(iter(cells.values()))["n_systems"]
            for g, cell in cells.items():
                row |= {g: cell["value"], f"{g}_ci": cell["ci"]}
            rows.append(row)
    fields = [*_label_fields(cases), Field("n_systems", "systems", "count")]
    for g in gold:
        fields += [Field(g, g, interval=f"{g}_ci"), Field(f"{g}_ci", "", "interval")]
    title = f"Pearson correlation with gold-based metrics over {POOL_LABELS[pool]}"
    return Table.of(pool, title, fields, rows)


def change_table(cases: Sequence[Case], found: Correlations) -> Table:
    """How far a metric's correlation falls from independent to cohesion-seeking systems."""
    gold = cases[0].gold[0]
    rows = []
    for case in cases:
        for metric in (*case.free, *case.sentinels):
            row: dict[str, Any] = _labels(case, metric)
            for pool in POOL_LABELS:
                cell = found.get(case, pool, metric, gold, "corpus", "pearson")
                row |= {pool: cell["value"], f"{pool}_ci": cell["ci"]}
            if row["independent"] is not None and row["cohesion"] is not None:
                row["change"] = row["cohesion"] - row["independent"]
            rows.append(row)
    fields = _label_fields(cases)
    labels = {"blind": "blind", "independent": "independent", "cohesion": "cohesion-seeking"}
    for pool, label in labels.items():
        fields += [Field(pool, label, interval=f"{pool}_ci"), Field(f"{pool}_ci", "", "interval")]
    fields += [Field("change", "change")]
    fields += [Field("all", "all", interval="all_ci"), Field("all_ci", "", "interval")]
    return Table.of("pools", f"Pearson correlation with {gold} by pool of systems", fields, rows)


def level_table(cases: Sequence[Case], found: Correlations) -> Table:
    """Every coefficient at both levels, for the first gold-based metric."""
    gold = cases[0].gold[0]
    rows = []
    for case in cases:
        for metric in (*case.free, *case.sentinels):
            row: dict[str, Any] = _labels(case, metric)
            for level, measure in LEVEL_LABELS:
                cell = found.get(case, "independent", metric, gold, level, measure)
                row[f"{level}_{measure}"] = cell["value"]
            rows.append(row)
    fields = _label_fields(cases)
    fields += [Field(f"{level}_{m}", label) for (level, m), label in LEVEL_LABELS.items()]
    title = f"Agreement with {gold} over independent systems, by coefficient and level"
    return Table.of("levels", title, fields, rows)


def test_table(cases: Sequence[Case], tests: Sequence[Row]) -> Table:
    """Every metric against the best sentinel."""
    fields = [
        *_label_fields(cases),
        Field("value", "Pearson"),
        Field("sentinel", "best sentinel", "text"),
        Field("sentinel_value", "its |Pearson|"),
        Field("difference", "difference"),
        Field("p", "p PERM-SYSTEMS", "p"),
        Field("p_bh", "corrected", "p"),
        Field("p_both", "p PERM-BOTH", "p"),
        Field("p_williams", "p Williams", "p"),
        Field("n_systems", "systems", "count"),
    ]
    title = (
        f"Does a metric say more about {cases[0].gold[0]} than a sentinel? (independent systems)"
    )
    return Table.of("beyond_sentinels", title, fields, tests)


def aggregate_table(cases: Sequence[Case], found: Correlations) -> Table | None:
    """Mean and standard deviation over corpora and encoders: the paper's Table 2."""
    if len(cases) < 2:
        return None
    gold = cases[0].gold
    rows = []
    for pool in ("independent", "cohesion"):
        for metric in (*cases[0].free, *cases[0].sentinels):
            row: dict[str, Any] = {"pool": pool, "metric": metric}
            every = []
            for g in gold:
                cells = [found.get(case, pool, metric, g, "corpus", "pearson") for case in cases]
                values = [cell["value"] for cell in cells if cell["value"] is not None]
                every += values
                row |= {g: _mean(values), f"{g}_sd": _sd(values)}
            rows.append({**row, "mean": _mean(every), "sd": _sd(every), "defined": len(every)})
    fields = [Field("pool", "pool", "text"), Field("metric", "metric", "text")]
    for g in (*gold,):
        fields += [Field(g, g), Field(f"{g}_sd", "sd")]
    if len(gold) > 1:
        fields += [Field("mean", "all"), Field("sd", "sd")]
    fields += [Field("defined", "defined", "count")]
    title = f"Mean and standard deviation of Pearson correlations over {len(cases)} cases"
    return Table.of("aggregate", title, fields, rows)


def score_table(cases: Sequence[Case]) -> Table:
    """Every system's score under every metric."""
    rows = []
    for case in cases:
        everything = np.ones((1, len(case.pooled)))
        kinds = dict.fromkeys(case.free, "free") | dict.fromkeys(case.gold, "gold")
        kinds |= dict.fromkeys(case.sentinels, "sentinel")
        for metric, kind in kinds.items():
            losses = case.losses[metric].over(everything)[0]
            for member, loss in zip(case.members, losses.tolist(), strict=True):
                rows.append(
                    {
                        **_case(case),
                        "system": member.system,
                        "pool": member.pool,
                        "kind": member.kind,
                        "metric": metric,
                        "metric_kind": kind,
                        "value": _own_value(case, metric, loss),
                        "loss": loss,
                    }
                )
    names = ("corpus", "encoder", "system", "pool", "kind", "metric", "metric_kind")
    fields = [*(Field(n, n, "text") for n in names), Field("value", "value"), Field("loss", "loss")]
    return Table.of("scores", "Scores of every system", fields, rows, shown=False)


def document_table(cases: Sequence[Case]) -> tuple[Table, list[str]]:
    """Scores of single documents, and what of them was left out."""
    rows, notes = [], []
    for case in cases:
        metrics = (*case.free, *case.gold)
        ids = [document.id for document in case.pooled.documents]
        kept = max(1, DOCUMENT_ROWS // (len(metrics) * len(case.members)))
        if kept < len(ids):
            notes.append(
                f"{case.corpus}: scores of single documents are kept for the first {kept} of "
                f"{len(ids)}."
            )
        for metric in metrics:
            values = case.losses[metric].values
            for s, member in enumerate(case.members):
                rows += [
                    {
                        **_case(case),
                        "document": id,
                        "system": member.system,
                        "metric": metric,
                        "value": _own_value(case, metric, float(values[s, d])),
                    }
                    for d, id in enumerate(ids[:kept])
                ]
    names = ("corpus", "encoder", "document", "system", "metric")
    fields = [*(Field(name, name, "text") for name in names), Field("value", "value")]
    return Table.of("documents", "Scores of single documents", fields, rows, shown=False), notes


def texts_of(cases: Iterable[Case], count: int) -> tuple[Text, ...]:
    """The first documents of every corpus, with all its systems."""
    made: dict[tuple[str, str], Text] = {}
    for case in cases:
        for d, document in enumerate(case.pooled.documents[:count]):
            systems = case.pooled.hypotheses
            masses = {name: tuple(each[d].masses) for name, each in systems.items()}
            made.setdefault(
                (case.corpus, document.id),
                Text(case.corpus, document.id, tuple(document.units), masses),
            )
    return tuple(made.values())


def _own_value(case: Case, metric: str, loss: float) -> float:
    """A gold-based metric's own value; those best at 1 stay a distance from it."""
    column = case.scored.metrics.gold_based.get(metric)
    return -loss if column is not None and column.direction == "higher" else loss


def _key(row: Row) -> tuple[str, ...]:
    names = ("corpus", "encoder", "pool", "level", "free", "gold", "coefficient")
    return tuple(str(row[name]) for name in names)


def _case(case: Case) -> dict[str, str]:
    return {"corpus": case.corpus, "encoder": case.encoder}


def _labels(case: Case, metric: str) -> dict[str, Any]:
    is_sentinel = metric in case.sentinels
    return {**_case(case), "metric": f"{metric} (sentinel)" if is_sentinel else metric}


def _label_fields(cases: Sequence[Case]) -> list[Field]:
    """Corpus and encoder only where there are several."""
    fields = []
    for name in ("corpus", "encoder"):
        if len({getattr(case, name) for case in cases}) > 1:
            fields.append(Field(name, name, "text"))
    return [*fields, Field("metric", "metric", "text")]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _sd(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None
