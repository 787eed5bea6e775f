"""Files that are no text at all, told by how they begin."""

from __future__ import annotations

from reffree.errors import InputError, Place
from reffree.formats.wording import ITS_TEXT

HEAD_BYTES = 4096
_UNPACK = "unpack it first"
_GIVE_TEXT = "give a text file"
_KINDS: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF-", "a PDF file", ITS_TEXT),
    (b"{\\rtf", "an RTF file", ITS_TEXT),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file (.doc, .xls)", ITS_TEXT),
    (b"PK\x03\x04", "a zip file (.docx and .xlsx are such)", f"unpack it, or {ITS_TEXT}"),
    (b"PK\x05\x06", "an empty zip file", _GIVE_TEXT),
    (b"\x1f\x8b", "a gzip file", _UNPACK),
    (b"\xfd7zXZ\0", "an xz file", _UNPACK),
    (b"(\xb5/\xfd", "a zstd file", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z file", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR file", _UNPACK),
    (b"\x89PNG", "a PNG image", _GIVE_TEXT),
    (b"\xff\xd8\xff", "a JPEG image", _GIVE_TEXT),
    (b"\x93NUMPY", "a numpy file", _GIVE_TEXT),
    (b"SQLite format 3\0", "an SQLite database", _GIVE_TEXT),
)


def refuse_binary(head: bytes, place: Place) -> None:
    """Refuse a file by its first bytes, with a sentence that says what it looks like."""
    for magic, kind, remedy in _KINDS:
        if head.startswith(magic):
            raise _looks_like(kind, remedy, place)
    if b"\0" not in head:
        return
    even, odd = head[::2], head[1::2]
    if _is_latin(even, zero=odd) or _is_latin(odd, zero=even):
        raise InputError(
            "what looks like UTF-16 without a byte-order mark",
            expected="UTF-8",
            remedy="save the file as UTF-8",
            place=place,
        )
    raise looks_binary(place, "a GIF image" if head.startswith(b"GIF8") else "a binary file")


def _is_latin(half: bytes, *, zero: bytes) -> bool:
    """Whether every second byte is a letter or so and the others are 0, as in UTF-16."""
    return bool(half) and bool(zero) and min(half) >= ord("\t") and not any(zero)


def looks_binary(place: Place, kind: str = "a binary file") -> InputError:
    """Say that a file is not text."""
    return _looks_like(kind, _GIVE_TEXT, place)


def _looks_like(kind: str, remedy: str, place: Place) -> InputError:
    return InputError(
        f"what looks like {kind}", expected="text in UTF-8", remedy=remedy, place=place
    )
