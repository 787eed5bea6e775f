r"""From segments to a document, and from documents to a corpus (Ghinassi et al. 2024, eq. 3).

.. math:: \hat C = pool_d(pool_n(C_i^d))

Both are means in the paper. ``median`` is of the middle two where they are two; ``length`` is the
mean weighted by units: of the segment in ``pool_n``, of the document in ``pool_d``. Segments and
documents without a score are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from reffree.data.masses import Masses
from reffree.metrics.free.result import UNUSUAL, FreeMetric
from reffree.util.arrays import Floats

Pool = Literal["mean", "median", "length"]


@dataclass(frozen=True, kw_only=True)
class Pooled(FreeMetric):
    """A metric that scores segments: how they become a document, and documents the corpus."""

    pool_n: Pool = field(default="mean", metadata=UNUSUAL)
    pool_d: Pool = field(default="mean", metadata=UNUSUAL)

    @property
    def aggregation(self) -> str:
        """How segments become a document's score, and documents a corpus's."""
        return f"{pool_name(self.pool_n)}(segments)>{pool_name(self.pool_d)}(documents)"


def pool_name(pool: str) -> str:
    """Name a pooling as signatures do."""
    return "length-weighted" if pool == "length" else pool


def document_pool(metric: object) -> str:
    """How documents become a corpus's score under a metric of any kind."""
    return getattr(metric, "pool_d", "mean")


def pool_segments(segments: Floats, masses: Masses, pool: Pool) -> Floats:
    """Pool the scores of segments (h, s), NaN where there is none; NaN where none has any.

    >>> segments = np.array([[1.0, 2.0, 6.0], [4.0, np.nan, np.nan]])
    >>> masses = np.array([[3, 1, 1], [2, 2, 0]])
    >>> [pool_segments(segments, masses, pool).tolist() for pool in ("mean", "median", "length")]
    [[3.0, 4.0], [2.0, 4.0], [2.2, 4.0]]
    """
    is_defined = ~np.isnan(segments)
    count = is_defined.sum(1)
    if pool == "median":
        ordered = np.sort(segments, axis=1)  # NaN comes last
        ordered = np.concatenate([ordered, np.full((len(ordered), 1), np.nan)], axis=1)
        middle = np.stack([np.maximum(count - 1, 0) // 2, count // 2], axis=1)
        pooled = np.take_along_axis(ordered, middle, axis=1).sum(1) / 2
    else:
        weights = np.where(is_defined, masses if pool == "length" else 1.0, 0.0)
        # One after the other, so that padding at the end changes no bit.
        sums = np.cumsum(np.pad(weights * np.nan_to_num(segments), ((0, 0), (1, 0))), axis=1)
        pooled = sums[:, -1] / np.where(count > 0, weights.sum(1), 1.0)
    return np.where(count > 0, pooled, np.nan)
