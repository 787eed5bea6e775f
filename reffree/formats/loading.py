"""`load`: files of any format into one corpus.

The text of formats that hold none comes from ``--text``. A corpus file (JSONL, or JSON) gives units
by id, and its own gold and systems stay; so do subtitles and transcripts. A plain text file has one
unit per line and a blank line between documents, in the order of the labels, or is all one
document (``lines:documents=one``). A folder has one ``<id>.txt`` per document, one unit per line;
blank lines inside count as units without text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from reffree.data.corpus import Corpus, Document
from reffree.formats.format import Format, parse_format, read
from reffree.formats.labels import Label, Starts, attach, numbered, without_text
from reffree.formats.shards import shard_files
from reffree.formats.source import LINE_SUFFIXES, STDIN, Source, Used, unpacked_name, without_suffix
from reffree.util.errors import OptionError, Place, counted, mistake, shorten

_HUB = "hf://"
_CORPUS_SUFFIXES = (*LINE_SUFFIXES, ".json", ".csv", ".tsv", ".parquet", ".srt", ".vtt")
_TEXTS = (
    "a corpus JSONL, a text file with one unit per line and a blank line between documents, or a "
    "folder of <id>.txt files"
)
_KINDS = {list: "a list", tuple: "a tuple", set: "a set", type(None): "None"}


def load(
    *sources: str | Path | Any,  # noqa: ANN401  (a frame of any library)
    format: str | None = None,
    text: str | Path | Literal[False] | None = None,
) -> Corpus:
    """Read files, folders and values into one corpus; ``-`` is stdin.

    A folder of nothing but corpus JSONL and Parquet files stands for them, in the order of names.
    ``hf://owner/name`` is a data set of the Hugging Face hub or of its cache (`hub`). Values are a
    corpus, a pandas or polars frame (`tables`), a list of documents (`Document`, or as corpus JSONL
    has them), of lists of sentences, or of the sentences of one document.

    Args:
        sources: What to read, in order; the format of each is told by its extension and content.
        format: For all files, where it cannot or should not be told, or has options: ``choi``,
            ``table:text=utterance,document=call``, ``segeval:coders=golds``. Beside ``text``, a
            format that holds text is that of the text.
        text: The text for formats that hold none (segeval, nltk, chapters); False gives units
            numbers for text, for what needs none.

    Raises:
        InputError: If anything cannot be read, with its place and what to do.
    """
    given = None if format is None else parse_format(format)
    _check_paths(sources, text)
    is_of_text = bool(text) and given is not None and given.has_text
    used = Used()
    parts, labels, notes, slot = _read_all(
        sources, None if is_of_text else given, used, text_needed=text is not False
    )
    if labels:
        if text is False:
            named = numbered(labels)
            found = without_text(named, used)
        else:
            if text is None:
                place = Place(file=labels[0].place.file)
                remedy = f"give it with --text: {_TEXTS}"
                raise mistake(
                    place, "segmentations without text", "the text they belong to", remedy
                )
            source = Source(text, used)
            found, named = _find_text(source, labels, given if is_of_text else None)
            notes += source.notes
        parts.insert(slot, Corpus(tuple(attach(found, named)), tuple(notes)))
    elif text:
        raise mistake(
            None,
            f"--text {shorten(str(text))}, but no file that needs it",
            "text only with segeval, nltk or chapter files",
            "leave out --text",
        )
    return Corpus.merge(parts)


def _read_all(
    sources: Sequence[Any], format: Format | None, used: Used, *, text_needed: bool
) -> tuple[list[Corpus], list[Label], list[str], int]:
    """Read everything: corpora, labels, the labels' notes, and where among the corpora they stand.

    The labels of all files become one corpus, where the first of them is.
    """
    parts: list[Corpus] = []
    labels: list[Label] = []
    notes: list[str] = []
    slot = 0
    for given in sources:
        if not _is_path(given) or str(given).startswith(_HUB):
            from reffree.formats import values

            make = values.read_data_set if _is_path(given) else values.corpus_of
            parts.append(make(given, format))
        else:
            for path in shard_files(given):
                source = Source(path, used)
                found = read(source, format, text_needed=text_needed)
                documents = [item for item in found if isinstance(item, Document)]
                if documents:
                    parts.append(Corpus(tuple(documents), tuple(source.notes)))
                    continue
                slot = slot if labels else len(parts)
                labels += [item for item in found if isinstance(item, Label)]
                notes += source.notes
    return parts, labels, notes, slot


def _is_path(given: object) -> bool:
    return isinstance(given, (str, os.PathLike))


def corpus_names(paths: Sequence[str]) -> dict[str, str]:
    """Name corpora that are read apart: name → path, in order.

    A file's name without its extension; the paths as they were given where two files share it.

    >>> corpus_names(["a/talks.jsonl", "b/meetings.jsonl"])
    {'talks': 'a/talks.jsonl', 'meetings': 'b/meetings.jsonl'}
    >>> list(corpus_names(["a/talks.jsonl", "b/talks.jsonl"]))
    ['a/talks.jsonl', 'b/talks.jsonl']
    """
    names = ["stdin" if path == "-" else unpacked_name(Path(path)).stem for path in paths]
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
        raise mistake(None, "no paths", "at least one", f"{one_by_one}, or - for standard input")
    for path in paths:
        if _is_path(path):
            continue
        from reffree.formats.values import is_value

        if not is_value(path):
            kind = _KINDS.get(type(path), type(path).__name__)
            raise mistake(Place(), f"{kind} as a path", "a string or a Path", one_by_one)
    if [str(path) for path in (*paths, text) if _is_path(path)].count("-") > 1:
        expected = "it once, since standard input can be read only once"
        raise mistake(Place(file=STDIN), "- twice", expected, "give the other input as a file")


# The text of formats that hold none


def _find_text(
    source: Source, labels: Sequence[Label], format: Format | None
) -> tuple[list[Document], list[Label]]:
    """Read the documents that the labels speak of, and give labels without ids theirs."""
    if format is None:
        has_times = any(isinstance(label.value, Starts) for label in labels)
        is_corpus = source.suffix in _CORPUS_SUFFIXES or (has_times and not source.is_stdin)
    else:
        is_corpus = format.name != "lines"
    if is_corpus and not source.is_folder:
        documents = [doc for doc in read(source, format) if isinstance(doc, Document)]
        if not documents:
            found = "a file without text"
            expected = "a corpus, or plain text with one unit per line"
            raise mistake(source.place(), found, expected, "give the text with --text")
        return documents, numbered(labels, [document.id for document in documents])
    named = numbered(labels)
    ids = list(dict.fromkeys(str(label.document) for label in named))
    if source.is_folder:
        return _folder_text(source, ids), named
    return _block_text(source, ids, format or parse_format("lines")), named


def _block_text(source: Source, ids: Sequence[str], format: Format) -> list[Document]:
    blocks = cast(Any, format).blocks(source)
    if len(blocks) != len(ids):
        found = f"{counted(len(blocks), 'block')} of text"
        expected = f"{len(ids)}, one for every document, separated by blank lines"
        remedy = "check that text and segmentations belong together, or give a folder of "
        remedy += "<id>.txt files"
        remedy += ", or write --format lines:documents=one" if len(ids) == 1 < len(blocks) else ""
        raise mistake(source.place(), found, expected, remedy)
    return [
        Document.build(id, [text for _, text in block], place=source.place(block[0][0]))
        for id, block in zip(ids, blocks, strict=True)
    ]


def _folder_text(source: Source, ids: Sequence[str]) -> list[Document]:
    files = {
        without_suffix(name, (".txt",)): file
        for name, file in source.files.items()
        if name.endswith(".txt")
    }
    for id in ids:
        if id not in files:
            found = f"no file {id + '.txt'!r} in the folder"
            remedy = "add it, one unit per line"
            raise mistake(Place(source.name, document=id), found, "one for every document", remedy)
    documents = []
    for id, file in source.opened((id, files[id]) for id in ids):
        units = [text for _, text in file.lines()]
        while units and not units[-1].strip():
            units.pop()
        documents.append(Document.build(id, units, place=file.place()))
    expected = "one .txt file for every document"
    source.note_unread(len(source.files) - len(ids), expected, "that no segmentation belongs to")
    return documents
