"""All correlations and tests of a case, as one long list of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from reffree.statistics.meta_evaluation import (
    CORPUS_MEASURES,
    DOCUMENT_MEASURES,
    Estimate,
    MetaEvaluation,
)
from reffree.statistics.significance import benjamini_hochberg
from reffree.studies.correlation.cases import SENTINELS, Case, negated
from reffree.util.progress import Progress

Row = Mapping[str, Any]


class Correlations:
    """Every pair of metrics, pool, level and coefficient of every case."""

    def __init__(self, cases: Sequence[Case], progress: Progress) -> None:
        """Estimate all of them."""
        self.rows: list[dict[str, Any]] = []
        total = sum(len(case.pools) * len(case.judged) * len(case.gold) for case in cases)
        with progress("Statistics", total) as advance:
            for case in cases:
                for pool, evaluation in case.pools.items():
                    for metric, gold in product(case.judged, case.gold):
                        common = {
                            "corpus": case.name,
                            "encoder": case.encoder,
                            "pool": pool,
                            "free": metric,
                            "gold": gold,
                            "is_sentinel": "yes" if metric in SENTINELS else "no",
                        }
                        self.rows += [common | row for row in _estimates(evaluation, metric, gold)]
                        advance(1)
        names = ("corpus", "encoder", "free", "pool", "gold", "level", "coefficient")
        self._by_key = {tuple(row[name] for name in names): row for row in self.rows}

    def get(
        self,
        case: Case,
        metric: str,
        pool: str,
        gold: str,
        level: str = "corpus",
        coefficient: str = "pearson",
    ) -> Row:
        """Return one correlation; nothing where the pool has too few systems."""
        key = (case.name, case.encoder, metric, pool, gold, level, coefficient)
        return self._by_key.get(key, {"value": None, "ci": None, "n_systems": None})

    def values(self, cases: Sequence[Case], metric: str, pool: str, gold: str) -> list[float]:
        """Return the Pearson correlations over systems of all cases that have one."""
        cells = [self.get(case, metric, pool, gold)["value"] for case in cases]
        return [value for value in cells if value is not None]


def _estimates(evaluation: MetaEvaluation, metric: str, gold: str) -> Iterator[dict[str, Any]]:
    found: list[tuple[str, str, Estimate]] = [
        *(("corpus", m, evaluation.corpus(metric, gold, m)) for m in CORPUS_MEASURES),
        *(("document", m, evaluation.documents(metric, gold, m)) for m in DOCUMENT_MEASURES),
    ]
    for level, coefficient, estimate in found:
        about = {"level": level, "coefficient": coefficient, "n_systems": estimate.systems}
        yield about | asdict(estimate)


def sentinel_tests(cases: Sequence[Case], progress: Progress) -> list[dict[str, Any]]:
    """Whether each metric correlates better with the first gold-based one than sentinels do.

    Over independent systems, against the sentinel with the largest correlation in either
    direction, negated where it is negative: PERM-SYSTEMS, one-sided, Benjamini–Hochberg over all
    metrics and cases. PERM-BOTH and Williams stand beside it: by simulation PERM-BOTH rejects too
    often where metrics favour systems of their own, as these do.
    """
    rows: list[dict[str, Any]] = []
    with progress("Tests", sum(len(case.free) for case in cases)) as advance:
        for case in cases:
            evaluation = case.pools.get("independent")
            if evaluation is None:
                continue
            gold = case.gold[0]
            found = {s: evaluation.corpus(s, gold, "pearson").value for s in SENTINELS}
            defined = {s: value for s, value in found.items() if value is not None}
            if not defined:
                continue
            best = max(defined, key=lambda s: abs(defined[s]))
            rival = negated(best) if defined[best] < 0 else best
            for metric in case.free:
                test = evaluation.permutation_test(metric, rival, gold, "pearson")
                both = evaluation.permutation_test(metric, rival, gold, "pearson", swap="both")
                williams = evaluation.williams_test(metric, rival, gold, "pearson")
                rows.append(
                    {
                        "corpus": case.name,
                        "encoder": case.encoder,
                        "metric": metric,
                        "value": evaluation.corpus(metric, gold, "pearson").value,
                        "sentinel": best,
                        "sentinel_value": abs(defined[best]),
                        "difference": test.difference,
                        "p": test.p_greater,
                        "p_both": both.p_greater,
                        "p_williams": williams.p_greater,
                        "n_systems": test.systems,
                    }
                )
                advance(1)
    corrected = benjamini_hochberg([row["p"] for row in rows])
    return [{**row, "p_bh": p} for row, p in zip(rows, corrected, strict=True)]
