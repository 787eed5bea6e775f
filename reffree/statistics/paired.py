"""Whether one system is better than another over the same documents: paired tests."""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from reffree.statistics.resampling import CONFIDENCE, MIN_DOCUMENTS, portions, resampled_documents
from reffree.util.arrays import Booleans, Floats, Integers, ratio

SWAPS = 10_000
"""Random swaps where there are too many to enumerate."""

EXACT_DOCUMENTS = 12
"""Up to so many documents all 2^D swaps are enumerated."""

TIE = 1e-11
"""Relative to the values: differences closer than that are equal but for the order of summation."""

DRAWN_AT_ONCE = 1 << 20
ROWS_AT_ONCE = 512
EVERY = slice(None)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The first system against the second."""

    difference: float | None  # first - second; None without a common document
    ci: tuple[float, float] | None  # 95 % over documents; None with fewer than MIN_DOCUMENTS
    p: float | None  # two-sided
    p_corrected: float | None  # for all pairs that were tested together
    documents: int  # where both are defined

    @property
    def smallest_p(self) -> float:
        """The smallest p, corrected or not, this many documents can give."""
        return smallest_p(self.documents)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Both systems of ``p`` pairs on ``d`` documents; 0 where the pair is undefined."""

    sums: Floats  # (2, p, d) weight × value
    weights: Floats  # (2, p, d)

    def subset(self, pairs: Integers | Booleans, documents: Booleans | slice) -> _Sides:
        """Keep some of the pairs, in this order, on some of the documents."""
        return _Sides(*(x[:, pairs][..., documents] for x in (self.sums, self.weights)))

    def differences(self, counts: Floats) -> Floats:
        """Differences (n, p) when documents occur ``counts`` (n, d) times; NaN without any."""
        a, b = ratio(counts @ self.sums.swapaxes(1, 2), counts @ self.weights.swapaxes(1, 2))
        difference: Floats = a - b
        return difference

    def distances(self, swaps: NDArray[np.int8]) -> Floats:
        """Return the absolute differences (n, p) when documents change sides where ``swaps`` is 1.

        Weights are added, never taken away: light documents count beside heavy ones.
        """
        both = _Sides(*(np.dstack([x, x[::-1]]) for x in (self.sums, self.weights)))
        return np.abs(both.differences(np.hstack([1.0 - swaps, swaps])))

    def scales(self) -> tuple[Floats, Floats]:
        """Size of the values (p,), and standard deviation (p,) of differences over all swaps.

        To first order; exactly where both systems weigh a document alike.
        """
        weight = self.weights.sum(2)  # (2, p)
        mean = self.sums.sum((0, 2)) / weight.sum(0)
        a, b = self.sums - mean[:, None] * self.weights
        sizes = (np.abs(self.sums).sum(2) / weight).sum(0)
        return sizes, 2 * np.sqrt(((a - b) ** 2).sum(1)) / weight.sum(0)


def paired_tests(
    values: Floats, weights: Floats, pairs: Sequence[tuple[int, int]], rng: np.random.Generator
) -> list[PairedTest]:
    r"""Compare pairs of systems on the documents where both are defined.

    A system's value is the weighted mean :math:`\sum_d w_d v_d / \sum_d w_d`; :math:`\Delta` is the
    difference of two such means. The p-value is that of a two-sided permutation test: under the
    null hypothesis it does not matter which of the two systems a document's value and weight came
    from, so they are swapped document by document:

    .. math:: p = \#\{|\Delta^*| \ge |\Delta|\} / 2^D \quad\text{or}\quad
        (1 + \#\{|\Delta^*| \ge |\Delta|\}) / (1 + 10000)

    over all :math:`2^D` swaps up to 12 documents, over random ones beyond. The interval is the
    percentile bootstrap's, both systems on the same resamples of documents, and holds the
    difference. All pairs share the same resamples and swaps, so what a pair is found to be does
    not depend on the others, but for its corrected p.

    That one holds for all pairs of the call together, by the step-down procedure of Westfall and
    Young (1993): pairs are ordered by :math:`z = |\Delta| / \sigma`, and a pair's p is the share of
    swaps, the same documents for all pairs, in which the largest :math:`z^*` of it and of those
    behind it is at least its :math:`z`; at least that of the pair before it, and its own p. With
    :math:`\sigma` the standard deviation of :math:`\Delta^*`, a pair of systems that scatter does
    not set the mark for all; Student's t would change with the swaps, and a pair with five common
    documents would hide all others. The chance of any false difference is at most the level,
    whichever pairs do differ: exactly where differences on a document are as likely with all signs
    turned, else in the limit of many documents.

    ``values`` are (systems, documents), NaN where undefined, and so are ``weights``; a document
    that weighs 0 is undefined.
    """
    if not pairs:
        return []
    first, second = (np.array(side, dtype=np.intp) for side in zip(*pairs, strict=True))
    is_defined = ~np.isnan(values) & (weights > 0)  # (s, d)
    is_common = is_defined[first] & is_defined[second]  # (p, d)
    sums = np.where(is_defined, values, 0.0) * weights  # (s, d)
    both = np.stack([first, second])
    sides = _Sides(*(np.where(is_common, x[both], 0.0) for x in (sums, weights)))
    n_common = is_common.sum(1)  # (p,)
    difference = sides.differences(np.ones((1, values.shape[1])))[0]  # (p,)
    low, high = _intervals(sides, difference, n_common, rng)
    p, p_corrected = _p_values(sides, difference, is_common, rng)
    return [
        PairedTest(
            difference=float(difference[i]) if n_common[i] else None,
            ci=(float(low[i]), float(high[i])) if n_common[i] >= MIN_DOCUMENTS else None,
            p=float(p[i]) if n_common[i] else None,
            p_corrected=float(p_corrected[i]) if n_common[i] else None,
            documents=int(n_common[i]),
        )
        for i in range(len(pairs))
    ]


