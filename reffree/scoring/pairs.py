"""Pair values between units, summed over any columns by two look-ups.

Every metric is a function of sums over segments of four pair values:

=============  ==================================================================
squared        ``|x_i - x_j|²``
distance       ``|x_i - x_j|``
angle          ``1 - cos(x_i, x_j)`` = half the squared distance of the unit vectors
weighted       ``angle · |x_j|``
=============  ==================================================================

Running sums start at the diagonal and go outwards, so the sum over a span that contains the unit
adds positive terms only: no dispersion is ever the small difference of two large numbers, none is
negative. Units that agree to within the rounding of their own type are identical, at distance
exactly 0: the same sentence encoded in two batches says nothing about a boundary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from reffree.scoring.layout import Layout, SpanName

if TYPE_CHECKING:
    import torch
    from torch import Tensor


PairValue = Literal["squared", "distance", "angle", "weighted"]
Request = tuple[PairValue, SpanName]

TABLE_ELEMENTS = 1 << 22
"""Entries of one pair table held at a time (32 MiB); longer documents go in blocks of rows."""

BATCH_ELEMENTS = 1 << 21
"""Units × dimensions of the documents packed together (16 MiB)."""

BLOCK_ROWS = 1024
"""Rows of a block where few columns are needed."""

FLOAT32_NOISE = 16
"""Units of float32 rounding by which an encoder's vectors of one text differ between batches."""


def rounding_of(dtype: torch.dtype) -> float:
    """Squared distance, relative to two vectors' squared lengths, that rounding alone can make.

    Whole numbers are exact, but what is computed of them, in float64, is not.
    """
    import torch

    eps = torch.finfo(dtype if dtype.is_floating_point else torch.float64).eps
    return (eps if eps > torch.finfo(torch.float32).eps else FLOAT32_NOISE * eps) ** 2


