"""Texts to be chunked: files, folders, patterns, corpora, and texts that are at hand."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from reffree.chunkers.chunked import PlainText
from reffree.formats import load
from reffree.formats.documents import PACKAGES, check_packages, read_as_markdown
from reffree.formats.source import Source, checked_name
from reffree.util.errors import OptionError, Place, listed, mistake
from reffree.util.progress import Progress, no_progress

CORPORA = (".jsonl", ".ndjson", ".json")
ENDINGS = (".md", ".markdown", ".rst", ".txt", *PACKAGES)
"""What is read of a folder."""

_PATH = re.compile(r"\S*(?:[/\\*]\S*|\.[A-Za-z][A-Za-z0-9]{0,8})")
"""What is taken for a path though there is no such file."""


def read_texts(
    given: object, progress: Progress = no_progress
) -> tuple[list[PlainText], list[str]]:
    """Read texts, and what there is to note about them.

    ``given`` is texts by name, or one or several of: a path, a folder, a pattern such as
    ``docs/**/*.md``, ``-`` for standard input, a text. Documents are called by their files without
    folder and ending, where that keeps them apart.
    """
    if isinstance(given, Mapping):
        return [PlainText(id, text, Place(document=id)) for id, text in given.items()], []
    several = [given] if isinstance(given, str | os.PathLike) else given
    every = list(several) if isinstance(several, Iterable) else []
    if not every or not all(isinstance(one, str | os.PathLike) for one in every):
        raise OptionError("no text", expected="texts, files or folders", remedy="name some")
    if every.count("-") > 1:
        remedy = "give the other as a file"
        raise OptionError("standard input (-) twice", expected="it once", remedy=remedy)
    texts = [one for one in every if isinstance(one, str) and not _is_path(one)]
    found = [PlainText(f"text {i}", text, Place()) for i, text in enumerate(texts, 1)]
    notes: list[str] = []
    sources = [s for one in every if one not in texts for s in _sources(str(one), notes)]
    for source in sources:
        check_packages(source)
    ids = [source.stem for source in sources]
    if len(set(ids)) < len(ids):
        ids = [checked_name(source.name, source.place()) for source in sources]
    with progress("Reading", len(sources)) as advance:
        for id, source in zip(ids, sources, strict=True):
            found += _read(id, source)
            notes += source.notes
            advance(1)
    if any(text.document and text.document.systems for text in found):
        notes.append("The corpus's own systems are not scored here: reffree score does that.")
    empty = [text.id for text in found if not text.text.strip()]
    if len(empty) < len(found):
        notes += [f"Without text, left out: {listed(empty)}."] if empty else []
        found = [text for text in found if text.text.strip()]
    return found, notes


def _is_path(text: str) -> bool:
    """Whether a text is a path: one that is there, or a word that looks like one."""
    if "\n" in text or len(text) > 4096:
        return False
    return text == "-" or _PATH.fullmatch(text) is not None or os.path.exists(text)  # noqa: PTH110


def _sources(path: str, notes: list[str]) -> Iterator[Source]:
    """Yield a file, the files of a folder with an ending that is known, or those of a pattern."""
    source = Source(path)
    if source.is_folder:
        files = source.files.values()
        chosen = [Source(file.path) for file in files if file.suffix in ENDINGS]
        source.note_unread(len(files) - len(chosen), f"{', '.join(ENDINGS)}")
        notes += source.notes
        remedy = "name its files one by one, which are then read as plain text"
        expected, found = f"at least one file in {', '.join(ENDINGS)}", "a folder without any"
    elif not source.is_stdin and glob.has_magic(path) and not Path(path).exists():
        named = sorted(glob.glob(path, recursive=True))  # noqa: PTH207  (takes a whole pattern)
        chosen = [Source(name) for name in named if not Path(name).is_dir()]
        found, expected, remedy = "no file of this pattern", "at least one", "check the pattern"
    else:
        chosen = [source]
    if not chosen:
        raise mistake(source.place(), found, expected, remedy)
    yield from chosen


def _read(id: str, source: Source) -> list[PlainText]:
    """Read a file: one text, or those of a corpus, which is not to be read as prose."""
    if source.suffix in CORPORA:
        corpus = load(source.path)
        source.notes += corpus.notes
        source.notes.append(f"{source.name}: a corpus; its units stay as they are.")
        return [PlainText.of(document) for document in corpus]
    if source.suffix in PACKAGES:
        return [PlainText(id, read_as_markdown(source), source.place())]
    text = "\n".join(line for _, line in source.lines())
    first = text.lstrip()[:1] == "{" and text.lstrip().splitlines()[0]
    try:
        found = json.loads(first) if first else None
    except ValueError:
        found = None  # prose, or code
    if isinstance(found, dict):
        expected = "plain text, or a corpus whose file is called .jsonl"
        remedy = "name the file so, or take the text out of it"
        raise mistake(source.place(), "JSON, one object a line", expected, remedy)
    return [PlainText(id, text, source.place())]
