"""What the documentation shows is what happens: its commands are run, its examples computed."""

from __future__ import annotations

import doctest
import itertools
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[2] / "README.md"
DOCS = README.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
FENCED = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d*\.?\d+")

CLOSE = 0.02
"""How far a printed number may be from the one on the page: another processor, another p."""

FEW = 0.05
"""For counts that follow from such numbers, as a share."""


def is_shown(expected: str, line: str) -> bool:
    """Whether a line is the one on the page, but for spaces, what ``…`` stands for, and noise."""
    expected, line = " ".join(expected.split()), " ".join(line.split())
    if expected.endswith("…"):
        expected = expected.removesuffix("…").rstrip()
        words = NUMBER.sub("#", expected)
        pattern = re.escape(words).replace(r"\#", NUMBER.pattern)
        found = re.match(pattern, line)
        if found is None:
            return False
        line = found.group()
    if NUMBER.sub("#", expected) != NUMBER.sub("#", line):
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(line), strict=True)
    return all(
        abs(float(a) - float(b)) <= max(CLOSE, FEW * abs(float(a)) if "." not in a else 0.0)
        for a, b in pairs
    )


def missing_line(expected: list[str], lines: list[str]) -> str | None:
    """The first line of the page that the output lacks; a lone ``…`` skips any lines."""
    at, skips = 0, False
    for wanted in expected:
        if wanted.strip() == "…":
            skips = True
            continue
        here = itertools.islice(enumerate(lines), at, None if skips else at + 1)
        found = next((i for i, line in here if is_shown(wanted, line)), None)
        if found is None:
            return wanted
        at, skips = found + 1, False
    return None


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ("gold 0.394 p .005", "gold   0.395  p .001"),
        ("best: 0.405, then …", "best: 0.405, then near_miss, 0.439"),
        ("12 documents", "12 documents"),
    ],
)
def test_what_counts_as_the_same_line(wanted, line):
    assert is_shown(wanted, line)


@pytest.mark.parametrize(
    ("wanted", "line"),
    [("gold 0.394", "gold 0.494"), ("gold 0.394", "silver 0.394"), ("a …", "b a"), ("1 2", "1")],
)
def test_what_does_not(wanted, line):
    assert not is_shown(wanted, line)


def test_lines_may_be_skipped_only_where_it_says_so():
    assert missing_line(["a", "…", "c"], ["a", "b", "c"]) is None
    assert missing_line(["a", "c"], ["a", "b", "c"]) == "c"
    assert missing_line(["…", "d"], ["a", "b"]) == "d"


@pytest.fixture
def folder(tmp_path, run):
    """What pages take for the reader's own: the demo's corpus and text, a system, a chunker."""
    assert run("demo", "--save", "corpus.jsonl").returncode == 0
    assert run("demo", "--save", "book.txt").returncode == 0
    documents = [json.loads(line) for line in (tmp_path / "corpus.jsonl").read_text().splitlines()]
    rows = [{"id": d["id"], "segmentation": [len(d["units"])]} for d in documents]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "my_module.py").write_text("def my_function(text):\n    return text.split('\\n')\n")
    return tmp_path


def commands_of(body: str) -> Iterator[tuple[list[str], str | None, list[str]]]:
    """Commands of a block that run here: arguments, the file piped in, and the lines shown."""
    for block in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, *expected = block.rstrip("\n").split("\n")
        for part in command.split("&&"):
            piped, _, own = part.rpartition("|")
            words = shlex.split(own, comments=True)
            if words[0] == "reffree" and "cuda" not in own:
                yield words[1:], piped.removeprefix("cat ").strip() or None, expected
            else:
                assert words[0] in ("python", "reffree"), command


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_a_page_does_what_it_shows(page, run, request):
    blocks = [each for each in FENCED.findall(page.read_text()) if each[0] == "console" or each[1]]
    if not blocks:
        return
    folder = request.getfixturevalue("tmp_path" if page in TUTORIALS else "folder")
    for _, title, body in blocks:
        if title:
            (folder / title).write_text(body)
            continue
        for arguments, piped, expected in commands_of(body):
            if arguments[:2] == ["demo", "--save"]:
                (folder / arguments[2]).unlink(missing_ok=True)
            done = run(*arguments, stdin=(folder / piped).read_text() if piped else None)
            assert done.returncode == 0, f"{arguments}\n{done.stderr}"
            missing = missing_line(expected, done.stdout.splitlines())
            assert missing is None, f"{arguments}\nwithout the line: {missing}\n{done.stdout}"


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_python_on_a_page_runs(page, request, monkeypatch):
    blocks = [
        body for language, _, body in FENCED.findall(page.read_text()) if language == "python"
    ]
    names = {"embeddings": np.random.default_rng(0).normal(size=(7, 4))}
    for body in blocks:
        monkeypatch.chdir(request.getfixturevalue("folder"))
        exec(compile(body, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_examples_compute_what_they_show(page):
    found = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert found.failed == 0
    if page.parent.name == "metrics":
        assert found.attempted > 3


def test_every_metric_has_its_place():
    """A metric that is not on these pages cannot be looked up."""
    from reffree.metrics.registry import FREE_METRICS, GOLD_METRICS

    said = " ".join(page.read_text() for page in (DOCS / "metrics").glob("*.md"))
    missing = [
        name for name in (*FREE_METRICS, *GOLD_METRICS) if not re.search(rf"\b{name}\b", said)
    ]
    assert missing == []


def test_every_page_is_in_the_navigation():
    listed = (DOCS.parent / "mkdocs.yml").read_text()
    assert [page for page in PAGES if str(page.relative_to(DOCS)) not in listed] == []
