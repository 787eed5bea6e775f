"""Which rows were used last, noted without a write per read.

Rows are counted in blocks of consecutive insertions, and a block notes the turn it was last used
in. A turn is a count, not a time: a run takes the next one, for the whole folder, when it adds rows
or uses a block that others have been used after. So a run that repeats the last one writes nothing,
any other run writes one number per 256 rows it read, and no clock can go backwards.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

BLOCK_BITS = 8
LARGEST_TURN = 1 << 62


def block_of(row_id: int) -> int:
    """Return the block that a row's id belongs to: 256 ids each, from 1 on."""
    return (row_id - 1) >> BLOCK_BITS


def ids_of(block: int) -> tuple[int, int]:
    """Return a block's first and last id."""
    return (block << BLOCK_BITS) + 1, (block + 1) << BLOCK_BITS


class Recency:
    """The turn of one open cache file; every method runs inside the caller's transaction."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        """Take no turn yet."""
        self._db = db
        self._path = path
        self._turn = -1
        self._is_own = False
        self._marked: set[int] = set()

    def unmarked(self, blocks: Iterable[int]) -> set[int]:
        """Return the blocks that this run has not marked so far."""
        return set(blocks) - self._marked

    def mark(self, blocks: Iterable[int], *, added: bool) -> None:
        """Note that blocks were used in this run's turn, or that rows were added to them."""
        if self._turn < 0 or (added and not self._is_own):
            newest = newest_turn(self._db, self._path)
            self._is_own = added or any(self._turn_of(block) != newest for block in blocks)
            self._turn = newest + self._is_own
        behind = [(b, self._turn) for b in blocks if self._turn_of(b) != self._turn]
        self._db.executemany("INSERT OR REPLACE INTO use VALUES (?, ?)", behind)
        self._marked.update(blocks)

    def _turn_of(self, block: int) -> int | None:
        row = self._db.execute("SELECT turn FROM use WHERE block = ?", [block]).fetchone()
        return row[0] if row else None


def newest_turn(db: sqlite3.Connection, path: Path) -> int:
    """Return the last turn any file of the folder has seen; unreadable files have seen none."""
    turns = [_last_turn(db)]
    for sibling in path.parent.glob("*.sqlite"):
        if sibling.name != path.name:
            try:
                with closing(sqlite3.connect(sibling, isolation_level=None)) as other:
                    turns.append(_last_turn(other))
            except sqlite3.Error:
                continue  # its own run will say what is wrong with it
    return max(turns)


def _last_turn(db: sqlite3.Connection) -> int:
    turn = db.execute("SELECT max(turn) FROM use").fetchone()[0]
    return turn if isinstance(turn, int) and 0 <= turn < LARGEST_TURN else 0
