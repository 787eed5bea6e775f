"""Which reader a file needs: by its extension, then by its content, unless the format is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

from reffree.data.corpus import Document
from reffree.data.segmentation import CONVENTIONS, Convention
from reffree.formats import (
    choi,
    dialogues,
    dialseg,
    headings,
    jsonl,
    meetings,
    nltk,
    parquet,
    qmsum,
    segeval,
    subtitles,
    tables,
    tiage,
)
from reffree.formats.labels import CodersAs, Label
from reffree.formats.source import LINE_SUFFIXES, Source
from reffree.formats.strict_json import OWN_TEXT, parse
from reffree.util.errors import InputError, UnknownNameError
from reffree.util.naming import parse_named, settings_of

Read = list[Document] | list[Label]
TextDocuments = Literal["blank-line", "one"]


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """What is asked for beside the files; where it says nothing, they tell it themselves."""

    format: str | None = None
    convention: Convention | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    coders_as: CodersAs = "systems"
    text_documents: TextDocuments = "blank-line"
    text_needed: bool = True

    def __post_init__(self) -> None:
        """Refuse names that do not exist."""
        check_names(self.format, self.convention)
        for kind, value, known in (
            ("coders_as", self.coders_as, ("systems", "golds")),
            ("text_documents", self.text_documents, ("blank-line", "one")),
        ):
            if value not in known:
                raise UnknownNameError(kind, str(value), known)
        tables.check_columns(self.columns)


_READERS: dict[str, Callable[[Source, ReadingOptions], Read]] = {
    "jsonl": lambda s, r: jsonl.read(s, r.convention, text_needed=r.text_needed),
    "choi": lambda s, r: choi.read(s),
    "segeval": lambda s, r: segeval.read(s),
    "segeval-tsv": lambda s, r: segeval.read_table(s),
    "nltk": lambda s, r: nltk.read(s),
    "dialseg": lambda s, r: dialseg.read(s, r.convention),
    "tiage": lambda s, r: tiage.read(s, r.convention),
    "qmsum": lambda s, r: qmsum.read(s),
    "table": lambda s, r: tables.read(s, r.columns, r.convention),
    "tiage-tsv": lambda s, r: tiage.read_table(s, r.convention),
    "tadam": lambda s, r: dialogues.read_tadam(s),
    "utterances": lambda s, r: dialogues.read_utterances(s),
    "multiwoz": lambda s, r: dialogues.read_multiwoz(s),
    "topical-chat": lambda s, r: dialogues.read_topical_chat(s),
    "chapters": lambda s, r: subtitles.read_chapters(s),
    "youtube": lambda s, r: subtitles.read_chapter_lines(s),
    "parquet": lambda s, r: parquet.read(s, r.columns, r.convention),
}
_WITH_OPTIONS = {
    kind.name: kind
    for kind in (
        dialogues.DailyDialog,
        dialogues.Taskmaster,
        headings.WikiSection,
        headings.RadioNews,
        meetings.Meetings,
        subtitles.Subtitles,
        subtitles.Transcript,
        headings.Markdown,
        headings.Headings,
        headings.PlainLines,
    )
}
"""Readers whose options may be named, as in ``taskmaster:level=subtask``."""

FORMATS: tuple[str, ...] = tuple(name for name in (*_READERS, *_WITH_OPTIONS) if name != "parquet")
_FOLDERS = {"choi", "qmsum", "dailydialog", "radionews", "nxt"}
_FOLDERS |= {"subtitles", "transcript", "markdown", "headings"}
_TABLES = ("table", "parquet")
_PLAIN = "plain text, which has no segmentation"
_SUFFIXES = {"jsonl": ".jsonl", "choi": ".ref", "segeval-tsv": ".tsv", "nltk": ".txt"}
_SUFFIXES |= {"markdown": ".md", "subtitles": ".vtt", "table": ".csv", "tiage-tsv": ".tsv"}
_SUFFIXES |= dict.fromkeys(("tadam", "dailydialog", "transcript", "youtube", "headings"), ".txt")


@dataclass(frozen=True, slots=True)
class _NoOptions:
    """Of a reader without options."""

    name: ClassVar[str] = ""


def formats_with_options() -> list[str]:
    """Spell every format that has options with all of them at their defaults."""
    return [
        f"{name}:" + ",".join(f"{key}={value}" for key, value in settings_of(kind()).items())
        for name, kind in _WITH_OPTIONS.items()
    ]


def format_name(format: str | None) -> str | None:
    """Leave out a format's options."""
    return None if format is None else format.partition(":")[0]


