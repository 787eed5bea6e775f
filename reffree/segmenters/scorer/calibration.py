"""The third stage: one temperature, so that scores are probabilities, and a threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reffree.arrays import Floats
from reffree.segmentation import Segmentation
from reffree.segmenters.scorer.data import Gaps
from reffree.selection import select_above

TEMPERATURES = (0.1, 10.0)
"""Bounds: logits that separate the held-out boundaries would ask for a temperature of 0."""

THRESHOLDS = np.arange(1, 100) / 100
TOLERANCE = 1e-12


def probabilities(logits: ArrayLike, temperature: float = 1.0) -> Floats:
    """Logistic function of ``logits / temperature``; never NaN, whatever the logits.

    >>> probabilities([0.0, 1000.0, -1000.0]).tolist()
    [0.5, 1.0, 0.0]
    """
    z = np.asarray(logits, dtype=np.float64) / temperature
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1 / (1 + small), small / (1 + small))


def log_loss(logits: ArrayLike, labels: ArrayLike, temperature: float = 1.0) -> float:
    """Mean negative log likelihood of the labels; 0 without any."""
    z = np.asarray(logits, dtype=np.float64) / temperature
    y = np.asarray(labels, dtype=np.float64)
    losses = np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))
    return float(losses.mean()) if len(losses) else 0.0


def find_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    r"""Return the temperature of least log loss (Coen §5.3, stage 3).

    The loss is convex in :math:`\beta = 1/T`; its slope :math:`\sum_i (\sigma(\beta z_i) - y_i)
    z_i` never falls, so halving an interval finds where it is zero. 1 where held-out gaps are all
    boundaries, or none: they say nothing of how sure to be.
    """
    z, y = np.asarray(logits, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if not 0 < y.sum() < len(y) or not z.any():
        return 1.0
    low, high = 1 / TEMPERATURES[1], 1 / TEMPERATURES[0]
    while high - low > TOLERANCE * high:
        beta = (low + high) / 2
        if float((probabilities(beta * z) - y) @ z) < 0:
            low = beta
        else:
            high = beta
    return 2 / (low + high)


def find_threshold(scores: Floats, gaps: Gaps, min_gap: int) -> float:
    """Return the threshold of the highest held-out F1, nearest to 0.5 of several.

    F1 of exact boundaries pooled over documents: with few held-out documents, their mean has more
    noise. Coen has 0.5 everywhere (§5.1), as choosing one would hide differences in density.
    """
    best, at = -1.0, 0.5
    for threshold in sorted(THRESHOLDS.tolist(), key=lambda t: (abs(t - 0.5), t)):
        value, _ = pooled_f1(select(scores, gaps, threshold, min_gap), gaps)
        if value > best + TOLERANCE:
            best, at = value, threshold
    return at


def select(scores: Floats, gaps: Gaps, threshold: float, min_gap: int) -> list[Segmentation]:
    """Segment every passage by the static rule."""
    return [select_above(part, threshold, min_gap) for part in gaps.by_passage(scores)]


def pooled_f1(found: list[Segmentation], gaps: Gaps) -> tuple[float, int]:
    """F1 over the boundaries of all passages together, and the number of boundaries found."""
    marked = np.concatenate([np.array(s.to_labels("gap"), dtype=np.float64) for s in found])
    n_found, n_gold = int(marked.sum()), float(gaps.labels.sum())
    if n_found + n_gold == 0:
        return 1.0, 0
    return float(2 * (marked @ gaps.labels) / (n_found + n_gold)), n_found
