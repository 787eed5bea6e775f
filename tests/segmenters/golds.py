"""What tests of trained networks share: random gold segmentations, and how well they are found."""

from __future__ import annotations

import numpy as np

from reffree.data.segmentation import Segmentation


def golds_of(n, seed=0, longest=6):
    rng = np.random.default_rng(seed)
    return [tuple(rng.integers(2, longest, rng.integers(2, 6)).tolist()) for _ in range(n)]


def f1_of(found, golds):
    """F1 of exact boundaries, pooled over documents."""
    pairs = [
        (set(f.boundaries), set(Segmentation(tuple(gold)).boundaries))
        for f, gold in zip(found, golds, strict=True)
    ]
    hits = sum(len(a & b) for a, b in pairs)
    return 2 * hits / sum(len(a) + len(b) for a, b in pairs)
