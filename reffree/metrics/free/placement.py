r"""Where and how many: two scores that read by themselves.

*Where.* With :math:`K` the hypothesis's own number of segments and :math:`e_K` expected Pk at so
many (`expected`),

.. math:: placement(h) = \frac{\bar e_K - e_K(h)}{\bar e_K - \min_{h'} e_K(h')}

where :math:`\bar e_K` is the mean over the hypothesis's segments in random order and the least is
over all segmentations into :math:`K`: 0 is chance, 1 the best that the text knows of, and below 0
is worse than chance. It says nothing of how many segments there should be, so a segmentation into
5 can be held against one into 500. A corpus's is the sum of the numerators by the sum of the
denominators: documents count by what there is to gain.

*How many.* ``granularity`` is the number of segments by the number that the text suggests, 2 for
twice as many; a corpus's is the geometric mean.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from reffree.data.masses import Masses
from reffree.metrics.free.expected import Expected, Source
from reffree.metrics.free.pooling import Pool
from reffree.metrics.free.posterior import Posterior
from reffree.metrics.free.result import Orientation
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.gold.windows import Pk
from reffree.util.arrays import Floats
from reffree.util.bounds import Bounds
from reffree.util.seeds import rng_for

LEAST_ROOM = 1e-9
"""Between chance and the best, of a document with a placement."""


@dataclass(frozen=True, slots=True)
class Placement(Expected):
    """Where boundaries are, from 0 (as in random order) to 1 (the best of as many).

    ``draws`` are random orders of the segments; all orders are taken where there are no more.
    """

    name: ClassVar[str] = "placement"
    orientation: ClassVar[Orientation] = Orientation(
        offset=1.0, slope=-1.0, neutral=None, worst=None, in_own_unit=True, direction="higher"
    )
    undefined: ClassVar[str] = "no boundary, or no room between chance and the best"
    has_facts: ClassVar[bool] = False

    length: float | None = field(default=None, metadata={"option": False})  # it is its own
    draws: Annotated[int, Bounds(1, 10_000)] = 100
    pool_d: Pool = field(default="mean", metadata={"option": False})

    @property
    def aggregation(self) -> str:
        """How documents become the corpus's score."""
        return "by-room(documents)"

    def gold_metric(self, window: int) -> GoldMetric:
        """Return Pk, whose expectation it is made of."""
        return Pk(k=window)

    def scores(self, posterior: Posterior, masses: Masses) -> Floats:
        """Placement of each hypothesis, (h, s) masses; NaN where undefined."""
        gained, room = self._gains(posterior, masses)
        defined = room > LEAST_ROOM
        return np.where(defined, gained / np.where(defined, room, 1.0), np.nan)

    def weights(self, posterior: Posterior, masses: Masses) -> Floats:
        """Return what there is to gain between chance and the best; 1 where undefined."""
        room = self._gains(posterior, masses)[1]
        return np.where(room > LEAST_ROOM, room, 1.0)

    def _gains(self, posterior: Posterior, masses: Masses) -> tuple[Floats, Floats]:
        """Expected Pk gained over random orders, and the most that could be; 0 where undefined."""
        gained, room = np.zeros(len(masses)), np.zeros(len(masses))
        counts = (masses > 0).sum(1)
        for count in np.unique(counts[counts > 1]) if posterior.is_defined else ():
            at, least = posterior.room_at(int(count))
            if not at.is_defined or math.isinf(least):
                continue
            for h in np.flatnonzero(counts == count):
                chance = at.expected_pk(self._orders(masses[h, :count], posterior.n_units)).mean()
                gained[h] = chance - at.expected_pk(masses[h : h + 1])[0]
                room[h] = chance - least
        return gained, room

    def _orders(self, lengths: Masses, n_units: int) -> Masses:
        """Return segments' lengths in random orders, or in all of them where they are few."""
        lengths = np.sort(lengths)
        if math.factorial(min(len(lengths), 9)) <= self.draws:
            return np.array(list(itertools.permutations(lengths.tolist())))
        rng = rng_for(self.seed, "placement", n_units, len(lengths))
        return rng.permuted(np.tile(lengths, (self.draws, 1)), axis=1)


@dataclass(frozen=True, slots=True)
class Granularity(Expected):
    """Number of segments by the number that the text suggests: 2 is twice as many."""

    name: ClassVar[str] = "granularity"
    orientation: ClassVar[Orientation] = Orientation(
        offset=0.0, slope=1.0, neutral=None, worst=None, direction="toward_1"
    )
    has_facts: ClassVar[bool] = False

    draws: int = field(default=200, metadata={"option": False})  # it draws none
    pool_d: Pool = field(default="mean", metadata={"option": False})
    without: Source | None = field(default=None, metadata={"option": False})  # of where alone

    @property
    def aggregation(self) -> str:
        """How documents become the corpus's score."""
        return "geometric-mean(documents)"

    def gold_metric(self, window: int) -> GoldMetric:
        """Return Pk, from whose posterior the suggested number is."""
        return Pk(k=window)

    def scores(self, posterior: Posterior, masses: Masses) -> Floats:
        """Logarithm of the factor of each hypothesis; NaN where nothing is suggested."""
        if not posterior.is_defined:
            return np.full(len(masses), np.nan)
        factors: Floats = np.log((masses > 0).sum(1) / posterior.segments)
        return factors

    def losses(self, raw: Floats) -> Floats:
        """Return how far the factor is from 1, in the logarithm."""
        return np.abs(raw)

    def shown(self, raw: float) -> float:
        """Return the factor."""
        return math.exp(raw)
