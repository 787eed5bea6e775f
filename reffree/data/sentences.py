"""Prose into sentences, with sentencex."""

from __future__ import annotations

from importlib.metadata import version

from reffree.util.errors import Place, mistake
from reffree.util.optional import require

LIBRARY = "sentencex"
_LINE_BREAKS = "\x85\u2028\u2029"
_SPACES = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_SPACES += "\u202f\u205f\u3000"
# sentencex 1.0.32 panics on a capital, whitespace of several bytes and a full stop ("B\xa0.").
_PLAIN = str.maketrans({**dict.fromkeys(_SPACES, " "), **dict.fromkeys(_LINE_BREAKS, "\n")})


def sentence_spans(
    text: str, language: str, user: str, place: Place | None = None
) -> list[tuple[int, int]]:
    """Return where sentences begin and end; none is empty or has whitespace at its ends.

    Abbreviations are those of the language; one that sentencex does not know is split by the rules
    of a related language or of English. ``user`` is who needs it, for the error without it, and
    ``place`` where.
    """
    every = "all that are known with pip install 'reffree[chunkers]'"
    missing = mistake(
        place or Place(system=user),
        f"no installed {LIBRARY}",
        f"this library, since {user} needs it",
        f"install it with pip install {LIBRARY}, or {every}",
    )
    found = require(LIBRARY, lambda name: missing)
    spans = []
    for piece in found.get_sentence_boundaries(language, text.translate(_PLAIN)):
        start, end = piece["start_index"], piece["end_index"]
        inside = text[start:end]
        lead = len(inside) - len(inside.lstrip())
        if lead < len(inside):
            spans.append((start + lead, start + len(inside.rstrip())))
    return spans


def splitter(language: str) -> str:
    """Say what splits, with its version, since another may split otherwise."""
    return f"{LIBRARY}@{version(LIBRARY)}({language})"
