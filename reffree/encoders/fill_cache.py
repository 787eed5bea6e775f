"""Fill the cache with many processes: who encodes which of the missing texts.

Vectors travel through the cache only; the processes tell each other positions, counts and failures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reffree.encoders.cache import CachedEncoder
from reffree.encoders.launcher import SingleProcess
from reffree.errors import CacheError, EncoderError, counted

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Filled:
    """What filling the cache did."""

    cached: int  # texts whose vectors were there before
    encoded: list[int]  # texts, by rank
    evicted: int  # rows that made room under the cache limit


def split_by_length(texts: Sequence[str], positions: Sequence[int], n: int) -> list[list[int]]:
    """Share positions out over ``n`` processes: every n-th, from the longest text to the shortest.

    So each gets the same number of texts, within one, and as many long ones as the others; slices
    of the sorted list would give one process all the long texts.

    >>> split_by_length(["aa", "b", "cccc", "ddd"], [0, 1, 2, 3], 2)
    [[2, 0], [3, 1]]
    """
    longest_first = sorted(positions, key=lambda i: (-len(texts[i]), i))
    return [longest_first[rank::n] for rank in range(n)]


def fill(
    encoder: CachedEncoder,
    texts: Sequence[str],
    ranks: SingleProcess,
    progress: Callable[[int], Advance] = lambda total: lambda done: None,
) -> Filled:
    """Encode the missing texts into the cache, each by one rank.

    The first rank looks up what is missing: were all to look, those who come later would miss
    what the first have already written, and the shares would not fit together.

    Args:
        encoder: this rank's, with the cache that all ranks share.
        texts: distinct, the same for every rank.
        ranks: this process among its fellows.
        progress: given the number of texts this rank encodes, returns what to call as they are
            done.
    """
    ranks.run(lambda: _check_same(encoder, texts, ranks))
    found = ranks.run(lambda: _missing(encoder, texts) if ranks.rank == 0 else [])
    missing = ranks.share(found)
    mine = [texts[i] for i in split_by_length(texts, missing, ranks.size)[ranks.rank]]

    def encode() -> None:
        advance = progress(len(mine))
        for encoded in encoder.stream(mine):
            advance(len(encoded.positions))

    ranks.run(encode)
    return Filled(
        cached=len(texts) - len(missing),
        encoded=ranks.gather(encoder.n_encoded),
        evicted=sum(ranks.gather(encoder.n_evicted)),
    )


def _missing(encoder: CachedEncoder, texts: Sequence[str]) -> list[int]:
    """Return the texts to encode; refuse a cache that would not keep them."""
    missing = encoder.missing(texts)
    if missing and encoder.cache.is_read_only:
        raise CacheError(
            f"{encoder.cache.path}: found a read-only cache that lacks "
            f"{counted(len(missing), 'text')}; expected one that can be filled; free the rights, "
            "or choose another --cache-dir"
        )
    return missing


def _check_same(encoder: CachedEncoder, texts: Sequence[str], ranks: SingleProcess) -> None:
    """Refuse ranks that were given something else than the first."""
    digest = hashlib.blake2b(encoder.spec.fingerprint.encode(), digest_size=7)
    for text in texts:
        digest.update(f"{len(text)} {text}".encode())
    own = int.from_bytes(digest.digest(), "big")
    if ranks.share([own]) != [own]:
        raise EncoderError(
            "found another corpus or encoder than the first rank's; expected the same for all; "
            "start every rank with the same command, on files that do not change"
        )
