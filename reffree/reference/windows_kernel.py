"""Sums over all positions of a sliding window, from boundary to boundary instead of unit by unit.

The numbers of boundaries in a window change only where a boundary enters or leaves it, so a pair of
segmentations costs as many steps as it has boundaries, whatever the number of units; there is
nothing left that a GPU would do faster.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reffree.arrays import Integers
from reffree.compiling import njit
from reffree.parallel import THREADED, available_threads, over_rows
from reffree.reference.pairs import Pairs


class WindowSums(NamedTuple):
    """Of each pair; h and r are the boundaries of hypothesis and reference in a window."""

    windows: Integers
    different: Integers  # windows with h ≠ r
    fewer: Integers  # windows with h < r
    more: Integers  # windows with h > r
    with_reference: Integers  # windows with r > 0
    shared: Integers  # Σ min(h, r)


def window_sums(pairs: Pairs, k: Integers, *, padded: bool) -> WindowSums:
    """Slide each pair's window of ``k`` gaps over it.

    Without padding both ends of the window are units, and there are n - k; with it the window
    begins and ends with a single gap inside the document, and there are n + k - 2.
    """
    sums = np.zeros((len(pairs), len(WindowSums._fields)), dtype=np.int64)
    hypothesis, reference = pairs.rows()

    def work(rows: slice) -> None:
        _slide(hypothesis[rows], reference[rows], k[rows], padded, sums[rows])

    is_much = hypothesis.size + reference.size >= THREADED
    over_rows(work, len(pairs), available_threads() if is_much else 1)
    return WindowSums(*sums.T)


def parted_windows(pairs: Pairs, k: Integers) -> Integers:
    """Windows between two units that only one side leaves within a segment.

    A segment of m units holds m - k of them, so they are those of either side's segments, less
    twice those of the spans that both sides leave whole.
    """
    parted = np.zeros(len(pairs), dtype=np.int64)
    hypothesis, reference = pairs.rows()

    def work(rows: slice) -> None:
        _part(hypothesis[rows], reference[rows], k[rows], parted[rows])

    is_much = hypothesis.size + reference.size >= THREADED
    over_rows(work, len(pairs), available_threads() if is_much else 1)
    return parted


@njit(cache=True, nogil=True)
def _part(hypothesis, reference, k, parted):
    for p in range(len(parted)):
        h_masses, r_masses, size = hypothesis[p], reference[p], k[p]
        h, r, total = 0, 0, 0
        h_left, r_left = h_masses[0], r_masses[0]
        total += max(0, h_left - size) + max(0, r_left - size)
        while True:
            span = min(h_left, r_left)
            total -= 2 * max(0, span - size)
            h_left -= span
            r_left -= span
            if h_left == 0:
                h += 1
                if h == len(h_masses) or h_masses[h] == 0:
                    break
                h_left = h_masses[h]
                total += max(0, h_left - size)
            if r_left == 0:
                r += 1
                r_left = r_masses[r]
                total += max(0, r_left - size)
        parted[p] = total


@njit(cache=True, nogil=True)
def _ends(masses, boundaries, never):
    """Write the boundaries of a row, closed by two that no window reaches; return the units."""
    total, count = 0, 0
    for mass in masses:
        if mass == 0:
            break
        total += mass
        boundaries[count] = total
        count += 1
    boundaries[count - 1] = never
    return total


@njit(cache=True, nogil=True)
def _slide(hypothesis, reference, k, padded, sums):
    never = 1 << 62
    h = np.empty(hypothesis.shape[1], dtype=np.int64)
    r = np.empty(reference.shape[1], dtype=np.int64)
    for p in range(len(sums)):
        n = _ends(hypothesis[p], h, never)
        _ends(reference[p], r, never)
        size = k[p]
        # Window i holds the boundaries i + 1 … i + k.
        i, stop = (1 - size, n - 1) if padded else (0, n - size)
        entering_h, leaving_h, entering_r, leaving_r = 0, 0, 0, 0
        out = sums[p]
        out[0] = max(0, stop - i)
        while i < stop:
            while h[entering_h] <= i + size:
                entering_h += 1
            while h[leaving_h] <= i:
                leaving_h += 1
            while r[entering_r] <= i + size:
                entering_r += 1
            while r[leaving_r] <= i:
                leaving_r += 1
            following = min(
                min(h[entering_h] - size, h[leaving_h]), min(r[entering_r] - size, r[leaving_r])
            )
            length = min(following, stop) - i
            in_h, in_r = entering_h - leaving_h, entering_r - leaving_r
            out[1] += length * (in_h != in_r)
            out[2] += length * (in_h < in_r)
            out[3] += length * (in_h > in_r)
            out[4] += length * (in_r > 0)
            out[5] += length * min(in_h, in_r)
            i += length
