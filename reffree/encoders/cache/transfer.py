"""Rows from one cache to another: other cache files, and safetensors files to carry about.

A row is taken only if its checksum holds, which it does for one encoder's fingerprint only. A row
whose text is already here with another vector is a conflict: refused and counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from reffree.encoders.base import EncoderSpec
from reffree.encoders.cache.eviction import environment_limit, keep_within
from reffree.encoders.cache.files import SCHEMA_VERSION, cache_path
from reffree.encoders.cache.rows import CHECKSUM_BYTES, KEY_BYTES, Row
from reffree.encoders.cache.store import KEYS_PER_QUERY, EmbeddingCache
from reffree.util.atomic import replacing
from reffree.util.errors import CacheError, counted, first_line

LARGEST_DEVIATION = 1e-5
"""How far two vectors of one text may lie apart (see `deviation`): batches round differently."""

HEADER = "reffree"
TENSORS = {
    "keys": ("U8", KEY_BYTES),
    "vectors": ("F32", None),
    "tokens": ("I64", None),
    "checksums": ("U8", CHECKSUM_BYTES),
}


@dataclass(frozen=True, slots=True)
class Added:
    """What became of the rows offered to a cache."""

    path: Path
    new: int = 0
    present: int = 0
    conflicting: int = 0
    damaged: int = 0


def deviation(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """Return the largest difference of two vectors' numbers, relative to numbers beyond 1."""
    if a.shape != b.shape:
        return float("inf")
    return float(np.abs(a - b).max() / max(1.0, float(np.abs(b).max())))


def merge_file(source: Path, folder: Path) -> Added:
    """Take the rows of another cache file into the file of its encoder below ``folder``."""
    with EmbeddingCache(source) as other:
        spec = _spec(other.meta["spec"], other.fingerprint, source)
        target = cache_path(folder, spec)
        if target.exists() and target.samefile(source):
            raise CacheError(
                f"{source}: found the very file to merge into; expected one of another cache "
                "folder; name that, or choose another --cache-dir"
            )
        with EmbeddingCache(target, spec) as cache:
            return _add(cache, other.rows(), other.dimension)


def export_file(cache: EmbeddingCache, path: Path) -> tuple[int, int]:
    """Write all intact rows to a safetensors file; returns how many, and how many are damaged.

    Ordered by key: the same rows give the same bytes. The file is made in memory.
    """
    spec = _spec(cache.meta["spec"], cache.fingerprint, cache.path)
    dimension = cache.dimension
    rows, damaged = [], 0
    for row in cache.rows():
        if row.is_intact(cache.fingerprint, dimension):
            rows.append(row)
        else:
            damaged += 1
    if not rows:
        raise CacheError(
            f"{cache.path}: found no vectors to export; expected at least one; fill the cache with "
            "reffree embed"
        )
    tensors = {
        "keys": np.frombuffer(b"".join(row.key for row in rows), np.uint8),
        "vectors": np.frombuffer(b"".join(row.blob for row in rows), "<f4"),
        "checksums": np.frombuffer(b"".join(row.checksum for row in rows), np.uint8),
    }
    header = {"version": SCHEMA_VERSION, "fingerprint": cache.fingerprint, "spec": asdict(spec)}
    shaped = {name: flat.reshape(len(rows), -1) for name, flat in tensors.items()}
    shaped["tokens"] = np.array([row.tokens for row in rows], np.int64)
    try:
        with replacing(path) as temporary:
            save_file(shaped, temporary, {HEADER: json.dumps(header, sort_keys=True)})
    except (SafetensorError, OSError) as error:
        raise CacheError(
            f"{path}: cannot be written ({first_line(error)}); expected a file in "
            "a folder with room for it; choose another place"
        ) from None
    return len(rows), damaged


