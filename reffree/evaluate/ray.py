"""Scores of corpora that do not fit into memory, a block at a time, here or on Ray's actors.

The corpus is read twice: once to check and count it, which fixes the blocks, and once more block
by block where they are scored. What comes back is what one machine would have made of the same
blocks, so the table is the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from reffree.corpus import Corpus, Document
from reffree.encoders.base import Encoder, EncoderSpec
from reffree.encoders.cache import CachedEncoder
from reffree.encoders.cache.rows import Row
from reffree.encoders.embed import unit_texts
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.encoders.ray_actors import (
    Actors,
    CacheReader,
    RemotelyCached,
    TextWork,
    for_actors,
    same_encoder,
)
from reffree.encoders.sentence_transformer import open_encoder
from reffree.encoders.unit_filter import filter_units
from reffree.evaluate.aggregate import Gathered
from reffree.evaluate.blocks import BlockScores, Settings, block_vectors, cut, score_block
from reffree.evaluate.columns import Average
from reffree.evaluate.corpus_counts import DistinctTexts, Survey
from reffree.evaluate.metric_set import Chosen, choose_metrics
from reffree.evaluate.score import check_request
from reffree.evaluate.table import DocumentScores, ScoreTable
from reffree.formats.shards import Shards, Span, joined, read_spans
from reffree.progress import Progress, no_progress
from reffree.scoring.engine import Unsegmented

Block = tuple[Span, ...] | Corpus
"""Where the documents of a block stand, or the documents."""

Positions = NDArray[np.int32]
Take = Callable[[Sequence[DocumentScores]], None]


def score_streamed(
    source: Shards | Corpus,
    *,
    actors: Actors | None = None,
    take_rows: Take | None = None,
    metrics: Sequence[str] | None = None,
    per_document: bool = False,
    per_segment: bool = False,
    unsegmented: Unsegmented = "neutral",
    average: Average = "macro",
    null: int = 0,
    explain: bool = False,
    seed: int = 0,
    short_signature: bool = False,
    memory: int | None = None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> ScoreTable:
    """Score a corpus of shards as `score` does one in memory; the result is the same.

    Args:
        source: shards, or a corpus that is in memory all the same.
        actors: who scores; this process if None.
        take_rows: is given the documents' rows as they come, in order; the table then has none.
        metrics: this and the others: see `score`.
        per_document: see there.
        per_segment: see there.
        unsegmented: see there.
        average: see there.
        null: see there.
        explain: see there.
        seed: see there.
        short_signature: see there.
        memory: see there.
        progress: see there.
        **encoding: see there; units can be left out only of a corpus in memory.
    """
    options = EncoderOptions(**encoding)
    if options.dropped != "none":
        assert isinstance(source, Corpus), "units can be left out only of a corpus in memory"
        source = filter_units(source, options).corpus
    needs_vectors = bool(
        choose_metrics(metrics, Survey(), seed=seed, offline=options.offline).reference_free
    )
    # The driver of actors only looks up: whatever device they have, it needs none.
    here = options if actors is None else replace(options, device="cpu")
    encoder = open_encoder(here) if needs_vectors else None
    cached = encoder if actors is not None and isinstance(encoder, CachedEncoder) else None
    plan = Plan.of(source, options.context, None if cached is None else cached.missing)
    chosen = choose_metrics(metrics, plan.survey, seed=seed, offline=options.offline)
    settings = Settings(
        metrics=chosen.names,
        hypotheses=plan.survey.hypotheses,
        options=options,
        unsegmented=unsegmented,
        average=average,
        seed=seed,
        null=null,
        memory=memory,
        per_document=per_document,
        per_segment=per_segment,
        explain=explain,
    )
    check_request(plan.survey, chosen, settings)
    gathered = Gathered(chosen, settings)
    rows: list[DocumentScores] = []
    take = rows.extend if take_rows is None else take_rows
    if actors is None:
        scored: Iterator[BlockScores] = map(ScoreWork(chosen, settings, encoder), plan.blocks)
    else:
        scored = _scored_by(actors, plan, settings, encoder, progress)
    with progress("Scoring", plan.survey.n_units) as advance:
        for block in scored:
            gathered.add(block)
            take(block.rows)
            advance(block.n_units)
    return gathered.table(
        plan.survey,
        plan.n_distinct,
        plan.notes,
        tuple(rows) if settings.has_rows and take_rows is None else None,
        short_signature=short_signature,
    )


@dataclass(slots=True)
class Plan:
    """A corpus that was checked and counted, and its blocks."""

    survey: Survey = field(default_factory=Survey)
    blocks: list[Block] = field(default_factory=list)
    missing: list[Positions] = field(default_factory=list)  # by block, in its `block_texts`
    n_distinct: int = 0  # units, of the whole corpus
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        source: Shards | Corpus,
        context: int,
        missing: Callable[[list[str]], list[int]] | None = None,
    ) -> Plan:
        """Read the corpus once.

        ``missing`` says which texts are to be encoded; it is asked once for every text.
        """
        plan = cls()
        texts, units = DistinctTexts(), DistinctTexts()
        pairs: Any = source if isinstance(source, Shards) else ((doc, None) for doc in source)
        for block in cut(pairs, lambda pair: len(pair[0].units)):
            documents = tuple(document for document, _ in block)
            for document in documents:
                plan.survey.add(document)
                if context:
                    units.new(document.units)
            spans = joined([span for _, span in block if span is not None])
            plan.blocks.append(spans or Corpus(documents))
            found = block_texts(documents, context)
            new = np.array(texts.new(found), dtype=np.int32)
            if missing is not None:
                plan.missing.append(new[missing([found[i] for i in new])])
        plan.survey.check_complete()
        plan.n_distinct = len(units if context else texts)
        plan.notes = tuple(source.notes)
        return plan


def block_texts(documents: Iterable[Document], context: int) -> list[str]:
    """Return every text of a block once, in order."""
    texts = (unit_texts(document.units, context) for document in documents)
    return list(dict.fromkeys(chain.from_iterable(texts)))


def read_block(block: Block) -> Corpus:
    """Return the documents of a block."""
    return block if isinstance(block, Corpus) else read_spans(block)


class ScoreWork:
    """Scores blocks, with an encoder if any metric needs one."""

    def __init__(self, chosen: Chosen, settings: Settings, encoder: Encoder | None) -> None:
        """Remember what to score."""
        self._chosen = chosen
        self._settings = settings
        self._encoder = encoder

    @classmethod
    def of_actor(cls, settings: Settings, spec: EncoderSpec | None, reader: object) -> ScoreWork:
        """Make an actor's own metrics and encoder; ``reader`` is of the driver's cache, if any."""
        encoder = None if spec is None else same_encoder(settings.options, spec)
        if encoder is not None and reader is not None:
            encoder = RemotelyCached(encoder, reader)
        return cls(settings.choose(), settings, encoder)

    def __call__(self, block: Block) -> BlockScores:
        """Read the documents, encode and score them."""
        corpus = read_block(block)
        vectors = None
        if self._encoder is not None:
            vectors = block_vectors(corpus, self._encoder, self._settings.options)
        return score_block(corpus, vectors, self._chosen, self._settings)


class BlockTextWork:
    """An actor that encodes some texts of a block."""

    def __init__(self, options: EncoderOptions, spec: EncoderSpec) -> None:
        """Open the encoder; it must be the driver's."""
        self._encode = TextWork(options, spec)
        self._context = options.context

    def __call__(self, item: tuple[Block, Positions]) -> list[Row]:
        """Encode in the order of the block, as one process would."""
        block, positions = item
        texts = block_texts(read_block(block), self._context)
        return self._encode([texts[i] for i in positions])


def _scored_by(
    actors: Actors, plan: Plan, settings: Settings, encoder: Encoder | None, progress: Progress
) -> Iterator[BlockScores]:
    """Have actors encode what the cache lacks, then score; only the driver writes to the cache.

    All is encoded before anything is scored: a text that stands in several blocks has one vector.
    """
    reader: object = None
    options = for_actors(settings.options)
    spec = None if encoder is None else encoder.spec
    if isinstance(encoder, CachedEncoder):
        items = [pair for pair in zip(plan.blocks, plan.missing, strict=True) if len(pair[1])]
        with progress("Encoding", sum(len(positions) for _, positions in items)) as advance:
            for rows in actors.map(BlockTextWork, (options, encoder.spec), items):
                encoder.add(rows)
                advance(len(rows))
        reader = actors.beside_driver(CacheReader, encoder.cache.path.resolve(), encoder.spec)
    there = replace(settings, options=options)
    return actors.map(ScoreWork.of_actor, (there, spec, reader), plan.blocks)
