"""Pages of tables, the index of a run, and what notebooks show."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.report.grid import Grid, render_grids
from reffree.report.tables_page import render_index
from reffree.studies import compare, correlate
from tests.helpers import halves, topical_corpus

NASTY = "<script>alert(1)</script>"


class Seen(HTMLParser):
    """Elements of a page, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words, self.links = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def corpus():
    documents = [
        Document.build(
            f"d{i}", [f"u{j}" for j in range(9)], gold=[3, 6], systems={NASTY: [4, 5], "b": [1] * 9}
        )
        for i in range(6)
    ]
    return Corpus(tuple(documents))


@pytest.mark.parametrize("command", ["score", "compare", "agreement"])
def test_a_page_of_tables_asks_nothing_of_anyone(command, run, corpus, tmp_path):
    golds = [
        Document.build(d.id, d.units, golds={"ann": [3, 6], "bob": [4, 5]}, systems=d.systems)
        for d in corpus
    ]
    reffree.save(Corpus(tuple(golds)) if command == "agreement" else corpus, tmp_path / "c.jsonl")
    options = [] if command == "agreement" else ["-m", "pk", "-m", "windowdiff"]
    done = run(command, "c.jsonl", *options, "-o", "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    seen = Seen(page)
    assert seen.tags.count("table") >= 1
    assert "script" not in seen.tags
    assert seen.links == ["data:,"]
    assert "default-src &#x27;none&#x27;" in page
    if command != "agreement":
        assert f"{NASTY} is best of 2 systems by pk: " in "".join(seen.words)
        assert "&lt;script&gt;" in page
    assert run(command, "c.jsonl", *options, "-f", "html").stdout == page


def test_cells_keep_their_parts():
    grid = Grid.of(("system", "long_name"), [["a_b", "0.5"]], title="A <title>")
    page = render_grids(
        *([grid], ["a note"], "m:x|s:0", "html"),
        color=False,
        width=None,
        command="score",
        question="How good?",
        opening=["First.", "Second."],
    )
    words = "".join(Seen(page).words)
    assert "A <title>" in words
    assert "long_<wbr>name" in page  # breaks where it may
    assert re.findall(r'<p class="answer" dir="auto">(.*?)</p>', page) == ["First.", "Second."]
    assert "m:x|<wbr>s:0" in page


def test_an_index_leads_to_what_is_there():
    page = render_index("my & run", [("one two", "Why?", ["So."]), ("b", NASTY, [])], {"one two"})
    seen = Seen(page)
    assert seen.links[1:] == ["one%20two.html", "one%20two.md", "one%20two.json", "b.md", "b.json"]
    assert "script" not in seen.tags
    assert {"my & run", "Why?", "So.", NASTY} <= set(seen.words)


def test_notebooks_show_sentences_and_tables():
    corpus, vectors = topical_corpus([[6] * 4] * 8, halves=halves, ones=lambda n: [1] * n)
    table = reffree.score(corpus, metrics=["arp_pair", "pk"], embeddings=vectors)
    shown = Seen(table._repr_html_())
    assert shown.tags.count("tr") == 4
    assert shown.words[0] == table.verdict[0]
    compared = compare(corpus, metrics=["arp_pair", "pk"], embeddings=vectors)
    shown = Seen(compared._repr_html_())
    assert shown.tags.count("tr") == 4
    assert f"{compared.metrics['pk'].ranking[0].value:.3f} a" in shown.words
    result = correlate(
        {"c": corpus}, metrics=["arp_pair", "pk"], embeddings={"c": vectors}, resamples=100
    )
    shown = Seen(result._repr_html_())
    assert result.verdict[0] in shown.words
    assert shown.tags.count("table") == sum(t.shown and bool(t.rows) for t in result.tables)


@pytest.mark.parametrize("module", ["tables_page", "boundaries_page"])
def test_pages_without_charts_need_no_library_of_charts(module):
    code = (
        f"import sys, reffree.report.{module}\n"
        "print(sorted({'altair', 'vl_convert'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout == "[]\n"
