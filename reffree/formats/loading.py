"""`load`: files of any format into one corpus.

The text of formats that hold none comes from ``--text``. A corpus file (JSONL, or JSON) gives units
by id, and its own gold and systems stay. A plain text file has one unit per line and a blank line
between documents, in the order of the labels. A folder has one ``<id>.txt`` per document, one unit
per line; blank lines inside count as units without text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain, groupby
from pathlib import Path

from reffree.corpus import Corpus, Document
from reffree.errors import InputError, OptionError, Place, counted, shorten
from reffree.formats.labels import Label, attach, numbered
from reffree.formats.readers import check_names, read
from reffree.formats.shards import shard_files
from reffree.formats.source import LINE_SUFFIXES, STDIN, Source, without_suffix
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
            raise InputError(
                "segmentations without text",
                expected="the text they belong to",
                remedy="give it with --text: a corpus JSONL, a text file with one unit per line "
                "and a blank line between documents, or a folder of <id>.txt files",
                place=Place(file=labels[0].place.file),
            )
        source = Source(text)
        found, named = _find_text(source, labels)
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


def _find_text(source: Source, labels: Sequence[Label]) -> tuple[list[Document], list[Label]]:
    """Read the documents that the labels speak of, and give labels without ids theirs."""
    if not source.is_folder and source.suffix in (*LINE_SUFFIXES, ".json"):
        documents = [doc for doc in read(source, None, None) if isinstance(doc, Document)]
        if not documents:
            raise InputError(
                "a file without text",
                expected="a corpus, or plain text with one unit per line",
                remedy="give the text with --text",
                place=source.place(),
            )
        return documents, numbered(labels, [document.id for document in documents])
    named = numbered(labels)
    ids = list(dict.fromkeys(str(label.document) for label in named))
    return (_folder_text if source.is_folder else _block_text)(source, ids), named


def _block_text(source: Source, ids: Sequence[str]) -> list[Document]:
    runs = groupby(source.lines(), key=lambda line: bool(line[1].strip()))
    blocks = [list(run) for has_text, run in runs if has_text]
    if len(blocks) != len(ids):
        raise InputError(
            f"{counted(len(blocks), 'block')} of text",
            expected=f"{len(ids)}, one for every document, separated by blank lines",
            remedy="check that text and segmentations belong together, or give a folder of "
            "<id>.txt files",
            place=source.place(),
        )
    return [
        Document.build(id, [text for _, text in block], place=source.place(block[0][0]))
        for id, block in zip(ids, blocks, strict=True)
    ]


def _folder_text(source: Source, ids: Sequence[str]) -> list[Document]:
    listed = source.files()
    paths = {without_suffix(name, (".txt",)): path for name, path in listed if name[-4:] == ".txt"}

    def path_of(id: str) -> Path:
        if id in paths:
            return paths[id]
        raise InputError(
            f"no file {id + '.txt'!r} in the folder",
            expected="one for every document",
            remedy="add it, one unit per line",
            place=Place(source.name, document=id),
        )

    documents = []
    for id, file in source.opened((id, path_of(id)) for id in ids):
        units = [text for _, text in file.lines()]
        while units and not units[-1].strip():
            units.pop()
        documents.append(Document.build(id, units, place=file.place()))
    source.note_unread(
        len(listed) - len(ids),
        "that no segmentation belongs to",
        expected="one .txt file for every document",
    )
    return documents
