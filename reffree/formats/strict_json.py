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

from reffree.errors import InputError, Place, shorten

MAX_DEPTH = 100
MAX_DIGITS = 1000
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}


def parse(text: str, place: Place, *, whole: bool = False) -> object:
    """Read one JSON value; with ``whole`` the text is a file, so its lines are counted."""

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
        _refuse(
            f"text that is not JSON ({error.msg} at character {error.colno})",
            "repair it, or name the right format with --format",
            replace(place, line=error.lineno) if whole else place,
        )
    except RecursionError:
        _refuse("endlessly nested lists or objects", f"nest at most {MAX_DEPTH} deep", place)
    _check_tree(value, place, strings=_ESCAPED_SURROGATE.search(text) is not None)
    return value


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


def as_object(value: object, what: str, place: Place) -> dict[str, object]:
    """Return the value if it is a JSON object."""
    if isinstance(value, dict):
        return value
    raise _wrong_kind(value, what, "an object in braces", place)


def as_list(value: object, what: str, place: Place) -> list[object]:
    """Return the value if it is a JSON list."""
    if isinstance(value, list):
        return value
    raise _wrong_kind(value, what, "a list in brackets", place)


def field(table: dict[str, object], key: str, place: Place, remedy: str | None = None) -> object:
    """Return a field that must be there."""
    if key in table:
        return table[key]
    near = difflib.get_close_matches(key, table, n=1)
    raise InputError(
        f"no {key!r} among {_listed(table)}" if table else "an empty object",
        expected=f"the field {key!r}",
        remedy=remedy or (f"rename {near[0]!r}" if near else "add it"),
        place=place,
    )


def refuse_unknown(table: dict[str, object], known: Collection[str], place: Place) -> None:
    """Refuse a key that the format does not have, and suggest the one that was meant."""
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise InputError(
                f"the unknown key {shorten(key)!r}",
                expected=f"only {_listed(known)}",
                remedy=f"did you mean {near[0]!r}?" if near else "move it into 'meta'",
                place=place,
            )


def _wrong_kind(value: object, what: str, expected: str, place: Place) -> InputError:
    kind = "null" if value is None else _KINDS.get(type(value), str(value).lower())
    return InputError(
        f"{kind} as {what}", expected=expected, remedy="check the file's format", place=place
    )


def _listed(keys: Collection[str], limit: int = 8) -> str:
    shown = ", ".join(repr(shorten(key)) for key in list(keys)[:limit])
    return shown if len(keys) <= limit else f"{shown}, …"
