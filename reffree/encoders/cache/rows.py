"""One row of the cache: a text's vector, its token count, and a checksum that vouches for both."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reffree.util.errors import CacheError

KEY_BYTES = 32
CHECKSUM_BYTES = 8


class Row(NamedTuple):
    """What is stored for a text; the text itself is not."""

    key: bytes
    blob: bytes  # little-endian float32
    tokens: int
    checksum: bytes

    def is_intact(self, fingerprint: str, dimension: int | None) -> bool:
        """Whether this is a whole row of this encoder, of this length, as it was written."""
        return (
            isinstance(self.key, bytes)
            and isinstance(self.blob, bytes)
            and isinstance(self.tokens, int)
            and len(self.key) == KEY_BYTES
            and (dimension is None or len(self.blob) == 4 * dimension)
            and row_checksum(fingerprint, self.key, self.blob, self.tokens) == self.checksum
        )

    @property
    def vector(self) -> NDArray[np.float32]:
        """The stored numbers; ask `is_intact` first."""
        return np.frombuffer(self.blob, dtype="<f4").astype(np.float32)


def text_key(text: str) -> bytes:
    """Hash the exact text: two texts that differ in one byte have two rows."""
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()


def row_checksum(fingerprint: str, key: bytes, blob: bytes, tokens: int) -> bytes:
    """Hash all of a row, keyed by the encoder: another encoder's row never passes."""
    digest = hashlib.blake2b(key, digest_size=CHECKSUM_BYTES, key=fingerprint.encode())
    # Numbers that fit no int64 come from damaged files only; they need a hash, not a meaning.
    digest.update(str(tokens).encode())
    digest.update(blob)
    return digest.digest()


def make_rows(
    fingerprint: str, texts: Sequence[str], vectors: NDArray[np.float32], tokens: Sequence[int]
) -> list[Row]:
    """Make rows of an encoder's output; NaN and infinity are never stored."""
    if not np.isfinite(vectors).all():
        raise CacheError(
            "found NaN or infinity among the vectors to cache; expected finite numbers; use "
            "another encoder or device"
        )
    rows = []
    for text, vector, count in zip(texts, vectors, tokens, strict=True):
        key, blob = text_key(text), np.ascontiguousarray(vector, dtype="<f4").tobytes()
        rows.append(Row(key, blob, int(count), row_checksum(fingerprint, key, blob, int(count))))
    return rows
