"""Small files that would fill the memory: refused by a limit on the whole input, at once.

The limits are those that users have; what is generated is just beyond them.
"""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest

from reffree.formats import load
from tests.helpers import refusal

MEMORY = 64_000_000
"""Bytes; one row of two million, as an object, would take more."""


def packed(head, row, n):
    return gzip.compress(head + row * n, compresslevel=1)


def parquet_rows(columns):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns(pa)), sink)
    return sink.getvalue().to_pybytes()


def dictionary_rows(pa):
    indices = pa.array([0] * 2_000_001, type=pa.int32())
    return {"text": pa.DictionaryArray.from_arrays(indices, pa.array(["a unit"]))}


ROWS = "2,000,000; check it, or allow more with REFFREE_LIMITS=input_rows=2"
BOMBS = {
    "b.csv.gz": (lambda: packed(b"text,document\n", b"a,b\n", 3_000_000), ROWS),
    "b.txt.gz": (lambda: packed(b"", b"a\n", 3_000_000), ROWS),
    "b.md.gz": (lambda: packed(b"# A\n", b"a\n\n", 2_000_000), ROWS),
    "b.jsonl.gz": (lambda: packed(b"", b'{"id":"a","units":["x"]}\n', 2_100_000), ROWS),
    "b.vtt": (lambda: b"WEBVTT\n\n" + b"0:00.000 --> 0:01.000\na\n\n" * 1_000_000, ROWS),
    "b.parquet": (lambda: parquet_rows(dictionary_rows), ROWS),
    "b.json": (
        lambda: json.dumps({"items": {str(i): {"c": [10_000_000]} for i in range(300)}}).encode(),
        "10,000,000; check it, or allow more with REFFREE_LIMITS=input_units=20000000",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_do_not_go_off(tmp_path, name):
    make, limit = BOMBS[name]
    path = tmp_path / name
    path.write_bytes(make())
    tracemalloc.start()
    try:
        said = refusal(load, path, text=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert f"; expected at most {limit}" in said
    assert peak < MEMORY, f"{peak:,} bytes"


def test_bytes_are_limited_before_anything_is_made_of_them(tmp_path, monkeypatch):
    path = tmp_path / "b.jsonl.gz"
    path.write_bytes(packed(b"", b" " * 999 + b"\n", 20_000))
    monkeypatch.setenv("REFFREE_LIMITS", "input_bytes=10000")
    said = refusal(load, path)
    assert "found 1,048,576 bytes of input, or more; expected at most 10,000; " in said
    assert said.endswith("allow more with REFFREE_LIMITS=input_bytes=10485760")


def test_standard_input_is_counted_as_it_is_read(run):
    row = '{"id": "%s", "units": ["x"], "gold": [1], "systems": {"a": [1]}}\n'
    done = run("score", "-", stdin=row % "a" + row % "b" + row % "c", REFFREE_LIMITS="input_rows=2")
    assert done.returncode == 1
    assert "<stdin>, line 3: found 3 lines or rows, or more; expected at most 2; " in done.stderr
