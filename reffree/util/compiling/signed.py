"""Files that this user's own reffree has written, and nobody else.

Every file begins with a code made from its name, its content and a key that only the user can read.
What does not match, is cut short, belongs to somebody else, may be written by others or is a link
counts as not there. Reading writes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path

BYTES = 32
"""Length of the key and of the code in front of every file."""

WRITABLE_BY_OTHERS = 0o022
ANY_RIGHT_OF_OTHERS = 0o077
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class SignedFolder:
    """A folder of signed files, and the key to them in another folder."""

    def __init__(self, path: Path, key: Path) -> None:
        """Name the places; nothing is made before something is written."""
        self.path = path
        self._key_path = key

    def read(self, name: str) -> bytes | None:
        """Return the content of a file that is as it was written; None of any other."""
        try:
            key = self._key
            _check_folder(self.path)
            found = _read(self.path / name, WRITABLE_BY_OTHERS)
        except OSError:
            return None
        code, content = found[:BYTES], found[BYTES:]
        return content if hmac.compare_digest(code, _code(key, name, content)) else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole, in place of any other; an OSError where others could change it."""
        _make_folder(self.path)
        code = _code(self._key_or_new(), name, content)
        _write(self.path / name, code + content, os.replace)

    def keep_newest(self, beginning: str, n: int) -> None:
        """Delete all but ``n`` of the files whose names begin so."""
        found = [e for e in os.scandir(self.path) if e.name.startswith(beginning)]
        with suppress(FileNotFoundError):  # another process does the same
            found.sort(key=lambda entry: entry.stat(follow_symlinks=False).st_mtime_ns)
            for entry in found[:-n]:
                os.unlink(entry.path)  # noqa: PTH108  (a link itself, never what it points to)

    @cached_property
    def _key(self) -> bytes:
        _check_folder(self._key_path.parent)
        key = _read(self._key_path, ANY_RIGHT_OF_OTHERS)
        if len(key) != BYTES:
            raise OSError(f"{self._key_path} is damaged")
        return key

    def _key_or_new(self) -> bytes:
        """Return the key; one that cannot be trusted is replaced, and its files are lost."""
        with suppress(OSError):
            return self._key
        _make_folder(self._key_path.parent)
        is_there = os.path.lexists(self._key_path)
        new = secrets.token_bytes(BYTES)
        with suppress(FileExistsError):  # another process was faster
            _write(self._key_path, new, os.replace if is_there else os.link)
        return self._key


def _code(key: bytes, name: str, content: bytes) -> bytes:
    head = f"{name}\0".encode()
    return hmac.digest(key, head + hashlib.sha256(content).digest(), "sha256")


def _make_folder(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    _check_folder(path)


def _check_folder(path: Path) -> None:
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(f"{path} is not a folder")
    _check_rights(path, found, WRITABLE_BY_OTHERS)


def _check_rights(path: Path, found: os.stat_result, forbidden: int) -> None:
    """Refuse what belongs to another user or gives others a right; Windows has no such rights."""
    if not hasattr(os, "geteuid"):
        return
    if found.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user")
    if stat.S_IMODE(found.st_mode) & forbidden:
        raise PermissionError(f"others have rights on {path}")


def _read(path: Path, forbidden: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | NO_LINK | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is not a file")
        _check_rights(path, found, forbidden)
        return file.read()


def _write(path: Path, content: bytes, move: Callable[[Path, Path], None]) -> None:
    """Write under another name, then move or link into place."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        move(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
