"""Vectors on disk: one SQLite file per encoder, rows keyed by the exact text.

Nothing is read back unless the file belongs to the encoder's fingerprint and the row's checksum
holds. Many processes may share a file (on a local disk: SQLite's locks do not hold on network file
systems); a process that is killed loses at most the rows of its last, unfinished `add`. Beside the
vectors are facts, one small JSON file each, that are found out again where they cannot be read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reffree.encoders.base import EncodedTexts, Encoder, EncoderSpec
from reffree.util.atomic import replacing
from reffree.util.errors import CacheError, OptionError, UnknownNameError, counted

T = TypeVar("T", int, float)

LOGGER = logging.getLogger(__name__)

SCHEMA_VERSION = 3
"""Names the folder, so that versions of reffree never read each other's files."""

APPLICATION_ID = 0x52464652
KEYS_PER_QUERY = 500
ROWS_PER_COMMIT = 512
BUSY_SECONDS = 60
LOGS = ("", "-wal", "-shm", "-journal")
EMBEDDINGS, FACTS = "embeddings", "facts"
GRAPHS = f"graphs/*-{'[0-9a-f]' * 24}"
"""Folders of earlier versions: transformers exported for other runtimes."""

COLUMNS = "k, e, tokens, checksum"
LAYOUT = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE v (id INTEGER PRIMARY KEY, k BLOB NOT NULL UNIQUE, e BLOB NOT NULL, "
    "tokens INTEGER NOT NULL, checksum BLOB NOT NULL)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
FILE_INTACT = {
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM),
    sqlite3.SQLITE_PROTOCOL,
}
"""SQLite's primary result codes that say nothing against the file itself."""

NO_ROOM = (
    "expected a local disk with room and a folder that can be written; free space or rights, "
    "choose another folder with --cache DIR, or pass --cache off"
)


class Row(NamedTuple):
    """What is stored for a text; the text itself is not."""

    key: bytes
    blob: bytes  # little-endian float32
    tokens: int
    checksum: bytes

    def is_intact(self, fingerprint: str) -> bool:
        """Whether this is a whole row of this encoder as it was written."""
        is_whole = all(map(isinstance, self[:3], (bytes, bytes, int)))
        return is_whole and row_checksum(fingerprint, *self[:3]) == self.checksum


def text_key(text: str) -> bytes:
    """Hash the exact text: two texts that differ in one byte have two rows."""
    return hashlib.blake2b(text.encode(), digest_size=32).digest()


def row_checksum(fingerprint: str, key: bytes, blob: bytes, tokens: int) -> bytes:
    """Hash all of a row, keyed by the encoder: another encoder's row never passes."""
    digest = hashlib.blake2b(key, digest_size=8, key=fingerprint.encode())
    digest.update(str(tokens).encode())  # damaged files may hold numbers of any size
    digest.update(blob)
    return digest.digest()


def make_rows(
    fingerprint: str, texts: Sequence[str], vectors: NDArray[np.float32], tokens: Sequence[int]
) -> list[Row]:
    """Make rows of an encoder's output, which has no NaN and no infinity."""
    rows = []
    for text, vector, count in zip(texts, vectors, tokens, strict=True):
        key, blob = text_key(text), np.ascontiguousarray(vector, dtype="<f4").tobytes()
        rows.append(Row(key, blob, int(count), row_checksum(fingerprint, key, blob, int(count))))
    return rows


def unusable_file(path: Path, found: str) -> CacheError:
    """Refuse a file that cannot be vouched for, and say how to be rid of it."""
    return CacheError(
        f"{path}: found {found}; expected an intact embedding cache; rebuild it with "
        f"reffree cache rm {path.stem} (its texts are encoded again), or pass --cache off"
    )


@contextmanager
def cache_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into a `CacheError`."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake of the caller's, such as a closed cache
    except sqlite3.DatabaseError as error:
        # An error without a code comes from Python's reading of the file's content.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        if code & 0xFF not in FILE_INTACT:
            raise unusable_file(path, f"a damaged or foreign file ({error})") from error
        raise CacheError(f"{path}: {error}; {NO_ROOM}") from error
    except OSError as error:
        raise CacheError(f"{path}: {error.strerror or error}; {NO_ROOM}") from error


