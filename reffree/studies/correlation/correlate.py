"""Do reference-free metrics rank systems as gold-based ones do?

The study of Ghinassi et al. (2024), Tables 1 and 2, and beyond. Systems are scored by both kinds of
metrics; agreement is measured over systems at corpus level and inside documents, apart for
independent and cohesion-seeking systems, and beside sentinels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from reffree.bounds import Count, Resamples, Seed, within_bounds
from reffree.corpus import Corpus
from reffree.encoders.embed import Vectors
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import UnknownNameError
from reffree.evaluate.columns import Average
from reffree.progress import Progress, no_progress
from reffree.scoring.engine import Unsegmented
from reffree.statistics.resampling import RESAMPLES
from reffree.studies.correlation.cases import Settings, both_kinds, make_case
from reffree.studies.correlation.result import correlation_result
from reffree.studies.pool import Choice
from reffree.studies.result import StudyResult
from reffree.studies.study import check_study


@within_bounds
def correlate(
    corpora: Mapping[str, Corpus],
    *,
    metrics: Sequence[str] | None = None,
    encoders: Sequence[str | None] = (None,),
    pool: Choice = "auto",
    cohesion: Sequence[str] = (),
    unsegmented: Unsegmented = "neutral",
    average: Average = "macro",
    texts: Count = 3,
    seed: Seed = 0,
    resamples: Resamples = RESAMPLES,
    embeddings: Mapping[str, Vectors] | None = None,
    memory: int | None = None,
    short_signature: bool = False,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> StudyResult:
    """Correlate reference-free with gold-based metrics over the systems of every corpus.

    Args:
        corpora: by name, each with gold in every document.
        metrics: names of both kinds, as for `reffree.score`; where one kind is missing, its
            default.
        encoders: one study each, and all of them together.
        pool: ``auto`` adds a default pool of systems where the corpus has few of its own,
            ``both`` always, ``given`` never; ``default`` takes the default pool alone.
        cohesion: systems of the corpora that optimise embedding similarity.
        unsegmented: what a document without a boundary scores.
        average: of gold-based metrics over documents.
        texts: documents of each corpus whose text goes into the result, for the report.
        seed: of random systems, perturbations, resamples and permutations.
        resamples: of documents, for intervals.
        embeddings: vectors by corpus instead of encoders.
        memory: bytes that scoring lays out at most, beside vectors; a quarter of those free.
        short_signature: abbreviate the signature.
        progress: called as stages start.
        **encoding: how to encode: see `EncoderOptions`.
    """
    options = EncoderOptions(**encoding)
    check_study(corpora, embeddings)
    everything = {name for corpus in corpora.values() for name in corpus.hypotheses}
    for name in cohesion:
        if name not in everything:
            raise UnknownNameError("system", name, everything)
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
    cases = [
        make_case(
            name,
            corpus,
            None if embeddings is None else embeddings[name],
            replace(options, encoder=encoder or options.encoder),
            settings,
        )
        for encoder in encoders
        for name, corpus in corpora.items()
    ]
    return correlation_result(cases, settings, texts=texts, short_signature=short_signature)
