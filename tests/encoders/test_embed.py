"""``reffree embed`` and ``reffree cache``, with a tiny model, in one process and in many."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys

import pytest

import reffree
from reffree.encoders.cache import EmbeddingCache
from reffree.encoders.cache.rows import Row, row_checksum
from reffree.util.errors import InputError
from tests.checkpoints import WORDS, save_checkpoint
from tests.encoders.cache.test_store import change

NOTE_THREADS_AT_EXIT = """
import atexit, os, pathlib

@atexit.register
def note():
    tasks = pathlib.Path("/proc/self/task").iterdir()
    names = {(task / "comm").read_text().strip() for task in tasks}
    pathlib.Path(f"left-{os.getpid()}.txt").write_text(" ".join(sorted(names)))
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny model, a corpus of 120 distinct texts, and a cache that torchrun has filled."""
    folder = tmp_path_factory.mktemp("tiny")
    save_checkpoint("roberta", folder / "model")
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(5, 25))) for _ in range(120)]
    lines = [
        {"id": f"d{i}", "units": texts[40 * i : 40 * i + 40] + texts[:2], "gold": [20, 22]}
        for i in range(3)
    ]
    (folder / "corpus.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (folder / "sitecustomize.py").write_text(NOTE_THREADS_AT_EXIT)
    return folder


def test_what_is_embedded_once_is_scored_as_if_it_were_encoded_then(tiny, tmp_path):
    corpus = reffree.load(tiny / "corpus.jsonl").with_system(
        "even", {f"d{i}": [21, 21] for i in range(3)}
    )
    how = {"encoder": str(tiny / "model"), "cache_dir": tmp_path, "context": 1}
    given = reffree.embed(corpus, **how, drop_repeats=True)
    assert [x.shape[0] for x in given.vectors] == [len(set(d.units)) for d in corpus]
    assert (given.spec.context, given.spec.dropped) == (1, "repeats")
    scored = reffree.score(corpus, embeddings=given, drop_repeats=True)
    assert scored.to_dict() == reffree.score(corpus, **how, drop_repeats=True).to_dict()
    with pytest.raises(InputError, match="document 'd0': found embeddings with 40 rows"):
        reffree.score(corpus, embeddings=given)


def torchrun(folder, *arguments):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    return subprocess.run(
        [*command, "-m", "reffree", *map(str, arguments)],
        cwd=folder,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def filled_by_torchrun(tiny):
    done = torchrun(
        tiny, "embed", "corpus.jsonl", "--encoder", "model", "--cache-dir", "cache", "-f", "json"
    )
    assert done.returncode == 0, done.stderr
    return done


def test_torchrun_fills_one_cache_from_two_processes(tiny, filled_by_torchrun):
    report = json.loads(filled_by_torchrun.stdout)  # one report, from the first rank
    assert filled_by_torchrun.stderr.count("120 distinct texts: 0 cached before, 120 encoded") == 1
    assert report["texts"] == report["encoded"] == report["kept"] == 120
    assert report["cached"] == report["evicted"] == 0
    assert report["processes"] == [{"device": "cpu", "encoded": 60}] * 2
    assert report["units"] == 126
    assert report["texts_per_second"] > 0
    db = sqlite3.connect(tiny / report["file"])
    assert db.execute("SELECT count(*) FROM v").fetchone() == (120,)


@pytest.mark.skipif(sys.platform != "linux", reason="the names of threads are read from /proc")
def test_the_interpreter_does_not_end_under_threads_that_hold_tensors(tiny, filled_by_torchrun):
    """Now and then that aborts a rank that has done its work."""
    left = [path.read_text() for path in tiny.glob("left-*.txt")]
    assert left  # the launcher's own process
    assert not [names for names in left if "gloo" in names]


def test_several_devices_in_one_call(tiny, filled_by_torchrun, run_process):
    here = (tiny / "corpus.jsonl", "--encoder", tiny / "model", "--cache-dir", tiny / "cache")
    done = run_process("embed", *here, "--device", "cpu,cpu", "-f", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["cached"], report["encoded"]) == (120, 0)
    assert report["processes"] == [{"device": "cpu", "encoded": 0}] * 2
    done = run_process("embed", *here, "--device", "cpu,cuda:77")
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("reffree: error: rank 1: device 'cuda:77': found")


@pytest.fixture
def here(tiny, filled_by_torchrun, tmp_path):
    """A copy of the filled cache to try things on."""
    folder = tmp_path / "cache"
    (source,) = (tiny / "cache").rglob("*.sqlite")
    target = folder / source.relative_to(tiny / "cache")
    target.parent.mkdir(parents=True)
    target.write_bytes(source.read_bytes())
    return {"REFFREE_CACHE_DIR": str(folder)}, target


def test_one_process_and_the_sample_agree_with_two(tiny, here, run, write_corpus):
    variables, _ = here
    encoder = ("--encoder", tiny / "model", "--device", "cpu")
    done = run("embed", tiny / "corpus.jsonl", *encoder, "-f", "json", **variables)
    report = json.loads(done.stdout)
    assert (report["cached"], report["encoded"]) == (120, 0)
    assert report["texts_per_second"] is None
    assert "120 distinct texts: 120 cached before, 0 encoded on cpu; in " in done.stderr
    sample = ("--sample", 20, "--corpus", tiny / "corpus.jsonl")
    done = run("cache", "verify", *sample, *encoder, **variables)
    assert "ok  20 vectors encoded again, largest deviation" in done.stdout, done.stderr
    more = write_corpus([{"id": "m", "units": ["the bees dance", "the bees dance", "a lens"]}])
    done = run("embed", more, *encoder, **variables)
    assert "2 distinct texts: 0 cached before, 2 encoded in" in done.stderr
    assert done.stdout == ""


def falsify(file, texts=1000):
    """Change vectors and make their checksums anew: intact rows, and wrong ones."""
    with EmbeddingCache(file) as cache:
        rows = list(cache.rows())[:texts]
        for row in rows:
            change(file, "DELETE FROM v WHERE k = ?", row.key)
        blobs = [(row.vector + 0.01).astype("<f4").tobytes() for row in rows]
        cache.add(
            [
                Row(r.key, blob, r.tokens, row_checksum(cache.fingerprint, r.key, blob, r.tokens))
                for r, blob in zip(rows, blobs, strict=True)
            ]
        )


def test_a_sample_finds_what_checksums_cannot(tiny, here, run):
    variables, file = here
    falsify(file)
    assert run("cache", "verify", **variables).stdout == f"{file.stem}  ok  120 vectors\n"
    sample = ("--sample", 20, "--corpus", tiny / "corpus.jsonl", "--encoder", tiny / "model")
    done = run("cache", "verify", *sample, **variables)
    assert done.returncode == 1
    assert "found 20 of 20 vectors that differ from what the encoder gives now" in done.stderr
    assert f"remove them with reffree cache rm {file.stem}" in done.stderr
    done = run("cache", "verify", *sample, **{"REFFREE_CACHE_DIR": str(tiny / "empty")})
    assert done.returncode == 1
    assert "found none of the corpus's texts" in done.stderr


def test_damage_is_told_and_mended(tiny, here, run, caplog):
    variables, file = here
    change(file, "UPDATE v SET tokens = tokens + 1 WHERE id <= 2")
    done = run("cache", "verify", **variables)
    assert done.returncode == 1
    assert f"{file.stem}  DAMAGED" in done.stdout
    encoder = ("--encoder", tiny / "model", "--device", "cpu")
    done = run("embed", tiny / "corpus.jsonl", *encoder, **variables)
    assert "118 cached before, 2 encoded" in done.stderr
    assert "found 2 rows failing the checksum; encoded again" in caplog.text
    assert run("cache", "verify", **variables).returncode == 0


def test_export_import_and_merge(here, run, tmp_path):
    variables, file = here
    done = run("cache", "export", "model", "-o", "rows.safetensors", **variables)
    assert done.stdout == f"{file.stem}  120 vectors written to rows.safetensors\n"
    there = {"REFFREE_CACHE_DIR": str(tmp_path / "there")}
    done = run("cache", "import", "rows.safetensors", **there)
    assert done.stdout == f"{file.stem}  120 new, 0 already here\n"
    for source in (file, file.parent, tmp_path / "cache"):
        done = run("cache", "merge", source, **there)
        assert done.stdout == f"{file.stem}  0 new, 120 already here\n"
    falsify(file, 3)
    change(file, "UPDATE v SET tokens = 0 WHERE id = 5")
    done = run("cache", "merge", tmp_path / "cache", **there)
    assert done.returncode == 1
    assert "0 new, 116 already here, 3 refused: here with another vector, 1 refused" in done.stdout
    assert "found 3 conflicting rows and 1 damaged row" in done.stderr
    done = run("cache", "export", "model", "-o", "rows.safetensors", **variables)
    assert "note: 1 row failing the checksum left out" in done.stderr
    done = run("cache", "merge", tmp_path / "nothing", **there)
    assert done.returncode == 1
    assert "found no such cache file" in done.stderr
    (tmp_path / "empty").mkdir()
    assert "found no cache files" in run("cache", "merge", tmp_path / "empty", **there).stderr
    done = run("cache", "import", tmp_path, **there)
    assert done.returncode == 1
    assert "expected a file as reffree cache export writes it" in done.stderr


def test_a_limit_evicts_and_says_so(tiny, here, run):
    variables, _ = here
    done = run("cache", "evict", "--cache-limit", "1G", **variables)
    assert done.stdout.startswith("evicted 0 vectors: ")
    limited = {**variables, "REFFREE_CACHE_LIMIT": "1K"}
    done = run("cache", "evict", **limited)
    assert done.stdout.startswith("evicted 120 vectors: ")
    assert "is what files without vectors take" in done.stderr
    encoder = ("--encoder", tiny / "model", "--device", "cpu", "-f", "json")
    done = run("embed", tiny / "corpus.jsonl", *encoder, **limited)
    report = json.loads(done.stdout)
    assert (report["encoded"], report["evicted"], report["kept"]) == (120, 120, 0)
    assert "the cache limit had 120 vectors evicted; 0 of this corpus's" in done.stderr
    done = run("embed", tiny / "corpus.jsonl", *encoder, "--cache-limit", "1G", **limited)
    assert json.loads(done.stdout)["kept"] == 120


def test_files_of_other_versions_are_listed_and_removed(here, run):
    variables, file = here
    old = file.parents[1] / "v1" / file.name
    old.parent.mkdir()
    old.write_bytes(b"0" * 2_000_000)
    done = run("cache", "ls", **variables)
    assert "120 vectors of 16" in done.stdout
    assert "1 file of other versions of reffree, 2.0 MB: remove with reffree" in done.stderr
    assert run("cache", "rm", "--old", **variables).stdout == "removed 1 cache file, 2.0 MB\n"
    assert not old.exists()
    assert file.exists()


def write_graphs(folder):
    for name, facts in (("onnx-1f", '{"encoder": "a/model"}'), ("openvino-2e", "{")):
        graph = folder / "graphs" / name
        graph.mkdir(parents=True)
        (graph / "model.onnx").write_bytes(b"0" * 3_000_000)
        (graph / "measured.json").write_text(facts)
    (folder / "graphs" / "fastest-3d.json").write_text("{}")
    (folder / "budgets").mkdir(exist_ok=True)
    (folder / "budgets" / "4c-cpu.json").write_text("{}")
    (folder / "graphs" / ".reffree-x.tmp").mkdir()  # of a process that was killed


def test_graphs_of_backends_are_listed_and_removed(here, run):
    variables, file = here
    folder = file.parents[2]
    write_graphs(folder)
    done = run("cache", "ls", **variables)
    assert done.stdout.splitlines()[1:] == [
        "onnx-1f  a/model  graph  3.0 MB",
        "openvino-2e  (unreadable)  graph  3.0 MB",
    ]
    assert ", and 2 graphs, 6.0 MB, in " in done.stderr
    assert run("cache", "rm", "--graphs", **variables).stdout == "removed 2 graphs, 6.0 MB\n"
    assert sorted(path.name for path in folder.iterdir()) == ["embeddings"]
    assert run("cache", "rm", "--graphs", **variables).stdout == "removed 0 graphs, 0.0 MB\n"
    write_graphs(folder)
    done = run("cache", "rm", "--all", **variables)
    assert done.stdout.startswith("removed 1 cache file, ")
    assert done.stdout.endswith("; 2 graphs, 6.0 MB\n")
    assert not list(folder.glob("graphs/*"))
    assert not file.exists()


def test_files_that_reffree_did_not_write_stay(here, run):
    """The folder may have been there before it was a cache."""
    variables, file = here
    folder = file.parents[2]
    write_graphs(folder)
    others = [folder / "graphs" / "figure.png", folder / "budgets" / "2026.json"]
    others += [folder / "graphs" / "drafts" / "onnx-1f"]
    others[-1].mkdir(parents=True)
    for path in others[:-1]:
        path.write_text("mine")
    assert run("cache", "ls", **variables).stdout.count("  graph  ") == 2
    assert run("cache", "rm", "--graphs", **variables).stdout == "removed 2 graphs, 6.0 MB\n"
    left = {path for name in ("graphs", "budgets") for path in (folder / name).rglob("*")}
    assert left == {*others, folder / "graphs" / "drafts"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["embed", "c.jsonl", "--no-cache"], "leave --no-cache out"),
        (["embed", "-", "--device", "cpu,cpu"], "only one process can read standard input"),
        (["embed", "c.jsonl", "--cache-limit", "much"], "expected a size such as 500M or 2G"),
        (["cache", "verify", "--sample", "3"], "--sample N and --corpus CORPUS go together"),
        (["cache", "verify", "--corpus", "c.jsonl"], "go together"),
        (["cache", "verify", "x", "--sample", "3", "--corpus", "c.jsonl"], "leave the names out"),
        (["cache", "verify", "--encoder", "minilm"], "--encoder goes with --sample"),
        (["cache", "verify", "--no-cache"], "leave --no-cache out"),
        (["cache", "evict"], "--cache-limit SIZE"),
        (["cache", "rm", "--all", "--old"], "name the files, or pass one of --all, --old"),
        (["cache", "export", "x", "-o", "y"], "unknown cache file 'x'"),
    ],
)
def test_wrong_usage(run, tmp_path, arguments, message):
    done = run(*arguments, REFFREE_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_a_missing_corpus_gives_a_sentence(run):
    done = run("embed", "nowhere.jsonl")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "nowhere.jsonl" in done.stderr
