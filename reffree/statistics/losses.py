"""One metric's losses of systems on documents, and the system scores they add up to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Literal, Protocol, TypeVar

import numpy as np

from reffree.statistics.resampling import Counts, medians
from reffree.util.arrays import Booleans, Floats, ratio
from reffree.util.errors import mistake

Values = TypeVar("Values", float, Floats)

Direction = Literal["lower", "higher", "toward_1"]
"""Which way a metric's values are better."""

DIGITS = 12
"""Significant digits of a metric's largest value: scores closer than that are tied."""

TINY, TINY_FACTOR = 2.0**-600, 2.0**600
"""Smaller numbers are multiplied before they are rounded, and divided after: both are exact."""


def as_loss(values: Values, direction: Direction) -> Values:
    """Turn values so that lower is better; those best at 1 into their distance from it.

    >>> as_loss(0.75, "higher"), as_loss(0.75, "toward_1")
    (-0.75, 0.25)
    """
    if direction == "lower":
        return values
    return -values if direction == "higher" else abs(values - 1)


class SystemLosses(Protocol):
    """Losses (lower is better) of systems on documents; NaN where undefined."""

    @property
    def values(self) -> Floats:
        """Loss of each system on each document, (systems, documents)."""
        ...

    @property
    def contributions(self) -> Floats:
        """What each document adds to a system's score, (systems, documents).

        The score is their mean over the defined documents: exactly for a plain mean, to first order
        (jackknife pseudo-values) for weighted means and pooled scores. Tests that move documents
        between systems or metrics work on these.
        """
        ...

    def over(self, counts: Counts) -> Floats:
        """System scores (r, systems) where document ``d`` occurs ``counts[r, d]`` times."""
        ...


class MeanOverDocuments:
    r"""System score :math:`\sum_d w_d v_d / \sum_d w_d` over the documents with a value.

    Losses are (systems, documents), NaN where undefined; weights more than 0, or all equal.
    """

    def __init__(self, values: Floats, weights: Floats | None = None) -> None:
        """Check shapes and weights."""
        self.values = _rounded_losses(values)
        self._is_weighted = weights is not None
        defined = ~np.isnan(self.values)
        given = np.ones_like(self.values) if weights is None else np.asarray(weights, np.float64)
        if given.shape != defined.shape:
            expected = f"{defined.shape}, as the losses have"
            remedy = "give one weight per loss"
            raise mistake(None, f"weights of shape {given.shape}", expected, remedy)
        if not (given[defined] > 0).all() or np.isinf(given[defined]).any():
            expected = "weights of more than 0 wherever there is a loss"
            remedy = "leave a document that counts for nothing undefined (NaN)"
            raise mistake(None, "a weight that is not a positive number", expected, remedy)
        self._weights = np.where(defined, given, 0.0)  # (s, d)
        self._sums = np.where(defined, values, 0.0) * self._weights  # (s, d)

    @cached_property
    def contributions(self) -> Floats:
        """Values, or for a weighted mean their jackknife pseudo-values."""
        if not self._is_weighted:
            return self.values
        rest = self._sums.sum(1, keepdims=True) - self._sums
        rest_weight = self._weights.sum(1, keepdims=True) - self._weights
        has_rest = (self._weights > 0).sum(1, keepdims=True) > 1
        without = ratio(rest, np.where(has_rest, rest_weight, 0.0))
        score = ratio(self._sums.sum(1), self._weights.sum(1))
        return _pseudo_values(self.values, score, without)

    def over(self, counts: Counts) -> Floats:
        """Weighted means over resampled documents; NaN without a defined one."""
        times = counts.astype(np.float64)
        means = ratio(times @ self._sums.T, times @ self._weights.T)
        return without_noise(means, self.values)


