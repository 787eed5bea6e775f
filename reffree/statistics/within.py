"""Agreement of two metrics inside documents: do they order the systems of a document alike?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from reffree.arrays import Floats
from reffree.statistics.coefficients import MIN_SYSTEMS, Coefficient, correlation
from reffree.statistics.estimate import (
    TOO_FEW_DOCUMENTS,
    Estimate,
    Extent,
    estimated,
    undefined,
    without_interval,
)
from reffree.statistics.intervals import percentile
from reffree.statistics.losses import Counts, SystemLosses
from reffree.statistics.resampling import MIN_DOCUMENTS

DocumentMeasure = Literal["pearson", "spearman", "kendall", "acc_eq"]

THRESHOLDS = 256
"""Tie thresholds tried in each resample; all of them are tried on the corpus itself."""


class WithinCorrelation:
    """A correlation over the systems of each document, averaged over documents where defined."""

    def __init__(self, x: Floats, y: Floats, coefficient: Coefficient) -> None:
        """Correlate losses (systems, documents); systems undefined on a document are left out."""
        self.documents = correlation(x.T, y.T, coefficient)  # (d,) NaN where undefined

    @property
    def n_defined(self) -> int:
        """Documents with three systems or more on which neither metric is constant."""
        return int((~np.isnan(self.documents)).sum())

    @property
    def value(self) -> float:
        """Mean over the defined documents, NaN without any."""
        return float(self.over(np.ones((1, len(self.documents))))[0])

    def over(self, counts: Counts) -> Floats:
        """Means (r,) over resampled documents."""
        return _mean_over(counts, self.documents[:, None])[:, 0]


class TieCalibratedAccuracy:
    r"""Pairwise accuracy with tie calibration (``acc_eq``), averaged over documents.

    .. math:: \mathrm{acc}_{eq} = \max_\varepsilon \frac{1}{D} \sum_d
        \frac{C_d(\varepsilon) + T_d(\varepsilon)}{\text{pairs}_d}

    :math:`C` counts the pairs of systems both metrics order alike, :math:`T` those tied under both;
    :math:`|x_i - x_j| \le \varepsilon` is a tie under x, equality under y. Deutsch, Foster and
    Freitag (2023), "Ties Matter"; WMT's ``KendallWithTiesOpt`` averaged by item. The threshold is
    searched over 0 and all distances; of several best ones the smallest is taken. Range [0, 1].
    A document with fewer than two defined systems is undefined.
    """

    def __init__(self, x: Floats, y: Floats) -> None:
        """Find the threshold for losses (systems, documents)."""
        first, second = np.triu_indices(len(x), 1)
        x_gap, y_gap = (v[first] - v[second] for v in (x, y))  # (p, d)
        is_pair = ~np.isnan(x_gap) & ~np.isnan(y_gap)
        n_pairs = is_pair.sum(0)
        share = np.where(n_pairs > 0, 1 / np.maximum(n_pairs, 1), np.nan)  # (d,)
        signs_x, signs_y = np.sign(x_gap), np.sign(y_gap)
        is_right = is_pair & (signs_x == signs_y)
        self._untied = is_right.sum(0) * share  # accuracy at threshold 0
        tied = (is_pair & (signs_y == 0)).astype(np.float64)
        change = (tied - is_right) * share
        pair, document = np.nonzero(is_pair & (signs_x != 0) & (change != 0))
        distance = np.abs(x_gap[pair, document])
        order = np.argsort(distance, kind="stable")
        # Pairs that change a document's accuracy when they become a tie, nearest first.
        self._document = document[order]
        self._distance = distance[order]
        self._change = change[pair, document][order]
        self._is_last = np.append(np.diff(self._distance) != 0, True)[: len(order)]
        self.value, self.epsilon = self._calibrated()

    @property
    def n_defined(self) -> int:
        """Documents with two systems or more."""
        return int((~np.isnan(self._untied)).sum())

    @property
    def documents(self) -> Floats:
        """Accuracy (documents,) at the calibrated threshold, NaN where undefined."""
        return self._at(np.array([self.epsilon]))[:, 0]

    def over(self, counts: Counts) -> Floats:
        """Accuracy (r,) over resampled documents, the threshold calibrated anew in each.

        It is searched over `THRESHOLDS` quantiles of the distances, 0 and the corpus's own.
        """
        distances = self._distance[self._is_last]
        picked = np.linspace(0, len(distances) - 1, min(THRESHOLDS, len(distances)))
        grid = np.unique([0.0, self.epsilon, *distances[picked.round().astype(np.intp)]])
        best: Floats = _mean_over(counts, self._at(grid)).max(1)
        return best

    def _calibrated(self) -> tuple[float, float]:
        """Best accuracy (NaN without a defined document) and the smallest threshold with it."""
        gained = np.cumsum(self._change)[self._is_last] / max(1, self.n_defined)
        gains = np.append(0.0, gained)
        best = int(np.argmax(gains > gains.max() - 1e-12))
        untied = float(np.nanmean(self._untied)) if self.n_defined else np.nan
        return untied + float(gains[best]), float(
            np.append(0.0, self._distance[self._is_last])[best]
        )

    def _at(self, thresholds: Floats) -> Floats:
        """Accuracy (documents, thresholds) of ascending thresholds."""
        width = len(thresholds) + 1  # the last column is of pairs no threshold ties
        column = np.searchsorted(thresholds, self._distance)
        size = len(self._untied) * width
        changes = np.bincount(self._document * width + column, self._change, minlength=size)
        gained = changes.reshape(-1, width)[:, :-1].cumsum(1)
        accuracy: Floats = self._untied[:, None] + gained
        return accuracy


def _mean_over(counts: Counts, values: Floats) -> Floats:
    """Means (r, k) of columns (documents, k) over resampled documents; rows are NaN or not."""
    times = counts.astype(np.float64)
    defined = ~np.isnan(values).any(1)
    total = times[:, defined].sum(1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = np.where(total > 0, times[:, defined] @ values[defined] / total, np.nan)
    return means


def within_documents(
    metrics: Sequence[SystemLosses], measure: DocumentMeasure, counts: Counts
) -> Estimate:
    """Agreement of the first metric, or of the first less that of the second, with the last."""
    values = np.stack([metric.values for metric in metrics])
    is_cell = np.logical_and.reduce(~np.isnan(values))  # (s, d)
    *others, gold = (np.where(is_cell, losses, np.nan) for losses in values)
    measured = [_measure(other, gold, measure) for other in others]
    each = np.stack([one.documents for one in measured])
    is_defined = np.logical_and.reduce(~np.isnan(each))  # (d,)
    n_defined = int(is_defined.sum())
    extent = Extent(int(is_cell.any(1).sum()), n_defined, len(is_defined) - n_defined)
    if extent.systems < MIN_SYSTEMS:
        return undefined(f"fewer than {MIN_SYSTEMS} systems with a loss", extent)
    if not n_defined:
        return undefined("undefined in every document", extent)

    def over(times: Counts) -> Floats:
        means = [one.over(times * is_defined) for one in measured]
        return means[0] if len(means) == 1 else means[0] - means[1]

    value = float(over(np.ones((1, len(is_defined))))[0])
    if n_defined < MIN_DOCUMENTS:
        return without_interval(value, TOO_FEW_DOCUMENTS, extent)
    resampled = over(counts)
    return estimated(
        value,
        percentile(value, resampled),
        resampled,
        extent,
        is_difference=len(measured) == 2,
        epsilon=getattr(measured[0], "epsilon", None) if len(measured) == 1 else None,
    )


def _measure(
    x: Floats, y: Floats, measure: DocumentMeasure
) -> WithinCorrelation | TieCalibratedAccuracy:
    if measure == "acc_eq":
        return TieCalibratedAccuracy(x, y)
    return WithinCorrelation(x, y, measure)
