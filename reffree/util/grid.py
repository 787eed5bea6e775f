"""Rows by their columns, and a table as people read it: a header, and cells of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

Row = dict[str, Any]


def group_by(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Group rows by their values in columns, groups as they first come.

    >>> group_by([{"kind": "a", "n": 1}, {"kind": "b", "n": 2}, {"kind": "a", "n": 3}], "kind")
    {('a',): [{'kind': 'a', 'n': 1}, {'kind': 'a', 'n': 3}], ('b',): [{'kind': 'b', 'n': 2}]}
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text, smaller parts beside and below it, whether it is best of its column."""

    text: str
    below: tuple[str, ...] = ()
    beside: str = ""
    is_best: bool = False
    number: float | None = None  # to sort by


@dataclass(frozen=True, slots=True)
class Grid:
    """A header and rows; columns are names or numbers, those before the first number are names."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_number: tuple[bool, ...]
    title: str = ""
    name: str = ""

    @classmethod
    def of(
        cls,
        header: Iterable[str],
        rows: Iterable[Iterable[Cell | str]],
        n_labels: int = 1,
        title: str = "",
    ) -> Grid:
        """Make a grid from texts or cells, whose first ``n_labels`` columns are names."""
        cells = (tuple(c if isinstance(c, Cell) else Cell(c) for c in row) for row in rows)
        header = tuple(header)
        return cls(header, tuple(cells), tuple(i >= n_labels for i in range(len(header))), title)

    @property
    def n_labels(self) -> int:
        """How many columns, at least one, name the rows."""
        return max(1, [*self.is_number, True].index(True))

    def columns(self, chosen: Sequence[int]) -> Grid:
        """Return the grid of some columns."""
        return replace(
            self,
            header=tuple(self.header[i] for i in chosen),
            rows=tuple(tuple(row[i] for i in chosen) for row in self.rows),
            is_number=tuple(self.is_number[i] for i in chosen),
        )