class MedianOverDocuments:
    """System score: the median over the documents with a value, of losses (systems, documents)."""

    def __init__(self, values: Floats) -> None:
        """Check the shape."""
        self.values = _rounded_losses(values)

    @cached_property
    def contributions(self) -> Floats:
        """Jackknife pseudo-values of the median."""
        n_documents = self.values.shape[1]
        every = np.ones((1, n_documents))
        without = medians(self.values, 1 - np.eye(n_documents)).T  # (s, d)
        return _pseudo_values(self.values, medians(self.values, every)[0], without)

    def over(self, counts: Counts) -> Floats:
        """Medians over resampled documents; NaN without a defined one."""
        return without_noise(medians(self.values, counts), self.values)


class PooledOverDocuments:
    r"""System score :math:`f(\sum_d c_d)` of counts summed over documents.

    ``values`` are losses (systems, documents) of single documents, NaN where undefined, ``counts``
    (documents, systems, c), 0 where a document does not take part, and ``value`` makes losses (…,)
    of counts (…, c); ``takes_part`` (documents,) says which documents are part of the sums.
    """

    def __init__(
        self,
        values: Floats,
        counts: Floats,
        value: Callable[[Floats], Floats],
        takes_part: Booleans,
    ) -> None:
        """Check shapes."""
        self.values = _rounded_losses(values)
        self._counts = np.asarray(counts, dtype=np.float64)
        n_systems, n_documents = self.values.shape
        if self._counts.ndim != 3 or self._counts.shape[:2] != (n_documents, n_systems):
            expected = f"(documents, systems, c) = ({n_documents}, {n_systems}, c)"
            remedy = "give one row of counts per document and system"
            raise mistake(None, f"counts of shape {self._counts.shape}", expected, remedy)
        self._value = value
        self._takes_part = takes_part

    @cached_property
    def contributions(self) -> Floats:
        """Jackknife pseudo-values of the pooled score; NaN where a document does not take part."""
        total = self._counts.sum(0)  # (s, c)
        without = self._value(total - self._counts).T  # (s, d)
        is_part = np.broadcast_to(self._takes_part, without.shape)
        return _pseudo_values(np.where(is_part, 0.0, np.nan), self._value(total), without)

    def over(self, counts: Counts) -> Floats:
        """Pooled scores of resampled documents."""
        n_documents, n_systems, width = self._counts.shape
        sums = counts.astype(np.float64) @ self._counts.reshape(n_documents, -1)
        return without_noise(self._value(sums.reshape(-1, n_systems, width)), self.values)


def _pseudo_values(defined: Floats, score: Floats, without: Floats) -> Floats:
    r"""Jackknife pseudo-values :math:`n\hat\theta - (n - 1)\hat\theta_{-d}` (Tukey 1958).

    Of scores (systems,), and those ``without`` each document, (systems, documents): where they are
    undefined the pseudo-value is the score itself. ``defined`` is NaN where one is left out.
    """
    is_defined = ~np.isnan(defined)
    n = is_defined.sum(1, keepdims=True)
    whole = np.broadcast_to(score[:, None], without.shape)
    made = np.where(np.isnan(without), whole, n * whole - (n - 1) * without)
    return without_noise(np.where(is_defined, made, np.nan), made)


def without_noise(scores: Floats, scale: Floats) -> Floats:
    """Round to `DIGITS` digits of the largest of ``scale``, so that ties do not hang on rounding.

    Two systems with the same segmentations have the same losses, but their sums may differ in the
    last bit.
    """
    largest = np.abs(scale[np.isfinite(scale)]).max(initial=0.0)
    if largest == 0:
        return scores
    lifted = TINY_FACTOR if largest < TINY else 1.0
    decimals = DIGITS - int(np.ceil(np.log10(largest * lifted)))
    rounded: Floats = np.round(scores * lifted, decimals) / lifted + 0.0
    return rounded


def _rounded_losses(losses: Floats) -> Floats:
    """Refuse anything but a matrix of finite losses and NaN, and round it."""
    values = np.asarray(losses, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        expected = "(systems, documents), at least one of each"
        remedy = "give one row per system and one column per document"
        raise mistake(None, f"losses of shape {values.shape}", expected, remedy)
    if np.isinf(values).any():
        expected = "finite losses, NaN where a document is undefined"
        raise mistake(None, "an infinite loss", expected, "leave the document undefined")
    return without_noise(values, values)
