"""Sizes of chunks, what they cut apart, equal sizes, and chunkers of LlamaIndex and docling."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reffree
from reffree.chunkers.chunked import PlainText, chunked, sentences
from reffree.chunkers.equal_size import characters_a_chunk, with_size
from reffree.chunkers.libraries import ChonkieToken, LangChainRecursive
from reffree.chunkers.node_parsers import (
    DoclingHierarchical,
    DoclingHybrid,
    LlamaIndexSentence,
    LlamaIndexToken,
    locate_items,
)
from reffree.chunkers.registry import FunctionChunker, find_chunker
from reffree.chunkers.sizes import ChunkSizes, n_cut, parts_of, percentile
from reffree.chunkers.snap import snap
from reffree.data.corpus import Corpus, Document
from reffree.util.errors import InputError, OptionError, Place
from tests.helpers import invoke, refusal

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
SCHEMA = Path(reffree.__file__).parent / "report" / "score.schema.json"


def plain(text, id="a"):
    return PlainText(id, text, Place(file=f"{id}.txt"))


# Parts


def test_parts_of_markdown():
    parts = {kind: [MARKDOWN[a:b] for a, b in found] for kind, found in parts_of(MARKDOWN).items()}
    assert parts["headings"] == ["# Servers\n\nT", "## Bees\n\nB"]
    assert parts["tables"] == ["| a | b |\n|---|:-:|\n| 1 | two |\n| 3 | four |"]
    assert [fence[:9] + fence[-4:] for fence in parts["fences"]] == ["```python\n```"]


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", (0, 0, 0)),
        ("no | table\n\n#hashtag\n", (0, 0, 0)),
        ("# alone", (0, 0, 0)),  # nothing is below it
        ("a | b\n--|--\n1 | 2", (0, 1, 0)),
        ("~~~\n```\n~~~\nx\n```\nnever closed", (2, 0, 0)),
        ("````\n```\n````", (1, 0, 0)),
        ("# One\n# Two\nx", (0, 0, 2)),
    ],
)
def test_parts_that_are_and_are_not(text, counts):
    assert tuple(len(parts_of(text)[kind]) for kind in ("fences", "tables", "headings")) == counts


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=6),
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=6),
)
def test_a_part_is_cut_that_no_chunk_holds(chunks, parts):
    spans = [(a, a + n) for a, n in chunks]
    held = [set(range(*span)) for span in spans]
    wanted = [(a, a + n) for a, n in parts]
    expected = [p for p in wanted if not any(set(range(*p)) <= each for each in held)]
    assert n_cut(spans, wanted) == len(expected)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.sampled_from([50, 95]))
def test_percentiles_are_sizes(sizes, percent):
    found = percentile(sizes, percent)
    assert found == np.percentile(sizes, percent, method="inverted_cdf")


def test_sizes_of_all_texts_together():
    chunker = ChonkieToken(chunk_size=10)
    texts = ["x" * 25, "y" * 20 + "\n\n# h\n\nz"]
    reports = [ChunkSizes.of(chunker, text, chunker(text)) for text in texts]
    both = reports[0] + reports[1]
    assert both.characters == (10, 10, 5, 10, 10, *reports[1].characters[2:])
    assert both.share_at_cap == pytest.approx(4 / len(both.characters))
    assert both.parts["headings"] == 1
    function = FunctionChunker("mine", lambda text: [text])
    assert ChunkSizes.of(function, "One.", [(0, 4)]).share_at_cap is None


# Equal sizes


@pytest.mark.parametrize("spec", ["langchain-recursive", "chonkie-token", "chonkie-sentence"])
def test_chunkers_of_equal_size(spec):
    rng = np.random.default_rng(0)
    words = ["lamp", "honey", "disk", "budget"]
    text = " ".join(" ".join(rng.choice(words, 8)).capitalize() + "." for _ in range(60))
    made = with_size(find_chunker(spec), [plain(text)], 200)
    assert characters_a_chunk(made, [plain(text)]) == pytest.approx(200, rel=0.15)
    overlapping = with_size(LangChainRecursive(chunk_overlap=50), [plain(text)], 200)
    assert overlapping.chunk_overlap == 50
    assert characters_a_chunk(overlapping, [plain(text)]) == pytest.approx(200, rel=0.15)


def test_no_size_to_choose():
    function = FunctionChunker("mine:cut", str.split)
    assert "mine:cut, which has no size to choose" in refusal(with_size, function, [plain("a")], 9)


# The command


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text(MARKDOWN)
    n = len(sentences(MARKDOWN.rstrip("\n")))
    np.savez(tmp_path / "v.npz", a=np.random.default_rng(0).normal(size=(n, 4)))
    return tmp_path


def command(*arguments):
    done = invoke("chunkers", *arguments, "-m", "arp_pair")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_sizes_are_a_table_of_their_own(files):
    arguments = ("a.md", "--embeddings", "v.npz", "--chunker", "chonkie-token:chunk_size=120")
    arguments += ("--chunker", "langchain-recursive:chunk_size=120,chunk_overlap=40")
    made = json.loads(command(*arguments, "-f", "json").stdout)
    jsonschema.validate(made, json.loads(SCHEMA.read_text()))
    token = made["chunkers"][0]
    assert token["characters_max"] == token["characters_p50"] == 120
    assert token["tokens_p50"] is None  # no encoder counts
    assert (token["fences"], token["tables"], token["headings"]) == (1, 1, 2)
    assert token["fences_cut"] == 1
    notes = "\n".join(made["notes"])
    assert re.search(r"recursive.*chunk starts? lay inside the chunk before", notes)
    text = command(*arguments).stdout
    assert "tables cut" in text
    assert " of 2" in text


def test_tokens_are_those_of_the_encoder(files):
    made = json.loads(command("a.md", "--chunker", "chonkie-token", "-f", "json").stdout)
    from transformers import AutoTokenizer

    from reffree.encoders.models import find_model

    (row,) = made["chunkers"]
    tokenizer = AutoTokenizer.from_pretrained(find_model("minilm").path)
    assert row["tokens_max"] == len(tokenizer(MARKDOWN.strip())["input_ids"])


def test_a_corpus_is_no_prose(files):
    corpus = Corpus(
        tuple(
            Document.build(f"d{i}", ["One here.", "Two  there.", "Three."], gold=[2, 1])
            for i in "ab"
        )
    )
    reffree.save(corpus, files / "c.jsonl")
    np.savez(files / "w.npz", da=np.eye(3), db=np.eye(3))
    arguments = ("--chunker", "langchain-recursive:chunk_size=22", "--embeddings", "w.npz")
    done = command("c.jsonl", *arguments, "-m", "pk", "-f", "json", "--save", "s.jsonl")
    made = json.loads(done.stdout)
    assert made["corpus"]["units"] == 6
    assert [row["system"] for row in made["systems"]] == [
        "gold",
        "langchain-recursive:chunk_size=22",
    ]
    assert "|sentences:given|" in made["signature"]
    saved = reffree.load(files / "s.jsonl")
    assert saved[0].units == corpus[0].units
    assert saved[0].systems["langchain-recursive:chunk_size=22"].masses == (2, 1)


def test_json_under_another_name_is_refused(files):
    (files / "c.txt").write_text('{"id": "a", "units": ["One.", "Two."]}\n')
    with pytest.raises(InputError, match=r"c.txt: found JSON, one object a line; expected plain"):
        command("c.txt", "--chunker", "chonkie-token")
    (files / "code.txt").write_text("{ braces } are fine. So is this.\n")
    np.savez(files / "x.npz", code=np.eye(2))
    assert command("code.txt", "--chunker", "chonkie-token", "--embeddings", "x.npz").exit_code == 0


# Tuning


def planted(n_topics=14, seed=0):
    """Text whose every topic is a paragraph of 380 to 400 characters, and vectors by topic."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("bcdfgklmnprstv"))
    paragraphs, vectors = [], []
    for _ in range(n_topics):
        words = [
            "".join(f"{c}{v}" for c, v in zip(rng.choice(letters, 3), "aei", strict=True))
            for _ in range(6)
        ]
        lines: list[str] = []
        while len(" ".join(lines)) < 380:
            room = 392 - len(" ".join(lines))
            n = 8 if room > 75 else max(1, room // 7)
            lines.append(" ".join(rng.choice(words, n)).capitalize() + ".")
        paragraphs.append(" ".join(lines))
        centre = rng.normal(size=24)
        vectors += [centre + 0.4 * rng.normal(size=24) for _ in lines]
    text = "\n\n".join(paragraphs)
    assert all(300 < len(p) <= 400 for p in paragraphs)
    return text, np.array(vectors)


def tune(*arguments):
    done = invoke("tune", *arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_the_planted_size_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vectors = {}
    for i in range(3):
        text, vectors[f"t{i}"] = planted(seed=i)
        (tmp_path / f"t{i}.txt").write_text(text)
        assert len(sentences(text)) == len(vectors[f"t{i}"])
    np.savez(tmp_path / "v.npz", **vectors)
    files = ("t0.txt", "t1.txt", "t2.txt", "--embeddings", "v.npz")
    values = ("--values", "chunk_size=100,200,400,800,1600,3200")
    done = tune(*files, "--chunker", "langchain:recursive", *values, "-o", "tuned.json")
    assert done.exit_code == 0
    made = json.loads((tmp_path / "tuned.json").read_text())
    assert made["command"] == "tune"
    assert made["settings"]["best"] == "langchain-recursive:chunk_size=400"
    (curve,) = made["tables"]
    names = [field["name"] for field in curve["fields"]]
    rows = [dict(zip(names, row, strict=True)) for row in curve["rows"]]
    assert len(rows) == 6
    found = {row["setting"]: row["value"] for row in rows}
    assert found[made["settings"]["best"]] == min(found.values())
    sizes = [row["size"] for row in rows]
    assert sizes == sorted(sizes)
    from reffree.evaluate.result import load_result
    from reffree.report.charts import charts_of

    (chart,) = charts_of(load_result(tmp_path / "tuned.json"))
    assert len(chart.rows) == 6


def test_tune_by_default_tries_sizes_and_leaves_out_what_cuts_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, vectors = planted(4)
    (tmp_path / "t.txt").write_text(text)
    np.savez(tmp_path / "v.npz", t=vectors)
    done = tune("t.txt", "--embeddings", "v.npz", "--chunker", "langchain:recursive", "--length", 6)
    assert "langchain-recursive:chunk_size=600 cuts the texts as" in " ".join(done.stdout.split())
    assert "expected_pk(length=6" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (["--values", "chunk_size"], SystemExit, "expected OPTION=V,V,…"),
        (["--values", "chunk_size=1,,2"], SystemExit, "expected OPTION=V,V,…"),
        (["--values", "chunk_size=1", "--values", "chunk_size=2"], SystemExit, "twice"),
        (["--values", "size=1,2"], OptionError, "the option 'size=1' of langchain-recursive"),
        (["--values", "chunk_size=0"], OptionError, "chunk_size = 0"),
    ],
)
def test_values_that_are_none(tmp_path, monkeypatch, arguments, error, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("One. Two. Three.")
    done = invoke("tune", "t.txt", "--chunker", "langchain:recursive", *arguments)
    assert isinstance(done.exception, error)
    assert said in (done.output if error is SystemExit else str(done.exception))


def test_functions_and_texts_too_short_are_not_tuned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("One. Two.")
    np.savez(tmp_path / "v.npz", t=np.eye(2))
    with pytest.raises(OptionError, match="a function; expected a chunker with options"):
        tune("t.txt", "--chunker", "os.path:split")
    with pytest.raises(InputError, match="no setting with a defined expected_pk"):
        tune("t.txt", "--chunker", "chonkie-token", "--embeddings", "v.npz")


# LlamaIndex and docling


def test_the_extras_are_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "llama_index.core.utils", None)
    monkeypatch.setitem(sys.modules, "docling.document_converter", None)
    for chunker, extra in ((LlamaIndexSentence(), "llamaindex"), (DoclingHybrid(), "docling")):
        said = refusal(chunked, [plain("One. Two.")], [chunker])
        assert f"install it with pip install 'reffree[{extra}]'" in said


def test_names_of_libraries_and_their_classes():
    assert find_chunker("llamaindex") == LlamaIndexSentence()
    assert find_chunker("llamaindex:TokenTextSplitter,chunk_size=64") == LlamaIndexToken(64)
    assert find_chunker("docling") == DoclingHybrid()
    assert find_chunker("docling:hierarchical") == DoclingHierarchical()
    with pytest.raises(OptionError, match="chunk_overlap=200"):
        find_chunker("llamaindex:sentence,chunk_size=100")


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
    assert snap(spans, sentences(MARKDOWN))[1].outside == 0
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
        sizes = ChunkSizes.of(chunker, MARKDOWN, spans)
        assert set(sizes.cut.values()) == {0}
