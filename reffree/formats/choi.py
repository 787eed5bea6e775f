"""Choi files: one unit per line, segments separated by lines of ten or more ``=``.

A file is a document and its blocks are the gold segments. Separators at both ends are optional and
empty blocks do not exist, but a file without any separator is refused: it is rather a README than
a document of one segment. In a folder with ``.ref`` files those are the documents, in another every
``.txt`` file and every file without an extension; a document's id is its path inside the folder
without ``.ref`` or ``.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.formats.format import Format
from reffree.formats.source import Source, checked_name, without_suffix
from reffree.util.errors import counted, mistake, shorten

REF = ".ref"
SUFFIXES = (REF, ".txt", "")
SEPARATOR = "=========="
_SEPARATOR = re.compile(r"={10,}")
_BREAK = re.compile(r"[\r\n]+")
_PLAIN = re.compile(r"[\w-][\w.-]*")
_MAX_NAME_BYTES = 200


def _is_separator(line: str) -> bool:
    return _SEPARATOR.fullmatch(line.strip()) is not None


class Choi(Format):
    """Choi's files."""

    name = "choi"
    owns = (REF,)
    suffixes = SUFFIXES[1:]
    folders = SUFFIXES
    rank = 2
    written_as = (REF, "")
    keeps = frozenset({"text"})
    one_document = "name a folder, without an extension"

    @classmethod
    def matches(cls, source: Source) -> bool:
        """Whether a line anywhere separates segments."""
        return any(map(_is_separator, source.shown()))

    @classmethod
    def matches_folder(cls, folder: Source) -> bool:
        """Take .ref files for Choi's; other text only where a file of it has separators."""
        return any(file.suffix == REF or cls.matches(file) for _, file in _documents_in(folder))

    def read(self, source: Source) -> list[Document]:
        """Read a file, or every file of a folder."""
        if not source.is_folder:
            return [self._read(source, source.stem if source.is_stdin else source.path.name)]
        files = _documents_in(source)
        documents = [self._read(file, name) for name, file in source.opened(files)]
        kinds = ".ref" if REF in source.suffixes else ".txt or without extension"
        source.note_unread(len(source.files) - len(files), f"Choi files ({kinds})")
        return documents

    def _read(self, source: Source, name: str) -> Document:
        id = checked_name(self.document_id(name), source.place())
        blocks: list[list[str]] = [[]]
        for _, line in source.lines():
            if _is_separator(line):
                blocks.append([])
            elif line.strip():
                blocks[-1].append(line)
        if len(blocks) == 1:
            expected = f"a Choi file, whose segments are separated by {SEPARATOR}"
            remedy = "put such a line before the first segment, or move the file elsewhere"
            raise mistake(source.place(), "no line of ten or more =", expected, remedy)
        masses = [len(block) for block in blocks if block]
        units = [unit for block in blocks for unit in block]
        return Document.build(id, units, gold=masses or None, place=source.place())

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write the only document."""
        return _write_document(corpus[0], chosen[0])

    def write_folder(
        self, corpus: Corpus, chosen: Sequence[Segmentation]
    ) -> list[tuple[str, Iterator[str]]]:
        """Write every document into a file of its own."""
        names = file_names([document.id for document in corpus])
        return list(zip(names, map(_write_document, corpus, chosen), strict=True))

    def document_id(self, name: str) -> str:
        """Name a document by its file."""
        return without_suffix(name, SUFFIXES)

    def describe_changes(self, corpus: Corpus) -> list[str]:
        """Count the units with line breaks, which become spaces."""
        broken = sum(1 for document in corpus for unit in document.units if _BREAK.search(unit))
        inside = counted(broken, "unit")
        told = f"choi files hold one unit per line: line breaks in {inside} became spaces"
        return [told] if broken else []


def _documents_in(folder: Source) -> list[tuple[str, Source]]:
    wanted = (REF,) if REF in folder.suffixes else SUFFIXES
    return [(name, file) for name, file in folder.files.items() if file.suffix in wanted]


def _write_document(document: Document, segmentation: Segmentation) -> Iterator[str]:
    """Write one document between separators; line breaks inside a unit become spaces."""
    yield f"{SEPARATOR}\n"
    units = iter(document.units)
    for mass in segmentation.masses:
        for unit in islice(units, mass):
            line = _BREAK.sub(" ", unit)
            if _is_separator(line):
                expected = "text, since a line of ten or more = separates segments"
                remedy = "change the unit, or write another format such as jsonl"
                raise mistake(document.place, f"the unit {shorten(line)!r}", expected, remedy)
            yield f"{line}\n"
        yield f"{SEPARATOR}\n"


def file_names(ids: list[str]) -> list[str]:
    """Make one file name per id: safe characters only, unique even where case does not count."""
    safe = {id: _safe(id) for id in ids}
    names: dict[str, str] = {}
    taken: set[str] = set()
    for id in sorted(ids, key=lambda id: safe[id] != id):  # those that are safe come first
        name, n = safe[id], 1
        while name.casefold() in taken:
            n += 1
            name = f"{safe[id]}-{n}"
        taken.add(name.casefold())
        names[id] = f"{name}.ref"
    return [names[id] for id in ids]


def _safe(id: str) -> str:
    """Keep an id that is a plain relative path, such as ``3-5/12``; else make one plain name."""
    *folders, name = id.split("/")
    plain = all(_PLAIN.fullmatch(part) for part in (*folders, name))
    clash = any(folder.lower().endswith(".ref") for folder in folders)  # with a file of that name
    if plain and not clash and len(id.encode()) <= _MAX_NAME_BYTES:
        return id
    name = re.sub(r"[^\w.-]|^\.", "_", id)
    return name.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
