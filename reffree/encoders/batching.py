"""Batches of texts: planned by tokens, made ready in the background, computed side by side."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import torch

from reffree.encoders.tokenising import Features, Read, Tokeniser

T = TypeVar("T")
R = TypeVar("R")
Limits = tuple[int, int | None]
"""Tokens that a batch may hold, and how many are enough; see `plan_batches`."""

TOKENISED_AT_ONCE = 2048
"""Texts; the next so many are tokenised while the batches of these are computed."""

READY_BATCHES = 2
"""Batches that wait collated for the model."""

IN_FLIGHT = 3
"""Batches that are queued on a card: one computed, one behind it, one on its way back."""

MOST_WORKERS = 4
"""Python runs in one of them at a time, so more would wait for it."""


def plan_batches(
    lengths: Sequence[int],
    token_budget: int,
    enough: int | None = None,
) -> list[list[int]]:
    """Group positions so that each batch, padded, holds ``token_budget`` tokens at most.

    Longest first: padding is small, and a batch that is too large for the device fails at once.
    A text longer than the budget goes alone. A batch that holds ``enough`` tokens takes no more
    texts that would need padding: for devices that are busy with few tokens already.

    >>> plan_batches([3, 9, 4, 4], token_budget=12)
    [[1], [2, 3, 0]]
    >>> plan_batches([3, 9, 4, 4], token_budget=12, enough=8)
    [[1], [2, 3], [0]]
    """
    batches: list[list[int]] = []
    longest = held = 0
    for position in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        is_open = enough is None or held < enough or lengths[position] == longest
        if batches and held + longest <= token_budget and is_open:
            batches[-1].append(position)
            held += longest
        else:
            batches.append([position])
            longest = held = max(1, lengths[position])
    return batches


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts that are computed together."""

    reads: list[Read]
    features: Features

    @property
    def size(self) -> int:
        """Tokens of the batch, padding included."""
        return max(read.length for read in self.reads) * len(self.reads)


def make_batches(
    texts: Sequence[str],
    tokeniser: Tokeniser,
    limits: Callable[[], Limits],
    *,
    pinned: bool = False,
) -> Iterator[Batch]:
    """Tokenise and batch texts, the longest first.

    Texts are taken by their characters, window after window, and batched by their tokens; the last
    batch of a window, which may not be full, waits for the texts of the next. ``limits`` is asked
    for every window: memory may have run out since the one before. ``pinned`` batches are in memory
    that a card reads by itself.
    """
    order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
    waiting: list[Read] = []
    for start in range(0, len(order), TOKENISED_AT_ONCE):
        window = order[start : start + TOKENISED_AT_ONCE]
        waiting += tokeniser.read(window, [texts[i] for i in window])
        *full, waiting = split(waiting, *limits())
        yield from (batch_of(reads, tokeniser, pinned=pinned) for reads in full)
    if waiting:
        yield batch_of(waiting, tokeniser, pinned=pinned)


def split(reads: Sequence[Read], token_budget: int, enough: int | None = None) -> list[list[Read]]:
    """Plan the batches of some texts."""
    plan = plan_batches([read.length for read in reads], token_budget, enough)
    return [[reads[i] for i in positions] for positions in plan]


def batch_of(reads: list[Read], tokeniser: Tokeniser, *, pinned: bool = False) -> Batch:
    """Collate some texts."""
    features = tokeniser.collate(reads)
    if pinned:
        features = {
            name: value.pin_memory() if isinstance(value, torch.Tensor) else value
            for name, value in features.items()
        }
    return Batch(reads, features)


def draw_ahead(items: Iterable[T], depth: int = READY_BATCHES) -> Generator[T, None, None]:
    """Draw from an iterable in a thread, up to ``depth`` items before they are asked for.

    What it raises is raised here, in its turn; closing this stops the thread.
    """
    source = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="reffree-tokenising") as thread:
        pending = deque(thread.submit(next, source, None) for _ in range(depth))
        try:
            while (item := pending.popleft().result()) is not None:
                pending.append(thread.submit(next, source, None))
                yield item
        finally:
            for future in pending:
                future.cancel()


@dataclass(frozen=True, slots=True)
class ThreadShare:
    """How the threads that torch may use are shared out."""

    workers: int
    threads: int  # of each worker


def share_threads() -> ThreadShare:
    """Give every worker as many threads as the others, one where there are few."""
    total = torch.get_num_threads()
    workers = min(total, MOST_WORKERS)
    return ThreadShare(workers, total // workers)


def run_side_by_side(
    items: Iterable[T], compute: Callable[[T], R], share: ThreadShare
) -> Generator[tuple[T, Callable[[], R]], None, None]:
    """Yield items in order, each with a function that returns what was computed, or raises.

    A batch's small matrices keep few threads busy: two batches on one thread each take less time
    than one after the other on two threads. The first is computed alone, when it is asked for: it
    loads what the others share. Closing this lets running computations end and starts no more.
    """
    source = iter(items)
    for item in source if share.workers == 1 else islice(source, 1):
        yield item, partial(compute, item)
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


def queue_ahead(
    items: Iterable[T], begin: Callable[[T], Callable[[], R]], depth: int = IN_FLIGHT
) -> Generator[tuple[T, Callable[[], R]], None, None]:
    """Yield items in order, each with a function that returns what was computed, or raises.

    For devices that go on while the host prepares more: ``begin`` queues an item's work and returns
    what waits for it, up to ``depth`` items before it is asked for.
    """
    under_way: deque[tuple[T, Callable[[], R]]] = deque()
    for item in items:
        try:
            under_way.append((item, begin(item)))
        except (RuntimeError, IndexError) as error:
            # Its frames hold memory of the device, and it is raised in its turn, after all before.
            under_way.append((item, partial(_raise, error.with_traceback(None))))
            while under_way:  # who splits a batch that was too large does so before the next
                yield under_way.popleft()
        if len(under_way) >= depth:
            yield under_way.popleft()
    while under_way:
        yield under_way.popleft()


def _raise(error: Exception) -> Any:  # noqa: ANN401  (returns nothing)
    raise error


def _workers(share: ThreadShare) -> ThreadPoolExecutor:
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
