"""Metrics against the strength of a perturbation (Ghinassi et al. 2024 §3.4.2, Figures 2 and 3).

A metric worth its name gets worse the more a segmentation is damaged. Removal changes the number of
segments, so a metric that only counts them follows as well: ``n_segments`` is on every curve, as a
sentinel. Transposition and replacement keep that number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from reffree.bounds import Repetitions, Seed, within_bounds
from reffree.corpus import GOLD, Corpus
from reffree.encoders.embed import Vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.evaluate.metric_set import choose_metrics
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import Scores, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.progress import Progress, no_progress
from reffree.scoring.engine import Unsegmented
from reffree.seeds import rng_for
from reffree.statistics.losses import Direction, MeanOverDocuments, SystemLosses
from reffree.statistics.resampling import resampled_documents
from reffree.studies.result import StudyResult, Table
from reffree.studies.strength_curves.perturbation_grid import (
    Ladder,
    Strength,
    build_ladder,
    parse_strengths,
)
from reffree.studies.strength_curves.strength_curve import ALPHA, rising
from reffree.studies.strength_curves.tables import (
    CURVES,
    EDITS,
    MONOTONICITY,
    SENTINEL,
    CurveOf,
    answer_of,
    curve_rows,
    edit_rows,
    monotonicity_row,
    notes_of,
    reading_of,
)
from reffree.studies.study import check_study, described, joint_signature, reading_notes

KINDS = ("removal", "transposition")
"""Of the paper's Figures 2 and 3."""

SEEDS = 20


