"""Segmenters that read no text: what every other method and every metric has to beat.

Given the number of boundaries, a random one makes every set of gaps equally likely. Methods that
take that number from gold are oracles, and refuse to work without gold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.segmenters.base import Inputs, Segmenter
from reffree.util.bounds import Count, Positive
from reffree.util.errors import InputError

ARP_RATES = range(2, 10)
"""Ghinassi et al. (2024) §3.4.1: a boundary with probability 1/n for each of these n."""


@dataclass(frozen=True, slots=True)
class NoBoundaries(Segmenter):
    """The document as one segment (Georgescul et al. 2006 §5.1, "no boundaries")."""

    name: ClassVar[str] = "none"

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        return tuple(Segmentation((len(document.units),)) for document in inputs.corpus)


@dataclass(frozen=True, slots=True)
class AllBoundaries(Segmenter):
    """A boundary after every unit (Georgescul et al. 2006 §5.1, "all boundaries")."""

    name: ClassVar[str] = "all"

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        return tuple(Segmentation((1,) * len(document.units)) for document in inputs.corpus)


@dataclass(frozen=True, slots=True)
class Even(Segmenter):
    """Segments of equal length: ``k`` of them, or one for ``every`` so many units.

    With ``k`` the boundaries are ⌊i·n/k⌋ for i = 1…k−1, so masses differ by 1 at most; a document
    of fewer than ``k`` units has a boundary after every unit. With ``every`` the last segment takes
    what is left over.
    """

    k: Positive | None = None
    every: Positive | None = None
    name: ClassVar[str] = "even"

    def __post_init__(self) -> None:
        Segmenter.__post_init__(self)
        if (self.k is None) == (self.every is None):
            raise InputError(
                "neither k nor every" if self.k is None else "both k and every",
                expected="the number of segments (k) or the number of units in each (every)",
                remedy="write even:k=5 or even:every=10",
            )

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        lengths = [len(document.units) for document in inputs.corpus]
        if self.every is not None:
            return tuple(_periodic(n, self.every) for n in lengths)
        return tuple(_spread(n, self.k or 1) for n in lengths)  # None was refused


@dataclass(frozen=True, slots=True)
class Random(Segmenter):
    """A boundary in every gap with probability ``p``, independently of the others.

    ``draw`` numbers the independent draws of one seed, for several systems alike. Two of the same
    draw are nested: the one with the smaller ``p`` has none but boundaries of the other.
    """

    p: float | None = None
    draw: Count = 0
    name: ClassVar[str] = "random"

    def __post_init__(self) -> None:
        Segmenter.__post_init__(self)
        if self.p is None or not 0 <= self.p <= 1:
            raise InputError(
                "no probability p" if self.p is None else f"p = {self.p}",
                expected="the probability of a boundary, from 0 to 1",
                remedy="write random:p=0.1 for a boundary in one of ten gaps",
            )

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Draw once per gap of every document."""
        found = []
        for document in inputs.corpus:
            rng, n_units = inputs.rng(document.id, self.name), len(document.units)
            for _ in range(self.draw + 1):
                drawn = rng.random(n_units - 1)
            marked = np.flatnonzero(drawn < (self.p or 0.0)) + 1  # None was refused
            found.append(Segmentation.from_boundaries(marked.tolist(), n_units))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class RandomKnown(Segmenter):
    """As many boundaries as gold has, in any gaps (Georgescul et al. 2006 §5.1, "random known")."""

    name: ClassVar[str] = "random_known"
    needs_gold: ClassVar[bool] = True

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Scatter each document's number of gold boundaries."""
        segments = inputs.gold_segments(self.name)
        return tuple(
            _scattered(len(each.units), round(k) - 1, inputs.rng(each.id, self.name))
            for each, k in zip(inputs.corpus, segments, strict=True)
        )


@dataclass(frozen=True, slots=True)
class RandomUnknown(Segmenter):
    """A random number of boundaries in any gaps (Georgescul et al. 2006 §5.1, "random unknown").

    Here every number from 0 to n − 1 is equally likely in each document.
    """

    name: ClassVar[str] = "random_unknown"

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Draw the number, then the gaps."""
        found = []
        for document in inputs.corpus:
            rng, n_units = inputs.rng(document.id, self.name), len(document.units)
            found.append(_scattered(n_units, int(rng.integers(n_units)), rng))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class OracleRandom(RandomKnown):
    """Coen, "When F1 Fails", Table 3, "oracle-density random (BOR = 1)".

    The same distribution as `RandomKnown`, by independent draws.
    """

    name: ClassVar[str] = "oracle_random"


@dataclass(frozen=True, slots=True)
class OraclePeriodic(Segmenter):
    """A boundary after every N units, N such that there are as many boundaries as in gold.

    Coen, "When F1 Fails", §4 and Table 3, "oracle-periodic (Every-N)". ``match=corpus``: one N for
    all documents, the smallest of those whose number of boundaries over the corpus is nearest to
    gold's (Table 3). ``match=document``: each document has its own number of gold boundaries,
    spaced evenly (Table 4: BOR 1.00).
    """

    match: Literal["corpus", "document"] = "corpus"
    name: ClassVar[str] = "oracle_periodic"
    needs_gold: ClassVar[bool] = True

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        segments = inputs.gold_segments(self.name)
        lengths = [len(document.units) for document in inputs.corpus]
        if self.match == "document":
            return tuple(_spread(n, round(k)) for n, k in zip(lengths, segments, strict=True))
        period = nearest_period(lengths, n_boundaries=round(sum(segments) - len(segments)))
        return tuple(_periodic(n, period) for n in lengths)


def arp_random_baselines(corpus: Corpus) -> tuple[tuple[str, Random], ...]:
    """Return the nine random baselines of Ghinassi et al. (2024) §3.4.1 under their names.

    ``random_mean``: probability 1/k at every gap, k the corpus mean of gold segments per document
    (as printed; the mean segment *length* is what would match gold's number of boundaries).
    ``random_2`` to ``random_9``: probability 1/n. Each has a draw of its own, so they are
    independent of one another. Needs gold.
    """
    segments = Inputs(corpus).gold_segments("random_mean")
    mean = sum(segments) / len(segments)
    return (
        ("random_mean", Random(p=1 / mean, draw=1)),
        *((f"random_{n}", Random(p=1 / n, draw=n)) for n in ARP_RATES),
    )


def nearest_period(lengths: Sequence[int], n_boundaries: int) -> int:
    """Return the smallest N whose Σ ⌊(n − 1)/N⌋ over documents of n units is nearest to a number.

    >>> nearest_period([10, 10], n_boundaries=2)
    5
    """
    gaps = np.array(lengths) - 1
    counts = [int((gaps // period).sum()) for period in range(1, int(gaps.max()) + 2)]
    return 1 + int(np.argmin(np.abs(np.array(counts) - n_boundaries)))


def _periodic(n_units: int, period: int) -> Segmentation:
    return Segmentation.from_boundaries(range(period, n_units, period), n_units)


def _spread(n_units: int, n_segments: int) -> Segmentation:
    k = min(n_segments, n_units)
    return Segmentation.from_boundaries([i * n_units // k for i in range(1, k)], n_units)


def _scattered(n_units: int, n_boundaries: int, rng: np.random.Generator) -> Segmentation:
    """Any set of so many gaps, all sets equally likely."""
    gaps = rng.choice(n_units - 1, size=n_boundaries, replace=False) + 1
    return Segmentation.from_boundaries(gaps.tolist(), n_units)
