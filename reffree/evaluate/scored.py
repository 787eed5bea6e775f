"""A corpus scored by metrics of both kinds: what tables and studies are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reffree.arrays import Floats
from reffree.corpus import Corpus
from reffree.encoders.device import choose_device, scoring_device
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors
from reffree.encoders.options import EncoderOptions
from reffree.evaluate.columns import Average, Column, GoldBased, ReferenceFree
from reffree.evaluate.gold import score_against_gold
from reffree.evaluate.metric_set import Chosen
from reffree.evaluate.readings import readings
from reffree.evaluate.reference_free import ReferenceFreeTask
from reffree.evaluate.weights import filled_weights
from reffree.progress import Progress
from reffree.scoring.engine import Unsegmented
from reffree.segmentation import Segmentation
from reffree.statistics.losses import MeanOverDocuments, PooledOverDocuments, SystemLosses, as_loss


@dataclass(frozen=True, slots=True)
class Scored:
    """Every metric's column, in the order they were asked for, and the vectors behind them."""

    corpus: Corpus
    chosen: Chosen
    columns: dict[str, Column]
    embedded: Embeddings | None  # none where only gold-based metrics were asked for
    reference_free: ReferenceFreeTask | None

    @property
    def systems(self) -> list[str]:
        """Names of the systems, gold included where every document has it."""
        return list(self.corpus.hypotheses)

    def losses(self, metric: str) -> SystemLosses:
        """One metric of all systems as losses, lower is better, ready to be resampled."""
        column = self.columns[metric]
        if isinstance(column, GoldBased):
            return _gold_losses(column)
        assert isinstance(column, ReferenceFree)
        return _free_losses(column)


def score_columns(
    corpus: Corpus,
    chosen: Chosen,
    options: EncoderOptions,
    *,
    embeddings: Vectors | None,
    unsegmented: Unsegmented,
    average: Average,
    seed: int,
    memory: int | None,
    progress: Progress,
    keep_segments: bool = False,
    keep_spread: bool = False,
    null: int = 0,
    hypotheses: dict[str, tuple[Segmentation, ...]] | None = None,
) -> Scored:
    """Embed a corpus if any metric needs it, and score all its systems.

    ``hypotheses`` are what to score where that is not all that the corpus has.
    """
    columns: dict[str, Column] = {}
    hypotheses = corpus.hypotheses if hypotheses is None else hypotheses
    if chosen.gold_based:
        columns.update(score_against_gold(corpus, hypotheses, chosen.gold_based, average))
    embedded: Embeddings | None = None
    task: ReferenceFreeTask | None = None
    if chosen.reference_free:
        embedded = corpus_vectors(corpus, embeddings, options, progress)
        task = ReferenceFreeTask(
            corpus,
            embedded,
            hypotheses,
            chosen.reference_free,
            unsegmented,
            scoring_device(choose_device(options.device)),
            memory,
            progress,
            readings(corpus, embedded, chosen.reference_free.values()),
        )
        made = task.columns(
            keep_segments=keep_segments, keep_spread=keep_spread, null=null, seed=seed
        )
        columns.update(made)
    ordered = {name: columns[name] for name in chosen.names}
    return Scored(corpus, chosen, ordered, embedded, task)


def _free_losses(column: ReferenceFree) -> MeanOverDocuments:
    raw, given = (
        np.stack([np.asarray(x.cpu()) for x in parts], axis=1)  # (systems, documents)
        for parts in (column.raw.documents, column.raw.weights)
    )
    values = column.metric.orientation.offset + column.metric.orientation.slope * raw
    weights = np.stack([filled_weights(row) for row in given])
    is_plain = bool((weights == 1.0).all())
    return MeanOverDocuments(values, None if is_plain else weights)


def _gold_losses(column: GoldBased) -> SystemLosses:
    """Means of documents' losses, or the loss of all counts together."""
    direction = column.metric.direction
    values = as_loss(column.values.T, direction)
    if not column.is_pooled:
        return MeanOverDocuments(values)

    def loss(counts: Floats) -> Floats:
        return as_loss(column.metric.value(counts), direction)

    return PooledOverDocuments(values, column.counts, loss, column.has_gold)
