"""How far one way of computing vectors is from another, on texts that never change."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-5
"""Largest difference of a number of a vector, as a share of the vector's length."""

_SENTENCES = (
    "The council approved the budget for the new library on Tuesday.",
    "Bees dance to show the others where the flowers are.",
    "Okay, so who takes the minutes this week?",
    "In 1969 the bridge was closed to traffic, and it never opened again.",
    "The server ran out of memory while it was sorting 12,000 records.",
    "She plays the cello; her brother, the double bass.",
    "Could you move the button to the top left, please?",
    "Most of the island is covered by ice, up to three kilometres thick.",
    "I don't know, it just seems a bit expensive to me.",
    "The treaty was signed in Utrecht and ended the war of succession.",
    "Add the flour slowly and stir until the dough no longer sticks.",
    "Photosynthesis turns light, water and carbon dioxide into sugar.",
    "He scored twice in the second half, but the team still lost 4-3.",
    "Remote controls get lost, so it should have a bright colour.",
    "Interest rates rose by a quarter of a point for the third time.",
    "The novel opens with a funeral and closes with a wedding.",
)


def _texts() -> tuple[str, ...]:
    n = len(_SENTENCES)
    openings = tuple(" ".join(sentence.split()[:3]) for sentence in _SENTENCES)
    pairs = tuple(f"{_SENTENCES[i]} {_SENTENCES[(i + 5) % n]}" for i in range(n))
    passages = tuple(" ".join(_SENTENCES[(i + 3 * k) % n] for k in range(4)) for i in range(n))
    return (*_SENTENCES, *openings, *pairs, *passages)


PROBE = _texts()
"""64 English texts of 3 to 60 words."""


def vector_deviation(found: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    """Return the largest difference of two numbers, as a share of the expected vector's length."""
    lengths = np.linalg.norm(expected.astype(np.float64), axis=1)
    largest = np.abs(found.astype(np.float64) - expected).max(axis=1)
    return float((largest / np.where(lengths > 0, lengths, 1)).max())


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
