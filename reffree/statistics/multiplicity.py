"""Families of tests: a bound on the share of false discoveries (Holm's is in `paired`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values (Benjamini and Hochberg 1995): reject where at most the level.

    An undefined p (None) stays undefined and is not part of the family.

    >>> benjamini_hochberg([0.01, None, 0.04, 0.03])
    [0.03, None, 0.04, 0.04]
    """
    defined = [i for i, p in enumerate(p_values) if p is not None]
    p = np.array([p for p in p_values if p is not None])
    order = np.argsort(-p, kind="stable")
    ranks = np.arange(len(p), 0, -1)
    adjusted = np.minimum.accumulate(p[order] * len(p) / ranks).clip(max=1.0)
    result: list[float | None] = [None] * len(p_values)
    for i, value in zip(order, adjusted, strict=True):
        result[defined[i]] = float(value)
    return result
