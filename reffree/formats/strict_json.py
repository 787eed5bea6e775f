"""JSON as the standard has it: no repeated keys, no NaN, no lone surrogates, no endless nesting."""

from __future__ import annotations

import json
import math
import re
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
