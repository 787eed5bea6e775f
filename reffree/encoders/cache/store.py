"""One encoder's vectors in one SQLite file, rows keyed by the exact text.

Nothing is read back unless the file belongs to the encoder's fingerprint and the row's checksum
holds. Many processes may share a file (on a local disk: SQLite's locks do not hold on network file
systems); a process that is killed loses at most the rows of its last, unfinished `add`.

Which rows were used last is noted for eviction without a write per read. Rows are counted in blocks
of consecutive insertions, and a block notes the turn it was last used in. A turn is a count, not a
time: a run takes the next one, for the whole folder, when it adds rows or uses a block that others
have been used after. So a run that repeats the last one writes nothing, any other run writes one
number per 256 rows it read, and no clock can go backwards.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np

from reffree.encoders.base import EncodedTexts, EncoderSpec
from reffree.encoders.cache.errors import cache_errors, unusable
from reffree.encoders.cache.files import LOGS, SCHEMA_VERSION
from reffree.encoders.cache.rows import Row, text_key
from reffree.util.errors import CacheError

APPLICATION_ID = 0x52464652
KEYS_PER_QUERY = 500
BUSY_SECONDS = 60
COLUMNS = "k, e, tokens, checksum"
BLOCK_BITS = 8  # of 256 rows
LARGEST_TURN = 1 << 62
LAYOUT = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE v (id INTEGER PRIMARY KEY, k BLOB NOT NULL UNIQUE, e BLOB NOT NULL, "
    "tokens INTEGER NOT NULL, checksum BLOB NOT NULL)",
    "CREATE TABLE use (block INTEGER PRIMARY KEY, turn INTEGER NOT NULL)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


class EmbeddingCache:
    """One encoder's vectors on disk."""

    def __init__(self, path: Path, spec: EncoderSpec | None = None) -> None:
        """Open or create the file for ``spec``; without one, open an existing file as it is.

        Where nothing can be written, what is there is read all the same.
        """
        self.path = path
        self.damaged: set[bytes] = set()  # keys of rows met that fail their checksum
        self._damaged_ids: set[int] = set()
        self._used: set[int] = set()  # blocks that were read
        self._marked: set[int] = set()  # blocks that are noted as used in this run's turn
        self._turn = -1  # none taken yet
        self._is_own_turn = False
        self._lock = threading.RLock()
        with cache_errors(path):
            if spec is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            elif not path.is_file():
                raise CacheError(f"{path}: found no such cache file; see reffree cache ls")
            self.is_read_only = path.is_file() and not _takes_writing(path)
            self._db = sqlite3.connect(
                _read_only_address(path) if self.is_read_only else path,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,  # one at a time: see `_alone`
                uri=self.is_read_only,
            )
            try:
                self._open(spec)
            except BaseException:
                self._db.close()
                raise

    def _open(self, spec: EncoderSpec | None) -> None:
        # A flipped bit can make text of a blob: a damaged row, not an unreadable file.
        self._db.text_factory = lambda raw: raw.decode(errors="replace")
        self._db.execute("PRAGMA synchronous = NORMAL")
        if spec is not None and not self._value("SELECT count(*) FROM sqlite_schema"):
            self._create(spec)
        if self._value("PRAGMA application_id") != APPLICATION_ID:
            raise unusable(self.path, "a file that reffree did not make")
        if self._value("PRAGMA user_version") != SCHEMA_VERSION:
            raise unusable(self.path, "a cache of another version of reffree")
        for table in ("v", "use"):
            self._db.execute(f"SELECT * FROM {table} LIMIT 0")
        self._read_meta()
        if spec is not None and self.fingerprint != spec.fingerprint:
            raise unusable(
                self.path, f"vectors of another encoder, {self.meta['spec'].get('name')!r}"
            )

    def _read_meta(self) -> None:
        try:
            rows = self._db.execute("SELECT name, value FROM meta").fetchall()
            self.meta: dict[str, Any] = {name: json.loads(value) for name, value in rows}
            self.fingerprint = str(self.meta["fingerprint"])
            if not isinstance(self.meta["spec"], dict) or len(self.fingerprint) != 32:
                raise ValueError("no encoder's spec")
        except (ValueError, TypeError, KeyError) as error:
            raise unusable(self.path, f"a damaged file ({error})") from error

    def _create(self, spec: EncoderSpec) -> None:
        """Lay out an empty file, unless another process has just done so."""
        self._db.execute("PRAGMA page_size = 16384")
        self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self._switch_to_log()
        with self._transaction():
            if self._value("SELECT count(*) FROM sqlite_schema"):
                return
            for statement in LAYOUT:
                self._db.execute(statement)
            meta = {"fingerprint": spec.fingerprint, "spec": asdict(spec)}
            rows = [(name, json.dumps(value)) for name, value in meta.items()]
            self._db.executemany("INSERT INTO meta VALUES (?, ?)", rows)

    def _switch_to_log(self) -> None:
        """Turn on the write-ahead log; where it cannot be, the rollback journal is as safe.

        SQLite does not wait for other processes here, so this does.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return

    def _value(self, query: str) -> Any:  # noqa: ANN401  (whatever a file holds)
        """Return the first value that a query finds; None where there is none."""
        found = self._db.execute(query).fetchone()
        return None if found is None else found[0]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads away: one may save while another reads."""
        with self._lock, cache_errors(self.path):
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, also when interrupted."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # a full disk has already undone it
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @property
    def dimension(self) -> int | None:
        """Numbers per vector; None while there is none."""
        found = self._value("SELECT value FROM meta WHERE name = 'dimension'")
        if found is None:
            return None
        if not (isinstance(found, str) and found.isdecimal()):
            raise unusable(self.path, f"a damaged file (a dimension of {found!r})")
        return int(found)

    @property
    def n_rows(self) -> int:
        """How many vectors there are."""
        with self._alone():
            return int(self._value("SELECT count(*) FROM v"))

    @property
    def size(self) -> int:
        """Bytes of the file and its logs."""
        with self._alone():
            parts = [Path(f"{self.path}{log}") for log in LOGS]
            return sum(part.stat().st_size for part in parts if part.is_file())

    def get(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Yield the vectors of those texts that are here; damaged rows are not."""
        for start in range(0, len(texts), KEYS_PER_QUERY):
            part = texts[start : start + KEYS_PER_QUERY]
            keys = {text_key(text): start + i for i, text in enumerate(part)}
            found = self.find(list(keys))
            if found:
                yield EncodedTexts(
                    [keys[row.key] for row in found],
                    np.stack([row.vector for row in found]),
                    [row.tokens for row in found],
                )

    def find(self, keys: Sequence[bytes]) -> list[Row]:
        """Return the intact rows of some keys (at most 500), in no order."""
        with self._alone():
            dimension = self.dimension
            marks = ",".join("?" * len(keys))
            query = f"SELECT id, {COLUMNS} FROM v WHERE k IN ({marks})"
            found = []
            for row_id, *columns in self._db.execute(query, keys).fetchall():
                row = Row(*columns)
                if row.is_intact(self.fingerprint, dimension):
                    found.append(row)
                    self._used.add(_block_of(row_id))
                else:
                    self.damaged.add(row.key)
                    self._damaged_ids.add(row_id)
            return found

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows in one transaction, in place of damaged ones but never of intact ones."""
        if not rows:
            return
        with self._alone(), self._transaction():
            self._check_dimension(len(rows[0].blob) // 4)
            self._drop_damaged()
            before = self._last_id()
            insert = f"INSERT OR IGNORE INTO v ({COLUMNS}) VALUES (?, ?, ?, ?)"
            self._db.executemany(insert, rows)
            last = self._last_id()
            if last > before:
                self._mark(range(_block_of(before + 1), _block_of(last) + 1), added=True)

    def _check_dimension(self, found: int) -> None:
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('dimension', ?)", [str(found)])
        if found != self.dimension:
            raise unusable(
                self.path, f"vectors of {self.dimension} numbers where the encoder gives {found}"
            )

    def _drop_damaged(self) -> None:
        """Delete the damaged rows met so far, unless another process has mended them."""
        for row_id in self._damaged_ids:
            found = self._db.execute(f"SELECT {COLUMNS} FROM v WHERE id = ?", [row_id]).fetchone()
            if found and not Row(*found).is_intact(self.fingerprint, self.dimension):
                self._db.execute("DELETE FROM v WHERE id = ?", [row_id])
        self._damaged_ids.clear()

    def _last_id(self) -> int:
        return int(self._value("SELECT coalesce(max(id), 0) FROM v"))

    def mark_used(self) -> None:
        """Note what was read since the file was opened, for eviction."""
        blocks = self._used - self._marked
        if blocks and not self.is_read_only:
            with self._alone(), self._transaction():
                self._mark(blocks, added=False)

    def _mark(self, blocks: Collection[int], *, added: bool) -> None:
        """Note that blocks were used in this run's turn, or that rows were added to them."""
        turns = dict(self._db.execute("SELECT block, turn FROM use").fetchall())
        if self._turn < 0 or (added and not self._is_own_turn):
            newest = self._newest_turn()
            self._is_own_turn = added or any(turns.get(block) != newest for block in blocks)
            self._turn = newest + self._is_own_turn
        behind = [(block, self._turn) for block in blocks if turns.get(block) != self._turn]
        self._db.executemany("INSERT OR REPLACE INTO use VALUES (?, ?)", behind)
        self._marked.update(blocks)

    def _newest_turn(self) -> int:
        """Return the last turn any file of the folder has seen; unreadable files have seen none."""
        turns = [_last_turn(self._db)]
        for sibling in self.path.parent.glob("*.sqlite"):
            if sibling.name != self.path.name:
                # What is wrong with a file its own run will say.
                with (
                    suppress(sqlite3.Error),
                    closing(sqlite3.connect(sibling, isolation_level=None)) as other,
                ):
                    turns.append(_last_turn(other))
        return max(turns)

    def rows(self) -> Iterator[Row]:
        """Yield every row as it is, ordered by key, with no promise that it is intact."""
        with cache_errors(self.path):
            for columns in self._db.execute(f"SELECT {COLUMNS} FROM v ORDER BY k"):
                yield Row(*columns)

    def verify(self) -> Iterator[int]:
        """Check the file's structure and every row's checksum; yields rows checked so far."""
        with cache_errors(self.path):
            state = self._value("PRAGMA quick_check")
            if state != "ok":
                raise unusable(self.path, f"a damaged file ({state.splitlines()[0]})")
            dimension, damaged = self.dimension, 0
            rows = self._db.execute(f"SELECT {COLUMNS} FROM v")
            for count, columns in enumerate(rows, start=1):
                damaged += not Row(*columns).is_intact(self.fingerprint, dimension)
                yield count
        if damaged:
            raise CacheError(
                f"{self.path}: found {damaged} of {count} rows that fail their checksum; expected "
                "none; the next run that needs them encodes them again, and reffree cache rm "
                f"{self.path.stem} is rid of all"
            )

    def used_bytes(self) -> int:
        """Return the bytes of the pages in use; the log of the last writes comes on top."""
        with self._alone():
            pages, free, size = (
                int(self._value(f"PRAGMA {name}"))
                for name in ("page_count", "freelist_count", "page_size")
            )
            return (pages - free) * size

    def blocks(self) -> list[tuple[int, int]]:
        """Return the blocks that hold rows as (turn of last use, block)."""
        with self._alone():
            found = self._db.execute("SELECT turn, block FROM use").fetchall()
            return [(turn if isinstance(turn, int) else 0, block) for turn, block in found]

    def drop_block(self, block: int) -> int:
        """Delete a block's rows; returns how many there were."""
        with self._alone(), self._transaction():
            ids = (block << BLOCK_BITS) + 1, (block + 1) << BLOCK_BITS
            deleted = self._db.execute("DELETE FROM v WHERE id BETWEEN ? AND ?", ids)
            self._db.execute("DELETE FROM use WHERE block = ?", [block])
            return deleted.rowcount

    def shrink(self) -> None:
        """Give the space of deleted rows back to the disk."""
        with self._alone():
            self._db.executescript("PRAGMA incremental_vacuum")
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def __enter__(self) -> Self:
        """Use as a context that closes the file."""
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _takes_writing(path: Path) -> bool:
    """Whether a file and the logs beside it can be written; SQLite needs both."""
    is_effective = os.access in os.supports_effective_ids
    return all(
        os.access(place, os.W_OK, effective_ids=is_effective) for place in (path, path.parent)
    )


def _read_only_address(path: Path) -> str:
    """Name a file for reading alone.

    A file without a log is whole, and SQLite then makes none to read it. Whoever can write there
    may do so meanwhile: a row that changes under us fails its checksum.
    """
    logs = [Path(f"{path}{log}") for log in LOGS[1:]]
    has_log = any(log.is_file() and log.stat().st_size for log in logs)
    return f"{path.absolute().as_uri()}?mode=ro{'' if has_log else '&immutable=1'}"


def _block_of(row_id: int) -> int:
    """Return the block that a row's id belongs to, from 1 on."""
    return (row_id - 1) >> BLOCK_BITS


def _last_turn(db: sqlite3.Connection) -> int:
    turn = db.execute("SELECT max(turn) FROM use").fetchone()[0]
    return turn if isinstance(turn, int) and 0 <= turn < LARGEST_TURN else 0
