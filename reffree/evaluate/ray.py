"""Blocks scored by Ray's actors.

What comes back is what one machine would have made of the same blocks, so the table is the same,
byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from reffree.encoders.address import refuse_endpoint
from reffree.encoders.base import EncoderSpec
from reffree.encoders.cache import CachedEncoder
from reffree.encoders.cache.rows import Row
from reffree.encoders.embed import distinct_texts
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.encoders.ray_actors import (
    Actors,
    CacheReader,
    RemotelyCached,
    TextWork,
    for_actors,
    same_encoder,
)
from reffree.evaluate.blocks import BlockScorer, ScoredBlock
from reffree.evaluate.corpus_counts import Block, CorpusCounts, Plan, Positions, read_block
from reffree.evaluate.metric_set import MetricSet, choose_metrics
from reffree.evaluate.scores import ScoreSettings
from reffree.metrics.free.custom import CustomMetric
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.gold.windows import Windowed
from reffree.util.errors import OptionError
from reffree.util.progress import Progress


class RemoteScoring:
    """The driver: it plans, looks up and writes the cache, and has actors encode and score."""

    def __init__(
        self, actors: Actors, metrics: Sequence[str] | None, settings: ScoreSettings
    ) -> None:
        """Open the encoder, if any metric needs one."""
        refuse_endpoint(settings.options.encoder, "Ray's actors")
        self._actors = actors
        self._settings = replace(settings, options=for_actors(settings.options))
        options = settings.options
        chosen = choose_metrics(
            metrics, CorpusCounts(), seed=settings.seed, offline=options.offline
        )
        for name, metric in chosen.reference_free.items():
            if isinstance(metric, CustomMetric):
                raise OptionError(
                    f"the registered metric {name!r} on Ray's actors, which do not know it",
                    expected="metrics of reffree",
                    remedy="score it without --engine ray",
                )
        # The driver only looks up: whatever device actors have, it needs none.
        here = replace(options, device="cpu")
        self._encoder = open_encoder(here, is_elsewhere=True) if chosen.reference_free else None

    @property
    def missing(self) -> Callable[[list[str]], list[int]] | None:
        """Tells which texts the cache lacks; None without one."""
        return self._encoder.missing if isinstance(self._encoder, CachedEncoder) else None

    def score_all(
        self, plan: Plan, metrics: MetricSet, progress: Progress
    ) -> Iterator[ScoredBlock]:
        """Have actors encode what the cache lacks, then score; only the driver writes to it.

        All is encoded before anything is scored: a text that stands in several blocks has one
        vector.
        """
        actors, encoder, options = self._actors, self._encoder, self._settings.options
        reader: object = None
        if isinstance(encoder, CachedEncoder):
            items = [pair for pair in zip(plan.blocks, plan.missing, strict=True) if len(pair[1])]
            with progress("Encoding", sum(len(positions) for _, positions in items)) as advance:
                for rows in actors.map(BlockTextWork, (options, encoder.spec), items):
                    encoder.add(rows)
                    advance(len(rows))
            reader = actors.beside_driver(CacheReader, encoder.cache.path.resolve(), encoder.spec)
        spec = None if encoder is None else encoder.spec
        settled = {n: m for n, m in metrics.gold_based.items() if isinstance(m, Windowed)}
        known = (plan.counts.hypotheses, metrics.names, settled, self._settings, spec, reader)
        with progress("Scoring", plan.counts.n_units) as advance:
            found = actors.map(ScoreWork, known, plan.blocks)
            for (scores, rows), n_units in zip(found, plan.n_units, strict=True):
                yield replace(scores, metrics=metrics), rows
                advance(n_units)


class ScoreWork:
    """An actor that scores blocks."""

    def __init__(
        self,
        systems: tuple[str, ...],
        metrics: tuple[str, ...],
        settled: Mapping[str, GoldMetric],
        settings: ScoreSettings,
        spec: EncoderSpec | None,
        reader: object,
    ) -> None:
        """Make its own metrics and encoder; ``reader`` is of the driver's cache, if any.

        ``settled`` are metrics that know what they take from the whole corpus.
        """
        options = settings.options
        encoder = None if spec is None else same_encoder(options, spec)
        if encoder is not None and reader is not None:
            encoder = RemotelyCached(encoder, reader)
        chosen = choose_metrics(
            metrics, CorpusCounts(), seed=settings.seed, offline=options.offline
        )
        chosen = replace(chosen, gold_based={**chosen.gold_based, **settled})
        self._scorer = BlockScorer(systems, chosen, settings, encoder)

    def __call__(self, block: Block) -> ScoredBlock:
        """Read the documents, encode and score them; metrics, which may be large, stay here."""
        scores, rows = self._scorer.score(read_block(block))
        return replace(scores, metrics=MetricSet((), {}, {})), rows


class BlockTextWork:
    """An actor that encodes some texts of a block."""

    def __init__(self, options: EncoderOptions, spec: EncoderSpec) -> None:
        """Open the encoder; it must be the driver's."""
        self._encode = TextWork(options, spec)
        self._context = options.context

    def __call__(self, item: tuple[Block, Positions]) -> list[Row]:
        """Encode in the order of the block, as one process would."""
        block, positions = item
        texts = distinct_texts(read_block(block), self._context)
        return self._encode([texts[i] for i in positions])
