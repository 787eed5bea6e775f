"""A measure of agreement, or why there is none, with its interval, or why there is none."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reffree.study.bootstrap import MIN_DOCUMENTS
from reffree.study.statistics.intervals import percentile_interval, sign_p
from reffree.study.statistics.scores import Floats
from reffree.study.table import rounded

TOO_FEW_DOCUMENTS = f"fewer than {MIN_DOCUMENTS} documents"
TOO_MANY_UNDEFINED = "undefined in more than 5 % of the resamples"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measure of agreement with its 95 % interval over documents."""

    value: float | None
    reason: str | None  # why there is no value
    ci: tuple[float, float] | None
    ci_reason: str | None  # why there is no interval
    systems: int  # with a score under every metric involved
    documents: int  # that take part
    undefined: int  # documents that do not
    undefined_resamples: int
    p: float | None = None  # of differences: two-sided, of none
    epsilon: float | None = None  # acc_eq's tie threshold

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; ``p`` and ``epsilon`` only where there is one."""
        values = asdict(self)
        values["value"] = rounded(self.value)
        values["ci"] = [rounded(bound) for bound in self.ci] if self.ci else None
        values["p"], values["epsilon"] = rounded(self.p), rounded(self.epsilon)
        optional = ("p", "epsilon")
        return {k: v for k, v in values.items() if k not in optional or v is not None}


@dataclass(frozen=True, slots=True)
class Extent:
    """What an estimate rests on."""

    systems: int
    documents: int
    all_documents: int


def undefined(reason: str, extent: Extent) -> Estimate:
    """Make an estimate without a value."""
    missing = extent.all_documents - extent.documents
    return Estimate(None, reason, None, reason, extent.systems, extent.documents, missing, 0)


def estimated(
    value: float,
    resampled: Floats | None,
    extent: Extent,
    *,
    is_difference: bool,
    epsilon: float | None = None,
    ci_reason: str | None = None,
) -> Estimate:
    """Make an estimate with the percentile interval of its resampled values.

    Without ``resampled``, or with fewer than `MIN_DOCUMENTS` documents, it has no interval and,
    if it is a difference, no p.
    """
    ci, n_undefined = None, 0
    if extent.documents < MIN_DOCUMENTS:
        ci_reason = TOO_FEW_DOCUMENTS
    elif resampled is not None:
        ci = percentile_interval(resampled)
        n_undefined = int(np.isnan(resampled).sum())
        ci_reason = None if ci else TOO_MANY_UNDEFINED
    return Estimate(
        value=value,
        reason=None,
        ci=ci,
        ci_reason=ci_reason,
        systems=extent.systems,
        documents=extent.documents,
        undefined=extent.all_documents - extent.documents,
        undefined_resamples=n_undefined,
        p=sign_p(resampled) if ci and is_difference and resampled is not None else None,
        epsilon=epsilon,
    )
