r"""Embedding TextTiling: boundaries in the valleys of similarity between neighbouring windows.

Hearst (1997), TextTiling, with vectors instead of term counts. The similarity at a gap is the
cosine between the mean vectors of the ``window`` units before and after it, fewer at the document's
ends; 0 where a mean vanishes. Its depth is how far similarity rises on both sides:

.. math:: depth_i = (peak^{left}_i - s_i) + (peak^{right}_i - s_i),

a peak being reached by going on for as long as similarity does not fall. Range [0, 4].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from reffree.data.segmentation import Segmentation
from reffree.segmenters.base import GapScorer, Inputs, directions, rises, to_scale
from reffree.segmenters.selection import MIN_GAP, Candidates, Rule, select_above
from reffree.util.arrays import Floats
from reffree.util.bounds import Bounds, Positive

ROUNDING = 1e-9
"""Depths up to this are rounding: identical units have no valleys."""


@dataclass(frozen=True, slots=True)
class Depth(GapScorer):
    """Valleys deeper than mean + ``threshold`` standard deviations of the document's depths.

    Hearst's cut-offs are -0.5 (conservative) and -1 (liberal). They suit term counts: with MiniLM
    vectors -0.5 makes 1.2 (TIAGE), 1.7 (Choi), 5 (wiki50) and 27 (QMSum) times as many boundaries
    as gold has, and 0.5, the default, fewer at a lower Pk in all four. A gap that is no valley at
    all is never a boundary. With ``k`` boundaries or a ``density`` (boundaries per gap) the deepest
    are taken instead. In any case they are ``min_gap`` units apart; that may leave fewer than asked
    for.
    """

    window: Positive = 4
    threshold: float = 0.5
    k: Literal["gold"] | int | None = None
    density: Annotated[float | None, Bounds(0, 1)] = None
    min_gap: Positive = MIN_GAP
    name: ClassVar[str] = "depth"
    needs_embeddings: ClassVar[bool] = True

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Depth at every gap of every document, (n - 1,)."""
        return tuple(depths_of(x, self.window) for x in inputs.vectors(self.name))

    def selection_rule(self) -> Rule:
        """Select valleys that are deep for their document."""

        def select(depths: Floats, candidates: Candidates | None) -> Segmentation:
            cutoff = float(depths.mean() + self.threshold * depths.std()) if len(depths) else 0.0
            return select_above(depths, max(cutoff, ROUNDING), self.min_gap, candidates)

        return select


def depths_of(embeddings: ArrayLike, window: int) -> Floats:
    """Depth at each of the ``n - 1`` gaps; none in a document of one unit.

    >>> depths_of([[1, 0], [1, 0], [0, 1], [0, 1]], window=1).tolist()
    [0.0, 2.0, 0.0]
    """
    similarity = gap_similarities(embeddings, window)
    depths = np.add(*rises(similarity))
    return np.where(depths > ROUNDING, depths, 0.0)


def gap_similarities(embeddings: ArrayLike, window: int) -> Floats:
    """Cosine of the mean vectors of up to ``window`` units before and after each gap."""
    x, _ = to_scale(embeddings)
    n, d = x.shape
    before, after = np.zeros((n - 1, d)), np.zeros((n - 1, d))
    # Sums over each window: differences of running sums would lose short vectors beside long ones.
    for offset in range(min(window, n - 1)):
        before[offset:] += x[: n - 1 - offset]
        after[: n - 1 - offset] += x[1 + offset :]
    cosine: Floats = np.einsum("nd,nd->n", directions(before), directions(after))
    return cosine
