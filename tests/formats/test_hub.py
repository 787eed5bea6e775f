"""Data sets of the Hugging Face hub, from folders and from the cache; no test connects."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from reffree.formats import load
from tests.helpers import refusal

needs_datasets = pytest.mark.skipif(find_spec("datasets") is None, reason="needs datasets")
ROWS = [
    {"id": "a", "units": ["x", "y"], "gold": [1, 1], "systems": {"s": [2]}},
    {"id": "b", "units": ["z"], "gold": [1], "systems": {"s": [1]}},
]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if find_spec("datasets") is not None:
        import datasets.config
        import huggingface_hub.constants

        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def write(name: str, rows: list[dict]) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text("\n".join(map(json.dumps, rows)))


@pytest.mark.skipif(find_spec("datasets") is not None, reason="datasets is installed")
def test_without_datasets_a_sentence_says_what_to_install():
    assert refusal(load, "hf://owner/name") == (
        "hf://owner/name: found a data set of the hub, but no datasets; expected the package "
        "datasets to read it; run python -m pip install 'reffree[hf]'"
    )


@pytest.mark.parametrize("address", ["hf://", "hf://a//b", "hf://a/b/c/d", "hf://:test"])
def test_addresses_that_are_none(address):
    assert refusal(load, address).startswith(f"{address}: found the address '{address}'; expected ")


@needs_datasets
def test_rows_that_are_documents():
    write("data/train.jsonl", ROWS[:1])
    write("data/test.jsonl", ROWS[1:])
    corpus = load("hf://./data")
    assert [document.id for document in corpus] == ["a", "b"]
    assert corpus.documents[0].gold.masses == (1, 1)
    assert corpus.documents[0].systems["s"].masses == (2,)
    assert [document.id for document in load("hf://./data:test")] == ["b"]


@needs_datasets
def test_a_data_set_that_is_in_the_cache_needs_no_connection():
    write("talks/train.jsonl", ROWS)
    made = load("hf://./talks")
    Path("cache/talks").rename("cache/owner___talks")  # as one of the hub is called there
    assert load("hf://owner/talks").documents == made.documents
    assert [document.id for document in load("hf://owner/talks/default:train")] == ["a", "b"]


@needs_datasets
def test_rows_that_are_units_and_ids_that_splits_share():
    rows = [{"doc": "a", "said": "x", "t": 1}, {"doc": "a", "said": "y", "t": 2}]
    write("data/train.jsonl", rows)
    write("data/test.jsonl", rows[:1])
    corpus = load("hf://./data", format="table:document=doc,text=said,segment=t")
    assert [document.id for document in corpus] == ["train/a", "test/a"]
    assert corpus.documents[0].gold.masses == (1, 1)


@needs_datasets
def test_what_cannot_be_read_is_told():
    assert refusal(load, "hf://nobody/nothing").startswith(
        "hf://nobody/nothing: found a data set that cannot be read ("
    )
    write("data/train.jsonl", [{"a": 1}])
    assert refusal(load, "hf://./data").startswith("hf://./data: found the columns 'a'; ")
    assert refusal(load, "hf://./data:dev").startswith("hf://./data:dev: found a data set that ")
    assert "found --format choi; expected table or jsonl" in refusal(
        load, "hf://./data", format="choi"
    )
