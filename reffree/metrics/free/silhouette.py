r"""Silhouette over adjacent segments (Rousseeuw 1987; Ghinassi et al. 2024, eq. 8-12).

.. math:: s_i = (b_i - a_i) / \max(a_i, b_i)

``a`` is the unit's mean Euclidean distance to the others of its segment, ``b`` the smaller of its
mean distances to the previous and to the next segment of the same document. ``s`` is 0 in one-unit
segments and where both distances vanish. Units average to segments, segments to documents
(``average="segments"``, eq. 11 and 4) or units straight to documents (``average="units"``).
Range [-1, 1], higher is better. Undefined for a document without a boundary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from reffree.metrics.free.pooling import Pooled
from reffree.metrics.free.result import SIMILARITY, Orientation
from reffree.util.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from reffree.metrics.free.batches import TorchScores
    from reffree.metrics.free.pairs import Layout, Sums


@dataclass(frozen=True)
class Silhouette(Pooled):
    """Contrast of each unit with the nearer of the two neighbouring segments."""

    name: ClassVar[str] = "silhouette"
    orientation: ClassVar[Orientation] = SIMILARITY
    undefined: ClassVar[str] = "no boundary"
    requests: ClassVar[tuple[tuple[str, str], ...]] = (
        ("distance", "own"),
        ("distance", "previous"),
        ("distance", "next"),
    )
    average: Literal["segments", "units"] = "segments"

    def __post_init__(self) -> None:
        """Refuse to pool segments where there are none between units and documents."""
        super().__post_init__()
        if self.average == "units" and self.pool_n != "mean":
            raise InputError(
                f"average=units and pool_n={self.pool_n}",
                expected="one of the two",
                remedy="leave average out; pool_n=length is the same mean over units",
            )

    def from_sums(self, layout: Layout, sums: Sums) -> TorchScores:
        """Score every hypothesis."""
        import torch

        from reffree.metrics.free.batches import TorchScores

        own = layout.at_unit(layout.masses)  # (h, n)
        a = sums["distance", "own"] / (own - 1).clamp(min=1)
        b = torch.minimum(
            _mean_distance(layout, sums, "previous"), _mean_distance(layout, sums, "next")
        )
        is_segmented = (layout.n_segments > 1)[:, None]
        largest = torch.maximum(a, torch.where(is_segmented, b, 0.0))
        is_scored = is_segmented & (own > 1) & (largest > 0)
        s = torch.where(is_scored, (b - a) / torch.where(is_scored, largest, 1.0), 0.0)
        totals = layout.segment_sum(s)
        segments = totals / layout.masses.clamp(min=1)
        scores = TorchScores.from_segments(segments, layout.is_segment & is_segmented)
        if self.average == "segments":
            return scores
        mean = totals.sum(1) / layout.length
        return replace(scores, documents=torch.where(is_segmented[:, 0], mean, torch.nan))


def _mean_distance(layout: Layout, sums: Sums, side: Literal["previous", "next"]) -> Tensor:
    """Mean distance of each unit to the segment on that side; infinite where there is none."""
    import torch

    count = layout.at_unit(layout.previous if side == "previous" else layout.following)  # (h, n)
    return torch.where(count > 0, sums["distance", side] / count.clamp(min=1), torch.inf)
