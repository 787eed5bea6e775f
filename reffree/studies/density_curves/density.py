"""Density–quality curves (Coen, "When F1 Fails", §7.1, Figures 1 and 4, Tables 4 to 6).

A method that scores every gap can be made to give any number of boundaries. Sweeping its threshold
moves it along a curve: horizontally by density, vertically by how well it ranks gaps. Systems whose
segmentations are given are single points beside the curves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from reffree.bounds import Positive, Seed, within_bounds
from reffree.corpus import Corpus
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import InputError, OptionError
from reffree.evaluate.metric_set import choose_metrics
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.naming import spelling_of
from reffree.progress import Progress, no_progress
from reffree.scoring.engine import Unsegmented
from reffree.seeds import rng_for
from reffree.segmenters.base import Inputs
from reffree.segmenters.gap_scores import (
    CHANCE,
    GapScores,
    Scored,
    gap_scores,
    parse_scored_method,
)
from reffree.selection import MIN_GAP
from reffree.statistics.resampling import resampled_documents
from reffree.studies.density_curves.points import (
    LIMITS,
    MATCHINGS,
    MEASURES,
    Matching,
    Measured,
    build_plane,
)
from reffree.studies.density_curves.tables import (
    AUDIT,
    CURVES,
    LOSSES,
    POINTS,
    REGIME_FIELDS,
    Mapped,
    audit_rows,
    curve_rows,
    loss_rows,
    point_rows,
    regime_rows,
)
from reffree.studies.density_curves.words import answer_of, notes_of, reading_of
from reffree.studies.result import StudyResult, Table
from reffree.studies.study import check_study, described, joint_signature, reading_notes

METHODS = ("depth", "texttiling", CHANCE)
THRESHOLDS = tuple(round(0.05 * i, 2) for i in range(1, 20))
"""Of §5.1: 0.05 to 0.95 in steps of 0.05."""

METRICS = ("expected_pk", "arp_pair", "silhouette")


@within_bounds
def density(
    corpora: Mapping[str, Corpus],
    *,
    methods: Sequence[str] = METHODS,
    thresholds: Sequence[float] = THRESHOLDS,
    min_gap: Positive = MIN_GAP,
    matchings: Sequence[Matching] = MATCHINGS,
    metrics: Sequence[str] = METRICS,
    embeddings: Mapping[str, Vectors] | None = None,
    unsegmented: Unsegmented = "neutral",
    seed: Seed = 0,
    short_signature: bool = False,
    memory: int | None = None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> StudyResult:
    """Sweep boundary thresholds; compare methods and systems as they are and at equal density.

    Args:
        corpora: from `reffree.load`, by name, with gold in every document.
        methods: those with a score per gap: ``depth``, ``texttiling``, ``scorer:path=FOLDER``,
            and ``random``, uniform scores.
        thresholds: of the static rule of §5.1, on scores from 0 to 1: probabilities of a trained
            scorer, otherwise ranks over the corpus (see `gap_scores`).
        min_gap: units between two boundaries of a sweep; the paper's g.
        matchings: of W-F1: ``many_to_one`` (appendix A), ``one_to_one`` (appendix G).
        metrics: further metrics on the same sweep.
        embeddings: arrays of every document by corpus, as for `reffree.score`, instead of an
            encoder.
        unsegmented: what a document without a boundary scores, as in `reffree.score`.
        seed: of the bootstrap, of random scores and of shuffles.
        short_signature: abbreviate the signature.
        memory: bytes that scoring lays out at most, beside vectors; a quarter of those free.
        progress: called as stages start.
        **encoding: which encoder, and how: see `EncoderOptions`.
    """
    options = EncoderOptions(**encoding)
    check_study(corpora, embeddings)
    checked = _checked_thresholds(thresholds)
    wanted = _checked_matchings(matchings)
    parsed = _checked_methods(methods)
    sweep = _Sweep(parsed, checked, min_gap, metrics, options, unsegmented, seed, memory, progress)
    studied = [
        sweep.over(name, corpus, (embeddings or {}).get(name)) for name, corpus in corpora.items()
    ]
    maps = [each.mapped for each in studied]
    return StudyResult(
        study="density",
        question="How far does quality depend on how many boundaries there are?",
        answer=answer_of(maps, wanted),
        tables=(
            Table.of(
                "regimes",
                "Thresholds by density, and the best of them",
                REGIME_FIELDS,
                [row for each in maps for row in regime_rows(each, wanted)],
            ),
            Table.of(
                "audit",
                "Pairs as they are and at equal density: first minus second",
                AUDIT,
                [row for each in maps for row in audit_rows(each)],
            ),
            Table.of(
                "losses",
                "Where reference-free losses are lowest on the same sweep",
                LOSSES,
                [row for each in maps for row in loss_rows(each, wanted[0])],
            ),
            Table.of(
                "curves",
                "Density and quality of every threshold and system",
                CURVES,
                [row for each in maps for row in curve_rows(each, wanted)],
                shown=False,
            ),
            Table.of(
                "points",
                "Systems, operating points and points of equal density",
                POINTS,
                [row for each in maps for row in point_rows(each)],
                shown=False,
            ),
        ),
        signature=joint_signature(
            [each.signature for each in studied],
            {
                "methods": "+".join(parsed),
                "thresholds": ",".join(f"{each:g}" for each in checked),
                "gap": f"{min_gap}",
            },
            short=short_signature,
        ),
        settings={
            "methods": list(parsed),
            "thresholds": list(checked),
            "min_gap": min_gap,
            "matchings": list(wanted),
            "metrics": list(metrics),
            "unsegmented": unsegmented,
            "seed": seed,
            "sparse_bor": LIMITS.sparse_bor,
            "dense_bor": LIMITS.dense_bor,
        },
        corpora=tuple(
            {
                **described(each.name, each.corpus, each.embedded),
                "gold_boundaries": each.mapped.plane.n_gold,
            }
            for each in studied
        ),
        notes=(
            *(
                note
                for each in studied
                for note in reading_notes(each.name, each.corpus, each.embedded)
            ),
            *(note for each in maps for note in notes_of(each, unsegmented)),
        ),
        reading=reading_of(min_gap, metrics),
    )


@dataclass(frozen=True, slots=True)
class _Studied:
    """One corpus, its points scored."""

    name: str
    corpus: Corpus
    embedded: Embeddings | None
    signature: Signature
    mapped: Mapped


@dataclass(frozen=True, slots=True)
class _Sweep:
    """What is done to every corpus."""

    methods: Mapping[str, Scored | None]
    thresholds: tuple[float, ...]
    min_gap: int
    metrics: Sequence[str]
    options: EncoderOptions
    unsegmented: Unsegmented
    seed: int
    memory: int | None
    progress: Progress

    def over(self, name: str, whole: Corpus, vectors: Vectors | None) -> _Studied:
        """Score all gaps, lay out all points, and score these."""
        part, given = units_taking_part(whole, vectors, self.options)
        corpus = part.corpus
        _check_gold(corpus)
        chosen = choose_metrics(
            [*MEASURES, *self.metrics], corpus, seed=self.seed, offline=self.options.offline
        )
        embedded: Embeddings | None = None
        if chosen.reference_free or any(
            method is not None and method.needs_embeddings for method in self.methods.values()
        ):
            embedded = corpus_vectors(corpus, given, self.options, self.progress)
        plane = build_plane(corpus, self._gap_scores(corpus, embedded), self.thresholds)
        how = ScoreSettings(
            self.options, unsegmented=self.unsegmented, seed=self.seed, memory=self.memory
        )
        scored = scores_of(plane.corpus, chosen, how, embedded, self.progress)
        counts = resampled_documents(len(corpus), rng_for(self.seed, "documents"))
        signature = Signature.of(
            chosen,
            corpus,
            embedded,
            unsegmented=self.unsegmented,
            average="macro",
            seed=self.seed,
            null=0,
        )
        mapped = Mapped(name, plane, Measured(plane, scored, counts), tuple(chosen.reference_free))
        return _Studied(name, corpus, embedded, signature, mapped)

    def _gap_scores(self, corpus: Corpus, embedded: Embeddings | None) -> list[GapScores]:
        vectors = None if embedded is None else embedded.vectors
        inputs = Inputs(corpus, self.seed, vectors, None if embedded is None else embedded.spec)
        made = []
        with self.progress("Segmenting", len(self.methods)) as advance:
            for method in self.methods.values():
                made.append(gap_scores(method, inputs, self.min_gap))
                advance(1)
        return made


def _checked_methods(methods: Sequence[str]) -> dict[str, Scored | None]:
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
