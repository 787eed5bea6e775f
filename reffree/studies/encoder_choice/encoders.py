"""Which encoder: the correlation study under each, their agreement, and how they judge each other.

Cross-judging: systems that optimise similarity under one encoder are scored with another. Where
they beat gold under their own encoder only, their low loss is the encoder's, not the text's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Unpack

from reffree.bounds import Count, Resamples, Seed, within_bounds
from reffree.corpus import Corpus
from reffree.encoders.embed import distinct_texts
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import InputError, listed
from reffree.evaluate.columns import Average
from reffree.progress import Progress, no_progress
from reffree.scoring.engine import Unsegmented
from reffree.statistics.resampling import RESAMPLES
from reffree.studies.correlation.cases import (
    Settings,
    both_kinds,
    make_case,
)
from reffree.studies.correlation.result import correlation_result
from reffree.studies.encoder_choice.speed import measure_speed
from reffree.studies.encoder_choice.tables import agreement_table, cross_table, encoder_table
from reffree.studies.pool import Choice
from reffree.studies.result import StudyResult, Table
from reffree.studies.study import check_study

QUESTION = "Which encoder's scores agree best with gold, and do encoders agree with one another?"


@within_bounds
def compare_encoders(
    corpora: Mapping[str, Corpus],
    *,
    encoders: Sequence[str] = (),
    metrics: Sequence[str] | None = None,
    pool: Choice = "auto",
    cohesion: Sequence[str] = (),
    measure: bool = True,
    unsegmented: Unsegmented = "neutral",
    average: Average = "macro",
    texts: Count = 0,
    seed: Seed = 0,
    resamples: Resamples = RESAMPLES,
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
        memory: bytes that scoring lays out at most, beside vectors; a quarter of those free.
        short_signature: abbreviate the signature.
        progress: called as stages start.
        **encoding: how to encode: see `EncoderOptions`.
    """
    options = EncoderOptions(**encoding)
    check_study(corpora, None)
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
    agreement = agreement_table(cases, list(chosen), list(corpora), settings)
    cross = cross_table(cases, chosen, list(corpora), settings)
    described = encoder_table(cases, speeds)
    return replace(
        base,
        study="encoders",
        question=QUESTION,
        answer=_answer(base, agreement, cross, list(chosen)),
        tables=(described, agreement, cross, *base.tables),
        settings={**base.settings, "encoders": list(chosen), "measure": measure},
    )


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
