"""Saving what was encoded: at once, or in a thread while more is encoded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

WAITING = 2
"""Saves that may wait for the thread, which bounds the memory they take."""


@contextmanager
def in_background(save: Callable[[T], None]) -> Iterator[Callable[[T], None]]:
    """Give a function that has one thread do the saves, in order.

    What fails there is raised by the next call, or at the end. Also on Ctrl-C, this is left when
    all that was given is saved.
    """
    under_way: deque[Future[None]] = deque()

    def hand_over(what: T) -> None:
        while under_way and (len(under_way) > WAITING or under_way[0].done()):
            under_way.popleft().result()
        under_way.append(thread.submit(save, what))

    with ThreadPoolExecutor(1, thread_name_prefix="reffree-saving") as thread:
        try:
            yield hand_over
        finally:
            while under_way:
                under_way.popleft().result()


@contextmanager
def at_once(save: Callable[[T], None]) -> Iterator[Callable[[T], None]]:
    """Give the function itself."""
    yield save