def _parsed(format: str) -> Any:  # noqa: ANN401  (a reader, or none)
    known = {name: _WITH_OPTIONS.get(name, _NoOptions) for name in FORMATS}
    return parse_named(format, cast(Any, known), "format", "--format")


def read(source: Source, reading: ReadingOptions) -> Read:
    """Read one source: documents, or labels if the format holds no text; never nothing."""
    format = reading.format or detect(source)
    name = format.partition(":")[0]
    if source.is_folder and name not in _FOLDERS:
        raise InputError(
            "a folder",
            expected=f"a file, since the format {name} has no folders",
            remedy="name its files one by one",
            place=source.place(),
        )
    if name == "nxt" and not source.is_folder:
        raise InputError(
            "a file",
            expected="a folder, since a meeting of the format nxt has many files",
            remedy="give the folder that has them all",
            place=source.place(),
        )
    with suggest_format(source, name):
        found: Read
        if name not in _TABLES:
            tables.refuse_columns(reading.columns, f"the format {name}", source.place())
        if name == headings.PlainLines.name and format == name:
            found = headings.PlainLines(reading.text_documents).read(source)
        elif name in _WITH_OPTIONS:
            found = _parsed(format).read(source)
        else:
            found = _READERS[name](source, reading)
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
        if format_name(usual) != format:
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
    if format is not None:
        _parsed(format)
    if convention is not None and convention not in CONVENTIONS:
        raise UnknownNameError("convention", convention, CONVENTIONS)


def detect(source: Source) -> str:
    """Tell the format of a source; stdin is corpus JSONL unless said otherwise."""
    if source.is_stdin:
        return "jsonl"
    if source.suffix in LINE_SUFFIXES and not source.is_folder:
        with suppress(InputError):  # its reader says what is wrong
            return _json_format(source) or "jsonl"
        return "jsonl"
    format = _folder_format(source) if source.is_folder else _file_format(source)
    if format is None:
        raise _no_format(source)
    return format


def _file_format(source: Source) -> str | None:
    suffix = source.suffix
    if suffix == ".json":
        return _json_format(source)
    if suffix in (".tsv", ".csv"):
        return _table_format(source) or "table"
    return _BY_SUFFIX.get(suffix) or _text_format(source)


_BY_SUFFIX = {parquet.SUFFIX: "parquet", choi.REF: "choi"}
_BY_SUFFIX |= dict.fromkeys(subtitles.SUBTITLES, "subtitles")
_BY_SUFFIX |= dict.fromkeys(headings.MARKDOWN, "markdown")


def recognise(source: Source) -> str | None:
    """Tell a format by content alone, of stdin by its first line; None where it is not clear."""
    try:
        if source.is_stdin:
            return _line_format(source)
        if source.is_folder:
            return _folder_format(source)
        next((text for _, text in source.lines() if text.strip()), None)  # sets the head
        if source.head.startswith(("{", "[")) and not subtitles.is_timed(source.head):
            return _json_format(source)
        return _table_format(source) or _text_format(source)
    except InputError:
        return None


def _line_format(source: Source) -> str | None:
    head = source.head
    if head.startswith("{"):
        return _format_of(parse(head, source.place()))
    if segeval.table_columns(head) is not None:
        return "segeval-tsv"
    if tiage.is_table_line(head):
        return "tiage-tsv"
    if choi.is_separator(head):
        return "choi"
    if (format := _by_first_line(head)) is not None:
        return format
    return "nltk" if nltk.is_line(head) and head.endswith(("0", "1")) else None


def _no_format(source: Source) -> InputError:
    """Say what kind of input it is that no reader is for, and what to do instead."""
    expected = "a format that is known (reffree convert --help lists them)"
    remedy = f"{OWN_TEXT}, or name the format with --format"
    prose = f"{remedy}, such as text (a unit a line) or headings (whose sections are gold)"
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
    remedy = prose if found == _PLAIN else remedy
    return InputError(found, expected=expected, remedy=remedy, place=source.place())


