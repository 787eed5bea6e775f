r"""Search-adjusted gain: how much of what boundaries gain could no search buy from noise.

.. math:: raw = (G - G_{random}) / (G_{search} - G_{random}), \quad G = W_0 - W

:math:`W` is the within-segment sum of squared distances to the centroids, :math:`W_0` that of the
document without a boundary. With ``k`` boundaries, :math:`G_{random} = W_0 k / (n - 1)` is what
they gain on average over the orders of the units, and :math:`G_{search}` what the best ``k``
boundaries gain on the units in random order, averaged over seeded shuffles. So 0 is random
placement, 1 what searching finds in noise, and more than 1 structure that no search could buy.
Unbounded, higher is better, loss ``1 - raw``.

Compare only segmentations of similar density with it, and do not choose a density by it: on long
texts it follows the number of segments, and a blind cut in half beats gold. Text drifts, so that
any few boundaries, wherever they are, part units that lie far apart, and gain. Units in random
order do not drift, so :math:`G_{random}` and :math:`G_{search}` allow for none of that, least of
all where ``k`` is small. ``expected_pk`` has no such preference.

A document counts for :math:`G_{search} - G_{random}` in the corpus mean, which is therefore
weighted: it is the pooled ratio. Undefined without a boundary, with all of them, and where nothing
can be bought: identical units, or units all equally far from each other. There are no scores of
segments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reffree.arrays import Floats
from reffree.bounds import check_whole
from reffree.scoring.layout import Layout
from reffree.scoring.pairs import Request, Units
from reffree.scoring.result import WEIGHTED, MetricScores, Orientation
from reffree.scoring.search import search_document, search_gains

if TYPE_CHECKING:
    from reffree.scoring.vectors import Vectors


NOTHING_TO_BUY = 1e-9
"""``G_search - G_random`` up to this fraction of ``W0`` is rounding."""

MOST_SHUFFLES = 10_000
"""Beyond these the shuffles' standard error is below 0.1 % of ``G_search - G_random``."""

MOST_EXPONENT = 200
"""Documents are pooled as if no component were beyond 2 to this power: squares stay finite."""


@dataclass(frozen=True)
class Sag:
    """Gain over random boundaries, in units of what a search gains on shuffled units.

    With 500 units of 384 dimensions and 50 boundaries, one shuffle's ``G_search - G_random`` has a
    standard deviation of 6 % of its mean (Gaussian vectors), 9 % (MiniLM vectors of a meeting; of
    437 units of Wikipedia) or 10 % (of Choi's texts). So at raw = 1, 128 shuffles give a standard
    error of 0.005 to 0.009; 0.006 to 0.010 at 20 boundaries, 0.004 to 0.008 at 100.
    """

    name: ClassVar[str] = "sag"
    orientation: ClassVar[Orientation] = Orientation(
        offset=1.0, slope=-1.0, neutral=0.0, worst=-1.0
    )
    aggregation: ClassVar[str] = WEIGHTED
    undefined: ClassVar[str] = "every gap is a boundary, or the units are all equally far apart"
    requests: ClassVar[tuple[Request, ...]] = (("squared", "own"),)

    shuffles: int = 128
    seed: int = field(default=0, metadata={"option": False})
    _searches: WeakKeyDictionary[Units, _Search] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Refuse a mean over nothing, and one that would not end."""
        check_whole("shuffles", self.shuffles, 1, MOST_SHUFFLES, remedy="leave it out for 128")

    def of_sums(
        self, vectors: Vectors, n_segments: NDArray[np.int64], within: Floats
    ) -> tuple[Floats, Floats]:
        """Raw scores and weights of one document's hypotheses, from their ``W``; both (h,)."""
        n = len(vectors)
        k = n_segments - 1
        is_inner = (k > 0) & (k < n - 1)
        k = np.where(is_inner, k, 0)
        whole, gains = 0.0, np.zeros(1)
        if is_inner.any():
            whole, gains = search_document(
                vectors, int(k.max()), n_shuffles=self.shuffles, seed=self.seed
            )
        chance = whole * k / max(1, n - 1)
        bought = gains[k] - chance
        is_defined = is_inner & (whole > 0) & (bought > NOTHING_TO_BUY * whole)
        raw = (whole - within - chance) / np.where(is_defined, bought, 1.0)
        # Documents are pooled on the scale of the vectors as given.
        scale = 2 * max(-MOST_EXPONENT, min(vectors.exponent, MOST_EXPONENT))
        weights = np.ldexp(np.where(is_defined, bought, 0.0), scale)
        return np.where(is_defined, raw, np.nan), weights

    def __call__(self, units: Units, layout: Layout, sums: dict[Request, Tensor]) -> MetricScores:
        """Score every hypothesis."""
        if units not in self._searches:
            self._searches[units] = _Search(units, self.shuffles, self.seed)
        search = self._searches[units]
        within = _within(layout, sums["squared", "own"])  # (h,)
        whole = search.whole[layout.document]  # (h,)
        k = layout.n_segments - 1  # (h,)
        is_inner = (k > 0) & (k < layout.length - 1) & (whole > 0)
        k = torch.where(is_inner, k, 0)
        chance = whole * k / (layout.length - 1).clamp(min=1)
        bought = search.gains(layout.document, k) - chance
        is_defined = is_inner & (bought > NOTHING_TO_BUY * whole)
        raw = (whole - within - chance) / torch.where(is_defined, bought, 1.0)
        # Documents are pooled on the scale of the vectors as given.
        scale = 2 * units.exponent[layout.document].clamp(-MOST_EXPONENT, MOST_EXPONENT)
        return MetricScores(
            segments=torch.full_like(layout.masses, torch.nan, dtype=raw.dtype),
            documents=torch.where(is_defined, raw, torch.nan),
            left_out=torch.zeros_like(raw),
            weights=torch.ldexp(torch.where(is_defined, bought, 0.0), scale),
        )


