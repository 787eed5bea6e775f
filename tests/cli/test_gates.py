"""Exit code 3: scores that are there, but worse than a limit or than they were."""

from __future__ import annotations

import json

import pytest

import reffree
from reffree.evaluate.result import Result
from reffree.util.errors import InputError

# Gold is 6 | 6. Of "bad", 2 | 10, Pk with k = 3 has 5 of 9 windows wrong: those that begin with
# units 0 and 1, which hold its own boundary, and 3, 4 and 5, which hold gold's.
UNITS = [f"{topic} number {i}" for topic in ("bees", "banks") for i in range(6)]


@pytest.fixture
def corpus(write_corpus):
    return write_corpus(
        [
            {
                "id": f"d{i}",
                "units": UNITS,
                "gold": [6, 6],
                "systems": {"good": [6, 6], "bad": [2, 10]},
            }
            for i in range(3)
        ]
    )


@pytest.mark.parametrize(
    ("limits", "code", "worse"),
    [
        (["pk=0.56"], 0, []),
        (["pk=0"], 3, ["system 'bad': pk is 0.5556, worse than 0 (lower is better)"]),
        (["w_f1=1", "pk=0.9"], 3, ["system 'bad': w_f1 is 0, worse than 1 (higher is better)"]),
        (
            ["w_f1=1", "pk:k=2=0"],
            3,
            ["system 'bad': w_f1 is 0, worse", "system 'bad': pk:k=2 is 0."],
        ),
        (["purity=0.9"], 3, ["system 'bad': purity is"]),
    ],
)
def test_limits(run, corpus, limits, code, worse):
    flags = [part for limit in limits for part in ("--fail-under", limit)]
    metrics = ["-m", "pk", "-m", "pk:k=2", "-m", "w_f1", "-m", "purity"]
    done = run("score", corpus, *metrics, *flags, "-f", "json")
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout)["systems"], "the result is written all the same"
    told = [line for line in done.stderr.splitlines() if line.startswith("reffree: worse: ")]
    assert len(told) == len(worse)
    for line, expected in zip(told, worse, strict=True):
        assert expected in line


def test_no_score_is_worse_than_any(run, write_corpus):
    path = write_corpus([{"id": "d", "units": UNITS, "gold": [12], "systems": {"s": [12]}}])
    done = run("score", path, "-m", "bor", "-m", "segrefree", "--fail-under", "segrefree=9")
    assert done.returncode == 3
    assert "worse: system 's': segrefree is undefined in every document" in done.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--fail-under", "pk"], "--fail-under pk: expected METRIC=VALUE, such as pk=0.4."),
        (["--fail-under", "pk=nan"], "expected METRIC=VALUE"),
        (["--fail-under", "=1"], "expected METRIC=VALUE"),
        (["--fail-under", "pq=1"], "unknown metric 'pq'"),
        (["--fail-under", "purity=1"], "--fail-under purity: it is not scored; add -m purity."),
        (["-m", "gold", "--fail-under", "arp_cos=1"], "add -m arp_cos."),
    ],
)
def test_limits_that_are_none(run, corpus, flags, message):
    done = run("score", corpus, *flags)
    assert done.returncode == 2
    assert message in done.stderr
    assert not done.stdout


def test_limits_in_python(corpus):
    table = reffree.score(reffree.load(corpus), metrics=["pk"])
    assert table.worse_than({"pk": 0.5556}) == []
    assert len(table.worse_than({"pk": 0.55})) == 1
    with pytest.raises(InputError, match="found a limit for 'wd', which is not scored here"):
        table.worse_than({"wd": 1})


def moved(step: int, n: int = 10) -> list[dict]:
    """Documents of 12 units, gold 6 | 6, with a system whose boundary is ``step`` too early."""
    return [
        {
            "id": f"d{i}",
            "units": [f"{unit} of {i}" for unit in UNITS],
            "gold": [6, 6],
            "systems": {"mine": [6 - step, 6 + step], "same": [3, 9]},
        }
        for i in range(n)
    ]


