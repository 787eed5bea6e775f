r"""From segments to a document, and from documents to a corpus (Ghinassi et al. 2024, eq. 3).

.. math:: \hat C = pool_d(pool_n(C_i^d))

Both are means in the paper. ``median`` is of the middle two where they are two; ``length`` is the
mean weighted by units: of the segment in ``pool_n``, of the document in ``pool_d``. Segments and
documents without a score are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from reffree.metrics.free.arithmetic import row_sums
from reffree.metrics.free.result import UNUSUAL

if TYPE_CHECKING:
    from torch import Tensor


Pool = Literal["mean", "median", "length"]

WORDS: dict[str, str] = {"length": "length-weighted"}


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """A metric that scores segments: how they become a document, and documents the corpus."""

    pool_n: Pool = field(default="mean", metadata=UNUSUAL)
    pool_d: Pool = field(default="mean", metadata=UNUSUAL)

    @property
    def aggregation(self) -> str:
        """How segments become a document's score, and documents a corpus's."""
        return f"{said(self.pool_n)}(segments)>{said(self.pool_d)}(documents)"


def said(pool: str) -> str:
    """Name a pooling as signatures do."""
    return WORDS.get(pool, pool)


def document_pool(metric: object) -> str:
    """How documents become a corpus's score under a metric of any kind."""
    return getattr(metric, "pool_d", "mean")


def needs_segments(metric: object) -> bool:
    """Whether a document's score is made of its segments', rather than their mean at once."""
    return isinstance(metric, Pooled) and metric.pool_n != "mean"


def by_means(metric: object) -> object:
    """Return a metric with both poolings as in the paper."""
    return replace(metric, pool_n="mean", pool_d="mean") if isinstance(metric, Pooled) else metric


def pool_segments(segments: Tensor, masses: Tensor, pool: Pool) -> Tensor:
    """Pool the scores of segments (h, s), NaN where there is none; NaN where none has any.

    >>> import torch
    >>> segments = torch.tensor([[1.0, 2.0, 6.0], [4.0, torch.nan, torch.nan]]).double()
    >>> masses = torch.tensor([[3, 1, 1], [2, 2, 0]])
    >>> [pool_segments(segments, masses, pool).tolist() for pool in ("mean", "median", "length")]
    [[3.0, 4.0], [2.0, 4.0], [2.2, 4.0]]
    """
    import torch

    is_defined = ~segments.isnan()
    count = is_defined.sum(1)
    if pool == "median":
        ordered = segments.sort(1).values  # NaN comes last
        last = torch.full_like(ordered[:, :1], torch.nan)
        ordered = torch.cat([ordered, last], 1)
        low, high = ((count - 1).clamp(min=0) // 2)[:, None], (count // 2)[:, None]
        middle = (ordered.gather(1, low) + ordered.gather(1, high))[:, 0] / 2
        return torch.where(count > 0, middle, torch.nan)
    weights = torch.where(is_defined, masses if pool == "length" else 1.0, 0.0)
    total = row_sums(weights * segments.nan_to_num(0.0))  # whatever the padding
    return torch.where(count > 0, total / weights.sum(1), torch.nan)
