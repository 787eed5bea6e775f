"""Exit code 3: scores that are there, but worse than a limit or than they were."""

from __future__ import annotations

import json

import pytest

import reffree
from reffree.errors import InputError

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
        (["--fail-under", "sag=1"], "--fail-under sag: it is not scored; add -m sag."),
        (["-m", "gold", "--fail-under", "sag=1"], "add -m sag."),
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
