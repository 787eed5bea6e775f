"""Embeddings and hypotheses as given, checked and brought into arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from reffree.errors import InputError, Place
from reffree.segmentation import Segmentation

if TYPE_CHECKING:
    Array = Tensor | NDArray[np.generic]

Masses = NDArray[np.int64]
"""(hypotheses, segments): masses, padded with zeros at the end of each row."""

Hypotheses = Sequence[Segmentation | Sequence[int]] | Masses


def check_embeddings(embeddings: Array, name: str) -> Tensor:
    """Refuse anything but a finite matrix with a row per unit."""
    try:
        x = embeddings if isinstance(embeddings, Tensor) else torch.as_tensor(plain(embeddings))
    except (ValueError, TypeError) as error:
        raise InputError(
            f"embeddings that are no matrix ({str(error).splitlines()[0]})",
            expected="a matrix of numbers with one row per unit",
            remedy="stack the units' vectors",
            place=Place(document=name),
        ) from None
    if x.ndim != 2 or 0 in x.shape:
        raise InputError(
            f"embeddings of shape {tuple(x.shape)}",
            expected="a matrix with one row per unit and at least one column",
            remedy="stack the units' vectors",
            place=Place(document=name),
        )
    if x.is_complex():
        raise InputError(
            f"embeddings of type {x.dtype}",
            expected="real numbers",
            remedy="convert them to float32",
            place=Place(document=name),
        )
    finite = torch.isfinite(x).all(1)
    if not bool(finite.all()):
        unit = int((~finite).nonzero()[0])
        raise InputError(
            f"NaN or infinity in the vector of unit {unit + 1}",
            expected="finite numbers",
            remedy="encode the unit again (half precision overflows on some models)",
            place=Place(document=name),
        )
    return x


def plain(array: ArrayLike) -> NDArray[np.generic]:
    """Return an array that torch takes: native, contiguous, writable, at most float64."""
    x = np.asarray(array)
    if x.dtype == np.longdouble:
        x = x.astype(np.float64)
    x = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("="))
    return x if x.flags.writeable else x.copy()


def mass_matrix(hypotheses: Hypotheses, n_units: int, name: str, first: int = 0) -> Masses:
    """Bring hypotheses into one padded matrix; each must be positive masses that sum to n.

    ``first`` is the number of the first one, for messages about parts of a longer list.
    """
    if isinstance(hypotheses, np.ndarray):
        matrix = hypotheses
        if matrix.ndim != 2 or matrix.dtype.kind not in "iu":
            raise _refusal(
                f"a matrix of shape {matrix.shape} and type {matrix.dtype}", n_units, name
            )
        matrix = matrix.astype(np.int64, copy=False)
    else:
        rows = [h.masses if isinstance(h, Segmentation) else h for h in hypotheses]
        if not all(isinstance(row, (Sequence, np.ndarray)) for row in rows):
            raise InputError(
                "hypotheses that are not lists",
                expected="a list of hypotheses, each a list of masses",
                remedy="write [[3, 4]] for the single hypothesis [3, 4]",
                place=Place(document=name),
            )
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        flat = np.array(list(chain.from_iterable(rows)) or [0])
        if flat.dtype.kind not in "iu":
            at = next(i for i, row in enumerate(rows) if np.array(row).dtype.kind not in "iu")
            found = f"hypothesis {first + at + 1} with masses that are not whole numbers"
            raise _refusal(found, n_units, name)
        matrix = np.zeros((len(rows), max(1, int(counts.max()))), dtype=np.int64)
        is_mass = np.arange(matrix.shape[1]) < counts[:, None]
        matrix[is_mass] = flat[: int(counts.sum())]
        if (flat[: int(counts.sum())] < 1).any() or (counts == 0).any():
            at = int(np.argmax((is_mass & (matrix < 1)).any(1) | (counts == 0)))
            found = f"hypothesis {first + at + 1} with a mass below 1 or none at all"
            raise _refusal(found, n_units, name)
    # Zeros may only stand at the end of a row.
    has_gap = (matrix[:, 1:] > 0) & (matrix[:, :-1] < 1)
    bad = (matrix < 0).any(1) | has_gap.any(1) | (matrix[:, 0] < 1)
    wrong = bad | (matrix.sum(1) != n_units)
    if wrong.any():
        at = int(np.argmax(wrong))
        found = "a mass below 1" if bad[at] else f"masses that sum to {int(matrix[at].sum())}"
        raise _refusal(f"hypothesis {first + at + 1} with {found}", n_units, name)
    return matrix


def distinct_rows(masses: Masses) -> tuple[Masses, NDArray[np.int64]]:
    """Return the rows without repeats, and for every row the place of its like."""
    # Rows with equal sums of random multiples are equal, but for chance: that is checked.
    factors = np.random.default_rng(0).integers(1, 1 << 62, size=masses.shape[1])
    with np.errstate(over="ignore"):
        sums = masses @ factors
    _, first, place = np.unique(sums, return_index=True, return_inverse=True)
    if not np.array_equal(masses[first][place], masses):
        distinct, place = np.unique(masses, axis=0, return_inverse=True)
        return distinct, place
    return masses[first], place


def stack_masses(matrices: Sequence[Masses]) -> Masses:
    """Put matrices of masses under one another, padded to the widest."""
    width = max(matrix.shape[1] for matrix in matrices)
    return np.concatenate([np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in matrices])


def _refusal(found: str, n_units: int, name: str) -> InputError:
    return InputError(
        found,
        expected=f"positive masses that sum to {n_units}, the number of units",
        remedy="run the segmenter again on these units",
        place=Place(document=name),
    )
