"""JSON as the standard has it, and fields of it: what is wrong becomes a sentence.

No repeated keys, no NaN, no lone surrogates, no endless nesting. A `Record` is an object that knows
its place and refuses what it does not have.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from typing import Any, NoReturn, TypeVar, cast

from reffree.util.errors import CHECK, Place, mistake, shorten

INTO_JSONL = (
    "into a .jsonl file, one document a line such as "
    '{"id": "a", "units": ["One.", "Two."], "systems": {"mine": [1, 1]}}'
)
OWN_TEXT = f"put text of your own {INTO_JSONL}"
MAX_DEPTH = 100
MAX_DIGITS = 1000
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOO_DEEP = "endlessly nested lists or objects", f"nest at most {MAX_DEPTH} deep"
_KINDS = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}
_EXPECTED = {dict: "an object in braces", list: "a list in brackets", str: "text"}
T = TypeVar("T", dict[str, Any], list[Any], str)


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
        _refuse(*_TOO_DEEP, place)
    _check_tree(value, place, strings=_ESCAPED_SURROGATE.search(text) is not None)
    return value


def _refuse_syntax(
    error: json.JSONDecodeError, place: Place, *, whole: bool, cut: str | None
) -> NoReturn:
    """Say what is wrong with a text that is no JSON, and where the repair is plain, which."""
    text, at = error.doc, error.pos
    found = f"text that is not JSON ({error.msg.removesuffix(' at')} at character {error.colno})"
    remedy = "repair it, or name the right format with --format"
    before = text[:at].rstrip()
    comma = None
    if error.msg.startswith("Illegal trailing comma"):  # Python 3.13 points at the comma itself
        comma = at
    elif error.msg == "Extra data":
        comma = at if text[at:].strip() == "," and text.lstrip()[0] in "{[" else None
    elif text[at : at + 1] in ("]", "}") and before.endswith(","):
        comma = len(before) - 1
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
    elif at >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        remedy = cut or remedy
    line = text.count("\n", 0, at) + 1
    _refuse(found, remedy, replace(place, line=line) if whole and text.strip() else place)


def _refuse(found: str, remedy: str, place: Place) -> NoReturn:
    raise mistake(place, found, "valid JSON", remedy) from None


def _check_tree(value: object, place: Place, *, strings: bool) -> None:
    """Refuse deep nesting and, if the text has such escapes, surrogates without their pair."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            _refuse(*_TOO_DEEP, place)
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


# Fields


class Record(dict[str, Any]):
    """A JSON object with its place."""

    def __init__(self, value: object, what: str, place: Place, remedy: str = CHECK) -> None:
        """Refuse a value that is no object; ``what`` names it for messages."""
        super().__init__(typed(value, dict, what, place, remedy))
        self.place = place

    def need(self, key: str, what: str = "", remedy: str | None = None) -> Any:  # noqa: ANN401
        """Return a field that must be there; ``what`` says what it holds."""
        if key in self:
            return self[key]
        near = nearest(key, self)
        found = f"no {key!r} among {listed(self)}" if self else "an empty object"
        expected = f"the field {key!r}, {what}" if what else f"the field {key!r}"
        usual = "add it" if near is None else f"rename {shorten(near)!r} to {key!r}"
        raise mistake(self.place, found, expected, remedy or usual)

    def refuse_others(self, known: Collection[str], remedy: str = "remove it") -> None:
        """Refuse a key that is none of those known."""
        for key in self:
            if key not in known:
                found = f"the unknown key {shorten(key)!r}"
                raise mistake(self.place, found, f"only {listed(known)}", remedy)

    def need_text(self, key: str) -> str:
        """Return a field that must be text."""
        return typed(self.need(key), str, repr(key), self.place)

    def need_list(self, key: str) -> list[Any]:
        """Return a field that must be a list."""
        return typed(self.need(key), list, repr(key), self.place)

    def need_object(self, key: str) -> Record:
        """Return a field that must be an object."""
        return Record(self.need(key), repr(key), self.place)

    def objects(self, key: str, what: str, *, optional: bool = False) -> list[Record]:
        """Return a field that must be a list of objects; ``what`` names one of them."""
        values = (self.get(key) or []) if optional else self.need(key)
        values = typed(values, list, f"{what}s", self.place)
        return [Record(each, f"{what} {i + 1}", self.place) for i, each in enumerate(values)]

    def identify(self, key: str, default: str) -> str:
        """Return the document's id, which may be a number, and add it to the place."""
        value = self.get(key)
        value = default if value is None else value
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            remedy = f"name the document, such as {default!r}"
            raise mistake(self.place, f"the {key} {shorten(value)}", "text or a number", remedy)
        self.place = replace(self.place, document=str(value))
        return str(value)


def typed(value: object, kind: type[T], what: str, place: Place, remedy: str = CHECK) -> T:
    """Return a value of this kind; ``what`` names it for messages."""
    if isinstance(value, kind):
        return value
    name = "null" if value is None else _KINDS.get(type(value), str(value).lower())
    raise mistake(place, f"{name} as {what}", _EXPECTED[kind], remedy)


def zero_or_one(label: object, what: str, place: Place) -> int:
    """Read a label that is 0 or 1, or its text; ``what`` says where it stands."""
    text = str(label).strip()
    if text in ("0", "1", "0.0", "1.0"):
        return int(text[0])
    raise mistake(place, f"the label {shorten(label)} {what}", "0 or 1", "correct the label")


def read_seconds(value: object, what: str, place: Place, remedy: str) -> float:
    """Return a time from a number or its text; ``what`` names it for messages."""
    try:
        seconds = -1.0 if isinstance(value, bool) else float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        seconds = -1.0
    if 0 <= seconds < 1e9:
        return seconds
    raise mistake(place, what, "seconds from the start", remedy)


def nearest(key: str, known: Collection[str]) -> str | None:
    """Return the key that differs by a slip of the pen only."""
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    return near[0] if near else None


def listed(keys: Collection[str], limit: int = 8) -> str:
    """Show keys in quotes, the first few of many."""
    shown = ", ".join(repr(shorten(key)) for key in list(keys)[:limit])
    return shown if len(keys) <= limit else f"{shown}, …"
