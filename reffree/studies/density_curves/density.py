"""Density–quality curves (Coen, "When F1 Fails", §7.1, Figures 1 and 4, Tables 4 to 6).

A method that scores every gap can be made to give any number of boundaries. Sweeping its threshold
moves it along a curve: horizontally by density, vertically by how well it ranks gaps. Systems whose
segmentations are given are single points beside the curves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np

from reffree.data.corpus import Corpus
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors
from reffree.evaluate.metric_set import choose_metrics
from reffree.evaluate.result import Result
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.metrics.free.result import Unsegmented
from reffree.segmenters.base import GapScorer, Inputs
from reffree.segmenters.gap_scores import (
    CHANCE,
    gap_scores,
    gap_scores_of,
    parse_scored_method,
)
from reffree.segmenters.given import given_scores
from reffree.segmenters.selection import MIN_GAP, speaker_candidates
from reffree.statistics.resampling import resampled_documents
from reffree.studies.density_curves.points import (
    LIMITS,
    MATCHINGS,
    MEASURES,
    DensityResult,
    Matching,
    lay_out_points,
)
from reffree.studies.density_curves.tables import (
    density_answer,
    density_notes,
    density_reading,
    density_tables,
)
from reffree.studies.score_files import (
    ScoreFile,
    candidates_field,
    read_score_files,
    score_names,
    score_prints,
    speaker_names,
)
from reffree.studies.study import (
    CorpusPart,
    StudyKeywords,
    StudySettings,
    corpus_parts,
    study_result,
)
from reffree.util.bounds import Positive, with_keywords, within_bounds
from reffree.util.errors import InputError, OptionError
from reffree.util.naming import spelling_of
from reffree.util.seeds import rng_for

METHODS = ("depth", "texttiling", CHANCE)
THRESHOLDS = tuple(round(0.05 * i, 2) for i in range(1, 20))
"""Of §5.1: 0.05 to 0.95 in steps of 0.05."""

METRICS = ("expected_pk", "arp_pair", "silhouette")


@with_keywords(StudyKeywords)
@within_bounds
def density(
    corpora: Mapping[str, Corpus],
    *,
    methods: Sequence[str] = METHODS,
    thresholds: Sequence[float] = THRESHOLDS,
    min_gap: Positive = MIN_GAP,
    matchings: Sequence[Matching] = MATCHINGS,
    metrics: Sequence[str] = METRICS,
    scores: Mapping[str, Mapping[str, ScoreFile]] | None = None,
    candidates_speaker: str | Sequence[str] = (),
    embeddings: Mapping[str, Vectors] | None = None,
    unsegmented: Unsegmented = "neutral",
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Sweep boundary thresholds; compare methods and systems as they are and at equal density.

    Args:
        corpora: from `reffree.load`, by name, with gold in every document.
        methods: those with a score per gap: ``depth``, ``texttiling``, ``scorer:path=FOLDER``,
            ``posterior``, and ``random``, uniform scores.
        thresholds: of the static rule of §5.1, on scores from 0 to 1: probabilities of a trained
            scorer, otherwise ranks over the corpus (see `gap_scores`).
        min_gap: units between two boundaries of a sweep; the paper's g.
        matchings: of W-F1: ``many_to_one`` (appendix A), ``one_to_one`` (appendix G).
        metrics: further metrics on the same sweep.
        scores: any scorer's gap scores, by corpus and then by name: a file that
            `reffree.formats.read_scores` reads, or lists as for `reffree.segment`. Where not all
            lie between 0 and 1 they are replaced by ranks, as depths are.
        candidates_speaker: only these speakers' turns may start a segment of a sweep.
        embeddings: arrays of every document by corpus, as for `reffree.score`, instead of an
            encoder.
        unsegmented: what a document without a boundary scores, as in `reffree.score`.
        **keywords: how to encode and run: see `StudySettings`.
    """
    settings = StudySettings(**keywords)
    levels = _checked_thresholds(thresholds)
    wanted = _checked_matchings(matchings)
    parsed = _checked_methods(methods)
    how = ScoreSettings(settings, unsegmented=unsegmented, seed=settings.seed)
    parts = corpus_parts(corpora, embeddings, settings)
    chosen = choose_metrics(
        [*MEASURES, *metrics], parts[0].corpus, seed=settings.seed, offline=settings.offline
    )
    read = read_score_files(corpora, scores, parsed)
    ranked: list[str] = []
    scored = [method for method in parsed.values() if method]
    needs_vectors = bool(chosen.reference_free) or any(m.needs_embeddings for m in scored)
    for part in parts:
        _check_gold(part.corpus)
        speaker_candidates(part.corpus, candidates_speaker)  # which refuses what it must
        part.check(chosen.reference_free.values(), scored, settings, needs_vectors=needs_vectors)

    def sweep(part: CorpusPart) -> DensityResult:
        """Score all gaps of a corpus, lay out all points, and score these."""
        corpus = part.corpus
        embedded: Embeddings | None = None
        if needs_vectors:
            embedded = corpus_vectors(corpus, part.vectors, settings, settings.progress)
        vectors, spec = (embedded.vectors, embedded.spec) if embedded else (None, None)
        candidates = speaker_candidates(corpus, candidates_speaker)
        inputs = Inputs(corpus, settings.seed, vectors, spec, settings.device, candidates)
        scored_gaps = [
            gap_scores_of(each, given_scores(part.filtered, each, values), candidates, min_gap)
            for each, values in read.get(part.name, {}).items()
        ]
        ranked.extend(
            f"{part.name}: the scores of {each.name} do not lie between 0 and 1, so thresholds are "
            "ranks among them."
            for each in scored_gaps
            if each.is_ranked
        )
        with settings.progress("Segmenting", len(parsed)) as advance:
            for method in parsed.values():
                scored_gaps.append(gap_scores(method, inputs, min_gap))
                advance(1)
        layout = lay_out_points(corpus, scored_gaps, levels)
        scores = scores_of(layout.corpus, chosen, how, embedded, settings.progress)
        signature = Signature.of(
            chosen, corpus, embedded, unsegmented=unsegmented, seed=settings.seed
        )
        return DensityResult(
            part.name,
            corpus,
            embedded,
            signature,
            layout,
            {measure: scores.own_values(measure) for measure in chosen.names},
            resampled_documents(len(corpus), rng_for(settings.seed, "documents")),
            tuple(chosen.reference_free),
        )

    results = [sweep(part) for part in parts]
    return study_result(
        "density",
        results,
        question="How far does quality depend on how many boundaries there are?",
        verdict=density_answer(results, wanted),
        tables=density_tables(results, wanted),
        signature={
            "methods": "+".join([*parsed, *score_prints(read)]),
            "thresholds": ",".join(f"{each:g}" for each in levels),
            "gap": f"{min_gap}",
            **candidates_field(candidates_speaker),
        },
        settings={
            "methods": list(parsed),
            "scores": score_names(read),
            "candidates_speaker": speaker_names(candidates_speaker),
            "thresholds": list(levels),
            "min_gap": min_gap,
            "matchings": list(wanted),
            "metrics": list(metrics),
            "unsegmented": unsegmented,
            "seed": settings.seed,
            "sparse_bor": LIMITS.sparse_bor,
            "dense_bor": LIMITS.dense_bor,
        },
        notes=[*ranked, *(n for each in results for n in density_notes(each, unsegmented))],
        reading=density_reading(min_gap, metrics),
    )


