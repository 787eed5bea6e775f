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
from reffree.formats.source import LINE_SUFFIXES, Source, unreadable
from reffree.formats.strict_json import Record
from reffree.util.errors import InputError, Place, mistake, shorten
from reffree.util.optional import require

PARQUET = ".parquet"
SUFFIXES = (*LINE_SUFFIXES, PARQUET)
ROWS_AT_ONCE = 64
_TABLES = ("systems", "golds", "meta")


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
        self.sources = [Source(file, is_streamed=True) for file in files]
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
            tables = parquet_tables if source.suffix == PARQUET else jsonl.tables
            for table in tables(source):
                document = jsonl.document(table, table.place)
                refuse_repeat(document, first)
                yield document
                found += 1
            if not found:
                remedy = "check that the file is not empty"
                raise mistake(source.place(), "no documents", "at least one", remedy)
            self.notes += source.notes


def _is_streamed(source: Source) -> bool:
    if source.suffix == PARQUET:
        return _has_documents(source)
    return source.suffix in LINE_SUFFIXES and detect(source) == "jsonl"


# Parquet


@dataclass(frozen=True)
class Parquet(Format):
    """Parquet; ``convention`` as for corpus JSONL."""

    convention: Convention | None = None
    name = "parquet"
    owns = (PARQUET,)

    def read(self, source: Source) -> list[Document]:
        """Read every document."""
        if not _has_documents(source):
            from reffree.formats.tables import Table

            return Table(convention=self.convention).read(source)
        tables = parquet_tables(source)
        return [jsonl.document(table, table.place, self.convention) for table in tables]


def _has_documents(source: Source) -> bool:
    """Whether a row is a document, and not a unit."""
    place = source.place()
    pa, pq = _pyarrow(place)
    with _sentences(pa, place), pq.ParquetFile(source.path) as file:
        return "units" in file.schema_arrow.names


def parquet_tables(source: Source, *, nulls: bool = False) -> Iterator[Record]:
    """Yield rows as corpus JSONL would have them; with ``nulls`` a row has every column."""
    place = source.place()
    pa, pq = _pyarrow(place)
    number = 0
    with _sentences(pa, place), pq.ParquetFile(source.path) as file:
        if not source.is_streamed:
            source.used.add(file.metadata.num_rows, 0, place)
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
            if not source.is_streamed:
                source.used.add(0, batch.nbytes, place)
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                number += 1
                at = Place(file=f"{source.name}, row {number}")
                yield Record(row if nulls else _plain(row), "a row", at)


@contextmanager
def _sentences(pa: Any, place: Place) -> Iterator[None]:  # noqa: ANN401  (a module)
    """Turn what pyarrow and the system say about a file into a sentence."""
    try:
        yield
    except OSError as error:
        # What pyarrow says of damaged contents has no number of the system's.
        told = _refusal(str(error), place) if error.errno is None else unreadable(error, place)
        raise told from None
    except (pa.ArrowException, UnicodeDecodeError, KeyError, OverflowError, ValueError) as error:
        raise _refusal(str(error), place) from None


def _plain(values: dict[str, Any]) -> dict[str, object]:
    """Leave out nulls, also those of systems that other rows have."""
    present = {key: value for key, value in values.items() if value is not None}
    for key in _TABLES:
        if isinstance(present.get(key), dict):
            inner = {name: each for name, each in present[key].items() if each is not None}
            present[key] = inner
    return present


def _pyarrow(place: Place) -> tuple[Any, Any]:
    remedy = "run python -m pip install pyarrow, or use corpus JSONL"
    missing = mistake(place, "a Parquet file, but no pyarrow", "pyarrow to read it", remedy)
    found = require("pyarrow", lambda name: missing)
    return found, require("pyarrow.parquet", lambda name: missing)


def _refusal(reason: str, place: Place) -> InputError:
    first = reason.strip().splitlines()[0] if reason.strip() else "no reason given"
    found = f"a file that is not Parquet ({shorten(first, 120)})"
    remedy = "write it again, or use corpus JSONL"
    return mistake(place, found, "Parquet, as its name says", remedy)
