"""Python values as a corpus: frames, lists of documents, lists of sentences; data sets of the hub.

Data sets of the Hugging Face hub are ``hf://owner/name`` or ``hf://owner/name/config:split`` and
need the package datasets. Rows are documents as corpus JSONL has them, or a unit each (see
`tables`). Without a split all are read, one behind the other. What is in the cache is read without
a connection where ``HF_HUB_OFFLINE=1`` or ``HF_DATASETS_OFFLINE=1`` says so. ``hf://./folder`` is a
folder of data files on this machine. No code of a data set is run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Convention
from reffree.formats import jsonl
from reffree.formats.format import Format
from reffree.formats.tables import Row, Table
from reffree.util.errors import Place, first_line, mistake, shorten
from reffree.util.optional import require

SCHEME = "hf://"
_FRAME = "<frame>"
_LIST = "<list>"
_PATHS = (".jsonl", ".ndjson", ".json", ".parquet", ".csv", ".tsv", ".ref", ".txt", ".gz")


def is_value(given: object) -> bool:
    """Whether something can be a corpus without being read from a file."""
    if isinstance(given, (Corpus, Document)) or _is_frame(given):
        return True
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)) or not given:
        return False
    texts = [each for each in given if isinstance(each, str)]  # sentences, or names of files
    return not any(text.lower().endswith(_PATHS) and text.split() == [text] for text in texts)


def _is_frame(given: object) -> bool:
    return hasattr(given, "columns") and (hasattr(given, "iter_rows") or hasattr(given, "to_dict"))


def corpus_of(given: Any, format: Format | None) -> Corpus:  # noqa: ANN401  (what `is_value` takes)
    """Make a corpus of a value; the format is of use where it is a table's or corpus JSONL's."""
    if _is_frame(given):
        if hasattr(given, "iter_rows"):  # polars
            rows = iter(given.iter_rows(named=True))
        else:
            names = [str(column) for column in given.columns]
            cells = given.itertuples(index=False, name=None)
            rows = (dict(zip(names, row, strict=True)) for row in cells)
        return Corpus(tuple(documents_of_rows(rows, format, _FRAME)))
    if isinstance(format, Table):
        found = "the format table for a value that is no frame"
        raise mistake(None, found, "it for a table (CSV, TSV, Parquet, a frame)", "leave it out")
    if isinstance(given, Corpus):
        return given
    if isinstance(given, Document):
        return Corpus((given,))
    return Corpus(tuple(_listed(list(given), format)))


def documents_of_rows(
    rows: Iterator[Row], format: Format | None, name: str, id: str = "1"
) -> list[Document]:
    """Make documents of rows that are a document each, if they have ``units``, or a unit each."""
    placed: Iterator[tuple[Row, Place]]
    placed = ((row, Place(file=f"{name}, row {i + 1}")) for i, row in enumerate(rows))
    first = next(placed, None)
    if first is None:
        raise mistake(Place(name), "no rows", "at least one", "check what was given")

    placed = chain([first], placed)
    convention: Convention | None = getattr(format, "convention", None)
    if "units" in first[0] and not isinstance(format, Table):
        return [jsonl.document(_plain(row), place, convention) for row, place in placed]
    table = format if isinstance(format, Table) else Table(convention=convention)
    return table.documents(placed, id, Place(name))


def _plain(value: Any) -> Any:  # noqa: ANN401  (a cell)
    """Turn arrays and series into lists, also inside of lists and tables, nulls left out."""
    if isinstance(value, Mapping):
        nulls = [k for k, v in value.items() if v is None or (isinstance(v, float) and v != v)]
        return {str(key): _plain(each) for key, each in value.items() if key not in nulls}
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _listed(given: list[Any], format: Format | None) -> Iterator[Document]:
    if all(isinstance(each, str) for each in given):
        yield Document.build("1", given, place=Place(_LIST))
        return
    for i, each in enumerate(given):
        place = Place(f"{_LIST}, item {i + 1}")
        if isinstance(each, Document):
            yield each
        elif isinstance(each, Mapping):
            table = {str(key): _plain(value) for key, value in each.items()}
            yield jsonl.document(table, place, getattr(format, "convention", None))
        elif isinstance(each, Sequence) and not isinstance(each, (str, bytes)):
            yield Document.build(str(i + 1), list(each), place=place)
        else:
            found = f"{shorten(repr(each))} ({type(each).__name__}) in a list"
            expected = "all documents, all lists of sentences, or all sentences"
            raise mistake(place, found, expected, "give one kind of them")


# Data sets of the hub


def read_data_set(address: str, format: Format | None) -> Corpus:
    """Read the documents of a data set; an id that several splits have gets the split's name."""
    place = Place(file=address)
    path, config, split = _parts(address, place)
    remedy = "run python -m pip install 'reffree[hf]'"
    found = "a data set of the hub, but no datasets"
    missing = mistake(place, found, "the package datasets to read it", remedy)
    datasets = require("datasets", lambda name: missing)
    if format is not None and format.name not in ("table", "jsonl"):
        expected = "table or jsonl, since the rows of a data set are units or documents"
        raise mistake(place, f"--format {format.name}", expected, "leave it out")
    try:
        loaded = datasets.load_dataset(path, name=config, split=split)
    except Exception as error:  # of the hub, the network, the files, the libraries below
        found = f"a data set that cannot be read ({shorten(first_line(error), 200)})"
        remedy = "check its name, config and split, and the connection"
        raise mistake(place, found, "one that is on the hub or in the cache", remedy) from error
    tables: dict[str, Any] = dict(loaded) if isinstance(loaded, dict) else {split or "": loaded}
    documents: list[Document] = []
    for name, table in tables.items():
        at = f"{address}, {name}" if len(tables) > 1 else address
        id = name or path.rsplit("/", 1)[-1]
        documents += documents_of_rows(iter(table), format, at, id)
    if len(tables) > 1:
        count = Counter(document.id for document in documents)
        documents = [
            replace(each, id=f"{(each.place.file or '').split(', ')[1]}/{each.id}")
            if count[each.id] > 1
            else each
            for each in documents
        ]
    return Corpus(tuple(documents))


def _parts(address: str, place: Place) -> tuple[str, str | None, str | None]:
    """Read ``hf://owner/name/config:split``; a path that begins with a dot or / is a folder."""
    rest, _, split = address.removeprefix(SCHEME).partition(":")
    is_folder = rest.startswith((".", "/", "~"))
    parts = rest.split("/")
    if not rest or (not is_folder and (not all(parts) or len(parts) > 3)):
        found = f"the address {shorten(address)!r}"
        expected = "hf://owner/name, hf://owner/name/config:split, or hf://./folder"
        raise mistake(place, found, expected, "write the data set's name as the hub has it")
    if is_folder:
        return rest, None, split or None
    return "/".join(parts[:2]), parts[2] if len(parts) == 3 else None, split or None
