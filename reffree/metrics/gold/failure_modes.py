"""What W-F1, BOR, purity and coverage say together: the regimes of Coen's Table 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from reffree.util.errors import InputError

Failure = Literal[
    "calibrated",
    "oversegmentation",
    "granularity mismatch",
    "undersegmentation",
    "detection failure",
    "unclassified",
]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What "high", "< 1", "≈ 1" and "≫ 1" mean in Coen's Table 2, which gives no numbers.

    The defaults part the cases that the paper names in words:

    * W-F1: what it calls oversegmentation has .612 and more (Table 4, Table 9), what it calls
      coarser than gold .584 and less (Table 4, Table 10): high from .6.
    * BOR: "≈ 1" is said of .97 to 1.13 (Tables 3, 4 and 8), "≫ 1" of 1.88 and more, "< 1" of .81
      and less (Tables 4, 5 and 10): sparse below .9, dense above 1.5.
    * Purity and coverage: called high from .896 on (Table 10), called lower for the baselines with
      matched density, which reach .884 (Table 3): high from .89.
    """

    high_w_f1: float = 0.6
    sparse_bor: float = 0.9
    dense_bor: float = 1.5
    high_overlap: float = 0.89

    def __post_init__(self) -> None:
        """Refuse bounds of BOR that leave no room for 1."""
        if not 0 < self.sparse_bor <= 1 <= self.dense_bor:
            raise InputError(
                f"BOR sparse below {self.sparse_bor} and dense above {self.dense_bor}",
                expected="0 < sparse_bor ≤ 1 ≤ dense_bor",
                remedy="leave both out for their defaults",
            )


@dataclass(frozen=True, slots=True)
class FailureMode:
    """A row of Coen's Table 2, why it was chosen, and by which thresholds."""

    label: Failure
    explanation: str
    thresholds: Thresholds


MEANINGS: dict[Failure, str] = {
    "calibrated": "boundaries agree in place and number",
    "oversegmentation": "finer than the reference, whose boundaries it finds",
    "granularity mismatch": "far more boundaries than the reference, mostly inside its segments",
    "undersegmentation": "coarser than the reference, whose segments it keeps whole",
    "detection failure": "as many boundaries as the reference, in other places",
    "unclassified": "a combination that is none of the five regimes of Coen's Table 2",
}


def failure_mode(
    w_f1: float,
    bor: float | None,
    purity: float,
    coverage: float,
    thresholds: Thresholds | None = None,
) -> FailureMode:
    """Name the regime of Coen's Table 2 (§6.4) that the four figures of a corpus fall into.

    A combination outside the table, or an undefined BOR, is ``unclassified``.

    >>> failure_mode(w_f1=0.767, bor=2.53, purity=0.962, coverage=0.651).label
    'oversegmentation'
    """
    limits = thresholds or Thresholds()
    if bor is None or math.isnan(bor):
        return FailureMode("unclassified", "BOR is undefined without reference boundaries", limits)
    found, pure, covering = (
        w_f1 >= limits.high_w_f1,
        purity >= limits.high_overlap,
        coverage >= limits.high_overlap,
    )
    label: Failure = "unclassified"
    if bor > limits.dense_bor and pure:
        label = "oversegmentation" if found else "granularity mismatch"
    elif bor < limits.sparse_bor and covering and not found:
        label = "undersegmentation"
    elif limits.sparse_bor <= bor <= limits.dense_bor:
        if found and pure and covering:
            label = "calibrated"
        elif not (found or pure or covering):
            label = "detection failure"
    return FailureMode(label, _explain(label, w_f1, bor, purity, coverage, limits), limits)


def _explain(
    label: Failure, w_f1: float, bor: float, purity: float, coverage: float, limits: Thresholds
) -> str:
    def level(name: str, value: float, high: float) -> str:
        return f"{name} {value:.3f} is {'high' if value >= high else 'low'} (high from {high:g})"

    density = "< 1" if bor < limits.sparse_bor else "≫ 1" if bor > limits.dense_bor else "≈ 1"
    readings = [
        level("W-F1", w_f1, limits.high_w_f1),
        f"BOR {bor:.2f} is {density} (≈ 1 from {limits.sparse_bor:g} to {limits.dense_bor:g})",
        level("purity", purity, limits.high_overlap),
        level("coverage", coverage, limits.high_overlap),
    ]
    return f"{MEANINGS[label]}: {', '.join(readings)}"
