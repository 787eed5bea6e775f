"""Rows of work shared out over threads; compiled loops leave Python's lock alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

THREADED = 1 << 18
"""Numbers to go through from which threads are worth starting."""


def available_threads() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_rows(work: Callable[[slice], object], n_rows: int, threads: int) -> None:
    """Call ``work`` on equal parts of the rows, one thread each; wait for all."""
    step = -(-n_rows // max(1, threads))
    parts = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, max(1, step))]
    if len(parts) == 1:
        work(parts[0])
    elif parts:
        with ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(work, parts))