@within_bounds
def perturb(
    corpora: Mapping[str, Corpus],
    *,
    kinds: Sequence[str] = KINDS,
    strengths: Sequence[Strength] | None = None,
    seeds: Repetitions = SEEDS,
    metrics: Sequence[str] | None = None,
    source: str = GOLD,
    embeddings: Mapping[str, Vectors] | None = None,
    unsegmented: Unsegmented = "neutral",
    seed: Seed = 0,
    short_signature: bool = False,
    memory: int | None = None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> StudyResult:
    """Score gold, or a system, ever more perturbed: curves, and how monotone they are.

    Args:
        corpora: from `reffree.load`, by name.
        kinds: ``removal``, ``transposition`` (all boundaries, by so many units), ``insertion``,
            ``replacement`` or ``mixture``.
        strengths: whole numbers are boundaries (units for transposition), numbers with a point
            shares of the boundaries; 0 is always there. By default 1 to 9, as in the paper's
            figures, and shares of 0.1 to 1 for mixtures.
        seeds: draws of every strength, with the seeds ``seed``, ``seed + 1``, …
        metrics: names as for `reffree.score`, with the same default.
        source: the system to perturb.
        embeddings: arrays of every document by corpus, as for `reffree.score`, instead of an
            encoder.
        unsegmented: what a document without a boundary scores, as in `reffree.score`.
        seed: of perturbations, bootstrap and tests.
        short_signature: abbreviate the signature.
        memory: bytes that scoring lays out at most, beside vectors; a quarter of those free.
        progress: called as stages start.
        **encoding: which encoder, and how: see `EncoderOptions`.
    """
    options = EncoderOptions(**encoding)
    check_study(corpora, embeddings)
    wanted = parse_strengths(kinds, strengths)
    drawn = range(seed, seed + seeds)
    studied: list[_Studied] = []
    for name, whole in corpora.items():
        part, given = units_taking_part(whole, (embeddings or {}).get(name), options)
        corpus = part.corpus
        ladder = build_ladder(corpus, wanted, drawn, source, progress)
        chosen = choose_metrics(metrics, ladder.corpus, seed=seed, offline=options.offline)
        how = ScoreSettings(options, unsegmented=unsegmented, seed=seed, memory=memory)
        scored = scores_of(ladder.corpus, chosen, how, given, progress)
        signature = Signature.of(
            chosen,
            corpus,
            scored.embedded,
            unsegmented=unsegmented,
            average="macro",
            seed=seed,
            null=0,
        )
        studied.append(_Studied(name, corpus, ladder, scored, signature))
    curves = [curve for each in studied for curve in each.curves(seed, progress)]
    steps = {kind: list(values) for kind, values in wanted.items()}
    return StudyResult(
        study="perturb",
        question="Does each metric get worse the more a segmentation is damaged?",
        answer=answer_of(curves, source),
        tables=(
            Table.of(
                "monotonicity",
                f"Loss against strength of perturbation of {source}",
                MONOTONICITY,
                [monotonicity_row(curve) for curve in curves],
            ),
            Table.of(
                "curves",
                "Metrics against strength, raw and scaled",
                CURVES,
                [row for curve in curves for row in curve_rows(curve)],
                shown=False,
            ),
            Table.of(
                "edits",
                "What each strength did",
                EDITS,
                [row for each in studied for row in edit_rows(each.name, each.ladder)],
                shown=False,
            ),
        ),
        signature=joint_signature(
            [each.signature for each in studied],
            {
                "source": source,
                "perturbations": "+".join(f"{k}({_spelt(s)})" for k, s in wanted.items()),
                "seeds": f"{seeds}",
                "test": f"paired-permutation+holm({ALPHA:g})",
            },
            short=short_signature,
        ),
        settings=_settings(steps, seeds, source, unsegmented, seed, studied),
        corpora=tuple(described(each.name, each.corpus, each.scored.embedded) for each in studied),
        notes=(
            *(
                note
                for each in studied
                for note in reading_notes(each.name, each.corpus, each.scored.embedded)
            ),
            *notes_of(curves, {each.name: each.ladder for each in studied}, unsegmented),
        ),
        reading=reading_of(curves),
    )


@dataclass(frozen=True, slots=True)
class _Studied:
    """One corpus with its perturbations, scored."""

    name: str
    corpus: Corpus
    ladder: Ladder
    scored: Scores
    signature: Signature

    def curves(self, seed: int, progress: Progress) -> list[CurveOf]:
        """Every kind of perturbation under every metric and the sentinel."""
        n_documents = len(self.corpus)
        counts = resampled_documents(n_documents, rng_for(seed, "documents"))
        metrics = self._metrics()
        made = []
        with progress("Testing", len(metrics) * len(self.ladder.at)) as advance:
            for kind, at in self.ladder.at.items():
                strengths = np.array(self.ladder.strengths[kind], dtype=np.float64)
                for metric, (role, direction, scores) in metrics.items():
                    found = rising(scores, at, strengths, counts, seed)
                    steps = self.ladder.strengths[kind]
                    made.append(CurveOf(self.name, kind, metric, role, direction, steps, found))
                    advance(1)
        return made

    def _metrics(self) -> dict[str, tuple[str, Direction, SystemLosses]]:
        gold_based = self.scored.metrics.gold_based
        made: dict[str, tuple[str, Direction, SystemLosses]] = {}
        for name in self.scored.metrics.names:
            if name in gold_based:
                found = ("gold-based", gold_based[name].direction, self.scored.losses(name))
                made[name] = found
            else:
                made[name] = ("reference-free", "lower", self.scored.losses(name))
        hypotheses = self.ladder.corpus.hypotheses.values()
        sizes = np.array([[len(each) for each in made] for made in hypotheses], dtype=np.float64)
        made[SENTINEL] = ("sentinel", "lower", MeanOverDocuments(sizes))
        return made


def _spelt(strengths: Sequence[Strength]) -> str:
    return ",".join(f"{strength:g}" for strength in strengths)


def _settings(
    strengths: dict[str, list[Strength]],
    seeds: int,
    source: str,
    unsegmented: Unsegmented,
    seed: int,
    studied: Sequence[_Studied],
) -> dict[str, Any]:
    return {
        "strengths": strengths,
        "seeds": seeds,
        "seed": seed,
        "source": source,
        "unsegmented": unsegmented,
        "metrics": list(dict.fromkeys(n for each in studied for n in each.scored.metrics.names)),
        "alpha": ALPHA,
    }
