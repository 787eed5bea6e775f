"""The embedding cache: one SQLite file per encoder, rows keyed by the exact text."""

from reffree.encoders.cache.encoder import CachedEncoder
from reffree.encoders.cache.files import (
    cache_files,
    cache_path,
    choose_files,
    old_files,
    remove,
)
from reffree.encoders.cache.store import EmbeddingCache

__all__ = [
    "CachedEncoder",
    "EmbeddingCache",
    "cache_files",
    "cache_path",
    "choose_files",
    "old_files",
    "remove",
]
