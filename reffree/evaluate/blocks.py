"""A block of documents in, its scores out: the one way in which anything is scored.

A document is scored alone, so neither its block nor the process that scores it changes its scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.masses import mass_matrix
from reffree.evaluate.corpus_counts import BLOCK_UNITS
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.scores import Scores, ScoreSettings
from reffree.evaluate.table import DocumentScores, PartScore
from reffree.evaluate.trained_scorers import check_scorers, readings
from reffree.metrics.gold.metric import Golds, count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.metrics.registry import spelling
from reffree.util.progress import Progress, no_progress

if TYPE_CHECKING:
    from reffree.encoders.embed import Embeddings


@dataclass(frozen=True, slots=True)
class Plan:
    """How every document of a corpus is scored."""

    systems: tuple[str, ...]  # a block may have a complete gold where its corpus has none
    metrics: MetricSet
    settings: ScoreSettings
    embed: Callable[[Corpus, Progress], Embeddings] | None = None  # vectors, if they are needed

    def with_encoder(self) -> Plan:
        """Open the encoder, if a metric needs vectors."""
        if not self.metrics.reference_free:
            return self
        from reffree.encoders.embed import encode_corpus
        from reffree.encoders.opening import open_encoder

        options = self.settings.options
        encoder = open_encoder(options)
        spec = replace(encoder.spec, context=options.context, dropped=options.dropped)
        check_scorers(self.metrics.reference_free.values(), spec)
        return replace(self, embed=lambda block, show: encode_corpus(block, encoder, options, show))

    def with_vectors(self, corpus: Corpus, given: Embeddings) -> Plan:
        """Take the vectors that are given for the whole corpus."""
        by_id = {each.id: x for each, x in zip(corpus, given.vectors, strict=True)}
        counted_once = replace(given, n_truncated=0, unread={})

        def embed(block: Corpus, progress: Progress) -> Embeddings:
            is_first = block[0].id == corpus[0].id
            vectors = [by_id[document.id] for document in block]
            return replace(given if is_first else counted_once, vectors=vectors)

        check_scorers(self.metrics.reference_free.values(), given.spec)
        return replace(self, embed=embed) if self.metrics.reference_free else self


def score_blocks(
    blocks: Iterable[Corpus], plan: Plan, n_units: int, progress: Progress = no_progress
) -> Scores:
    """Score blocks one after the other; of a short corpus every stage is shown."""
    is_short = n_units <= BLOCK_UNITS
    parts = []
    with (no_progress if is_short else progress)("Scoring", n_units) as advance:
        for block in blocks:
            parts.append(score_documents(block, plan, progress if is_short else no_progress))
            advance(block.n_units)
    return Scores.concatenate(parts)


def score_documents(documents: Corpus, plan: Plan, progress: Progress = no_progress) -> Scores:
    """Score some documents by all metrics, and make their rows if any are wanted."""
    every = documents.hypotheses
    hypotheses = {system: every[system] for system in plan.systems}
    by_document = list(zip(*hypotheses.values(), strict=True))
    has_gold = [bool(document.references) for document in documents]
    scores = Scores.empty(plan.metrics, plan.settings, hypotheses, has_gold)
    score_against_gold(scores, documents)
    if plan.embed is None:
        return replace(scores, rows=_rows(scores, documents, {}))
    from reffree.encoders.device import device_names
    from reffree.metrics.free import engine
    from reffree.metrics.free.placement import watched_excess

    settings, metrics = plan.settings, list(plan.metrics.reference_free.values())
    embedded = plan.embed(documents, progress)
    vectors = embedded.vectors
    device = device_names(settings.options.device)[0]
    device = "cpu" if device == "mps" else device  # which has no float64
    read = readings(documents, metrics, vectors, embedded.spec, settings.options.device)
    size = len(plan.systems) * len(documents)
    watched = watched_excess(metrics) if settings.keep_spread else []
    with progress("Scoring", size) as advance:
        raw = engine.score_documents(
            vectors,
            by_document,
            [*metrics, *watched],
            keep_segments=settings.per_segment,
            unsegmented=settings.unsegmented,
            device=device,
            names=[document.id for document in documents],
            readings=read,
            keep_spread=settings.keep_spread,
            progress=advance,
        )
    for excess in watched:
        scores = scores.with_excess(raw.pop(spelling(excess)))
    extras: Extras = {}
    for name, found in raw.items():
        scores.put(name, found)
        for d, each in enumerate(found) if settings.per_segment else ():
            for s, segments in enumerate(each.on_host().segments.tolist()):
                parts = segments[: int(scores.n_segments[d, s])]
                shown = tuple(
                    PartScore(None, None)
                    if math.isnan(part)
                    else PartScore(plan.metrics.metric(name).shown(part), part)
                    for part in parts
                )
                extras.setdefault((d, s), {}).setdefault(name, {})["segments"] = shown
    if settings.null:
        from reffree.evaluate.null import draw_null

        with progress("Null", size * settings.null) as advance:
            null, tests = draw_null(scores, documents, vectors, read, device, advance)
        scores = replace(scores, null=null)
        for (d, s, name), test in tests.items():
            extras.setdefault((d, s), {}).setdefault(name, {})["null"] = test
    explanations = []
    if settings.explain:
        from reffree.metrics.free.attribution import explain_document

        with progress("Explaining", len(documents)) as advance:
            for d, document in enumerate(documents):
                explanations += explain_document(
                    vectors[d],
                    by_document[d],
                    metrics,
                    unsegmented=settings.unsegmented,
                    device=device,
                    name=document.id,
                    reading=read[d],
                )
                advance(1)
    rows = _rows(scores, documents, extras, explanations)
    return replace(scores, embedded=replace(embedded, vectors=[]), rows=rows)


Extras = dict[tuple[int, int], dict[str, dict[str, Any]]]
"""Number of document and system → metric → what a row has beside the score."""


def _rows(
    scores: Scores, documents: Corpus, extras: Extras, explanations: Sequence[dict[str, Any]] = ()
) -> tuple[DocumentScores, ...]:
    """Return every document under every system, if rows are wanted."""
    rows: list[DocumentScores] = []
    for d, document in enumerate(documents) if scores.settings.has_rows else ():
        for s, system in enumerate(scores.systems):
            beside = extras.get((d, s), {})
            parts = {
                name: replace(scores.part_score(name, d, s), **beside.get(name, {}))
                for name in scores.metrics.names
            }
            text: dict[str, Any] = {}
            if explanations:
                text = {"units": document.units, "clocks": document.clocks}
                text["explanations"] = explanations[len(rows)]
            rows.append(DocumentScores(document.id, system, parts, **text))
    return tuple(rows)


def golds_of(blocks: Callable[[], Iterable[Corpus]] | Sequence[Corpus]) -> Golds:
    """Return what goes through the golds of a corpus, every annotator's, a block at a time."""

    def golds() -> Iterator[Pairs]:
        for block in blocks() if callable(blocks) else blocks:
            found = [(gold, d.units) for d in block for gold in d.references]
            if found:
                masses = mass_matrix([gold for gold, _ in found], None)
                yield Pairs(masses, masses, [units for _, units in found])

    return golds


