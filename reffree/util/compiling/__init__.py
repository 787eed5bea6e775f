"""Functions compiled by numba, whose machine code is kept for the next start.

Loading machine code runs it, so it comes from a folder that nobody else writes to, and only what
this user's own reffree has signed is loaded. numba's own cache, wherever it is, is not used: it
looks at the function alone, and would go on using its code after a change in what it calls.
"""

# numba has no types.
# mypy: disable-error-code="no-untyped-call"
# ruff: noqa: ANN401

from __future__ import annotations

import hashlib
import logging
import pickle
import platform
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
import platformdirs
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from reffree.util.compiling.signed import SignedFolder

LOGGER = logging.getLogger(__name__)

MOST_FILES = 32
"""Of one function: signatures, processors and, while it is being written, versions of it."""

UNREADABLE = (
    *(pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError, KeyError),
    *(TypeError, ValueError, RuntimeError),
)
"""What reading says of code that was kept as it is but does not fit here."""

PLAIN = (bool, int, float, complex, str, bytes, type(None), tuple, frozenset, dict)
NAMED = (ModuleType, BuiltinFunctionType, type, np.ufunc)


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile as ``numba.njit(**options)`` does; with ``cache`` the machine code is kept."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache:
            dispatcher._cache = KeptCode(dispatcher)
        return dispatcher

    return decorate


@cache
def kept_folder() -> SignedFolder:
    """Return the folder of this reffree under this Python and this compiler, for this user.

    It does not follow ``REFFREE_CACHE_DIR``, which others may write to.
    """
    versions = [version("reffree"), platform.python_version()]
    versions += [version("numba"), version("llvmlite")]
    return SignedFolder(
        platformdirs.user_cache_path("reffree") / "compiled" / "-".join(versions),
        platformdirs.user_state_path("reffree") / "compiled.key",
    )


@cache
def _tell_of_compiling() -> None:
    LOGGER.info("reffree: compiling for this processor, for some seconds; kept for the next start")


@cache
def _tell_once(reason: str) -> None:
    LOGGER.warning(
        "reffree: note: compiled code is not kept (%s), so every start compiles it again", reason
    )


class KeptCode(_Cache):
    """What numba asks before it compiles a signature, and tells afterwards."""

    def __init__(self, dispatcher: Any) -> None:
        """Keep the code of one function."""
        self._dispatcher = dispatcher
        self._is_enabled = True

    @property
    def cache_path(self) -> str:
        """Return the folder, for numba's statistics."""
        return str(kept_folder().path)

    def enable(self) -> None:
        """Keep code from now on."""
        self._is_enabled = True

    def disable(self) -> None:
        """Neither read nor keep code from now on."""
        self._is_enabled = False

    def flush(self) -> None:
        """Forget nothing: a file is replaced when it is made again."""

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return what was compiled for a signature; None where it is to be compiled."""
        target_context.refresh()
        if not self._is_enabled:
            return None
        content = kept_folder().read(self._name(signature, target_context.codegen()))
        if content is None:
            _tell_of_compiling()
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except UNREADABLE:
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled; where that cannot be, say so once."""
        can_be_kept = not result.lifted and not result.library.has_dynamic_globals
        if self._is_enabled and can_be_kept:
            name = self._name(signature, result.codegen)
            try:
                kept_folder().write(name, dumps(result._reduce()))
                kept_folder().keep_newest(f"{self._label}-", MOST_FILES)
            except OSError as error:
                _tell_once(str(error))

    @property
    def _label(self) -> str:
        function = self._dispatcher.py_func
        return f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")

    def _name(self, signature: Any, codegen: Any) -> str:
        parts = (made_of(self._dispatcher), repr(signature), codegen.magic_tuple())
        return f"{self._label}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"


def made_of(function: Callable[..., Any]) -> str:
    """Return the digest of a function, compiled or not, and of whatever it names."""
    digest = hashlib.sha256()
    for part in _parts(function, set()):
        digest.update(part.encode())
    return digest.hexdigest()


def _parts(function: Any, seen: set[FunctionType]) -> Iterator[str]:
    inner = getattr(function, "__wrapped__", function)
    if inner in seen:
        return
    seen.add(inner)
    yield f"{inner.__module__}.{inner.__qualname__}"
    options = getattr(function, "targetoptions", {})
    yield repr([(name, _written(value)) for name, value in sorted(options.items())])
    names = set()
    for code in _codes(inner.__code__):
        yield repr((code.co_code, code.co_names, code.co_varnames, _constants(code)))
        names |= set(code.co_names)
    variables = dict(inner.__globals__)
    for name, cell in zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True):
        names.add(name)
        variables[name] = cell.cell_contents
    for name in sorted(names & variables.keys()):
        yield name
        yield from _value(name, variables[name], seen)


def _value(name: str, value: Any, seen: set[FunctionType]) -> Iterator[str]:
    if isinstance(value, PLAIN):
        yield _written(value)
    elif isinstance(value, np.ndarray | np.generic):
        yield repr((value.dtype.str, value.shape, value.tobytes()))
    elif isinstance(value, NAMED):
        yield str(getattr(value, "__name__", value))
    elif isinstance(getattr(value, "__wrapped__", value), FunctionType):
        yield from _parts(value, seen)
    else:
        raise TypeError(f"no digest of {name}, of type {type(value).__name__}, in compiled code")


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _constants(code: CodeType) -> list[str]:
    return [_written(c) for c in code.co_consts if not isinstance(c, CodeType)]


def _written(value: object) -> str:
    """Spell a constant; the order of a set changes from process to process."""
    return repr(sorted(map(repr, value)) if isinstance(value, set | frozenset) else value)
