"""Metrics that slide a window over both segmentations and compare the boundaries in it.

Window i of a document of n units lies between units i and i + k and holds the boundaries
i + 1 … i + k. All metrics but Pk need only how many more boundaries the hypothesis has in a window
than the reference, which is a difference of two running sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reffree.errors import OptionError
from reffree.reference.metric import Direction, check_at_least, ratio
from reffree.reference.pairs import Floats, Pairs

Padding = Literal["plain", "exact", "segeval"]


def window_sizes(pairs: Pairs) -> NDArray[np.int64]:
    """Half the mean reference mass, rounded half to even, at least 2; in integers, so exact."""
    segments = (pairs.reference > 0).sum(1)
    whole, rest = np.divmod(pairs.n_units, 2 * segments)
    round_up = (rest > segments) | ((rest == segments) & (whole % 2 == 1))
    sizes: NDArray[np.int64] = np.maximum(2, whole + round_up)
    return sizes


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The windows of a batch of pairs, whose lengths n and window sizes k may differ."""

    n_units: Tensor  # (p,)
    k: Tensor  # (p,)
    hypothesis: Tensor  # (p, width + 1) boolean, boundaries
    reference: Tensor  # (p, width + 1)
    starts: Tensor  # (width + 1,) i
    ends: Tensor  # (p, width + 1) i + k; past a document no running sum changes any more

    @classmethod
    def of(cls, pairs: Pairs, k: int | None, device: torch.device | None = None) -> Windows:
        """Mark the boundaries; without ``k`` each pair has its own default."""
        chosen = window_sizes(pairs) if k is None else np.full(len(pairs), k)
        sizes = torch.from_numpy(chosen).to(device)
        starts = torch.arange(pairs.width + 1, device=device)
        return cls(
            torch.from_numpy(pairs.n_units).to(device),
            sizes,
            pairs.marks(pairs.hypothesis, device),
            pairs.marks(pairs.reference, device),
            starts,
            (starts + sizes[:, None]).clamp_(max=pairs.width),
        )

    @property
    def count(self) -> Tensor:
        """Windows between two units of each document: n − k, or none."""
        return (self.n_units - self.k).clamp(min=0)

    def total(self, chosen: Tensor) -> Tensor:
        """Count the windows between two units for which a condition holds."""
        return (chosen & (self.starts < self.count[:, None])).sum(1, dtype=torch.int32)

    def parted(self, marks: Tensor) -> Tensor:
        """Whether a boundary lies in window i."""
        running = marks.cumsum(1, dtype=torch.int32)
        return running.gather(1, self.ends) != running

    def excess(self) -> Tensor:
        """Hypothesis boundaries minus reference boundaries among 1 … b."""
        difference = self.hypothesis.to(torch.int8) - self.reference.to(torch.int8)
        return difference.cumsum(1, dtype=torch.int32)

    def differences(self, excess: Tensor) -> Tensor:
        """Hypothesis boundaries minus reference boundaries in window i."""
        return excess.gather(1, self.ends).sub_(excess)

    def padded_total(self, size: Callable[[Tensor], Tensor]) -> Tensor:
        """Sum ``size`` of the differences over all n + k − 2 windows with a place for a boundary.

        ``size`` of no difference must be 0.
        """
        excess = self.excess()
        starting = size(self.differences(excess)).sum(1)
        # Before the document nothing runs up, so these differences are the running sums.
        ends_inside = self.starts < torch.minimum(self.k, self.n_units)[:, None]
        ending = (size(excess) * ends_inside).sum(1)
        around = (self.k - self.n_units).clamp(min=0) * size(excess[:, -1])
        return starting + ending + around


def columns(*parts: Tensor) -> Floats:
    """One row of counts per pair."""
    counts: Floats = torch.stack(parts, dim=1).to(torch.float64).cpu().numpy()
    return counts


def different_windows(pairs: Pairs, k: int | None) -> Floats:
    """Windows with different numbers of boundaries, and all windows."""
    windows = Windows.of(pairs, k)
    different = windows.differences(windows.excess()) != 0
    return columns(windows.total(different), windows.count)


def misses_and_false_alarms(pairs: Pairs, k: int | None) -> Floats:
    """Windows with too few boundaries, with a reference boundary, with too many, and all."""
    windows = Windows.of(pairs, k)
    difference = windows.differences(windows.excess())
    return columns(
        windows.total(difference < 0),
        windows.total(windows.parted(windows.reference)),
        windows.total(difference > 0),
        windows.count,
    )


def shared_boundaries(pairs: Pairs, k: int | None) -> Floats:
    """True positives of WinPR, and the boundaries of the hypothesis and of the reference.

    True positives are Σ min(h, r) / k over the padded windows, so that a boundary, which lies in k
    of them, counts once; 2·min(h, r) = h + r − |h − r|.
    """
    windows = Windows.of(pairs, k)
    n_hypothesis = windows.hypothesis.sum(1, dtype=torch.int32)
    n_reference = windows.reference.sum(1, dtype=torch.int32)
    apart = windows.padded_total(torch.abs)
    shared = (windows.k * (n_hypothesis + n_reference) - apart) // 2
    return columns(shared / windows.k.to(torch.float64), n_hypothesis, n_reference)


@dataclass(frozen=True, slots=True)
class Windowed:
    """The option all share: the window size, by default one for each pair (`window_sizes`)."""

    k: int | None = None

    def __post_init__(self) -> None:
        """Refuse a window without a boundary in it."""
        check_at_least("k", self.k, 1)


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
        windows = Windows.of(pairs, self.k)
        wrong = windows.parted(windows.hypothesis) != windows.parted(windows.reference)
        return columns(windows.total(wrong), windows.count)


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
        if self.padding == "plain":
            return different_windows(pairs, self.k)
        windows = Windows.of(pairs, self.k)
        different = windows.padded_total(lambda excess: excess != 0)
        more = -2 if self.padding == "exact" else 1
        return columns(different, windows.n_units + windows.k + more)


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
        return different_windows(pairs, self.k)


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
        check_at_least("c_miss", self.c_miss, 0)
        check_at_least("c_fa", self.c_fa, 0)

    def counts(self, pairs: Pairs) -> Floats:
        """Misses, windows with a reference boundary, false alarms, all windows."""
        return misses_and_false_alarms(pairs, self.k)

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
        return misses_and_false_alarms(pairs, self.k)[:, :2]


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
        return misses_and_false_alarms(pairs, self.k)[:, 2:]


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
        return shared_boundaries(pairs, self.k)[:, [0, 1]]


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
        return shared_boundaries(pairs, self.k)[:, [0, 2]]


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
        return shared_boundaries(pairs, self.k)

    def value(self, counts: Floats) -> Floats:
        """Twice the true positives per boundary."""
        return ratio(2 * counts[..., 0], counts[..., 1] + counts[..., 2])
