"""Corpora scored a block at a time, in memory, from shards or by actors: the same numbers."""

from __future__ import annotations

import json
import pickle
import random
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reffree
from reffree.cli import score as command
from reffree.evaluate import corpus_counts
from reffree.evaluate.corpus_counts import CorpusCounts, blocks_of
from reffree.formats.shards import Shards
from reffree.report.render import render
from reffree.util.errors import InputError, OptionError
from tests.checkpoints import WORDS, save_checkpoint
from tests.properties import examples

METRICS = ["expected_pk", "arp_pair", "silhouette", "pk", "w_f1", "arp_std"]
METRICS += ["pk_prime:k=corpus", "windowdiff:k=corpus,unit=words"]  # taken from the whole corpus


def masses(rng, n):
    cuts = sorted(rng.sample(range(1, n), rng.randint(0, min(4, n - 1))))
    return [b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True)]


def tables(n_documents=30, seed=0, gold=lambda d: True):
    """Documents of 1 to 30 units, of which some stand in several."""
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(2, 9))) for _ in range(250)]
    made = []
    for d in range(n_documents):
        n = rng.choice([1, 5, 12, 30])
        table = {"id": f"d{d}", "units": rng.choices(texts, k=n), "systems": {}}
        table["systems"] = {name: masses(rng, n) for name in ("even", "odd")}
        if gold(d):
            table["gold"] = masses(rng, n)
        made.append(table)
    return made


def write_jsonl(path, documents):
    path.write_text("".join(f"{json.dumps(table)}\n\n" for table in documents))
    return path


def write_parquet(path, documents, as_map=False):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_pylist([{"gold": None, **table} for table in documents])
    if as_map:
        kind = pa.map_(pa.string(), pa.list_(pa.int64()))
        systems = pa.array([list(d["systems"].items()) for d in documents], type=kind)
        table = table.set_column(table.column_names.index("systems"), "systems", systems)
    pq.write_table(table, path, row_group_size=7)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save_checkpoint("roberta", folder / "tiny")
    return str(folder / "tiny")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(corpus_counts, "BLOCK_UNITS", 64)


def as_json(table):
    return render(table, "json", color=False, width=None)


@pytest.mark.parametrize("gold", [lambda d: True, lambda d: d > 20], ids=["gold", "some-gold"])
def test_shards_give_the_bytes_of_the_corpus_in_memory(tmp_path, model, small_blocks, gold):
    documents = tables(gold=gold)
    whole = write_jsonl(tmp_path / "whole.jsonl", documents)
    folder = tmp_path / "shards"
    folder.mkdir()
    write_jsonl(folder / "a.jsonl", documents[:11])
    write_parquet(folder / "b.parquet", documents[11:22])
    write_parquet(folder / "c.parquet", documents[22:], as_map=True)
    how = {"encoder": f"{model}:context=1", "metrics": METRICS, "null": 20, "per_segment": True}
    expected = reffree.score(reffree.load(whole), cache=tmp_path / "one", **how)
    shards = Shards.of([folder])
    assert len(list(blocks_of(shards))) > 5
    # Both encode anew: the tiny model's vectors depend on the batches, so these are the same too.
    found = reffree.score(shards, cache=tmp_path / "two", **how)
    assert as_json(found) == as_json(expected)
    assert reffree.load(folder).documents == reffree.load(whole).documents


def test_blocks_change_nothing_but_what_is_in_memory(tmp_path, model, monkeypatch):
    corpus = reffree.load(write_jsonl(tmp_path / "c.jsonl", tables()))
    how = {"encoder": model, "metrics": METRICS, "null": 20, "explain": True, "cache": tmp_path}
    expected = reffree.score(corpus, **how)
    monkeypatch.setattr(corpus_counts, "BLOCK_UNITS", 40)
    assert as_json(reffree.score(corpus, **how)) == as_json(expected)


def test_given_vectors_follow_their_blocks(small_blocks):
    import numpy as np

    corpus = reffree.Corpus(tuple(reffree.Document.build(**table) for table in tables(12)))
    rng = np.random.default_rng(0)
    vectors = [rng.normal(size=(len(document.units), 4)) for document in corpus]
    table = reffree.score(corpus, embeddings=vectors, metrics=["arp_pair"], per_document=True)
    for d, document in enumerate(corpus):
        alone = reffree.score(
            reffree.Corpus((document,)), embeddings=[vectors[d]], metrics=["arp_pair"]
        )
        for s, row in enumerate(alone.systems):
            found = table.documents[3 * d + s].metrics["arp_pair"].value
            assert found == pytest.approx(row.metrics["arp_pair"].value, abs=1e-12)


class Here:
    """What actors would do, done in this process; all that would travel is pickled."""

    n = 2

    def map(self, make, arguments, items):
        work = make(*pickle.loads(pickle.dumps(arguments)))
        for item in items:
            yield pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(item)))))


