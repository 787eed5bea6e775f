"""Writing that either happens or does not: under another name first, then moved into place."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from reffree.errors import InputError, Place, shorten


def write_file(path: Path, text: Iterable[str | bytes]) -> None:
    """Write bytes, or text as UTF-8; ``-`` is stdout, a device or pipe is written to as it is."""
    with _sentences(path):
        if str(path) == "-":
            sys.stdout.flush()
            _write(sys.stdout.buffer, text, path)
            sys.stdout.buffer.flush()
            return
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError
        if target.exists() and not target.is_file():
            with target.open("wb") as handle:
                _write(handle, text, path)
            return
        temporary = _beside(target)
        try:
            with temporary.open("xb") as handle:
                _write(handle, text, path)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


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


def write_folder(path: Path, files: Iterable[tuple[str, Iterable[str]]]) -> None:
    """Write a new folder of files by relative path; one that is there must be empty."""
    with _sentences(path):
        target = Path(os.path.realpath(path))
        if target.is_dir() and any(target.iterdir()):
            raise InputError(
                "a folder that is not empty",
                expected="a new or an empty folder",
                remedy="choose another, or empty it first",
                place=Place(file=str(path)),
            )
        temporary = _beside(target)
        try:
            temporary.mkdir()
            for name, text in files:
                (temporary / name).parent.mkdir(parents=True, exist_ok=True)
                with (temporary / name).open("xb") as handle:
                    _write(handle, text, path / name)
            if target.is_dir():
                target.rmdir()
            temporary.replace(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _beside(target: Path) -> Path:
    return target.with_name(f".reffree-{secrets.token_hex(8)}.tmp")


def _write(handle: BinaryIO, text: Iterable[str | bytes], path: Path) -> None:
    for chunk in text:
        if isinstance(chunk, bytes):
            handle.write(chunk)
            continue
        try:
            handle.write(chunk.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise InputError(
                f"the character {chunk[error.start]!a}, which UTF-8 cannot hold",
                expected="text without lone surrogates",
                remedy="replace the character",
                place=Place(file=str(path)),
            ) from None


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """Turn what the system says about a path into a sentence."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, (NotADirectoryError, FileExistsError)):
            found, expected, remedy = "a file in its way", "folders", "choose another path"
        elif isinstance(error, FileNotFoundError):
            found = f"no folder {shorten(str(path.parent))!r}"
            expected, remedy = "a folder that exists", "create it first"
        elif isinstance(error, IsADirectoryError):
            found, expected, remedy = "a folder", "a file to write", "name a file in it"
        else:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            found = f"a path that cannot be written ({reason})"
            expected, remedy = "a writable path", "check it and its permissions"
        raise InputError(
            found, expected=expected, remedy=remedy, place=Place(file=str(path))
        ) from None
