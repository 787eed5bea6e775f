"""Metrics that slide a window over both segmentations and compare the boundaries in it.

Window i of a document of n units lies between units i and i + k and holds the boundaries
i + 1 … i + k. The numbers of boundaries in it change only where a boundary enters or leaves it, so
a pair of segmentations costs as many steps as it has boundaries, whatever the number of units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np

from reffree.data.masses import Masses
from reffree.metrics.gold.metric import GoldMetric, Golds, columns
from reffree.metrics.gold.pairs import Pairs
from reffree.statistics.losses import Direction
from reffree.util.arrays import Floats, Integers, ratio
from reffree.util.bounds import Bounds
from reffree.util.compiling import njit
from reffree.util.words import english

Padding = Literal["plain", "exact", "segeval"]
Measure = Literal["units", "words", "terms"]

NO_MISSES = "the document is no longer than the window or the reference has no boundary"


class WindowSums(NamedTuple):
    """Of each pair; h and r are the boundaries of hypothesis and reference in a window."""

    windows: Integers
    different: Integers  # windows with h ≠ r
    fewer: Integers  # windows with h < r
    more: Integers  # windows with h > r
    with_reference: Integers  # windows with r > 0
    shared: Integers  # Σ min(h, r)
    missed: Integers  # windows with h ≠ r and r > 0


def half_means(n_units: Integers, segments: Integers) -> Integers:
    """Half the mean mass, rounded half to even, at least 2; in integers, so exact."""
    whole, rest = np.divmod(n_units, 2 * segments)
    round_up = (rest > segments) | ((rest == segments) & (whole % 2 == 1))
    sizes: Integers = np.maximum(2, whole + round_up)
    return sizes


def window_sums(pairs: Pairs, k: Integers, *, padded: bool) -> WindowSums:
    """Slide each pair's window of ``k`` gaps over it.

    Without padding both ends of the window are units, and there are n - k; with it the window
    begins and ends with a single gap inside the document, and there are n + k - 2.
    """
    sums = np.zeros((len(pairs), len(WindowSums._fields)), dtype=np.int64)
    pairs.each(lambda h, r, rows: _slide(h, r, k[rows], padded, sums[rows]))
    return WindowSums(*sums.T)


@dataclass(frozen=True, slots=True)
class Windowed(GoldMetric):
    """The options all share: the window, its size and what it is measured in.

    ``k`` is half the mean mass of each pair's reference, or with ``corpus`` of all golds of the
    corpus (`half_means`). It counts ``units``; or their ``words``, of which a unit has at least
    one; or their ``terms``, English words less stop words, as Georgescul et al. 2006, §5.1, count
    after removing common words.
    """

    k: Annotated[
        Literal["corpus"] | int | None, Bounds(1, remedy="write k=5 or k=corpus, or leave it out")
    ] = None
    unit: Measure = "units"
    direction: ClassVar[Direction] = "lower"
    undefined = "the document is no longer than the window"

    def over(self, golds: Golds) -> Self:
        """Settle the window size of a corpus."""
        if self.k != "corpus":
            return self
        n_units, n_segments = 0, 0
        for pairs in golds():
            n_units += int(self.measured(pairs).n_units.sum())
            n_segments += int((pairs.reference > 0).sum())
        return replace(self, k=int(half_means(np.array(n_units), np.array(n_segments))))

    def measured(self, pairs: Pairs) -> Pairs:
        """Turn masses in units into masses in what the window is measured in."""
        if self.unit == "units":
            return pairs
        hypothesis, reference = np.zeros_like(pairs.hypothesis), np.zeros_like(pairs.reference)
        for units, rows in pairs.documents(f"unit={self.unit}"):
            terms = english().terms(units)
            sizes = np.diff(terms.word_edges if self.unit == "words" else terms.edges)
            edges = np.append(0, np.cumsum(np.maximum(1, sizes)))
            for made, given in (hypothesis, pairs.hypothesis), (reference, pairs.reference):
                made[rows] = np.diff(edges[np.cumsum(given[rows], axis=1)], axis=1, prepend=0)
        return Pairs(hypothesis, reference)

    def sizes(self, pairs: Pairs) -> Integers:
        """Window size of each pair."""
        assert self.k != "corpus", "the corpus is to be asked first: over()"
        if self.k is None:
            return half_means(pairs.n_units, (pairs.reference > 0).sum(1))
        return np.full(len(pairs), self.k)

    def sums(self, pairs: Pairs) -> WindowSums:
        """Sums over the windows between two units."""
        measured = self.measured(pairs)
        return window_sums(measured, self.sizes(measured), padded=False)


@dataclass(frozen=True, slots=True)
class Pk(Windowed):
    """Share of the n − k unit pairs (i, i + k) that only one side keeps in one segment.

    Beeferman et al. 1999; Georgescul et al. 2006, §4.1. Range [0, 1]. Undefined for n ≤ k.
    Half-even k and the denominator: docs/definitions.md.
    """

    name = "pk"

    def counts(self, pairs: Pairs) -> Floats:
        """Pairs of units judged differently, and all."""
        pairs = self.measured(pairs)
        sizes = self.sizes(pairs)
        parted = np.zeros(len(pairs), dtype=np.int64)
        pairs.each(lambda h, r, rows: _part(h, r, sizes[rows], parted[rows]))
        return columns(parted, np.maximum(0, pairs.n_units - sizes))


@dataclass(frozen=True, slots=True)
class WindowDiff(Windowed):
    """Share of the windows in which the numbers of boundaries differ.

    Pevzner & Hearst 2002; Georgescul et al. 2006, §4.2. Range [0, 1]. ``plain`` has n − k windows
    and is undefined for n ≤ k. ``exact`` (Lamprier et al. 2007) adds k − 1 units at both ends, so
    that every boundary lies in k of n + k − 2 windows; ``segeval`` divides the same number of
    differences by n + k + 1, as that package does (docs/definitions.md).
    """

    padding: Padding = "plain"
    name = "windowdiff"

    def counts(self, pairs: Pairs) -> Floats:
        """Windows that differ, and all."""
        pairs = self.measured(pairs)
        sizes = self.sizes(pairs)
        sums = window_sums(pairs, sizes, padded=self.padding != "plain")
        windows = pairs.n_units + sizes + 1 if self.padding == "segeval" else sums.windows
        return columns(sums.different, windows)


@dataclass(frozen=True, slots=True)
class PkPrime(Windowed):
    """P′miss · Pseg + P′fa · (1 − Pseg), by windows whose numbers of boundaries differ.

    Georgescul et al. 2006, §4.1 (after TDT 1998): P′miss among the windows with a reference
    boundary, P′fa among those without; where all windows are of one kind, its rate is the value.
    Pseg, ``p_seg``, is the probability that a window has a reference boundary: by default the share
    of the corpus's windows that have one. With a document's own share instead, weights and
    denominators would cancel, and P′k would be WindowDiff; so it is where all windows of a corpus
    are counted together (micro), and for a single pair. Range [0, 1]. Undefined for n ≤ k.
    """

    p_seg: Annotated[float | None, Bounds(0, 1, remedy="leave it out for the corpus's own")] = None
    name = "pk_prime"

    def over(self, golds: Golds) -> Self:
        """Settle the window size and Pseg of a corpus."""
        settled = Windowed.over(self, golds)
        if self.p_seg is not None:
            return settled
        with_reference, windows = 0, 0
        for pairs in golds():
            sums = settled.sums(pairs)
            with_reference += int(sums.with_reference.sum())
            windows += int(sums.windows.sum())
        return replace(settled, p_seg=with_reference / windows if windows else 0.0)

    def counts(self, pairs: Pairs) -> Floats:
        """Windows that differ and all, of those with a reference boundary and of those without."""
        sums = self.sums(pairs)
        alarms, without = sums.different - sums.missed, sums.windows - sums.with_reference
        return columns(sums.missed, sums.with_reference, alarms, without)

    def value(self, counts: Floats) -> Floats:
        """Weigh the two rates by Pseg."""
        assert self.p_seg is not None, "the corpus is to be asked first: over()"
        missed = ratio(counts[..., 0], counts[..., 1])
        alarms = ratio(counts[..., 2], counts[..., 3])
        both = missed * self.p_seg + alarms * (1 - self.p_seg)
        only = np.where(np.isnan(alarms), missed, alarms)
        return np.where(np.isnan(both), only, both)


@dataclass(frozen=True, slots=True)
class PrMiss(Windowed):
    """Windows with fewer boundaries than the reference has, among those where it has one.

    Georgescul et al. 2006, §4.3. Range [0, 1]. Undefined for n ≤ k and without a reference
    boundary.
    """

    name = "pr_miss"
    undefined = NO_MISSES

    def counts(self, pairs: Pairs) -> Floats:
        """Windows with too few boundaries, with a reference boundary, with too many, and all."""
        sums = self.sums(pairs)
        return columns(sums.fewer, sums.with_reference, sums.more, sums.windows)


@dataclass(frozen=True, slots=True)
class PrFalseAlarm(PrMiss):
    """Share of the n − k windows with more boundaries than the reference has.

    Georgescul et al. 2006, §4.3. Range [0, 1]. Undefined for n ≤ k.
    """

    name = "pr_false_alarm"
    undefined = Windowed.undefined
    divided = (2, 3)


@dataclass(frozen=True, slots=True)
class PrError(PrMiss):
    """c_miss · Pr_miss + c_fa · Pr_fa (`PrMiss`, `PrFalseAlarm`).

    Georgescul et al. 2006, §4.3. Range [0, c_miss + c_fa]. Undefined for n ≤ k and where the
    reference has no boundary, for Pr_miss then is.

    >>> PrError()([3, 2, 5], [2, 3, 5])
    0.1875
    """

    c_miss: Annotated[float, Bounds(0)] = 0.5
    c_fa: Annotated[float, Bounds(0)] = 0.5
    name = "pr_error"

    def value(self, counts: Floats) -> Floats:
        """Weigh the two rates."""
        miss = ratio(counts[..., 0], counts[..., 1])
        return self.c_miss * miss + self.c_fa * ratio(counts[..., 2], counts[..., 3])


@dataclass(frozen=True, slots=True)
class WinPrPrecision(Windowed):
    """TP / hypothesis boundaries, TP = Σ min(h, r) / k over windows padded with k − 1 units.

    Scaiano & Inkpen 2012; h and r are the boundaries in a window, and with the padding each
    boundary counts once. Range [0, 1]. Undefined without a hypothesis boundary.
    """

    name = "winpr_precision"
    direction = "higher"
    undefined = "the hypothesis has no boundary"

    def counts(self, pairs: Pairs) -> Floats:
        """True positives, hypothesis boundaries, reference boundaries."""
        measured = self.measured(pairs)
        sizes = self.sizes(measured)
        shared = window_sums(measured, sizes, padded=True).shared
        return columns(shared / sizes, *pairs.n_boundaries)


@dataclass(frozen=True, slots=True)
class WinPrRecall(WinPrPrecision):
    """TP / reference boundaries, with the true positives of `WinPrPrecision`.

    Scaiano & Inkpen 2012. Range [0, 1]. Undefined without a reference boundary.

    >>> WinPrRecall()([5, 5], [2, 3, 5])
    0.5
    """

    name = "winpr_recall"
    undefined = "the reference has no boundary"
    divided = (0, 2)


@dataclass(frozen=True, slots=True)
class WinPr(WinPrPrecision):
    """F of `WinPrPrecision` and `WinPrRecall`: 2·TP / (hypothesis + reference boundaries).

    Scaiano & Inkpen 2012. Range [0, 1]; 0 where only one side has boundaries. Undefined where
    neither has.
    """

    name = "winpr"
    undefined = "neither the hypothesis nor the reference has a boundary"

    def value(self, counts: Floats) -> Floats:
        """Twice the true positives per boundary."""
        return ratio(2 * counts[..., 0], counts[..., 1] + counts[..., 2])


@njit(cache=True, nogil=True)
def _part(hypothesis: Masses, reference: Masses, k: Integers, parted: Integers) -> None:
    """Count the windows between two units that only one side leaves within a segment.

    A segment of m units holds m - k of them, so they are those of either side's segments, less
    twice those of the spans that both sides leave whole.
    """
    for p in range(len(parted)):
        h_masses, r_masses, size = hypothesis[p], reference[p], k[p]
        h, r, total = 0, 0, 0
        h_left, r_left = h_masses[0], r_masses[0]
        total += max(0, h_left - size) + max(0, r_left - size)
        while True:
            span = min(h_left, r_left)
            total -= 2 * max(0, span - size)
            h_left -= span
            r_left -= span
            if h_left == 0:
                h += 1
                if h == len(h_masses) or h_masses[h] == 0:
                    break
                h_left = h_masses[h]
                total += max(0, h_left - size)
            if r_left == 0:
                r += 1
                r_left = r_masses[r]
                total += max(0, r_left - size)
        parted[p] = total


@njit(cache=True, nogil=True)
def _ends(masses: Integers, boundaries: Integers, never: int) -> int:
    """Write the boundaries of a row, closed by two that no window reaches; return the units."""
    total, count = 0, 0
    for mass in masses:
        if mass == 0:
            break
        total += mass
        boundaries[count] = total
        count += 1
    boundaries[count - 1] = never
    return total


@njit(cache=True, nogil=True)
def _slide(
    hypothesis: Masses, reference: Masses, k: Integers, padded: bool, sums: Integers
) -> None:
    """Fill in the `WindowSums` of each pair."""
    never = 1 << 62
    h = np.empty(hypothesis.shape[1], dtype=np.int64)
    r = np.empty(reference.shape[1], dtype=np.int64)
    for p in range(len(sums)):
        n = _ends(hypothesis[p], h, never)
        _ends(reference[p], r, never)
        size = k[p]
        # Window i holds the boundaries i + 1 … i + k.
        i, stop = (1 - size, n - 1) if padded else (0, n - size)
        entering_h, leaving_h, entering_r, leaving_r = 0, 0, 0, 0
        out = sums[p]
        out[0] = max(0, stop - i)
        while i < stop:
            while h[entering_h] <= i + size:
                entering_h += 1
            while h[leaving_h] <= i:
                leaving_h += 1
            while r[entering_r] <= i + size:
                entering_r += 1
            while r[leaving_r] <= i:
                leaving_r += 1
            following = min(
                min(h[entering_h] - size, h[leaving_h]), min(r[entering_r] - size, r[leaving_r])
            )
            length = min(following, stop) - i
            in_h, in_r = entering_h - leaving_h, entering_r - leaving_r
            out[1] += length * (in_h != in_r)
            out[2] += length * (in_h < in_r)
            out[3] += length * (in_h > in_r)
            out[4] += length * (in_r > 0)
            out[5] += length * min(in_h, in_r)
            out[6] += length * (in_h != in_r and in_r > 0)
            i += length
