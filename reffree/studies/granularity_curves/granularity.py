"""Expected errors over assumed numbers of segments: which system is better at which granularity.

Topics nest, and a text hardly says how finely its annotators would cut. So expected errors are
followed along the number of segments that annotators are assumed to make (`AssumedSegments`), and
each curve is read with what is known of that number: what the metric itself assumes, how many
segments the system has, and how many gold has where there is gold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from reffree.data.corpus import Corpus
from reffree.encoders.embed import Vectors, corpus_vectors
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.result import Result
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import Scores, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.metrics.free.expected import EXPECTED, FEWEST_UNITS, Expected
from reffree.metrics.free.inputs import check_embeddings
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.registry import GOLD_METRICS, parse_metrics, spelling
from reffree.segmenters.base import Inputs
from reffree.segmenters.posterior import readings
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.granularity_curves.curves import (
    POINTS,
    GranularityCurves,
    gold_name,
)
from reffree.studies.granularity_curves.tables import (
    granularity_answer,
    granularity_notes,
    granularity_reading,
    granularity_tables,
)
from reffree.studies.study import (
    CorpusPart,
    StudiedCorpus,
    StudyKeywords,
    StudySettings,
    corpus_parts,
    study_result,
)
from reffree.util.bounds import check_number, with_keywords, within_bounds
from reffree.util.errors import InputError, OptionError

METRICS = ("expected_pk",)


@with_keywords(StudyKeywords)
@within_bounds
def granularity(
    corpora: Mapping[str, Corpus],
    *,
    metrics: Sequence[str] = METRICS,
    length: float | None = None,
    evidence: str = "all",
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Follow expected errors along the assumed number of segments; say where curves cross.

    Args:
        corpora: from `reffree.load`, by name, each with a system or a complete gold.
        metrics: expected errors, as for `reffree.score`.
        length: expected units per segment, of metrics that do not name it.
        evidence: what posteriors rest on, of metrics that do not name it: see `Expected`.
        embeddings: arrays of every document by corpus, as for `reffree.score`, instead of an
            encoder.
        **keywords: how to encode and run: see `StudySettings`; ``memory`` is not needed, the
            tables of one document are all that is held.
    """
    settings = StudySettings(**keywords)
    chosen = _checked_metrics(metrics, length, evidence, settings.seed)
    parts = corpus_parts(corpora, embeddings, settings)
    for part in parts:
        _check_systems(part.corpus)
        _check_lengths(part.corpus)
        part.check(chosen.values(), (), settings)
    studied = [_follow(part, chosen, settings) for part in parts]
    curves = [each for corpus in studied for each in corpus.curves]
    return study_result(
        "granularity",
        studied,
        question="Which system is better where annotators cut coarsely, and where they cut finely?",
        verdict=granularity_answer(curves),
        tables=granularity_tables(curves),
        signature={"assumed": f"{POINTS}(log-spaced)"},
        short_signature=settings.short_signature,
        settings={"metrics": list(chosen), "points": POINTS, "seed": settings.seed},
        notes=granularity_notes(curves),
        reading=granularity_reading(chosen),
    )


@dataclass(frozen=True, slots=True)
class FollowedCorpus(StudiedCorpus):
    """One corpus, its systems followed by every metric."""

    curves: list[GranularityCurves]


def _follow(
    part: CorpusPart, metrics: dict[str, Expected], settings: StudySettings
) -> FollowedCorpus:
    """Make every document's posteriors, and score all systems at every assumed number."""
    name, corpus = part.name, part.corpus
    embedded = corpus_vectors(corpus, part.vectors, settings, settings.progress)
    for x, document in zip(embedded.vectors, corpus, strict=True):
        check_embeddings(x, document.id)
    inputs = Inputs(
        corpus, embeddings=embedded.vectors, encoder=embedded.spec, device=settings.device
    )
    gold = _against_gold(corpus, metrics)
    # The same resamples as of reffree score, so that intervals agree.
    bootstrap = DocumentBootstrap(len(corpus), np.random.default_rng(settings.seed))
    with settings.progress("Scoring", len(corpus) * len(metrics)) as advance:
        curves = [
            GranularityCurves.of(
                name,
                metric,
                corpus,
                embedded.vectors,
                readings(inputs, [metric]),
                gold,
                bootstrap,
                advance,
            )
            for metric in metrics.values()
        ]
    against = {} if gold is None else gold.metrics.gold_based
    every = MetricSet((*metrics, *against), dict(metrics), against)
    signature = Signature.of(every, corpus, embedded, seed=settings.seed)
    return FollowedCorpus(name, corpus, embedded, signature, curves)


def _against_gold(corpus: Corpus, metrics: Mapping[str, Expected]) -> Scores | None:
    """Score by the gold-based metrics themselves, where any document has gold."""
    if not any(document.references for document in corpus):
        return None
    wanted: dict[str, GoldMetric] = {
        name: GOLD_METRICS[name]() for name in map(gold_name, metrics.values())
    }
    return scores_of(corpus, MetricSet(tuple(wanted), {}, wanted), ScoreSettings())


def _checked_metrics(
    names: Sequence[str], length: float | None, evidence: str, seed: int
) -> dict[str, Expected]:
    """Every metric once, with the length and the evidence that go for all."""
    known = [each.name for each in EXPECTED]
    if length is not None:
        check_number("length", length, 1, remedy="leave it out where it is not known")
        length = float(length)
    metrics: dict[str, Expected] = {}
    for metric in parse_metrics(names, seed):
        if not isinstance(metric, Expected):
            raise OptionError(
                f"the metric {spelling(metric)!r}",
                expected=" or ".join(known),
                remedy="only expected errors can be followed along the number of segments",
            )
        if metric.pool_d != "mean":
            raise OptionError(
                f"the metric {spelling(metric)!r}",
                expected="pool_d=mean",
                remedy="leave it out: curves are means over documents",
            )
        filled = replace(
            metric,
            length=length if metric.length is None else metric.length,
            evidence=evidence if metric.evidence == "all" else metric.evidence,
        )
        metrics[spelling(filled)] = filled
    if not metrics:
        raise OptionError(
            "no metric", expected="at least one", remedy=f"leave it out for {METRICS[0]}"
        )
    return metrics


def _check_systems(corpus: Corpus) -> None:
    if not corpus.hypotheses:
        raise InputError(
            "no systems",
            expected="a segmentation to score in every document",
            remedy="make some with reffree segment, or add --system NAME=FILE",
            place=corpus.documents[0].place,
        )


def _check_lengths(corpus: Corpus) -> None:
    if all(len(document.units) < FEWEST_UNITS for document in corpus):
        raise InputError(
            f"no document of {FEWEST_UNITS} units or more",
            expected="at least one: in a shorter one no window of Pk fits",
            remedy="check how the text is split into units",
            place=corpus.documents[0].place,
        )
