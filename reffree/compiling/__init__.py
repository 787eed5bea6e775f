"""Functions compiled by numba, whose machine code is kept for the next start.

Loading machine code runs it, so it comes from a folder that nobody else writes to, and only what
this user's own reffree has signed is loaded. numba's own cache, wherever it is, is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from reffree.compiling.kept import KeptCode

Function = Callable[..., Any]


def njit(*, cache: bool = False, **options: Any) -> Callable[[Function], Any]:  # noqa: ANN401
    """Compile as ``numba.njit(**options)`` does; with ``cache`` the machine code is kept."""

    def decorate(function: Function) -> Any:  # noqa: ANN401  (numba's own)
        dispatcher = numba.njit(**options)(function)
        if cache:
            dispatcher._cache = KeptCode(dispatcher)
        return dispatcher

    return decorate
