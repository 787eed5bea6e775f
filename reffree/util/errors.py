"""Errors a user can act on: every message is one sentence with its place and its remedy.

Also the words that messages are made of, and other people's text made safe to show.

ReffreeError
├── InputError        a file or value the user gave cannot be used (exit code 1)
│   └── OptionError   an option has a value that does not exist (exit code 2)
├── UnknownNameError  a name that no registry knows (exit code 2)
└── EncoderError      a model cannot be found, loaded or trusted (exit code 1)
    └── CacheError    the embedding cache cannot be used (exit code 1)
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

STEERING = re.compile(
    "[\0-\x1f\x7f-\x9f"  # control characters, the line's end among them
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directions of writing
    "\u2028\u2029"  # further ends of lines
    "\ud800-\udfff]"  # halves of characters, which no encoding takes
)
SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


class ReffreeError(Exception):
    """Base of every error reffree raises on purpose; its text is one sentence."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an input came from; any part may be unknown."""

    file: str | None = None
    line: int | None = None
    document: str | None = None
    system: str | None = None

    def __str__(self) -> str:
        """Name the known parts, widest first."""
        parts = [] if self.file is None else [shorten(self.file, 1000)]
        parts += [] if self.line is None else [f"line {self.line}"]
        for kind, name in (("system", self.system), ("document", self.document)):
            parts += [] if name is None else [f"{kind} {shorten(name)!r}"]
        return ", ".join(parts)


class InputError(ReffreeError):
    """Bad input: where it is, what was found, what was expected, what to do."""

    def __init__(
        self, found: str, *, expected: str, remedy: str, place: Place | None = None
    ) -> None:
        """Compose the sentence ``place: found …; expected …; remedy``."""
        self.place = place or Place()
        self.found, self.expected, self.remedy = found, expected, remedy
        where = f"{self.place}: " if str(self.place) else ""
        super().__init__(f"{where}found {found}; expected {expected}; {remedy}")


CHECK = "check the file's format"


def mistake(place: Place | None, found: str, expected: str, remedy: str = CHECK) -> InputError:
    """Return the error for something in a file or a value that is not as it should be."""
    return InputError(found, expected=expected, remedy=remedy, place=place)


class OptionError(InputError):
    """An option's value is not one of those that exist."""


class UnknownNameError(ReffreeError):
    """A name that is not registered; suggests the nearest one and lists all."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        """Compose the sentence, with a suggestion when one is close."""
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1)
        known_names = f"known: {', '.join(names)}" if names else "there is none"
        hint = f"did you mean {near[0]!r}? ({known_names})" if near else known_names
        super().__init__(f"unknown {kind} {shorten(name)!r}; {hint}")


class EncoderError(ReffreeError):
    """A model cannot be found, loaded or trusted."""


class CacheError(EncoderError):
    """The embedding cache cannot be used as it is."""


def check_documents(ids: Iterable[str], known: Iterable[str]) -> None:
    """Refuse ids of documents that are not there; there may be too many to list."""
    there = dict.fromkeys(known)
    for id in ids:
        if id not in there:
            near = difflib.get_close_matches(id, there, n=1)
            raise OptionError(
                f"the document {shorten(id)!r}",
                expected=f"one of the corpus's {counted(len(there), 'id')}, such as "
                f"{shorten((near or list(there))[0])!r}",
                remedy="check the id, or leave it out for all documents",
            )


@contextmanager
def located(place: Place) -> Iterator[None]:
    """Add a place to an `InputError` raised inside by a value that does not know its own."""
    try:
        yield
    except InputError as error:
        raise InputError(
            error.found, expected=error.expected, remedy=error.remedy, place=place
        ) from None


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one.

    >>> counted(1, "document"), counted(1200, "unit")
    ('1 document', '1,200 units')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listed(words: Iterable[str]) -> str:
    """Join words as a sentence does.

    >>> listed(["pk"]), listed(["pk", "bor"]), listed(["a", "b", "c"])
    ('pk', 'pk and bor', 'a, b and c')
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def listed_briefly(words: Sequence[str], most: int = 3) -> str:
    """Join words as `listed` does; of many the first, and how many others there are.

    >>> listed_briefly("abcd"), listed_briefly("abcdefg")
    ('a, b, c and d', 'a, b, c and 4 others')
    """
    is_short = len(words) <= most + 1
    return listed(words if is_short else [*words[:most], f"{len(words) - most} others"])


def first_line(error: BaseException) -> str:
    """Return the first line of what an exception says, or its name where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def shorten(value: object, limit: int = 60) -> str:
    """Show a value in an error message without flooding the terminal."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def visible(text: str) -> str:
    r"""Return one line of text in which nothing steers.

    >>> visible("a\x1b[31mb\n\u202ec")
    'a\\x1b[31mb\\n\\u202ec'
    """

    def spelt(found: re.Match[str]) -> str:
        code = ord(found.group())
        return SHORT.get(found.group()) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")

    return STEERING.sub(spelt, text)


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
