"""Fields of what was read: a JSON object that knows its place and refuses what it does not have."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

from reffree.util.errors import CHECK, InputError, Place, mistake, shorten

_KINDS = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}


class Record(dict[str, Any]):
    """A JSON object with its place."""

    def __init__(self, value: object, what: str, place: Place, remedy: str = CHECK) -> None:
        """Refuse a value that is no object; ``what`` names it for messages."""
        if not isinstance(value, dict):
            raise _wrong_kind(value, what, "an object in braces", place, remedy)
        super().__init__(value)
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
        value = self.need(key)
        if isinstance(value, str):
            return value
        raise _wrong_kind(value, f"{key!r}", "text", self.place)

    def need_list(self, key: str) -> list[Any]:
        """Return a field that must be a list."""
        return as_list(self.need(key), f"{key!r}", self.place)

    def need_object(self, key: str) -> Record:
        """Return a field that must be an object."""
        return Record(self.need(key), f"{key!r}", self.place)

    def objects(self, key: str, what: str, *, optional: bool = False) -> list[Record]:
        """Return a field that must be a list of objects; ``what`` names one of them."""
        values = (self.get(key) or []) if optional else self.need(key)
        return [
            Record(each, f"{what} {i + 1}", self.place)
            for i, each in enumerate(as_list(values, f"{what}s", self.place))
        ]

    def identify(self, key: str, default: str) -> str:
        """Return the document's id, which may be a number, and add it to the place."""
        value = self.get(key)
        value = default if value is None else value
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            remedy = f"name the document, such as {default!r}"
            raise mistake(self.place, f"the {key} {shorten(value)}", "text or a number", remedy)
        self.place = replace(self.place, document=str(value))
        return str(value)


def as_list(value: object, what: str, place: Place) -> list[Any]:
    """Return the value if it is a JSON list."""
    if isinstance(value, list):
        return value
    raise _wrong_kind(value, what, "a list in brackets", place)


def _wrong_kind(
    value: object, what: str, expected: str, place: Place, remedy: str = CHECK
) -> InputError:
    kind = "null" if value is None else _KINDS.get(type(value), str(value).lower())
    return mistake(place, f"{kind} as {what}", expected, remedy)


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
