"""Inputs that once ended in a traceback, in files lost or in files written elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import yaml

import reffree
from reffree.cli import main
from reffree.data.corpus import Document
from reffree.evaluate.result import load_result
from reffree.report.render import render
from reffree.segmenters.base import Inputs
from reffree.studies import boundaries
from reffree.studies.config import load_config
from reffree.studies.run import run_config
from reffree.util.errors import InputError, OptionError
from tests import synthetic_results
from tests.fuzz.doors import DOCUMENTS, STUDY

MANY_DIGITS = "9" * 400


@pytest.fixture
def corpus(write_corpus):
    return write_corpus(DOCUMENTS)


@pytest.fixture
def vectors(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "v.npz"
    np.savez(path, **{document["id"]: rng.normal(size=(5, 4)) for document in DOCUMENTS})
    return path


def refused(done, *parts, code):
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr
    (line,) = (each for each in done.stderr.splitlines() if "rror: " in each)
    assert len(line) < 1200


# Options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "found"),
    [
        (f"pk:k={10**30}", "found k = 1000000000000000000000000000000"),
        (f"boundary_similarity:n_t={MANY_DIGITS}", "found n_t = a number of 400 digits"),
        ("pr_error:c_miss=1e308", "found c_miss = 1e+308"),
        (f"pk:k={'9' * 5000}", "the option 'k=999"),
    ],
)
def test_numbers_of_metrics_have_bounds(run, corpus, metric, found):
    refused(run("score", corpus, "-m", metric), found, "or less" * (found[-3:] != "999"), code=2)


@pytest.mark.parametrize(
    "method",
    [
        *("even:k=1000000001", "depth:min_gap=1000000001", "texttiling:rounds=1001"),
        *("c99:k=1000000001", f"random:p=0.1,draw={10**12}"),
    ],
)
def test_numbers_of_methods_have_bounds(run, corpus, method):
    refused(run("segment", corpus, "--method", method, "-o", "-"), "or less", code=2)


def test_values_and_paths_of_any_length_are_told_on_a_line(run, corpus):
    refused(run("score", corpus, "-m", f"expected_pk:evidence={'9' * 5000}"), "999…", code=2)
    refused(run("score", corpus, "-m", "expected_pk:evidence=a\nb"), r"evidence=a\nb in", code=2)
    done = run("segment", corpus, "--method", f"trained:path={'9' * 5000}", "-o", "-")
    refused(done, "no segmenter (File name too long)", code=1)
    done = run("perturb", corpus, "--perturbation", "removal:1", "-o", f"{'9' * 5000}.jsonl")
    refused(done, "File name too long", code=1)


@pytest.mark.parametrize("seed", [str(2**53 + 1), MANY_DIGITS])
def test_seeds_have_bounds(run, corpus, seed):
    refused(run("score", corpus, "-m", "pk", "--seed", seed), "9007199254740992", code=2)


def test_the_root_folder_is_no_model(run, corpus):
    refused(run("score", corpus, "--encoder", "/"), "found no .safetensors weights", code=1)
    home = run("score", corpus, "--encoder", "~nobody_of_that_name/model")
    refused(home, "found no folder of that name", code=1)


def test_a_table_that_a_study_does_not_have_is_refused(run, corpus, vectors):
    done = run("study", "diagnose", corpus, "--embeddings", vectors, "--table", "check")
    refused(done, "unknown table 'check'; did you mean 'checks'?", code=2)


# Vectors and Parquet --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (15, 4), ",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (15, 4",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (15, 4)}",
        "{'descr': [[[]]], 'fortran_order': False, 'shape': (15, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (10**9, 4)}",
        "(" * 300,
        "'''",
    ],
)
def test_headers_of_arrays_are_read_with_care(run, corpus, tmp_path, header):
    text = header.ljust(400).encode() + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(240)
    (tmp_path / "v.npy").write_bytes(data)
    done = run("score", corpus, "-m", "arp_pair", "--embeddings", "v.npy")
    refused(done, "a file that is no array of numbers", code=1)


@pytest.mark.parametrize("largest", ["1e400", "inf", "nan"])
def test_no_function_takes_vectors_beyond_float64(largest):
    """Longer floats become float64 first, and are looked at then."""
    corpus = reffree.Corpus((Document.build("a", list("wxyz"), systems={"s": [2, 2]}),))
    given = np.arange(12, dtype=np.longdouble).reshape(4, 3)
    given[2, 1] = np.longdouble(largest)
    for use in (
        lambda: boundaries(corpus, embeddings=[given]),
        lambda: reffree.score(corpus, embeddings=[given], metrics=["arp_pair", "expected_pk"]),
        lambda: reffree.segment(corpus, "depth", embeddings=[given]),
        lambda: reffree.score_document(given, [[2, 2]]),
        lambda: list(Inputs(corpus, embeddings=[given]).vectors("depth")),
    ):
        with pytest.raises(InputError, match="NaN or infinity in the vector of unit 3; expected"):
            use()
    given[2, 1] = 7
    expected = reffree.score(corpus, embeddings=[given.astype(float)], metrics=["arp_pair"])
    assert reffree.score(corpus, embeddings=[given], metrics=["arp_pair"]).systems == (
        expected.systems
    )


def test_damaged_parquet_is_refused_wherever_the_damage_is(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{k: v for k, v in each.items() if k != "meta"} for each in DOCUMENTS]
    path = tmp_path / "c.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, compression="snappy")
    data = path.read_bytes()
    from reffree.formats import load

    messages = set()
    for at in range(0, len(data), 9):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:
            load(path)
        except InputError as error:
            messages.add(error.found.partition(" (")[0])
    assert "a file that is not Parquet" in messages


# Results --------------------------------------------------------------------------------------


def damaged(change):
    result = synthetic_results.correlate(n_documents=2, corpora=("a",), encoders=("minilm",))
    tree = result.to_dict()
    change(tree)
    return json.dumps(tree)


def cell(table, column, value):
    def change(tree):
        part = next(each for each in tree["tables"] if each["name"] == table)
        names = [each["name"] for each in part["fields"]]
        part["rows"][0][names.index(column)] = value

    return change


def field(table, column, **values):
    def change(tree):
        part = next(each for each in tree["tables"] if each["name"] == table)
        next(each for each in part["fields"] if each["name"] == column).update(values)

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.update(tables=[[]]),
        lambda tree: tree.update(verdict=[1, None]),
        lambda tree: tree.update(settings=[]),
        lambda tree: tree.update(texts=[{"corpus": "a"}]),
        lambda tree: tree["tables"][0].update(rows=[[]]),
        lambda tree: tree["tables"][0].update(fields=[]),
        cell("scores", "loss", "high"),
        cell("scores", "loss", [0.1, 0.2]),
        cell("scores", "loss", float("nan")),
        cell("scores", "loss", 1e300),
        cell("scores", "loss", 10**400),
        cell("scores", "system", 3),
        cell("correlations", "ci", [0.1]),
        cell("correlations", "ci", ["low", "high"]),
        cell("correlations", "ci", [0.1, None]),
        field("scores", "loss", interval="nowhere"),
        field("scores", "loss", name="value"),
        field("scores", "loss", kind="colour"),
    ],
)
def test_damaged_results_are_refused_on_reading(tmp_path, change):
    path = tmp_path / "r.json"
    path.write_text(damaged(change))
    with pytest.raises(InputError, match=r"r\.json.*(damaged results|the number NaN)"):
        load_result(path)


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "NaN", '{"reffree_study": 1, "x": NaN}', ""])
def test_what_is_no_json_is_no_result(tmp_path, text):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"r\.json.*expected results of a study, as JSON"):
        load_result(path)


def test_charts_draw_no_text_as_numbers(tmp_path):
    from reffree.report.charts import charts_of

    def change(tree):
        field("documents", "value", kind="text")(tree)
        part = next(each for each in tree["tables"] if each["name"] == "documents")
        at = [each["name"] for each in part["fields"]].index("value")
        for row in part["rows"]:
            row[at] = "high"

    path = tmp_path / "r.json"
    path.write_text(damaged(change))
    with pytest.raises(InputError, match="the column 'value' of kind text in table 'documents'"):
        charts_of(load_result(path))


def test_nothing_infinite_is_rendered():
    result = synthetic_results.perturb()
    with pytest.raises(InputError, match="found the score inf"):
        synthetic_results.table("x", {"value": "number"}, [{"value": float("inf")}])
    from reffree.evaluate.table import CorpusScore, ScoreTable, SystemScores

    cell = CorpusScore(float("nan"), None, None, None, documents=1, undefined=0, left_out=0)
    table = ScoreTable("s", {}, (SystemScores("x", 1, 0, {"pk": cell}),))
    with pytest.raises(InputError, match="found the score nan"):
        render(table, "json")
    assert render(replace(result, tables=()), "json")


# Study files ----------------------------------------------------------------------------------


def written(tmp_path, text):
    path = tmp_path / "s.yaml"
    path.write_text(text if isinstance(text, str) else yaml.safe_dump(text, sort_keys=False))
    return path


TOP = "name: x\ncorpora: [demo]\nstudies:\n"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"{TOP}- study: [correlate]\n", "studies.0.study: ['correlate']"),
        (f"{TOP}- study: {{a: 1}}\n", "studies.0.study: {'a': 1}"),
        (f"{TOP}- [correlate]\n", "studies.0: ['correlate']"),
        (f"seed: 2001-02-30\n{TOP}- study: correlate\n", "line 1: found no YAML ('2001-02-30'"),
        (f"seed: {'9' * 5000}\n{TOP}- study: correlate\n", "line 1: found no YAML ('999"),
        (f"seed: 0x{'f' * 5000}\n{TOP}- study: correlate\n", "a number of 5,002 digits"),
        (f'seed: !!int "abc"\n{TOP}- study: correlate\n', "('abc', which is no int)"),
        (f'seed: !!bool "abc"\n{TOP}- study: correlate\n', "('abc', which is no bool)"),
        (f'seed: !!timestamp "a"\n{TOP}- study: correlate\n', "('a', which is no timestamp)"),
        (f"1: 2\n{TOP}- study: correlate\n", "the unknown field '1'"),
        (f"[1]: 2\n{TOP}- study: correlate\n", "a key that is a list or a map"),
        (f"{TOP}- study: correlate\n  1: 2\n", "studies.0.1.[key]: 1"),
        (f"{TOP}- study: correlate\n  resamples: -5\n", "studies.0.resamples: -5"),
        (f"{TOP}- study: correlate\n  resamples: 99999999\n", "studies.0.resamples"),
        (f"{TOP}- study: density\n  thresholds: [.nan]\n", "studies.0.thresholds.0: nan"),
        (f'{TOP}- study: correlate\n  name: "a\\0b"\n', "studies.0.name: 'a\\x00b'"),
        (f"{TOP}- study: correlate\n  name: {'x' * 400}\n", "studies.0.name: 'xxx"),
        (f"{TOP}- study: correlate\n  name: ../x\n", "studies.0.name: '../x'"),
        (f"{TOP}- study: correlate\n  name: .finished\n", "studies.0.name: '.finished'"),
        (f"{TOP}- study: correlate\n- study: correlate\n  name: Correlate\n", "a second time"),
        (f"{TOP}- study: correlate\n  metrics: [pk, pkk]\n", "studies.0.metrics.1: 'pkk'"),
        (f"{TOP}- study: density\n  methods: [deep]\n", "studies.0.methods.0: 'deep'"),
        (f"{TOP}- study: perturb\n  kinds: [removals]\n", "studies.0.kinds.0: 'removals'"),
        ("name: ..\ncorpora: [demo]\nstudies:\n- study: correlate\n", "name: '..'"),
        ("name: x\ncorpora: ['-']\nstudies:\n- study: correlate\n", "'stdin', read from '-'"),
        ("[" * 1100, "endlessly nested"),
        (f"a: &a [x]\nb: &b [{'*a,' * 9}]\nc: &c [{'*b,' * 9}]\n{TOP}- *c\n", "studies.0: [[['x']"),
    ],
)
def test_study_files_are_refused_in_a_sentence_before_anything_runs(tmp_path, text, part):
    with pytest.raises(InputError) as error:
        load_config(written(tmp_path, text))
    assert part in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000


def test_a_bomb_of_aliases_does_not_go_off(tmp_path):
    levels = "".join(f"- &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]\n" for i in range(1, 12))
    text = f"name: &l0 x\ncorpora:\n{levels}studies:\n- study: correlate\n"
    with pytest.raises(InputError, match="corpora"):
        load_config(written(tmp_path, text))


def test_corpora_of_one_file_name_are_all_kept(tmp_path, monkeypatch):
    for folder, n in (("a", 3), ("b", 2)):
        (tmp_path / folder).mkdir()
        lines = "".join(json.dumps(document) + "\n" for document in DOCUMENTS[:n])
        (tmp_path / folder / "talks.jsonl").write_text(lines)
    files = ["a/talks.jsonl", "b/talks.jsonl"]
    step = {"study": "density", "methods": ["texttiling"], "metrics": ["pk"], "name": "finished"}
    path = written(tmp_path, {"name": "x", "corpora": files, "studies": [step]})
    config = load_config(path)
    assert config.corpora == dict(zip(files, files, strict=True))
    monkeypatch.chdir(tmp_path)
    run_step = partial(run_config, config, tmp_path / "out", write=lambda r: render(r, "json"))
    (done,) = run_step()
    # The step is called as the ledger once was, and both are there.
    result = tmp_path / "out" / "finished.json"
    kept = json.loads(result.read_text())
    found = [(each["name"], each["documents"]) for each in kept["corpora"]]
    assert (done.is_new, found) == (True, [("a/talks.jsonl", 3), ("b/talks.jsonl", 2)])
    assert [each.is_new for each in run_step()] == [False]
    # Damaged since then, it is made again.
    result.write_text("{")
    assert [each.is_new for each in run_step()] == [True]
    assert json.loads(result.read_text()) == kept


def test_one_corpus_or_one_name_twice_is_refused(run, tmp_path):
    with pytest.raises(OptionError, match=r"the corpus 'a/x\.jsonl' twice"):
        load_config(written(tmp_path, {**STUDY, "corpora": ["a/x.jsonl", "a/x.jsonl"]}))
    path = written(tmp_path, STUDY)
    done = run("run", path, "--corpus", "m=a.jsonl", "--corpus", "m=b.jsonl")
    refused(done, "--corpus m=… twice: give one of them another name", code=2)


# Standard output ------------------------------------------------------------------------------


def started(environment, tmp_path, *args, **streams):
    command = [sys.executable, "-m", "reffree", *map(str, args)]
    return subprocess.run(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, **streams
    )


def test_a_closed_output_is_refused_before_the_work(run, corpus, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as stop:
        main(["score", str(corpus), "-m", "pk"])
    assert stop.value.code == 1
    assert "found no standard output, since it is closed" in capsys.readouterr().err


def test_a_broken_pipe_is_left_quietly(environment, corpus, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = started(environment, tmp_path, "convert", corpus, "-", stdout=pipe)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
@pytest.mark.parametrize(
    "args",
    [["--version"], ["convert", "corpus.jsonl", "-"], ["score", "corpus.jsonl", "-m", "arp_cos"]],
)
def test_a_full_output_is_a_sentence(environment, corpus, tmp_path, args):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = started(environment, tmp_path, *args, stdout=full)
    refused(done, "standard output: found an output that cannot be written", code=1)


LONG = "x" * 9000


@pytest.mark.parametrize(
    ("args", "found", "code"),
    [
        (("score", "C", "-m", "pk", "-o", LONG), "File name too long", 1),
        (("score", LONG, "-m", "pk"), "File name too long", 1),
        (("score", "C", "-m", "pk", "--text", LONG), "but no file that needs it", 1),
        (("score", "C", "-m", "pk", "--format", LONG), "unknown format", 2),
        (("score", "C", "-m", "pk", "--system", LONG), "expected NAME=FILE", 2),
        (("score", "C", "-m", "pk", "-f", LONG), "is not one of 'table'", 2),
        (("score", "C", "--encoder", f"http://{LONG}/v1#m"), "a host or a port that is none", 2),
        (("train", "scorer", "C", "-o", LONG), "File name too long", 1),
        (("cache", "ls", "--cache", "x" * 300), "File name too long", 1),
        (("cache", "rm", "--all", "--cache", "x" * 300), "File name too long", 1),
    ],
)
def test_names_too_long_are_refused_before_the_work(run, corpus, args, found, code):
    refused(run(*(corpus if each == "C" else each for each in args)), found, code=code)
