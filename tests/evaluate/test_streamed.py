"""Corpora scored a block at a time from shards: the same bytes as in memory."""

from __future__ import annotations

import json
import pickle
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reffree
from reffree.encoders.ray_actors import Actors
from reffree.evaluate import corpus_counts
from reffree.evaluate.corpus_counts import DistinctTexts, Plan
from reffree.formats.shards import Shards, joined, read_spans
from reffree.report.render import render
from reffree.util.errors import InputError, OptionError
from tests.checkpoints import WORDS, save_checkpoint
from tests.properties import examples

METRICS = ["expected_pk", "arp_pair", "silhouette", "sag:shuffles=4", "pk", "w_f1", "arp_std"]
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
    how = {"encoder": model, "metrics": METRICS, "null": 20, "per_segment": True, "context": 1}
    expected = reffree.score(reffree.load(whole), cache_dir=tmp_path / "one", **how)
    shards = Shards.of([folder])
    assert len(Plan.of(shards, 0).blocks) > 5
    # Both encode anew: the tiny model's vectors depend on the batches, so these are the same too.
    found = reffree.score(shards, cache_dir=tmp_path / "two", **how)
    assert as_json(found) == as_json(expected)
    assert reffree.load(folder).documents == reffree.load(whole).documents


class Here(Actors):
    """What actors would do, done in this process; all that would travel is pickled."""

    def map(self, make, arguments, items):
        work = make(*pickle.loads(pickle.dumps(arguments)))
        for item in items:
            yield pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(item)))))

    def beside_driver(self, kept, *arguments):
        return None


def test_actors_give_the_bytes_of_this_process(tmp_path, model, small_blocks):
    path = write_jsonl(tmp_path / "c.jsonl", tables(12, gold=lambda d: d > 6))
    how = {"encoder": model, "metrics": METRICS, "null": 5, "explain": True, "cache": False}
    expected = as_json(reffree.score(reffree.load(path), **how))
    for source in (Shards([path]), reffree.load(path)):
        assert as_json(reffree.score(source, actors=Here(2, 0), **how)) == expected


def test_blocks_change_nothing_but_what_is_in_memory(tmp_path, model, monkeypatch):
    corpus = reffree.load(write_jsonl(tmp_path / "c.jsonl", tables()))
    how = {"encoder": model, "metrics": METRICS, "null": 20, "explain": True}
    expected = reffree.score(corpus, cache_dir=tmp_path, **how)
    monkeypatch.setattr(corpus_counts, "BLOCK_UNITS", 40)
    assert as_json(reffree.score(corpus, cache_dir=tmp_path, **how)) == as_json(expected)


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


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_documents_go_into_parts(tmp_path, model, run, monkeypatch, small_blocks, format):
    if format == "parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr("reffree.evaluate.shard_writer.ROWS_PER_PART", 25)
    documents = tables()
    write_jsonl(tmp_path / "c.jsonl", documents)
    command = ["score", "c.jsonl", "--encoder", model, "--null", "5"]
    command += ["-m", "expected_pk", "-m", "arp_pair", "-m", "pk"]
    whole = json.loads(run(*command, "--per-document", "-f", "json").stdout)
    done = run(*command, "--shards", format, "-o", "out")
    assert done.returncode == 0, done.stderr
    parts = sorted((tmp_path / "out").glob("part-*"))
    assert [part.name for part in parts] == [f"part-0000{i}.{format}" for i in range(4)]
    rows = whole.pop("documents")
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == whole
    if format == "jsonl":
        assert [json.loads(x) for part in parts for x in part.read_text().splitlines()] == rows
    else:
        pq = pytest.importorskip("pyarrow.parquet")
        found = [row for part in parts for row in pq.read_table(part).to_pylist()]
        numbers = ("value", "spread", "information", "chance_information", "assumed_segments")
        assert [
            (row["id"], row["system"], row["metric"], *(row[n] for n in numbers)) for row in found
        ] == [
            (row["id"], row["system"], name, *(score.get(n) for n in numbers))
            for row in rows
            for name, score in row["metrics"].items()
        ]
    again = run(*command, "--shards", format, "-o", "out")
    assert again.returncode == 1
    assert "found a folder that is not empty; expected a new or an empty folder" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--shards", "jsonl"], "--shards writes a folder: name it with -o FOLDER"),
        (["--shards", "jsonl", "-o", "x", "-f", "csv"], "leave -f out"),
        (["--shards", "parquet", "-o", "x", "--explain"], "use --shards jsonl"),
        (["--shards", "jsonl", "-o", "x", "--embeddings", "v.npz"], "leave them out"),
        (["--ray-actors", "2"], "need --engine ray"),
    ],
)
def test_options_that_do_not_go_together(tmp_path, run, arguments, sentence):
    write_jsonl(tmp_path / "c.jsonl", tables(3))
    done = run("score", "c.jsonl", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not (tmp_path / "x").exists()


def test_without_ray_a_sentence(tmp_path, run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    write_jsonl(tmp_path / "c.jsonl", tables(3))
    for command in ("score", "embed"):
        done = run(command, "c.jsonl", "--engine", "ray")
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            "reffree: error: engine 'ray': found no installed package ray; expected ray[data]; "
            "run python -m pip install 'reffree[ray]'"
        )


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
        Plan.of(Shards([path]), 0)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"embeddings": [[[0.0]]] * 3}, "embeddings beside shards or actors"),
        ({"drop_repeats": True}, r"shards of which units are to be left out \(repeats\)"),
    ],
)
def test_what_needs_the_corpus_in_memory(tmp_path, how, sentence):
    shards = Shards([write_jsonl(tmp_path / "c.jsonl", tables(3))])
    with pytest.raises(OptionError, match=sentence):
        reffree.score(shards, metrics=["arp_pair"], **how)


def test_what_is_not_streamed(tmp_path):
    write_jsonl(tmp_path / "c.jsonl", tables(3))
    (tmp_path / "s.jsonl").write_text('{"id": "d0", "segmentation": [1]}\n')
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
    spans = [span for _, span in shards]
    assert read_spans(joined(spans[1:3])).documents == reffree.load(path).documents[1:3]
    assert read_spans(joined(spans)).documents == reffree.load(path).documents
    assert tuple(shards.notes) == reffree.load(path).notes


@examples(40)
@given(st.lists(st.lists(st.text(alphabet="ab\0é", max_size=3)), max_size=12))
def test_distinct_texts_are_those_of_a_set(batches):
    seen, distinct = set(), DistinctTexts()
    before, corpus_counts.UNSORTED = corpus_counts.UNSORTED, 3
    try:
        for batch in batches:
            new = []
            for i, text in enumerate(batch):
                if text not in seen:
                    new.append(i)
                seen.add(text)
            assert distinct.new(batch) == new
            assert len(distinct) == len(seen)
    finally:
        corpus_counts.UNSORTED = before
