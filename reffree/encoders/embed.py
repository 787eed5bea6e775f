"""A corpus's vectors: distinct texts encoded once, handed back document by document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reffree.corpus import Corpus
from reffree.encoders.base import Encoder, EncoderSpec

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One array per document, in corpus order, and what was done to get them."""

    vectors: list[NDArray[np.generic]]
    spec: EncoderSpec
    n_distinct: int
    n_truncated: int  # units of which the model read only the beginning
    device: str


def distinct_texts(corpus: Corpus) -> list[str]:
    """Return every text once, in the order of first appearance."""
    return list(dict.fromkeys(unit for document in corpus.documents for unit in document.units))


def embed(
    corpus: Corpus,
    encoder: Encoder,
    device: str,
    texts: Sequence[str] | None = None,
    progress: Progress = lambda done: None,
) -> Embeddings:
    """Encode a corpus; ``progress`` is told how many distinct texts were just done."""
    texts = distinct_texts(corpus) if texts is None else texts
    vectors: NDArray[np.float32] | None = None
    tokens = np.zeros(len(texts), dtype=np.int64)
    for encoded in encoder.stream(texts):
        if vectors is None:
            vectors = np.empty((len(texts), encoded.vectors.shape[1]), dtype=np.float32)
        vectors[encoded.positions] = encoded.vectors
        tokens[encoded.positions] = encoded.tokens
        progress(len(encoded.positions))
    assert vectors is not None  # a corpus has at least one unit
    row = {text: i for i, text in enumerate(texts)}
    rows = [[row[unit] for unit in document.units] for document in corpus.documents]
    limit = encoder.spec.max_length
    too_long = tokens > limit if limit else np.zeros(len(texts), dtype=bool)
    return Embeddings(
        vectors=[vectors[r] for r in rows],
        spec=encoder.spec,
        n_distinct=len(texts),
        n_truncated=int(sum(too_long[r].sum() for r in rows)),
        device=device,
    )
