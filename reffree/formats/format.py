"""What a format declares of itself, and how formats are found and told apart.

A format is a class in a module of this folder; the module is all there is to add. Its fields are
the options of ``--format name:option=value``, its class variables and `matches` say how files of
it are recognised, `read` and `write` do the rest. Modules are listed, not registered; one that is
called as an ending or as a format (``jsonl.py``) is tried before the others are imported.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, cast

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import CONVENTIONS, Segmentation
from reffree.formats.labels import Label
from reffree.formats.source import LINE_SUFFIXES, Source
from reffree.formats.strict_json import OWN_TEXT
from reffree.util.bounds import LimitError
from reffree.util.errors import InputError, Place, mistake
from reffree.util.naming import parse_named, settings_of

JSON = (".json", *LINE_SUFFIXES)
TEXT = (".txt", "")
PLAIN_TEXT = "plain text, which has no segmentation"

Found = list[Document] | list[Label]


@dataclass(frozen=True)
class Format:
    """A file format; those without a segmentation's text return labels instead of documents."""

    name: ClassVar[str] = ""
    owns: ClassVar[tuple[str, ...]] = ()
    """Endings whose files are of this format where their content says nothing else."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """Endings whose files may be of it: `matches` tells; unknown endings count as ``.txt``."""
    folders: ClassVar[tuple[str, ...]] = ()
    """Endings of the files that it reads of a folder; without any it reads no folders."""
    kinds: ClassVar[str] = ""
    """What such files are, for the note about others in the folder."""
    rank: ClassVar[int] = 1
    """Of several formats that match, the one of the lowest rank is taken."""
    has_text: ClassVar[bool] = True
    keys: ClassVar[tuple[str, ...]] = ()
    """What the first JSON object of a file has, one of these: ``a b/c`` is the key a and, of what b
    holds (of a list: its first), the key c; ``*/c`` is a key of its first value."""
    first_line: ClassVar[re.Pattern[str] | None] = None
    """What the first line that is not blank begins with."""

    written_as: ClassVar[tuple[str, ...] | None] = None
    """Endings that `save` writes it for; None where it cannot be written."""
    keeps: ClassVar[frozenset[str]] = frozenset()
    """What is written, of text, systems, golds, speakers and meta."""
    one_document: ClassVar[str] = ""
    """What to do with several documents, where a file holds one that has the file's name."""

    @classmethod
    def matches(cls, source: Source) -> bool:
        """Whether a file's content is of this format: by its keys or its first line."""
        if cls.first_line is not None:
            return cls.first_line.match(source.head) is not None
        return any(all(_has(source.value, key) for key in keys.split()) for keys in cls.keys)

    @classmethod
    def matches_folder(cls, folder: Source) -> bool:
        """Whether a folder is of this format: by its files' endings, or by the first of them."""
        if cls.owns:
            return folder.suffixes <= set(cls.owns)
        files = folder.files.values()
        first = next((file for file in files if file.suffix in cls.folders), None)
        return first is not None and cls.matches(first)

    @classmethod
    def is_sure(cls, source: Source) -> bool:
        """Whether a file with an ending that it owns is of it without asking other formats."""
        return True

    def read(self, source: Source) -> Found:
        """Read a file, or every file of a folder that has such an ending, as a document each."""
        files = source.members(self.folders, self.kinds)
        return [self.read_document(f, replace(f.place(), document=id)) for id, f in files]

    def read_document(self, file: Source, place: Place) -> Document:
        """Read a file that is one document, whose id is in the place."""
        raise NotImplementedError

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write a corpus; where there is room for one segmentation a document, the chosen ones."""
        raise NotImplementedError

    def write_folder(
        self, corpus: Corpus, chosen: Sequence[Segmentation]
    ) -> list[tuple[str, Iterator[str]]]:
        """Write a file a document, where it is written without an ending: name and content."""
        raise NotImplementedError

    def document_id(self, name: str) -> str:
        """Return the id that a file of this name gives its only document."""
        return name.rpartition(".")[0] or name

    def describe_changes(self, corpus: Corpus) -> list[str]:
        """Say what is not written as it is, beside what `keeps` tells."""
        return []


def _has(value: object, path: str) -> bool:
    key, _, rest = path.partition("/")
    if not isinstance(value, dict) or not value or (key != "*" and key not in value):
        return False
    inner = next(iter(value.values())) if key == "*" else value[key]
    inner = inner[0] if isinstance(inner, list) and inner and key != "*" else inner
    return not rest or _has(inner, rest)


# Which formats there are


def _formats_in(module: str) -> list[type[Format]]:
    """Return the formats that a module of this folder defines; none where it is none."""
    if module not in _modules():
        return []
    name = f"{__package__}.{module}"
    classes = [each for each in vars(import_module(name)).values() if isinstance(each, type)]
    own = [each for each in classes if issubclass(each, Format) and each.__module__ == name]
    return [each for each in own if each.name]


@cache
def _modules() -> tuple[str, ...]:
    folders = import_module(__package__).__path__
    return tuple(module.name for module in pkgutil.iter_modules(folders))


@cache
def formats() -> dict[str, type[Format]]:
    """All formats by name, in the order in which they are asked whether a file is theirs."""
    found = [each for module in _modules() for each in _formats_in(module)]
    return {each.name: each for each in sorted(found, key=lambda each: (each.rank, each.name))}


def format_names(*, writable: bool = False) -> tuple[str, ...]:
    """Return the names of all formats, or of those that can be written."""
    known = formats().values()
    return tuple(sorted(each.name for each in known if not writable or each.written_as is not None))


def formats_with_options() -> list[str]:
    """Spell every format that has options with all of them at their defaults."""
    spelt = []
    for name in format_names():
        given = [
            f"{key}={value or ('|'.join(CONVENTIONS) if key == 'convention' else 'NAME')}"
            for key, value in settings_of(cast(Any, formats()[name]())).items()
        ]
        spelt += [f"{name}:{','.join(given)}"] if given else []
    return spelt


def parse_format(text: str) -> Format:
    """Make the format that ``name:option=value,…`` names."""
    name = text.partition(":")[0]
    near = {each.name: each for each in _formats_in(name)}
    known = near if name in near else formats()
    return cast(Format, parse_named(text, cast(Any, known), "format", "--format"))


# Which format a source has


def detect(source: Source) -> str:
    """Tell the format of a source; standard input is corpus JSONL unless said otherwise."""
    if source.is_stdin:
        return "jsonl"
    found = _folder_format(source) if source.is_folder else _file_format(source)
    if found is None:
        raise _no_format(source)
    return found.name


def _file_format(source: Source) -> type[Format] | None:
    suffix = source.suffix
    near = (each for each in _formats_in(suffix[1:]) if suffix in each.owns)
    owner = next(near, None) or next((f for f in formats().values() if suffix in f.owns), None)
    try:
        if owner is not None and owner.is_sure(source):
            return owner
        if suffix == ".json" and not source.is_json_lines:
            _ = source.json  # which says what is wrong with it
        rivals = [each for each in formats().values() if suffix in each.suffixes]
        if owner is None and not rivals:
            rivals = [each for each in formats().values() if ".txt" in each.suffixes]
        return next((each for each in rivals if each.matches(source)), owner)
    except LimitError:
        raise
    except InputError:
        if owner is None:
            raise
        return owner  # whose reader says what is wrong


def _folder_format(folder: Source) -> type[Format] | None:
    known = [each for each in formats().values() if each.folders and folder.files]
    return next((each for each in known if each.matches_folder(folder)), None)


def _recognise(source: Source) -> str | None:
    """Tell a format by content alone; None where it is not clear."""
    try:
        if source.is_folder:
            found = _folder_format(source)
        else:
            known = [f for f in formats().values() if (".json" in f.suffixes) == bool(source.value)]
            found = next((each for each in known if each.matches(source)), None)
        return None if found is None else found.name
    except InputError:
        return None


def read(source: Source, format: Format | None = None) -> tuple[list[Document], list[Label]]:
    """Read one source: documents, or labels if the format holds no text; never nothing."""
    chosen = parse_format(detect(source)) if format is None else format
    if source.is_folder and not chosen.folders:
        expected = f"a file, since the format {chosen.name} has no folders"
        raise mistake(source.place(), "a folder", expected, "name its files one by one")
    with suggest_format(source, chosen.name):
        if found := chosen.read(source):
            labels = [item for item in found if isinstance(item, Label)]
            return [item for item in found if isinstance(item, Document)], labels
        remedy = f"check that the {'folder' if source.is_folder else 'file'} is not empty"
        raise mistake(source.place(), "no documents", "at least one", remedy)


@contextmanager
def suggest_format(source: Source, format: str) -> Iterator[None]:
    """Where reading fails and the content shows another format, say that instead."""
    try:
        yield
    except LimitError:
        raise
    except InputError:
        other = _recognise(source)
        if other is None or other == format:
            raise
        usual = None
        with suppress(InputError):
            usual = detect(source)
        why = "standard input has by default" if source.is_stdin else "its name says"
        found = f"what looks like the format {other}"
        expected = f"the format {format}, as {why if usual == format else '--format says'}"
        remedy = "leave out --format" if usual == other else _name_format(source, other)
        raise mistake(source.place(), found, expected, remedy) from None


def _name_format(source: Source, name: str) -> str:
    format = formats()[name]
    ending = next(filter(None, (*format.owns, *format.suffixes)), ".json")
    return f"write --format {name}" + ("" if source.is_stdin else f", or name the file {ending}")


def _no_format(source: Source) -> InputError:
    """Say what kind of input it is that no format is for, and what to do instead."""
    remedy = f"{OWN_TEXT}, or name the format with --format"
    other = _recognise(source)
    if other is not None:
        found = f"what looks like the format {other}, but is not named so"
        remedy = _name_format(source, other)
    elif source.is_folder:
        suffixes = source.suffixes
        found = "a folder of no known format" if suffixes else "an empty folder"
        found = found if suffixes.isdisjoint(TEXT) else PLAIN_TEXT
    elif source.suffix == ".json":
        found = "a file of no known format"
    else:
        found = PLAIN_TEXT if any(source.lines_with_text()) else "an empty file"
    if found == PLAIN_TEXT:
        remedy += ", such as lines (a unit a line) or headings (whose sections are gold)"
    expected = "a format that is known (reffree convert --help lists them)"
    return mistake(source.place(), found, expected, remedy)
