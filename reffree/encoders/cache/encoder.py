"""An encoder that asks the cache first and files what it had to compute."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from reffree.encoders.base import EncodedTexts, Encoder, EncoderSpec, encode_texts
from reffree.encoders.cache.eviction import environment_limit, keep_within
from reffree.encoders.cache.rows import Row, make_rows
from reffree.encoders.cache.store import EmbeddingCache
from reffree.encoders.cache.transfer import LARGEST_DEVIATION, deviation
from reffree.encoders.cache.writer import at_once, in_background
from reffree.util.errors import CacheError, counted

ROWS_PER_COMMIT = 512
LOGGER = logging.getLogger(__name__)


class CachedEncoder:
    """The cache around an encoder is itself an encoder."""

    def __init__(
        self,
        inner: Encoder,
        cache: EmbeddingCache,
        limit: int | None = None,
        rows_per_commit: int = ROWS_PER_COMMIT,
        *,
        saves_in_background: bool = False,
    ) -> None:
        """Wrap ``inner``; the cache must have been opened for its spec.

        ``limit`` is what all cache files of the folder may hold together, in bytes; by default
        what ``REFFREE_CACHE_LIMIT`` says. With ``rows_per_commit`` of 1 whatever comes is saved
        before more is asked for, unless it is saved in the background, by a thread.
        """
        self._saving = in_background if saves_in_background else at_once
        self.inner = inner
        self.cache = cache
        self.rows_per_commit = rows_per_commit
        self.limit = environment_limit() if limit is None else limit
        self.n_encoded = 0
        self.n_evicted = 0
        self._n_reported = 0

    @property
    def spec(self) -> EncoderSpec:
        """Return the inner encoder's spec."""
        return self.inner.spec

    def stream(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Cached vectors first, then the missing ones, saved as they come."""
        missing = set(range(len(texts)))
        for encoded in self.cache.get(texts):
            missing -= set(encoded.positions)
            yield encoded
        self._after_reading()
        if missing:
            yield from self._compute([texts[i] for i in sorted(missing)], sorted(missing))

    def missing(self, texts: Sequence[str]) -> list[int]:
        """Return the positions of the texts whose vectors are not here, or are damaged."""
        present = {i for encoded in self.cache.get(texts) for i in encoded.positions}
        self._after_reading()
        return [i for i in range(len(texts)) if i not in present]

    def _after_reading(self) -> None:
        """Tell of damaged rows, once each, and note which rows were used."""
        if len(self.cache.damaged) > self._n_reported:
            found = counted(len(self.cache.damaged) - self._n_reported, "row")
            self._n_reported = len(self.cache.damaged)
            LOGGER.warning(
                "reffree: note: %s: found %s failing the checksum; encoded again; should this "
                "repeat, check the disk and rebuild with reffree cache rm %s",
                *(self.cache.path, found, self.cache.path.stem),
            )
        try:
            self.cache.mark_used()
        except CacheError as error:
            # The vectors are right all the same; only eviction knows less.
            LOGGER.warning("reffree: note: the use of cached rows is not noted: %s", error)

    def _compute(self, texts: list[str], positions: list[int]) -> Iterator[EncodedTexts]:
        pending: list[EncodedTexts] = []
        with self._saving(partial(self._save, texts)) as save:
            try:
                for encoded in self.inner.stream(texts):
                    pending.append(encoded)
                    if sum(len(e.positions) for e in pending) >= self.rows_per_commit:
                        full, pending = pending, []
                        save(full)
                    at = [positions[i] for i in encoded.positions]
                    yield EncodedTexts(at, encoded.vectors, encoded.tokens)
            finally:
                # Also on Ctrl-C: what has been computed is not lost.
                save(pending)

    def _save(self, texts: list[str], encoded: list[EncodedTexts]) -> None:
        positions = [i for one in encoded for i in one.positions]
        if self.cache.is_read_only and positions:
            if not self.n_encoded:
                LOGGER.warning(
                    "reffree: note: %s is read-only: what is encoded now is not kept",
                    self.cache.path,
                )
            self.n_encoded += len(positions)
        elif positions:
            rows = make_rows(
                self.cache.fingerprint,
                [texts[i] for i in positions],
                np.concatenate([one.vectors for one in encoded]),
                [count for one in encoded for count in one.tokens],
            )
            self.add(rows)

    def add(self, rows: Sequence[Row]) -> None:
        """Put rows that were just encoded into the cache, within its limit."""
        self.cache.add(rows)
        self.n_encoded += len(rows)
        if self.limit is not None:
            self.n_evicted += keep_within(self.cache, self.limit)


@dataclass(frozen=True, slots=True)
class Sample:
    """How far cached vectors lie from those encoded now."""

    compared: int
    differing: int
    largest: float  # deviation, of all compared
    allowed: float  # 1e-5, or twice what batching alone changes


def compare_sample(encoder: CachedEncoder, texts: Sequence[str], n: int, seed: int) -> Sample:
    """Encode ``n`` random texts of those that are cached once more, in batches and one by one.

    What the two ways differ in is the encoder's rounding (large for float16 and bfloat16); a
    cached vector may deviate twice as far, and 1e-5 in any case. Fewer are compared if fewer are
    cached.
    """
    absent = set(encoder.missing(texts))
    present = [text for i, text in enumerate(texts) if i not in absent]
    rng = np.random.default_rng(seed)
    chosen = [present[i] for i in rng.permutation(len(present))[:n]]
    if not chosen:
        return Sample(compared=0, differing=0, largest=0.0, allowed=LARGEST_DEVIATION)
    cached, cached_tokens = encode_texts(encoder, chosen)
    batched, tokens = encode_texts(encoder.inner, chosen)
    alone = [encode_texts(encoder.inner, [text])[0][0] for text in chosen]
    rounding = max(deviation(a, b) for a, b in zip(alone, batched, strict=True))
    allowed = max(LARGEST_DEVIATION, 2 * rounding)
    deviations = np.array([deviation(a, b) for a, b in zip(cached, batched, strict=True)])
    wrong = (deviations > allowed) | (cached_tokens != tokens)
    return Sample(len(chosen), int(wrong.sum()), float(deviations.max()), allowed)
