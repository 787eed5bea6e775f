"""Other people's text, safe to show: what steers a terminal or turns text round is spelt out."""

from __future__ import annotations

import re

STEERING = re.compile(
    "[\0-\x1f\x7f-\x9f"  # control characters, the line's end among them
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directions of writing
    "\u2028\u2029"  # further ends of lines
    "\ud800-\udfff]"  # halves of characters, which no encoding takes
)
SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def visible(text: str) -> str:
    r"""Return one line of text in which nothing steers.

    >>> visible("a\x1b[31mb\n\u202ec")
    'a\\x1b[31mb\\n\\u202ec'
    """
    return STEERING.sub(lambda found: _spelt(found.group()), text)


def visible_json(text: str, *, halves: bool = True) -> str:
    r"""Spell the same characters in JSON; what it says stays the same, and so do its lines.

    Without ``halves``, halves of characters stay, for whoever writes the text to refuse.

    >>> visible_json('{\n"id": "a\u202eb"}')
    '{\n"id": "a\\u202eb"}'
    """

    def spelt(found: re.Match[str]) -> str:
        character = found.group()
        stays = character == "\n" or (character >= "\ud800" and not halves)
        return character if stays else f"\\u{ord(character):04x}"

    return STEERING.sub(spelt, text)


def _spelt(character: str) -> str:
    code = ord(character)
    return SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
