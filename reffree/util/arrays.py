"""Types of NumPy arrays, for annotations, and what several rooms do with them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reffree.util.errors import Place, mistake

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def ratio(numerator: Floats, denominator: Floats | Integers) -> Floats:
    """``numerator / denominator``, NaN where the denominator is 0.

    >>> ratio(np.array([1.0, 1.0]), np.array([4.0, 0.0])).tolist()
    [0.25, nan]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


def mean_defined(values: Floats, axis: int) -> Floats:
    """Mean along an axis without NaN; NaN where there is nothing else."""
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0.0).sum(axis), defined.sum(axis))


def to_plain_floats(x: NDArray[np.generic]) -> NDArray[np.generic]:
    """Bring floats longer than float64 to float64, where what is too large becomes infinite."""
    with np.errstate(over="ignore"):
        return x.astype(np.float64) if x.dtype == np.longdouble else x


def check_finite(x: NDArray[np.generic], place: Place) -> None:
    """Refuse vectors, one a row, that hold NaN or infinity."""
    # A sum is finite only if all its terms are; one that overflows is looked at more closely.
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(float(x.sum(dtype=np.float64 if x.dtype == np.float16 else None))):
            return
    finite = np.isfinite(x).all(1)
    if not finite.all():
        found = f"NaN or infinity in the vector of unit {int(np.argmin(finite)) + 1}"
        remedy = "encode the unit again (half precision overflows on some models)"
        raise mistake(place, found, "finite numbers", remedy)
