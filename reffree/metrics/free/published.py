r"""The published reference-free metrics: ARP, Silhouette, SegReFree.

Definitions, and what torch makes of pair sums (`on_devices`); `fast.document` scores on CPUs. What
one-unit segments score, by either rule, and where this departs from the paper's text is in
docs/definitions.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from reffree.metrics.free.inputs import MOST_EXPONENT
from reffree.metrics.free.result import SIMILARITY, UNUSUAL, Orientation, Pooled, Rule
from reffree.util.errors import mistake

if TYPE_CHECKING:
    from torch import Tensor

    from reffree.metrics.free.on_devices import Layout, SetName, Sums, TorchScores

ZERO_CENTROID = 1e-12
"""Squared length of a centroid, relative to its vectors', below which it has no direction."""

ALL_SINGLE = 10.0
"""Score of a document cut into single units: the paper's penalty."""

EQUAL_CENTROIDS = 1e-12
"""Squared distance, relative to that of the segments' units, below which centroids are equal."""


@dataclass(frozen=True)
class Arp(Pooled, ABC):
    r"""Average Relative Proximity (Ghinassi et al. 2024, eq. 13-20), three dispersions.

    .. math:: RP_i = (inter_i^p - intra_i^p) / (inter_i^p + intra_i^p)

    for each segment but the last: ``intra`` is the dispersion of its last ``cut`` units, ``inter``
    that of the last ``ceil(cut/2)`` of them with the first ``floor(cut/2)`` of the next segment,
    ``cut = min(2 m[i+1], m[i])``. A document's score is the mean. Range [-1, 1], higher is better.
    Undefined for a document without a boundary. A subclass says what dispersion is.
    """

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

        from reffree.metrics.free.on_devices import TorchScores, masked_mean, power_of_two

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


@dataclass(frozen=True)
class Silhouette(Pooled):
    r"""Silhouette over adjacent segments (Rousseeuw 1987; Ghinassi et al. 2024, eq. 8-12).

    .. math:: s_i = (b_i - a_i) / \max(a_i, b_i)

    ``a`` is the unit's mean Euclidean distance to the others of its segment, ``b`` the smaller of
    its mean distances to the previous and to the next segment of the same document. ``s`` is 0 in
    one-unit segments and where both distances vanish. Units average to segments, segments to
    documents (``average="segments"``, eq. 11 and 4) or units straight to documents
    (``average="units"``). Range [-1, 1], higher is better. Undefined for a document without a
    boundary.
    """

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
            found = f"average=units and pool_n={self.pool_n}"
            remedy = "leave average out; pool_n=length is the same mean over units"
            raise mistake(None, found, "one of the two", remedy)

    def from_sums(self, layout: Layout, sums: Sums) -> TorchScores:
        """Score every hypothesis."""
        import torch

        from reffree.metrics.free.on_devices import TorchScores

        own = layout.at_unit(layout.masses)  # (h, n)
        a = sums["distance", "own"] / (own - 1).clamp(min=1)
        counts = layout.at_unit(layout.previous), layout.at_unit(layout.following)  # (h, n)
        beside = sums["distance", "previous"], sums["distance", "next"]
        to_left, to_right = (
            torch.where(count > 0, total / count.clamp(min=1), torch.inf)
            for count, total in zip(counts, beside, strict=True)
        )
        b = torch.minimum(to_left, to_right)
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


@dataclass(frozen=True)
class SegReFree(Pooled):
    r"""SegReFree (Lucas et al. 2023; Ghinassi et al. 2024, eq. 5-7): Davies-Bouldin of neighbours.

    .. math:: R_{ij} = (S_i + S_j) / |c_i - c_j|, \quad C_i = \max_{j = i \pm 1} R_{ij}

    ``S`` is the mean Euclidean distance to the centroid, divided by ``1 - 1/sqrt(m)``; one-unit
    segments take the mean ``S`` of the document's other segments, as in the released code, and a
    document of nothing but one-unit segments scores 10. With ``rule="paper"`` the ``S`` of a
    one-unit segment is 0, as its unit is its centroid, and its *score* the mean of the longer
    segments'. Range [0, ∞), lower is better. Neighbours with equal centroids are left out and
    counted; undefined for a document without a boundary or without any finite R.
    """

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

        from reffree.metrics.free.on_devices import TorchScores, masked_mean

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
