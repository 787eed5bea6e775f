"""How long work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Called with a stage and its size; yields a function that is told how many were just done."""


def no_progress(stage: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Show nothing."""
    return nullcontext(lambda done: None)