def import_file(source: Path, folder: Path) -> Added:
    """Take the rows of an exported file into the file of its encoder below ``folder``.

    Every checksum is verified before the first row is taken.
    """
    try:
        with safe_open(source, framework="numpy") as file:
            spec = _exported_spec(file, source)
            damaged = sum(not row.is_intact(spec.fingerprint, None) for row in _exported(file))
            if damaged:
                raise _foreign(source, f"{counted(damaged, 'row')} failing the checksum")
            with EmbeddingCache(cache_path(folder, spec), spec) as cache:
                return _add(cache, _exported(file), None)
    except (SafetensorError, OSError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise _foreign(source, f"a file that cannot be read ({reason})") from None


def _add(cache: EmbeddingCache, rows: Iterable[Row], dimension: int | None) -> Added:
    """Add rows in batches of one transaction each; stopped half-way, it may be run again."""
    counts = {"new": 0, "present": 0, "conflicting": 0, "damaged": 0}
    rows = iter(rows)
    while batch := list(islice(rows, KEYS_PER_QUERY)):
        intact = [row for row in batch if row.is_intact(cache.fingerprint, dimension)]
        counts["damaged"] += len(batch) - len(intact)
        here = {row.key: row for row in cache.find([row.key for row in intact])}
        new = [row for row in intact if row.key not in here]
        cache.add(new)
        counts["new"] += len(new)
        for row, known in ((row, here[row.key]) for row in intact if row.key in here):
            is_near = deviation(row.vector, known.vector) <= LARGEST_DEVIATION
            is_same = is_near and row.tokens == known.tokens
            counts["present" if is_same else "conflicting"] += 1
    limit = environment_limit()
    if limit is not None:
        keep_within(cache, limit)
    return Added(cache.path, **counts)


def _spec(fields: dict[str, Any], fingerprint: str, source: Path) -> EncoderSpec:
    """Rebuild an encoder's spec, which must have the fingerprint it claims."""
    try:
        spec = EncoderSpec(**fields)
    except TypeError:
        spec = None
    if spec is None or spec.fingerprint != fingerprint:
        raise CacheError(
            f"{source}: found an encoder's settings that do not match their fingerprint "
            f"{fingerprint[:16]}; expected those of this version of reffree; encode the texts again"
        )
    return spec


def _exported_spec(file: Any, source: Path) -> EncoderSpec:  # noqa: ANN401  (an untyped library)
    try:
        header = json.loads((file.metadata() or {})[HEADER])
        version, fingerprint = header["version"], str(header["fingerprint"])
        fields = dict(header["spec"])
    except (KeyError, ValueError, TypeError):
        raise _foreign(source, "a safetensors file of something else") from None
    if version != SCHEMA_VERSION:
        raise _foreign(source, "a file of another version of reffree")
    if set(file.keys()) != set(TENSORS):
        raise _foreign(source, f"the tensors {', '.join(sorted(file.keys()))}")
    lengths = set()
    for name, (kind, width) in TENSORS.items():
        part = file.get_slice(name)
        shape = part.get_shape()
        lengths.add(shape[0] if shape else 0)
        wanted = 1 if name == "tokens" else 2
        if part.get_dtype() != kind or len(shape) != wanted or (width and shape[1] != width):
            raise _foreign(source, f"{name} of shape {shape} and type {part.get_dtype()}")
    if len(lengths) != 1:
        raise _foreign(source, "tensors of different lengths")
    return _spec(fields, fingerprint, source)


def _exported(file: Any) -> Iterator[Row]:  # noqa: ANN401  (an untyped library)
    """Yield a file's rows, reading a part at a time."""
    parts = {name: file.get_slice(name) for name in TENSORS}
    n_rows = parts["tokens"].get_shape()[0]
    for start in range(0, n_rows, KEYS_PER_QUERY):
        some = slice(start, min(start + KEYS_PER_QUERY, n_rows))
        keys, vectors, tokens, checksums = (parts[name][some] for name in TENSORS)
        for key, vector, count, checksum in zip(keys, vectors, tokens, checksums, strict=True):
            yield Row(key.tobytes(), vector.tobytes(), int(count), checksum.tobytes())


def _foreign(source: Path, found: str) -> CacheError:
    return CacheError(
        f"{source}: found {found}; expected a file as reffree cache export writes it; export or "
        "copy it again"
    )
