"""Functions compiled by numba, whose machine code is kept in the cache folder.

Beside the sources, numba's own choice, it would outlive the package: uninstalled files of a folder
named ``reffree`` hide the next installation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from reffree.folders import cache_folder

Function = Callable[..., Any]


def njit(**options: Any) -> Callable[[Function], Any]:  # noqa: ANN401  (numba's own)
    """Compile as ``numba.njit(**options)`` does; ``NUMBA_CACHE_DIR`` is respected."""

    def decorate(function: Function) -> Any:  # noqa: ANN401
        settings: Any = numba.config
        given = settings.CACHE_DIR
        settings.CACHE_DIR = given or str(cache_folder() / "compiled")
        try:
            return numba.njit(**options)(function)
        finally:
            settings.CACHE_DIR = given

    return decorate
