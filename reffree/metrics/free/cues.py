"""Cues: what the form of two neighbouring units says about a boundary between them.

A unit that begins a topic seldom leans on the one before it, a question is answered before the
topic changes, and people greet and thank each other at the ends of what they have to do. None of
that needs an encoder, so no segmenter that looks for similar vectors has used it up. The formula is
in docs/definitions.md (Expected errors). Its numbers are those of a logistic regression on seven
corpora (TIAGE train, QMSum, Wiki-50, Choi, a handbook, a programming manual, a novel), beside the
evidence of vectors and words, rounded and doubled, but for *you*, which ends topics where somebody
is served and begins them in chats. Doubled, because correlation with Pk rises where people talk
(TIAGE .64 to .80) and hardly moves elsewhere; with thrice, seekers fall. What greetings and thanks
count for was set by hand, on chats and turns of service spliced behind one another. The words are
English; in other languages questions alone count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reffree.util.arrays import Floats
from reffree.util.words import words_of

# fmt: off
ANAPHORA = frozenset((
    "it", "its", "they", "them", "their", "theirs", "he", "she", "his", "her", "him", "hers",
    "this", "that", "these", "those", "such",
))
CONNECTIVES = frozenset((
    "and", "but", "or", "because", "also", "then", "however", "therefore", "thus", "moreover",
    "furthermore", "although", "though", "while", "which", "who", "yet", "nor", "hence", "instead",
    "besides", "similarly", "likewise", "still",
))
# fmt: on
ADDRESS = frozenset(("you", "your", "yours"))
GREETINGS = frozenset(("hi", "hello", "hey"))
FAREWELLS = frozenset(("thanks", "thank", "welcome", "bye", "goodbye"))
QUESTION_MARKS = "?？؟"
CLOSING = "\"'”’»)]"
"""What may stand after a question mark."""

MOST = 0.2
"""Shares of words count up to this; a document in which as many units ask is talk."""


def cue_evidence(units: Sequence[str]) -> Floats:
    """Log odds of a boundary in each gap between units, less their mean: (n - 1,)."""
    if len(units) < 2:
        return np.empty(0)
    words = [words_of(unit) for unit in units]
    asks = np.array([_has_question(unit) for unit in units])
    is_open = np.array([_ends_in_question(unit) for unit in units])
    talk = share_of_talk(units)
    starts = np.array([bool(each) and each[0] in CONNECTIVES for each in words])
    greets = np.array([bool(each) and each[0] in GREETINGS for each in words])
    parts = np.array([not FAREWELLS.isdisjoint(each) for each in words])
    odds = (
        -12.0 * _share(words, ANAPHORA)[1:]
        - 2.2 * starts[1:]
        - 1.0 * (is_open[:-1] & ~asks[1:])
        + talk * (1.4 * (asks[1:] & ~is_open[:-1]) + 6.0 * _share(words, ADDRESS)[1:])
        + 3.0 * greets[1:]
        + 2.0 * (parts[:-1] & ~parts[1:])
    )
    centred: Floats = odds - odds.mean()
    return centred


def share_of_talk(units: Sequence[str]) -> float:
    """How much of a conversation a document is: 1 where a fifth of its units ask or more."""
    return min(1.0, sum(map(_has_question, units)) / max(1, len(units)) / MOST)


def _has_question(unit: str) -> bool:
    return any(mark in unit for mark in QUESTION_MARKS)


def _ends_in_question(unit: str) -> bool:
    """Whether a unit's last character is a question mark, closing quotes and brackets apart."""
    end = len(unit)
    while end and (unit[end - 1].isspace() or unit[end - 1] in CLOSING):
        end -= 1
    return end > 0 and unit[end - 1] in QUESTION_MARKS


def _share(words: Sequence[Sequence[str]], kind: frozenset[str]) -> Floats:
    """Share of a kind among each unit's words, up to `MOST`; 0 without words."""
    shares = [sum(word in kind for word in each) / max(1, len(each)) for each in words]
    capped: Floats = np.minimum(np.array(shares), MOST)
    return capped
