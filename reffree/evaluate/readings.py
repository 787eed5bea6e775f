"""What expected errors read besides vectors: the text, and what trained scorers say of its gaps."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reffree.corpus import Corpus
from reffree.encoders.embed import Embeddings
from reffree.scoring.evidence import Reading
from reffree.scoring.expected import Expected
from reffree.scoring.metrics import Metric
from reffree.segmenters.base import Inputs


def readings(corpus: Corpus, embedded: Embeddings, metrics: Iterable[Metric]) -> list[Reading]:
    """Every document's text, and the gaps scored by each trained scorer that a metric names."""
    expected = [metric for metric in metrics if isinstance(metric, Expected)]
    if not expected:
        return [Reading() for _ in corpus]
    scored = {metric.scorer: _gap_scores(metric.scorer, corpus, embedded) for metric in expected}
    return [
        Reading(
            document.units,
            {folder: scores[d] for folder, scores in scored.items() if folder},
        )
        for d, document in enumerate(corpus)
    ]


def _gap_scores(folder: str, corpus: Corpus, embedded: Embeddings) -> list[NDArray[np.float64]]:
    """Calibrated probability of a boundary in every gap; none without a scorer."""
    if not folder:
        return []
    from reffree.segmenters.scorer.checkpoint import load_checkpoint
    from reffree.segmenters.scorer.method import boundary_scores

    inputs = Inputs(corpus, embeddings=embedded.vectors, encoder=embedded.spec)
    return list(boundary_scores(load_checkpoint(Path(folder)), inputs))
