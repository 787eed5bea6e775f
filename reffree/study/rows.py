"""Columns to rows: every system over the corpus, every document under every system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reffree.reference.failure_modes import FailureMode, failure_mode
from reffree.segmentation import Segmentation
from reffree.study.bootstrap import DocumentBootstrap
from reffree.study.columns import Column
from reffree.study.table import CorpusScore, DocumentScores, SystemScores

Hypotheses = dict[str, tuple[Segmentation, ...]]


def system_rows(
    columns: Mapping[str, Column], hypotheses: Hypotheses, rng: np.random.Generator
) -> tuple[SystemScores, ...]:
    """Average over documents, with intervals from the same resamples everywhere."""
    n_documents = len(next(iter(hypotheses.values())))
    bootstrap = DocumentBootstrap(n_documents, rng)
    rows = []
    for s, (system, segmentations) in enumerate(hypotheses.items()):
        scores = {name: column.corpus_score(s, bootstrap) for name, column in columns.items()}
        rows.append(
            SystemScores(
                system=system,
                segments=sum(map(len, segmentations)),
                unsegmented=sum(len(segmentation) == 1 for segmentation in segmentations),
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
