"""Vectors of length one, so that inner products are cosines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats


def directions(x: NDArray[np.generic]) -> Floats:
    """Rows scaled to length one; rows of zeros stay zeros, so their cosines are 0.

    >>> directions(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    rows: Floats = x.astype(np.float64)
    # The largest entry is divided out first: squares of very large or small numbers overflow.
    largest = np.abs(rows).max(1, keepdims=True)
    np.divide(rows, largest, out=rows, where=largest > 0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, length, out=rows, where=length > 0)
    return rows
