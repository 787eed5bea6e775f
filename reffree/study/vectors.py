"""A corpus's vectors, from an encoder or as the user gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from reffree.corpus import Corpus
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Embeddings, distinct_texts, embed
from reffree.encoders.open import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.encoders.precomputed import from_arrays
from reffree.study.progress import Progress

Vectors = Sequence[ArrayLike] | Mapping[str, ArrayLike] | Embeddings
"""Vectors as a user gives them: one array per document, in corpus order or by id."""


def corpus_vectors(
    corpus: Corpus, embeddings: Vectors | None, options: EncoderOptions, progress: Progress
) -> Embeddings:
    """Take the vectors that are given, or encode every distinct text once."""
    if isinstance(embeddings, Embeddings):
        return embeddings
    if embeddings is not None:
        return from_arrays(corpus, embeddings)
    encoder = open_encoder(options)
    texts = distinct_texts(corpus)
    with progress("Encoding", len(texts)) as advance:
        return embed(corpus, encoder, str(choose_device(options.device)), texts, advance)
