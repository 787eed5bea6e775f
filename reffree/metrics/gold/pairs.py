"""Pairs of segmentations (hypothesis, reference) of the same units, many at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reffree.data.masses import Hypotheses, Masses, mass_matrix, masses_from_gaps
from reffree.data.segmentation import Segmentation
from reffree.util.arrays import Integers
from reffree.util.compiling import interpreted, is_running
from reffree.util.errors import counted, mistake
from reffree.util.parallel import THREADED, available_threads, over_rows

Segmentations = Segmentation | Sequence[int] | Sequence[Segmentation | Sequence[int]] | NDArray[Any]
"""One segmentation (masses), several, a matrix of masses, or a boolean matrix of gaps."""

PAIR_ELEMENTS = 1 << 22
"""Pairs × units worked on at a time."""

LITTLE = 1 << 12
"""Masses gone through sooner by Python than numba is imported."""

SIMILAR = 2
"""Documents worked on together differ at most by this factor in length."""

SAME_VERSION = "check that both belong to the same version of the document"


@dataclass(frozen=True)
class Pairs:
    """Rows of masses padded with zeros; both sides of a row sum to the same number of units."""

    hypothesis: Masses  # (p, s)
    reference: Masses  # (p, r)
    units: Sequence[Sequence[str]] = ()  # each pair's document, for metrics that read its text

    @classmethod
    def of(
        cls, hypothesis: Segmentations, reference: Segmentations, units: Sequence[str] | None = None
    ) -> Pairs:
        """Check both sides; one segmentation stands for as many as the other side has.

        ``units`` is the text of the one document that all are of.
        """
        given = [_matrix(hypothesis, "hypothesis"), _matrix(reference, "reference")]
        counts = [len(side) for side in given]
        if counts[0] != counts[1] and 1 not in counts:
            found = f"{counts[0]} hypotheses and {counts[1]} references"
            remedy = "pass one reference for all hypotheses, or one for each"
            raise mistake(None, found, "as many references as hypotheses, or one", remedy)
        rows = max(counts)
        left, right = (np.broadcast_to(side, (rows, side.shape[1])) for side in given)
        wrong = left.sum(1) != right.sum(1)
        if wrong.any():
            at = int(np.argmax(wrong))
            found = f"a hypothesis of {left[at].sum()} units and a reference of {right[at].sum()}"
            found += f" in pair {at + 1}" if rows > 1 else ""
            raise mistake(None, found, "segmentations of the same units", SAME_VERSION)
        return cls(left, right, () if units is None else [units] * rows)

    def __len__(self) -> int:
        return len(self.hypothesis)

    @cached_property
    def n_units(self) -> Integers:
        """Units of each pair's document."""
        total: Integers = self.reference.sum(1)
        return total

    @cached_property
    def n_boundaries(self) -> tuple[Integers, Integers]:
        """Boundaries of each hypothesis and of each reference: one less than its segments."""
        return (self.hypothesis > 0).sum(1) - 1, (self.reference > 0).sum(1) - 1

    @cached_property
    def width(self) -> int:
        """Units of the longest document."""
        return int(self.n_units.max())

    def each(self, work: Callable[[Masses, Masses, slice], None]) -> None:
        """Run a compiled loop on hypotheses, references and their rows, on threads if many.

        As Python where there is little to do and numba is not there yet. Both sides have one memory
        layout, for which the loop is compiled once.
        """
        left, right = (np.ascontiguousarray(x).view() for x in (self.hypothesis, self.reference))
        left.flags.writeable = right.flags.writeable = False
        size = left.size + right.size
        threads = available_threads() if size >= THREADED else 1
        with interpreted(when=size < LITTLE and not is_running()):
            over_rows(lambda rows: work(left[rows], right[rows], rows), len(self), threads)

    def documents(self, reader: str) -> list[tuple[Sequence[str], Integers]]:
        """Documents' units, each with its rows; ``reader`` is the metric that needs the text."""
        if len(self.units) != len(self):
            found = f"{counted(len(self), 'pair')} with the text of {len(self.units)}"
            remedy = f"pass a corpus with text, or leave {reader} out"
            raise mistake(None, found, "the units of each pair's document", remedy)
        rows: dict[tuple[str, ...], list[int]] = {}
        for row, (units, n_units) in enumerate(zip(self.units, self.n_units.tolist(), strict=True)):
            check_text(units, n_units)
            rows.setdefault(tuple(units), []).append(row)
        return [(units, np.array(at)) for units, at in rows.items()]

    def chunks(self) -> Iterator[tuple[Integers, Pairs]]:
        """Rows and their pairs, of similar length and few enough to be worked on at once."""
        if int(self.n_units.min()) == self.width and len(self) * self.width <= PAIR_ELEMENTS:
            yield np.arange(len(self)), self
            return
        order = np.argsort(self.n_units, kind="stable")
        widths = self.n_units[order] + 1
        start = 0
        while start < len(order):
            least = int(widths[start])
            alike = int(np.searchsorted(widths, SIMILAR * least, side="right"))
            stop = min(alike, start + max(1, PAIR_ELEMENTS // int(widths[alike - 1])))
            rows = order[start:stop]
            units = [self.units[row] for row in rows] if self.units else ()
            yield rows, Pairs(_narrow(self.hypothesis[rows]), _narrow(self.reference[rows]), units)
            start = stop


def check_text(units: Sequence[str], n_units: int) -> None:
    """Refuse a text that is not of as many units as the segmentations."""
    if len(units) != n_units:
        found = f"segmentations of {counted(n_units, 'unit')} and a text of {len(units)}"
        raise mistake(None, found, "one text for each unit", SAME_VERSION)


def _narrow(masses: Masses) -> Masses:
    """Leave out columns that hold padding only."""
    return masses[:, : int((masses > 0).sum(1).max())]


def is_single(given: Segmentations) -> bool:
    """Whether this is one segmentation rather than several."""
    if isinstance(given, Segmentation):
        return True
    if isinstance(given, np.ndarray):
        return given.ndim == 1
    return len(given) > 0 and all(isinstance(x, (int, np.integer)) for x in given)


def _matrix(given: Segmentations, side: str) -> Masses:
    """Masses of one or more segmentations, each checked."""
    if isinstance(given, np.ndarray):
        rows = np.atleast_2d(given)
        return masses_from_gaps(rows) if rows.dtype == np.bool_ else mass_matrix(rows, None, side)
    several = cast("Hypotheses", [given] if is_single(given) else given)
    return mass_matrix(several, None, side)
