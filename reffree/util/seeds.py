"""Random numbers that follow from a seed and from what they are for, and from nothing else."""

from __future__ import annotations

import hashlib

import numpy as np


def rng_for(seed: int, *parts: object) -> np.random.Generator:
    """Return a generator of its own for every seed and combination of parts."""
    key = "\0".join(map(str, (seed, *parts))).encode()
    digest = hashlib.blake2b(key, digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))
