"""A limit on what the cache may hold: the rows used longest ago go first.

The limit is on all cache files of a folder together. It counts the pages in use; while a run
writes, SQLite's log of the last writes (about 16 MB a file) comes on top.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from reffree.encoders.cache.store import EmbeddingCache
from reffree.util.bounds import parse_bytes
from reffree.util.errors import CacheError, OptionError, shorten

LIMIT_VARIABLE = "REFFREE_CACHE_LIMIT"


@dataclass(frozen=True, slots=True)
class Evicted:
    """What an eviction did; sizes are of all files together."""

    rows: int
    before: int
    after: int
    unreadable: tuple[Path, ...]


def parse_limit(text: str, source: str) -> int:
    """Read a size in bytes, such as 500M or 2G (powers of 1,024), named by where it came from.

    >>> parse_limit("1.5K", "--cache-limit")
    1536
    """
    size = parse_bytes(text)
    if size is None:
        raise OptionError(
            f"{source} {shorten(text)!r}",
            expected="a size such as 500M or 2G",
            remedy="give the most that cached embeddings may take, or leave it out for no limit",
        )
    return size


def environment_limit() -> int | None:
    """Return the limit the environment sets, if it does."""
    text = os.environ.get(LIMIT_VARIABLE)
    return parse_limit(text, LIMIT_VARIABLE) if text else None


def keep_within(cache: EmbeddingCache, limit: int) -> int:
    """Evict from a file's folder if it has outgrown the limit; returns the rows evicted."""
    size = cache.used_bytes()
    for path in cache.path.parent.glob("*.sqlite"):
        with suppress(FileNotFoundError):  # removed this moment
            size += 0 if path.name == cache.path.name else path.stat().st_size
    return evict(cache.path.parent.glob("*.sqlite"), limit).rows if size > limit else 0


def evict(paths: Iterable[Path], limit: int) -> Evicted:
    """Delete the least recently used blocks of rows until the files hold at most ``limit`` bytes.

    Files that cannot be read are left as they are, and named.
    """
    unreadable = []
    with ExitStack() as stack:
        caches = []
        for path in sorted(paths):
            try:
                caches.append(stack.enter_context(EmbeddingCache(path)))
            except CacheError:
                unreadable.append(path)
        sizes = [cache.used_bytes() for cache in caches]
        before, rows = sum(sizes), 0
        oldest_first = sorted(
            (turn, which, block)
            for which, cache in enumerate(caches)
            for turn, block in cache.blocks()
        )
        evicted_from = set()
        for _, which, block in oldest_first:
            if sum(sizes) <= limit:
                break
            rows += caches[which].drop_block(block)
            sizes[which] = caches[which].used_bytes()
            evicted_from.add(which)
        for which in evicted_from:
            caches[which].shrink()
        return Evicted(rows, before, sum(cache.used_bytes() for cache in caches), tuple(unreadable))
