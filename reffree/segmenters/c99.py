"""C99: divisive clustering of the ranks of similarities between units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reffree.arrays import Floats
from reffree.bounds import check_number, check_whole
from reffree.errors import InputError
from reffree.segmentation import Segmentation
from reffree.segmenters.base import Inputs
from reffree.segmenters.c99_kernel import TIED, divide, rank_sums
from reffree.segmenters.words import (
    BoundaryCount,
    check_count,
    check_language,
    terms_of,
    wanted_boundaries,
)
from reffree.words import Language, Terms

GRADIENT_MASK = np.array([1.0, 2.0, 4.0, 8.0, 4.0, 2.0, 1.0])


@dataclass(frozen=True, slots=True)
class C99:
    r"""Segments within which the ranks of similarities are high (Choi 2000, §3).

    1. Similarity of two units: cosine of their term counts (eq. 1), 0 without terms.
    2. Rank: the share of the other cells in a ``mask`` × ``mask`` square around a cell of the
       similarity matrix that are lower; at the matrix's edges, of those there are (eq. 2).
    3. Inside density of a segmentation: :math:`D = \sum_k s_k / \sum_k a_k`, the sum of ranks and
       the area of the segments' squares on the diagonal (eq. 3). Starting with the whole document,
       the boundary that makes D highest is added, over and over.
    4. ``k`` boundaries; with ``auto``, as many as there are before the gains
       :math:`\delta D(n) = D(n) - D(n-1)` are no longer above :math:`\mu + c \sqrt{v}`, mean and
       variance being those of all gains down to single units.

    ``k=gold`` is for oracles. A document of ``k`` units or fewer has a boundary after every unit.

    Gains do not fall steadily, and the paper does not say how the threshold makes a number of them.
    Its author's release first weighs each with its neighbours, 1 2 4 8 4 2 1, and then counts those
    before the first that is not above; so does this. The release also takes, in each segment, the
    boundary that is best for that segment alone; this takes the one that makes D highest, as
    printed.
    """

    k: BoundaryCount = "auto"
    mask: int = 11
    c: float = 1.2
    language: Language = "english"
    name: ClassVar[str] = "c99"
    needs_embeddings: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse masks without a middle, and numbers that are none."""
        check_count(self.k, self.name)
        check_whole("mask", self.mask, remedy="leave it out for 11")
        if self.mask < 3 or self.mask % 2 != 1:
            raise InputError(
                f"mask = {self.mask}",
                expected="an odd whole number, 3 or more",
                remedy="leave it out for 11",
            )
        check_number("c", self.c, remedy="leave it out for 1.2")
        check_language(self.language)

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        wanted = wanted_boundaries(inputs, self.k, self.name)
        every = terms_of(inputs.corpus, self.language)
        return tuple(self._segment(terms, k) for terms, k in zip(every, wanted, strict=True))

    def _segment(self, terms: Terms, k: int | None) -> Segmentation:
        n = terms.n_units
        reach = min(self.mask // 2, n - 1)
        sums = rank_sums(terms.ids, terms.n_distinct, terms.edges, reach)
        boundaries, densities = divide(sums, n, n - 1 if k is None else k)
        if k is None:
            boundaries = boundaries[: steep_steps(np.diff(densities), self.c)]
        return Segmentation.from_boundaries(boundaries.tolist(), n)


def steep_steps(gains: Floats, c: float) -> int:
    """Count the gains before the first that, smoothed, is no more than mean + c · deviation."""
    if not len(gains):
        return 0
    reach = len(GRADIENT_MASK) // 2
    weights = np.convolve(np.ones_like(gains), GRADIENT_MASK)
    smooth = (np.convolve(gains, GRADIENT_MASK) / weights)[reach : reach + len(gains)]
    is_steep = smooth > smooth.mean() + c * smooth.std() + TIED
    return int(np.argmin(np.append(is_steep, False)))
