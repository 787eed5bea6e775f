r"""Average Relative Proximity (Ghinassi et al. 2024, eq. 13-20), three dispersions.

.. math:: RP_i = (inter_i^p - intra_i^p) / (inter_i^p + intra_i^p)

for each segment but the last: ``intra`` is the dispersion of its last ``cut`` units, ``inter`` that
of the last ``ceil(cut/2)`` of them with the first ``floor(cut/2)`` of the next segment,
``cut = min(2 m[i+1], m[i])``. A document's score is the mean. Range [-1, 1], higher is better.
Undefined for a document without a boundary. What one-unit segments score, by either rule, and where
this departs from the paper's text is in docs/definitions.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from reffree.metrics.free.inputs import MOST_EXPONENT
from reffree.metrics.free.pooling import Pooled
from reffree.metrics.free.result import SIMILARITY, UNUSUAL, Orientation, Rule

if TYPE_CHECKING:
    from torch import Tensor

    from reffree.metrics.free.batches import TorchScores
    from reffree.metrics.free.pairs import Layout, SetName, Sums

ZERO_CENTROID = 1e-12
"""Squared length of a centroid, relative to its vectors', below which it has no direction."""


@dataclass(frozen=True)
class Arp(Pooled, ABC):
    """Common part of the three; a subclass says what dispersion is."""

    name: ClassVar[str]
    values: ClassVar[tuple[str, ...]]
    orientation: ClassVar[Orientation] = SIMILARITY
    undefined: ClassVar[str] = "no boundary"
    p: int = field(default=1, init=False)
    rule: Rule = field(default="released", metadata=UNUSUAL)

    @property
    def requests(self) -> tuple[tuple[str, str], ...]:
        """Pair sums this metric needs."""
        return tuple((value, role) for role in ("intra", "inter") for value in self.values)

    def from_sums(self, layout: Layout, sums: Sums) -> TorchScores:
        """Score every hypothesis."""
        import torch

        from reffree.metrics.free.batches import TorchScores
        from reffree.metrics.free.pairs import masked_mean, power_of_two

        intra = self._dispersion(layout, sums, "intra")
        inter = self._dispersion(layout, sums, "inter")
        multiple = layout.has_successor & (layout.masses > 1)
        single = layout.has_successor & (layout.masses == 1)
        inter_p = inter.square() if self.p == 2 else inter  # (h, s)
        intra_p = torch.where(multiple, intra.square() if self.p == 2 else intra, 0.0)
        counted = multiple if self.rule == "released" else layout.has_successor
        substitute = torch.where(
            multiple.any(1), masked_mean(intra_p, counted), masked_mean(inter_p, single)
        )[:, None]
        intra_p = torch.where(single, substitute, intra_p)
        total = inter_p + intra_p
        proximity = (inter_p - intra_p) / torch.where(total > 0, total, 1.0)
        if self.rule == "paper":
            # Here the vectors' length counts, by which they were divided.
            if "squared" in self.values:
                power = (self.p * layout.exponent).clamp(-MOST_EXPONENT, MOST_EXPONENT)
                substitute = substitute * power_of_two(power)[:, None]
            proximity = torch.where(single, substitute, proximity)
        return TorchScores.from_segments(proximity, layout.has_successor)

    def _dispersion(self, layout: Layout, sums: Sums, role: SetName) -> Tensor:
        start, stop = layout.places(role)
        count = (stop - start).clamp(min=1).double()
        return self.dispersion(count, *(sums[value, role] for value in self.values))  # type: ignore[index]

    @abstractmethod
    def dispersion(self, count: Tensor, *sums: Tensor) -> Tensor:
        """Dispersion of sets of so many units, from the sums over their pairs: all (h, s)."""


@dataclass(frozen=True)
class ArpStd(Arp):
    """Dispersion = norm of the standard deviations per dimension, ddof 0 (eq. 13-14).

    ``p = 2`` is the paper's total variance, ``p = 1`` the authors' released figures.
    """

    name: ClassVar[str] = "arp_std"
    values: ClassVar[tuple[str, ...]] = ("squared",)
    p: Literal[1, 2] = 2

    def dispersion(self, count: Tensor, *sums: Tensor) -> Tensor:
        """Root of the mean squared distance to the mean = root of ``Σ_{i<j} |x_i-x_j|² / m²``."""
        (squared,) = sums
        return (squared / count.square()).sqrt()


@dataclass(frozen=True)
class ArpPair(Arp):
    """Dispersion = 1 - mean cosine over the ``m(m-1)/2`` pairs (eq. 19-20)."""

    name: ClassVar[str] = "arp_pair"
    values: ClassVar[tuple[str, ...]] = ("angle",)

    def dispersion(self, count: Tensor, *sums: Tensor) -> Tensor:
        """Mean angle over the pairs."""
        (angles,) = sums
        return 2 * angles / (count * (count - 1)).clamp(min=1)


@dataclass(frozen=True)
class ArpCos(Arp):
    """Dispersion = 1 - mean cosine between the centroid and the units (eq. 17-18).

    The cosine with a zero vector, or with a centroid that vanishes, is 0.
    """

    name: ClassVar[str] = "arp_cos"
    values: ClassVar[tuple[str, ...]] = ("weighted", "product", "length")

    def dispersion(self, count: Tensor, *sums: Tensor) -> Tensor:
        r"""From pair angles, without cancellation.

        With lengths :math:`w`, angles :math:`a_{ij}` and :math:`W = \sum w_i / m`:
        :math:`\alpha = \sum_{ij} w_j a_{ij} / (m^2 W)` and
        :math:`\beta = \sum_{ij} w_i w_j a_{ij} / (m W)^2` give
        :math:`1 - (1 - \alpha) / \sqrt{1 - \beta}`.
        """
        import torch

        weighted, product, length = sums
        weight = torch.where(length > 0, length, 1.0)
        alpha = weighted / (count * weight)
        beta = 2 * product / weight.square()
        centroid = (1 - beta).clamp(min=ZERO_CENTROID).sqrt()  # its length, relative to W
        spread = (alpha - beta / (1 + centroid)) / centroid
        directed = (length > 0) & (1 - beta > ZERO_CENTROID)
        return torch.where(directed, spread, 1.0).clamp(min=0)
