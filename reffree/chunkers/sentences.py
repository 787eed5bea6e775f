"""Sentences of a text, as spans of characters."""

from __future__ import annotations

from reffree.chunkers.base import Span, library
from reffree.chunkers.spans import trimmed

PACKAGE = "sentencex"
_LINE_BREAKS = "\x85\u2028\u2029"
_SPACES = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_SPACES += "\u202f\u205f\u3000"
# sentencex 1.0.32 panics on a capital, whitespace of several bytes and a full stop ("B\xa0.").
_PLAIN = str.maketrans({**dict.fromkeys(_SPACES, " "), **dict.fromkeys(_LINE_BREAKS, "\n")})


def sentences(text: str, language: str = "en") -> list[Span]:
    """Split with sentencex; spans carry no whitespace at their ends, and none is empty.

    Abbreviations are those of the language; one that sentencex does not know is split by the rules
    of a related language or of English.
    """
    found = library("sentencex", PACKAGE, "reffree chunkers")
    pieces = found.get_sentence_boundaries(language, text.translate(_PLAIN))
    return trimmed(text, [(piece["start_index"], piece["end_index"]) for piece in pieces])
