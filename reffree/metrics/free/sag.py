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
weighted: it is the pooled ratio, unless ``pool_d`` names another. Undefined without a boundary,
with all of them, and where nothing can be bought: identical units, or units all equally far from
each other. There are no scores of segments. The search is a compiled loop: documents on other
devices are brought to the CPU for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from reffree.metrics.free.pooling import said
from reffree.metrics.free.result import UNUSUAL, WEIGHTED, Orientation
from reffree.util.arrays import Floats
from reffree.util.bounds import check_whole

if TYPE_CHECKING:
    from reffree.metrics.free.fast.document import CompiledDocument, CompiledScores

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
    undefined: ClassVar[str] = "every gap is a boundary, or the units are all equally far apart"

    shuffles: int = 128
    seed: int = field(default=0, metadata={"option": False})
    pool_d: Literal["pooled", "mean", "median", "length"] = field(
        default="pooled", metadata=UNUSUAL
    )

    @property
    def aggregation(self) -> str:
        """How documents become the corpus's score."""
        return WEIGHTED if self.pool_d == "pooled" else f"{said(self.pool_d)}(documents)"

    def __post_init__(self) -> None:
        """Refuse a mean over nothing, and one that would not end."""
        check_whole("shuffles", self.shuffles, 1, MOST_SHUFFLES, remedy="leave it out for 128")

    def scores(self, document: CompiledDocument, scored: CompiledScores) -> tuple[Floats, Floats]:
        """Raw scores and weights of one document's hypotheses, from their ``W``; both (h,)."""
        n = len(document.vectors)
        k = scored.n_segments - 1
        is_inner = (k > 0) & (k < n - 1)
        k = np.where(is_inner, k, 0)
        whole, gains = 0.0, np.zeros(1)
        if is_inner.any():
            whole, gains = document.search(int(k.max()), n_shuffles=self.shuffles, seed=self.seed)
        chance = whole * k / max(1, n - 1)
        bought = gains[k] - chance
        is_defined = is_inner & (whole > 0) & (bought > NOTHING_TO_BUY * whole)
        raw = (whole - scored.within - chance) / np.where(is_defined, bought, 1.0)
        # Documents are pooled on the scale of the vectors as given.
        scale = 2 * max(-MOST_EXPONENT, min(document.vectors.exponent, MOST_EXPONENT))
        weights = np.ldexp(np.where(is_defined, bought, 0.0), scale)
        if self.pool_d != "pooled":
            weights = np.full_like(weights, n if self.pool_d == "length" else 1.0)
        return np.where(is_defined, raw, np.nan), weights
