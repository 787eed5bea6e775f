"""`load`: files of any format into one corpus."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from reffree.corpus import Corpus, Document
from reffree.errors import InputError, OptionError, Place, shorten
from reffree.formats.companion import find_text, missing_text
from reffree.formats.labels import Label, attach
from reffree.formats.readers import check_names, read
from reffree.formats.shards import shard_files
from reffree.formats.source import STDIN, Source
from reffree.segmentation import Convention

_KINDS = {list: "a list", tuple: "a tuple", set: "a set", type(None): "None"}


def load(
    *paths: str | Path,
    format: str | None = None,
    text: str | Path | None = None,
    convention: Convention | None = None,
) -> Corpus:
    """Read files and folders into one corpus; ``-`` is stdin.

    A folder of nothing but corpus JSONL and Parquet files stands for them, in the order of names.

    Args:
        paths: What to read, in order; the format of each is told by its extension and content.
        format: One of `FORMATS`, for all paths, where it cannot or should not be told.
        text: The text for formats that hold none (segeval, nltk).
        convention: What a label 1 means where a file leaves it open; formats that leave nothing
            open do not need it, and tiage and dialseg refuse one that contradicts them.

    Raises:
        InputError: If anything cannot be read, with its place and what to do.
    """
    check_names(format, convention)
    _check_paths(paths, text)
    parts: list[Corpus] = []
    labels: list[Label] = []
    label_notes: list[str] = []
    slot = 0
    for file in chain.from_iterable(map(shard_files, paths)):
        source = Source(file)
        documents: list[Document] = []
        for item in read(source, format, convention):
            if isinstance(item, Label):
                slot = slot if labels else len(parts)
                labels.append(item)
            else:
                documents.append(item)
        if documents:
            parts.append(Corpus(tuple(documents), tuple(source.notes)))
        else:
            label_notes += source.notes
    if labels:
        if text is None:
            raise missing_text(labels[0])
        source = Source(text)
        found, named = find_text(source, labels)
        labelled = attach(found, named, convention)
        parts.insert(slot, Corpus(tuple(labelled), (*label_notes, *source.notes)))
    elif text is not None:
        raise InputError(
            f"--text {text}, but no file that needs it",
            expected="text only with segeval or nltk files",
            remedy="leave out --text",
        )
    return Corpus.merge(parts)


def corpus_names(paths: Sequence[str]) -> dict[str, str]:
    """Name corpora that are read apart: name → path, in order.

    A file's name without its extension; the paths as they were given where two files share it.

    >>> corpus_names(["a/talks.jsonl", "b/meetings.jsonl"])
    {'talks': 'a/talks.jsonl', 'meetings': 'b/meetings.jsonl'}
    >>> list(corpus_names(["a/talks.jsonl", "b/talks.jsonl"]))
    ['a/talks.jsonl', 'b/talks.jsonl']
    """
    names = ["stdin" if path == "-" else Path(path).stem for path in paths]
    if len(set(names)) < len(names):
        names = list(paths)
    for name in names:
        if names.count(name) > 1:
            raise OptionError(
                f"the corpus {shorten(name)!r} twice",
                expected="files that differ",
                remedy="name every corpus once",
            )
    return dict(zip(names, paths, strict=True))


def _check_paths(paths: Sequence[object], text: object) -> None:
    one_by_one = 'pass the paths one by one, such as load("a.jsonl", "b.jsonl")'
    if not paths:
        raise InputError(
            "no paths", expected="at least one", remedy=f"{one_by_one}, or - for standard input"
        )
    for path in paths:
        if not isinstance(path, (str, os.PathLike)):
            raise InputError(
                f"{_KINDS.get(type(path), type(path).__name__)} as a path",
                expected="a string or a Path",
                remedy=one_by_one,
            )
    if [str(path) for path in (*paths, text)].count("-") > 1:
        raise InputError(
            "- twice",
            expected="it once, since standard input can be read only once",
            remedy="give the other input as a file",
            place=Place(file=STDIN),
        )
