"""Progress of long work: who is told of it, and how many seconds each stage took."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Called with a stage and its size; yields a function that is told how many were just done."""


LINE_SECONDS = 10.0
"""Between two lines of `ProgressLines`."""


def no_progress(stage: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Take a stage and its size, as `Progress`, and show nothing."""
    return nullcontext(lambda done: None)


class ProgressLines:
    """Says how far long work is, a line every some seconds, where nobody watches a bar.

    The seconds run over stages, so that many short ones are long work, too.
    """

    def __init__(self, write: Callable[[str], None], seconds: float = LINE_SECONDS) -> None:
        """Take what writes a line, and how long to wait before the first and every other."""
        self._write = write
        self._seconds = seconds
        self._due = math.inf

    @contextmanager
    def __call__(self, stage: str, total: int) -> Iterator[Callable[[int], None]]:
        """Write lines of a stage, as `Progress`."""
        self._due = min(self._due, time.monotonic() + self._seconds)
        n_done = 0

        def advance(done: int) -> None:
            nonlocal n_done
            n_done += done
            if time.monotonic() >= self._due:
                self._write(f"{stage} {n_done:,} of {total:,} ({100 * n_done / total:.0f} %)")
                self._due = time.monotonic() + self._seconds

        yield advance


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
