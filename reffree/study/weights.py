"""What each document counts for in a corpus score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reffree.scoring.engine import RawScores

Floats = NDArray[np.float64]


def values_and_weights(scores: RawScores, s: int) -> tuple[Floats, Floats]:
    """Raw scores and weights of system ``s`` over the documents."""
    raw = np.array([float(x[s]) for x in scores.documents])
    return raw, filled_weights(np.array([float(x[s]) for x in scores.weights]))


def filled_weights(weights: Floats) -> Floats:
    """Weights of one system's documents, without gaps.

    Most metrics weigh documents equally. Where they do not, a document with a score but without a
    weight of its own (one without a boundary, under the policies neutral and worst) counts as much
    as the system's average document.
    """
    is_weighted = weights > 0
    average = weights[is_weighted].mean() if is_weighted.any() else 1.0
    return np.where(is_weighted, weights, average)


def corpus_mean(raw: Floats, weights: Floats) -> float | None:
    """Weighted mean over the documents with a score; None without any."""
    defined = ~np.isnan(raw)
    if not defined.any():
        return None
    return float(np.average(raw[defined], weights=weights[defined]))