def scored(run, path):
    metrics = ["-m", "pk", "-m", "boundary_similarity"]
    done = run("score", path, *metrics, "--per-document", "-o", "base.json")
    assert done.returncode == 0, done.stderr


def changes(done):
    """Rows of the only table of a result written as JSON."""
    return Result.from_dict(json.loads(done.stdout)).table("changes").records()


def test_a_baseline_that_is_still_reached(run, write_corpus):
    scored(run, write_corpus(moved(2)))
    for step, found in ((2, None), (0, "better")):
        path = write_corpus(moved(step))
        done = run("compare", path, "-m", "pk", "--baseline", "base.json", "-f", "json")
        assert done.returncode == 0, done.stderr
        mine, same = changes(done)
        assert (mine["change"], same["change"]) == (found, None)
        # Of 9 windows, as many are wrong on either side as the boundary is off, up to 3.
        assert mine["before"] == pytest.approx(4 / 9, abs=1e-5)
        assert mine["now"] == pytest.approx(2 * step / 9, abs=1e-5)
        assert same["difference"] == 0
    assert (
        "Nothing is worse than in base.json"
        in run("compare", path, "-m", "pk", "--baseline", "base.json").stdout
    )


def test_worse_than_the_baseline(run, write_corpus, tmp_path):
    scored(run, write_corpus(moved(0)))
    path = write_corpus(moved(1))
    metrics = ("-m", "pk", "-m", "boundary_similarity")
    arguments = ("compare", path, *metrics, "--baseline", "base.json")
    for format in ("json", "csv", "md", "latex", "table"):
        done = run(*arguments, "-f", format)
        assert done.returncode == 3, done.stderr
        assert "worse" in done.stdout
        told = (
            "reffree: worse: system 'mine': pk was 0 and is 0.2222 over 10 documents (corrected p"
        )
        assert told in done.stderr
        assert "system 'mine': boundary_similarity was" in done.stderr
        assert "'same'" not in done.stderr
    # All 10 documents differ alike, by both metrics: 2 of 2^10 swaps are as far.
    first, *_ = changes(run(*arguments, "-f", "json"))
    assert first["p"] == pytest.approx(2 / 1024, abs=1e-6)
    assert first["p_corrected"] == pytest.approx(2 / 1024, abs=1e-6)
    alone = run("compare", path, "-m", "pk", "--baseline", "base.json", "--alpha", "0.001")
    assert alone.returncode == 0
    assert "No difference can be told at alpha 0.001, however large" in alone.stdout


def test_documents_that_come_and_go(run, write_corpus):
    scored(run, write_corpus(moved(0, 12)))
    path = write_corpus([*moved(0)[3:], {**moved(0)[0], "id": "new"}])
    done = run("compare", path, "-m", "pk", "--baseline", "base.json", "-f", "json")
    assert "7 documents in both; 1 new and 5 no longer there are left out." in done.stderr
    assert {each["documents"] for each in changes(done)} == {7}


def test_baselines_that_are_none(run, write_corpus, tmp_path):
    path = write_corpus(moved(1))
    scored(run, path)
    base = json.loads((tmp_path / "base.json").read_text())
    other = {**base, "signature": base["signature"].replace("|dropped:none", "|dropped:repeats")}
    files = {
        "no.json": (None, "no.json"),
        "list.json": ([], "list.json: found no scores by document; expected what reffree score"),
        "plain.json": ({**base, "documents": None}, "found no scores by document"),
        "other.json": (
            other,
            "found scores made with dropped repeats; expected none, as now; score",
        ),
        "names.json": (
            {**base, "documents": [{**row, "system": "x"} for row in base["documents"]]},
            "found no document, system and metric that both have; expected scores of the same",
        ),
    }
    for name, (content, message) in files.items():
        if content is not None:
            (tmp_path / name).write_text(json.dumps(content))
        done = run("compare", path, "-m", "pk", "--baseline", name)
        assert done.returncode == 1, done.stderr
        assert message in done.stderr
    kept = run("compare", path, "-m", "pk", "--baseline", "base.json", "-o", "base.json")
    assert "this is an input" in kept.stderr
