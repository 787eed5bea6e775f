"""Machine code of one compiled function, kept and found again by all that it was made from."""

# numba has no types.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import hashlib
import logging
import pickle
import platform
from functools import cache
from importlib.metadata import version
from typing import Any

import platformdirs
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from reffree.compiling.made_of import made_of
from reffree.compiling.signed import SignedFolder

LOGGER = logging.getLogger(__name__)

MOST_FILES = 32
"""Of one function: signatures, processors and, while it is being written, versions of it."""

UNREADABLE = (
    *(pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError, KeyError),
    *(TypeError, ValueError, RuntimeError),
)
"""What reading says of code that was kept as it is but does not fit here."""


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
def _tell_once(reason: str) -> None:
    LOGGER.warning(
        "reffree: note: compiled code is not kept (%s), so every start compiles it again", reason
    )


class KeptCode(_Cache):
    """What numba asks before it compiles a signature, and tells afterwards."""

    def __init__(self, dispatcher: Any) -> None:  # noqa: ANN401  (numba's own)
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

    def load_overload(self, signature: Any, target_context: Any) -> Any:  # noqa: ANN401
        """Return what was compiled for a signature; None where it is to be compiled."""
        target_context.refresh()
        if not self._is_enabled:
            return None
        content = kept_folder().read(self._name(signature, target_context.codegen()))
        if content is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except UNREADABLE:
            return None

    def save_overload(self, signature: Any, result: Any) -> None:  # noqa: ANN401
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

    def _name(self, signature: Any, codegen: Any) -> str:  # noqa: ANN401
        parts = (made_of(self._dispatcher), repr(signature), codegen.magic_tuple())
        return f"{self._label}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"
