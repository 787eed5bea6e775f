"""Pair values between units, summed over segments by a few look-ups: for devices but CPUs.

Every metric is a function of sums over segments of five pair values, with ``w`` the lengths:

=============  ==================================================================
squared        ``|x_i - x_j|²``
distance       ``|x_i - x_j|``
angle          ``a_ij = 1 - cos(x_i, x_j)`` = half the squared distance of the unit vectors
weighted       ``(w_i + w_j) a_ij``
product        ``w_i w_j a_ij``
=============  ==================================================================

and of the lengths themselves. As for the compiled loop, there are two kinds of look-ups, rows of
edges ``c`` by columns of units ``i``: the signed sum over the units from ``i`` outwards to the
edge, and the sum over all pairs of the units ``c … i``. Both add terms that are not negative: no
dispersion is the small difference of two large numbers. Units that agree to within the rounding of
their own type are identical, at distance exactly 0: the same sentence encoded in two batches says
nothing about a boundary.

Everything is added in an order of its own (`arithmetic`), so a score has the same bits whatever is
scored beside it, as long as its document's look-ups are made in one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from reffree.metrics.free.arithmetic import (
    Arithmetic,
    Digits,
    arithmetic_of,
    power_of_two,
    running_sums,
)
from reffree.metrics.free.layout import Layout, SetName, UnitSpan, sent
from reffree.metrics.free.lookups import EDGES, Block, LookUps, PairValue, Request, Sums

if TYPE_CHECKING:
    import torch
    from torch import Tensor


FLOAT32_NOISE = 16
"""Units of float32 rounding by which an encoder's vectors of one text differ between batches."""

BLOCK_UNITS = 256
"""Units of a block of look-ups, memory permitting, where segments are short."""

WRITTEN = 1 << 24
"""Components of vectors that are measured at a time."""

MOST_EXPONENT = 1000
"""Powers of two by which vectors are scaled at most."""


def rounding_of(dtype: torch.dtype) -> float:
    """Squared distance, relative to two vectors' squared lengths, that rounding alone can make.

    Whole numbers are exact, but what is computed of them, in float64, is not.
    """
    import torch

    eps = torch.finfo(dtype if dtype.is_floating_point else torch.float64).eps
    return (eps if eps > torch.finfo(torch.float32).eps else FLOAT32_NOISE * eps) ** 2


