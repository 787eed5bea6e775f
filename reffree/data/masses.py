"""Many segmentations as one integer matrix: checked, padded, without repeats."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence, Sized
from functools import lru_cache
from itertools import chain
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from reffree.data.segmentation import Segmentation
from reffree.util.errors import InputError, Place, mistake

Masses = NDArray[np.int64]
"""(hypotheses, segments): masses, padded with zeros at the end of each row."""

Hypotheses = Sequence[Segmentation | Sequence[int]] | Masses


class MadeMasses(ABC):
    """Very many hypotheses of a document, rows of masses that are made when they are needed."""

    n_segments: int  # of the longest

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, rows: slice) -> Masses: ...


def hypothesis_width(hypotheses: Hypotheses | MadeMasses) -> int:
    """Segments of the longest hypothesis, as far as they have lengths."""
    if isinstance(hypotheses, MadeMasses):
        return hypotheses.n_segments
    if isinstance(hypotheses, np.ndarray):
        return hypotheses.shape[-1] if hypotheses.ndim else 1
    if not all(issubclass(kind, Sized) for kind in {type(h) for h in hypotheses}):
        return 1  # `mass_matrix` refuses them
    return max(map(len, hypotheses), default=1)


def mass_matrix(
    hypotheses: Hypotheses, n_units: int | None, name: str | None = None, first: int = 0
) -> Masses:
    """Bring hypotheses into one padded matrix; each must be positive masses that sum to n.

    Without ``n_units`` they may be of different documents. ``first`` is the number of the first
    one, for messages about parts of a longer list.
    """
    if isinstance(hypotheses, np.ndarray):
        matrix = hypotheses
        if matrix.ndim != 2 or not matrix.shape[1] or matrix.dtype.kind not in "iu":
            found = f"a matrix of shape {matrix.shape} and type {matrix.dtype}"
            raise _refusal(found, n_units, name)
        matrix = np.require(matrix, np.int64, ["C", "W"])  # as loops are compiled for
    else:
        rows = [h.masses if isinstance(h, Segmentation) else h for h in hypotheses]
        kinds = {type(row) for row in rows}
        if not all(issubclass(kind, (Sequence, np.ndarray)) for kind in kinds):
            expected = "a list of hypotheses, each a list of masses"
            remedy = "write [[3, 4]] for the single hypothesis [3, 4]"
            raise mistake(Place(document=name), "hypotheses that are not lists", expected, remedy)
        matrix = _padded(rows, n_units, name, first)
    total = matrix.sum(1)
    bad = np.zeros(len(matrix), dtype=bool)
    if isinstance(hypotheses, np.ndarray):
        # Zeros may only stand at the end of a row.
        has_gap = (matrix[:, 1:] > 0) & (matrix[:, :-1] < 1)
        bad = (matrix < 0).any(1) | has_gap.any(1) | (matrix[:, 0] < 1)
    wrong = bad if n_units is None else bad | (total != n_units)
    if wrong.any():
        at = int(np.argmax(wrong))
        found = "a mass below 1" if bad[at] else f"masses that sum to {int(total[at])}"
        raise _refusal(f"hypothesis {first + at + 1} with {found}", n_units, name)
    return matrix


def _padded(rows: list[Sequence[int]], n_units: int | None, name: str | None, first: int) -> Masses:
    """Rows of positive whole numbers under one another, padded with zeros."""
    try:  # the quickest way into an array that refuses fractions
        packed = struct.pack(f"{sum(map(len, rows))}q", *chain.from_iterable(rows))
    except (struct.error, TypeError):
        whole = [all(isinstance(m, Integral) and abs(m) < 2**63 for m in row) for row in rows]
        found = (
            f"hypothesis {first + whole.index(False) + 1} with masses that are not whole numbers"
        )
        raise _refusal(found, n_units, name) from None
    flat = np.frombuffer(packed, dtype=np.int64)
    counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    matrix = np.zeros((len(rows), max(1, int(counts.max(initial=1)))), dtype=np.int64)
    is_mass = np.arange(matrix.shape[1]) < counts[:, None]
    matrix[is_mass] = flat
    if min(flat.min(initial=1), counts.min(initial=1)) < 1:
        at = int(np.argmax((is_mass & (matrix < 1)).any(1) | (counts == 0)))
        found = f"hypothesis {first + at + 1} with a mass below 1 or none at all"
        raise _refusal(found, n_units, name)
    return matrix


def distinct_rows(masses: Masses) -> tuple[Masses, NDArray[np.int64]]:
    """Return the rows without repeats, and for every row the place of its like."""
    if len(masses) == 1:
        return masses, np.zeros(1, dtype=np.int64)
    # Rows with equal sums of random multiples are equal, but for chance: that is checked.
    with np.errstate(over="ignore"):
        sums = masses @ _factors(masses.shape[1])
    ordered = np.sort(sums)
    if not (ordered[1:] == ordered[:-1]).any():
        return masses, np.arange(len(masses))
    _, first, place = np.unique(sums, return_index=True, return_inverse=True)
    if not np.array_equal(masses[first][place], masses):
        distinct, place = np.unique(masses, axis=0, return_inverse=True)
        return distinct, place
    return masses[first], place


@lru_cache(maxsize=8)
def _factors(count: int) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(1, 1 << 62, size=count)


def stack_masses(matrices: Sequence[Masses]) -> Masses:
    """Put matrices of masses under one another, padded to the widest."""
    width = max(matrix.shape[1] for matrix in matrices)
    return np.concatenate([np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in matrices])


def masses_from_gaps(gaps: NDArray[np.bool_]) -> Masses:
    """Masses from one boolean per gap between neighbouring units, a row per hypothesis."""
    rows, n_gaps = gaps.shape
    edges = np.ones((rows, n_gaps + 2), dtype=bool)
    edges[:, 1:-1] = gaps
    place = np.nonzero(edges)[1]
    lengths = np.diff(place, prepend=0)
    # A row's first edge is its start, not the end of a segment.
    inside = place > 0
    counts = edges.sum(1) - 1
    masses = np.zeros((rows, int(counts.max(initial=1))), dtype=np.int64)
    masses[np.arange(masses.shape[1]) < counts[:, None]] = lengths[inside]
    return masses


def _refusal(found: str, n_units: int | None, name: str | None) -> InputError:
    covering = "" if n_units is None else f" that sum to {n_units}, the number of units"
    remedy = "run the segmenter again on these units"
    return mistake(Place(document=name), found, f"positive masses{covering}", remedy)
