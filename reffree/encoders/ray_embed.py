"""The cache filled by Ray's actors: they encode, the driver alone writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reffree.encoders.base import Encoded, Encoder, EncoderSpec
from reffree.encoders.cache import CachedEncoder, EmbeddingCache
from reffree.encoders.cache.eviction import keep_within
from reffree.encoders.cache.rows import Row, make_rows
from reffree.encoders.options import EncoderOptions
from reffree.encoders.ray_actors import Actors
from reffree.encoders.sharding import Filled
from reffree.errors import EncoderError
from reffree.folders import user_path

TEXTS_PER_ITEM = 4096
"""Texts that an actor encodes in one go; what an interrupted run may lose per actor."""


class TextWork:
    """An actor's encoder, without a cache: texts in, rows for the driver's cache out."""

    def __init__(self, options: EncoderOptions, spec: EncoderSpec) -> None:
        """Open the encoder; it must be the driver's."""
        self._encoder = same_encoder(options, spec)

    def __call__(self, texts: list[str]) -> list[Row]:
        """Encode."""
        rows: list[Row] = []
        for encoded in self._encoder.stream(texts):
            done = [texts[i] for i in encoded.positions]
            fingerprint = self._encoder.spec.fingerprint
            rows += make_rows(fingerprint, done, encoded.vectors, encoded.tokens)
        return rows


def same_encoder(options: EncoderOptions, spec: EncoderSpec) -> Encoder:
    """Open the encoder without its cache, and refuse another than the driver's."""
    from reffree.encoders.open import open_encoder

    encoder = open_encoder(replace(options, cache=False))
    if encoder.spec != spec:
        raise EncoderError(
            f"engine 'ray': found the encoder {encoder.spec.name!r} at {encoder.spec.revision} on "
            f"an actor's host; expected {spec.name!r} at {spec.revision}, as on the driver's; "
            "install the same model on every host"
        )
    return encoder


def for_actors(options: EncoderOptions) -> EncoderOptions:
    """Name folders as every process of this host finds them."""
    name = options.encoder
    if name is not None and user_path(name).is_dir():
        options = replace(options, encoder=str(user_path(name).resolve()))
    return options


def write(encoder: CachedEncoder, rows: Sequence[Row]) -> None:
    """Put what an actor made into the driver's cache, within its limit."""
    encoder.cache.add(rows)
    encoder.n_encoded += len(rows)
    if encoder.limit is not None:
        encoder.n_evicted += keep_within(encoder.cache, encoder.limit)


def fill_by_actors(
    actors: Actors,
    encoder: CachedEncoder,
    texts: Sequence[str],
    options: EncoderOptions,
    progress: Callable[[int], Callable[[int], None]] = lambda total: lambda done: None,
) -> Filled:
    """Encode the missing texts; the driver writes each part as it comes."""
    missing = [texts[i] for i in encoder.missing(texts)]
    parts = [missing[i : i + TEXTS_PER_ITEM] for i in range(0, len(missing), TEXTS_PER_ITEM)]
    advance = progress(len(missing))
    for rows in actors.map(TextWork, (for_actors(options), encoder.spec), parts):
        write(encoder, rows)
        advance(len(rows))
    return Filled(len(texts) - len(missing), [encoder.n_encoded], encoder.n_evicted)


class CacheReader:
    """Runs beside the driver and reads its cache for actors, wherever they are."""

    def __init__(self, path: Path, spec: EncoderSpec) -> None:
        """Open the file."""
        self._cache = EmbeddingCache(path, spec)

    def find(self, texts: list[str]) -> tuple[list[int], NDArray[np.float32], list[int]]:
        """Return positions of the texts that are there, their vectors and tokens."""
        parts = list(self._cache.get(texts))
        return (
            [position for part in parts for position in part.positions],
            np.concatenate([part.vectors for part in parts]) if parts else np.empty((0, 0), "f4"),
            [count for part in parts for count in part.tokens],
        )


class RemotelyCached:
    """An encoder that asks the driver's cache first; what it must encode, it does not keep."""

    def __init__(self, inner: Encoder, reader: Any) -> None:  # noqa: ANN401
        """Wrap an encoder; ``reader`` is the handle of a `CacheReader`."""
        self.inner = inner
        self._reader = reader

    @property
    def spec(self) -> EncoderSpec:
        """Return the inner encoder's spec."""
        return self.inner.spec

    def stream(self, texts: Sequence[str]) -> Iterator[Encoded]:
        """Cached vectors first, then those that were evicted since."""
        import ray

        found: tuple[list[int], NDArray[np.float32], list[int]]
        found = ray.get(self._reader.find.remote(list(texts)))
        if found[0]:
            yield Encoded(*found)
        rest = sorted(set(range(len(texts))) - set(found[0]))
        for encoded in self.inner.stream([texts[i] for i in rest]) if rest else ():
            at = [rest[i] for i in encoded.positions]
            yield Encoded(at, encoded.vectors, encoded.tokens)
