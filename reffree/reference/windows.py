"""Metrics that slide a window over both segmentations and compare the boundaries in it.

Window i of a document of n units lies between units i and i + k and holds the boundaries
i + 1 … i + k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats
from reffree.bounds import check_number, check_whole
from reffree.errors import OptionError
from reffree.reference.metric import ratio
from reffree.reference.pairs import Pairs
from reffree.reference.windows_kernel import WindowSums, parted_windows, window_sums
from reffree.statistics.losses import Direction

Padding = Literal["plain", "exact", "segeval"]


def window_sizes(pairs: Pairs) -> NDArray[np.int64]:
    """Half the mean reference mass, rounded half to even, at least 2; in integers, so exact."""
    segments = (pairs.reference > 0).sum(1)
    whole, rest = np.divmod(pairs.n_units, 2 * segments)
    round_up = (rest > segments) | ((rest == segments) & (whole % 2 == 1))
    sizes: NDArray[np.int64] = np.maximum(2, whole + round_up)
    return sizes


def columns(*parts: NDArray[np.int64] | Floats) -> Floats:
    """One row of counts per pair."""
    return np.stack(parts, axis=1).astype(np.float64)


def misses_and_false_alarms(sums: WindowSums) -> Floats:
    """Windows with too few boundaries, with a reference boundary, with too many, and all."""
    return columns(sums.fewer, sums.with_reference, sums.more, sums.windows)


@dataclass(frozen=True, slots=True)
class Windowed:
    """The option all share: the window size, by default one for each pair (`window_sizes`)."""

    k: int | None = None

    def __post_init__(self) -> None:
        """Refuse a window without a boundary in it."""
        if self.k is not None:
            check_whole("k", self.k, 1)

    def sizes(self, pairs: Pairs) -> NDArray[np.int64]:
        """Window size of each pair."""
        return window_sizes(pairs) if self.k is None else np.full(len(pairs), self.k)

    def sums(self, pairs: Pairs) -> WindowSums:
        """Sums over the windows between two units."""
        return window_sums(pairs, self.sizes(pairs), padded=False)

    def shared_boundaries(self, pairs: Pairs) -> Floats:
        """True positives of WinPR, and the boundaries of the hypothesis and of the reference.

        A boundary lies in k of the padded windows and must count once.
        """
        sizes = self.sizes(pairs)
        shared = window_sums(pairs, sizes, padded=True).shared / sizes
        sides = ((side > 0).sum(1) - 1 for side in (pairs.hypothesis, pairs.reference))
        return columns(shared, *sides)


class Share(Windowed):
    """The first count as a share of the second."""

    __slots__ = ()

    def value(self, counts: Floats) -> Floats:
        """Divide the first count by the second."""
        return ratio(counts[..., 0], counts[..., 1])


@dataclass(frozen=True, slots=True)
class Pk(Share):
    """Share of the n − k unit pairs (i, i + k) that only one side keeps in one segment.

    Beeferman et al. 1999; Georgescul et al. 2006, §4.1. Range [0, 1]. Undefined for n ≤ k.
    Half-even k and the denominator: definitions, row "pk, windowdiff".
    """

    name: ClassVar[str] = "pk"
    direction: ClassVar[Direction] = "lower"
    undefined: ClassVar[str] = "the document is no longer than the window"

    def counts(self, pairs: Pairs) -> Floats:
        """Pairs of units judged differently, and all."""
        sizes = self.sizes(pairs)
        return columns(parted_windows(pairs, sizes), np.maximum(0, pairs.n_units - sizes))


@dataclass(frozen=True, slots=True)
class WindowDiff(Share):
    """Share of the windows in which the numbers of boundaries differ.

    Pevzner & Hearst 2002; Georgescul et al. 2006, §4.2. Range [0, 1]. ``plain`` has n − k windows
    and is undefined for n ≤ k. ``exact`` (Lamprier et al. 2007) adds k − 1 units at both ends, so
    that every boundary lies in k of n + k − 2 windows; ``segeval`` divides the same number of
    differences by n + k + 1, as that package does (definitions, row "windowdiff padding").
    """

    padding: Padding = "plain"
    name: ClassVar[str] = "windowdiff"
    direction: ClassVar[Direction] = "lower"
    undefined: ClassVar[str] = "the document is no longer than the window"

    def __post_init__(self) -> None:
        """Refuse a padding that does not exist."""
        Windowed.__post_init__(self)
        if self.padding not in get_args(Padding):
            raise OptionError(
                f"the padding {self.padding!r}",
                expected=" or ".join(get_args(Padding)),
                remedy="leave it out for plain",
            )

    def counts(self, pairs: Pairs) -> Floats:
        """Windows that differ, and all."""
        sizes = self.sizes(pairs)
        sums = window_sums(pairs, sizes, padded=self.padding != "plain")
        windows = pairs.n_units + sizes + 1 if self.padding == "segeval" else sums.windows
        return columns(sums.different, windows)


@dataclass(frozen=True, slots=True)
class PkPrime(Share):
    """P′miss · Pseg + P′fa · (1 − Pseg), by windows whose numbers of boundaries differ.

    Georgescul et al. 2006, §4.1 (after TDT 1998): P′miss among the windows with a reference
    boundary, P′fa among those without, Pseg the share of the former. Pseg is that of the same
    windows, so weights and denominators cancel and P′k equals plain WindowDiff; a Pseg taken from
    elsewhere would part them. Range [0, 1]. Undefined for n ≤ k.
    """

    name: ClassVar[str] = "pk_prime"
    direction: ClassVar[Direction] = "lower"
    undefined: ClassVar[str] = "the document is no longer than the window"

    def counts(self, pairs: Pairs) -> Floats:
        """Windows that differ, and all."""
        sums = self.sums(pairs)
        return columns(sums.different, sums.windows)


@dataclass(frozen=True, slots=True)
class PrError(Windowed):
    """c_miss · Pr_miss + c_fa · Pr_fa (`PrMiss`, `PrFalseAlarm`).

    Georgescul et al. 2006, §4.3. Range [0, c_miss + c_fa]. Undefined for n ≤ k and where the
    reference has no boundary, for Pr_miss then is.
    """

    c_miss: float = 0.5
    c_fa: float = 0.5
    name: ClassVar[str] = "pr_error"
    direction: ClassVar[Direction] = "lower"
    undefined: ClassVar[str] = (
        "the document is no longer than the window or the reference has no boundary"
    )

    def __post_init__(self) -> None:
        """Refuse negative costs."""
        Windowed.__post_init__(self)
        check_number("c_miss", self.c_miss, 0)
        check_number("c_fa", self.c_fa, 0)

    def counts(self, pairs: Pairs) -> Floats:
        """Misses, windows with a reference boundary, false alarms, all windows."""
        return misses_and_false_alarms(self.sums(pairs))

    def value(self, counts: Floats) -> Floats:
        """Weigh the two rates."""
        miss = ratio(counts[..., 0], counts[..., 1])
        false_alarm = ratio(counts[..., 2], counts[..., 3])
        return self.c_miss * miss + self.c_fa * false_alarm


@dataclass(frozen=True, slots=True)
class PrMiss(Share):
    """Windows with fewer boundaries than the reference has, among those where it has one.

    Georgescul et al. 2006, §4.3. Range [0, 1]. Undefined for n ≤ k and without a reference
    boundary.
    """

    name: ClassVar[str] = "pr_miss"
    direction: ClassVar[Direction] = "lower"
    undefined: ClassVar[str] = (
        "the document is no longer than the window or the reference has no boundary"
    )

    def counts(self, pairs: Pairs) -> Floats:
        """Misses, and windows with a reference boundary."""
        return misses_and_false_alarms(self.sums(pairs))[:, :2]


@dataclass(frozen=True, slots=True)
class PrFalseAlarm(Share):
    """Share of the n − k windows with more boundaries than the reference has.

    Georgescul et al. 2006, §4.3. Range [0, 1]. Undefined for n ≤ k.
    """

    name: ClassVar[str] = "pr_false_alarm"
    direction: ClassVar[Direction] = "lower"
    undefined: ClassVar[str] = "the document is no longer than the window"

    def counts(self, pairs: Pairs) -> Floats:
        """False alarms, and all windows."""
        return misses_and_false_alarms(self.sums(pairs))[:, 2:]


@dataclass(frozen=True, slots=True)
class WinPrPrecision(Share):
    """TP / hypothesis boundaries, TP = Σ min(h, r) / k over windows padded with k − 1 units.

    Scaiano & Inkpen 2012; h and r are the boundaries in a window, and with the padding each
    boundary counts once. Range [0, 1]. Undefined without a hypothesis boundary.
    """

    name: ClassVar[str] = "winpr_precision"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "the hypothesis has no boundary"

    def counts(self, pairs: Pairs) -> Floats:
        """True positives, and hypothesis boundaries."""
        return self.shared_boundaries(pairs)[:, [0, 1]]


@dataclass(frozen=True, slots=True)
class WinPrRecall(Share):
    """TP / reference boundaries, with the true positives of `WinPrPrecision`.

    Scaiano & Inkpen 2012. Range [0, 1]. Undefined without a reference boundary.
    """

    name: ClassVar[str] = "winpr_recall"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "the reference has no boundary"

    def counts(self, pairs: Pairs) -> Floats:
        """True positives, and reference boundaries."""
        return self.shared_boundaries(pairs)[:, [0, 2]]


@dataclass(frozen=True, slots=True)
class WinPr(Windowed):
    """F of `WinPrPrecision` and `WinPrRecall`: 2·TP / (hypothesis + reference boundaries).

    Scaiano & Inkpen 2012. Range [0, 1]; 0 where only one side has boundaries. Undefined where
    neither has.
    """

    name: ClassVar[str] = "winpr"
    direction: ClassVar[Direction] = "higher"
    undefined: ClassVar[str] = "neither the hypothesis nor the reference has a boundary"

    def counts(self, pairs: Pairs) -> Floats:
        """True positives, hypothesis boundaries, reference boundaries."""
        return self.shared_boundaries(pairs)

    def value(self, counts: Floats) -> Floats:
        """Twice the true positives per boundary."""
        return ratio(2 * counts[..., 0], counts[..., 1] + counts[..., 2])
