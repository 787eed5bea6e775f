"""The best segmentations there are under the metrics that can be searched exactly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import psutil
from numpy.typing import NDArray

from reffree.arrays import Floats
from reffree.errors import InputError, Place, counted
from reffree.masses import masses_from_gaps
from reffree.scoring.arp import Arp
from reffree.scoring.compiled import CompiledDocument
from reffree.scoring.engine import score_documents
from reffree.scoring.inputs import check_embeddings
from reffree.scoring.metrics import Metric, spelling
from reffree.scoring.tables import Band, build_tables, table_bytes
from reffree.segmenters.optimum_kernel import best_sums, best_sums_of, least_costs, proximities

TIE = 1e-9
"""Scores that differ by less, relative to the larger of them and 1, are equal."""


def highest_proximity(
    vectors: NDArray[np.generic], metric: Arp, k: int | None, place: Place
) -> list[int]:
    """Boundaries with the highest ARP of all segmentations without a one-unit segment but the last.

    ``k`` of them or as many as fit; without ``k`` any number, and none if that is best.
    """
    dispersion = _spread(vectors, ("arp_std", "arp_cos", "arp_pair").index(metric.name), place)
    if spelling(metric) == "arp_std:p=1":
        dispersion = np.sqrt(dispersion)  # the table has the variance
    table = proximities(dispersion)
    return _best_mean(table) if k is None else _best_mean_of(table, k)


def least_squares(
    vectors: NDArray[np.generic], metric: Metric, k: int | None, place: Place
) -> list[int]:
    """Boundaries with the least sum of squares within segments; their best number, if not known."""
    n = len(vectors)
    size = np.arange(n) - np.arange(n)[:, None] + 1
    variance = _spread(vectors, 0, place)
    starts = least_costs(variance * size, n - 1 if k is None else min(k, n - 1))
    if k is not None:
        return _traced(starts, min(k, n - 1))
    gaps = np.zeros((n - 1, n - 1), dtype=bool)  # [k] the best k boundaries
    for row in range(1, n - 1):
        gaps[row, np.array(_traced(starts, row)) - 1] = True
    scores = score_documents([vectors], [masses_from_gaps(gaps)], [metric])
    raw = scores[spelling(metric)].documents[0].numpy()
    best: list[int] = (np.flatnonzero(gaps[int(np.nanargmax(raw))]) + 1).tolist()
    return best


def _best_mean(proximity: Floats) -> list[int]:
    """Boundaries with the highest mean proximity of all; none if it is not above 0."""
    n = len(proximity)
    total = np.empty((n + 1, n + 1))
    via = np.zeros((n + 1, n + 1), dtype=np.int32)
    mean, boundaries = 0.0, []
    while n > 2:
        # Whoever beats the mean so far in sum has a higher mean.
        best_sums(proximity, mean, total, via)
        size, end = int(np.argmax(total[n, 1:n])) + 1, n
        gain, found = float(total[n, size]), []
        while size < end:
            end, size = end - size, int(via[end, size])
            found.append(end)
        if not gain > TIE:
            break
        mean, boundaries = mean + gain / len(found), found
    return boundaries[::-1]


def _best_mean_of(proximity: Floats, k: int) -> list[int]:
    """``k`` boundaries with the highest mean proximity, or as many as fit."""
    n = len(proximity)
    work = np.empty((n + 1, n + 1)), np.zeros((n + 1, n + 1), dtype=np.int32)
    most = (n - 1) // 2
    return [start for start, _ in _path(proximity, work, None, None, min(k, most))]


def _path(
    proximity: Floats,
    work: tuple[Floats, NDArray[np.int32]],
    first: tuple[int, int] | None,
    last: tuple[int, int] | None,
    k: int,
) -> Iterator[tuple[int, int]]:
    """Segments after each of ``k`` boundaries between two segments, known or not.

    One search finds the segment in the middle, and each half is searched again (Hirschberg 1975):
    some twice the time, but no table for every boundary.
    """
    n = len(proximity)
    if k == 0 or (k == 1 and last is not None):
        yield from [last] if k and last is not None else []
        return
    middle = max(1, k // 2)
    total, place = work
    stop = n if last is None else last[1]
    best_sums_of(proximity, first or (0, 0), stop, k, middle, total, place)
    size = int(np.argmax(total[n, 1:n])) + 1 if last is None else last[1] - last[0]
    end, length = divmod(int(place[stop, size]), n + 1)
    found = (end - length, end)
    yield from _path(proximity, work, first, found, middle)
    yield from _path(proximity, work, found, (stop - size, stop), k - middle)


def _traced(starts: NDArray[np.int32], k: int) -> list[int]:
    """Boundaries of the cheapest segmentation with ``k``, from its last segment's start on."""
    boundaries, j = [], starts.shape[1] - 1
    for row in range(k, 0, -1):
        boundaries.append(int(starts[row, j]))
        j = boundaries[-1] - 1
    return boundaries[::-1]


def _spread(vectors: NDArray[np.generic], column: int, place: Place) -> Floats:
    """``[i, j]``: variance, cosine or pairwise dispersion of the units ``i … j``, 0 for j < i."""
    n = len(vectors)
    edges = np.arange(n + 1)
    everything = Band(np.zeros_like(edges), np.full_like(edges, n), edges * n, n * (n + 1))
    needed = table_bytes(everything) + 8 * vectors.size
    if needed > psutil.virtual_memory().available // 2:
        raise InputError(
            f"{counted(n, 'unit')}, for which a search needs {needed / 1e9:.0f} GB",
            expected="a document whose tables take half of the free memory at most",
            remedy="write --method greedy, or split the document",
            place=place,
        )
    document = CompiledDocument(check_embeddings(vectors, "0"))
    tables = build_tables(document.vectors, everything)
    return np.triu(tables.spread.reshape(n + 1, n, 3)[:n, :, column])
