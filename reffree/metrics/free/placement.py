r"""Where and how many: two scores that read by themselves.

*Where.* With :math:`K` the hypothesis's own number of segments and :math:`e_K` expected Pk at so
many (`expected`),

.. math:: placement(h) = \frac{\bar e_K - e_K(h)}{\bar e_K - \min_{h'} e_K(h')}

where :math:`\bar e_K` is the mean over the hypothesis's segments in random order and the least is
over all segmentations into :math:`K`: 0 is chance, 1 the best that the text knows of, and below 0
is worse than chance. It says nothing of how many segments there should be, so a segmentation into
5 can be held against one into 500. A corpus's is the sum of the numerators by the sum of the
denominators: documents count by what there is to gain.

With ``sizes=characters`` chance is what as many segments of the same sizes in characters get that
know nothing of the text: in random order, cut at these sizes from a random place on, the text's
start following on its end, and moved to the nearest units. So chunkers are held against others of
their size, also where long units (code) and short ones (headings) take turns.

*How many.* ``granularity`` is the number of segments by the number that the text suggests, 2 for
twice as many; a corpus's is the geometric mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, ClassVar, Literal

import numpy as np

from reffree.data.masses import Masses
from reffree.metrics.free.expected import Expected, Source
from reffree.metrics.free.posterior import Posterior, PosteriorFacts
from reffree.metrics.free.result import UNUSUAL, FreeMetric, Orientation, Pool
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.gold.windows import Pk
from reffree.util.arrays import Floats, Integers
from reffree.util.bounds import Bounds
from reffree.util.errors import mistake
from reffree.util.seeds import rng_for

LEAST_ROOM = 1e-9
"""Between chance and the best, of a document with a placement."""

EXACT = 20_000_000
"""Steps of the exact mean over orders, some 5 ms; where it would take more, orders are drawn."""

ALLOWED = 0.8
"""Share of the numbers of segments, central in the logarithm, that the text is said to allow."""


@dataclass(frozen=True, slots=True)
class Placement(Expected):
    """Where boundaries are, from 0 (as in random order) to 1 (the best of as many).

    ``draws`` are random orders of the segments where the mean over all of them would take long.
    ``sizes`` is what a segment's size is counted in; characters are drawn in any case.
    """

    name: ClassVar[str] = "placement"
    orientation: ClassVar[Orientation] = Orientation(
        offset=1.0, slope=-1.0, neutral=None, worst=None, in_own_unit=True, direction="higher"
    )
    undefined: ClassVar[str] = "no room between chance and the best"
    gold: ClassVar[type[GoldMetric]] = Pk

    length: float | None = field(default=None, metadata={"option": False})  # it is its own
    draws: Annotated[int, Bounds(1, 10_000)] = 100
    sizes: Literal["units", "characters"] = field(default="units", metadata=UNUSUAL)
    pool_d: Pool = field(default="mean", metadata={"option": False})

    @property
    def aggregation(self) -> str:
        """How documents become the corpus's score."""
        return "by-room(documents)"

    def spread(self, posterior: Posterior, masses: Masses) -> Floats:
        """Return NaN: it has none."""
        return np.full(len(masses), np.nan)

    def facts(self, posterior: Posterior) -> PosteriorFacts | None:
        """Return nothing: no number of segments is assumed."""
        return None

    def scores(self, posterior: Posterior, masses: Masses) -> Floats:
        """Placement of each hypothesis, (h, s) masses; NaN where undefined."""
        return self.weighted_scores(posterior, masses)[0]

    def weighted_scores(self, posterior: Posterior, masses: Masses) -> tuple[Floats, Floats]:
        """Placement, and what there is to gain between chance and the best; 1 where undefined."""
        gained, room = self.gains(posterior, masses)
        defined = room > LEAST_ROOM
        room = np.where(defined, room, 1.0)
        return np.where(defined, gained / room, np.nan), room

    def gains(self, posterior: Posterior, masses: Masses) -> tuple[Floats, Floats]:
        """Expected Pk gained over random orders, and the most that could be; 0 where undefined.

        A hypothesis that leaves no choice, as one without a boundary or with one in nearly every
        gap, gains nothing of what segments of about one length, as many as the text suggests,
        could gain.
        """
        gained, room = np.zeros(len(masses)), np.zeros(len(masses))
        if not posterior.is_defined:
            return gained, room
        counts = (masses > 0).sum(1)
        has_choice = counts > len(posterior.edges) - 1  # past all steps: undefined
        for count in np.unique(counts[(counts > 1) & ~has_choice]).tolist():
            at, least = posterior.room_at(count)
            if at.is_defined:
                own = np.flatnonzero(counts == count)
                rows = np.ascontiguousarray(masses[own, :count])
                chance = np.array([self._chance(at, row) for row in rows])
                gained[own] = chance - at.expected_pk(rows)
                room[own] = chance - least
        has_choice |= room > LEAST_ROOM
        if not has_choice.all():
            n = posterior.n_units
            count = min(max(2, round(posterior.segments)), n)
            at, least = posterior.room_at(count)
            if at.is_defined:
                ends: Integers = np.linspace(0, n, count + 1).round().astype(np.int64)
                gained[~has_choice] = 0.0
                room[~has_choice] = self._chance(at, ends[1:] - ends[:-1]) - least
        return gained, room

    def _chance(self, at: Posterior, lengths: Masses) -> float:
        """Mean expected Pk of segments of these lengths over their orders, or of blind cuts."""
        rng = rng_for(self.seed, "placement", at.n_units, len(lengths))
        if self.sizes == "characters":
            starts = unit_starts(at.units)
            drawn = np.diff(starts[np.cumsum(lengths)], prepend=0)
            sizes = rng.permuted(np.tile(drawn, (self.draws, 1)), axis=1)
            turns = rng.integers(starts[-1], size=self.draws)
            return float(at.expected_pk(blind_masses(starts, sizes, turns)).mean())
        lengths = np.sort(lengths)
        n_distinct = len(np.unique(lengths))
        if len(lengths) * (len(lengths) + n_distinct) * at.n_units <= 4 * EXACT:
            return at.mean_over_orders(lengths, *gauss_rule(len(lengths)))
        orders = rng.permuted(np.tile(lengths, (self.draws, 1)), axis=1)
        return float(at.expected_pk(orders).mean())


