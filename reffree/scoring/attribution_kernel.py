"""Compiled loop of `reffree.scoring.attribution`."""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from reffree.compiling import njit


@njit(cache=True, nogil=True, error_model="numpy")
def lay_out(boundaries, cleared, added, n_units, masses):
    """Masses of a hypothesis without one boundary and with another; 0 stands for none.

    ``masses`` (neighbours, segments) must be 0 before.
    """
    for row in range(len(cleared)):
        start, s, more = 0, 0, added[row]
        for b in range(len(boundaries) + 1):
            stop = boundaries[b] if b < len(boundaries) else n_units
            if start < more < stop:
                masses[row, s] = more - start
                start, s = more, s + 1
            if stop != cleared[row]:
                masses[row, s] = stop - start
                start, s = stop, s + 1
