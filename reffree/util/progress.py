"""Progress of long work: who is told of it, and how many seconds each stage took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Called with a stage and its size; yields a function that is told how many were just done."""


def no_progress(stage: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Take a stage and its size, as `Progress`, and show nothing."""
    return nullcontext(lambda done: None)


class Timed:
    """Passes progress on and adds up the seconds of every stage.

    Times stay out of results, which are the same bytes for the same input.
    """

    def __init__(self, inner: Progress = no_progress) -> None:
        """Wrap what shows the progress."""
        self._inner = inner
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str, total: int) -> Iterator[Callable[[int], None]]:
        """Show a stage and time it."""
        start = time.perf_counter()
        try:
            with self._inner(stage, total) as advance:
                yield advance
        finally:
            spent = time.perf_counter() - start
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent

    def summary(self) -> str:
        """Return the stages so far in words, and begin anew."""
        parts = [f"{stage.lower()} {seconds:.1f} s" for stage, seconds in self.seconds.items()]
        self.seconds = {}
        return ", ".join(parts) or "no time"
