"""Corpora of many files read a document at a time, as often as they are needed; Parquet files.

Parquet has the fields of corpus JSONL, one document a row, or a unit a row (needs pyarrow): ``id``
is a string, ``units`` and ``speakers`` lists of strings, ``gold`` a list of integers, ``systems``
and ``golds`` structs or maps of such lists. A null is a field left out. A file without ``units`` is
a table with a unit a row (see `tables`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reffree.data.corpus import Document, refuse_repeat
from reffree.data.segmentation import Convention
from reffree.formats import jsonl
from reffree.formats.format import Format, detect
from reffree.formats.source import LINE_SUFFIXES, Source, Used, unreadable
from reffree.formats.strict_json import Record
from reffree.util.errors import Place, mistake, shorten
from reffree.util.optional import require

PARQUET = ".parquet"
SUFFIXES = (*LINE_SUFFIXES, PARQUET)
ROWS_AT_ONCE = 64


def shard_files(path: str | Path) -> list[str | Path]:
    """Return the files of a folder of shards, by name; of anything else the path itself."""
    source = Source(path)
    is_sharded = source.is_folder and bool(source.files) and source.suffixes <= set(SUFFIXES)
    return [file.path for file in source.files.values()] if is_sharded else [path]


class Shards:
    """Documents of corpus JSONL and Parquet files, in order, never all in memory.

    ``notes`` are known once all were read.
    """

    def __init__(self, paths: Sequence[str | Path]) -> None:
        """Remember the files."""
        files = [file for path in paths for file in shard_files(path)]
        self.sources = [Source(file, Used(is_stream=True)) for file in files]
        self.notes: list[str] = []

    @classmethod
    def of(cls, paths: Sequence[str | Path], format: str | None = None) -> Shards | None:
        """Open paths as shards; None if one is standard input or of another format."""
        if format not in (None, "jsonl"):
            return None
        shards = cls(paths)
        for source in shards.sources:
            is_line = source.suffix in LINE_SUFFIXES and detect(source) == "jsonl"
            if not is_line and not (source.suffix == PARQUET and _has_documents(source)):
                return None
        return shards

    def __iter__(self) -> Iterator[Document]:
        """Yield every document, checked; ids must differ."""
        self.notes = []
        first: dict[str, Place] = {}
        for source in self.sources:
            source.notes, source.oddities = [], {}
            n = len(first)
            tables = parquet_tables if source.suffix == PARQUET else jsonl.tables
            for table in tables(source):
                document = jsonl.document(table, table.place)
                refuse_repeat(document, first)
                yield document
            if len(first) == n:
                remedy = "check that the file is not empty"
                raise mistake(source.place(), "no documents", "at least one", remedy)
            self.notes += source.notes


# Parquet


@dataclass(frozen=True)
class Parquet(Format):
    """Parquet; ``convention`` as for corpus JSONL."""

    convention: Convention | None = None
    name = "parquet"
    owns = (PARQUET,)

    def read(self, source: Source) -> list[Document]:
        """Read every document."""
        if _has_documents(source):
            rows = parquet_tables(source)
            return [jsonl.document(row, row.place, self.convention) for row in rows]
        from reffree.formats.tables import Table

        return Table(convention=self.convention).read(source)


def _has_documents(source: Source) -> bool:
    """Whether a row is a document, and not a unit."""
    with _opened(source) as file:
        return "units" in file.schema_arrow.names


def parquet_tables(source: Source, *, nulls: bool = False) -> Iterator[Record]:
    """Yield rows as corpus JSONL would have them; with ``nulls`` a row has every column."""
    place = source.place()
    number = 0
    with _opened(source) as file:
        source.used.add(file.metadata.num_rows, 0, place)
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
            source.used.add(0, batch.nbytes, place)
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                number += 1
                at = Place(file=f"{source.name}, row {number}")
                yield Record(row if nulls else _without_nulls(row), "a row", at)


@contextmanager
def _opened(source: Source) -> Iterator[Any]:
    """Open a Parquet file; what pyarrow and the system say about it becomes a sentence."""
    place = source.place()
    remedy = "run python -m pip install pyarrow, or use corpus JSONL"
    missing = mistake(place, "a Parquet file, but no pyarrow", "pyarrow to read it", remedy)
    pa = require("pyarrow", lambda name: missing)
    pq = require("pyarrow.parquet", lambda name: missing)
    try:
        with pq.ParquetFile(source.path) as file:
            yield file
    except (pa.ArrowException, OSError, KeyError, OverflowError, ValueError) as error:
        # What pyarrow says of damaged contents has no number of the system's.
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable(error, place) from None
        reason = (str(error).strip() or "no reason given").splitlines()[0]
        found = f"a file that is not Parquet ({shorten(reason, 120)})"
        remedy = "write it again, or use corpus JSONL"
        raise mistake(place, found, "Parquet, as its name says", remedy) from None


def _without_nulls(values: dict[str, Any]) -> dict[str, object]:
    """Leave out nulls, also those of systems that other rows have."""
    present = {key: value for key, value in values.items() if value is not None}
    for key in ("systems", "golds", "meta"):
        if isinstance(inner := present.get(key), dict):
            present[key] = {name: each for name, each in inner.items() if each is not None}
    return present
