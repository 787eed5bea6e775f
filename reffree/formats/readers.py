"""Which reader a file needs: by its extension, then by its content, unless the format is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from reffree.corpus import Document
from reffree.errors import InputError, UnknownNameError
from reffree.formats import choi, dialseg, jsonl, nltk, parquet, qmsum, segeval, tiage
from reffree.formats.labels import Label
from reffree.formats.source import LINE_SUFFIXES, Source
from reffree.formats.strict_json import OWN_TEXT, parse
from reffree.segmentation import CONVENTIONS, Convention

FORMATS: tuple[str, ...] = (
    *("jsonl", "choi", "segeval", "segeval-tsv", "nltk", "dialseg", "tiage", "qmsum"),
)
_READERS: dict[str, Callable[[Source], list[Document]] | Callable[[Source], list[Label]]] = {
    "jsonl": jsonl.read,
    "parquet": parquet.read,
    "choi": choi.read,
    "segeval": segeval.read,
    "segeval-tsv": segeval.read_table,
    "nltk": nltk.read,
    "qmsum": qmsum.read,
}
_LABEL_READERS = {"dialseg": dialseg.read, "tiage": tiage.read}
"""Readers of labels that may open or close a segment: they heed a convention."""
_FOLDERS = ("choi", "qmsum")
_PLAIN = "plain text, which has no segmentation"
_SUFFIXES = {"jsonl": ".jsonl", "choi": ".ref", "segeval-tsv": ".tsv", "nltk": ".txt"}


def read(
    source: Source, format: str | None, convention: Convention | None
) -> list[Document] | list[Label]:
    """Read one source: documents, or labels if the format holds no text; never nothing."""
    format = format or detect(source)
    if source.is_folder and format not in _FOLDERS:
        raise InputError(
            "a folder",
            expected=f"a file, since the format {format} has no folders",
            remedy="name its files one by one",
            place=source.place(),
        )
    with suggest_format(source, format):
        found: list[Document] | list[Label]
        if format in _LABEL_READERS:
            found = _LABEL_READERS[format](source, convention)
        else:
            found = _READERS[format](source)
        if found:
            return found
        raise InputError(
            "no documents",
            expected="at least one",
            remedy=f"check that the {'folder' if source.is_folder else 'file'} is not empty",
            place=source.place(),
        )


@contextmanager
def suggest_format(source: Source, format: str) -> Iterator[None]:
    """Where reading fails and the content shows another format, say that instead."""
    try:
        yield
    except InputError:
        other = recognise(source)
        if other is None or other == format:
            raise
        usual = None
        with suppress(InputError):
            usual = detect(source)
        if usual != format:
            why = "--format says"
        else:
            why = "standard input has by default" if source.is_stdin else "its name says"
        raise InputError(
            f"what looks like the format {other}",
            expected=f"the format {format}, as {why}",
            remedy="leave out --format" if usual == other else _name_format(source, other),
            place=source.place(),
        ) from None


def _name_format(source: Source, format: str) -> str:
    suffix = _SUFFIXES.get(format, ".json")
    return f"write --format {format}" + ("" if source.is_stdin else f", or name the file {suffix}")


def check_names(format: str | None, convention: str | None) -> None:
    """Refuse a format or a convention that does not exist."""
    if format is not None and format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    if convention is not None and convention not in CONVENTIONS:
        raise UnknownNameError("convention", convention, CONVENTIONS)


def detect(source: Source) -> str:
    """Tell the format of a source; stdin is corpus JSONL unless said otherwise."""
    if source.is_stdin:
        return "jsonl"
    if source.is_folder:
        format = _folder_format(source)
    elif source.suffix == parquet.SUFFIX:
        format = "parquet"
    elif source.suffix in LINE_SUFFIXES:
        with suppress(InputError):  # its reader says what is wrong
            return _json_format(source) or "jsonl"
        return "jsonl"
    elif source.suffix == ".json":
        format = _json_format(source)
    elif source.suffix in (".tsv", ".csv"):
        format = "segeval-tsv"
    elif source.suffix == choi.REF:
        format = "choi"
    else:
        format = _text_format(source)
    if format is None:
        raise _no_format(source)
    return format


def recognise(source: Source) -> str | None:
    """Tell a format by content alone, of stdin by its first line; None where it is not clear."""
    try:
        if source.is_stdin:
            return _line_format(source)
        if source.is_folder:
            return _folder_format(source)
        next((text for _, text in source.lines() if text.strip()), None)  # sets the head
        if source.head.startswith(("{", "[")):
            return _json_format(source)
        return _text_format(source) if segeval.table_columns(source.head) is None else "segeval-tsv"
    except InputError:
        return None


def _line_format(source: Source) -> str | None:
    head = source.head
    if head.startswith("{"):
        return _format_of(parse(head, source.place()))
    if segeval.table_columns(head) is not None:
        return "segeval-tsv"
    if choi.is_separator(head):
        return "choi"
    return "nltk" if nltk.is_line(head) and head.endswith(("0", "1")) else None


def _no_format(source: Source) -> InputError:
    """Say what kind of input it is that no reader is for, and what to do instead."""
    expected = f"one of {', '.join(FORMATS)}"
    remedy = f"{OWN_TEXT}, or name the format with --format"
    other = recognise(source)
    if other is not None:
        found = f"what looks like the format {other}, but is not named so"
        remedy = _name_format(source, other)
    elif source.is_folder and (paths := [path for _, path in source.files()]):
        plain = any(path.suffix.lower() in choi.SUFFIXES for path in paths)
        found = _PLAIN if plain else "a folder of no known format"
    elif source.is_folder:
        found = "an empty folder"
    elif source.suffix == ".json":
        found = "a file of no known format"
    elif any(line.strip() for _, line in source.lines()):
        found = _PLAIN
    else:
        found = "an empty file"
    return InputError(found, expected=expected, remedy=remedy, place=source.place())


def _folder_format(source: Source) -> str | None:
    """Take .ref files for Choi's; other text only where a file of it has separators."""
    files, _ = choi.folder_files(source)
    for _, path in files:
        if path.suffix.lower() == choi.REF or _text_format(Source(path)) == "choi":
            return "choi"
    meetings = [path for _, path in source.files() if path.suffix.lower() == ".json"]
    if meetings and _json_format(Source(meetings[0])) == "qmsum":
        return "qmsum"
    return None


def _json_format(source: Source) -> str | None:
    if source.is_json_lines:
        _, value = next(source.json_lines(), (0, None))
        return _format_of(value)
    value = source.json
    if isinstance(value, list):
        return "jsonl" if value and _format_of(value[0]) == "jsonl" else None
    return _format_of(value)


def _format_of(value: object) -> str | None:
    """Tell by its keys the format that a JSON object is from."""
    if not isinstance(value, dict):
        return None
    for keys, format in _BY_KEY:
        if not value.keys().isdisjoint(keys):
            return format
    return "tiage" if tiage.looks_like(value) else None


_BY_KEY = (
    ((dialseg.DATA,), "dialseg"),
    (("segmentation_type", "items"), "segeval"),
    ((qmsum.MEETING,), "qmsum"),
    (("units", "segmentation", "id"), "jsonl"),
)


def _text_format(source: Source) -> str | None:
    """Look through all lines: a separator makes it choi, nothing but 0 and 1 nltk."""
    strings, only_strings = 0, True
    for _, line in source.lines():
        if choi.is_separator(line):
            return "choi"
        only_strings = only_strings and nltk.is_line(line)
        strings += line.rstrip().endswith(("0", "1"))
    return "nltk" if only_strings and strings else None
