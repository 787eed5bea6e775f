"""Corpora of many files read a document at a time, as often as they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from reffree.data.corpus import Document, refuse_repeat
from reffree.formats import jsonl
from reffree.formats.format import detect
from reffree.formats.source import LINE_SUFFIXES, Source
from reffree.util.errors import InputError, Place

PARQUET = ".parquet"
SUFFIXES = (*LINE_SUFFIXES, PARQUET)


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

    def __iter__(self) -> Iterator[Document]:
        """Yield every document, checked; ids must differ."""
        self.notes = []
        first: dict[str, Place] = {}
        for source in self.sources:
            source.notes, source.oddities = [], {}
            found = 0
            for table, place in _tables(source):
                document = jsonl.document(table, place)
                refuse_repeat(document, first)
                source.forget()
                yield document
                found += 1
            if not found:
                raise InputError(
                    "no documents",
                    expected="at least one",
                    remedy="check that the file is not empty",
                    place=source.place(),
                )
            self.notes += source.notes


def _tables(source: Source) -> Iterator[tuple[dict[str, object], Place]]:
    if source.suffix != PARQUET:
        return jsonl.tables(source)
    from reffree.formats import parquet

    return parquet.tables(source)


def _is_streamed(source: Source) -> bool:
    if source.suffix == PARQUET:
        from reffree.formats import parquet

        return parquet.is_corpus(source)
    return source.suffix in LINE_SUFFIXES and detect(source) == "jsonl"
