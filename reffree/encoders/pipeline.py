"""Batches made ready in the background while the model computes the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch

from reffree.encoders.batching import plan_batches
from reffree.encoders.tokenising import Features, Read, Tokeniser

T = TypeVar("T")
Limits = tuple[int, int | None]
"""Tokens that a batch may hold, and how many are enough; see `plan_batches`."""

TOKENISED_AT_ONCE = 2048
"""Texts; the next so many are tokenised while the batches of these are computed."""

READY_BATCHES = 2
"""Batches that wait collated for the model."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts that are computed together."""

    reads: list[Read]
    features: Features

    @property
    def size(self) -> int:
        """Tokens of the padded batch."""
        return max(read.length for read in self.reads) * len(self.reads)


def planned(
    texts: Sequence[str], tokeniser: Tokeniser, limits: Callable[[], Limits], *, pin: bool = False
) -> Iterator[Batch]:
    """Tokenise and batch texts, the longest first.

    Texts are taken by their characters, window after window, and batched by their tokens; the last
    batch of a window, which may not be full, waits for the texts of the next. ``limits`` is asked
    for every window: memory may have run out since the one before.
    """
    order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
    waiting: list[Read] = []
    for start in range(0, len(order), TOKENISED_AT_ONCE):
        window = order[start : start + TOKENISED_AT_ONCE]
        waiting += tokeniser.read(window, [texts[i] for i in window])
        *full, last = split(waiting, *limits())
        yield from (batch_of(reads, tokeniser, pin=pin) for reads in full)
        waiting = last
    if waiting:
        yield batch_of(waiting, tokeniser, pin=pin)


def split(reads: Sequence[Read], token_budget: int, enough: int | None = None) -> list[list[Read]]:
    """Plan the batches of some texts."""
    plan = plan_batches([read.length for read in reads], token_budget, enough)
    return [[reads[i] for i in positions] for positions in plan]


def batch_of(reads: list[Read], tokeniser: Tokeniser, *, pin: bool = False) -> Batch:
    """Collate; ``pin`` puts the tensors where a CUDA device can fetch them by itself."""
    features = tokeniser.collate(reads)
    if pin:
        features = {
            name: value.pin_memory() if isinstance(value, torch.Tensor) else value
            for name, value in features.items()
        }
    return Batch(reads, features)


def ahead(items: Iterable[T], depth: int = READY_BATCHES) -> Generator[T, None, None]:
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
