"""What an encoder is: a spec that fixes its numbers, and a stream of vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SPEC_VERSION = 1
"""Raised whenever the same settings would give other vectors than before."""


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """Everything that can change a vector; device and batch size cannot, beyond rounding."""

    name: str
    revision: str
    pooling: str
    normalisation: str
    dtype: str
    max_length: int | None
    backend: str
    layer: int | None = None  # None is the last
    attention: str = "auto"  # the best the architecture has
    prompt: str = ""
    quantisation: str = "none"
    weights: str = "safetensors"
    code: str = "none"  # "trusted" where the model's own may run
    context: int = 0  # of a corpus's vectors: an encoder sees texts that have it already
    dropped: str = "none"  # likewise: kinds of units that were left out
    dimension: int | None = None  # of an endpoint's vectors, of which nothing else is known
    deviation: float | None = field(default=None, compare=False)  # of cosines, from float32's

    @property
    def fingerprint(self) -> str:
        """32 hex digits over all fields but what was measured; names the cache file."""
        fields = {"version": SPEC_VERSION, **asdict(self)}
        del fields["deviation"]
        if self.dimension is None:
            del fields["dimension"]
        text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """Vectors of some of the texts given to an encoder."""

    positions: list[int]  # which texts
    vectors: NDArray[np.float32]  # (positions, dimension)
    tokens: list[int]  # tokens before truncation, special tokens included


class Encoder(Protocol):
    """Turns texts into vectors, in whatever order suits it."""

    @property
    def spec(self) -> EncoderSpec:
        """What fixes this encoder's numbers; known without loading the model."""
        ...

    def stream(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Yield every text's vector exactly once, as soon as it is there."""
        ...


def encode_texts(
    encoder: Encoder, texts: Sequence[str], advance: Callable[[int], None] = lambda done: None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return vectors (texts, dimension) and token counts of one text or more, in their order.

    ``advance`` is told how many texts were just done.
    """
    vectors: NDArray[np.float32] | None = None
    tokens = np.zeros(len(texts), dtype=np.int64)
    for encoded in encoder.stream(texts):
        if vectors is None:
            vectors = np.empty((len(texts), encoded.vectors.shape[1]), dtype=np.float32)
        vectors[encoded.positions] = encoded.vectors
        tokens[encoded.positions] = encoded.tokens
        advance(len(encoded.positions))
    assert vectors is not None  # there is a text
    return vectors, tokens
