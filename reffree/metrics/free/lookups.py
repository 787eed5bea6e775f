"""Sums of pair values looked up for hypotheses, in tables of edges and units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from reffree.metrics.free.layout import Layout, SetName, UnitSpan

if TYPE_CHECKING:
    from torch import Tensor


PairValue = Literal["squared", "distance", "angle", "weighted", "product", "length"]
Request = tuple[PairValue, UnitSpan | SetName]
"""A value, summed for every unit over a segment or, for every segment, over the pairs of a set."""

Sums = dict[Request, "Tensor"]
"""(h, n) for segments beside units, (h, s) for sets, 0 where there is none."""

EDGES: dict[UnitSpan | SetName, tuple[int, int]] = {
    "previous": (-1, 0),
    "own": (0, 1),
    "next": (1, 2),
}
"""From which edge to which a unit's values are summed: see `Layout.edge`."""


class Block(NamedTuple):
    """Units, the columns, and those that any hypothesis holds against them, the rows."""

    rows: slice
    columns: slice


@dataclass(frozen=True)
class LookUps:
    """Look-ups of a block."""

    block: Block
    edges: dict[PairValue, Tensor]  # (b, rows + 1, columns) sums from a unit to an edge
    sets: dict[PairValue, Tensor]  # (b, rows, columns) sums over the units between two

    def beside(self, layout: Layout, wanted: Sequence[tuple[PairValue, UnitSpan]]) -> Sums:
        """Values summed over segments for every unit of the block: (h, columns) each."""
        import torch

        rows, columns = self.block
        n_rows, n_columns = rows.stop - rows.start + 1, columns.stop - columns.start
        unit = torch.arange(n_columns, device=layout.edges.device)
        values: dict[int, set[PairValue]] = {}
        for value, span in wanted:
            for place in EDGES[span]:
                values.setdefault(place, set()).add(value)
        at: dict[tuple[PairValue, int], Tensor] = {}
        for place in values:
            # Beyond the rows are only hypotheses without a boundary, which have no score.
            row = (layout.edge(place, columns) - rows.start).clamp(0, n_rows - 1)
            index = (layout.document[:, None] * n_rows + row) * n_columns + unit
            for value in sorted(values[place]):
                at[value, place] = torch.take(self.edges[value], index)
        return {
            (value, span): at[value, EDGES[span][1]] - at[value, EDGES[span][0]]
            for value, span in wanted
        }

    def over(self, layout: Layout, name: SetName, values: list[PairValue], into: Sums) -> None:
        """Fill in the sums over sets that end in the block."""
        import torch

        rows, columns = self.block
        n_rows, n_columns = rows.stop - rows.start, columns.stop - columns.start
        first, last = layout.last_units
        some = slice(
            int(np.searchsorted(last, columns.start)), int(np.searchsorted(first, columns.stop))
        )
        start, stop = (x[:, some] for x in layout.places(name))
        row, column = start - rows.start, stop - 1 - columns.start
        is_here = (row >= 0) & (column >= 0) & (column < n_columns)
        index = (layout.document[:, None] * n_rows + row) * n_columns + column
        index = torch.where(is_here, index, 0)
        for value in values:
            known = into[value, name][:, some]
            known.copy_(torch.where(is_here, torch.take(self.sets[value], index), known))
