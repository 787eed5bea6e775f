"""Documents' scores written as they come: part files in a folder, and a summary at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

from reffree.evaluate.table import POSTERIOR, DocumentScores, ScoreTable
from reffree.util.atomic import replacing, write_file
from reffree.util.errors import InputError, OptionError, Place
from reffree.util.optional import require

ShardFormat = Literal["jsonl", "parquet"]
SHARD_FORMATS: tuple[str, ...] = get_args(ShardFormat)
ROWS_PER_PART = 10_000
SUMMARY = "summary.json"


class DocumentShards:
    """A folder of ``part-00000.jsonl`` or ``.parquet``, each written whole, in corpus order.

    A line of JSONL is an entry of ``documents`` in the JSON of ``reffree score --per-document``; a
    row of Parquet is one metric of it. ``summary.json`` is all but the documents, and comes last:
    a folder without one is unfinished.
    """

    def __init__(self, folder: Path, format: ShardFormat) -> None:
        """Make the folder, which must be new or empty."""
        self.folder = folder
        self.format = format
        self._rows: list[DocumentScores] = []
        self._parts = 0
        if format == "parquet":
            _pyarrow()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_empty = not any(folder.iterdir())
        except OSError as error:
            raise InputError(
                f"a folder that cannot be made ({error.strerror})",
                expected="a new or an empty folder",
                remedy="choose another",
                place=Place(file=str(folder)),
            ) from None
        if not is_empty:
            raise InputError(
                "a folder that is not empty",
                expected="a new or an empty folder",
                remedy="choose another, or empty it first",
                place=Place(file=str(folder)),
            )

    def take(self, rows: Sequence[DocumentScores]) -> None:
        """Take in the next rows; write whatever fills a part."""
        self._rows += rows
        while len(self._rows) >= ROWS_PER_PART:
            self._write(self._rows[:ROWS_PER_PART])
            del self._rows[:ROWS_PER_PART]

    def finish(self, table: ScoreTable) -> None:
        """Write the last part and the summary."""
        if self._rows:
            self._write(self._rows)
            self._rows = []
        summary = replace(table, documents=None).to_dict()
        text = json.dumps(summary, ensure_ascii=False, allow_nan=False, indent=2)
        write_file(self.folder / SUMMARY, [f"{text}\n"])

    def _write(self, rows: Sequence[DocumentScores]) -> None:
        path = self.folder / f"part-{self._parts:05}.{self.format}"
        if self.format == "jsonl":
            write_file(path, (_line(row) for row in rows))
        else:
            _write_parquet(path, rows)
        self._parts += 1


def _line(row: DocumentScores) -> str:
    return json.dumps(row.to_dict(), ensure_ascii=False, allow_nan=False) + "\n"


def _write_parquet(path: Path, rows: Sequence[DocumentScores]) -> None:
    pa, pq = _pyarrow()
    number, text = pa.float64(), pa.string()
    segment = pa.struct([("value", number), ("raw", number)])
    null = pa.struct(
        [("draws", pa.int64()), ("mean", number), ("sd", number), ("z", number), ("p", number)]
    )
    schema = pa.schema(
        [
            *(("id", text), ("system", text), ("metric", text), ("value", number)),
            *(("raw", number), ("reason", text), ("weight", number), ("null", null)),
            *((name, number) for name in POSTERIOR),
            ("segments", pa.list_(segment)),
        ]
    )
    flat = [
        {"id": row.id, "system": row.system, "metric": name, **score.to_dict()}
        for row in rows
        for name, score in row.metrics.items()
    ]
    try:
        with replacing(path) as temporary:
            pq.write_table(pa.Table.from_pylist(flat, schema=schema), temporary)
    except OSError as error:
        raise InputError(
            f"a path that cannot be written ({error.strerror or error})",
            expected="a writable path",
            remedy="check it and its permissions",
            place=Place(file=str(path)),
        ) from None


def _pyarrow() -> tuple[Any, Any]:
    def refusal(name: str) -> OptionError:
        return OptionError(
            "--shards parquet, but no pyarrow",
            expected="pyarrow to write it",
            remedy="run python -m pip install pyarrow, or use --shards jsonl",
        )

    return require("pyarrow", refusal), require("pyarrow.parquet", refusal)
