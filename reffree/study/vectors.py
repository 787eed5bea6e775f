"""A corpus's vectors, from an encoder or as the user gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from numpy.typing import ArrayLike

from reffree.corpus import Corpus
from reffree.encoders.embed import Embeddings, distinct_texts, embed
from reffree.encoders.open import open_encoder
from reffree.encoders.precomputed import from_arrays
from reffree.study.progress import Progress

Given = Sequence[ArrayLike] | Mapping[str, ArrayLike] | Embeddings | None


def corpus_vectors(
    corpus: Corpus,
    embeddings: Given,
    encoder: str | None,
    *,
    device: torch.device,
    batch_tokens: int | None,
    offline: bool,
    cache: bool,
    cache_dir: Path | str | None,
    progress: Progress,
) -> Embeddings:
    """Take the vectors that are given, or encode every distinct text once."""
    if isinstance(embeddings, Embeddings):
        return embeddings
    if embeddings is not None:
        return from_arrays(corpus, embeddings)
    opened = open_encoder(
        encoder,
        device=device,
        batch_tokens=batch_tokens,
        offline=offline,
        use_cache=cache,
        cache_dir=None if cache_dir is None else Path(cache_dir),
    )
    texts = distinct_texts(corpus)
    with progress("Encoding", len(texts)) as advance:
        return embed(corpus, opened, str(device), texts, advance)
