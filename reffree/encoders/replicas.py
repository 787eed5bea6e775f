"""Several devices in one process: a copy of the model on each, and texts shared out among them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from queue import Queue, SimpleQueue
from typing import TYPE_CHECKING

from reffree.encoders.base import EncodedTexts, EncoderSpec

if TYPE_CHECKING:
    from reffree.encoders.sentence_transformer import SentenceTransformerEncoder

MOST_TEXTS = 4096
"""That a device takes at a time."""

TURNS = 4
"""How often a device takes texts, at least, so that a slower one ends with the others."""


class ReplicatedEncoder:
    """Every device has a thread that takes texts, the longest first, until none are left."""

    def __init__(self, replicas: Sequence[SentenceTransformerEncoder]) -> None:
        """Take the same encoder on each device."""
        self._replicas = replicas

    @property
    def spec(self) -> EncoderSpec:
        """Return what all have: the first one's, which measures for all."""
        return self._replicas[0].spec

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of texts, special ones and those of the prompt included."""
        return self._replicas[0].count_tokens(texts)

    def stream(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Yield what comes from any device; what fails on one ends all.

        Closing this, or an interrupt, has every device end its batch and none begin another.
        """
        n = len(self._replicas)
        work = _SharedWork(texts, n)
        with ThreadPoolExecutor(n, "reffree-device") as threads:
            try:
                for replica in self._replicas:
                    threads.submit(work.take, replica)
                n_running = n
                while n_running:
                    found = work.done.get()
                    if isinstance(found, BaseException):
                        raise found
                    if found is None:
                        n_running -= 1
                    else:
                        work.room.release()
                        yield found
            finally:
                work.must_end.set()
                work.room.release(n)


class _SharedWork:
    """Parts of texts that threads take, and a queue of what they have encoded, with little room."""

    def __init__(self, texts: Sequence[str], n: int) -> None:
        self.texts = texts
        self.todo: SimpleQueue[list[int] | None] = SimpleQueue()
        for part in [*shares(texts, n), *[None] * n]:
            self.todo.put(part)
        self.done: Queue[EncodedTexts | BaseException | None] = Queue()
        self.room = threading.Semaphore(2 * n)
        self.must_end = threading.Event()

    def take(self, replica: SentenceTransformerEncoder) -> None:
        """Encode part after part; runs in a thread, and says so when it ends."""
        try:
            while (part := self.todo.get()) is not None and not self.must_end.is_set():
                with closing(replica.stream([self.texts[i] for i in part])) as stream:
                    for encoded in stream:
                        self.room.acquire()
                        if self.must_end.is_set():
                            return
                        at = [part[i] for i in encoded.positions]
                        self.done.put(EncodedTexts(at, encoded.vectors, encoded.tokens))
        except BaseException as error:  # raised where it is waited for
            self.done.put(error)
        finally:
            self.done.put(None)


def shares(texts: Sequence[str], n_devices: int) -> list[list[int]]:
    """Cut positions into parts, from the longest text to the shortest.

    >>> shares(["aa", "b", "cccc", "ddd"], 2)
    [[2], [3], [0], [1]]
    """
    order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
    size = min(MOST_TEXTS, max(1, len(texts) // (TURNS * n_devices)))
    return [order[i : i + size] for i in range(0, len(order), size)]
