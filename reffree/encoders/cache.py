"""The embedding cache: one SQLite file per encoder, rows keyed by the exact text.

A row is a vector, the text's token count and a checksum. Nothing is read back unless its file
belongs to the encoder's fingerprint and its checksum holds. Many processes may share a file (on a
local disk: SQLite's locks do not hold on network file systems).
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import platformdirs
from numpy.typing import NDArray

from reffree.encoders.base import Encoded, Encoder, EncoderSpec
from reffree.errors import CacheError

APPLICATION_ID = 0x52464652
SCHEMA_VERSION = 1
KEYS_PER_QUERY = 500
ROWS_PER_COMMIT = 512
BUSY_SECONDS = 60


def default_folder() -> Path:
    """Return the user's cache folder for embeddings."""
    return Path(platformdirs.user_cache_dir("reffree"))


def cache_files(folder: Path) -> list[Path]:
    """List the cache files below a cache folder."""
    return sorted((folder / "embeddings" / f"v{SCHEMA_VERSION}").glob("*.sqlite"))


def cache_path(folder: Path, spec: EncoderSpec) -> Path:
    """Return the file that holds an encoder's vectors: readable name, then fingerprint."""
    slug = re.sub(r"[^a-z0-9]+", "-", spec.name.rsplit("/", 1)[-1].lower()).strip("-")
    name = f"{slug or 'model'}-{spec.fingerprint[:16]}.sqlite"
    return folder / "embeddings" / f"v{SCHEMA_VERSION}" / name


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What ``reffree cache ls`` shows of one file."""

    path: Path
    encoder: str
    revision: str
    rows: int
    dimension: int | None
    size: int


class EmbeddingCache:
    """One encoder's vectors on disk."""

    def __init__(self, path: Path, spec: EncoderSpec | None = None) -> None:
        """Open or create the file for ``spec``; without one, open an existing file as it is."""
        self.path = path
        with self._sentences():
            if spec is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            elif not path.is_file():
                raise CacheError(f"{path}: found no such cache file; see reffree cache ls")
            self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
            self._open(spec)

    def _open(self, spec: EncoderSpec | None) -> None:
        self._db.execute("PRAGMA synchronous = NORMAL")
        if spec is not None and not self._count("sqlite_schema"):
            self._create(spec)
        if self._db.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
            raise self._rebuild("a file that reffree did not make")
        if self._db.execute("PRAGMA user_version").fetchone() != (SCHEMA_VERSION,):
            raise self._rebuild("a cache of another version of reffree")
        try:
            rows = self._db.execute("SELECT name, value FROM meta").fetchall()
            self.meta = {name: json.loads(value) for name, value in rows}
            self._count("v")
        except (sqlite3.OperationalError, ValueError, TypeError) as error:
            raise self._rebuild(f"a damaged file ({error})") from error
        if spec is not None and self.meta.get("fingerprint") != spec.fingerprint:
            raise self._rebuild(f"vectors of another encoder, {self.meta.get('name')!r}")

    def _create(self, spec: EncoderSpec) -> None:
        """Lay out an empty file, unless another process has just done so."""
        db = self._db
        db.execute("PRAGMA page_size = 16384")
        self._switch_to_log()
        with self._transaction():
            if self._count("sqlite_schema"):
                return
            db.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            db.execute(
                "CREATE TABLE v (k BLOB PRIMARY KEY, e BLOB NOT NULL, "
                "tokens INTEGER NOT NULL, checksum INTEGER NOT NULL)"
            )
            meta = {"fingerprint": spec.fingerprint, **asdict(spec)}
            rows = [(name, json.dumps(value)) for name, value in meta.items()]
            db.executemany("INSERT INTO meta VALUES (?, ?)", rows)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

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

    def _count(self, table: str) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, also when interrupted."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def get(self, texts: Sequence[str]) -> Iterator[Encoded]:
        """Yield the vectors of those texts that are here."""
        with self._sentences():
            for start in range(0, len(texts), KEYS_PER_QUERY):
                keys = {
                    _key(t): start + i for i, t in enumerate(texts[start : start + KEYS_PER_QUERY])
                }
                marks = ",".join("?" * len(keys))
                found = self._db.execute(
                    f"SELECT k, e, tokens, checksum FROM v WHERE k IN ({marks})", list(keys)
                ).fetchall()
                if found:
                    yield Encoded(
                        [keys[row[0]] for row in found],
                        np.stack([self._vector(*row) for row in found]),
                        [row[2] for row in found],
                    )

    def put(
        self, texts: Sequence[str], vectors: NDArray[np.float32], tokens: Sequence[int]
    ) -> None:
        """Add vectors in one transaction; a text that is already here keeps the vector it has."""
        rows = []
        for text, vector, count in zip(texts, vectors, tokens, strict=True):
            key, blob = _key(text), np.ascontiguousarray(vector, dtype="<f4").tobytes()
            rows.append((key, blob, count, _checksum(key, blob, count)))
        with self._sentences(), self._transaction():
            self._db.execute(
                "INSERT OR IGNORE INTO meta VALUES ('dimension', ?)", [str(vectors.shape[1])]
            )
            self._db.executemany("INSERT OR IGNORE INTO v VALUES (?, ?, ?, ?)", rows)

    def info(self) -> CacheInfo:
        """Count what is here."""
        with self._sentences():
            rows = self._count("v")
            return CacheInfo(
                path=self.path,
                encoder=str(self.meta.get("name")),
                revision=str(self.meta.get("revision")),
                rows=rows,
                dimension=self.meta.get("dimension"),
                size=self.path.stat().st_size,
            )

    def verify(self) -> Iterator[int]:
        """Check the file's structure and every row's checksum; yields rows checked so far."""
        with self._sentences():
            state = self._db.execute("PRAGMA quick_check").fetchone()[0]
            if state != "ok":
                raise self._rebuild(f"a damaged file ({state.splitlines()[0]})")
            rows = self._db.execute("SELECT k, e, tokens, checksum FROM v")
            for count, row in enumerate(rows, start=1):
                self._vector(*row)
                yield count

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _vector(self, key: bytes, blob: bytes, tokens: int, checksum: int) -> NDArray[np.float32]:
        is_row = isinstance(key, bytes) and isinstance(blob, bytes) and isinstance(tokens, int)
        if not is_row or _checksum(key, blob, tokens) != checksum:
            raise self._rebuild("a row that fails its checksum")
        return np.frombuffer(blob, dtype="<f4").astype(np.float32)

    def _rebuild(self, found: str) -> CacheError:
        return CacheError(
            f"{self.path}: found {found}; expected an intact embedding cache; rebuild it with "
            f"reffree cache rm {self.path.stem} (its texts are encoded again), or pass --no-cache"
        )

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn what SQLite and the file system say into sentences."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise CacheError(
                f"{self.path}: {error}; expected a cache file on a local disk that can be written; "
                "free space or rights, choose another --cache-dir, or pass --no-cache"
            ) from error
        except sqlite3.DatabaseError as error:
            raise self._rebuild(f"a damaged or foreign file ({error})") from error
        except OSError as error:
            raise CacheError(
                f"{self.path}: {error.strerror or error}; expected a folder that can be written; "
                "choose another --cache-dir, or pass --no-cache"
            ) from error