@cache
def gauss_rule(count: int) -> tuple[Floats, Floats]:
    """Points up to 1/2 and weights that integrate polynomials of ``count`` terms on 0 … 1."""
    points, weights = np.polynomial.legendre.leggauss(-(-count // 2))
    is_low, is_middle = points < -1e-9, abs(points) <= 1e-9
    kept = is_low | is_middle
    return (points[kept] + 1) / 2, np.where(is_middle, weights / 4, weights / 2)[kept]


def unit_starts(units: Sequence[str] | None) -> Integers:
    """Return the first character of every unit, and the end of the last, (n + 1,)."""
    if units is None:
        found, remedy = (
            "vectors without text for sizes=characters",
            "score a corpus, or leave sizes out",
        )
        raise mistake(None, found, "the text of the units", remedy)
    return np.cumsum([0, *(len(unit) + 1 for unit in units)])


def blind_masses(starts: Integers, sizes: Integers, turns: Integers) -> Masses:
    """Return segmentations into k that are cut by sizes in characters alone.

    The k cuts of each lie on a circle, after sizes (d, k) one behind the other from ``turns`` (d,)
    on; the one nearest to the text's ends, where they meet, is left out, the first of two. The
    others move to the nearest start of a unit, the earlier of two, and on to the next where that is
    taken, so that no segment is empty.
    """
    n, (n_draws, k) = len(starts) - 1, sizes.shape
    cuts = (sizes.cumsum(1) + turns[:, None]) % starts[-1]
    from_ends = np.minimum(cuts, starts[-1] - cuts)
    kept = np.arange(k) != from_ends.argmin(1)[:, None]
    kept = np.sort(cuts[kept].reshape(n_draws, k - 1), axis=1)
    later = np.searchsorted(starts, kept)
    nearest = later - (kept - starts[later - 1] <= starts[later] - kept)
    place = np.arange(k - 1)
    behind = np.maximum.accumulate(nearest - place, axis=1).clip(1, n - k + 1) + place
    masses: Masses = np.diff(behind, prepend=0, append=n, axis=1)
    return masses


@dataclass(frozen=True, slots=True)
class Granularity(Expected):
    """Number of segments by the number that the text suggests: 2 is twice as many."""

    name: ClassVar[str] = "granularity"
    orientation: ClassVar[Orientation] = Orientation(
        offset=0.0, slope=1.0, neutral=None, worst=None, direction="toward_1"
    )
    reads_order: ClassVar[bool] = False
    gold: ClassVar[type[GoldMetric]] = Pk

    draws: int = field(default=200, metadata={"option": False})  # it draws none
    pool_d: Pool = field(default="mean", metadata={"option": False})
    without: Source | None = field(default=None, metadata={"option": False})  # of where alone

    @property
    def aggregation(self) -> str:
        """How documents become the corpus's score."""
        return "geometric-mean(documents)"

    def scores(self, posterior: Posterior, masses: Masses) -> Floats:
        """Logarithm of the factor of each hypothesis; NaN where nothing is suggested."""
        if not posterior.is_defined:
            return np.full(len(masses), np.nan)
        factors: Floats = np.log((masses > 0).sum(1) / posterior.segments)
        return factors

    def spread(self, posterior: Posterior, masses: Masses) -> Floats:
        """Return NaN: it has none."""
        return np.full(len(masses), np.nan)

    def facts(self, posterior: Posterior) -> PosteriorFacts | None:
        """Return the number that the text suggests, and those that it allows."""
        if not posterior.is_defined:
            return None
        return PosteriorFacts(math.nan, math.nan, posterior.segments, *allowed_segments(posterior))

    def losses(self, raw: Floats) -> Floats:
        """Return how far the factor is from 1, in the logarithm."""
        return np.abs(raw)

    def shown(self, raw: float) -> float:
        """Return the factor."""
        return math.exp(raw)


def allowed_segments(posterior: Posterior) -> tuple[float, float]:
    """Return the fewest and the most segments that the text allows: the central 80 %.

    Nodes stand for what is nearest to them in the logarithm.
    """
    at = np.log([node.segments for node in posterior.nodes])
    half = np.diff(at) / 2 if len(at) > 1 else np.zeros(1)
    edges = np.concatenate([at[:1] - half[:1], at[:-1] + half[: len(at) - 1], at[-1:] + half[-1:]])
    below = np.concatenate([[0.0], np.cumsum(posterior.weights)])
    low, high = np.exp(np.interp([(1 - ALLOWED) / 2, (1 + ALLOWED) / 2], below, edges))
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Excess(Placement):
    r"""Whether a system agrees with the vectors more than with what else speaks of boundaries.

    A segmenter that looks for what vectors see is placed far better by them than by words and cues;
    an annotator, and gold with mistakes, by all about alike. With :math:`p_v` the placement by
    vectors alone and :math:`p_o` that by words and cues,

    .. math:: excess(h) = p_v(h) - p_o(h)

    both with the window of the number of segments that all sources suggest; from -1 to 1 and
    beyond. A document counts :math:`r_v r_o / (r_v + r_o)`, with r the expected Pk between chance
    and the best: little where either says little. It is a finding and not a score: no metric of its
    own, it is what a verdict says of a system.
    """

    name: ClassVar[str] = "excess"
    undefined: ClassVar[str] = "vectors, or words and cues, say nothing"

    def weighted_scores(self, posterior: Posterior, masses: Masses) -> tuple[Floats, Floats]:
        """Excess of each hypothesis, NaN where undefined, and what the document counts for."""
        vectors, others = posterior.read_by("vectors"), posterior.read_by("words", "cues")
        if vectors is None or others is None:
            return np.full(len(masses), np.nan), np.ones(len(masses))
        by_vectors, v = self.gains(vectors, masses)
        by_others, o = self.gains(others, masses)
        defined = (v > LEAST_ROOM) & (o > LEAST_ROOM)
        v, o = np.where(defined, v, 1.0), np.where(defined, o, 1.0)
        excess = np.where(defined, by_vectors / v - by_others / o, np.nan)
        return excess, np.where(defined, v * o / (v + o), 1.0)


def watched_excess(metrics: Iterable[FreeMetric]) -> list[Excess]:
    """Return what is looked at beside metrics: nothing, unless one of them reads all sources."""
    for metric in metrics:
        if not isinstance(metric, Expected) or isinstance(metric, Granularity):
            continue
        if metric.evidence == "all" and metric.without is None:
            return [Excess(length=metric.length)]
    return []
