"""What each document counts for in a corpus score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from reffree.arrays import Floats
from reffree.scoring.engine import RawScores


def values_and_weights(scores: RawScores, s: int) -> tuple[Floats, Floats]:
    """Raw scores and weights of system ``s`` over the documents."""
    raw, weights = values_and_own_weights(scores)
    return raw[:, s], filled_weights(weights[:, s])


def values_and_own_weights(scores: RawScores) -> tuple[Floats, Floats]:
    """Raw scores and weights as they are given, both (documents, systems)."""
    return stacked(scores.documents), stacked(scores.weights)


def stacked(parts: Sequence[Tensor]) -> Floats:
    """One tensor per document to one array (documents, systems)."""
    return np.stack([np.asarray(x.cpu(), dtype=np.float64) for x in parts])


def filled_weights(weights: Floats) -> Floats:
    """Weights of one system's documents, without gaps.

    Most metrics weigh documents equally. Where they do not, a document with a score but without a
    weight of its own (one without a boundary, under the policies neutral and worst) counts as much
    as the system's average document.
    """
    return np.where(weights > 0, weights, average_weight(weights))


def average_weight(weights: Floats) -> float:
    """Mean of one system's documents with a weight of their own; 1 without any."""
    is_weighted = weights > 0
    return float(weights[is_weighted].mean()) if is_weighted.any() else 1.0


def corpus_mean(raw: Floats, weights: Floats) -> float | None:
    """Weighted mean over the documents with a score; None without any."""
    defined = ~np.isnan(raw)
    if not defined.any():
        return None
    return float(np.average(raw[defined], weights=weights[defined]))
