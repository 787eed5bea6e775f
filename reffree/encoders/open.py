"""From what the user asked for to an encoder that is ready to stream."""

from __future__ import annotations

from pathlib import Path

import torch

from reffree.encoders.base import Encoder
from reffree.encoders.cache import CachedEncoder, EmbeddingCache, cache_path, default_folder
from reffree.encoders.models import DEFAULT_ENCODER, find_model
from reffree.encoders.sentence_transformer import SentenceTransformerEncoder


def open_encoder(
    name: str | None = None,
    *,
    device: torch.device,
    batch_tokens: int | None = None,
    offline: bool = False,
    use_cache: bool = True,
    cache_dir: Path | None = None,
) -> Encoder:
    """Find the model (alias, folder or hub id) and put the cache around it."""
    folder = find_model(DEFAULT_ENCODER if name is None else name, offline=offline)
    encoder = SentenceTransformerEncoder(folder, device, batch_tokens)
    if not use_cache:
        return encoder
    path = cache_path(cache_dir or default_folder(), encoder.spec)
    return CachedEncoder(encoder, EmbeddingCache(path, encoder.spec))
