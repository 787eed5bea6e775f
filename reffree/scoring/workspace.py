"""Memory that one document after the other uses: fresh memory costs as much as what is put in it.

The system clears it page by page when it is first written to.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from reffree.arrays import Floats

KEPT = 2
"""Arrays kept at most: one document's vectors and tables."""

KEPT_BYTES = 1 << 25
"""Bytes of an array at most that is kept."""

spare: list[Floats] = []
_one_at_a_time = Lock()


def take(size: int) -> Floats:
    """Return an array of at least ``size`` numbers, whatever they are."""
    with _one_at_a_time:
        fitting = [k for k, memory in enumerate(spare) if len(memory) >= size]
        if fitting:
            return spare.pop(min(fitting, key=lambda k: len(spare[k])))
    return np.empty(size)


def give_back(memory: Floats) -> None:
    """Keep an array that nobody reads any more; of too many, the largest."""
    if memory.nbytes <= KEPT_BYTES:
        with _one_at_a_time:
            spare.append(memory)
            if len(spare) > KEPT:
                spare.pop(min(range(len(spare)), key=lambda k: len(spare[k])))
