"""How far vectors computed in one way are from those of another, on texts that never change."""

from __future__ import annotations

import json
import math
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray


def _texts() -> tuple[str, ...]:
    resource = files("reffree") / "resources" / "probe.json"
    found: list[str] = json.loads(resource.read_text(encoding="utf-8"))
    n = len(found)
    openings = (" ".join(sentence.split()[:3]) for sentence in found)
    pairs = (f"{found[i]} {found[(i + 5) % n]}" for i in range(n))
    passages = (" ".join(found[(i + 3 * k) % n] for k in range(4)) for i in range(n))
    return (*found, *openings, *pairs, *passages)


PROBE = _texts()
"""64 English texts of 3 to 60 words."""


def cosine_deviation(found: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    """Return the largest difference of the cosines of any two texts."""

    def cosines(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        x = vectors.astype(np.float64)
        lengths = np.linalg.norm(x, axis=1, keepdims=True)
        x /= np.where(lengths > 0, lengths, 1)
        return x @ x.T

    return float(np.abs(cosines(found) - cosines(expected)).max())


def one_digit_up(deviation: float) -> str:
    """One digit that counts, upwards.

    >>> one_digit_up(0.00034), one_digit_up(0.0101), one_digit_up(0.0)
    ('4e-04', '2e-02', '0')
    """
    if deviation <= 0:
        return "0"
    power = math.floor(math.log10(deviation))
    return f"{math.ceil(round(deviation / 10**power, 6)) * 10**power:.0e}"
