"""Several devices in one process: a copy of the model on each, and texts shared out among them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from queue import Queue
from typing import Protocol

from reffree.encoders.base import EncodedTexts, Encoder, EncoderSpec
from reffree.util.errors import OptionError

MOST_TEXTS = 4096
"""That a device takes at a time."""

TURNS = 4
"""How often a device takes texts, at least, so that a slower one ends with the others."""


class TokenCounter(Protocol):
    """An encoder that knows its tokens."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of texts, special ones and those of the prompt included."""
        ...

    def pieces(self, words: Sequence[str]) -> list[list[int | None]]:
        """Return the tokens of each word, special ones left out; None is the unknown one."""
        ...


class Replica(Encoder, TokenCounter, Protocol):
    """An encoder on one device."""


class ReplicatedEncoder:
    """Every device has a thread that takes texts, the longest first, until none are left."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        """Take the same encoder on each device."""
        self._replicas = replicas

    @property
    def spec(self) -> EncoderSpec:
        """Return what all have: the first one's, which measures for all."""
        return self._replicas[0].spec

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of texts, special ones and those of the prompt included."""
        return self._replicas[0].count_tokens(texts)

    def pieces(self, words: Sequence[str]) -> list[list[int | None]]:
        """Return the tokens of each word, special ones left out; None is the unknown one."""
        return self._replicas[0].pieces(words)

    def stream(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Yield what comes from any device; what fails on one ends all.

        Closing this, or an interrupt, has every device end its batch and none begin another.
        """
        work = _SharedWork(texts, len(self._replicas))
        with ThreadPoolExecutor(len(self._replicas), "reffree-device") as threads:
            try:
                for replica in self._replicas:
                    threads.submit(work.take, replica)
                yield from work.results()
            finally:
                work.end()


class _SharedWork:
    """Texts that threads take parts of, and a queue of what they have encoded, with little room."""

    def __init__(self, texts: Sequence[str], n_threads: int) -> None:
        self._texts = texts
        self._todo = deque(shares(texts, n_threads))
        self._done: Queue[EncodedTexts | BaseException | None] = Queue()
        self._room = threading.Semaphore(2 * n_threads)
        self._n_threads = n_threads
        self._must_end = threading.Event()

    def take(self, replica: Replica) -> None:
        """Encode part after part; runs in a thread, and says so when it ends."""
        try:
            with closing(self._encoded_by(replica)) as stream:
                for encoded in stream:
                    self._room.acquire()
                    if self._must_end.is_set():
                        return
                    self._done.put(encoded)
        except BaseException as error:  # raised where it is waited for
            self._done.put(error)
        finally:
            self._done.put(None)

    def _encoded_by(self, replica: Replica) -> Generator[EncodedTexts, None, None]:
        while True:
            try:
                part = self._todo.popleft()
            except IndexError:
                return
            for encoded in replica.stream([self._texts[i] for i in part]):
                at = [part[i] for i in encoded.positions]
                yield EncodedTexts(at, encoded.vectors, encoded.tokens)

    def results(self) -> Iterator[EncodedTexts]:
        """Yield what comes until all threads have ended; raise what one has raised."""
        n_running = self._n_threads
        while n_running:
            found = self._done.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                n_running -= 1
            else:
                self._room.release()
                yield found

    def end(self) -> None:
        """Have threads that still run, or wait for room, end after the batch they are at."""
        self._must_end.set()
        self._todo.clear()
        self._room.release(self._n_threads)


def shares(texts: Sequence[str], n_devices: int) -> list[list[int]]:
    """Cut positions into parts, from the longest text to the shortest.

    >>> shares(["aa", "b", "cccc", "ddd"], 2)
    [[2], [3], [0], [1]]
    """
    order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
    size = min(MOST_TEXTS, max(1, len(texts) // (TURNS * n_devices)))
    return [order[i : i + size] for i in range(0, len(order), size)]


def check_replicable(*, is_spread: bool, backend: str) -> None:
    """Refuse what is not copied to several devices."""
    if is_spread or backend != "torch":
        raise OptionError(
            f"several devices with {'--device-map' if is_spread else f'--backend {backend}'}",
            expected="a copy of the model on each, run by torch",
            remedy="name one device, or leave the other option out",
        )
