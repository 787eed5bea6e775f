r"""Cues: what the form of two neighbouring units says about a boundary between them.

A unit that begins a topic seldom leans on the one before it: it has few pronouns that need an
antecedent, and does not begin with *and* or *but*. A question is answered before the topic changes,
and where people talk, a new topic often begins with a question, or with *you*. None of that needs
an encoder, so no segmenter that looks for similar vectors has used it up.

The log odds of a boundary between two units are, less their mean over the document,

.. math:: -6 \min(a, 0.2) - 1.1\,c - 0.5\,q + t\,(0.7\,r + 6 \min(y, 0.2)),

with the share :math:`a` of anaphora among the second unit's words, :math:`c` 1 if it begins with a
connective, :math:`q` 1 if the first ends in a question and the second asks none, :math:`r` 1 if the
second asks and the first does not end in a question, and the share :math:`y` of words that address
someone. :math:`t` says how far the document is talk: the share of its units that ask by 0.2, at
most 1.

The numbers are those of a logistic regression on seven corpora (TIAGE train, QMSum, Wiki-50, Choi,
a handbook, a programming manual, a novel), beside the evidence of vectors and words, rounded; those
of questions are between what the two corpora of talk say. Fitted without the corpus in question
they add 0.02 to 0.14 nats a boundary to the probability of gold (-0.03 on QMSum, whose questions
are unlike those of chats). The words are English; in other languages questions alone count.
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
    asks = np.array([any(mark in unit for mark in QUESTION_MARKS) for unit in units])
    is_open = np.array([_ends_in_question(unit) for unit in units])
    talk = min(1.0, float(asks.mean()) / MOST)
    starts = np.array([bool(each) and each[0] in CONNECTIVES for each in words])
    odds = (
        -6.0 * _share(words, ANAPHORA)[1:]
        - 1.1 * starts[1:]
        - 0.5 * (is_open[:-1] & ~asks[1:])
        + talk * (0.7 * (asks[1:] & ~is_open[:-1]) + 6.0 * _share(words, ADDRESS)[1:])
    )
    centred: Floats = odds - odds.mean()
    return centred


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
