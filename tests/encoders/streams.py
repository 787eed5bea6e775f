"""Encoders opened in one line, and what they stream, taken together."""

from __future__ import annotations

import json

import numpy as np
import torch

from reffree.encoders.models import find_model
from reffree.encoders.options import ModelSettings
from reffree.encoders.sentence_transformer import SentenceTransformerEncoder
from tests.checkpoints import WORDS

CPU = torch.device("cpu")
TEXTS = [" ".join(WORDS[:k]) for k in (1, 3, 7, 15, 2)] + [" ".join(WORDS * 4), "bees bees"]


def opened(folder, kept=None, device=CPU, *, is_replica=False, **settings):
    """Open a model without a cache around it; a replica computes as a card does."""
    if isinstance(settings.get("device_map"), dict):
        settings["device_map"] = json.dumps(settings["device_map"])
    chosen = ModelSettings(**settings)
    model = find_model(str(folder), settings=chosen)
    return SentenceTransformerEncoder(model, device, chosen, kept, is_replica=is_replica)


def spelt(folder, **settings):
    """Write an encoder as a user does."""

    def written(value):
        return str(value).lower() if isinstance(value, bool) else str(value)

    given = ",".join(f"{key}={written(value)}" for key, value in settings.items())
    return f"{folder}:{given}" if given else str(folder)


def encode(encoder, texts):
    """Return the vectors of texts, in their order; each must come once."""
    rows = {}
    for encoded in encoder.stream(texts):
        assert not rows.keys() & set(encoded.positions)
        rows |= dict(zip(encoded.positions, encoded.vectors, strict=True))
    return np.stack([rows[i] for i in range(len(texts))])
