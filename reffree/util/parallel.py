"""Work shared out over threads; compiled loops leave Python's lock alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, partial

THREADED = 1 << 18
"""Numbers to go through from which threads are worth starting."""


def available_threads() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compute_threads() -> int:
    """Return how many threads a document's work is shared out to: as many as torch would use."""
    if "torch" in sys.modules:
        return int(sys.modules["torch"].get_num_threads())
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else available_threads()


def over_rows(work: Callable[[slice], object], n_rows: int, threads: int) -> None:
    """Call ``work`` on equal parts of the rows, one thread each; wait for all."""
    step = -(-n_rows // max(1, threads))
    parts = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, max(1, step))]
    in_threads([partial(work, part) for part in parts])


def in_threads(calls: Sequence[Callable[[], object]], *, threads: int = 2) -> None:
    """Make all calls, which must not share out work themselves; the first one in this thread.

    With one thread all are made here, one after the other.
    """
    here = calls if threads == 1 else calls[:1]
    elsewhere = [_workers().submit(call) for call in calls[len(here) :]]
    is_interrupted = False
    try:
        for call in here:
            call()
    except KeyboardInterrupt:
        is_interrupted = True  # whoever pressed Ctrl-C does not wait for the others
        raise
    finally:
        if not is_interrupted:
            wait(elsewhere)
    for made in elsewhere:
        made.result()


@cache
def _workers() -> ThreadPoolExecutor:
    """Threads that stay: starting them takes longer than a document's tables."""
    return ThreadPoolExecutor(available_threads(), thread_name_prefix="reffree")


if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads.
    os.register_at_fork(after_in_child=_workers.cache_clear)
