"""From which value on a check is to be watched, or is a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reffree.scoring.expected import INFORMED

Verdict = Literal["ok", "watch", "problem"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Two limits; where ``watch`` is above ``problem``, low values are the bad ones."""

    watch: float
    problem: float

    def __call__(self, value: float) -> Verdict:
        """Judge a value.

        >>> Rule(watch=0.05, problem=0.2)(0.1), Rule(watch=30, problem=10)(9)
        ('watch', 'problem')
        """
        sign = 1 if self.watch <= self.problem else -1
        if sign * value >= sign * self.problem:
            return "problem"
        return "watch" if sign * value >= sign * self.watch else "ok"


EXACT_TWINS = Rule(watch=0.05, problem=0.20)
"""A segment of ten units then has two that are as much another segment's as its own."""

NEAR_TWINS = Rule(watch=0.05, problem=0.20)
"""As for exact ones: the embedding space makes no difference between the two."""

BACKCHANNELS = Rule(watch=0.05, problem=0.20)
"""As for twins, which backchannels are of each other."""

RETURNS = Rule(watch=0.05, problem=0.15)
"""Share of returns beyond chance: one segment in twenty, or in seven, is turned back to."""

SINGLETONS = Rule(watch=0.10, problem=0.33)
"""One-unit segments have no cohesion: every metric gives them a made-up value (a mean, or 0)."""

UNSEGMENTED = Rule(watch=0.05, problem=0.25)
"""Such documents have the same loss whatever their text says; in a quarter, they set the score."""

TRUNCATED = Rule(watch=0.01, problem=0.10)
"""The model saw only the beginning of these units; one in ten shows in any mean over units."""

RANDOM_COSINE = Rule(watch=0.30, problem=0.60)
"""Beyond, most of a cosine is what all units share (Ethayarajh 2019: words in GPT-2, up to .99)."""

CONSECUTIVE_GAIN = Rule(watch=0.03, problem=0.0)
"""At 0, the order of units says nothing about their vectors, so no boundary can show in them."""

EFFECTIVE_DIMENSION = Rule(watch=10, problem=3)
"""Fewer directions than topics in a document cannot keep its topics apart."""

INFORMATION = Rule(watch=1.5, problem=INFORMED)
"""Below, the text says no more about where boundaries are than its units in random order would."""

DOCUMENTS = Rule(watch=29, problem=9)
"""Bootstrap intervals over fewer than ten documents are too narrow, below thirty still rough."""

MEDIAN_UNITS = Rule(watch=9, problem=4)
"""With fewer than five units a document has fewer than four places for a boundary."""

RESOLUTION = Rule(watch=0.33, problem=1.0)
"""At 1, even the source cannot be told from random boundaries; systems differ by less than that."""

DENSITY = Rule(watch=1.5, problem=2.0)
"""Losses move with the number of segments alone: raw Silhouette on drift, .25 at 3, .08 at 21."""
