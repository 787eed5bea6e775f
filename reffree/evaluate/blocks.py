"""One block of documents: encoded, scored by metrics of both kinds, and made into rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.masses import mass_matrix
from reffree.encoders.base import Encoder
from reffree.encoders.device import choose_device, scoring_device
from reffree.encoders.embed import Embeddings, coming_spec, encode_corpus
from reffree.evaluate.corpus_counts import Block, read_block
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.null import DocumentTests, against_null
from reffree.evaluate.scores import Scores, ScoreSettings
from reffree.evaluate.table import DocumentScores, NullTest, PartScore
from reffree.evaluate.trained_scorers import check_scorers, readings
from reffree.metrics.free.result import RawScores
from reffree.metrics.gold.metric import Golds, count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.util.progress import Progress, no_progress

if TYPE_CHECKING:
    from reffree.metrics.free.attribution import Explanation

Rows = Sequence[DocumentScores]
ScoredBlock = tuple[Scores, Rows]


@dataclass(frozen=True, slots=True)
class BlockScorer:
    """Scores blocks, with an encoder or given vectors if any metric needs them."""

    systems: tuple[str, ...]  # a block may have a complete gold where its corpus has none
    metrics: MetricSet
    settings: ScoreSettings
    encoder: Encoder | None = None
    vectors: Embeddings | None = None  # of the whole corpus

    @classmethod
    def of(
        cls,
        systems: tuple[str, ...],
        metrics: MetricSet,
        settings: ScoreSettings,
        vectors: Embeddings | None,
    ) -> BlockScorer:
        """Open the encoder where vectors are needed and not given."""
        if not metrics.reference_free:
            return cls(systems, metrics, settings)
        # Torch is imported only where there are vectors.
        from reffree.encoders.opening import open_encoder

        encoder = open_encoder(settings.options) if vectors is None else None
        check_scorers(
            metrics.reference_free.values(), coming_spec(vectors, settings.options, encoder)
        )
        return cls(systems, metrics, settings, encoder, vectors)

    def score_all(
        self, blocks: Sequence[Block], n_units: int, progress: Progress
    ) -> Iterator[ScoredBlock]:
        """Score one after the other; of a corpus of one block every stage is shown."""
        is_one = len(blocks) == 1
        start = 0
        with (no_progress if is_one else progress)("Scoring", n_units) as advance:
            for each in blocks:
                block = read_block(each)
                yield self.score(block, start, progress if is_one else no_progress)
                start += len(block)
                advance(block.n_units)

    def score(self, block: Corpus, start: int = 0, progress: Progress = no_progress) -> ScoredBlock:
        """Score the documents of a block, and make their rows if any are wanted.

        ``start`` is the place of its first document in the corpus, for vectors that are given.
        """
        hypotheses = block.hypotheses
        lengths = [[len(each) for each in hypotheses[system]] for system in self.systems]
        scores = Scores.empty(
            self.metrics,
            self.settings,
            self.systems,
            n_segments=np.array(lengths, dtype=np.int64).T,
            has_gold=np.array([bool(document.references) for document in block]),
        )
        score_against_gold(scores, block)
        vectors = self._vectors(block, start, progress)
        if vectors is None:
            return scores, self._rows(scores, block)
        return self._score_vectors(scores, block, vectors, progress)

    def _vectors(self, block: Corpus, start: int, progress: Progress) -> Embeddings | None:
        """Encode a block, or take its part of the vectors; units cut off are counted once."""
        if self.encoder is not None:
            return encode_corpus(block, self.encoder, self.settings.options, progress)
        if self.vectors is None:
            return None
        return replace(
            self.vectors,
            vectors=self.vectors.vectors[start : start + len(block)],
            n_truncated=0 if start else self.vectors.n_truncated,
            unread={} if start else self.vectors.unread,
        )

    def _score_vectors(
        self, scores: Scores, block: Corpus, embedded: Embeddings, progress: Progress
    ) -> ScoredBlock:
        """Score by the reference-free metrics, test against chance, explain."""
        from reffree.metrics.free.attribution import explain_document
        from reffree.metrics.free.engine import score_documents

        settings, metrics = self.settings, list(self.metrics.reference_free.values())
        vectors = embedded.vectors
        where = settings.options.device
        read = readings(block, metrics, vectors, embedded.spec, where)
        device = scoring_device(choose_device(where))
        hypotheses = block.hypotheses
        by_document = list(zip(*(hypotheses[system] for system in self.systems), strict=True))
        size = len(self.systems) * len(block)
        with progress("Scoring", size) as advance:
            raw = score_documents(
                vectors,
                by_document,
                metrics,
                keep_segments=settings.per_segment,
                unsegmented=settings.unsegmented,
                device=device,
                names=[document.id for document in block],
                readings=read,
                keep_spread=settings.keep_spread,
                memory=settings.memory,
                progress=advance,
            )
        for name, found in raw.items():
            scores.put(name, found)
        null, explanations = None, []
        tests: DocumentTests = {}
        if settings.null:
            with progress("Null", size * settings.null) as advance:
                null, tests = against_null(
                    scores, block, vectors, read, device=device, progress=advance
                )
        if settings.explain:
            with progress("Explaining", len(block)) as advance:
                for d, document in enumerate(block):
                    explanations += explain_document(
                        vectors[d],
                        by_document[d],
                        metrics,
                        unsegmented=settings.unsegmented,
                        device=device,
                        memory=settings.memory,
                        name=document.id,
                        reading=read[d],
                    )
                    advance(1)
        rows = self._rows(scores, block, raw, tests, explanations)
        return replace(scores, null=null, embedded=replace(embedded, vectors=[])), rows

    def _rows(
        self,
        scores: Scores,
        block: Corpus,
        raw: Mapping[str, Sequence[RawScores]] = MappingProxyType({}),
        tests: Mapping[tuple[int, str, str], NullTest | None] = MappingProxyType({}),
        explanations: Sequence[dict[str, Explanation]] = (),
    ) -> list[DocumentScores]:
        """Every document under every system, with segments, tests and explanations if any."""
        rows: list[DocumentScores] = []
        for d, document in enumerate(block) if self.settings.has_rows else ():
            for s, system in enumerate(self.systems):
                parts = {
                    name: replace(
                        scores.part_score(name, d, s),
                        segments=self._segments(scores, name, d, s, raw),
                        null=tests.get((d, system, name)),
                    )
                    for name in self.metrics.names
                }
                row = DocumentScores(document.id, system, parts)
                if explanations:
                    row = replace(
                        row,
                        units=document.units,
                        clocks=document.clocks,
                        explanations=explanations[len(rows)],
                    )
                rows.append(row)
        return rows

    def _segments(
        self, scores: Scores, name: str, d: int, s: int, raw: Mapping[str, Sequence[RawScores]]
    ) -> tuple[PartScore, ...] | None:
        """Scores of the segments of a hypothesis, if they are wanted and there are any."""
        if not self.settings.per_segment or name not in raw:
            return None
        found = raw[name][d].segments[s, : int(scores.n_segments[d, s])].tolist()
        return tuple(
            PartScore(None, None) if math.isnan(x) else PartScore(self.metrics.shown(name, x), x)
            for x in found
        )


def golds_of(blocks: Sequence[Block]) -> Golds:
    """Return what goes through the golds of a corpus, every annotator's, a block at a time."""

    def golds() -> Iterator[Pairs]:
        for each in blocks:
            found = [(gold, d.units) for d in read_block(each) for gold in d.references]
            if found:
                masses = mass_matrix([gold for gold, _ in found], None)
                yield Pairs(masses, masses, [units for _, units in found])

    return golds


def score_against_gold(scores: Scores, block: Corpus) -> None:
    """Compare every hypothesis with its document's gold; with several, the value is the mean.

    Values, and counts summed over annotators, are put into ``scores``.
    """
    hypotheses = block.hypotheses
    rows = [
        (d, s, hypotheses[system][d], reference)
        for d, document in enumerate(block)
        for reference in document.references
        for s, system in enumerate(scores.systems)
    ]
    if not rows or not scores.metrics.gold_based:
        return
    pairs = Pairs(
        mass_matrix([hypothesis for _, _, hypothesis, _ in rows], None),
        mass_matrix([reference for _, _, _, reference in rows], None),
        [block[d].units for d, _, _, _ in rows],
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
