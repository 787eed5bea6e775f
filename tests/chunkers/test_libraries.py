"""Chunkers of real libraries and of the user, by name, held against the libraries themselves."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from itertools import pairwise

import chonkie
import langchain_text_splitters
import numpy as np
import pytest
import semantic_text_splitter
from hypothesis import assume, given
from hypothesis import strategies as st

from reffree.chunkers.libraries import (
    ChonkieRecursive,
    ChonkieSemantic,
    ChonkieSentence,
    ChonkieToken,
    DoclingHybrid,
    LangChainCharacter,
    LangChainRecursive,
    LlamaIndexSentence,
    LlamaIndexToken,
    SemanticTextSplitter,
)
from reffree.chunkers.registry import CHUNKERS, FunctionChunker, find_chunker
from reffree.chunkers.spans import snap
from reffree.util.errors import OptionError, UnknownNameError
from reffree.util.naming import settings_of, spelling_of
from tests.chunkers.texts import AWKWARD, PROSE, cut, odd_texts, plain, squeezed, unit_spans
from tests.helpers import refusal
from tests.properties import examples


def embed(texts):
    """Vectors that differ from text to text, without a model."""
    return np.array(
        [[1, len(text), text.count("e"), text.count("t")] for text in texts], dtype=np.float32
    )


LIGHT = [kind for name, kind in CHUNKERS.items() if not name.startswith(("llamaindex", "docling"))]
LIBRARY_CHUNKERS = [
    *(kind(chunk_size=size) for kind in LIGHT for size in (1, 20, 60)),
    *(LangChainCharacter(chunk_size=20, separator=each) for each in ("line", "space")),
    *(kind(chunk_size=3, tokenizer="word") for kind in (ChonkieToken, ChonkieRecursive)),
    ChonkieSentence(chunk_size=4, tokenizer="word"),
    ChonkieSentence(chunk_size=20, min_sentences_per_chunk=2, min_characters_per_sentence=1),
    ChonkieRecursive(chunk_size=9, min_characters_per_chunk=1),
    ChonkieSemantic(threshold=0.3, similarity_window=1, min_characters_per_sentence=1),
]
LIBRARY_CHUNKERS = [
    replace(each, embed=embed) if isinstance(each, ChonkieSemantic) else each
    for each in LIBRARY_CHUNKERS
]


@pytest.mark.parametrize("chunker", LIBRARY_CHUNKERS, ids=spelling_of)
def test_libraries_cut_awkward_texts(chunker):
    for name, text in AWKWARD.items():
        spans = chunker(text)
        assert squeezed("".join(text[a:b] for a, b in spans)) == squeezed(text), name
        segmentation, report = snap(spans, unit_spans(text))
        assert segmentation.n_units == len(unit_spans(text)), name
        assert report.outside == 0, name


@given(odd_texts, st.sampled_from(LIBRARY_CHUNKERS))
@examples(300)
def test_libraries_cut_odd_texts(text, chunker):
    assume(text.strip())
    spans = chunker(text)
    assert squeezed("".join(text[a:b] for a, b in spans)) == squeezed(text)
    assert snap(spans, unit_spans(text))[0].n_units == len(unit_spans(text))


def langchain(kind, **options):
    splitter = getattr(langchain_text_splitters, kind)(chunk_overlap=0, **options)
    return splitter.split_text(PROSE)


def of_chonkie(kind, size):
    return [chunk.text for chunk in getattr(chonkie, kind)(chunk_size=size).chunk(PROSE)]


@pytest.mark.parametrize(
    ("chunker", "chunks"),
    [
        (LangChainRecursive(60), langchain("RecursiveCharacterTextSplitter", chunk_size=60)),
        (LangChainCharacter(90), langchain("CharacterTextSplitter", chunk_size=90)),
        (
            LangChainCharacter(30, separator="space"),
            langchain("CharacterTextSplitter", chunk_size=30, separator=" "),
        ),
        (ChonkieToken(50), of_chonkie("TokenChunker", 50)),
        (ChonkieSentence(70), of_chonkie("SentenceChunker", 70)),
        (ChonkieRecursive(70), of_chonkie("RecursiveChunker", 70)),
        (SemanticTextSplitter(70), semantic_text_splitter.TextSplitter(70).chunks(PROSE)),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_chunks_are_the_libraries_own(chunker, chunks):
    assert len(chunks) > 2
    assert [squeezed(PROSE[a:b]) for a, b in chunker(PROSE)] == [squeezed(c) for c in chunks]


@pytest.mark.parametrize("kind", [LangChainRecursive, LangChainCharacter])
def test_langchain_defaults_but_for_the_overlap(kind):
    own = getattr(langchain_text_splitters, kind.splitter)()
    assert (kind().chunk_size, kind().chunk_overlap) == (own._chunk_size, 0)
    assert "chunk_overlap is 0 here, 200 in LangChain" in kind().remark
    assert own._chunk_overlap == 200
    assert "chunk_overlap" not in (kind(chunk_overlap=10).remark or "")


class Embeddings(chonkie.BaseEmbeddings):
    """What chonkie asks of a model, for `embed`."""

    dimension = 4

    def embed(self, text):
        return embed([text])[0]

    def get_tokenizer(self):
        return "character"


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (ChonkieToken, chonkie.TokenChunker()),
        (ChonkieSentence, chonkie.SentenceChunker()),
        (ChonkieRecursive, chonkie.RecursiveChunker()),
        (ChonkieSemantic, chonkie.SemanticChunker(Embeddings())),
    ],
)
def test_chonkie_defaults(kind, own):
    options = settings_of(kind())
    assert options.pop("tokenizer", "character") == "character"
    assert "CharacterTokenizer" in repr(own.tokenizer.tokenizer)
    assert options == {option: getattr(own, option) for option in options}


@pytest.mark.parametrize("size", [60, 90])
@pytest.mark.parametrize("text", [PROSE, PROSE * 7, "Same again. " * 40], ids=["once", "7", "same"])
def test_langchain_overlaps_lie_where_it_says(text, size):
    own = langchain_text_splitters.RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=30, add_start_index=True
    )
    starts = [each.metadata["start_index"] for each in own.create_documents([text])]
    spans = LangChainRecursive(chunk_size=size, chunk_overlap=30)(text)
    assert [start for start, _ in spans] == starts
    assert size > 60 or any(a[1] > b[0] for a, b in pairwise(spans))


def test_long_chunks_of_langchain_are_not_logged(caplog):
    with caplog.at_level(logging.WARNING):
        spans = LangChainCharacter(chunk_size=10)(PROSE)
    assert max(b - a for a, b in spans) > 10
    assert not caplog.records
    assert "longer than chunk_size" in LangChainCharacter().remark


def test_indices_of_chonkie_drift_but_ours_do_not():
    text = "one two three four five six seven eight"
    chunks = chonkie.TokenChunker(tokenizer="word", chunk_size=2).chunk(text)
    assert text[chunks[3].start_index : chunks[3].end_index] != chunks[3].text == "seven eight"
    spans = ChonkieToken(chunk_size=2, tokenizer="word")(text)
    assert [text[a:b] for a, b in spans] == ["one two", "three four", "five six", "seven eight"]


def test_semantic_chunks_are_cut_by_the_given_vectors():
    text = PROSE * 5
    own = chonkie.SemanticChunker(Embeddings()).chunk(text)
    chunks = [text[a:b] for a, b in ChonkieSemantic(embed=embed)(text)]
    assert [squeezed(chunk) for chunk in chunks] == [squeezed(chunk.text) for chunk in own]
    assert len(chunks) > 2
    assert "chonkie-semantic without an encoder" in refusal(ChonkieSemantic(), text)


@pytest.mark.parametrize(
    ("module", "package", "chunker"),
    [
        ("langchain_text_splitters", "langchain-text-splitters", LangChainRecursive()),
        ("chonkie", "chonkie", ChonkieToken()),
        ("semantic_text_splitter", "semantic-text-splitter", SemanticTextSplitter()),
        ("llama_index.core.utils", "reffree[llamaindex]", LlamaIndexSentence()),
        ("docling.document_converter", "reffree[docling]", DoclingHybrid()),
        ("sentencex", "sentencex", ChonkieToken()),
    ],
)
def test_a_missing_library_is_named_with_its_command(monkeypatch, module, package, chunker):
    monkeypatch.setitem(sys.modules, module, None)
    said = refusal(cut, [plain(PROSE)], [chunker])
    assert "pip install " in said
    assert package in said
    user = "reffree chunks" if module == "sentencex" else chunker.name
    assert f"{user} needs it" in said


def test_names_are_read_back():
    for chunker in LIBRARY_CHUNKERS:
        assert find_chunker(spelling_of(chunker)) == chunker
    assert find_chunker("chonkie-token") == ChonkieToken()


@pytest.mark.parametrize(
    ("spec", "chunker"),
    [
        ("langchain", LangChainRecursive()),
        ("langchain:chunk_size=500", LangChainRecursive(500)),
        ("langchain:RecursiveCharacterTextSplitter,chunk_size=500", LangChainRecursive(500)),
        ("langchain-recursive:chunk_size=500", LangChainRecursive(500)),
        ("chonkie", ChonkieRecursive()),
        ("chonkie:token", ChonkieToken()),
        ("llamaindex", LlamaIndexSentence()),
        ("llamaindex:TokenTextSplitter,chunk_size=64", LlamaIndexToken(64)),
        ("docling:hybrid,max_tokens=12", DoclingHybrid(12)),
    ],
)
def test_a_library_and_its_splitter(spec, chunker):
    assert find_chunker(spec) == chunker


@pytest.mark.parametrize(
    ("spec", "error", "part"),
    [
        (
            "langchain:recursiv",
            UnknownNameError,
            "unknown chunker 'langchain-recursiv'; did you mean 'langchain-recursive'",
        ),
        ("semantic-text-spliter", UnknownNameError, "did you mean 'semantic-text-splitter'"),
        ("chonkie-token:size=5", OptionError, "chunk_size=INTEGER"),
        ("chonkie-token:chunk_size=big", OptionError, "chunk_size=INTEGER"),
        ("chonkie-token:chunk_size=0", OptionError, "a whole number, 1 or more"),
        ("chonkie-token:tokenizer=gpt2", OptionError, "tokenizer=character or tokenizer=word"),
        ("chonkie-semantic:embed=x", OptionError, "the option 'embed=x'"),
        ("chonkie-semantic:threshold=1", OptionError, "between 0 and 1"),
        ("chonkie-recursive:min_characters_per_chunk=0", OptionError, "1 or more"),
        ("langchain-recursive:chunk_overlap=-1", OptionError, "0 or more"),
        ("langchain-recursive:chunk_size=9,chunk_overlap=10", OptionError, "at most chunk_size, 9"),
        ("llamaindex:sentence,chunk_size=100", OptionError, "chunk_overlap=200"),
        ("langchain-character:separator=x", OptionError, "separator=paragraph or separator=line"),
        ("no_such_module_here:cut", OptionError, "no module 'no_such_module_here'"),
        ("textwrap:no_such_function", OptionError, "no 'no_such_function' in"),
        ("string:digits", OptionError, "'0123456789'"[1:-1]),
    ],
)
def test_wrong_names_get_a_sentence(spec, error, part):
    with pytest.raises(error) as caught:
        find_chunker(spec)
    assert part in str(caught.value)


def test_functions_of_any_module(tmp_path, monkeypatch):
    (tmp_path / "mine_one.py").write_text(
        "class Cutter:\n"
        "    def cut(self, text):\n"
        "        yield from text.split('\\n\\n')\n"
        "cutter = Cutter()\n"
        "def spans(text):\n"
        "    return [(0, 26), (26, len(text))]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    strings, spans = find_chunker("mine_one:cutter.cut"), find_chunker("mine_one:spans")
    corpus, reports = cut([plain(PROSE)], [strings, spans])
    assert corpus[0].systems["mine_one:cutter.cut"].masses == (4, 3, 3)
    assert corpus[0].systems["mine_one:spans"].masses == (1, 9)
    assert reports["mine_one:spans"].snap.moved == 0


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("raise ValueError('two\\nlines')", "ValueError (two lines) on importing"),
        ("import surely_not_installed", "ModuleNotFoundError (No module named 'surely_not_inst"),
        ("import sys; sys.exit(3)", "SystemExit (3) on importing"),
        ("def cut(", "SyntaxError"),
    ],
)
def test_modules_that_cannot_be_imported(tmp_path, monkeypatch, source, part):
    name = f"broken_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    said = refusal(find_chunker, f"{name}:cut")
    assert part in said
    assert f"python -c 'import {name}'" in said


def fails(text):
    raise KeyError("colour")


def fails_later(text):
    yield text[:5]
    raise RuntimeError


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (fails, "KeyError ('colour') from the chunker"),
        (fails_later, "RuntimeError from the chunker"),
        (lambda text: [], "no chunks with text"),
        (lambda text: text, "str from the chunker"),
        (lambda text: [text.upper()], "chunk 1, 'THE SERVER"),
        (lambda text: [text, text], "chunk 2, 'The server"),
        (lambda text: [(27, 60), (0, 30)], "chunk 2, which starts at character 0"),
        (lambda: [], "TypeError"),
    ],
)
def test_failing_functions_are_told_with_their_place(function, part):
    said = refusal(cut, [plain(PROSE)], [FunctionChunker("mine:cut", function)])
    assert "a.txt, system 'mine:cut', document 'a': found " in said
    assert part in said


def test_no_text_is_refused():
    said = refusal(cut, [plain(" \n")], [])
    assert "a.txt" in said
    assert "no units" in said