class Units:
    """The documents of one batch as padded vectors, and their pair tables.

    Scores do not depend on scale, so each document is first divided by a power of two near its
    largest component: nothing overflows and no bit is lost.
    """

    def __init__(
        self,
        documents: list[Tensor],
        device: torch.device,
        table_elements: int = TABLE_ELEMENTS,
    ) -> None:
        """Pad and copy to float64 on the device; the caller's tensors are not touched."""
        import torch

        self.table_elements = table_elements
        self.length = torch.tensor([len(document) for document in documents], device=device)  # (b,)
        padded = torch.nn.utils.rnn.pad_sequence(
            [document.detach().to(device=device, dtype=torch.float64) for document in documents],
            batch_first=True,
        )
        self.exponent = torch.frexp(padded.abs().amax((1, 2))).exponent.clamp(-1000, 1000)  # (b,)
        self.vectors = torch.ldexp(padded, -self.exponent[:, None, None])  # (b, n, d)
        self.rounding = torch.tensor(
            [rounding_of(document.dtype) for document in documents],
            dtype=torch.float64,
            device=device,
        )  # (b,)
        self._whole: dict[PairValue, Tensor] = {}

    @property
    def n_units(self) -> int:
        """The padded length ``n``."""
        return self.vectors.shape[1]

    @cached_property
    def norm(self) -> Tensor:
        """Length of each vector."""
        import torch

        norm: Tensor = torch.linalg.vector_norm(self.vectors, dim=-1)
        return norm  # (b, n)

    @cached_property
    def directions(self) -> Tensor:
        """Vectors of length 1; zero vectors stay zero."""
        import torch

        return self.vectors / torch.where(self.norm > 0, self.norm, 1)[:, :, None]  # (b, n, d)

    def row_sums(self, layout: Layout, requests: Iterable[Request]) -> dict[Request, Tensor]:
        """For every request, each unit's pair values summed over its span."""
        wanted = sorted(set(requests))
        sums = {
            request: self.vectors.new_zeros(len(layout.document), self.n_units)
            for request in wanted
        }
        values = {value for value, _ in wanted}
        for rows, columns in self._blocks(layout):
            tables = self._tables(values, rows, columns)
            for value, span in wanted:
                low, high = (x[:, rows] - columns.start for x in layout.span(span))
                sums[value, span][:, rows] = _span_sums(tables[value], layout.document, low, high)
        return sums

    def _blocks(self, layout: Layout) -> Iterator[tuple[slice, slice]]:
        """Rows that fit in one table, with the columns any hypothesis needs for them."""
        b, n = self.vectors.shape[:2]
        if b * n * n <= self.table_elements:
            yield slice(0, n), slice(0, n)
            return
        first = layout.span("previous").low.amin(0).tolist()
        last = layout.span("next").high.amax(0).tolist()
        widest = max(stop - start for start, stop in zip(first, last, strict=True))
        # Rows beside one another share most of their columns.
        step = max(1, min(widest, self.table_elements // (2 * b * max(1, widest))))
        step = max(step, min(BLOCK_ROWS, self.table_elements // (b * (BLOCK_ROWS + widest))))
        for start in range(0, n, step):
            stop = min(start + step, n)
            yield slice(start, stop), slice(min(first[start:stop]), max(last[start:stop]))

    def _tables(
        self, values: set[PairValue], rows: slice, columns: slice
    ) -> dict[PairValue, Tensor]:
        """Running sums of the pair values in one block; a block that is everything is kept."""
        if values <= self._whole.keys():
            return self._whole
        diagonal = rows.start - columns.start
        tables = {
            value: _outward_sums(pairs, diagonal)
            for value, pairs in self._pair_values(values, rows, columns)
        }
        if rows == columns == slice(0, self.n_units):
            self._whole = tables
        return tables

    def _pair_values(
        self, values: set[PairValue], rows: slice, columns: slice
    ) -> Iterator[tuple[PairValue, Tensor]]:
        if values & {"squared", "distance"}:
            squared = _squared_distances(self.vectors, rows, columns)
            self._drop_rounding(squared, self.norm, rows, columns)
            if "squared" in values:
                yield "squared", squared
            if "distance" in values:
                yield "distance", squared.sqrt()
        if values & {"angle", "weighted"}:
            angle = _squared_distances(self.directions, rows, columns)
            has_direction = (self.norm > 0).double()
            self._drop_rounding(angle, has_direction, rows, columns)
            # A zero vector has no direction: its cosine with anything is 0.
            both = has_direction[:, rows, None] * has_direction[:, None, columns]
            angle = angle.div_(2).masked_fill_(both == 0, 1.0)
            angle.diagonal(rows.start - columns.start, 1, 2).zero_()
            if "angle" in values:
                yield "angle", angle
            if "weighted" in values:
                yield "weighted", angle * self.norm[:, None, columns]

    def _drop_rounding(self, squared: Tensor, norm: Tensor, rows: slice, columns: slice) -> None:
        """Set distances that rounding alone can make to 0."""
        scale = norm.square() * self.rounding[:, None]
        squared.masked_fill_(squared <= scale[:, rows, None] + scale[:, None, columns], 0.0)


def _squared_distances(x: Tensor, rows: slice, columns: slice) -> Tensor:
    """Squared distances between vectors (b, n, d), measured pair by pair: (b, rows, columns)."""
    import torch

    exact = "donot_use_mm_for_euclid_dist"
    distance: Tensor = torch.cdist(x[:, rows], x[:, columns], compute_mode=exact)
    return distance.square()


def _outward_sums(values: Tensor, diagonal: int) -> Tensor:
    """``[i, j]`` = signed sum of row ``i`` from the diagonal to column ``j`` (exclusive).

    ``diagonal`` is the column of the first row's own unit.
    """
    import torch

    sums = torch.nn.functional.pad(values.triu(diagonal).cumsum_(2), (1, 0))  # (b, r, c + 1)
    sums[:, :, :-1] -= values.tril(diagonal - 1).flip(2).cumsum_(2).flip(2)
    return sums


def _span_sums(table: Tensor, document: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Look up ``table[document, row, high] - table[document, row, low]`` for every row."""
    import torch

    _, r, c = table.shape
    row = document[:, None] * r + torch.arange(r, device=table.device)  # (h, r)
    base = row * c
    return torch.take(table, base + high) - torch.take(table, base + low)


def similar_documents(documents: list[Tensor], chosen: list[int]) -> Iterator[list[int]]:
    """Group documents of similar length whose pair tables fit together."""
    batch: list[int] = []
    for i in sorted(chosen, key=lambda i: (len(documents[i]), i)):
        n, d = documents[i].shape
        size = len(batch) + 1
        first = documents[batch[0]] if batch else documents[i]
        same = (d, documents[i].device) == (first.shape[1], first.device)
        if batch and (size * n * n > TABLE_ELEMENTS or size * n * d > BATCH_ELEMENTS or not same):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
