"""Embeddings as given, checked: NumPy arrays where they are on the host, else tensors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reffree.util import arrays
from reffree.util.errors import Place, first_line, mistake

if TYPE_CHECKING:
    from torch import Tensor

    Array = Tensor | NDArray[np.generic]

FLOAT32_NOISE = 16
"""Units of float32 rounding by which an encoder's vectors of one text differ between batches."""

MOST_EXPONENT = 1000
"""Powers of two by which vectors are scaled at most."""

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}
"""Relative rounding of types; all others are taken as float64."""


class Given(NamedTuple):
    """One document's vectors."""

    vectors: Any  # a matrix: a NumPy array, or a tensor on a device that is not the host
    dtype: str  # the type they were given in

    @property
    def device(self) -> str:
        """Where the vectors are, such as ``cpu`` or ``cuda:1``."""
        return "cpu" if isinstance(self.vectors, np.ndarray) else str(self.vectors.device)

    def __len__(self) -> int:
        """Count the units."""
        return len(self.vectors)

    def on_host(self) -> NDArray[np.generic]:
        """Return the vectors as a NumPy array; waits for a device that has them."""
        return self.vectors if isinstance(self.vectors, np.ndarray) else _as_array(self.vectors)

    def as_tensor(self) -> Tensor:
        """Return the vectors as a tensor, of the same type wherever they are."""
        import torch

        x: Any = self.vectors
        if isinstance(x, np.ndarray):
            x = torch.from_numpy(x if x.flags.writeable else x.copy())
            x = x.to(torch.bfloat16) if self.dtype == "bfloat16" else x
        tensor: Tensor = x
        return tensor


def rounding_of(dtype: str) -> float:
    """Squared distance, relative to two vectors' squared lengths, that rounding alone can make.

    Whole numbers are exact, but what is computed of them, in float64, is not.
    """
    eps = EPSILON.get(dtype, 2.0**-52)
    return (eps if eps > EPSILON["float32"] else FLOAT32_NOISE * eps) ** 2


def check_embeddings(embeddings: Array, name: str) -> Given:
    """Refuse anything but a finite matrix with a row per unit."""
    x = check_matrix(embeddings, name)
    check_finite(x, name)
    return x


def check_matrix(embeddings: Array | Given, name: str) -> Given:
    """Refuse anything but a matrix of real numbers."""
    if isinstance(embeddings, Given):
        return embeddings
    place, stack = Place(document=name), "stack the units' vectors"
    torch = sys.modules.get("torch")  # not imported to find out
    if torch is not None and isinstance(embeddings, torch.Tensor):
        x: Any = embeddings
        dtype, kind = str(x.dtype).removeprefix("torch."), "c" if x.is_complex() else "f"
    else:
        try:
            x = arrays.to_plain_floats(np.asarray(embeddings))
            if x.dtype.kind not in "fiubc":
                x = x.astype(np.float64)
        except (ValueError, TypeError) as error:
            found = f"embeddings that are no matrix ({first_line(error)})"
            expected = "a matrix of numbers with one row per unit"
            raise mistake(place, found, expected, stack) from None
        x = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("="))
        dtype, kind = x.dtype.name, x.dtype.kind
    if x.ndim != 2 or 0 in x.shape:
        expected = "a matrix with one row per unit and at least one column"
        raise mistake(place, f"embeddings of shape {tuple(x.shape)}", expected, stack)
    if kind == "c":
        found = f"embeddings of type {dtype}"
        raise mistake(place, found, "real numbers", "convert them to float32")
    if not isinstance(x, np.ndarray) and (x.device.type == "cpu" or x.is_mps):
        x = _as_array(x)  # Metal has no float64
    return Given(x, dtype)


def check_finite(given: Given, name: str) -> None:
    """Refuse NaN and infinity."""
    if not isinstance(given.vectors, np.ndarray) and given.vectors.is_meta:  # shapes alone
        return
    arrays.check_finite(given.on_host(), Place(document=name))


def _as_array(tensor: Tensor) -> NDArray[np.generic]:
    """Bring a tensor to the host as NumPy, which has no bfloat16."""
    known = tensor.detach().cpu()
    array: NDArray[np.generic]
    array = (known.float() if "bfloat16" in str(known.dtype) else known).numpy()
    return array
