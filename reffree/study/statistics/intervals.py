"""Resampled documents, the unit that varies independently, and intervals over them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reffree.study.bootstrap import CONFIDENCE, RESAMPLES
from reffree.study.statistics.scores import Floats

MAX_UNDEFINED = 1 - CONFIDENCE
"""Beyond this share of undefined resamples an interval would hang on what they left out."""


def resampled_documents(
    n_documents: int, rng: np.random.Generator, resamples: int = RESAMPLES
) -> NDArray[np.uint8]:
    """How often each document occurs in each resample, (resamples, documents)."""
    uniform = np.full(n_documents, 1 / n_documents)
    return rng.multinomial(n_documents, uniform, size=resamples).astype(np.uint8)


def percentile_interval(resampled: Floats) -> tuple[float, float] | None:
    """Middle 95 % of resampled values (r,), NaN left out; None where too many are NaN."""
    is_undefined = np.isnan(resampled)
    if is_undefined.mean() > MAX_UNDEFINED:
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled[~is_undefined], [tail, 1 - tail])
    return float(low), float(high)


def sign_p(resampled: Floats) -> float:
    r"""Two-sided p of no difference: twice the smaller share of resamples on one side of 0.

    .. math:: p = \min\big(1,\; 2\,(1 + \min(\#\{\Delta^* \le 0\}, \#\{\Delta^* \ge 0\}))
        / (1 + \#\Delta^*)\big)

    It is at most .05 about where the 95 % percentile interval leaves out 0. NaN is left out.
    """
    defined = resampled[~np.isnan(resampled)]
    beyond = min(int((defined <= 0).sum()), int((defined >= 0).sum()))
    return min(1.0, 2 * (1 + beyond) / (1 + len(defined)))
