"""Do reference-free metrics rank systems as gold-based ones do?

The study of Ghinassi et al. (2024), Tables 1 and 2, and beyond. Systems are scored by both kinds of
metrics; agreement is measured over systems at corpus level and inside documents, apart for
independent and cohesion-seeking systems, and beside sentinels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, Unpack

from reffree.data.corpus import Corpus
from reffree.encoders.embed import Vectors
from reffree.evaluate.result import Result
from reffree.evaluate.scores import Average
from reffree.metrics.free.result import Unsegmented
from reffree.segmenters.labeller.description import Architecture
from reffree.statistics.resampling import RESAMPLES
from reffree.studies.correlation.cases import (
    FOLDS,
    SENTINELS,
    Case,
    CaseSettings,
    both_kinds,
    check_cases,
    chosen_architectures,
    found_encoders,
    make_cases,
)
from reffree.studies.correlation.measures import Correlations, sentinel_tests
from reffree.studies.correlation.pool import Choice
from reffree.studies.correlation.tables import (
    POOL_TITLES,
    aggregate_table,
    change_table,
    correlation_table,
    document_table,
    level_table,
    pool_table,
    score_table,
    test_table,
    texts_of,
)
from reffree.studies.study import StudyKeywords, study_result
from reffree.util.bounds import Count, Folds, Resamples, with_keywords, within_bounds
from reffree.util.errors import listed

ALPHA = 0.05
NOTABLE_CHANGE = 0.1
"""Of a correlation, between systems that read the text and those that do not."""

READING = {
    "independent": "systems that do not seek cohesion in vectors: gold, random, lexical, perturbed "
    "and supervised ones",
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


@with_keywords(StudyKeywords)
@within_bounds
def correlate(
    corpora: Mapping[str, Corpus],
    *,
    metrics: Sequence[str] | None = None,
    encoders: Sequence[str | None] = (None,),
    fallback: str | None = None,
    pool: Choice = "auto",
    supervised: Sequence[Architecture] | None = None,
    folds: Folds = FOLDS,
    cohesion: Sequence[str] = (),
    unsegmented: Unsegmented = "neutral",
    average: Average = "macro",
    texts: Count = 3,
    resamples: Resamples = RESAMPLES,
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Correlate reference-free with gold-based metrics over the systems of every corpus.

    Args:
        corpora: by name, each with gold in every document, of one or several annotators.
        metrics: names of both kinds, as for `reffree.score`; where one kind is missing, its
            default.
        encoders: one study each, and all of them together.
        fallback: given, encoders that are not to be had are left out, with a note; where none is
            left, this one is taken.
        pool: ``auto`` adds a default pool of systems where the corpus has few of its own,
            ``both`` always, ``given`` never; ``default`` takes the default pool alone. ``paper`` is
            that of Ghinassi et al. (2024): gold, nine random systems, and supervised ones.
        supervised: architectures to train with every encoder, each on other documents than those
            it segments; all three for the paper's pool, none for others.
        folds: parts of a corpus, each segmented by what was trained on the others.
        cohesion: systems of the corpora that optimise embedding similarity.
        unsegmented: what a document without a boundary scores; ``skip`` leaves it out of all of a
            system's scores, gold-based ones too.
        average: of gold-based metrics over documents.
        texts: documents of each corpus whose text goes into the result, for the report.
        resamples: of documents, for intervals.
        embeddings: vectors by corpus instead of encoders.
        **keywords: how to encode and to run, as for every study: see `StudySettings`.
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
    found, notes = found_encoders(encoders, fallback, settings)
    cases = make_cases(check_cases(corpora, embeddings, found, settings))
    result = correlation_result(cases, settings, texts)
    return replace(result, notes=(*notes, *result.notes)) if notes else result


def correlation_result(cases: Sequence[Case], settings: CaseSettings, texts: int) -> Result:
    """Measure, tabulate, and say what was found."""
    found = Correlations(cases, settings.progress)
    tests = sentinel_tests(cases, settings.progress)
    documents, document_notes = document_table(cases)
    pools = [pool for pool in POOL_TITLES if any(pool in case.pools for case in cases)]
    return study_result(
        "correlate",
        cases,
        question="Do reference-free metrics rank systems as gold-based ones do?",
        verdict=_answer(cases, found, tests),
        tables=[
            *(pool_table(cases, found, pool) for pool in pools),
            *([change_table(cases, found)] if len(pools) == 2 else []),
            level_table(cases, found),
            test_table(cases, tests),
            *([aggregate_table(cases, found)] if len(cases) > 1 else []),
            correlation_table(found),
            score_table(cases),
            documents,
        ],
        signature={
            "pool": settings.pool,
            **(
                {"supervised": f"{'+'.join(settings.supervised)}(folds={settings.folds})"}
                if settings.supervised
                else {}
            ),
            "resamples": str(settings.resamples),
        },
        settings={
            "metrics": list(settings.metrics),
            "encoders": list(dict.fromkeys(case.encoder for case in cases)),
            "pool": settings.pool,
            "supervised": list(settings.supervised),
            "folds": settings.folds,
            "cohesion": list(settings.cohesion),
            "unsegmented": settings.unsegmented,
            "average": settings.average,
            "seed": settings.seed,
            "resamples": settings.resamples,
            "texts": texts,
        },
        notes=[*_pool_notes(cases), *_lexical_notes(cases, found), *document_notes],
        reading=READING,
        texts=texts_of(cases, texts),
    )


def _pool_notes(cases: Sequence[Case]) -> list[str]:
    notes = []
    has_one_encoder = len({case.encoder for case in cases}) == 1
    for case in cases:
        sizes = {pool: sum(member.is_in(pool) for member in case.members) for pool in POOL_TITLES}
        missing = [pool for pool in sizes if pool not in case.pools]
        where = case.name if has_one_encoder else f"{case.name}, {case.encoder}"
        notes.append(
            f"{where}: {sizes['independent']} independent and {sizes['cohesion']} "
            "cohesion-seeking systems"
            + (f"; too few {listed(missing)} ones to correlate." if missing else ".")
        )
        if case.n_left_out:
            of_all = f"of {len(case.members) * len(case.corpus):,} documents of systems"
            notes.append(
                f"{where}: {case.n_left_out:,} {of_all} have no boundary and are left out of all "
                "scores."
            )
    return notes


def _lexical_notes(cases: Sequence[Case], found: Correlations) -> list[str]:
    """Say it where systems that read the text, though not the vectors, lower a correlation."""
    notes = []
    for case in cases:
        gold = case.gold[0]
        parts = []
        for metric in case.free:
            blind = found.get(case, metric, "blind", gold)["value"]
            every = found.get(case, metric, "independent", gold)["value"]
            if None not in (blind, every) and blind - every >= NOTABLE_CHANGE:
                parts.append(f"{metric} {blind:.2f} to {every:.2f}")
        readers = [
            m.system for m in case.members if m.is_in("independent") and not m.is_in("blind")
        ]
        if parts:
            notes.append(
                f"{case.name}: {listed(readers)} read the text and lower the correlation with "
                f"{gold} over independent systems: {listed(parts)}."
            )
    return notes


def _answer(
    cases: Sequence[Case], found: Correlations, tests: Sequence[dict[str, Any]]
) -> list[str]:
    """How well the best metric does, what becomes of it on seekers, and whether sentinels do."""
    gold = cases[0].gold[0]
    means = {
        metric: fmean(values)
        for metric in cases[0].free
        if (values := found.values(cases, metric, "independent", gold))
    }
    if not means:
        return ["No reference-free metric has a defined correlation over independent systems."]
    metric = max(means, key=lambda name: means[name])
    span = f"mean of {len(cases)} cases"
    if len(cases) == 1:
        ci = found.get(cases[0], metric, "independent", gold)["ci"]
        span = "no interval" if ci is None else f"95 % interval {ci[0]:.2f} to {ci[1]:.2f}"
    sentences = [
        f"Over independent systems {metric} agrees best with {gold}: Pearson {means[metric]:.2f} "
        f"({span})."
    ]
    if cohesion := found.values(cases, metric, "cohesion", gold):
        verdict = (
            "there it still ranks systems"
            if fmean(cohesion) >= 0.5
            else "there a lower loss does not mean better boundaries"
        )
        sentences.append(
            f"Over systems that seek cohesion in the embedding space it is {fmean(cohesion):.2f}: "
            f"{verdict}."
        )
    if tests:
        strongest = max(tests, key=lambda t: t["sentinel_value"])
        beating = sorted(
            {t["metric"] for t in tests if t["p_bh"] is not None and t["p_bh"] <= ALPHA}
        )
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
    return sentences
