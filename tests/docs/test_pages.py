"""What the documentation shows is what happens: its commands are run, its examples computed."""

from __future__ import annotations

import doctest
import itertools
import re
import shlex
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
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


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_shows(page, run, tmp_path):
    text = page.read_text()
    commands = 0
    for language, title, body in FENCED.findall(text):
        if title:
            (tmp_path / title).write_text(body)
        if language != "console":
            continue
        for block in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, *expected = block.rstrip("\n").split("\n")
            program, *arguments = shlex.split(command)
            assert program == "reffree", command
            done = run(*arguments)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            missing = missing_line(expected, done.stdout.splitlines())
            assert missing is None, f"{command}\nwithout the line: {missing}\n{done.stdout}"
            commands += 1
    assert commands > 1


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
