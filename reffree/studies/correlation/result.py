"""A correlation study's result: tables, and what they say in three sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reffree.errors import listed
from reffree.studies.correlation.cases import Case, Settings
from reffree.studies.correlation.measures import correlation_rows, sentinel_tests
from reffree.studies.correlation.tables import (
    Correlations,
    aggregate_table,
    change_table,
    document_table,
    level_table,
    pool_table,
    score_table,
    test_table,
    texts_of,
)
from reffree.studies.result import StudyResult
from reffree.studies.sentinels import SENTINELS
from reffree.studies.study import described, joint_signature, reading_notes

QUESTION = "Do reference-free metrics rank systems as gold-based ones do?"
ALPHA = 0.05
NOTABLE_CHANGE = 0.1
"""Of a correlation, between systems that read the text and those that do not."""

READING = {
    "independent": "systems that do not look at the vectors that judge them: gold, random, lexical "
    "and perturbed ones",
    "blind": "those of the independent systems that do not read the text: gold, random, perturbed",
    "cohesion": "systems that optimise embedding similarity, which is what the metrics measure; a "
    "metric that ranks these well can be trusted to tune with",
    "pearson": "correlation of corpus scores over systems, all turned so that lower is better; 1 "
    "is perfect agreement, 0 none, below 0 the metric prefers the worse system",
    "interval": "95 %, over resampled documents: where the mean of this value over other corpora "
    "of as many such documents may lie",
    "noiseless": "in the table of all correlations: what the value would be with any number of "
    "documents; few of them leave noise in the scores, which pulls correlations towards 0",
    "spa": "soft pairwise accuracy: agreement on how surely one system beats another; 0.5 is "
    "guessing",
    "document": "the coefficient over the systems of one document, averaged over documents",
    "acc_eq": "share of pairs of systems ordered alike in a document, ties calibrated",
    "p_bh": "one-sided PERM-SYSTEMS (the two metrics swap whole systems) against the best "
    "sentinel, corrected for all metrics (Benjamini–Hochberg)",
    "p_both": "PERM-BOTH (they swap systems and documents), uncorrected; it rejects too often "
    "where metrics favour systems of their own, so the other p decides",
    **{name: f"sentinel: {text}" for name, text in SENTINELS.items()},
}


def correlation_result(
    cases: Sequence[Case], settings: Settings, *, texts: int, short_signature: bool
) -> StudyResult:
    """Measure, tabulate, and say what was found."""
    found = Correlations(correlation_rows(list(cases), settings.progress))
    tests = sentinel_tests(list(cases), settings.progress)
    documents, document_notes = document_table(cases)
    aggregate = aggregate_table(cases, found)
    pools = [pool for pool in ("independent", "cohesion") if any(pool in c.pools for c in cases)]
    shown = [
        *(pool_table(cases, found, pool) for pool in pools),
        *([change_table(cases, found)] if len(pools) == 2 else []),
        level_table(cases, found),
        test_table(cases, tests),
        *([] if aggregate is None else [aggregate]),
    ]
    firsts = {case.corpus: case for case in reversed(cases)}
    notes = [
        note
        for name, case in reversed(firsts.items())
        for note in reading_notes(name, case.scored.corpus, case.embedded)
    ]
    return StudyResult(
        study="correlate",
        question=QUESTION,
        answer=_answer(cases, found, tests),
        tables=(*shown, found.table(), score_table(cases), documents),
        signature=joint_signature(
            [case.signature for case in cases],
            {"pool": settings.pool, "resamples": str(settings.resamples)},
            short=short_signature,
        ),
        settings={
            "metrics": list(settings.metrics),
            "encoders": list(dict.fromkeys(case.encoder for case in cases)),
            "pool": settings.pool,
            "cohesion": list(settings.cohesion),
            "unsegmented": settings.unsegmented,
            "average": settings.average,
            "seed": settings.seed,
            "resamples": settings.resamples,
            "texts": texts,
        },
        corpora=tuple(
            described(name, case.scored.corpus, case.embedded)
            for name, case in reversed(firsts.items())
        ),
        notes=(
            *notes,
            *_pool_notes(cases),
            *_lexical_notes(cases, found),
            *document_notes,
        ),
        reading=READING,
        texts=texts_of(cases, texts),
    )


def _pool_notes(cases: Sequence[Case]) -> list[str]:
    notes = []
    for case in cases:
        sizes = {pool: len(case.systems(pool)) for pool in ("independent", "cohesion")}
        missing = [pool for pool in sizes if pool not in case.pools]
        where = (
            case.corpus
            if len({c.encoder for c in cases}) == 1
            else f"{case.corpus}, {case.encoder}"
        )
        notes.append(
            f"{where}: {sizes['independent']} independent and {sizes['cohesion']} "
            "cohesion-seeking systems"
            + (f"; too few {listed(missing)} ones to correlate." if missing else ".")
        )
    return notes


def _lexical_notes(cases: Sequence[Case], found: Correlations) -> list[str]:
    """Say it where systems that read the text, though not the vectors, lower a correlation."""
    notes = []
    for case in cases:
        parts = []
        for metric in case.free:
            values = [
                found.get(case, pool, metric, case.gold[0], "corpus", "pearson")["value"]
                for pool in ("blind", "independent")
            ]
            if None not in values and values[0] - values[1] >= NOTABLE_CHANGE:
                parts.append(f"{metric} {values[0]:.2f} to {values[1]:.2f}")
        readers = [
            m.system for m in case.members if m.is_in("independent") and not m.is_in("blind")
        ]
        if parts:
            notes.append(
                f"{case.corpus}: {listed(readers)} read the text and lower the correlation with "
                f"{case.gold[0]} over independent systems: {listed(parts)}."
            )
    return notes


def _answer(
    cases: Sequence[Case], found: Correlations, tests: Sequence[dict[str, Any]]
) -> tuple[str, ...]:
    """How well the best metric does, what becomes of it on seekers, and whether sentinels do."""
    gold = cases[0].gold[0]
    best = _best(cases, found, "independent")
    if best is None:
        return ("No reference-free metric has a defined correlation over independent systems.",)
    metric, value, span = best
    several = f"mean of {len(cases)} cases" if len(cases) > 1 else span
    sentences = [
        f"Over independent systems {metric} agrees best with {gold}: Pearson {value:.2f} "
        f"({several})."
    ]
    cohesion = _mean(cases, found, "cohesion", metric)
    if cohesion is not None:
        verdict = (
            "there it still ranks systems"
            if cohesion >= 0.5
            else "there a lower loss does not mean better boundaries"
        )
        sentences.append(
            f"Over systems that seek cohesion in the embedding space it is {cohesion:.2f}: "
            f"{verdict}."
        )
    beating = sorted({t["metric"] for t in tests if t["p_bh"] is not None and t["p_bh"] <= ALPHA})
    if tests:
        strongest = max(tests, key=lambda t: t["sentinel_value"])
        told = (
            f"{listed(beating)} {'does' if len(beating) == 1 else 'do'} significantly better"
            + (" somewhere" if len(cases) > 1 else "")
            if beating
            else "no metric does significantly better"
        )
        sentences.append(
            f"The sentinel {strongest['sentinel']}, which reads no text, reaches "
            f"{strongest['sentinel_value']:.2f}; {told}."
        )
    return tuple(sentences)


def _best(cases: Sequence[Case], found: Correlations, pool: str) -> tuple[str, float, str] | None:
    means = {m: _mean(cases, found, pool, m) for m in cases[0].free}
    defined = {m: value for m, value in means.items() if value is not None}
    if not defined:
        return None
    metric = max(defined, key=lambda m: defined[m])
    ci = found.get(cases[0], pool, metric, cases[0].gold[0], "corpus", "pearson")["ci"]
    span = "no interval" if ci is None else f"95 % interval {ci[0]:.2f} to {ci[1]:.2f}"
    return metric, defined[metric], span


def _mean(cases: Sequence[Case], found: Correlations, pool: str, metric: str) -> float | None:
    gold = cases[0].gold[0]
    cells = [found.get(case, pool, metric, gold, "corpus", "pearson") for case in cases]
    values = [cell["value"] for cell in cells if cell["value"] is not None]
    return sum(values) / len(values) if values else None