def _checked_methods(methods: Sequence[str]) -> dict[str, GapScorer | None]:
    """Every method once, by its shortest spelling."""
    parsed = [parse_scored_method(text) for text in methods]
    if not parsed:
        raise OptionError("no method", expected="at least one", remedy="leave it out for three")
    return {CHANCE if each is None else spelling_of(each): each for each in parsed}


def _checked_thresholds(thresholds: Sequence[float]) -> tuple[float, ...]:
    made = tuple(sorted({float(each) for each in thresholds}))
    if not made or not np.isfinite(made).all():
        raise OptionError(
            f"the thresholds {list(thresholds)}",
            expected="at least one number",
            remedy="leave them out for 0.05 to 0.95",
        )
    return made


def _checked_matchings(matchings: Sequence[Matching]) -> tuple[Matching, ...]:
    made = tuple(dict.fromkeys(matchings))
    unknown = [each for each in made if each not in MATCHINGS]
    if unknown or not made:
        raise OptionError(
            f"the matching {unknown[0]!r}" if unknown else "no matching",
            expected=" or ".join(MATCHINGS),
            remedy="leave it out for both",
        )
    return made


def _check_gold(corpus: Corpus) -> None:
    """Refuse documents without gold, and gold without a boundary."""
    for document in corpus.documents:
        if not document.references:
            raise InputError(
                "a document without gold",
                expected="gold in every document, to know how many boundaries there should be",
                remedy="add gold, or score the systems without it: reffree score",
                place=document.place,
            )
    if all(len(each) == 1 for document in corpus.documents for each in document.references):
        raise InputError(
            "gold without any boundary",
            expected="at least one boundary in the corpus",
            remedy="density is measured against gold's: choose another corpus",
            place=corpus.documents[0].place,
        )
