"""Sums that come out the same to the last bit in any order and any grouping."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reffree.util.arrays import Floats

WIDTH = 24
"""Bits of a number that one array holds: sums of half a billion of them are exact."""

LOWEST = -1056 // WIDTH
"""Array that holds the smallest numbers there are."""


@dataclass(slots=True)
class ExactSums:
    """An array of sums, cut into arrays of whole multiples of powers of two."""

    shape: tuple[int, ...]
    _pieces: dict[int, Floats] = field(default_factory=dict)  # multiples of 2 ** (WIDTH · key)

    def add(self, index: tuple[int, ...], values: Floats) -> None:
        """Add finite values to a part of the array."""
        rest = np.array(values, dtype=np.float64)
        largest = float(np.abs(rest).max(initial=0.0))
        place = max(LOWEST, (int(np.frexp(largest)[1]) - 1) // WIDTH)
        while rest.any():
            unit = 2.0 ** (WIDTH * place)
            piece = np.trunc(rest / unit) * unit if place > LOWEST else rest
            self._piece(place)[index] += piece
            rest = rest - piece
            place -= 1

    def __add__(self, other: ExactSums) -> ExactSums:
        """Join two sets of addends."""
        joined = ExactSums(self.shape, {place: x.copy() for place, x in self._pieces.items()})
        for place, piece in other._pieces.items():
            joined._piece(place)[...] += piece
        return joined

    @property
    def values(self) -> Floats:
        """The sums."""
        total = np.zeros(self.shape)
        for place in sorted(self._pieces):
            total += self._pieces[place]
        return total

    def _piece(self, place: int) -> Floats:
        return self._pieces.setdefault(place, np.zeros(self.shape))