class CachedEncoder:
    """An encoder that asks the cache first and files what it had to compute."""

    def __init__(self, inner: Encoder, cache: EmbeddingCache) -> None:
        """Wrap ``inner``; the cache must have been opened for its spec."""
        self.inner = inner
        self.cache = cache

    @property
    def spec(self) -> EncoderSpec:
        """Return the inner encoder's spec."""
        return self.inner.spec

    def stream(self, texts: Sequence[str]) -> Iterator[Encoded]:
        """Cached vectors first, then the missing ones, saved as they come."""
        missing = set(range(len(texts)))
        for encoded in self.cache.get(texts):
            missing -= set(encoded.positions)
            yield encoded
        if missing:
            yield from self._compute([texts[i] for i in sorted(missing)], sorted(missing))

    def _compute(self, texts: list[str], positions: list[int]) -> Iterator[Encoded]:
        pending: list[Encoded] = []
        try:
            for encoded in self.inner.stream(texts):
                pending.append(encoded)
                if sum(len(e.positions) for e in pending) >= ROWS_PER_COMMIT:
                    self._save(texts, pending)
                at = [positions[i] for i in encoded.positions]
                yield Encoded(at, encoded.vectors, encoded.tokens)
        finally:
            # Also on Ctrl-C: what has been computed is not lost.
            self._save(texts, pending)

    def _save(self, texts: list[str], pending: list[Encoded]) -> None:
        if pending:
            positions = [i for encoded in pending for i in encoded.positions]
            self.cache.put(
                [texts[i] for i in positions],
                np.concatenate([encoded.vectors for encoded in pending]),
                [count for encoded in pending for count in encoded.tokens],
            )
            pending.clear()


def remove(paths: Iterable[Path]) -> int:
    """Delete cache files with their logs; returns the bytes freed."""
    freed = 0
    for path in paths:
        for part in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            if part.is_file():
                freed += part.stat().st_size
                part.unlink()
    return freed


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=32).digest()


def _checksum(key: bytes, blob: bytes, tokens: int) -> int:
    return zlib.crc32(blob, zlib.crc32(key)) ^ tokens
