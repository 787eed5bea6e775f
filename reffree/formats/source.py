"""Where bytes come from: a file or stdin, read as UTF-8 line by line within a hard limit.

Every way a file can fail to be text (missing, unreadable, a folder, binary, UTF-16, invalid UTF-8,
a line too long to hold) becomes an `InputError` here. A byte-order mark and Windows line ends are
accepted, and each leaves one sentence in `Source.notes`, one for all files of a folder. What is
packed with gzip is unpacked on the way. What one call reads is counted (`Used`): of a file before
anything is made of its lines, of standard input as it is read. More than the limits of
`reffree.util.bounds` is refused.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from reffree.formats.strict_json import INTO_JSONL, parse
from reffree.util.bounds import check_limit, limit
from reffree.util.errors import InputError, Place, counted, mistake, shorten

MAX_LINE_BYTES = 64 * 1024 * 1024
PART_BYTES = 1024 * 1024
STDIN = "<stdin>"
LINE_SUFFIXES = (".jsonl", ".ndjson")
PACKED = ".gz"
_GZIP = b"\x1f\x8b"

_HEAD_BYTES = 4096
_ITS_TEXT = f"put its text {INTO_JSONL}"
_UNPACK = "unpack it first"
_ZIP = "a zip file (.docx and .xlsx are such)"
_GIVE_TEXT = "give a text file"
_KINDS: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF-", "a PDF file", "give it as a .pdf file"),
    (b"{\\rtf", "an RTF file", _ITS_TEXT),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file (.doc, .xls)", _ITS_TEXT),
    (b"PK\x03\x04", _ZIP, "give it as a .docx file, or unpack it"),
    (b"PK\x05\x06", "an empty zip file", _GIVE_TEXT),
    (_GZIP, "a gzip file in a gzip file", "unpack it once first"),
    (b"\xfd7zXZ\0", "an xz file", _UNPACK),
    (b"(\xb5/\xfd", "a zstd file", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z file", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR file", _UNPACK),
    (b"\x89PNG", "a PNG image", _GIVE_TEXT),
    (b"\xff\xd8\xff", "a JPEG image", _GIVE_TEXT),
    (b"\x93NUMPY", "a numpy file", _GIVE_TEXT),
    (b"SQLite format 3\0", "an SQLite database", _GIVE_TEXT),
)
"""How files begin that are no text at all, what they are, and what to do."""

_ODDITIES = {
    "mark": (
        *("a byte-order mark", "byte-order marks", "plain UTF-8"),
        *("it was ignored, save the file without it", "ignored, save the files without them"),
    ),
    "crlf": (
        *("a Windows line end (CRLF)", "Windows line ends (CRLF)", "LF"),
        *("all were read as LF, save the file with LF", "read as LF, save the files with LF"),
    ),
}
"""What is accepted: in one file and in several, what is expected, what was and may be done."""


class Used:
    """What the sources of one call hold: bytes, rows and units, each within its limit.

    A stream holds nothing. Without need of text its units may be numbers.
    """

    def __init__(self, *, is_stream: bool = False, text_needed: bool = True) -> None:
        """Nothing is used yet."""
        self.is_stream, self.text_needed = is_stream, text_needed
        self.rows = self.bytes = self.units = 0
        self.most = {name: limit(name) for name in ("input_rows", "input_bytes")}

    def add(self, rows: int, n_bytes: int, place: Place) -> None:
        """Count rows and bytes; refuse too many, of which there may be ten times as many."""
        self.rows += 0 if self.is_stream else rows
        self.bytes += 0 if self.is_stream else n_bytes
        counts = (self.rows, "lines or rows"), (self.bytes, "bytes of input")
        for (name, most), (n, what) in zip(self.most.items(), counts, strict=True):
            if n > most:
                check_limit(name, n, f"{n:,} {what}, or more", place, 10 * n)

    def add_units(self, n: int, place: Place) -> None:
        """Count units before anything is made of them; refuse too many."""
        self.units = min(self.units + n, 10**18)
        check_limit("input_units", self.units, f"{self.units:,} units", place)


class Source:
    """One input, named as the user named it; ``-`` is stdin, which can be read once.

    ``used`` counts what is held by the call that it belongs to: a file once, however often it is
    read. ``head``, ``value`` and ``shown`` tell its format; of stdin they are what was read so far.
    """

    def __init__(self, path: str | Path, used: Used | None = None) -> None:
        """Remember the path; nothing is opened yet."""
        self.used = used or Used()
        self._is_counted = self.used.is_stream
        self.is_stdin = str(path) == "-"
        self.path = Path(path)
        self.name = STDIN if self.is_stdin else str(path)
        self.notes: list[str] = []
        self.oddities: dict[str, str] = {}
        self._head = ""

    @property
    def suffix(self) -> str:
        """The extension in lower case, that of the content if it is packed; stdin has none."""
        return "" if self.is_stdin else unpacked_name(self.path).suffix.lower()

    @property
    def is_folder(self) -> bool:
        """Whether the path is a folder."""
        return not self.is_stdin and is_folder(self.path)

    @property
    def head(self) -> str:
        """The first line that is not blank."""
        if not self._head and not self.is_stdin:
            next(self.lines_with_text(), None)
        return self._head

    @cached_property
    def value(self) -> dict[str, Any]:
        """The first JSON object: of a line, of the file, or of its list; else an empty one."""
        value: object = None
        is_object = self.head.startswith("{")
        if self.is_stdin:
            value = parse(self.head, self.place()) if is_object else None
        elif is_object and self.is_json_lines:
            _, value = next(self.json_lines())
        elif is_object or (self.head.startswith("[") and not re.match(r"\[\s*\d+:", self.head)):
            value = self.json[0] if isinstance(self.json, list) and self.json else self.json
        return value if isinstance(value, dict) else {}

    def shown(self) -> Iterator[str]:
        """Yield the lines that are not blank."""
        if self.is_stdin:
            return iter([self.head] if self.head else [])
        return (text for _, text in self.lines_with_text())

    @property
    def stem(self) -> str:
        """The file's name without its extension, for formats that name their document by it."""
        name = unpacked_name(self.path).stem
        return "stdin" if self.is_stdin else checked_name(name, self.place())

    def place(self, line: int | None = None) -> Place:
        """Name this source, or a line of it, for an error."""
        return Place(file=self.name, line=line)

    def note(self, found: str, expected: str, remedy: str, line: int | None = None) -> None:
        """Keep a sentence for the user, once."""
        error = mistake(self.place(line), found, expected, remedy)
        if str(error) not in self.notes:
            self.notes.append(str(error))

    def _note_oddity(self, kind: str, line: int) -> None:
        """Note something accepted about the file, once, and remember it for the folder's note."""
        if kind in self.oddities:
            return
        found, _, expected, remedy, _ = _ODDITIES[kind]
        self.note(found, expected, f"{remedy} to silence this", line)
        self.oddities[kind] = self.notes[-1]

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield (number from 1, text without its line end); only a line feed ends a line."""
        number = 0
        with self._opened() as handle:
            while raw := handle.readline(MAX_LINE_BYTES + 1):
                number += 1
                if number == 1:
                    _refuse_binary(raw[:_HEAD_BYTES], self.place())
                if len(raw) > MAX_LINE_BYTES:
                    found = f"a line of more than {MAX_LINE_BYTES:,} bytes"
                    remedy = "put one document on a line, or split this document"
                    raise mistake(self.place(number), found, "at most that many in a line", remedy)
                if not self._is_counted and self.path.is_file():
                    self._count()
                if not self._is_counted:
                    self.used.add(1, len(raw), self.place(number))
                text = self._decode(raw, number)
                self._head = self._head or text.strip()
                yield number, text

    def _count(self) -> None:
        """Count the lines and bytes of a file, which is opened once more, up to the limits."""
        self._is_counted = True
        last = b""
        with self._opened() as handle:
            while part := handle.read(PART_BYTES):
                self.used.add(part.count(b"\n"), len(part), self.place())
                last = part
        self.used.add(not last.endswith(b"\n"), 0, self.place())

    def lines_with_text(self) -> Iterator[tuple[int, str]]:
        """Yield the lines that are not blank."""
        return ((number, text) for number, text in self.lines() if text.strip())

    def content(self) -> bytes:
        """All bytes at once, for formats that say their own encoding."""
        parts: list[bytes] = []
        with self._opened() as handle:
            while part := handle.read(MAX_LINE_BYTES):
                parts.append(part)
                self.used.add(0, len(part), self.place())
        return b"".join(parts)

    def _decode(self, raw: bytes, number: int) -> str:
        has_mark = number == 1 and raw.startswith(codecs.BOM_UTF8)
        if has_mark:
            self._note_oddity("mark", 1)
        if raw.endswith(b"\r\n"):
            self._note_oddity("crlf", number)
        line = raw.removesuffix(b"\n").removesuffix(b"\r") if raw[-2:] == b"\r\n" else raw
        start = len(codecs.BOM_UTF8) * has_mark
        try:
            return line.removesuffix(b"\n")[start:].decode("utf-8")
        except UnicodeDecodeError as error:
            if b"\0" in raw:
                raise _looks_like("a binary file", self.place()) from None
            byte = start + error.start
            found = f"the byte 0x{raw[byte]:02x} at offset {byte} of the line, which is not UTF-8"
            raise mistake(self.place(number), found, "UTF-8", "save the file as UTF-8") from None

    @cached_property
    def json(self) -> object:
        """The whole input as one JSON value."""
        text = "\n".join(text for _, text in self.lines())
        return parse(text, self.place(), whole=True)

    def json_lines(self) -> Iterator[tuple[int, object]]:
        """Yield (line number, JSON value) for every line that is not blank."""
        rule = "a .jsonl file" if self.suffix in LINE_SUFFIXES else "JSONL"
        cut = f"put every document on one line, since {rule} has one whole document per line"
        for number, text in self.lines_with_text():
            yield number, parse(text, self.place(number), cut=cut)

    @cached_property
    def is_json_lines(self) -> bool:
        """Whether JSON stands one value a line: by extension, or as two lines, the first whole."""
        if self.is_stdin or self.suffix in LINE_SUFFIXES:
            return True
        head = [text.strip() for _, text in islice(self.lines_with_text(), 2)]
        return len(head) == 2 and head[0].startswith("{") and head[0].endswith("}")

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """Open it, and unpack what begins as gzip does; what cannot be read is a sentence."""
        if self.is_stdin and sys.stdin is None:
            remedy = "give a file instead of -"
            raise mistake(self.place(), "no standard input", "a stream to read", remedy)
        try:
            with nullcontext(sys.stdin.buffer) if self.is_stdin else self.path.open("rb") as handle:
                own = None if hasattr(handle, "peek") else io.BufferedReader(cast(Any, handle))
                buffered = cast(Any, own or handle)
                try:
                    is_packed = buffered.peek(2)[:2] == _GZIP
                    yield cast(Any, gzip.GzipFile(fileobj=buffered) if is_packed else buffered)
                finally:
                    if own is not None:
                        own.detach()
        except (EOFError, zlib.error, gzip.BadGzipFile):
            found = "a gzip file that is damaged or cut off"
            remedy = "pack it again, or give the file as it was before"
            raise mistake(self.place(), found, "a whole one", remedy) from None
        except (OSError, ValueError) as error:
            raise unreadable(error, self.place()) from None

    @cached_property
    def files(self) -> dict[str, Source]:
        """Every file of a folder that is not hidden, sorted by its relative posix path."""

        def refuse(error: OSError) -> None:
            raise unreadable(error, Place(file=error.filename or self.name)) from None

        found: dict[str, Path] = {}
        for root, folders, names in os.walk(self.path, onerror=refuse):
            folders[:] = [folder for folder in folders if not folder.startswith(".")]
            for folder in folders:
                if (Path(root) / folder).is_symlink():
                    remedy = "it was not followed, give that folder by itself"
                    self.note(f"a link to another folder, {folder!r}", "files and folders", remedy)
            paths = [Path(root) / name for name in names if not name.startswith(".")]
            found |= {path.relative_to(self.path).as_posix(): path for path in paths}
        return {name: Source(path, self.used) for name, path in sorted(found.items())}

    @property
    def suffixes(self) -> set[str]:
        """The endings of a folder's files."""
        return {file.suffix for file in self.files.values()}

    def opened(self, files: Iterable[tuple[str, Source]]) -> Iterator[tuple[str, Source]]:
        """Yield files of this folder to be read; what several of them had becomes one note."""
        sources = []
        for name, file in files:
            sources.append(file)
            yield name, file
        for kind, (_, found, expected, _, remedy) in _ODDITIES.items():
            notes = [source.oddities[kind] for source in sources if kind in source.oddities]
            if len(notes) > 1:
                several = f"{found} in {len(notes)} of {len(sources)} files"
                self.note(several, expected, f"they were {remedy} to silence this")
            else:
                self.notes += notes

    def members(self, suffixes: tuple[str, ...], kinds: str) -> Iterator[tuple[str, Source]]:
        """Yield this file with its id, or a folder's files of such an extension, called kinds."""
        if not self.is_folder:
            yield self.stem, self
            return
        wanted = [(name, file) for name, file in self.files.items() if file.suffix in suffixes]
        for name, file in self.opened(wanted):
            yield checked_name(without_suffix(name, suffixes), file.place()), file
            self.notes += [note for note in file.notes if note not in file.oddities.values()]
        self.note_unread(len(self.files) - len(wanted), kinds)

    def note_unread(self, n: int, expected: str, which: str = "of another kind") -> None:
        """Say that so many files of this folder were passed over, if any, and how to silence it."""
        was, it = ("it was", "it") if n == 1 else ("they were", "them")
        if n:
            remedy = f"{was} not read, move {it} elsewhere to silence this"
            self.note(f"{counted(n, 'file')} {which}", expected, remedy)