@pytest.mark.parametrize("metrics", [METRICS, ["pk"]], ids=["vectors", "gold-alone"])
def test_actors_give_the_bytes_of_this_process(tmp_path, model, small_blocks, monkeypatch, metrics):
    path = write_jsonl(tmp_path / "c.jsonl", tables(12, gold=lambda d: d > 6))
    how = {"encoder": model, "metrics": metrics, "cache": tmp_path / "cache"}
    if len(metrics) > 1:
        how |= {"null": 5, "explain": True}
    expected = as_json(reffree.score(reffree.load(path), **how))

    @contextmanager
    def here(cluster):
        assert (cluster.address, cluster.actors) == ("10.0.0.1:6379", 2)
        yield Here()

    monkeypatch.setattr("reffree.encoders.opening.ray_actors", here)
    monkeypatch.setattr("reffree.evaluate.ray.ray_actors", here, raising=False)
    for source in (Shards([path]), reffree.load(path)):
        table = reffree.score(source, device="ray:address=10.0.0.1:6379,actors=2", **how)
        assert as_json(table) == expected


def test_the_command_streams_what_memory_would_not_hold(tmp_path, run, monkeypatch, small_blocks):
    folder = tmp_path / "shards"
    folder.mkdir()
    documents = tables(12)
    write_jsonl(folder / "a.jsonl", documents[:5])
    write_jsonl(folder / "b.jsonl", documents[5:])
    options = ("-m", "pk", "-m", "f1", "--per-document", "-f", "json")
    expected = run("score", "shards", *options).stdout
    monkeypatch.setattr(command, "IN_MEMORY", 0)
    monkeypatch.setattr("reffree.formats.load", None)
    assert run("score", "shards", *options).stdout == expected != ""


def twice(documents):
    return [*documents, documents[3]]


def lacking_later(documents):
    return [*documents[:5], {**documents[5], "systems": {"odd": documents[5]["systems"]["odd"]}}]


def lacking_at_first(documents):
    return [{**documents[0], "systems": {}}, *documents[1:]]


@pytest.mark.parametrize("spoil", [twice, lacking_later, lacking_at_first, lambda documents: []])
def test_bad_shards_are_refused_as_a_bad_corpus_is(tmp_path, spoil):
    path = write_jsonl(tmp_path / "c.jsonl", spoil(tables(9)))
    with pytest.raises(InputError) as expected:
        reffree.load(path)
    with pytest.raises(InputError) as found:
        reffree.score(Shards([path]), metrics=["pk"])
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"embeddings": [[[0.0]]] * 3}, "embeddings beside shards or Ray's actors"),
        ({"drop": ["repeats"]}, r"shards of which units are to be left out \(repeats\)"),
    ],
)
def test_what_needs_the_corpus_in_memory(tmp_path, how, sentence):
    shards = Shards([write_jsonl(tmp_path / "c.jsonl", tables(3))])
    with pytest.raises(OptionError, match=sentence):
        reffree.score(shards, metrics=["arp_pair"], **how)


def test_what_is_not_streamed(tmp_path):
    write_jsonl(tmp_path / "c.jsonl", tables(3))
    assert Shards.of([tmp_path / "c.jsonl", "-"]) is None
    assert Shards.of([tmp_path / "c.jsonl"], format="choi") is None
    assert Shards.of([tmp_path / "c.jsonl"], format="jsonl") is not None


def test_a_file_that_is_no_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "c.parquet").write_text("no")
    with pytest.raises(InputError, match=r"c.parquet: found a file that is not Parquet \("):
        reffree.load(tmp_path / "c.parquet")


def test_bytes_before_the_text_and_windows_line_ends(tmp_path):
    lines = [json.dumps(table) for table in tables(4)]
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    shards = Shards.of([path])
    for _ in range(2):
        assert tuple(shards) == reffree.load(path).documents
        assert tuple(shards.notes) == reffree.load(path).notes


@examples(40)
@given(st.lists(st.integers(1, 100), max_size=30))
def test_blocks_are_documents_in_order_as_many_as_fit(lengths):
    documents = [reffree.Document.build(f"d{i}", ["u"] * n) for i, n in enumerate(lengths)]
    before, corpus_counts.BLOCK_UNITS = corpus_counts.BLOCK_UNITS, 64
    try:
        blocks = list(blocks_of(documents))
    finally:
        corpus_counts.BLOCK_UNITS = before
    assert [document for block in blocks for document in block] == documents
    assert all(block.n_units <= 64 or len(block) == 1 for block in blocks)
    assert all(block.n_units + len(after[0].units) > 64 for block, after in pairwise(blocks))
    counts = CorpusCounts.of(documents)
    assert (counts.n_units, counts.n_distinct) == (sum(lengths), int(bool(lengths)))
