"""Metrics against the strength of a perturbation (Ghinassi et al. 2024 §3.4.2, Figures 2 and 3).

A metric worth its name gets worse the more a segmentation is damaged. Removal changes the number of
segments, so a metric that only counts them follows as well: ``n_segments`` is on every curve, as a
sentinel. Transposition and replacement keep that number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.encoders.embed import Vectors
from reffree.evaluate.metric_set import choose_metrics
from reffree.evaluate.result import Result
from reffree.evaluate.score import check_gold, scores_of
from reffree.evaluate.scores import Scores, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.metrics.free.result import Unsegmented
from reffree.statistics.losses import Direction, MeanOverDocuments, SystemLosses
from reffree.statistics.resampling import resampled_documents
from reffree.studies.strength_curves.perturbation_grid import (
    PerturbationGrid,
    build_grid,
    check_source,
    fitted_strengths,
    parse_strengths,
)
from reffree.studies.strength_curves.strength_curve import ALPHA, Strength, StrengthCurve
from reffree.studies.strength_curves.tables import (
    SENTINEL,
    strength_answer,
    strength_notes,
    strength_reading,
    strength_tables,
)
from reffree.studies.study import (
    StudiedCorpus,
    StudyKeywords,
    StudySettings,
    corpus_parts,
    study_result,
)
from reffree.util.bounds import Repetitions, with_keywords, within_bounds
from reffree.util.seeds import rng_for

KINDS = ("removal", "transposition")
"""Of the paper's Figures 2 and 3."""

SEEDS = 20


@with_keywords(StudyKeywords)
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
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Score gold, or a system, ever more perturbed: curves, and how monotone they are.

    Args:
        corpora: from `reffree.load`, by name.
        kinds: ``removal``, ``transposition`` (all boundaries, by so many units), ``insertion``,
            ``replacement`` or ``mixture``; ``transposition:k`` moves so many boundaries by one
            unit, ``transposition:distance=2,k`` by two.
        strengths: whole numbers are boundaries (units for transposition), numbers with a point
            shares of the boundaries; 0 is always there. By default 1 to 9, as in the paper's
            figures, of them no number of boundaries above the mean number of a document of the
            corpus, and shares of 0.1 to 1 for mixtures.
        seeds: draws of every strength, with the seeds ``seed``, ``seed + 1``, …
        metrics: names as for `reffree.score`, with the same default.
        source: the system to perturb. Gold of several annotators is each one's in turn, draw by
            draw, beginning with the first again where there are more draws than annotators.
        embeddings: arrays of every document by corpus, as for `reffree.score`, instead of an
            encoder.
        unsegmented: what a document without a boundary scores, as in `reffree.score`.
        **keywords: how to encode and run: see `StudySettings`.
    """
    settings = StudySettings(**keywords)
    wanted = parse_strengths(kinds, strengths)
    how = ScoreSettings(settings, unsegmented=unsegmented, seed=settings.seed)
    drawn = range(settings.seed, settings.seed + seeds)
    parts = corpus_parts(corpora, embeddings, settings)
    for part in parts:
        check_source(part.corpus, source)
        chosen = choose_metrics(metrics, part.corpus, seed=settings.seed, offline=settings.offline)
        check_gold(part.corpus, chosen)
        free = chosen.reference_free
        part.check(free.values(), (), settings, needs_vectors=bool(free))
    studied: list[PerturbedCorpus] = []
    for part in parts:
        own = wanted if strengths is not None else fitted_strengths(wanted, part.corpus, source)
        grid = build_grid(part.corpus, own, drawn, source, settings.progress)
        chosen = choose_metrics(metrics, grid.corpus, seed=settings.seed, offline=settings.offline)
        scores = scores_of(grid.corpus, chosen, how, part.vectors, settings.progress)
        signature = Signature.of(
            chosen, part.corpus, scores.embedded, unsegmented=unsegmented, seed=settings.seed
        )
        studied.append(
            PerturbedCorpus(part.name, part.corpus, scores.embedded, signature, grid, scores)
        )
    curves = [curve for each in studied for curve in each.curves(settings)]
    grids = {each.name: each.grid for each in studied}
    by_corpus = {
        name: {kind: list(values[1:]) for kind, values in grid.strengths.items()}
        for name, grid in grids.items()
    }
    # What was done somewhere: without strengths given, corpora of few boundaries have fewer.
    done = {kind: max((own[kind] for own in by_corpus.values()), key=len) for kind in wanted}
    return study_result(
        "perturb",
        studied,
        question="Does each metric get worse the more a segmentation is damaged?",
        verdict=strength_answer(curves, source),
        tables=strength_tables(curves, grids, source),
        signature={
            "source": source,
            "perturbations": "+".join(
                f"{kind}({','.join(f'{each:g}' for each in values)})"
                for kind, values in done.items()
            ),
            **({} if strengths is not None else {"strengths": "fitted"}),
            "seeds": f"{seeds}",
            "test": f"paired-permutation+holm({ALPHA:g})",
        },
        settings={
            "strengths": done,
            **({} if strengths is not None else {"strengths_by_corpus": by_corpus}),
            "seeds": seeds,
            "seed": settings.seed,
            "source": source,
            "unsegmented": unsegmented,
            "metrics": list(
                dict.fromkeys(n for each in studied for n in each.scores.metrics.names)
            ),
            "alpha": ALPHA,
        },
        notes=[
            *(
                f"{each.name}: draw by draw another annotator's gold was perturbed; gold-based "
                "metrics compare with all of them."
                for each in studied
                if source == GOLD and not each.corpus.has_gold
            ),
            *strength_notes(curves, grids, unsegmented),
        ],
        reading=strength_reading(curves),
    )


@dataclass(frozen=True, slots=True)
class PerturbedCorpus(StudiedCorpus):
    """One corpus with its perturbations, scored."""

    grid: PerturbationGrid
    scores: Scores

    def curves(self, settings: StudySettings) -> Iterator[StrengthCurve]:
        """Every kind of perturbation under every metric and the sentinel."""
        counts = resampled_documents(len(self.corpus), rng_for(settings.seed, "documents"))
        metrics = self._metrics()
        with settings.progress("Testing", len(metrics) * len(self.grid.at)) as advance:
            for kind, at in self.grid.at.items():
                for metric, (role, direction, losses) in metrics.items():
                    yield StrengthCurve.of(
                        losses,
                        at,
                        counts,
                        settings.seed,
                        corpus=self.name,
                        kind=kind,
                        metric=metric,
                        role=role,
                        direction=direction,
                        strengths=self.grid.strengths[kind],
                    )
                    advance(1)

    def _metrics(self) -> dict[str, tuple[str, Direction, SystemLosses]]:
        """Role, direction and losses of every metric and of the sentinel."""
        gold_based = self.scores.metrics.gold_based
        made: dict[str, tuple[str, Direction, SystemLosses]] = {}
        for name in self.scores.metrics.names:
            is_gold_based = name in gold_based
            role = "gold-based" if is_gold_based else "reference-free"
            direction = gold_based[name].direction if is_gold_based else "lower"
            made[name] = role, direction, self.scores.losses(name)
        sizes = MeanOverDocuments(self.scores.n_segments.T.astype(np.float64))
        return {**made, SENTINEL: ("sentinel", "lower", sizes)}
