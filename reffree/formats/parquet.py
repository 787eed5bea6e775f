"""Parquet with the fields of corpus JSONL, one document a row, or a unit a row (needs pyarrow).

``id`` is a string, ``units`` and ``speakers`` lists of strings, ``gold`` a list of integers,
``systems`` and ``golds`` structs or maps of such lists. A null is a field left out. A file without
``units`` is a table with a unit a row (see `tables`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from reffree.data.corpus import Document
from reffree.data.segmentation import Convention
from reffree.formats import jsonl
from reffree.formats import tables as unit_tables
from reffree.formats.format import Format
from reffree.formats.shards import PARQUET
from reffree.formats.source import Source, unreadable
from reffree.util.errors import InputError, Place, shorten
from reffree.util.optional import require

ROWS_AT_ONCE = 64
_TABLES = ("systems", "golds", "meta")


@dataclass(frozen=True)
class Parquet(Format):
    """Parquet; ``convention`` as for corpus JSONL."""

    convention: Convention | None = None
    name = "parquet"
    owns = (PARQUET,)

    def read(self, source: Source) -> list[Document]:
        """Read every document."""
        if not is_corpus(source):
            return unit_tables.Table(convention=self.convention).read(source)
        documents = []
        for table, place in tables(source):
            documents.append(jsonl.document(table, place, self.convention))
        return documents


def is_corpus(source: Source) -> bool:
    """Whether a row is a document, and not a unit."""
    place = source.place()
    pa, pq = _pyarrow(place)
    with _sentences(pa, place), pq.ParquetFile(source.path) as file:
        return "units" in file.schema_arrow.names


def tables(source: Source, *, nulls: bool = False) -> Iterator[tuple[dict[str, object], Place]]:
    """Yield rows as corpus JSONL would have them; with ``nulls`` a row has every column."""
    place = source.place()
    pa, pq = _pyarrow(place)
    number = 0
    with _sentences(pa, place), pq.ParquetFile(source.path) as file:
        for index in range(file.num_row_groups):
            source.used.add(file.metadata.row_group(index).num_rows, 0, place)
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=[index]):
                source.used.add(0, batch.nbytes, place)
                for row in batch.to_pylist(maps_as_pydicts="strict"):
                    number += 1
                    yield row if nulls else _plain(row), Place(file=f"{source.name}, row {number}")


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
    def refusal(name: str) -> InputError:
        return InputError(
            "a Parquet file, but no pyarrow",
            expected="pyarrow to read it",
            remedy="run python -m pip install pyarrow, or use corpus JSONL",
            place=place,
        )

    return require("pyarrow", refusal), require("pyarrow.parquet", refusal)


def _refusal(reason: str, place: Place) -> InputError:
    first = reason.strip().splitlines()[0] if reason.strip() else "no reason given"
    return InputError(
        f"a file that is not Parquet ({shorten(first, 120)})",
        expected="Parquet, as its name says",
        remedy="write it again, or use corpus JSONL",
        place=place,
    )