def _folder_format(source: Source) -> str | None:
    """Take .ref files for Choi's; other text only where a file of it has separators."""
    paths = {path.name: path for _, path in source.files()}
    suffixes = {Source(path).suffix for path in paths.values()}
    if any(name.endswith(meetings.TOPICS) for name in paths):
        return "nxt"
    if "dialogues_text.txt" in paths:
        return "dailydialog"
    if suffixes and suffixes <= set(subtitles.SUBTITLES):
        return "subtitles"
    if suffixes and suffixes <= set(headings.MARKDOWN):
        return "markdown"
    files, _ = choi.folder_files(source)
    for _, path in files:
        if Source(path).suffix == choi.REF or _text_format(Source(path)) == "choi":
            return "choi"
    listed = [path for path in paths.values() if Source(path).suffix == ".json"]
    format = _json_format(Source(listed[0])) if listed else None
    if format in ("qmsum", "radionews"):
        return format
    format = _text_format(Source(files[0][1])) if files else None
    return format if format in ("transcript", "headings") else None


def _json_format(source: Source) -> str | None:
    if source.is_json_lines:
        _, value = next(source.json_lines(), (0, None))
        return _format_of(value)
    value = source.json
    if isinstance(value, list):
        format = _format_of(value[0]) if value else None
        return format if format in _LISTED else None
    return _format_of(value)


_LISTED = ("jsonl", "utterances", "wikisection", "multiwoz", "taskmaster")
"""Formats whose files may be a list of documents."""


def _format_of(value: object) -> str | None:
    """Tell by its keys the format that a JSON object is from."""
    if not isinstance(value, dict):
        return None
    for format, keys in _BY_KEYS:
        if value.keys() >= keys:
            return format
    for part, key in (("data", headings.PROGRAMME), ("segments", "transcript")):
        inside = value.get(part)
        inside = inside[0] if isinstance(inside, list) and inside else inside
        if isinstance(inside, dict) and key in inside:
            return "radionews"
    first = next(iter(value.values()), None)
    if isinstance(first, dict):
        return "multiwoz" if "log" in first else "topical-chat" if "content" in first else None
    return "tiage" if tiage.looks_like(value) else None


_BY_KEYS: tuple[tuple[str, set[str]], ...] = (
    ("dialseg", {dialseg.DATA}),
    ("segeval", {"segmentation_type"}),
    ("segeval", {"items"}),
    ("qmsum", {qmsum.MEETING}),
    ("utterances", {"utterances", "segments"}),
    ("taskmaster", {"conversation_id", "utterances"}),
    ("multiwoz", {"dialogue_id", "turns"}),
    ("wikisection", {"text", headings.SECTIONS}),
    ("chapters", {subtitles.CHAPTERS}),
    ("jsonl", {"units"}),
    ("jsonl", {"segmentation"}),
    ("jsonl", {"id"}),
)


def _table_format(source: Source) -> str | None:
    """Tell tables by their first line; None where it may be anything."""
    next((text for _, text in source.lines() if text.strip()), None)  # sets the head
    if segeval.table_columns(source.head) is not None:
        return "segeval-tsv"
    if tiage.is_table_line(source.head):
        return "tiage-tsv"
    cells = tables.cells_of(source.head)
    return "table" if tables.TEXT in cells and len(cells) > 1 else None


def _by_first_line(line: str) -> str | None:
    if dialogues.CALL.fullmatch(line.strip()):
        return "tadam"
    if dialogues.END in line:
        return "dailydialog"
    if line.startswith("WEBVTT"):
        return "subtitles"
    if subtitles.is_timed(line):
        return "transcript"
    return "headings" if headings.is_wiki727_heading(line) else None


def _text_format(source: Source) -> str | None:
    """Look through all lines: a separator makes it choi, nothing but 0 and 1 nltk."""
    strings, only_strings, first = 0, True, None
    some: list[str] = []
    for _, line in source.lines():
        if choi.is_separator(line):
            return "choi"
        only_strings = only_strings and nltk.is_line(line)
        strings += line.rstrip().endswith(("0", "1"))
        if line.strip():
            first = line if first is None else first
            if len(some) <= _MOST_CHAPTERS:
                some.append(line)
    if only_strings and strings:
        return "nltk"
    if first is None:
        return None
    if (format := _by_first_line(first)) is not None:
        return format
    is_short = len(some) <= _MOST_CHAPTERS
    return "youtube" if is_short and subtitles.is_chapter_list(some) else None


_MOST_CHAPTERS = 1_000
"""Lines that a list of chapters may have."""
