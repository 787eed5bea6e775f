"""Python values as a corpus: frames of any library, lists of documents, lists of sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Convention
from reffree.formats import jsonl
from reffree.formats.format import Format
from reffree.formats.tables import Row, Table
from reffree.util.errors import InputError, Place, shorten

_FRAME = "<frame>"
_LIST = "<list>"
_PATHS = (".jsonl", ".ndjson", ".json", ".parquet", ".csv", ".tsv", ".ref", ".txt", ".gz")


def is_value(given: object) -> bool:
    """Whether something can be a corpus without being read from a file."""
    if isinstance(given, (Corpus, Document)) or _is_frame(given):
        return True
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)) or not given:
        return False
    return not any(isinstance(each, str) and _is_path(each) for each in given)


def _is_path(text: str) -> bool:
    """Whether a sentence is rather the name of a file."""
    return text.lower().endswith(_PATHS) and not any(map(str.isspace, text))


def _is_frame(given: object) -> bool:
    return hasattr(given, "columns") and (hasattr(given, "iter_rows") or hasattr(given, "to_dict"))


def corpus_of(given: Any, format: Format | None) -> Corpus:  # noqa: ANN401  (what `is_value` takes)
    """Make a corpus of a value; the format is of use where it is a table's or corpus JSONL's."""
    if _is_frame(given):
        return Corpus(tuple(documents_of_rows(_frame_rows(given), format, _FRAME)))
    if isinstance(format, Table):
        raise InputError(
            "the format table for a value that is no frame",
            expected="it for a table (CSV, TSV, Parquet, a frame)",
            remedy="leave it out",
        )
    if isinstance(given, Corpus):
        return given
    if isinstance(given, Document):
        return Corpus((given,))
    return Corpus(tuple(_listed(list(given), format)))


def documents_of_rows(
    rows: Iterator[Row], format: Format | None, name: str, id: str = "1"
) -> list[Document]:
    """Make documents of rows that are a document each, if they have ``units``, or a unit each."""
    placed = ((row, Place(file=f"{name}, row {i + 1}")) for i, row in enumerate(rows))
    first = next(placed, None)
    if first is None:
        raise InputError(
            "no rows", expected="at least one", remedy="check what was given", place=Place(name)
        )

    def all_rows() -> Iterator[tuple[Row, Place]]:
        yield first
        yield from placed

    if "units" in first[0] and not isinstance(format, Table):
        return [
            jsonl.document(
                {key: _plain(value) for key, value in row.items() if not _is_null(value)},
                place,
                _convention(format),
            )
            for row, place in all_rows()
        ]
    table = format if isinstance(format, Table) else Table(convention=_convention(format))
    return table.documents(all_rows(), id, Place(name))


def _convention(format: Format | None) -> Convention | None:
    return getattr(format, "convention", None)


def _plain(value: Any) -> object:  # noqa: ANN401  (a cell)
    """Turn arrays and series into lists, also inside of lists and tables, nulls left out."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items() if not _is_null(each)}
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _is_null(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _frame_rows(frame: Any) -> Iterator[Row]:  # noqa: ANN401  (of pandas, polars, …)
    if hasattr(frame, "iter_rows"):  # polars
        yield from frame.iter_rows(named=True)
        return
    names = [str(column) for column in frame.columns]
    for row in frame.itertuples(index=False, name=None):
        yield dict(zip(names, row, strict=True))


def _listed(given: list[Any], format: Format | None) -> Iterator[Document]:
    """Make documents of a list: of documents, or of sentences."""
    if all(isinstance(each, str) for each in given):
        yield Document.build("1", given, place=Place(_LIST))
        return
    for i, each in enumerate(given):
        place = Place(f"{_LIST}, item {i + 1}")
        if isinstance(each, Document):
            yield each
        elif isinstance(each, Mapping):
            table = {str(key): _plain(value) for key, value in each.items()}
            yield jsonl.document(table, place, _convention(format))
        elif isinstance(each, Sequence) and not isinstance(each, (str, bytes)):
            yield Document.build(str(i + 1), list(each), place=place)
        else:
            raise InputError(
                f"{shorten(repr(each))} ({type(each).__name__}) in a list",
                expected="all documents, all lists of sentences, or all sentences",
                remedy="give one kind of them",
                place=place,
            )
