"""All correlations and tests of a case, as one long list of rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from reffree.progress import Progress
from reffree.statistics.meta_evaluation import (
    CORPUS_MEASURES,
    DOCUMENT_MEASURES,
    Estimate,
    MetaEvaluation,
)
from reffree.statistics.significance import benjamini_hochberg
from reffree.studies.correlation.cases import Case, turned_name


def correlation_rows(cases: list[Case], progress: Progress) -> list[dict[str, Any]]:
    """Every pair of metrics, pool, level and coefficient of every case."""
    total = sum(
        len(case.pools) * (len(case.free) + len(case.sentinels)) * len(case.gold) for case in cases
    )
    rows = []
    with progress("Statistics", total) as advance:
        for case in cases:
            for pool, evaluation in case.pools.items():
                for metric, gold in product((*case.free, *case.sentinels), case.gold):
                    common = {
                        "corpus": case.corpus,
                        "encoder": case.encoder,
                        "pool": pool,
                        "free": metric,
                        "gold": gold,
                        "is_sentinel": "yes" if metric in case.sentinels else "no",
                    }
                    rows += [common | row for row in _estimates(evaluation, metric, gold)]
                    advance(1)
    return rows


def _estimates(evaluation: MetaEvaluation, metric: str, gold: str) -> Iterator[dict[str, Any]]:
    for measure in CORPUS_MEASURES:
        found = evaluation.corpus(metric, gold, measure)
        yield {"level": "corpus", "coefficient": measure, **_plain(found)}
    for inside in DOCUMENT_MEASURES:
        found = evaluation.documents(metric, gold, inside)
        yield {"level": "document", "coefficient": inside, **_plain(found)}


def _plain(found: Estimate) -> dict[str, Any]:
    return {
        "value": found.value,
        "ci": found.ci,
        "noiseless": found.noiseless,
        "noiseless_ci": found.noiseless_ci,
        "n_systems": found.systems,
        "documents": found.documents,
        "undefined": found.undefined,
        "reason": found.reason,
    }


def sentinel_tests(cases: list[Case], progress: Progress) -> list[dict[str, Any]]:
    """Whether each metric correlates better with the first gold-based one than sentinels do.

    Over independent systems, against the sentinel with the largest correlation in either
    direction, turned so that it is positive: PERM-SYSTEMS, one-sided, Benjamini–Hochberg over all
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
            found = {s: evaluation.corpus(s, gold, "pearson").value for s in case.sentinels}
            defined = {s: value for s, value in found.items() if value is not None}
            if not defined:
                continue
            best = max(defined, key=lambda s: abs(defined[s]))
            turned = turned_name(best) if defined[best] < 0 else best
            for metric in case.free:
                test = evaluation.permutation_test(metric, turned, gold, "pearson")
                both = evaluation.permutation_test(metric, turned, gold, "pearson", swap="both")
                beside = evaluation.williams_test(metric, turned, gold, "pearson")
                rows.append(
                    {
                        "corpus": case.corpus,
                        "encoder": case.encoder,
                        "metric": metric,
                        "value": evaluation.corpus(metric, gold, "pearson").value,
                        "sentinel": best,
                        "sentinel_value": abs(defined[best]),
                        "difference": test.difference,
                        "p": test.p_greater,
                        "p_both": both.p_greater,
                        "p_williams": beside.p_greater,
                        "n_systems": test.systems,
                    }
                )
                advance(1)
    corrected = benjamini_hochberg([row["p"] for row in rows])
    return [{**row, "p_bh": p} for row, p in zip(rows, corrected, strict=True)]
