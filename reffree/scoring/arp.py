r"""Average Relative Proximity (Ghinassi et al. 2024, eq. 13-20), three dispersions.

.. math:: RP_i = (inter_i^p - intra_i^p) / (inter_i^p + intra_i^p)

for each segment but the last: ``intra`` is the dispersion of its last ``cut`` units, ``inter`` that
of the last ``ceil(cut/2)`` of them with the first ``floor(cut/2)`` of the next segment,
``cut = min(2 m[i+1], m[i])``. A document's score is the mean. Range [-1, 1], higher is better.
Undefined for a document without a boundary. Where both dispersions vanish (repeated identical
units) RP is 0. A one-unit segment takes as ``intra^p`` the mean over the document's scored longer
segments or, without any, the mean ``inter^p`` of its one-unit segments: so the released code reads
eq. 16. With ``rule="paper"`` it is as printed: the *score* of a one-unit segment is the mean
``intra^p`` over all scored segments, 0 in one-unit ones, or, without longer ones, the mean
``inter^p``. That has no upper bound where vectors are long.

Departures from the paper's text: the cosine terms are distances (eq. 17-20 print similarities,
which would invert the sign of eq. 15); ``cut`` also looks at the next segment's length, as in the
authors' code, so that both sides compare equally many units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from reffree.scoring.layout import Layout, SpanName
from reffree.scoring.pairs import PairValue, Request, Units
from reffree.scoring.pooling import Pooled
from reffree.scoring.result import (
    SIMILARITY,
    UNUSUAL,
    Orientation,
    RawScores,
    Rule,
    masked_mean,
)

if TYPE_CHECKING:
    from torch import Tensor


ROLES: tuple[SpanName, ...] = ("intra", "inter_left", "inter_right")

ZERO_CENTROID = 1e-12
"""Squared length of a centroid, relative to its vectors', below which it has no direction."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over the ordered pairs and the units of one set per segment."""

    pairs: Tensor  # (h, s) Σ_ij of the pair value
    weighted_pairs: Tensor  # (h, s) Σ_ij w_i · pair value, w the vectors' lengths
    weight: Tensor  # (h, s) Σ_i w_i
    count: Tensor  # (h, s) units


@dataclass(frozen=True)
class Arp(Pooled, ABC):
    """Common part of the three; a subclass says what dispersion is."""

    name: ClassVar[str]
    value: ClassVar[PairValue]
    orientation: ClassVar[Orientation] = SIMILARITY
    undefined: ClassVar[str] = "no boundary"
    p: int = field(default=1, init=False)
    rule: Rule = field(default="released", metadata=UNUSUAL)

    @property
    def requests(self) -> tuple[Request, ...]:
        """Pair sums this metric needs."""
        return tuple((self.value, role) for role in ROLES)

    def __call__(self, units: Units, layout: Layout, sums: dict[Request, Tensor]) -> RawScores:
        """Score every hypothesis."""
        import torch

        intra, inter = self._moments(units, layout, sums)
        multiple = layout.has_successor & (layout.masses > 1)
        single = layout.has_successor & (layout.masses == 1)
        inter_p = self.dispersion(inter).pow(self.p)  # (h, s)
        intra_p = torch.where(multiple, self.dispersion(intra).pow(self.p), 0.0)
        counted = multiple if self.rule == "released" else layout.has_successor
        substitute = torch.where(
            multiple.any(1), masked_mean(intra_p, counted), masked_mean(inter_p, single)
        )[:, None]
        intra_p = torch.where(single, substitute, intra_p)
        total = inter_p + intra_p
        proximity = (inter_p - intra_p) / torch.where(total > 0, total, 1.0)
        if self.rule == "paper":
            # Here the vectors' length counts, by which they were divided.
            power = self.p * units.exponent[layout.document] if self.value == "squared" else 0
            own = substitute * torch.exp2(torch.as_tensor(power).clamp(-1000, 1000))[..., None]
            proximity = torch.where(single, own, proximity)
        return RawScores.from_segments(proximity, layout.has_successor)

    def _moments(
        self, units: Units, layout: Layout, sums: dict[Request, Tensor]
    ) -> tuple[Moments, Moments]:
        norm = units.norm[layout.document]  # (h, n)
        parts = []
        for role in ROLES:
            shift = int(role == "inter_right")
            low, high = layout.span(role)
            has_role = (high > low).double()
            row = sums[self.value, role]
            parts.append(
                [layout.segment_sum(x, shift) for x in (row, norm * row, norm * has_role, has_role)]
            )
        intra, left, right = parts
        return Moments(*intra), Moments(*(a + b for a, b in zip(left, right, strict=True)))

    @abstractmethod
    def dispersion(self, moments: Moments) -> Tensor:
        """Dispersion of each set; 0 for empty ones."""


@dataclass(frozen=True)
class ArpStd(Arp):
    """Dispersion = norm of the standard deviations per dimension, ddof 0 (eq. 13-14).

    ``p = 2`` is the paper's total variance, ``p = 1`` the authors' released figures.
    """

    name: ClassVar[str] = "arp_std"
    value: ClassVar[PairValue] = "squared"
    p: Literal[1, 2] = 2

    def dispersion(self, moments: Moments) -> Tensor:
        """Root of the mean squared distance to the mean = root of ``Σ_ij |x_i-x_j|² / 2m²``."""
        return (moments.pairs / (2 * moments.count.clamp(min=1).square())).sqrt()


@dataclass(frozen=True)
class ArpPair(Arp):
    """Dispersion = 1 - mean cosine over the ``m(m-1)/2`` pairs (eq. 19-20)."""

    name: ClassVar[str] = "arp_pair"
    value: ClassVar[PairValue] = "angle"

    def dispersion(self, moments: Moments) -> Tensor:
        """Mean angle over the pairs."""
        return moments.pairs / (moments.count * (moments.count - 1)).clamp(min=1)


@dataclass(frozen=True)
class ArpCos(Arp):
    """Dispersion = 1 - mean cosine between the centroid and the units (eq. 17-18).

    The cosine with a zero vector, or with a centroid that vanishes, is 0.
    """

    name: ClassVar[str] = "arp_cos"
    value: ClassVar[PairValue] = "weighted"

    def dispersion(self, moments: Moments) -> Tensor:
        r"""From pair angles, without cancellation.

        With lengths :math:`w`, angles :math:`a_{ij}` and :math:`W = \sum w_i / m`:
        :math:`\alpha = \sum_{ij} w_j a_{ij} / (m^2 W)` and
        :math:`\beta = \sum_{ij} w_i w_j a_{ij} / (m W)^2` give
        :math:`1 - (1 - \alpha) / \sqrt{1 - \beta}`.
        """
        import torch

        weight = torch.where(moments.weight > 0, moments.weight, 1)
        alpha = moments.pairs / (moments.count.clamp(min=1) * weight)
        beta = moments.weighted_pairs / weight.square()
        centroid = (1 - beta).clamp(min=ZERO_CENTROID).sqrt()  # its length, relative to W
        spread = (alpha - beta / (1 + centroid)) / centroid
        directed = (moments.weight > 0) & (1 - beta > ZERO_CENTROID)
        return torch.where(directed, spread, 1.0).clamp(min=0)
