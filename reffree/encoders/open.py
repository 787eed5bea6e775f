"""From what the user asked for to an encoder that is ready to stream."""

from __future__ import annotations

from pathlib import Path

from reffree.encoders.base import Encoder
from reffree.encoders.cache import CachedEncoder, EmbeddingCache, cache_path, default_folder
from reffree.encoders.device import choose_device
from reffree.encoders.models import DEFAULT_ENCODER, find_model
from reffree.encoders.options import EncoderOptions
from reffree.encoders.sentence_transformer import SentenceTransformerEncoder


def open_encoder(options: EncoderOptions) -> Encoder:
    """Find the model (alias, folder or hub id) and put the cache around it."""
    name = DEFAULT_ENCODER if options.encoder is None else options.encoder
    folder = find_model(name, offline=options.offline, settings=options.settings)
    device = choose_device(options.device)
    where = default_folder() if options.cache_dir is None else Path(options.cache_dir)
    encoder = SentenceTransformerEncoder(
        folder,
        device,
        options.batch_tokens,
        options.device_map,
        options.backend,
        where if options.cache else None,
    )
    if not options.cache:
        return encoder
    path = cache_path(where, encoder.spec)
    return CachedEncoder(encoder, EmbeddingCache(path, encoder.spec))
