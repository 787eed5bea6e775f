"""Documents scored a block at a time: how a corpus is cut, and what remains of a block.

Blocks depend on the documents alone, not on files, machines or memory. A document's scores do not
depend on its block, and what is added up over documents is added exactly or in their order: on one
machine, a corpus in one block and in many gives the same bits, given the same vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats
from reffree.corpus import Corpus
from reffree.encoders.base import Encoder
from reffree.encoders.embed import Embeddings, encode_corpus
from reffree.encoders.options import EncoderOptions
from reffree.evaluate.columns import Average, GoldBased, ReferenceFree
from reffree.evaluate.corpus_counts import Survey
from reffree.evaluate.metric_set import Chosen, choose_metrics
from reffree.evaluate.null import NullSums
from reffree.evaluate.rows import SystemSize, document_rows
from reffree.evaluate.scored import score_columns
from reffree.evaluate.table import DocumentScores
from reffree.evaluate.weights import stacked, values_and_own_weights
from reffree.progress import Progress, no_progress
from reffree.scoring.engine import Unsegmented
from reffree.scoring.posterior import PosteriorFacts
from reffree.segmentation import Segmentation

T = TypeVar("T")

BLOCK_UNITS = 8192
"""Units scored together. Their vectors are in memory, so this bounds it for any corpus."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All that the scores of a block depend on, besides its documents and their vectors."""

    metrics: tuple[str, ...]  # as they are spelled; every process makes its own of them
    hypotheses: tuple[str, ...]  # names of what is scored in every block
    options: EncoderOptions
    unsegmented: Unsegmented
    average: Average
    seed: int
    null: int
    memory: int | None
    per_document: bool
    per_segment: bool
    explain: bool

    @property
    def has_rows(self) -> bool:
        """Whether every document gets a row of its own."""
        return self.per_document or self.per_segment or self.explain

    def choose(self) -> Chosen:
        """Make the metrics."""
        return choose_metrics(self.metrics, Survey(), seed=self.seed, offline=self.options.offline)


@dataclass(frozen=True, slots=True)
class FreeScores:
    """A reference-free metric over a block."""

    raw: Floats  # (documents, systems) NaN where undefined
    weights: Floats  # (documents, systems)
    left_out: Floats  # (systems,)
    spread: Floats  # (documents, systems) of expected errors; NaN without
    facts: Floats  # (documents, 3) the `PosteriorFacts` behind them; NaN without


@dataclass(frozen=True, slots=True)
class GoldScores:
    """A gold-based metric over a block."""

    values: Floats  # (documents, systems) NaN where undefined
    counts: Floats  # (documents, systems, c)


@dataclass(frozen=True, slots=True)
class BlockScores:
    """What a block adds to the table of its corpus."""

    n_documents: int
    n_units: int
    sizes: tuple[SystemSize, ...]
    free: dict[str, FreeScores]
    gold: dict[str, GoldScores]  # empty where no document of the block has gold
    has_gold: NDArray[np.bool_]  # (documents,)
    null: NullSums | None
    embedded: Embeddings | None  # without its vectors
    rows: tuple[DocumentScores, ...]


def cut(items: Iterable[T], n_units: Callable[[T], int]) -> Iterator[list[T]]:
    """Cut documents, in order, into blocks of at most `BLOCK_UNITS` units; a longer one is alone.

    >>> list(map(len, cut([5000, 3000, 500, 9000, 1], n_units=int)))
    [2, 1, 1, 1]
    """
    block: list[T] = []
    size = 0
    for item in items:
        n = n_units(item)
        if block and size + n > BLOCK_UNITS:
            yield block
            block, size = [], 0
        block.append(item)
        size += n
    if block:
        yield block


def block_vectors(
    block: Corpus, encoder: Encoder, options: EncoderOptions, progress: Progress = no_progress
) -> Embeddings:
    """Encode every distinct text of a block."""
    return encode_corpus(block, encoder, options, progress)


def score_block(
    block: Corpus,
    vectors: Embeddings | None,
    chosen: Chosen,
    settings: Settings,
    progress: Progress = no_progress,
) -> BlockScores:
    """Score the documents of a block; without vectors where only gold-based metrics are wanted."""
    hypotheses = _hypotheses(block, settings.hypotheses)
    has_gold = np.array([bool(document.references) for document in block])
    chosen = chosen if has_gold.any() else _without_gold(chosen)
    scored = score_columns(
        block,
        chosen,
        settings.options,
        embeddings=vectors,
        unsegmented=settings.unsegmented,
        average=settings.average,
        seed=settings.seed,
        memory=settings.memory,
        progress=progress,
        keep_segments=settings.per_segment,
        null=settings.null,
        keep_spread=True,
        hypotheses=hypotheses,
    )
    columns, task = scored.columns, scored.reference_free
    rows: tuple[DocumentScores, ...] = ()
    if settings.has_rows:
        ids = [document.id for document in block]
        rows = document_rows(columns, hypotheses, ids, per_segment=settings.per_segment)
        rows = task.explained(rows) if task and settings.explain else rows
    free = {name: c for name, c in columns.items() if isinstance(c, ReferenceFree)}
    nulls = [column.nulls.sums for column in free.values()]
    return BlockScores(
        n_documents=len(block),
        n_units=block.n_units,
        sizes=tuple(SystemSize.of(name, each) for name, each in hypotheses.items()),
        free={name: _free(column) for name, column in free.items()},
        gold={
            name: GoldScores(column.values, column.counts)
            for name, column in columns.items()
            if isinstance(column, GoldBased)
        },
        has_gold=has_gold,
        null=nulls[0] if nulls else None,
        embedded=None if vectors is None else replace(vectors, vectors=[]),
        rows=rows,
    )


def _hypotheses(block: Corpus, names: Iterable[str]) -> dict[str, tuple[Segmentation, ...]]:
    """Return what is scored: a block may have a complete gold where its corpus has none."""
    found: Mapping[str, tuple[Segmentation, ...]] = block.hypotheses
    return {name: found[name] for name in names}


def _without_gold(chosen: Chosen) -> Chosen:
    names = tuple(name for name in chosen.names if name in chosen.reference_free)
    return Chosen(names, chosen.reference_free, {})


def _free(column: ReferenceFree) -> FreeScores:
    left_out = stacked(column.raw.left_out).sum(0)
    values, weights = values_and_own_weights(column.raw)
    none = (math.nan,) * len(PosteriorFacts._fields)
    spread = [np.full(values.shape[1], math.nan) if not len(x) else x for x in column.raw.spread]
    facts = np.array([none if each is None else each for each in column.raw.facts])
    return FreeScores(values, weights, left_out, np.stack(spread), facts)