class EmbeddingCache(AbstractContextManager["EmbeddingCache"]):
    """One encoder's vectors in a file."""

    def __init__(self, path: Path, spec: EncoderSpec | None = None) -> None:
        """Open or create the file for ``spec``; without one, open an existing file as it is.

        Where nothing can be written, what is there is read all the same.
        """
        self.path = path
        self.damaged: set[int] = set()  # ids of rows met that failed their checksum
        self._lock = threading.RLock()
        with cache_errors(path):
            if spec is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            elif not path.is_file():
                raise CacheError(f"{path}: found no such cache file; see reffree cache ls")
            how: dict[str, Any] = {"mode": os.W_OK}
            how["effective_ids"] = os.access in os.supports_effective_ids
            # SQLite writes logs beside the file, too.
            is_writable = os.access(path, **how) and os.access(path.parent, **how)
            self.is_read_only = path.is_file() and not is_writable
            # Without a log a file is whole, and SQLite makes none to read it. Whoever can write
            # there may do so meanwhile: a row that changes under us fails its checksum.
            logs = [Path(f"{path}{log}") for log in LOGS[1:]]
            has_log = any(log.is_file() and log.stat().st_size for log in logs)
            reading = f"{path.absolute().as_uri()}?mode=ro{'' if has_log else '&immutable=1'}"
            self._db = sqlite3.connect(
                reading if self.is_read_only else path,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,  # the lock keeps threads apart
                uri=self.is_read_only,
            )
            try:
                self._open(spec)
            except BaseException:
                self._db.close()
                raise

    def _open(self, spec: EncoderSpec | None) -> None:
        """Refuse a file that is not reffree's, or not of this encoder; lay out an empty one."""
        # A flipped bit can make text of a blob: a damaged row, not an unreadable file.
        self._db.text_factory = lambda raw: raw.decode(errors="replace")
        self._db.execute("PRAGMA synchronous = NORMAL")
        if spec is not None and not self._value("SELECT count(*) FROM sqlite_schema"):
            self._create(spec)
        if self._value("PRAGMA application_id") != APPLICATION_ID:
            raise unusable_file(self.path, "a file that reffree did not make")
        if self._value("PRAGMA user_version") != SCHEMA_VERSION:
            raise unusable_file(self.path, "a cache of another version of reffree")
        self._db.execute("SELECT * FROM v LIMIT 0")
        try:
            rows = self._db.execute("SELECT name, value FROM meta").fetchall()
            self.meta: dict[str, Any] = {name: json.loads(value) for name, value in rows}
            self.fingerprint = str(self.meta["fingerprint"])
            name = self.meta["spec"].get("name")
            if len(self.fingerprint) != 32:
                raise ValueError("no encoder's fingerprint")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise unusable_file(self.path, f"a damaged file ({error})") from error
        if spec is not None and self.fingerprint != spec.fingerprint:
            raise unusable_file(self.path, f"vectors of another encoder, {name!r}")

    def _create(self, spec: EncoderSpec) -> None:
        """Lay out an empty file, unless another process has just done so."""
        self._db.execute("PRAGMA page_size = 16384")
        deadline = time.monotonic() + BUSY_SECONDS
        while True:  # SQLite itself does not wait for other processes here
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        with self._lock, self._db:  # all or nothing, also when interrupted
            self._db.execute("BEGIN IMMEDIATE")
            if self._value("SELECT count(*) FROM sqlite_schema"):
                return
            for statement in LAYOUT:
                self._db.execute(statement)
            meta = {"fingerprint": spec.fingerprint, "spec": asdict(spec)}
            rows = [(name, json.dumps(value)) for name, value in meta.items()]
            self._db.executemany("INSERT INTO meta VALUES (?, ?)", rows)

    def _value(self, query: str) -> Any:  # noqa: ANN401  (whatever a file holds)
        """Return the first value that a query finds; None where there is none."""
        found = self._db.execute(query).fetchone()
        return None if found is None else found[0]

    @property
    def dimension(self) -> int | None:
        """Numbers per vector; None while there is none."""
        with cache_errors(self.path):
            found = self._value("SELECT value FROM meta WHERE name = 'dimension'")
        if found is not None and not (isinstance(found, str) and found.isdecimal()):
            raise unusable_file(self.path, f"a damaged file (a dimension of {found!r})")
        return None if found is None else int(found)

    @property
    def n_rows(self) -> int:
        """How many vectors there are."""
        with cache_errors(self.path):
            return int(self._value("SELECT count(*) FROM v"))

    def get(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Yield the vectors of those texts that are here; damaged rows are told of, once."""
        known = set(self.damaged)
        for start in range(0, len(texts), KEYS_PER_QUERY):
            part = texts[start : start + KEYS_PER_QUERY]
            keys = {text_key(text): start + i for i, text in enumerate(part)}
            query = f"SELECT id, {COLUMNS} FROM v WHERE k IN ({','.join('?' * len(keys))})"
            found = []
            with self._lock, cache_errors(self.path):
                for row_id, *columns in self._db.execute(query, list(keys)):
                    row = Row(*columns)
                    if row.is_intact(self.fingerprint):
                        found.append(row)
                    else:
                        self.damaged.add(row_id)
            if found:
                yield EncodedTexts(
                    [keys[row.key] for row in found],
                    np.stack([np.frombuffer(row.blob, "<f4") for row in found]).astype(np.float32),
                    [row.tokens for row in found],
                )
        if new := self.damaged - known:
            LOGGER.warning(
                "reffree: note: %s: found %s failing the checksum; encoded again; should this "
                "repeat, check the disk and rebuild with reffree cache rm %s",
                *(self.path, counted(len(new), "row"), self.path.stem),
            )

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows in one transaction, in place of damaged ones if there were any."""
        if not rows:
            return
        with cache_errors(self.path), self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            found = len(rows[0].blob) // 4
            self._db.execute("INSERT OR IGNORE INTO meta VALUES ('dimension', ?)", [str(found)])
            if found != self.dimension:
                what = f"vectors of {self.dimension} numbers where the encoder gives {found}"
                raise unusable_file(self.path, what)
            verb = "REPLACE" if self.damaged else "IGNORE"
            self._db.executemany(f"INSERT OR {verb} INTO v ({COLUMNS}) VALUES (?, ?, ?, ?)", rows)

    def verify(self) -> Iterator[int]:
        """Check the file's structure and every row's checksum; yields rows checked so far."""
        damaged = count = 0
        with cache_errors(self.path):
            state = self._value("PRAGMA quick_check")
            if state != "ok":
                raise unusable_file(self.path, f"a damaged file ({state.splitlines()[0]})")
            rows = self._db.execute(f"SELECT {COLUMNS} FROM v")
            for count, columns in enumerate(rows, start=1):
                damaged += not Row(*columns).is_intact(self.fingerprint)
                yield count
        if damaged:
            raise CacheError(
                f"{self.path}: found {damaged} of {count} rows that fail their checksum; expected "
                "none; the next run that needs them encodes them again, and reffree cache rm "
                f"{self.path.stem} is rid of all"
            )

    def close(self) -> None:
        """Let go of the file, as at the end of a context."""
        self._db.close()

    def __exit__(self, *error: object) -> None:
        self.close()


class CachedEncoder:
    """An encoder that asks the cache first and files what had to be computed."""

    def __init__(
        self,
        open_inner: Callable[[], Encoder],
        cache: EmbeddingCache,
        spec: EncoderSpec,
        rows_per_commit: int = ROWS_PER_COMMIT,
    ) -> None:
        """Take what opens the encoder once a text is missing, and the cache opened for its spec."""
        self._open_inner = open_inner
        self._spec = spec
        self.cache = cache
        self.rows_per_commit = rows_per_commit
        self.n_encoded = 0

    @cached_property
    def inner(self) -> Encoder:
        """The encoder itself; opened when it is first asked for."""
        return self._open_inner()

    @property
    def spec(self) -> EncoderSpec:
        """What fixes the vectors, with what an open encoder has measured."""
        return self.inner.spec if "inner" in self.__dict__ else self._spec

    def stream(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Cached vectors first, then the missing ones, saved as they come."""
        missing = set(range(len(texts)))
        for encoded in self.cache.get(texts):
            missing.difference_update(encoded.positions)
            yield encoded
        if not (positions := sorted(missing)):
            return
        absent, pending = [texts[i] for i in positions], list[EncodedTexts]()
        try:
            for encoded in self.inner.stream(absent):
                pending.append(encoded)
                if sum(len(each.positions) for each in pending) >= self.rows_per_commit:
                    full, pending = pending, []
                    self._save(absent, full)
                at = [positions[i] for i in encoded.positions]
                yield EncodedTexts(at, encoded.vectors, encoded.tokens)
        finally:
            self._save(absent, pending)  # also on Ctrl-C: what has been computed is not lost

    def missing(self, texts: Sequence[str]) -> list[int]:
        """Return the positions of the texts whose vectors are not here, or are damaged."""
        present = {i for encoded in self.cache.get(texts) for i in encoded.positions}
        return [i for i in range(len(texts)) if i not in present]

    def _save(self, texts: Sequence[str], encoded: Sequence[EncodedTexts]) -> None:
        positions = [i for each in encoded for i in each.positions]
        if positions and not self.cache.is_read_only:
            vectors = np.concatenate([each.vectors for each in encoded])
            tokens = [count for each in encoded for count in each.tokens]
            chosen = [texts[i] for i in positions]
            self.cache.add(make_rows(self.cache.fingerprint, chosen, vectors, tokens))
        elif positions and not self.n_encoded:
            LOGGER.warning(
                "reffree: note: %s is read-only: what is encoded now is not kept", self.cache.path
            )
        self.n_encoded += len(positions)


def cache_path(folder: Path, spec: EncoderSpec) -> Path:
    """Return the file that holds an encoder's vectors: readable name, then fingerprint."""
    slug = re.sub(r"[^a-z0-9]+", "-", spec.name.rsplit("/", 1)[-1].lower()).strip("-")
    name = f"{slug[:60] or 'model'}-{spec.fingerprint[:16]}.sqlite"
    return folder / EMBEDDINGS / f"v{SCHEMA_VERSION}" / name


def cache_files(folder: Path, *, old: bool = False) -> list[Path]:
    """List the cache files below a cache folder; ``old``: of other versions of reffree."""
    with cache_errors(folder):
        files = sorted(folder.glob(f"{EMBEDDINGS}/v*/*.sqlite"))
        graphs = sorted(folder.glob(GRAPHS)) if old else []
    current = f"v{SCHEMA_VERSION}"
    return [file for file in files if (file.parent.name != current) == old] + graphs


def fact_files(folder: Path) -> list[Path]:
    """List the facts that reffree wrote below a cache folder."""
    with cache_errors(folder):
        found = sorted(folder.glob(f"{FACTS}/*.json"))
    return [path for path in found if re.match(r"[a-z]+-", path.name)]


def choose_files(names: Iterable[str], paths: Sequence[Path]) -> list[Path]:
    """Find files by the names ``reffree cache ls`` shows; a unique beginning will do."""
    by_name, chosen = {path.stem: path for path in paths}, []
    for name in names:
        matching = [stem for stem in by_name if stem.startswith(name)]
        matching = [name] if name in by_name else matching
        if not matching:
            raise UnknownNameError("cache file", name, by_name)
        if len(matching) > 1:
            expected = f"one of {', '.join(matching)}"
            found = f"{name!r}, with which several cache files begin"
            raise OptionError(found, expected=expected, remedy="write more of its name")
        chosen.append(by_name[matching[0]])
    return chosen


def remove(paths: Iterable[Path]) -> None:
    """Delete cache files with their logs, facts and graphs.

    Where one is a link, the link goes and what it leads to stays; a folder of the cache that leads
    elsewhere is refused.
    """
    paths = list(paths)
    for folder in {above for path in paths for above in (path.parent, path.parent.parent)}:
        if folder.is_symlink():
            raise CacheError(
                f"{folder}: found a link to another folder; expected a folder of the cache itself; "
                "remove the link, or name the cache that it leads to with --cache"
            )
    for path in paths:
        with cache_errors(path):
            for part in (Path(f"{path}{log}") for log in LOGS):
                if part.is_dir() and not part.is_symlink():
                    shutil.rmtree(part)
                else:
                    part.unlink(missing_ok=True)


def size_of(path: Path) -> int:
    """Add up the bytes of a file with its logs, or of all files below a folder."""
    files = path.rglob("*") if path.is_dir() else (Path(f"{path}{log}") for log in LOGS)
    return sum(file.stat().st_size for file in files if file.is_file())


def fact_path(folder: Path | None, kind: str, *key: str) -> Path | None:
    """Name the file of a fact that is found out of the things in ``key``; None without a cache."""
    digest = hashlib.blake2b("\n".join(key).encode(), digest_size=12).hexdigest()
    return None if folder is None else folder / FACTS / f"{kind}-{digest}.json"


def recall(path: Path | None, name: str, kind: type[T], most: float) -> T | None:
    """Read a number from a file of facts; None where there is none that can be."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))[name] if path else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return found if type(found) is kind and 0 <= found <= most else None


def remember(path: Path | None, facts: dict[str, Any]) -> None:
    """Write facts, whole or not at all; a folder that takes none only costs the next run time."""
    with suppress(OSError):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                temporary.write_text(json.dumps(facts) + "\n", encoding="utf-8")
