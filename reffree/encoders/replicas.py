"""Several devices in one process: a copy of the model on each, and texts shared out among them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from queue import Queue
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
        todo = deque(shares(texts, n))
        done: Queue[EncodedTexts | BaseException | None] = Queue()
        room = threading.Semaphore(2 * n)  # few batches wait to be fetched
        must_end = threading.Event()

        def work(replica: SentenceTransformerEncoder) -> None:
            try:
                while todo and not must_end.is_set():
                    try:
                        part = todo.popleft()
                    except IndexError:  # another thread took the last
                        return
                    with closing(replica.stream([texts[i] for i in part])) as stream:
                        for encoded in stream:
                            room.acquire()
                            if must_end.is_set():
                                return
                            at = [part[i] for i in encoded.positions]
                            done.put(EncodedTexts(at, encoded.vectors, encoded.tokens))
            except BaseException as error:  # raised where it is waited for
                done.put(error)
            finally:
                done.put(None)

        with ThreadPoolExecutor(n, "reffree-device") as threads:
            try:
                for replica in self._replicas:
                    threads.submit(work, replica)
                n_running = n
                while n_running:
                    found = done.get()
                    if isinstance(found, BaseException):
                        raise found
                    if found is None:
                        n_running -= 1
                    else:
                        room.release()
                        yield found
            finally:
                must_end.set()
                room.release(n)


def shares(texts: Sequence[str], n_devices: int) -> list[list[int]]:
    """Cut positions into parts, from the longest text to the shortest.

    >>> shares(["aa", "b", "cccc", "ddd"], 2)
    [[2], [3], [0], [1]]
    """
    order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
    size = min(MOST_TEXTS, max(1, len(texts) // (TURNS * n_devices)))
    return [order[i : i + size] for i in range(0, len(order), size)]
