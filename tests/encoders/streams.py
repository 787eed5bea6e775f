"""What an encoder streams, taken together."""

from __future__ import annotations

import numpy as np


def encode(encoder, texts):
    """Return the vectors of texts, in their order; each must come once."""
    rows = {}
    for encoded in encoder.stream(texts):
        assert not rows.keys() & set(encoded.positions)
        rows |= dict(zip(encoded.positions, encoded.vectors, strict=True))
    return np.stack([rows[i] for i in range(len(texts))])
