"""What SQLite and the file system say about a cache file, in sentences a user can act on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reffree.util.errors import CacheError

SURROUNDINGS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened or created",
    sqlite3.SQLITE_PERM: "no right to use the file",
    sqlite3.SQLITE_BUSY: "another process keeps the file locked",
    sqlite3.SQLITE_LOCKED: "another process keeps the file locked",
    sqlite3.SQLITE_NOMEM: "memory has run out",
    sqlite3.SQLITE_PROTOCOL: "the file system does not lock files",
}
"""SQLite's primary result codes that say nothing against the file itself."""


def unusable(path: Path, found: str) -> CacheError:
    """Refuse a file that cannot be vouched for, and say how to be rid of it."""
    return CacheError(
        f"{path}: found {found}; expected an intact embedding cache; rebuild it with "
        f"reffree cache rm {path.stem} (its texts are encoded again), or pass --no-cache"
    )


def refuse_link(folder: Path) -> None:
    """Refuse to delete in a folder that is somewhere else, where other things may be, too."""
    if folder.is_symlink():
        raise CacheError(
            f"{folder}: found a link to another folder; expected a folder of the cache itself; "
            "remove the link, or name the cache that it leads to with --cache-dir"
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
        reason = SURROUNDINGS.get(code & 0xFF)
        if reason is None:
            raise unusable(path, f"a damaged or foreign file ({error})") from error
        raise CacheError(
            f"{path}: {reason} ({error}); expected a cache file on a local disk that can be "
            "written; free space or rights, choose another --cache-dir, or pass --no-cache"
        ) from error
    except OSError as error:
        raise CacheError(
            f"{path}: {error.strerror or error}; expected a folder that can be written; "
            "choose another --cache-dir, or pass --no-cache"
        ) from error
