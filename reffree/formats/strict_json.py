"""JSON as the standard has it: no repeated keys, no NaN, no lone surrogates, no endless nesting."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from typing import NoReturn

from reffree.util.errors import InputError, Place, shorten

INTO_JSONL = (
    "into a .jsonl file, one document a line such as "
    '{"id": "a", "units": ["One.", "Two."], "systems": {"mine": [1, 1]}}'
)
OWN_TEXT = f"put text of your own {INTO_JSONL}"
MAX_DEPTH = 100
MAX_DIGITS = 1000
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}


def parse(text: str, place: Place, *, whole: bool = False, cut: str | None = None) -> object:
    """Read one JSON value; with ``whole`` the text is a file, so its lines are counted.

    ``cut`` is the remedy for a text that ends before its value does.
    """

    def integer(digits: str) -> int:
        if len(digits) > MAX_DIGITS:
            _refuse(f"a number of {len(digits)} digits", "write it as a string", place)
        return int(digits)

    def real(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            constant(digits)
        return value

    def constant(name: str) -> NoReturn:
        _refuse(f"the number {shorten(name)}", "write null or leave the field out", place)

    def unique(items: list[tuple[str, object]]) -> dict[str, object]:
        if len(table := dict(items)) != len(items):
            twice = next(a for a, b in pairwise(sorted(key for key, _ in items)) if a == b)
            _refuse(f"the key {shorten(twice)!r} twice in one object", "keep one of them", place)
        return table

    try:
        value: object = json.loads(
            text,
            object_pairs_hook=unique,
            parse_constant=constant,
            parse_float=real,
            parse_int=integer,
        )
    except json.JSONDecodeError as error:
        _refuse_syntax(error, place, whole=whole, cut=cut)
    except RecursionError:
        _refuse("endlessly nested lists or objects", f"nest at most {MAX_DEPTH} deep", place)
    _check_tree(value, place, strings=_ESCAPED_SURROGATE.search(text) is not None)
    return value


def _refuse_syntax(
    error: json.JSONDecodeError, place: Place, *, whole: bool, cut: str | None
) -> NoReturn:
    """Say what is wrong with a text that is no JSON, and where the repair is plain, which."""
    text, at = error.doc, error.pos
    found = f"text that is not JSON ({error.msg.removesuffix(' at')} at character {error.colno})"
    remedy = "repair it, or name the right format with --format"
    comma = _needless_comma(error)
    if not text.strip():
        found, remedy = "an empty file", "check that the file is the right one"
    elif comma is not None:
        at = comma
        column = at - text.rfind("\n", 0, at)
        found, remedy = f"a needless comma at character {column}", "remove the comma"
    elif text.lstrip()[0] not in "{[":
        at = len(text) - len(text.lstrip())
        found = f"plain text, not JSON, {shorten(text.strip().splitlines()[0])!r}"
        remedy = f"{OWN_TEXT}, or name the right format with --format"
    elif cut is not None and (
        at >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    ):
        remedy = cut
    line = text.count("\n", 0, at) + 1
    _refuse(found, remedy, replace(place, line=line) if whole and text.strip() else place)


def _needless_comma(error: json.JSONDecodeError) -> int | None:
    """Find the comma before ``]`` or ``}`` or after a whole value, if that is the mistake."""
    text, at = error.doc, error.pos
    if error.msg.startswith("Illegal trailing comma"):  # Python 3.13 points at the comma itself
        return at
    if error.msg == "Extra data":
        return at if text[at:].strip() == "," and text.lstrip()[0] in "{[" else None
    before = text[:at].rstrip()
    return len(before) - 1 if text[at : at + 1] in ("]", "}") and before.endswith(",") else None


def _refuse(found: str, remedy: str, place: Place) -> NoReturn:
    raise InputError(found, expected="valid JSON", remedy=remedy, place=place) from None


def _check_tree(value: object, place: Place, *, strings: bool) -> None:
    """Refuse deep nesting and, if the text has such escapes, surrogates without their pair."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            _refuse("endlessly nested lists or objects", f"nest at most {MAX_DEPTH} deep", place)
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
                if strings:
                    below += item
            elif isinstance(item, list):
                below += item
            elif strings and isinstance(item, str) and (match := _SURROGATE.search(item)):
                code = f"\\u{ord(match.group()):04x}"
                _refuse(f"the lone surrogate {code} in a string", "replace the character", place)
        level = [item for item in below if strings or isinstance(item, (dict, list))]


def as_object(
    value: object, what: str, place: Place, remedy: str | None = None
) -> dict[str, object]:
    """Return the value if it is a JSON object."""
    if isinstance(value, dict):
        return value
    raise _wrong_kind(value, what, "an object in braces", place, remedy)


def as_list(value: object, what: str, place: Place) -> list[object]:
    """Return the value if it is a JSON list."""
    if isinstance(value, list):
        return value
    raise _wrong_kind(value, what, "a list in brackets", place)


def as_objects(value: object, what: str, place: Place) -> list[dict[str, object]]:
    """Return the value if it is a list of objects; ``what`` names one of them."""
    return [
        as_object(each, f"{what} {i + 1}", place)
        for i, each in enumerate(as_list(value, f"{what}s", place))
    ]


def list_field(table: dict[str, object], key: str, place: Place) -> list[object]:
    """Return a field that must be a list."""
    return as_list(require_field(table, key, place), f"{key!r}", place)


def require_field(
    table: dict[str, object],
    key: str,
    place: Place,
    *,
    what: str | None = None,
    remedy: str | None = None,
) -> object:
    """Return a field that must be there; ``what`` says what it holds."""
    if key in table:
        return table[key]
    near = nearest(key, table)
    raise InputError(
        f"no {key!r} among {listed(table)}" if table else "an empty object",
        expected=f"the field {key!r}" if what is None else f"the field {key!r}, {what}",
        remedy=remedy or ("add it" if near is None else f"rename {shorten(near)!r} to {key!r}"),
        place=place,
    )


def nearest(key: str, known: Collection[str]) -> str | None:
    """Return the key that differs by a slip of the pen only."""
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    return near[0] if near else None


def _wrong_kind(
    value: object, what: str, expected: str, place: Place, remedy: str | None = None
) -> InputError:
    kind = "null" if value is None else _KINDS.get(type(value), str(value).lower())
    return InputError(
        f"{kind} as {what}",
        expected=expected,
        remedy=remedy or "check the file's format",
        place=place,
    )


def listed(keys: Collection[str], limit: int = 8) -> str:
    """Show keys in quotes, the first few of many."""
    shown = ", ".join(repr(shorten(key)) for key in list(keys)[:limit])
    return shown if len(keys) <= limit else f"{shown}, …"
