"""Corpora of many files read a document at a time, and read again where they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reffree.data.corpus import Corpus, Document, refuse_repeat
from reffree.formats import jsonl, parquet
from reffree.formats.format import detect
from reffree.formats.source import LINE_SUFFIXES, Source
from reffree.formats.strict_json import as_object, parse
from reffree.util.errors import InputError, Place

SUFFIXES = (*LINE_SUFFIXES, parquet.SUFFIX)


@dataclass(frozen=True, slots=True)
class Span:
    """Documents that stand behind one another in a file."""

    file: str  # absolute
    start: int  # byte of the first line, or row
    line: int  # number of the first line; 0 for rows
    count: int


def shard_files(path: str | Path) -> list[str | Path]:
    """Return the files of a folder of shards, by name; of anything else the path itself."""
    source = Source(path)
    if not source.is_folder:
        return [path]
    files = [file for _, file in source.files()]
    is_sharded = bool(files) and all(Source(file).suffix in SUFFIXES for file in files)
    return [*files] if is_sharded else [path]


class Shards:
    """Documents of corpus JSONL and Parquet files, in order, never all in memory.

    ``notes`` are known once all were read.
    """

    def __init__(self, paths: Sequence[str | Path]) -> None:
        """Remember the files."""
        self.sources = [Source(file) for path in paths for file in shard_files(path)]
        self.notes: list[str] = []

    @classmethod
    def of(cls, paths: Sequence[str | Path], format: str | None = None) -> Shards | None:
        """Open paths as shards; None if one is standard input or of another format."""
        if format not in (None, "jsonl"):
            return None
        shards = cls(paths)
        return shards if all(map(_is_streamed, shards.sources)) else None

    def __iter__(self) -> Iterator[tuple[Document, Span]]:
        """Yield every document, checked, and where to read it again; ids must differ."""
        self.notes = []
        first: dict[str, Place] = {}
        for source in self.sources:
            source.notes, source.oddities = [], {}
            found = 0
            for document, span in _documents(source):
                found += 1
                refuse_repeat(document, first)
                yield document, span
            if not found:
                raise InputError(
                    "no documents",
                    expected="at least one",
                    remedy="check that the file is not empty",
                    place=source.place(),
                )
            self.notes += source.notes


def read_spans(spans: Sequence[Span]) -> Corpus:
    """Read documents again that were checked before."""
    return Corpus.of_checked(document for span in spans for document in _span_documents(span))


def joined(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Put together spans of documents in corpus order that stand in the same file."""
    result: list[Span] = []
    for span in spans:
        if result and result[-1].file == span.file:
            result[-1] = replace(result[-1], count=result[-1].count + span.count)
        else:
            result.append(span)
    return tuple(result)


def _is_streamed(source: Source) -> bool:
    if source.suffix == parquet.SUFFIX:
        return parquet.is_corpus(source)
    return source.suffix in LINE_SUFFIXES and detect(source) == "jsonl"


def _documents(source: Source) -> Iterator[tuple[Document, Span]]:
    file = str(source.path.resolve())
    if source.suffix == parquet.SUFFIX:
        for row, (table, place) in enumerate(parquet.tables(source)):
            yield jsonl.document(table, place), Span(file, row, 0, 1)
        return
    for table, place in jsonl.tables(source):
        number = place.line or 1
        yield jsonl.document(table, place), Span(file, source.line_start, number, 1)


def _span_documents(span: Span) -> Iterator[Document]:
    source = Source(span.file)
    if not span.line:
        for table, place in parquet.tables(source, span.start, span.count):
            yield jsonl.document(table, place)
        return
    number, found = span.line, 0
    with source.opened_bytes() as file:
        file.seek(span.start)
        while found < span.count and (raw := file.readline()):
            if raw.strip():
                place = source.place(number)
                value = parse(raw.decode("utf-8-sig"), place)
                yield jsonl.document(as_object(value, "a document", place), place)
                found += 1
            number += 1
