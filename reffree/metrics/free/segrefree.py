r"""SegReFree (Lucas et al. 2023; Ghinassi et al. 2024, eq. 5-7): Davies-Bouldin of neighbours.

.. math:: R_{ij} = (S_i + S_j) / |c_i - c_j|, \quad C_i = \max_{j = i \pm 1} R_{ij}

``S`` is the mean Euclidean distance to the centroid, divided by ``1 - 1/sqrt(m)``; one-unit
segments take the mean ``S`` of the document's other segments, as in the released code, and a
document of nothing but one-unit segments scores 10. With ``rule="paper"`` the ``S`` of a one-unit
segment is 0, as its unit is its centroid, and its *score* the mean of the longer segments'.
Range [0, ∞), lower is better. Neighbours with equal centroids are left out and counted; undefined
for a document without a boundary or without any finite R.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from reffree.metrics.free.pooling import Pooled
from reffree.metrics.free.result import UNUSUAL, Orientation, Rule

if TYPE_CHECKING:
    from torch import Tensor

    from reffree.metrics.free.batches import TorchScores
    from reffree.metrics.free.pairs import Layout, Sums

ALL_SINGLE = 10.0
"""Score of a document cut into single units: the paper's penalty."""

EQUAL_CENTROIDS = 1e-12
"""Squared distance, relative to that of the segments' units, below which centroids are equal."""


@dataclass(frozen=True)
class SegReFree(Pooled):
    """Dispersion of neighbouring segments against the distance of their centroids."""

    name: ClassVar[str] = "segrefree"
    orientation: ClassVar[Orientation] = Orientation(
        offset=0.0, slope=1.0, neutral=None, worst=ALL_SINGLE
    )
    undefined: ClassVar[str] = "the centroids of all neighbouring segments are equal"
    requests: ClassVar[tuple[tuple[str, str], ...]] = (
        ("squared", "own"),
        ("squared", "segment"),
        ("squared", "both"),
    )
    rule: Rule = field(default="released", metadata=UNUSUAL)

    def from_sums(self, layout: Layout, sums: Sums) -> TorchScores:
        """Score every hypothesis.

        With squared distances ``q``: ``|x_i - c|² = Σ_j q_ij / m - V`` and
        ``|c - c'|² = Σ_ij q_ij / (m m') - V - V'``, where ``V = Σ_{i<j} q_ij / m²``.
        """
        import torch

        from reffree.metrics.free.batches import TorchScores
        from reffree.metrics.free.pairs import masked_mean

        masses = layout.masses.clamp(min=1).double()
        within = torch.where(layout.is_segment, sums["squared", "segment"], 0.0)
        variance = within / masses.square()  # (h, s)
        # Distances to the centroid relative to their root mean square: whatever the vectors'
        # lengths, at most the root of the segment's.
        mean = layout.at_unit(variance * masses)
        ratio = sums["squared", "own"] / torch.where(mean > 0, mean, 1.0) - 1
        to_centroid = torch.where(mean > 0, ratio.clamp(min=0).sqrt(), 0.0)  # (h, n)
        total = layout.segment_sum(to_centroid)
        dispersion = variance.sqrt() * total / masses
        correction = 1 - 1 / masses.sqrt()
        is_multiple = layout.masses > 1
        dispersion = dispersion / torch.where(is_multiple, correction, 1.0)
        is_paper = self.rule == "paper"
        others = 0.0 if is_paper else masked_mean(dispersion, is_multiple)[:, None]
        dispersion = torch.where(is_multiple, dispersion, others)

        def of_next(x: Tensor, otherwise: float = 0.0) -> Tensor:
            return torch.nn.functional.pad(x[:, 1:], (0, 1), value=otherwise)

        both = sums["squared", "both"] - within - of_next(within)
        cross = both / (masses * of_next(masses, 1.0))
        gap = cross - variance - of_next(variance)
        is_apart = gap > EQUAL_CENTROIDS * cross
        is_finite = layout.has_successor & is_apart
        ratio = (dispersion + of_next(dispersion)) / torch.where(is_finite, gap, 1.0).sqrt()
        ratio = torch.where(is_finite, ratio, -torch.inf)  # with the next segment

        previous = torch.nn.functional.pad(ratio[:, :-1], (1, 0), value=-torch.inf)
        worst = torch.maximum(ratio, previous)
        if is_paper:
            has_score = is_multiple & (worst > -torch.inf)
            default = torch.where(has_score.any(1), masked_mean(worst, has_score), -torch.inf)
            worst = torch.where(is_multiple, worst, default[:, None])
        is_single = ~is_multiple.any(1) & (layout.n_segments > 1)
        worst = torch.where(is_single[:, None], ALL_SINGLE, worst)
        is_defined = layout.is_segment & (worst > -torch.inf)
        left_out = (layout.has_successor & ~is_apart).sum(1).double()
        return replace(
            TorchScores.from_segments(worst, is_defined),
            left_out=torch.where(is_single, 0.0, left_out),
        )