def unpacked_name(path: Path) -> Path:
    """Leave out the extension that says a file is packed.

    >>> unpacked_name(Path("talks.jsonl.gz")).name
    'talks.jsonl'
    """
    return path.with_suffix("") if path.suffix.lower() == PACKED else path


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; a path that is none at all is not: opening it says why."""
    return os.path.isdir(path)  # noqa: PTH112  (which raises for some)


def unreadable(error: OSError | ValueError, place: Place) -> InputError:
    """Say in a sentence why a path could not be read."""
    if isinstance(error, FileNotFoundError):
        found, remedy = "no file of this name", "check the path"
    elif isinstance(error, IsADirectoryError):
        found, remedy = "a folder", "name a file in it"
    elif isinstance(error, PermissionError):
        found, remedy = "a file that may not be read", "change its permissions"
    else:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        found, remedy = f"a path that cannot be read ({reason})", "check the path"
    return mistake(place, found, "a readable file", remedy)


def checked_name(name: str, place: Place) -> str:
    """Refuse a file name that is not text, since it becomes a document's id."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        found = f"the file name {shorten(ascii(name))}, which is not UTF-8"
        expected = "a name that can serve as a document's id"
        raise mistake(place, found, expected, "rename the file") from None
    return name


def without_suffix(relative: str, suffixes: tuple[str, ...]) -> str:
    """Document id for a file of a folder: its posix path, less one of the given extensions."""
    path = unpacked_name(Path(relative))
    return (path.with_suffix("") if path.suffix.lower() in suffixes else path).as_posix()


def _refuse_binary(head: bytes, place: Place) -> None:
    """Refuse a file by its first bytes, with a sentence that says what it looks like."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        at = replace(place, line=1)
        raise mistake(at, "a UTF-16 byte-order mark", "UTF-8", "save the file as UTF-8")
    for magic, kind, remedy in _KINDS:
        if head.startswith(magic):
            raise _looks_like(kind, place, remedy)
    if b"\0" in head:
        raise _looks_like("a binary file", place)


def _looks_like(kind: str, place: Place, remedy: str = _GIVE_TEXT) -> InputError:
    return mistake(place, f"what looks like {kind}", "text in UTF-8", remedy)
