"""A measure of agreement, or why there is none, with its interval, or why there is none."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reffree.arrays import Floats
from reffree.evaluate.table import rounded
from reffree.statistics.intervals import Interval
from reffree.statistics.resampling import MIN_DOCUMENTS

TOO_FEW_DOCUMENTS = f"fewer than {MIN_DOCUMENTS} documents"
TOO_MANY_UNDEFINED = "undefined in more than 5 % of the resamples"


@dataclass(frozen=True, slots=True)
class Extent:
    """What an estimate rests on."""

    systems: int  # with a score under every metric involved
    documents: int  # that take part
    undefined: int  # documents that do not


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measure of agreement with its 95 % interval over documents, which holds it.

    ``noiseless`` is what a coefficient over corpus scores would be without the noise that few
    documents leave in the scores, with an interval of its own.
    """

    value: float | None
    reason: str | None  # why there is no value
    ci: tuple[float, float] | None
    ci_reason: str | None  # why there is no interval
    systems: int
    documents: int
    undefined: int
    undefined_resamples: int
    p: float | None = None  # of differences: two-sided, of none
    epsilon: float | None = None  # acc_eq's tie threshold
    noiseless: float | None = None
    noiseless_ci: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what not every measure has only where there is one."""
        values = asdict(self)
        for name in ("value", "p", "epsilon", "noiseless"):
            values[name] = rounded(values[name])
        for name in ("ci", "noiseless_ci"):
            values[name] = [rounded(bound) for bound in values[name]] if values[name] else None
        optional = ("p", "epsilon", "noiseless", "noiseless_ci")
        return {k: v for k, v in values.items() if k not in optional or v is not None}


def undefined(reason: str, extent: Extent) -> Estimate:
    """Make an estimate without a value."""
    return Estimate(
        None, reason, None, reason, extent.systems, extent.documents, extent.undefined, 0
    )


def without_interval(value: float, ci_reason: str, extent: Extent) -> Estimate:
    """Make an estimate without an interval."""
    return Estimate(
        value, None, None, ci_reason, extent.systems, extent.documents, extent.undefined, 0
    )


def estimated(
    value: float,
    interval: Interval | None,
    resampled: Floats,
    extent: Extent,
    *,
    is_difference: bool,
    epsilon: float | None = None,
) -> Estimate:
    """Make an estimate; without an interval, too many of the resampled values are undefined."""
    return Estimate(
        value=value,
        reason=None,
        ci=(interval.low, interval.high) if interval else None,
        ci_reason=None if interval else TOO_MANY_UNDEFINED,
        systems=extent.systems,
        documents=extent.documents,
        undefined=extent.undefined,
        undefined_resamples=int(np.isnan(resampled).sum()),
        p=interval.p if interval and is_difference else None,
        epsilon=epsilon,
    )
