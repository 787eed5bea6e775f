"""Embeddings as given, checked and brought into tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from reffree.util.errors import InputError, Place

if TYPE_CHECKING:
    Array = Tensor | NDArray[np.generic]


def check_embeddings(embeddings: Array, name: str) -> Tensor:
    """Refuse anything but a finite matrix with a row per unit."""
    x = check_matrix(embeddings, name)
    check_finite(x, name)
    return x


def check_matrix(embeddings: Array, name: str) -> Tensor:
    """Refuse anything but a matrix of real numbers."""
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
    return x


def check_all_finite(documents: Sequence[Tensor], names: Sequence[str]) -> None:
    """Refuse NaN and infinity; waits once for those that are not on the host."""
    there = [i for i, x in enumerate(documents) if x.device.type not in ("cpu", "meta")]
    sums = [documents[i].detach().sum(dtype=torch.float64) for i in there]
    found = dict(zip(there, torch.stack(sums).tolist() if sums else [], strict=True))
    for i, (x, name) in enumerate(zip(documents, names, strict=True)):
        if not math.isfinite(found.get(i, math.nan)):
            check_finite(x, name)


def check_finite(x: Tensor, name: str) -> None:
    """Refuse NaN and infinity in a matrix."""
    if x.is_meta:  # shapes alone
        return
    # A sum is finite only if all its terms are; one that overflows is looked at more closely.
    finite = None if math.isfinite(_sum(x.detach())) else torch.isfinite(x).all(1)
    if finite is not None and not bool(finite.all()):
        unit = int((~finite).nonzero()[0])
        raise InputError(
            f"NaN or infinity in the vector of unit {unit + 1}",
            expected="finite numbers",
            remedy="encode the unit again (half precision overflows on some models)",
            place=Place(document=name),
        )


def _sum(x: Tensor) -> float:
    """Any sum of all components."""
    if x.device.type == "cpu" and x.dtype in (torch.float64, torch.float32):
        # One thread: those that torch wakes for this stay awake for a while, in others' way.
        with np.errstate(over="ignore", invalid="ignore"):
            return float(x.numpy().sum())
    return float(x.sum(dtype=torch.float64))


def plain(array: ArrayLike) -> NDArray[np.generic]:
    """Return an array that torch takes: native, contiguous, writable, at most float64."""
    x = np.asarray(array)
    if x.dtype == np.longdouble:
        x = x.astype(np.float64)
    x = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("="))
    return x if x.flags.writeable else x.copy()
