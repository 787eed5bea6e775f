"""The real command, on real files, with the real default encoder."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import termios
import textwrap
import time
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import reffree
from reffree.cli.messages import progress

OPENING = ["placement", "granularity", "expected_pk"]
METRICS = [*OPENING, "arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree"]
DEMO = [*OPENING, "arp_pair"]
GOLD_BASED = ["pk", "windowdiff", "boundary_similarity"]
UNITS = [
    "Bees fly out in the morning.",
    "They bring nectar to the hive.",
    "Honey is made from it.",
    "The router drops the connection.",
    "I restarted it twice.",
    "The light still blinks.",
]


def document(id="m1", units=UNITS, **fields):
    return {"id": id, "units": list(units), **fields}


def six(**fields):
    return [document(f"m{i}", gold=[3, 3], systems={"late": [4, 2]}, **fields) for i in range(6)]


def validated(text):
    result = json.loads(text, parse_constant=pytest.fail)
    schema = json.loads((files("reffree") / "report" / "score.schema.json").read_text())
    jsonschema.validate(result, schema)
    return result


def failed(done, *parts, code=1):
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr, done.stderr
    return True


def test_demo_ranks_gold_first(run):
    done = run("demo", "-f", "json")
    assert done.returncode == 0, done.stderr
    result = validated(done.stdout)
    systems = {row["system"]: row["metrics"] for row in result["systems"]}
    assert list(systems) == ["gold", "near_miss", "over", "under", "even", "random"]
    for metric in DEMO:
        gold = systems["gold"][metric]
        others = [s[metric]["value"] for name, s in systems.items() if name != "gold"]
        if gold["direction"] == "lower":
            assert gold["value"] < min(others)
        elif gold["direction"] == "higher":
            assert gold["value"] > max(others)
        assert gold["ci"][0] <= gold["value"] <= gold["ci"][1]
    assert result["corpus"] == {
        "documents": 12,
        "units": 324,
        "dropped_units": 0,
        "distinct_units": 324,
        "truncated_units": 0,
    }


def test_demo_prints_a_table_and_how_to_read_it(run_process):
    done = run_process("demo", "--offline")
    assert done.returncode == 0, done.stderr
    assert "note" not in done.stderr
    assert "\x1b" not in done.stdout
    verdict, table, below = done.stdout.split("\n\n", 2)
    assert verdict.startswith("under cuts 0.")
    assert "; its boundaries " in verdict
    assert " It is best of 5 systems by expected_pk: 0.4" in verdict
    lines = table.splitlines()
    assert lines[0].split() == ["system", "segs", *DEMO, "pk"]
    assert max(map(len, lines)) <= 100  # one table, not split
    said = [*verdict.splitlines(), "", "", *below.splitlines()]
    assert len(lines) + sum(len(textwrap.wrap(line, 100)) or 1 for line in said) < 47
    assert "Lower is better; for placement higher" in done.stdout
    assert "all-MiniLM-L6-v2@sha256:53aa5117" in done.stdout
    reading = done.stdout.split("\n\n")[-1]
    assert "gold is best in each" in reading
    assert len(re.findall(r"\.(?:\s|$)", reading)) == 4


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("demo --save made.jsonl", "made.jsonl"),
        ("score c.jsonl -m pk -o made.csv", "made.csv"),
        ("compare c.jsonl -m pk -o made.md", "made.md"),
        ("segment c.jsonl --method even:k=2 -o made.jsonl", "made.jsonl"),
        ("perturb c.jsonl --perturbation removal:1 -o made.jsonl", "made.jsonl"),
        ("study moves c.jsonl -o made.html", "made.html"),
        ("models -o made.json", "made.json"),
        ("convert c.jsonl made.jsonl", "made.jsonl"),
    ],
)
def test_every_command_says_what_it_wrote(run, write_corpus, tmp_path, command, file):
    write_corpus(six(), "c.jsonl")
    done = run(*command.split())
    assert done.returncode == 0, done.stderr
    assert (tmp_path / file).stat().st_size
    said = f"{file}: " if command.startswith("convert") else f"reffree: wrote {file}."
    assert any(line.startswith(said) for line in done.stderr.splitlines())


def test_demo_claims_nothing_it_does_not_show(run, tmp_path):
    from tests.checkpoints import save_checkpoint

    save_checkpoint("roberta", tmp_path / "random-weights")
    done = run("demo", "--encoder", "./random-weights")
    assert done.returncode == 0, done.stderr
    assert "gold is best" not in done.stdout
    assert "its scores say little" in " ".join(done.stdout.split())


def test_demo_saves_its_corpus_to_try_other_commands_on(run, tmp_path):
    assert run("demo", "--save", "corpus.jsonl").stdout == ""
    corpus = reffree.load(tmp_path / "corpus.jsonl")
    assert (len(corpus), corpus.n_units, len(corpus.hypotheses)) == (12, 324, 6)
    assert run("demo", "--save", "book.txt").returncode == 0
    paragraphs = (tmp_path / "book.txt").read_text().strip().split("\n\n")
    assert paragraphs == [" ".join(document.units) for document in corpus]
    done = run("demo", "--save", "corpus.docx")
    assert done.returncode == 2
    assert "expected a .jsonl or a .txt file" in done.stderr
    assert not (tmp_path / "corpus.docx").exists()


def test_score_json_equals_the_python_api(run, write_corpus, cache_dir):
    path = write_corpus(six())
    done = run("score", path, "-f", "json", "--per-document", "--seed", "5", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    table = reffree.score(
        reffree.load(path), per_document=True, seed=5, cache=cache_dir, device="cpu"
    )
    assert validated(done.stdout) == table.to_dict()
    again = run("score", path, "-f", "json", "--per-document", "--seed", "5", "--device", "cpu")
    assert again.stdout == done.stdout


def test_choosing_metrics_systems_and_policy(run, write_corpus, tmp_path):
    path = write_corpus([document(f"m{i}") for i in range(2)])
    for name, masses in {"none": [6], "even": [3, 3]}.items():
        rows = [{"id": f"m{i}", "segmentation": masses} for i in (1, 0)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = ["--system", "none=none.jsonl", "--system", "even=even.jsonl"]
    arguments += ["-m", "arp_std:p=1", "-m", "segrefree", "--unsegmented", "worst"]
    result = validated(run("score", path, "-f", "json", *arguments).stdout)
    assert [row["system"] for row in result["systems"]] == ["none", "even"]
    none, even = result["systems"]
    assert list(none["metrics"]) == ["arp_std:p=1", "segrefree"]
    assert (none["unsegmented"], none["metrics"]["arp_std:p=1"]["raw"]) == (2, -1)
    assert none["metrics"]["segrefree"]["value"] == 10
    assert even["metrics"]["arp_std:p=1"]["ci"] is None
    assert result["signature"].startswith("metrics:arp_std(p=1)+segrefree|encoder:")


def test_standard_input(run, write_corpus):
    path = write_corpus(six())
    piped = run("score", "-", "-f", "json", stdin=path.read_text())
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout == run("score", path, "-f", "json").stdout


def test_several_corpora_are_one(run, write_corpus):
    first, second = write_corpus(six()[:3], "a.jsonl"), write_corpus(six()[3:], "b.jsonl")
    whole = write_corpus(six())
    parts = run("score", first, second, "-f", "json")
    assert parts.stdout == run("score", whole, "-f", "json").stdout
    assert failed(
        run("score", first, first), "document 'm0'", "the id a second time", "a.jsonl, line 1"
    )


def test_csv_markdown_and_latex(run, write_corpus, tmp_path):
    corpus = [dict(row, systems={"late_100%": [4, 2]}) for row in six()]
    path = write_corpus(corpus)
    expected = validated(run("score", path, "-f", "json", "--per-document").stdout)
    rows = list(
        csv.DictReader(io.StringIO(run("score", path, "-f", "csv", "--per-document").stdout))
    )
    assert len(rows) == 2 * 11 + 2 * 11 * 6
    late = next(r for r in rows if r["system"] == "late_100%" and r["metric"] == "silhouette")
    cell = expected["systems"][1]["metrics"]["silhouette"]
    assert float(late["value"]) == cell["value"]
    assert [float(late["ci_low"]), float(late["ci_high"])] == cell["ci"]
    assert late["signature"] == expected["signature"]
    assert {r["document"] for r in rows} == {"", *(f"m{i}" for i in range(6))}

    markdown = run("score", path, "-f", "md").stdout
    verdict, _, header, rule, gold, *_ = markdown.splitlines()
    assert verdict.startswith("late\\_100%" if "\\_" in verdict else "late_100%")
    assert header == "| system | segs | " + " | ".join([*OPENING, *GOLD_BASED]) + " |"
    assert "| system | segs | " + " | ".join(METRICS[3:]) + " |" in markdown.splitlines()
    assert rule.count("|") == header.count("|") == gold.count("|")
    assert "**" in markdown
    assert f"`{expected['signature']}`" in markdown

    done = run("score", path, "-f", "latex", "-o", "table.tex")
    assert done.stdout == ""
    latex = (tmp_path / "table.tex").read_text()
    assert latex.startswith("% late_100% cuts ")
    assert "Lower is better; for placement, boundary_similarity higher" in latex.splitlines()[1]
    assert f"% {expected['signature']}" in latex
    assert r"\begin{tabular}{lrrrrrrr}" in latex
    assert r"late\_100\% & 12 &" in latex
    assert r"\textbf{" in latex
    assert latex.count(r"\\") == 6  # two tables


def test_per_document_and_segment_tables(run, write_corpus):
    path = write_corpus(six()[:2])
    done = run("score", path, "--per-document", "-m", "silhouette")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ *m1 +late +0\.\d{3}$", done.stdout, re.M)
    assert "No interval: too few documents with a score." in done.stdout
    result = validated(run("score", path, "--explain", "-f", "json").stdout)
    assert len(result["documents"][0]["metrics"]["arp_std"]["segments"]) == 2


def test_null_and_explanations(run, write_corpus):
    path = write_corpus(six())
    done = run("score", path, "--null", "50", "--explain", "-f", "json")
    assert done.returncode == 0, done.stderr
    result = validated(done.stdout)
    test = result["systems"][0]["metrics"]["arp_cos"]["null"]
    assert test["draws"] == 50
    assert test["p"] == 1  # two equal lengths have one order
    late = next(part for part in result["documents"] if part["system"] == "late")
    (boundary,) = late["explanations"]["arp_cos"]["boundaries"]
    assert (boundary["at"], boundary["best_shift"]) == (4, -1)
    assert boundary["shift_gain"] > 0
    text = run("score", path, "--explain", "-m", "arp_cos").stdout
    drawn = text.split("m0 · late · arp_cos")[1].split("m1 · gold")[0].splitlines()
    assert "1 unit earlier would gain" in drawn[5]
    assert UNITS[4] in drawn[6]


def test_output_files(run, run_process, write_corpus, tmp_path):
    path = write_corpus(six())
    assert run("score", path, "-m", "arp_cos", "-o", "scores.json").stdout == ""
    validated((tmp_path / "scores.json").read_text())
    (tmp_path / "target.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("target.csv")
    run("score", path, "-m", "arp_cos", "-o", "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "target.csv").read_text().startswith("system,document,segment,metric")
    assert "system" in run("score", path, "-m", "arp_cos", "-o", "-").stdout
    narrow = run_process("score", path, "-m", "arp_cos", PYTHONIOENCODING="cp1252")
    assert narrow.returncode == 0, narrow.stderr
    assert "─" in narrow.stdout


def test_own_vectors(run, write_corpus, tmp_path):
    path = write_corpus(six())
    rng = np.random.default_rng(0)
    arrays = {f"m{i}": rng.normal(size=(6, 4)) for i in range(6)}
    np.savez(tmp_path / "v.npz", **arrays)
    result = validated(run("score", path, "--embeddings", "v.npz", "-f", "json").stdout)
    table = reffree.score(reffree.load(path), embeddings=list(arrays.values()))
    assert result == table.to_dict()
    assert failed(
        run("score", path, "--embeddings", "v.npz", "--encoder", "minilm"), "exclude", code=2
    )


def test_dropped_and_truncated_units_are_counted(run, write_corpus):
    units = [*UNITS[:3], " ", "word " * 600, *UNITS[3:]]
    path = write_corpus([document(units=units, gold=[3, 2, 3])])
    done = run("score", path, "-f", "json", "-m", "arp_cos")
    result = validated(done.stdout)
    assert result["corpus"]["dropped_units"] == 1
    assert result["corpus"]["truncated_units"] == 1
    assert result["corpus"]["units"] == 7
    assert "truncated:14.29%" in result["signature"]
    assert "1 unit without text dropped" in done.stderr
    assert "1 of 7 units cut off at the encoder's 256 tokens" in done.stderr


ERRORS = {
    "wrong length": (
        [document(gold=[3, 4])],
        ["c.jsonl, line 1, system 'gold', document 'm1'", "covers 7 units", "expected 6"],
    ),
    "missing document": (
        [document("a", systems={"s": [6]}), document("b")],
        ["system 's', document 'b'", "found no segmentation", "expected one for every document"],
    ),
    "duplicate": (
        [document("a", gold=[6]), document("b", gold=[6]), document("a", gold=[6])],
        ["c.jsonl, line 3, document 'a'", "a second time", "line 1"],
    ),
    "empty document": (
        [document(units=[], gold=[])],
        ["c.jsonl, line 1, document 'm1'", "found no units", "expected at least one unit"],
    ),
    "non-string unit": (
        [document(units=["a", 7], gold=[2])],
        ["document 'm1'", "found unit 2 of 2 is 7 (int)", "expected a string"],
    ),
    "float mass": ([document(gold=[3.0, 3.0])], ["found the segment length 3.0", "document 'm1'"]),
    "nothing to score": ([document()], ["no segmentation to score", "--system NAME=FILE"]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_bad_corpora_get_one_sentence(run, write_corpus, name):
    documents, parts = ERRORS[name]
    done = run("score", write_corpus(documents, "c.jsonl"))
    assert failed(done, *parts)
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("reffree: error: ")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["score"], "Missing argument"),
        (["score", "c.jsonl", "-m", "arp_pear"], "did you mean 'arp_pair'?"),
        (["score", "c.jsonl", "-f", "xml"], "'xml' is not one of"),
        (["score", "c.jsonl", "--unsegmented", "zero"], "'zero' is not one of"),
        (["score", "c.jsonl", "--system", "broken"], "expected NAME=FILE"),
        (["score", "c.jsonl", "--encoder", "minilm:batch_tokens=0"], "batch_tokens"),
        (["score", "c.jsonl", "--seed", "-1"], "--seed"),
        (["score", "c.jsonl", "-m", "arp_std:p=3"], "p=1 or p=2"),
        (["score", "c.jsonl", "-m", "arp_cos,arp_pair"], "-m arp_cos -m arp_pair"),
        (["score", "c.jsonl", "--device", "tpu"], "the device 'tpu'"),
        (
            ["score", "c.jsonl", "-o", "x.docx"],
            "-o x.docx: no format has the ending .docx; expected",
        ),
        (["compare", "c.jsonl", "-o", "x.pdf"], "expected .json, .csv, .md, .tex,"),
        (["boundaries", "c.jsonl", "-o", "x.pdf"], "-o x.pdf: no format has the ending .pdf;"),
        (["score", "c.jsonl", "--null", "-1"], "--null"),
        (["score", "c.jsonl", "-o", "c.jsonl"], "this is an input"),
        (
            ["study", "agreement", "x.jsonl", "--text", "c.jsonl", "-o", "c.jsonl"],
            "this is an input",
        ),
        (["train", "scorer", "c.jsonl", "-o", "s", "--seed", "-1"], "-1 is not in the range"),
        (["scores", "c.jsonl"], "did you mean 'score'?"),
        (["cache", "rm"], "name the files, or pass one of --all and --old"),
    ],
)
def test_usage_errors_exit_2(run, write_corpus, arguments, part):
    write_corpus(six(), "c.jsonl")
    assert failed(run(*arguments), part, code=2)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["score", "absent.jsonl"], "absent.jsonl"),
        (["score", "c.jsonl", "--encoder", "mpnet", "--offline"], "hf download"),
        (["score", "c.jsonl", "--device", "cuda:77"], "device 'cuda:77'"),
        (["score", "c.jsonl", "-o", "no/such/folder/x.json"], "x.json"),
        (["score", "c.jsonl", "--encoder", ""], "found no folder of that name"),
    ],
)
def test_failures_exit_1(run, write_corpus, arguments, part):
    write_corpus(six(), "c.jsonl")
    assert failed(run(*arguments), part, "expected")


def test_convert_and_read_without_converting(run, write_corpus, tmp_path):
    path = write_corpus([document(f"m{i}", gold=[3, 3]) for i in range(6)])
    done = run("convert", path, "choi")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "choi" / "m0.ref").read_text().count("==========") >= 1
    assert run("convert", "choi", "back.jsonl").returncode == 0
    direct = validated(run("score", "choi", "-f", "json").stdout)
    original = validated(run("score", path, "-f", "json").stdout)
    assert direct["systems"] == original["systems"]
    run("convert", path, "labels.txt")
    labelled = run("score", "labels.txt", "--text", path, "-f", "json")
    assert labelled.returncode == 0, labelled.stderr  # the same gold twice is one gold
    bare = write_corpus([document(f"m{i}") for i in range(6)], "bare.jsonl")
    labelled = run("score", "labels.txt", "--text", bare, "-f", "json")
    assert validated(labelled.stdout)["systems"] == original["systems"]


def in_terminal(arguments, environment, cwd):
    """Run in a pseudo-terminal, as a person does; returns everything the terminal saw."""
    main, child = pty.openpty()
    termios.tcsetwinsize(child, (40, 100))
    process = subprocess.Popen(
        [sys.executable, "-m", "reffree", *arguments],
        **dict.fromkeys(("stdin", "stdout", "stderr"), child),
        cwd=cwd,
        env={**environment, "TERM": "xterm-256color"},
    )
    os.close(child)
    seen = b""
    with contextlib.suppress(OSError):  # the terminal closes with its last process
        while part := os.read(main, 65536):
            seen += part
    os.close(main)
    assert process.wait(timeout=240) == 0
    return seen.decode()


def test_terminal_shows_colour_and_progress_and_honours_no_color(
    write_corpus, environment, tmp_path
):
    path = str(write_corpus(six()))
    seen = in_terminal(["score", path, "--cache", "off"], environment, tmp_path)
    assert "Encoding" in seen
    assert "\x1b[1;32m*0." in seen
    plain = in_terminal(["score", path], {**environment, "NO_COLOR": "1"}, tmp_path)
    assert "*0." in plain
    assert "\x1b[1;32m" not in plain


def test_interrupted_encoding_resumes_from_the_cache(write_corpus, environment, tmp_path):
    texts = [
        f"Sentence {i} says that item {i} of the list is {i * 7} metres long." for i in range(1000)
    ]
    path = write_corpus([document("long", units=texts, gold=[400, 600])])
    arguments = [sys.executable, "-m", "reffree", "score", str(path)]
    arguments += ["--encoder", "minilm:batch_tokens=512"]
    here = {**environment, "REFFREE_CACHE_DIR": str(tmp_path / "cache")}
    process = subprocess.Popen(arguments, env=here, stderr=subprocess.PIPE, text=True)

    def rows():
        for file in (tmp_path / "cache").rglob("*.sqlite"):
            with (
                contextlib.suppress(sqlite3.OperationalError),  # not laid out yet
                contextlib.closing(sqlite3.connect(file, timeout=30)) as db,
            ):
                return db.execute("SELECT count(*) FROM v").fetchone()[0]
        return 0

    deadline = time.monotonic() + 120
    while not rows() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 130, errors
    assert "interrupted; run it again to go on" in errors
    assert "Traceback" not in errors
    saved = rows()
    assert 0 < saved < 1000
    again = subprocess.run(arguments, env=here, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "1,000 units" in again.stdout
    assert rows() == 1000


@pytest.mark.parametrize("is_watched", [True, False])
def test_who_watches_is_told_why_nothing_seems_to_happen(is_watched, monkeypatch, capsys):
    """Drawing a page and loading libraries take a while at every start."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_watched)
    monkeypatch.setenv("TERM", "xterm")
    with progress("Loading"):
        pass
    assert ("Loading" in capsys.readouterr().err) == is_watched
