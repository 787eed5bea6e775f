"""Documents of similar length, and their hypotheses, packed together for torch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from reffree.masses import Masses, stack_masses
from reffree.scoring.pairs import TABLE_ELEMENTS

BATCH_ELEMENTS = 1 << 21
"""Units × dimensions of the documents packed together (16 MiB)."""


def similar_documents(documents: list[Tensor], chosen: list[int]) -> Iterator[list[int]]:
    """Group documents of similar length whose pair tables fit together."""
    batch: list[int] = []
    for i in sorted(chosen, key=lambda i: (len(documents[i]), i)):
        n, d = documents[i].shape
        size = len(batch) + 1
        same = not batch or (d, documents[batch[0]].device) == (
            documents[batch[0]].shape[1],
            documents[i].device,
        )
        if batch and (size * n * n > TABLE_ELEMENTS or size * n * d > BATCH_ELEMENTS or not same):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def stack_hypotheses(parts: list[tuple[int, Masses]]) -> tuple[NDArray[np.int64], Masses]:
    """Put masses of several documents under one another, with each row's document."""
    slots = np.concatenate([np.full(len(masses), slot, dtype=np.int64) for slot, masses in parts])
    return slots, stack_masses([masses for _, masses in parts])