def score_against_gold(scores: Scores, documents: Corpus) -> None:
    """Compare every hypothesis with its document's gold; with several, the value is the mean.

    Values, and counts summed over annotators, are put into ``scores``.
    """
    hypotheses = documents.hypotheses
    rows = [
        (d, s, hypotheses[system][d], reference)
        for d, document in enumerate(documents)
        for reference in document.references
        for s, system in enumerate(scores.systems)
    ]
    if not rows or not scores.metrics.gold_based:
        return
    pairs = Pairs(
        mass_matrix([hypothesis for _, _, hypothesis, _ in rows], None),
        mass_matrix([reference for _, _, _, reference in rows], None),
        [documents[d].units for d, _, _, _ in rows],
    )
    at = np.array([d for d, _, _, _ in rows]), np.array([s for _, s, _, _ in rows])
    shape = scores.n_segments.shape
    for name, metric in scores.metrics.gold_based.items():
        counts = count_pairs(metric, pairs)
        values = metric.value(counts)
        total, number = np.zeros(shape), np.zeros(shape)
        np.add.at(total, at, np.nan_to_num(values))
        np.add.at(number, at, ~np.isnan(values))
        np.divide(total, number, out=scores.raw[scores.index(name)], where=number > 0)
        scores.counts[name] = np.zeros((*shape, counts.shape[1]))
        np.add.at(scores.counts[name], at, counts)
