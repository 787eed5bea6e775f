"""Sizes of chunks, what they cut apart, equal sizes, and chunkers of LlamaIndex and docling."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.chunkers.blocks import KINDS
from reffree.chunkers.chunked import (
    characters_a_chunk,
    measure_chunks,
    n_cut,
    parts_of,
    with_characters,
)
from reffree.chunkers.libraries import (
    ChonkieToken,
    DoclingHierarchical,
    DoclingHybrid,
    LangChainRecursive,
    LlamaIndexSentence,
    LlamaIndexToken,
)
from reffree.chunkers.registry import FunctionChunker, find_chunker
from reffree.chunkers.spans import locate_items, snap
from tests.chunkers.texts import plain, unit_spans
from tests.helpers import refusal

MARKDOWN = """# Servers

The server failed at *noon*. Was the disk full? It was.

- one item
- another [link](http://x.y)

| a | b |
|---|:-:|
| 1 | two |
| 3 | four |

## Bees

Bees make honey in `summer`. They sleep in winter,
close together.

```python
# no heading
def f(): return 1

| no | table |
```

The queen stays warm.
"""


def parts(text):
    source = plain(text)
    return parts_of(text, source.blocks, source.units("en"))


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=6),
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=6),
)
def test_a_part_is_cut_that_no_chunk_holds(chunks, parts):
    spans = sorted((a, a + n) for a, n in chunks)
    held = [set(range(*span)) for span in spans]
    wanted = [(a, a + n) for a, n in parts]
    expected = [p for p in wanted if not any(set(range(*p)) <= each for each in held)]
    assert n_cut(spans, wanted) == len(expected)


def test_sizes_of_all_texts_together():
    chunker = ChonkieToken(chunk_size=10)
    texts = ["x" * 25, "y" * 20 + "\n\n# h\n\nz"]
    cuts = [chunker(text) for text in texts]
    tokens = [3, 2, 1, *[4] * len(cuts[1])]
    row = measure_chunks(chunker, texts, cuts, [parts(text) for text in texts], tokens, 3)
    sizes = [b - a for cut in cuts for a, b in cut]
    assert sizes[:5] == [10, 10, 5, 10, 10]
    assert (row["chunks"], row["characters_max"]) == (len(sizes), 10)
    assert row["per_document"] == len(sizes) / 2
    assert row["at_cap"] == pytest.approx(4 / len(sizes), abs=1e-6)
    assert row["over_limit"] == pytest.approx(len(cuts[1]) / len(sizes), abs=1e-6)
    assert (row["headings"], row["tokens_max"]) == (1, 4)
    assert row["tokens_mean"] == sum(tokens) / len(tokens)
    function = FunctionChunker("mine", lambda text: [text])
    row = measure_chunks(function, ["One."], [[(0, 4)]], [parts("One.")])
    assert (row["at_cap"], row["tokens_p95"], row["over_limit"]) == (None, None, None)
    assert (row["sentences"], row["sentences_cut"]) == (1, 0)


@pytest.mark.parametrize("spec", ["langchain-recursive", "chonkie-token", "chonkie-sentence"])
def test_chunkers_of_equal_size(spec):
    rng = np.random.default_rng(0)
    words = ["lamp", "honey", "disk", "budget"]
    text = " ".join(" ".join(rng.choice(words, 8)).capitalize() + "." for _ in range(60))
    made = with_characters(find_chunker(spec), [plain(text)], 200)
    assert characters_a_chunk(made, [plain(text)]) == pytest.approx(200, rel=0.15)
    overlapping = with_characters(LangChainRecursive(chunk_overlap=50), [plain(text)], 200)
    assert overlapping.chunk_overlap == 50
    assert characters_a_chunk(overlapping, [plain(text)]) == pytest.approx(200, rel=0.15)


def test_no_size_to_choose():
    function = FunctionChunker("mine:cut", str.split)
    assert "mine:cut, which has no size to choose" in refusal(
        with_characters, function, [plain("a")], 9
    )


def test_items_are_found_by_their_words():
    """As docling writes this text: marks off, a table by rows, headings apart."""
    chunks = [
        (("Servers",), "The server failed at noon . Was the disk full? It was."),
        (("Servers",), "- one item\n- another [link](http://x.y/)"),
        (("Servers",), "1, b = two. 3, b = four"),
        (
            ("Servers", "Bees"),
            "Bees make honey in `summer` . They sleep in winter, close together.",
        ),
        (("Servers", "Bees"), "```\n# no heading\ndef f(): return 1\n```"),
        (("Servers", "Bees"), "The queen stays warm."),
    ]
    found = [MARKDOWN[a:b] for a, b in locate_items(MARKDOWN, chunks)]
    starts = ["# Servers", "- one", "| a | b |", "## Bees", "```python", "The queen"]
    assert [each[: len(start)] for each, start in zip(found, starts, strict=True)] == starts
    assert "".join("".join(found).split()) == "".join(MARKDOWN.split())
    said = refusal(locate_items, MARKDOWN, [((), "Wholly otherwise")])
    assert "chunk 1, 'Wholly otherwise', which does not occur" in said


@pytest.mark.parametrize(
    "chunker", [LlamaIndexSentence(24, 8), LlamaIndexSentence(24, 0), LlamaIndexToken(24, 8)]
)
def test_llamaindex_cuts(chunker):
    parsers = pytest.importorskip(
        "llama_index.core.node_parser", reason="needs pip install 'reffree[llamaindex]'"
    )
    own = getattr(parsers, chunker.splitter)(
        chunk_size=chunker.chunk_size, chunk_overlap=chunker.chunk_overlap
    ).split_text(MARKDOWN)
    spans = chunker(MARKDOWN)
    assert ["".join(MARKDOWN[a:b].split()) for a, b in spans] == ["".join(c.split()) for c in own]
    assert any(a[1] > b[0] for a, b in pairwise(spans)) == bool(chunker.chunk_overlap)
    # It adds up the tokens of words, which may be fewer than those of the whole.
    assert max(chunker.size(MARKDOWN[a:b]) for a, b in spans) <= 24 + 2
    assert snap(spans, unit_spans(MARKDOWN))[1].outside == 0
    defaults = getattr(parsers, chunker.splitter).model_fields
    for option in ("chunk_size", "chunk_overlap"):
        assert getattr(type(chunker)(), option) == defaults[option].default


@pytest.mark.parametrize("chunker", [DoclingHierarchical(), DoclingHybrid(12)])
def test_docling_cuts(chunker):
    pytest.importorskip("docling.document_converter", reason="needs pip install 'reffree[docling]'")
    spans = chunker(MARKDOWN)
    assert "".join("".join(MARKDOWN[a:b] for a, b in spans).split()) == "".join(MARKDOWN.split())
    starts = [MARKDOWN[a:].split()[0] for a, _ in spans]
    assert {"#", "-", "##"} <= set(starts)
    if isinstance(chunker, DoclingHierarchical):
        assert starts == ["#", "-", "|", "##", "```python", "The"]
        row = measure_chunks(chunker, [MARKDOWN], [spans], [parts(MARKDOWN)])
        assert {row[f"{kind}_cut"] for kind in KINDS} == {0}