def smallest_p(n_documents: int) -> float:
    """Return the smallest p so many documents can give: of all swaps two, none and all of them."""
    if n_documents <= EXACT_DOCUMENTS:
        return min(1.0, 2.0 ** (1 - n_documents))
    return 1 / (1 + SWAPS)


def holm(p_values: Sequence[float] | Floats) -> Floats:
    """Holm's step-down correction: reject where the result is at most the family's level.

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1.0)
    return adjusted


def letters(ranking: Sequence[str], distinguishable: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Compact letter display: two systems share a letter iff they are not distinguishable.

    Insert and absorb (Piepho 2004): begin with one group of all; a distinguishable pair splits
    every group that holds both into one without the first and one without the second; a group
    inside another is dropped. Letters follow the ranking, so the best system has an ``a``.

    >>> letters(["x", "y", "z"], [("x", "z")])
    {'x': 'a', 'y': 'ab', 'z': 'b'}
    """
    groups = [frozenset(ranking)]
    for a, b in distinguishable:
        kept = [group for group in groups if not {a, b} <= group]
        halves = [group - {x} for group in groups if {a, b} <= group for x in (a, b)]
        groups = kept + [half for half in halves if not any(half <= group for group in kept)]
    rank = {system: i for i, system in enumerate(ranking)}
    groups.sort(key=lambda group: sorted(rank[system] for system in group))
    beyond = (character for code in count(ord("α")) if (character := chr(code)).isalpha())
    named = list(zip(chain(string.ascii_letters, beyond), groups, strict=False))
    return {
        system: "".join(letter for letter, group in named if system in group) for system in ranking
    }


def _intervals(
    sides: _Sides, difference: Floats, n_common: Integers, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Percentile intervals (p,) that hold the difference, NaN where there are too few documents."""
    is_enough = n_common >= MIN_DOCUMENTS
    bounds = np.full((2, len(n_common)), np.nan)
    kept = sides.subset(is_enough, EVERY)
    counts = resampled_documents(sides.sums.shape[2], rng)
    at_once = min(ROWS_AT_ONCE, DRAWN_AT_ONCE // counts.shape[1])
    parts = [counts[rows].astype(np.float64) for rows in portions(len(counts), at_once)]
    drawn = np.concatenate([kept.differences(part) for part in parts])  # (resamples, p)
    if is_enough.any():
        tail = (1 - CONFIDENCE) / 2
        quantile = np.nanquantile if np.isnan(drawn).any() else np.quantile  # the first is slow
        bounds[:, is_enough] = quantile(drawn, [tail, 1 - tail], axis=0)
    return np.minimum(bounds[0], difference), np.maximum(bounds[1], difference)


def _p_values(
    sides: _Sides, difference: Floats, is_common: Booleans, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """p-values (p,) and corrected ones, NaN without a common document."""
    n_common, n_documents = is_common.sum(1), is_common.shape[1]
    p, corrected = np.full((2, len(n_common)), np.nan)
    at = np.flatnonzero(n_common)
    if not len(at):
        return p, corrected
    sizes, spread = sides.subset(at, EVERY).scales()
    least = np.abs(difference[at]) - TIE * sizes
    spread[spread <= TIE * sizes] = np.inf  # no swap makes any difference
    order = np.argsort(least / spread, kind="stable")  # the nearest first
    at, least, z, spread = at[order], least[order], (least / spread)[order], spread[order]
    tested = sides.subset(at, EVERY)
    own, joint = np.zeros((2, len(at)), dtype=np.int64)
    for swaps in swaps_of(n_documents, rng):
        for rows in portions(len(swaps), DRAWN_AT_ONCE // len(at)):
            distances = tested.distances(swaps[rows])
            own += (distances >= least).sum(0)
            joint += (np.maximum.accumulate(distances / spread, axis=1) >= z).sum(0)
    is_exact = n_documents <= EXACT_DOCUMENTS
    extra, total = (0, 2**n_documents) if is_exact else (1, 1 + SWAPS)
    p[at] = (extra + own) / total
    for i, reached in zip(at, least, strict=True):
        if n_common[i] <= EXACT_DOCUMENTS < n_documents:
            pair, swaps = sides.subset(np.array([i]), is_common[i]), all_swaps(n_common[i])
            p[i] = (pair.distances(swaps) >= reached).mean()
    stepped = np.maximum.accumulate((extra + joint[::-1]) / total)[::-1]
    corrected[at] = np.maximum(stepped, p[at])
    return p, corrected


def swaps_of(n_documents: int, rng: np.random.Generator) -> Iterator[NDArray[np.int8]]:
    """All swaps (n, d) of few documents, 10,000 random ones of many, some at a time."""
    if n_documents <= EXACT_DOCUMENTS:
        yield all_swaps(n_documents)
        return
    for rows in portions(SWAPS, min(ROWS_AT_ONCE, DRAWN_AT_ONCE // n_documents)):
        yield rng.integers(0, 2, (rows.stop - rows.start, n_documents), dtype=np.int8)


def all_swaps(n_documents: int) -> NDArray[np.int8]:
    """All (2^d, d) ways to swap some of the documents: 1 where one is swapped."""
    bits = (np.arange(2**n_documents)[:, None] >> np.arange(n_documents)) & 1
    return bits.astype(np.int8)
