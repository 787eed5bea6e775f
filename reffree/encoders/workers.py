"""Batches computed side by side on a CPU: a batch's small matrices keep few threads busy.

Two batches on one thread each take less time than one after the other on two threads: nothing waits
at the end of every product, and what Python does for one batch runs while the other computes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")

MOST_WORKERS = 4
"""Python runs in one of them at a time, so more would wait for it."""


@dataclass(frozen=True, slots=True)
class Share:
    """How the threads that torch may use are shared out."""

    workers: int
    threads: int  # of each worker


def share_threads() -> Share:
    """Give every worker as many threads as the others, one where there are few."""
    total = torch.get_num_threads()
    workers = min(total, MOST_WORKERS)
    return Share(workers, total // workers)


def side_by_side(
    items: Iterable[T], compute: Callable[[T], R], share: Share
) -> Generator[tuple[T, Callable[[], R]], None, None]:
    """Yield items in order, each with a function that returns what was computed, or raises.

    The first is computed alone, when it is asked for: it loads what the others share. Closing this
    lets running computations end and starts no more.
    """
    source = iter(items)
    for item in source:
        yield item, lambda item=item: compute(item)  # type: ignore[misc]
        break
    if share.workers == 1:
        for item in source:
            yield item, lambda item=item: compute(item)  # type: ignore[misc]
        return
    with _workers(share) as pool:
        pending: deque[tuple[T, Callable[[], R]]] = deque()
        try:
            for item in source:
                pending.append((item, pool.submit(compute, item).result))
                if len(pending) > share.workers:
                    yield pending.popleft()
            while pending:
                yield pending.popleft()
        except BaseException:  # closed early, or the source has failed
            pool.shutdown(cancel_futures=True)
            raise


def _workers(share: Share) -> ThreadPoolExecutor:
    """Start every worker with its number of threads; that of all other threads stays."""
    before = torch.get_num_threads()
    are_ready = threading.Barrier(share.workers + 1)

    def begin() -> None:
        torch.set_num_threads(share.threads)  # of this thread, and of those that ask later
        torch.get_num_threads()  # a thread that has asked keeps its number
        are_ready.wait()

    pool = ThreadPoolExecutor(share.workers, "reffree-encoding", initializer=begin)
    for _ in range(share.workers):
        pool.submit(int)
    are_ready.wait()
    torch.set_num_threads(before)
    return pool
