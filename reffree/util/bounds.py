"""Numbers that users give, and how large they may be.

A number says its bounds beside its type, as in ``k: Annotated[int, Bounds(1)]``: `naming` and
`declare` read them. What has others is checked where it is made (`check_whole`, `check_number`).

A small file can ask for much memory, and a number on the command line for much time: beyond
`LIMITS` a mistake or a trap is likelier. Whoever means it raises the limit for a run:
``REFFREE_LIMITS=null_draws=1000000,dimension=100000``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any, TypeVar, get_args, get_origin

from reffree.util.errors import InputError, OptionError, Place, UnknownNameError, shorten

T = TypeVar("T")
MANY = 10**9
"""More units than any document has; sums and products of two such numbers do not overflow."""

DEFAULT = "leave it out for its default"
VARIABLE = "REFFREE_LIMITS"
LIMITS = {
    "unit_characters": 1_000_000,  # of one unit, which is a sentence, an utterance, a turn
    "dimension": 65_536,  # numbers in one vector of a file
    "embedding_bytes": 8 * 1024**3,  # of all vectors of a file, once they are unpacked
    "input_bytes": 4 * 1024**3,  # of all that one call reads, once it is unpacked
    "input_rows": 2_000_000,  # lines of files, rows of tables, of all that one call reads
    "input_units": 10_000_000,  # of documents without text, which only segmentations tell of
    "explained_units": 5_000,  # of a document for --explain, whose time grows with their square
    "compared_systems": 500,  # each with every other
    "null_draws": 100_000,  # of --null; p is known to 1 in as many
}


class LimitError(InputError):
    """What was read is more than a limit allows."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most a number may be, both included."""

    least: int = 0
    most: int = MANY
    remedy: str = DEFAULT

    def __get_pydantic_core_schema__(self, source: object, handler: Any) -> dict[str, Any]:  # noqa: ANN401
        """Let pydantic hold a field to the bounds; NumPy's whole numbers are whole numbers, too."""
        from pydantic_core import core_schema

        schema = handler(source)
        whole = schema.get("schema", schema)  # it is inside that of a number that may be None
        bounded: Any = {**whole, "ge": self.least, "le": self.most}
        checked: Any = core_schema.no_info_before_validator_function(_plain_whole, bounded)
        return dict(checked) if whole is schema else {**schema, "schema": checked}


def _plain_whole(value: object) -> object:
    """Turn a whole number of any library into Python's own."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return int(value) if is_whole else value  # type: ignore[call-overload]


MOST_SEED = 2**53  # what any reader of JSON takes for a whole number

Seed = Annotated[int, Bounds(0, MOST_SEED)]
Count = Annotated[int, Bounds(0)]
Positive = Annotated[int, Bounds(1)]


def beside(hint: object, kind: type[T]) -> T | None:
    """Return what of a kind stands beside a type, in ``Annotated``, if anything does."""
    found = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((each for each in found if isinstance(each, kind)), None)


def check_whole(
    option: str, value: object, least: int = 0, most: int = MANY, *, remedy: str = DEFAULT
) -> None:
    """Refuse what is no whole number, or one out of its bounds."""
    check_number(option, value, least, most, remedy=remedy, is_whole=True)


def check_number(
    option: str,
    value: Any,  # noqa: ANN401
    least: float = -MANY,
    most: float = MANY,
    *,
    remedy: str = DEFAULT,
    is_whole: bool = False,
) -> None:
    """Refuse what is no number, not finite, or out of its bounds."""
    kind = Integral if is_whole else Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        is_small = not value > most if is_number else is_whole
        bound = f"{least:,} or more" if is_small else f"{most:,} or less"
        raise OptionError(
            f"{option} = {show_value(value)}",
            expected=f"a {'whole ' * is_whole}number, {bound}",
            remedy=remedy,
        )


def check_choice(option: str, value: object, choices: Sequence[str], default: str) -> None:
    """Refuse what is none of the choices."""
    if value not in choices:
        raise OptionError(
            f"{option} = {shorten(str(value))}",
            expected=" or ".join(choices),
            remedy=f"leave it out for {default}",
        )


def check_limit(
    name: str, found: int, what: str, place: Place | None = None, enough: int | None = None
) -> None:
    """Refuse more than the limit of that name; ``what`` was found, as in ``a unit of 9 bytes``.

    ``enough`` is the limit to try where not all was counted.
    """
    most = limit(name)
    if found > most:
        kind = OptionError if place is None else LimitError
        raise kind(
            what,
            expected=f"at most {most:,}",
            remedy=f"check it, or allow more with {VARIABLE}={name}={enough or found}",
            place=place,
        )


def limit(name: str) -> int:
    """Return the limit of a name, as the environment sets it."""
    limits = dict(LIMITS)
    for setting in filter(None, os.environ.get(VARIABLE, "").split(",")):
        key, _, value = setting.partition("=")
        if key not in LIMITS:
            raise UnknownNameError(f"limit in {VARIABLE}", key, LIMITS)
        if not (value.isascii() and value.isdecimal() and len(value) <= 18):
            raise OptionError(
                f"{VARIABLE} {shorten(setting)!r}",
                expected=f"{key}=NUMBER",
                remedy=f"write a whole number, as in {key}={LIMITS[key]}",
            )
        limits[key] = int(value)
    return limits[name]


def show_value(value: object) -> str:
    """Show a value; Python writes out no whole number of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {int(value.bit_length() * math.log10(2)):,} digits or so"
    return shorten(str(value))
