"""``score --explain --only NAME``: some documents' and systems' rows, no others."""

from __future__ import annotations

import json

import pytest

import reffree
from reffree.util.errors import OptionError

UNITS = [f"{topic} number {i}" for topic in ("bees", "banks") for i in range(3)]


@pytest.fixture
def corpus(write_corpus):
    systems = {"good": [3, 3], "bad": [1, 5]}
    return write_corpus(
        [{"id": f"d{i}", "units": UNITS, "gold": [3, 3], "systems": systems} for i in range(3)]
    )


def test_some_documents_and_systems(run, corpus):
    command = ("score", corpus, "-m", "arp_pair", "--explain", "-f", "json")
    whole = json.loads(run(*command).stdout)
    narrow = json.loads(run(*command, "--only", "d1", "--only", "bad", "--only", "gold").stdout)
    wanted = [
        row for row in whole["documents"] if row["id"] == "d1" and row["system"] in ("bad", "gold")
    ]
    assert narrow.pop("documents") == wanted
    assert len(wanted) == 2
    whole.pop("documents")
    assert narrow == whole, "scores over the corpus are all there"
    text = run("score", corpus, "-m", "arp_pair", "--explain", "--only", "d2").stdout
    assert "d2 · good · arp_pair" in text
    assert "d1 · " not in text
    rows = run(*command[:4], "--per-document", "--only", "bad", "-f", "csv").stdout
    assert rows.count("\nbad,d0,") == 1
    assert "\ngood,d0," not in rows


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--only", "d1"], "--only is for what --explain or --per-document shows"),
        (["--explain", "--only", "d9"], "found the document 'd9'; expected one of the corpus's 3"),
    ],
)
def test_what_is_not_there(run, corpus, flags, message):
    done = run("score", corpus, "-m", "arp_pair", *flags)
    assert done.returncode == 2
    assert message in done.stderr
    assert not done.stdout


def test_narrowing_in_python(corpus):
    table = reffree.score(reffree.load(corpus), metrics=["pk"], per_document=True)
    assert [row.id for row in table.narrowed(["d2", "bad"]).documents] == ["d2"]
    assert [row.system for row in table.narrowed(["bad"]).documents] == ["bad"] * 3
    assert table.narrowed([]) == table
    with pytest.raises(OptionError, match="the document 'x'"):
        table.narrowed(["x"])
