"""Data sets of the Hugging Face hub, ``hf://owner/name``, ``hf://owner/name/config:split``.

Needs the package datasets. Rows are documents as corpus JSONL has them, or a unit each (see
`tables`). Without a split all are read, one behind the other. What is in the cache is read without
a connection where ``HF_HUB_OFFLINE=1`` or ``HF_DATASETS_OFFLINE=1`` says so. ``hf://./folder`` is a
folder of data files on this machine. No code of a data set is run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from reffree.data.corpus import Corpus, Document
from reffree.formats.format import Format
from reffree.formats.values import documents_of_rows
from reffree.util.errors import InputError, Place, first_line, shorten
from reffree.util.optional import require

SCHEME = "hf://"


def read(address: str, format: Format | None) -> Corpus:
    """Read the documents of a data set; an id that several splits have gets the split's name."""
    place = Place(file=address)
    path, config, split = _parts(address, place)
    datasets = require("datasets", lambda name: _missing(place))
    if format is not None and format.name not in ("table", "jsonl"):
        raise InputError(
            f"--format {format.name}",
            expected="table or jsonl, since the rows of a data set are units or documents",
            remedy="leave it out",
            place=place,
        )
    found = _loaded(datasets, path, config, split, place)
    tables: dict[str, Any] = dict(found) if isinstance(found, dict) else {split or "": found}
    documents: list[Document] = []
    for name, table in tables.items():
        at = f"{address}, {name}" if len(tables) > 1 else address
        id = name or path.rsplit("/", 1)[-1]
        documents += documents_of_rows(_rows(table), format, at, id)
    if len(tables) > 1:
        count = Counter(document.id for document in documents)
        documents = [
            replace(each, id=f"{_split_of(each)}/{each.id}") if count[each.id] > 1 else each
            for each in documents
        ]
    return Corpus(tuple(documents))


def _split_of(document: Document) -> str:
    return (document.place.file or "").split(", ")[1]


def _parts(address: str, place: Place) -> tuple[str, str | None, str | None]:
    """Read ``hf://owner/name/config:split``; a path that begins with a dot or / is a folder."""
    rest, _, split = address.removeprefix(SCHEME).partition(":")
    is_folder = rest.startswith((".", "/", "~"))
    parts = rest.split("/")
    if not rest or (not is_folder and (not all(parts) or len(parts) > 3)):
        raise InputError(
            f"the address {shorten(address)!r}",
            expected="hf://owner/name, hf://owner/name/config:split, or hf://./folder",
            remedy="write the data set's name as the hub has it",
            place=place,
        )
    if is_folder:
        return rest, None, split or None
    return "/".join(parts[:2]), parts[2] if len(parts) == 3 else None, split or None


def _loaded(datasets: Any, path: str, config: str | None, split: str | None, place: Place) -> Any:  # noqa: ANN401
    try:
        return datasets.load_dataset(path, name=config, split=split)
    except Exception as error:  # of the hub, the network, the files, the libraries below
        raise InputError(
            f"a data set that cannot be read ({shorten(first_line(error), 200)})",
            expected="one that is on the hub or in the cache",
            remedy="check its name, config and split, and the connection",
            place=place,
        ) from error


def _rows(table: Any) -> Iterator[dict[str, object]]:  # noqa: ANN401  (a Dataset)
    yield from table


def _missing(place: Place) -> InputError:
    return InputError(
        "a data set of the hub, but no datasets",
        expected="the package datasets to read it",
        remedy="run python -m pip install 'reffree[hf]'",
        place=place,
    )
