"""Writing that either happens or does not: under another name first, then moved into place.

Also where reffree keeps what it can make again.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import platformdirs

from reffree.util.errors import InputError, Place, mistake, shorten


def cache_folder() -> Path:
    """Return ``REFFREE_CACHE_DIR``, or the user's cache folder for reffree."""
    return Path(os.environ.get("REFFREE_CACHE_DIR") or platformdirs.user_cache_dir("reffree"))


def user_path(name: str) -> Path:
    """Read a path as a shell does: ``~`` is the user's home, where there is such a user."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def write_file(path: Path, text: Iterable[str | bytes]) -> None:
    """Write bytes, or text as UTF-8; ``-`` is stdout, a device or pipe is written to as it is."""
    if str(path) == "-":
        write_stdout(text)
        return
    with _sentences(path):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError
        if target.exists() and not target.is_file():
            with target.open("wb") as handle:
                _write(handle, text, path)
            return
        with replacing(target) as temporary, temporary.open("xb") as handle:
            _write(handle, text, path)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a free path beside ``target`` for a file or folder, which then takes its place.

    If the block fails, ``target`` stays as it was and what was written is removed.
    """
    temporary = target.with_name(f".reffree-{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def write_stdout(text: Iterable[str | bytes]) -> None:
    """Write bytes, or text as UTF-8, to standard output; BrokenPipeError if its reader is gone."""
    check_stdout()
    try:
        sys.stdout.flush()
        _write(sys.stdout.buffer, text, Path("-"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # the reader has seen enough
    except OSError as error:
        raise lost_output(error) from None


def check_stdout() -> None:
    """Refuse a standard output that is closed, before the work and not after it."""
    if sys.stdout is None:
        raise _no_output("no standard output, since it is closed")


def lost_output(error: OSError) -> InputError:
    """Say that standard output takes no more; what is left in its buffer goes nowhere.

    Otherwise Python would fail once more when it exits.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _no_output(f"an output that cannot be written ({error.strerror})")


def _no_output(found: str) -> InputError:
    remedy = "free some space, or write elsewhere with -o FILE"
    return mistake(Place(file="standard output"), found, "room for the result", remedy)


def check_writable(path: Path) -> None:
    """Refuse a file whose folder is not there, or that is itself a folder; writes nothing."""
    with _sentences(path):
        if path.is_dir():
            raise IsADirectoryError
        path.parent.stat()
        if not path.parent.is_dir():
            raise NotADirectoryError


def make_folder(path: Path) -> None:
    """Make a folder and those above it, where they are not there."""
    with _sentences(path):
        path.mkdir(parents=True, exist_ok=True)


def check_new_folder(path: Path) -> None:
    """Refuse a folder that holds anything, a file, and a place where no folder can be made."""
    with _sentences(path):
        path.absolute().parent.stat()
        if path.is_dir() and not any(path.iterdir()):
            return
        if path.exists():
            found = "a folder that is not empty" if path.is_dir() else "a file"
            remedy = "choose another, or remove it first"
            raise mistake(Place(file=str(path)), found, "a new or an empty folder", remedy)


def write_folder(path: Path, files: Iterable[tuple[str, Iterable[str]]]) -> None:
    """Write a new folder of files by relative path; one that is there must be empty."""
    check_new_folder(path)
    with _sentences(path):
        target = Path(os.path.realpath(path))
        with replacing(target) as temporary:
            temporary.mkdir()
            for name, text in files:
                (temporary / name).parent.mkdir(parents=True, exist_ok=True)
                with (temporary / name).open("xb") as handle:
                    _write(handle, text, path / name)
            if target.is_dir():
                target.rmdir()


def _write(handle: BinaryIO, text: Iterable[str | bytes], path: Path) -> None:
    for chunk in text:
        handle.write(encoded(chunk, path))


def encoded(text: str | bytes, path: Path) -> bytes:
    """Return text as UTF-8, for a file of that path; bytes stay."""
    try:
        return text if isinstance(text, bytes) else text.encode("utf-8")
    except UnicodeEncodeError as error:
        found = f"the character {error.object[error.start]!a}, which UTF-8 cannot hold"
        expected, remedy = "text without lone surrogates", "replace the character"
        raise mistake(Place(file=str(path)), found, expected, remedy) from None


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """Turn what the system says about a path into a sentence."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, (NotADirectoryError, FileExistsError)):
            found, expected, remedy = "a file in its way", "folders", "choose another path"
        elif isinstance(error, FileNotFoundError) and not path.parent.is_dir():
            found = f"no folder {shorten(str(path.parent))!r}"
            expected, remedy = "a folder that exists", "create it first"
        elif isinstance(error, IsADirectoryError):
            found, expected, remedy = "a folder", "a file to write", "name a file in it"
        else:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            found = f"a path that cannot be written ({reason})"
            expected, remedy = "a writable path", "check it and its permissions"
        raise mistake(Place(file=str(path)), found, expected, remedy) from None
