"""Columns to rows: every system over the corpus, every document under every system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reffree.evaluate.columns import Column
from reffree.evaluate.table import CorpusScore, DocumentScores, SystemScores
from reffree.reference.failure_modes import FailureMode, failure_mode
from reffree.segmentation import Segmentation
from reffree.statistics.resampling import DocumentBootstrap

Hypotheses = dict[str, tuple[Segmentation, ...]]


class CorpusColumn(Protocol):
    """One metric of all systems over the whole corpus."""

    @property
    def is_comparable(self) -> bool:
        """Whether all systems are scored on the same documents."""
        ...

    def corpus_score(self, s: int, bootstrap: DocumentBootstrap) -> CorpusScore:
        """Score of a system over the corpus."""
        ...


@dataclass(frozen=True, slots=True)
class SystemSize:
    """Segments of a system over some documents."""

    system: str
    segments: int
    unsegmented: int  # documents without a boundary

    @classmethod
    def of(cls, system: str, segmentations: Sequence[Segmentation]) -> SystemSize:
        """Count."""
        lengths = [len(segmentation) for segmentation in segmentations]
        return cls(system, sum(lengths), lengths.count(1))

    def __add__(self, other: SystemSize) -> SystemSize:
        """Join two sets of documents."""
        segments = self.segments + other.segments
        return SystemSize(self.system, segments, self.unsegmented + other.unsegmented)


def system_rows(
    columns: Mapping[str, CorpusColumn], sizes: Sequence[SystemSize], bootstrap: DocumentBootstrap
) -> tuple[SystemScores, ...]:
    """Average over documents, with intervals from the same resamples everywhere."""
    rows = []
    for s, size in enumerate(sizes):
        scores = {name: column.corpus_score(s, bootstrap) for name, column in columns.items()}
        rows.append(
            SystemScores(
                system=size.system,
                segments=size.segments,
                unsegmented=size.unsegmented,
                metrics=scores,
                failure_mode=_failure_mode(scores),
            )
        )
    return tuple(rows)


def document_rows(
    columns: Mapping[str, Column],
    hypotheses: Hypotheses,
    ids: Sequence[str],
    *,
    per_segment: bool,
) -> tuple[DocumentScores, ...]:
    """Every document under every system."""
    return tuple(
        DocumentScores(
            id,
            system,
            {
                name: column.document_score(d, s, per_segment=per_segment)
                for name, column in columns.items()
            },
        )
        for d, id in enumerate(ids)
        for s, system in enumerate(hypotheses)
    )


def _failure_mode(scores: Mapping[str, CorpusScore]) -> FailureMode | None:
    """Name the regime where all four figures it rests on were asked for and are defined."""
    values = {name: scores[name].value for name in ("w_f1", "purity", "coverage") if name in scores}
    known = {name: value for name, value in values.items() if value is not None}
    if len(known) < 3 or "bor" not in scores:
        return None
    return failure_mode(known["w_f1"], scores["bor"].value, known["purity"], known["coverage"])
