"""Formats are found by listing modules, and what is read has limits."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import reffree.formats
from reffree.formats import format as format_module
from reffree.formats import format_names, load, save
from tests.helpers import refusal

ROOT = Path(__file__).parents[2]
HEAD = """
from __future__ import annotations
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.formats.format import Format
from reffree.formats.source import Source
"""


@pytest.fixture
def stars(tmp_path, monkeypatch):
    """The format of the guide, in a file of its own."""
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    code = re.search(r"## Add a format.*?```python\n(.*?)```", guide, re.DOTALL)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "stars.py").write_text(HEAD + code[1])
    paths = [*reffree.formats.__path__, str(tmp_path / "package")]
    monkeypatch.setattr(reffree.formats, "__path__", paths)
    for cached in (format_module._modules, format_module.formats):
        cached.cache_clear()
    yield
    sys.modules.pop("reffree.formats.stars", None)
    for cached in (format_module._modules, format_module.formats):
        cached.cache_clear()


def test_a_format_is_one_file(stars):
    assert "stars" in format_names(writable=True)
    Path("talk.stars").write_text("a\nb\n***\nc\n")
    corpus = load("talk.stars")
    assert (corpus[0].id, corpus[0].units, corpus[0].gold.masses) == (
        "talk",
        ("a", "b", "c"),
        (2, 1),
    )
    assert load("talk.stars", format="stars:minimum=4")[0].units == ("a", "b", "***", "c")
    assert save(corpus, "again.stars") == []
    assert Path("again.stars").read_text() == Path("talk.stars").read_text()


def test_a_plain_corpus_is_read_without_the_other_formats():
    Path("c.jsonl").write_text('{"id": "a", "units": ["x"]}')
    code = "import sys, reffree.formats as f; f.load('c.jsonl'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith("reffree.formats.")}
    assert "reffree.formats.jsonl" in loaded
    others = {f"reffree.formats.{name}" for name in ("choi", "dialogues", "headings", "tables")}
    assert not loaded & others


def test_files_of_one_call_are_counted_together(monkeypatch):
    for name in "ab":
        Path(f"{name}.jsonl").write_text(json.dumps({"id": name, "units": ["x"]}) + "\n" * 6)
    monkeypatch.setenv("REFFREE_LIMITS", "input_rows=10")
    assert len(load("a.jsonl")) == 1
    assert "b.jsonl: found 12 lines or rows, or more; " in refusal(load, "a.jsonl", "b.jsonl")
    monkeypatch.setenv("REFFREE_LIMITS", "input_bytes=50")
    assert "b.jsonl: found 66 bytes of input, or more; " in refusal(load, "a.jsonl", "b.jsonl")
    Path("folder").mkdir()
    for name in "ab":
        Path(f"folder/{name}.ref").write_text("==========\n" + "x\n" * 5)
    monkeypatch.setenv("REFFREE_LIMITS", "input_rows=10")
    assert "b.ref: found 12 lines or rows, or more; " in refusal(load, "folder")


def test_a_file_that_is_looked_at_before_it_is_read_counts_once(monkeypatch):
    Path("x.txt").write_text("a\n==========\nb\n")
    monkeypatch.setenv("REFFREE_LIMITS", "input_rows=3")
    assert load("x.txt")[0].units == ("a", "b")


def test_units_without_text_are_counted_together(monkeypatch):
    monkeypatch.setenv("REFFREE_LIMITS", "input_units=100")
    items = {f"d{i}": {"c": [40]} for i in range(3)}
    Path("s.json").write_text(json.dumps({"items": items}))
    assert refusal(load, "s.json", text=False) == (
        "s.json, system 'c', document 'd2': found 120 units; expected at most 100; check it, or "
        "allow more with REFFREE_LIMITS=input_units=120"
    )
    rows = (json.dumps({"id": id, "systems": each}) for id, each in items.items())
    Path("x.jsonl").write_text("\n".join(rows))
    assert "x.jsonl, line 3, document 'd2': found 120 units; " in refusal(
        load, "x.jsonl", text=False
    )
