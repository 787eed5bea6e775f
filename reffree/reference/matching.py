"""Most pairs of boundaries that can be matched one to one, compiled."""

from __future__ import annotations

import numpy as np

from reffree.arrays import Integers
from reffree.compiling import njit
from reffree.reference.pairs import Pairs


def matched_boundaries(pairs: Pairs, w: int) -> Integers:
    """Size of a maximum matching of boundaries at most ``w`` apart, for each pair."""
    matched = np.zeros(len(pairs), dtype=np.int64)
    # Fresh arrays of one kind, so that one version is compiled.
    ends = np.cumsum(pairs.hypothesis, axis=1), np.cumsum(pairs.reference, axis=1)
    _match(*ends, pairs.n_units, w, matched)
    return matched


@njit(cache=True)
def _match(
    hypothesis: Integers, reference: Integers, n_units: Integers, w: int, matched: Integers
) -> None:
    """Walk both rows at once: of two boundaries too far apart, the earlier has no partner left.

    Matching the earliest two that are near is optimal, for all windows are equally wide: any
    maximum matching can be exchanged into one that has this pair.
    """
    for row in range(len(matched)):
        i = j = 0
        # The last end of a row is the document's and stands for none.
        while hypothesis[row, i] < n_units[row] and reference[row, j] < n_units[row]:
            gap = hypothesis[row, i] - reference[row, j]
            if abs(gap) <= w:
                matched[row] += 1
            if gap <= w:
                i += 1
            if gap >= -w:
                j += 1
