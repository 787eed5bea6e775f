"""Does the cache still hold what the encoder gives? Encode some texts again and compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reffree.encoders.base import Encoder
from reffree.encoders.cache.encoder import CachedEncoder
from reffree.encoders.cache.transfer import LARGEST_DEVIATION, deviation


@dataclass(frozen=True, slots=True)
class Sample:
    """How far cached vectors lie from those encoded now."""

    compared: int
    differing: int
    largest: float  # deviation, of all compared
    allowed: float  # 1e-5, or twice what batching alone changes


def compare_sample(encoder: CachedEncoder, texts: Sequence[str], n: int, seed: int) -> Sample:
    """Encode ``n`` random texts of those that are cached once more, together and one by one.

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
    cached, cached_tokens = _collect(encoder, chosen)
    together, tokens = _collect(encoder.inner, chosen)
    alone = [_collect(encoder.inner, [text])[0][0] for text in chosen]
    rounding = max(deviation(a, b) for a, b in zip(alone, together, strict=True))
    allowed = max(LARGEST_DEVIATION, 2 * rounding)
    deviations = [deviation(a, b) for a, b in zip(cached, together, strict=True)]
    wrong = [
        far > allowed or a != b for far, a, b in zip(deviations, cached_tokens, tokens, strict=True)
    ]
    return Sample(len(chosen), sum(wrong), max(deviations), allowed)


def _collect(encoder: Encoder, texts: Sequence[str]) -> tuple[list[NDArray[np.float32]], list[int]]:
    vectors: dict[int, NDArray[np.float32]] = {}
    tokens: dict[int, int] = {}
    for encoded in encoder.stream(texts):
        vectors.update(zip(encoded.positions, encoded.vectors, strict=True))
        tokens.update(zip(encoded.positions, encoded.tokens, strict=True))
    return [vectors[i] for i in range(len(texts))], [tokens[i] for i in range(len(texts))]
