"""How much of a thing is taken for meant: beyond, a mistake or a trap is likelier.

A small file can ask for much memory, and a number on the command line for much time. Whoever means
it raises the limit for a run: ``REFFREE_LIMITS=null_draws=1000000,dimension=100000``.
"""

from __future__ import annotations

import os

from reffree.errors import InputError, OptionError, Place, UnknownNameError, shorten

VARIABLE = "REFFREE_LIMITS"
LIMITS = {
    "unit_characters": 1_000_000,  # of one unit, which is a sentence, an utterance, a turn
    "dimension": 65_536,  # numbers in one vector of a file
    "embedding_bytes": 8 * 1024**3,  # of all vectors of a file, once they are unpacked
    "null_draws": 100_000,  # of --null; p is known to 1 in as many
}
DIGITS = 18


def check_limit(name: str, found: int, what: str, place: Place | None = None) -> None:
    """Refuse more than the limit of that name; ``what`` was found, as in ``a unit of 9 bytes``."""
    most = _limits()[name]
    if found > most:
        kind = OptionError if place is None else InputError
        raise kind(
            what,
            expected=f"at most {most:,}",
            remedy=f"check it, or allow more with {VARIABLE}={name}={found}",
            place=place,
        )


def _limits() -> dict[str, int]:
    """Return the limits with those that the environment sets."""
    limits = dict(LIMITS)
    for setting in filter(None, os.environ.get(VARIABLE, "").split(",")):
        name, _, value = setting.partition("=")
        if name not in LIMITS:
            raise UnknownNameError(f"limit in {VARIABLE}", name, LIMITS)
        if not (value.isascii() and value.isdecimal() and len(value) <= DIGITS):
            raise OptionError(
                f"{VARIABLE} {shorten(setting)!r}",
                expected=f"{name}=NUMBER",
                remedy=f"write a whole number, as in {name}={LIMITS[name]}",
            )
        limits[name] = int(value)
    return limits
