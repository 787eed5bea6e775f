"""Text for formats that hold none (``--text``).

A corpus file (JSONL, or JSON) gives units by id, and its own gold and systems stay. A plain text
file has one unit per line and a blank line between documents, in the order of the labels. A folder
has one ``<id>.txt`` per document, one unit per line; blank lines inside count as units without
text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from reffree.corpus import Document
from reffree.errors import InputError, Place, counted
from reffree.formats.labels import Label, numbered
from reffree.formats.readers import read
from reffree.formats.source import LINE_SUFFIXES, Source, without_suffix
from reffree.formats.wording import not_read


def find_text(source: Source, labels: Sequence[Label]) -> tuple[list[Document], list[Label]]:
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
    return (_folder if source.is_folder else _blocks)(source, ids), named


def missing_text(label: Label) -> InputError:
    """Say that a file holds segmentations only."""
    return InputError(
        "segmentations without text",
        expected="the text they belong to",
        remedy="give it with --text: a corpus JSONL, a text file with one unit per line and a "
        "blank line between documents, or a folder of <id>.txt files",
        place=Place(file=label.place.file),
    )


def _blocks(source: Source, ids: Sequence[str]) -> list[Document]:
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


def _folder(source: Source, ids: Sequence[str]) -> list[Document]:
    listed = source.files()
    paths = {without_suffix(name, (".txt",)): path for name, path in listed if name[-4:] == ".txt"}
    documents, oddities = [], []
    for id in ids:
        if id not in paths:
            raise InputError(
                f"no file {id + '.txt'!r} in the folder",
                expected="one for every document",
                remedy="add it, one unit per line",
                place=Place(source.name, document=id),
            )
        file = Source(paths[id])
        units = [text for _, text in file.lines()]
        while units and not units[-1].strip():
            units.pop()
        documents.append(Document.build(id, units, place=file.place()))
        oddities.append(file.oddities)
    source.note_oddities(oddities)
    others = len(listed) - len(ids)
    if others:
        source.note(
            f"{counted(others, 'file')} that no segmentation belongs to",
            expected="one .txt file for every document",
            remedy=not_read(others),
        )
    return documents
