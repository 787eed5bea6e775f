"""Several devices in one process: a copy of the model on each, and texts shared out among them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from queue import SimpleQueue
from typing import TYPE_CHECKING

from reffree.encoders.base import EncodedTexts, EncoderSpec

if TYPE_CHECKING:
    from reffree.encoders.sentence_transformer import SentenceTransformerEncoder

MOST_TEXTS = 4096
"""That a device takes at a time."""

TURNS = 4
"""How often a device takes texts, at least, so that a slower one ends with the others."""


class ReplicatedEncoder:
    """Every device takes a part of the texts, the longest first, until none are left."""

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
        free: SimpleQueue[SentenceTransformerEncoder] = SimpleQueue()
        done: SimpleQueue[EncodedTexts | BaseException | None] = SimpleQueue()
        must_end = threading.Event()
        for replica in self._replicas:
            free.put(replica)

        def encode(part: Sequence[int]) -> None:
            replica = free.get()
            try:
                with closing(replica.stream([texts[i] for i in part])) as stream:
                    for each in stream:
                        at = [part[i] for i in each.positions]
                        done.put(EncodedTexts(at, each.vectors, each.tokens))
                        if must_end.is_set():
                            break
            except BaseException as error:  # raised where it is waited for
                done.put(error)
            finally:
                free.put(replica)
                done.put(None)

        parts = shares(texts, len(self._replicas))
        with ThreadPoolExecutor(len(self._replicas), "reffree-device") as threads:
            try:
                threads.map(encode, parts)
                n_ended = 0
                while n_ended < len(parts):
                    found = done.get()
                    if isinstance(found, BaseException):
                        raise found
                    if found is None:
                        n_ended += 1
                    else:
                        yield found
            finally:
                must_end.set()
                threads.shutdown(cancel_futures=True)


def shares(texts: Sequence[str], n_devices: int) -> list[list[int]]:
    """Cut positions into parts, from the longest text to the shortest.

    >>> shares(["aa", "b", "cccc", "ddd"], 2)
    [[2], [3], [0], [1]]
    """
    order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
    size = min(MOST_TEXTS, max(1, len(texts) // (TURNS * n_devices)))
    return [order[i : i + size] for i in range(0, len(order), size)]
