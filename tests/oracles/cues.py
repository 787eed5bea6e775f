"""What the form of two neighbouring units says about a boundary between them, gap by gap."""

from __future__ import annotations

from collections.abc import Sequence

from reffree.util.words import words_of

QUESTION_MARKS = ("?", "？", "؟")
CLOSING = ('"', "'", "”", "’", "»", ")", "]")
# fmt: off
ANAPHORA = (
    "it", "its", "they", "them", "their", "theirs", "he", "she", "his", "her", "him", "hers",
    "this", "that", "these", "those", "such",
)
CONNECTIVES = (
    "and", "but", "or", "because", "also", "then", "however", "therefore", "thus", "moreover",
    "furthermore", "although", "though", "while", "which", "who", "yet", "nor", "hence", "instead",
    "besides", "similarly", "likewise", "still",
)
# fmt: on
ADDRESS = ("you", "your", "yours")
GREETINGS = ("hi", "hello", "hey")
FAREWELLS = ("thanks", "thank", "welcome", "bye", "goodbye")


def asks(unit: str) -> bool:
    return any(mark in unit for mark in QUESTION_MARKS)


def ends_in_question(unit: str) -> bool:
    while unit and (unit[-1].isspace() or unit[-1] in CLOSING):
        unit = unit[:-1]
    return unit.endswith(QUESTION_MARKS)


def share(unit: str, among: Sequence[str]) -> float:
    """Share of the unit's words that are ``among`` the given; 0 without words."""
    words = words_of(unit)
    return sum(word in among for word in words) / len(words) if words else 0.0


def opens_with(unit: str, among: Sequence[str]) -> bool:
    words = words_of(unit)
    return bool(words) and words[0] in among


def parts(unit: str) -> bool:
    """Whether the unit has a word of thanks or farewell."""
    return any(word in FAREWELLS for word in words_of(unit))


def talk(units: Sequence[str]) -> float:
    """How much of a conversation the document is: 1 where a fifth of the units ask."""
    return min(1.0, sum(asks(unit) for unit in units) / len(units) / 0.2)


def cue(before: str, after: str, talk: float) -> float:
    """The cue of one gap, not yet compared to the document's other gaps."""
    value = -12 * min(share(after, ANAPHORA), 0.2)
    if opens_with(after, CONNECTIVES):
        value -= 2.2
    if opens_with(after, GREETINGS):
        value += 3
    if parts(before) and not parts(after):
        value += 2
    if ends_in_question(before) and not asks(after):
        value -= 1
    if asks(after) and not ends_in_question(before):
        value += talk * 1.4
    return value + talk * 6 * min(share(after, ADDRESS), 0.2)


def gap_cues(units: Sequence[str]) -> list[float]:
    """The cue of every gap, less the mean of all gaps: n - 1 numbers for n units."""
    gaps = range(1, len(units))
    cues = [cue(units[g - 1], units[g], talk(units)) for g in gaps]
    return [value - sum(cues) / len(cues) for value in cues]