class Units:
    """The documents of one batch as padded vectors, and their look-ups.

    Scores do not depend on scale, so each document is first divided by a power of two near its
    largest component: nothing overflows and no bit is lost.
    """

    def __init__(
        self,
        documents: list[Tensor],
        device: torch.device,
        arithmetic: Arithmetic | None = None,
        pairs: int | None = None,
    ) -> None:
        """Pad and copy to float64 on the device; the caller's tensors are not touched.

        ``pairs`` is how many there may be in one block of look-ups, all of them by default.
        """
        import torch

        self.arithmetic = arithmetic or arithmetic_of(device)
        self.pairs = pairs
        padded = torch.nn.utils.rnn.pad_sequence(
            [_arrived(document.detach(), device).double() for document in documents],
            batch_first=True,
        )
        exponent = torch.frexp(padded.abs().amax((1, 2))).exponent
        self.exponent = exponent.clamp(-MOST_EXPONENT, MOST_EXPONENT)  # (b,)
        self.vectors = padded * power_of_two(-self.exponent)[:, None, None]  # (b, n, d)
        rounding = [rounding_of(document.dtype) for document in documents]
        self.rounding = sent(np.array(rounding), device)  # (b,)
        self._whole: LookUps | None = None

    @property
    def n_units(self) -> int:
        """The padded length ``n``."""
        return self.vectors.shape[1]

    @cached_property
    def norm(self) -> Tensor:
        """Length of each vector."""
        import torch

        b, n, d = self.vectors.shape
        step = max(1, WRITTEN // (b * d))
        parts = [slice(first, min(first + step, n)) for first in range(0, n, step)]
        return torch.cat(
            [Digits.of(self.vectors[:, part], self.arithmetic).lengths for part in parts], 1
        )  # (b, n)

    def _squared_distances(self, block: Block, *, is_turned: bool) -> Tensor:
        """Squared distances of vectors or, turned, of their directions: (b, rows, columns).

        Zero vectors stay zero.
        """
        import torch

        rows, columns = block
        vectors = self.vectors[:, rows]
        if is_turned:
            norm = self.norm[:, rows]
            vectors = vectors / torch.where(norm > 0, norm, 1.0)[:, :, None]
        digits = Digits.of(vectors, self.arithmetic)
        inner = slice(columns.start - rows.start, columns.stop - rows.start)
        return digits.squared_distances(slice(0, rows.stop - rows.start), inner)

    def sums(self, layout: Layout, requests: Iterable[Request]) -> Sums:
        """Look up every request."""
        wanted = sorted(set(requests))
        of_units: list[tuple[PairValue, UnitSpan]] = []
        of_sets: dict[SetName, list[PairValue]] = {}
        for value, name in wanted:
            match name:
                case "own" | "previous" | "next":
                    of_units.append((value, name))
                case _:
                    of_sets.setdefault(name, []).append(value)
        h, s = layout.masses.shape
        sums: Sums = {
            (value, name): self.vectors.new_zeros(h, self.n_units if name in EDGES else s)
            for value, name in wanted
        }
        carried: dict[PairValue, Tensor] = {}
        for block in self._blocks(layout):
            tables = self._tables(wanted, block, carried)
            for request, found in tables.beside(layout, of_units).items():
                sums[request][:, block.columns] = found
            for name, values in of_sets.items():
                tables.over(layout, name, values, sums)
        return sums

    def _blocks(self, layout: Layout) -> Iterator[Block]:
        """Units whose look-ups fit, from the first on, each with those any hypothesis needs."""
        b, n = self.vectors.shape[:2]
        if self.pairs is None or b * n * n <= self.pairs:
            yield Block(slice(0, n), slice(0, n))
            return
        low, high = layout.reach
        start = 0
        while start < n:
            # Few enough that most of their pairs are needed.
            most = min(n - start, max(BLOCK_UNITS, int(high[start] - low[start])))
            size = b * (high[start : start + most] - low[start]) * np.arange(1, most + 1)
            stop = start + max(1, int(np.searchsorted(size, self.pairs, side="right")))
            yield Block(slice(int(low[start]), int(high[stop - 1])), slice(start, stop))
            start = stop

    def _tables(
        self, wanted: list[Request], block: Block, carried: dict[PairValue, Tensor]
    ) -> LookUps:
        """Make the look-ups of a block; one that is everything is kept.

        ``carried`` are sums over the sets that end before the block, by their first unit.
        """
        if self._whole is not None:
            return self._whole
        by_unit = {value for value, name in wanted if name in EDGES}
        by_set = {value for value, name in wanted if name not in EDGES}
        tables = LookUps(block, {}, {})
        diagonal = block.rows.start - block.columns.start
        for value, pairs in self._pair_values(by_unit | by_set, block):
            before = running_sums(pairs.triu(diagonal + 1), 1, backwards=True)  # (b, r, c)
            if value in by_unit:
                tables.edges[value] = _to_edges(pairs, before, diagonal)
            if value in by_set:
                tables.sets[value] = self._over_sets(value, before, block, carried)
        if "length" in by_set:
            rows, columns = block
            size = columns.stop - columns.start
            each = self.norm[:, rows, None].expand(-1, -1, size).triu(diagonal)
            tables.sets["length"] = running_sums(each, 1, backwards=True)
        if block.rows == block.columns == slice(0, self.n_units):
            self._whole = tables
        return tables

    def _over_sets(
        self, value: PairValue, before: Tensor, block: Block, carried: dict[PairValue, Tensor]
    ) -> Tensor:
        """Sum what every unit adds to the sets before it."""
        (first, last), columns = (block.rows.start, block.rows.stop), block.columns
        table = running_sums(before, 2)
        if columns.start > 0:
            known = carried[value][:, first:last]
            table.add_(known[:, :, None])
        if columns.stop < self.n_units:
            through = self.vectors.new_zeros(len(table), self.n_units)
            through[:, first:last] = table[:, :, -1]
            carried[value] = through
        return table

    def _pair_values(
        self, values: set[PairValue], block: Block
    ) -> Iterator[tuple[PairValue, Tensor]]:
        rows, columns = block
        if values & {"squared", "distance"}:
            squared = self._squared_distances(block, is_turned=False)
            scale = self.norm.square() * self.rounding[:, None]
            _drop(squared, scale[:, rows, None], scale[:, None, columns])
            if "squared" in values:
                yield "squared", squared
            if "distance" in values:
                yield "distance", squared.sqrt_()
            del squared
        if values & {"angle", "weighted", "product"}:
            angle = self._squared_distances(block, is_turned=True).div_(2.0)
            has_direction = self.norm > 0
            scale = has_direction * self.rounding[:, None] / 2
            _drop(angle, scale[:, rows, None], scale[:, None, columns])
            # A zero vector has no direction: its cosine with anything is 0.
            both = has_direction[:, rows, None] & has_direction[:, None, columns]
            angle.masked_fill_(~both, 1.0)
            left, right = self.norm[:, rows, None], self.norm[:, None, columns]
            if "angle" in values:
                yield "angle", angle
            if "weighted" in values:
                yield "weighted", (left + right).mul_(angle)
            if "product" in values:
                yield "product", angle.mul_(left).mul_(right)


def _drop(squared: Tensor, left: Tensor, right: Tensor) -> None:
    """Set distances that rounding alone can make to 0."""
    squared.masked_fill_(squared <= left + right, 0.0)


def _to_edges(pairs: Tensor, before: Tensor, diagonal: int) -> Tensor:
    """``[c, i]`` = signed sum of column ``i`` from its own unit to the edge before row ``c``."""
    import torch

    after = running_sums(pairs.tril(diagonal - 1), 1)
    table = torch.nn.functional.pad(after, (0, 0, 1, 0))  # (b, r + 1, c)
    table[:, :-1] -= before
    return table


def _arrived(document: Tensor, device: torch.device) -> Tensor:
    """Copy a document to a device; the host does not wait for it."""
    if device.type == "cuda" and document.device.type == "cpu":
        return document.pin_memory().to(device, non_blocking=True)
    return document.to(device)