class _Search:
    """Gains of a search in the documents of one batch, found when first asked for."""

    def __init__(self, units: Units, n_shuffles: int, seed: int) -> None:
        b = len(units.length)
        unsegmented = Layout(
            document=torch.arange(b, device=units.length.device),
            edges=torch.nn.functional.pad(units.length[:, None], (1, 0)),
            n_segments=torch.ones_like(units.length),
            n_units=units.n_units,
        )
        own = units.row_sums(unsegmented, Sag.requests)["squared", "own"]
        self.whole = _within(unsegmented, own)  # (b,) W0
        self._vectors = [x[:n] for x, n in zip(units.vectors, units.length.tolist(), strict=True)]
        self._known = [units.vectors.new_zeros(1) for _ in range(b)]
        self._rounding: list[float] = units.rounding.tolist()
        self._n_shuffles = n_shuffles
        self._seed = seed

    def gains(self, document: Tensor, k: Tensor) -> Tensor:
        """``G_search(k)`` in the documents; searches those where it is not known yet."""
        k_max = torch.zeros(len(self._known), dtype=k.dtype, device=k.device)
        wanted: list[int] = k_max.scatter_reduce_(0, document, k, "amax").tolist()
        short = [i for i, known in enumerate(self._known) if len(known) <= wanted[i]]
        found = search_gains(
            [self._vectors[i] for i in short],
            # At least twice as many as before: growing hypotheses do not search every time.
            [
                max(wanted[i], min(2 * len(self._known[i]) - 2, len(self._vectors[i]) - 2))
                for i in short
            ],
            n_shuffles=self._n_shuffles,
            seed=self._seed,
            rounding=[self._rounding[i] for i in short],
        )
        for i, values in zip(short, found, strict=True):
            self._known[i] = values
        return torch.nn.utils.rnn.pad_sequence(self._known, batch_first=True)[document, k]


def _within(layout: Layout, own: Tensor) -> Tensor:
    """``W``: with squared distances ``q``, the sum over segments of ``Σ_ij q_ij / 2m``."""
    return (layout.segment_sum(own) / (2 * layout.masses.clamp(min=1))).sum(1)  # (h,)
