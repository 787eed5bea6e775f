"""Functions compiled by numba when they are first called, and kept on disk for the next start.

Numba takes a quarter of a second to import, so nothing is imported before a compiled function runs.
Machine code is loaded from a folder that only this user may write to; its name says which versions
and which source it was compiled from.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from importlib.metadata import version
from pathlib import Path
from typing import Any

_lock = threading.RLock()
_here = threading.local()
_kept: list[Compiled] = []


class Compiled:
    """A function and how numba is to compile it; calling it compiles it."""

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], *, cache: bool
    ) -> None:
        """Remember both; nothing is imported yet."""
        update_wrapper(self, function)
        self.python = function
        self._options, self._is_kept = options, cache
        if cache:
            _kept.append(self)
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:  # noqa: ANN401
        """Run the machine code, or the function itself within `interpreted`."""
        if getattr(_here, "interprets", False):
            return self.python(*args)
        try:
            return self.dispatcher(*args)
        except (OSError, EOFError, pickle.UnpicklingError) as error:  # of the folder of code
            _tell_once(str(error))
            for function in _kept:  # those it calls, too
                function._is_kept, function._dispatcher = False, None
            return self.dispatcher(*args)

    @property
    def dispatcher(self) -> Any:  # noqa: ANN401
        """What numba made of the function."""
        if self._dispatcher is not None:
            return self._dispatcher
        with _lock:
            if self._dispatcher is None:
                numba, folder = _numba(), code_folder() if self._is_kept else None
                before = numba.config.CACHE_DIR
                numba.config.CACHE_DIR = before if folder is None else str(folder)
                try:
                    compile = numba.njit(cache=folder is not None, **self._options)
                    self._dispatcher = compile(self.python)
                finally:
                    numba.config.CACHE_DIR = before
        return self._dispatcher


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Compiled]:  # noqa: ANN401
    """Compile as ``numba.njit(**options)`` does, when the function is first called.

    With ``cache`` the machine code is kept.
    """
    return lambda function: Compiled(function, options, cache=cache)


@contextmanager
def interpreted(*, when: bool = True) -> Iterator[None]:
    """Run compiled functions in this thread as the Python they are written in.

    For little work, before which numba would take longer to import; results are the same.
    """
    _here.interprets = when
    try:
        yield
    finally:
        _here.interprets = False


def is_running() -> bool:
    """Whether numba has been imported."""
    return "numba" in sys.modules


@cache
def _numba() -> Any:  # noqa: ANN401
    """Import numba, and let compiled functions name each other."""
    import numba
    from numba.core import types
    from numba.extending import typeof_impl

    @typeof_impl.register(Compiled)
    def typeof(value: Compiled, context: object) -> object:
        return types.Dispatcher(value.dispatcher)

    return numba


@cache
def code_folder() -> Path | None:
    """Return the folder of machine code; None, and a note, where others could write to it.

    It does not follow ``REFFREE_CACHE_DIR``, which others may write to.
    """
    import platformdirs

    # Numba looks at the caller's file alone, not at those whose functions it calls.
    sources = sorted((Path(__file__).parents[1] / "metrics" / "free").rglob("*.py"))
    times = [(str(file), file.stat().st_mtime_ns) for file in sources]
    digest = hashlib.sha256(repr(times).encode()).hexdigest()[:12]
    versions = [version(name) for name in ("reffree", "numba", "llvmlite")]
    versions += [platform.python_version(), platform.machine(), digest]
    folder = platformdirs.user_cache_path("reffree") / f"compiled-{'-'.join(versions)}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise OSError(f"{folder} is not a folder")
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            raise OSError(f"{folder} belongs to another user")
        if hasattr(os, "geteuid") and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(f"others may write to {folder}")
        if not os.access(folder, os.W_OK):
            raise OSError(f"{folder} is not writable")
    except OSError as error:
        _tell_once(str(error))
        return None
    return folder


@cache
def _tell_once(reason: str) -> None:
    sys.stderr.write(
        f"reffree: note: compiled code is not kept ({reason}), so every start compiles it again\n"
    )
