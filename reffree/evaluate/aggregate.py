"""Scores of blocks, in the order of the corpus, to one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from reffree.arrays import Floats
from reffree.encoders.embed import Embeddings
from reffree.evaluate.blocks import BlockScores, Settings
from reffree.evaluate.columns import GoldBased, mean_loss
from reffree.evaluate.corpus_counts import Survey
from reffree.evaluate.metric_set import Chosen
from reffree.evaluate.notes import score_notes
from reffree.evaluate.null import NullSums, corpus_tests
from reffree.evaluate.rows import CorpusColumn, SystemSize, system_rows
from reffree.evaluate.signature import Signature
from reffree.evaluate.table import CorpusScore, DocumentScores, NullTest, ScoreTable
from reffree.evaluate.weights import filled_weights
from reffree.scoring.metrics import Metric
from reffree.statistics.resampling import DocumentBootstrap


@dataclass(slots=True)
class Gathered:
    """Numbers of every block so far: some bytes per document, system and metric, no text."""

    chosen: Chosen
    settings: Settings
    _blocks: list[BlockScores] = field(default_factory=list)  # without rows and sums
    _sizes: tuple[SystemSize, ...] = ()
    _null: NullSums | None = None
    _embedded: Embeddings | None = None

    def add(self, block: BlockScores) -> None:
        """Take in the next block of the corpus."""
        if self._blocks:
            self._sizes = tuple(a + b for a, b in zip(self._sizes, block.sizes, strict=True))
        else:
            self._sizes = block.sizes
        if block.null is not None:
            self._null = block.null if self._null is None else self._null + block.null
        if block.embedded is not None:
            self._embedded = _joined(self._embedded, block.embedded)
        self._blocks.append(replace(block, rows=(), null=None, embedded=None, sizes=()))

    def table(
        self,
        survey: Survey,
        n_distinct: int,
        notes: Sequence[str],
        rows: tuple[DocumentScores, ...] | None,
        *,
        short_signature: bool,
    ) -> ScoreTable:
        """Average over documents; attach intervals, notes and the signature."""
        settings, embedded = self.settings, self._embedded
        columns = self._columns()
        bootstrap = DocumentBootstrap(survey.n_documents, np.random.default_rng(settings.seed))
        systems = system_rows(columns, self._sizes, bootstrap)
        incomparable = frozenset(name for name, c in columns.items() if not c.is_comparable)
        signature = Signature.of(
            self.chosen,
            survey,
            embedded,
            unsegmented=settings.unsegmented,
            average=settings.average,
            seed=settings.seed,
            null=settings.null,
            dropped=settings.options.dropped,
        )
        more = score_notes(
            survey, systems, embedded, incomparable, settings.unsegmented, self.chosen
        )
        return ScoreTable(
            signature=signature.short() if short_signature else str(signature),
            corpus={
                "documents": survey.n_documents,
                "units": survey.n_units,
                "dropped_units": survey.n_dropped,
                "distinct_units": n_distinct,
                "truncated_units": 0 if embedded is None else embedded.n_truncated,
            },
            systems=systems,
            documents=rows,
            notes=(*notes, *more),
            incomparable=incomparable,
        )

    def _columns(self) -> dict[str, CorpusColumn]:
        """One column per metric, in the order they were asked for."""
        free = {
            name: (
                np.concatenate([block.free[name].raw for block in self._blocks]),
                np.concatenate([block.free[name].weights for block in self._blocks]),
            )
            for name in self.chosen.reference_free
        }
        systems = [size.system for size in self._sizes]
        metrics = list(self.chosen.reference_free.values())
        nulls = {} if self._null is None else corpus_tests(self._null, systems, metrics, free)
        columns: dict[str, CorpusColumn] = {}
        for name in self.chosen.names:
            if name in free:
                left_out = sum(block.free[name].left_out for block in self._blocks)
                tests = [nulls.get((system, name)) for system in systems]
                metric = self.chosen.reference_free[name]
                spread, facts = (
                    np.concatenate([getattr(block.free[name], part) for block in self._blocks])
                    for part in ("spread", "facts")
                )
                columns[name] = _FreeColumn(
                    metric, *free[name], np.asarray(left_out), spread, facts, tests
                )
            else:
                columns[name] = self._gold(name)
        return columns

    def _gold(self, name: str) -> GoldBased:
        n_counts = next(b.gold[name].counts.shape[2] for b in self._blocks if b.gold)
        values, counts = [], []
        for block in self._blocks:
            shape = (block.n_documents, len(self._sizes))
            found = block.gold.get(name)
            values.append(np.full(shape, np.nan) if found is None else found.values)
            counts.append(np.zeros((*shape, n_counts)) if found is None else found.counts)
        return GoldBased(
            self.chosen.gold_based[name],
            self.settings.average,
            np.concatenate(values),
            np.concatenate(counts),
            np.concatenate([block.has_gold for block in self._blocks]),
        )


@dataclass(frozen=True, slots=True)
class _FreeColumn:
    """A reference-free metric over the whole corpus."""

    metric: Metric
    raw: Floats  # (documents, systems)
    weights: Floats  # (documents, systems)
    left_out: Floats  # (systems,)
    spread: Floats  # (documents, systems)
    facts: Floats  # (documents, 3)
    nulls: list[NullTest | None]

    @property
    def is_comparable(self) -> bool:
        """Whether every document is defined for all systems or for none."""
        missing = np.isnan(self.raw).sum(1)
        return not ((missing > 0) & (missing < self.raw.shape[1])).any()

    def corpus_score(self, s: int, bootstrap: DocumentBootstrap) -> CorpusScore:
        """Weighted mean over documents."""
        weights = filled_weights(self.weights[:, s])
        left_out = int(self.left_out[s])
        null = self.nulls[s]
        posterior = self._posterior(s)
        return mean_loss(self.metric, self.raw[:, s], weights, left_out, null, bootstrap, posterior)

    def _posterior(self, s: int) -> dict[str, float]:
        """Mean over documents of what an expected error is to be read with."""
        known = ~np.isnan(self.facts[:, 0])
        if not known.any():
            return {}
        return {
            "spread": float(self.spread[known, s].mean()),
            "information": float(self.facts[known, 0].mean()),
            "chance_information": float(self.facts[known, 1].mean()),
            "assumed_segments": float(np.exp(np.log(self.facts[known, 2]).mean())),
        }


def _joined(one: Embeddings | None, other: Embeddings) -> Embeddings:
    """Add up what is known of two blocks' vectors; all actors may not have the same device."""
    if one is None:
        return other
    devices = dict.fromkeys([*one.device.split("+"), *other.device.split("+")])
    return replace(
        one, n_truncated=one.n_truncated + other.n_truncated, device="+".join(sorted(devices))
    )
