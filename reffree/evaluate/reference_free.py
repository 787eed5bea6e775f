"""Reference-free scores of a whole corpus, their chance tests and their explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from reffree.corpus import Corpus
from reffree.encoders.embed import Embeddings
from reffree.evaluate.columns import ReferenceFree
from reffree.evaluate.null import NullTests, against_null
from reffree.evaluate.table import DocumentScores
from reffree.progress import Progress
from reffree.scoring.attribution import explain_document
from reffree.scoring.engine import Unsegmented, score_documents
from reffree.scoring.evidence import Reading
from reffree.scoring.metrics import Metric
from reffree.segmentation import Segmentation


@dataclass(frozen=True, slots=True)
class ReferenceFreeTask:
    """What is to be scored, and how."""

    corpus: Corpus
    embedded: Embeddings
    hypotheses: dict[str, tuple[Segmentation, ...]]
    metrics: dict[str, Metric]
    unsegmented: Unsegmented
    device: torch.device
    memory: int | None
    progress: Progress
    readings: Sequence[Reading]

    @property
    def ids(self) -> list[str]:
        """Ids of the documents."""
        return [document.id for document in self.corpus.documents]

    def columns(
        self, *, keep_segments: bool, keep_spread: bool, null: int, seed: int
    ) -> dict[str, ReferenceFree]:
        """Score every system, against ``null`` random arrangements of its segments if any."""
        metrics = list(self.metrics.values())
        size = len(self.hypotheses) * len(self.corpus)
        with self.progress("Scoring", size) as advance:
            raw = score_documents(
                self.embedded.vectors,
                list(zip(*self.hypotheses.values(), strict=True)),
                metrics,
                keep_segments=keep_segments,
                unsegmented=self.unsegmented,
                device=self.device,
                names=self.ids,
                readings=self.readings,
                keep_spread=keep_spread,
                memory=self.memory,
                progress=advance,
            )
        nulls = NullTests({}, {})
        if null:
            with self.progress("Null", size * null) as advance:
                nulls = against_null(
                    self.embedded.vectors,
                    self.ids,
                    self.hypotheses,
                    raw,
                    metrics,
                    draws=null,
                    seed=seed,
                    unsegmented=self.unsegmented,
                    device=self.device,
                    memory=self.memory,
                    progress=advance,
                    readings=self.readings,
                )
        return {
            name: ReferenceFree(name, metric, self.hypotheses, raw[name], nulls, self.unsegmented)
            for name, metric in self.metrics.items()
        }

    def explained(self, rows: Sequence[DocumentScores]) -> tuple[DocumentScores, ...]:
        """Add the explanation of every boundary, and the text it stands in."""
        explained = []
        by_document = iter(rows)
        with self.progress("Explaining", len(self.corpus)) as advance:
            for d, document in enumerate(self.corpus.documents):
                explanations = explain_document(
                    self.embedded.vectors[d],
                    [segmentations[d] for segmentations in self.hypotheses.values()],
                    list(self.metrics.values()),
                    unsegmented=self.unsegmented,
                    device=self.device,
                    memory=self.memory,
                    name=document.id,
                    reading=self.readings[d],
                )
                for explanation in explanations:
                    row = next(by_document)
                    explained.append(replace(row, units=document.units, explanations=explanation))
                advance(1)
        return tuple(explained)
