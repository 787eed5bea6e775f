"""Chunkers of real libraries and of the user, snapped to sentences and scored."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import chonkie
import jsonschema
import langchain_text_splitters
import numpy as np
import pytest
import semantic_text_splitter
from click.testing import CliRunner
from hypothesis import assume, given
from hypothesis import strategies as st

import reffree
from reffree.chunkers.chunked import PlainText, chunked, sentences
from reffree.chunkers.libraries import (
    ChonkieRecursive,
    ChonkieSemantic,
    ChonkieSentence,
    ChonkieToken,
    LangChainCharacter,
    LangChainRecursive,
    SemanticTextSplitter,
)
from reffree.chunkers.registry import CHUNKERS, FunctionChunker, find_chunker
from reffree.chunkers.snap import SnapReport, snap
from reffree.chunkers.spans import locate, spans_of, trimmed
from reffree.cli.chunkers import command
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncodedTexts, EncoderSpec
from reffree.formats import load
from reffree.util.errors import InputError, OptionError, Place, UnknownNameError
from reffree.util.naming import settings_of, spelling_of
from tests.properties import examples

PROSE = (
    "The server failed at noon. Dr. Smith restarted it twice! Was the disk full? It was.\n\n"
    "Bees make honey in summer. They sleep in winter,\nclose together. The queen stays warm.\n\n"
    "Our budget is small. We sell two lamps. The rest must wait until spring comes again."
)
AWKWARD = {
    "one sentence": "Only one sentence here.",
    "one character": "x",
    "no final stop": "One here. Two there",
    "windows line ends": "One here.\r\nTwo there.\r\n\r\nThree now.\r\n",
    "old Mac line ends": "One here.\rTwo there.\r\rThree now.",
    "emoji and combining": "Cafe\u0301 is nice. 👩‍👩‍👧 family! 🎉 Party. naïve e\u0301e\u0301. End",
    "repeated": "Same again. " * 40,
    "no spaces": "中文句子。第二句！第三句？" * 10,
    "one long word": "a" * 500,
    "rare whitespace": "Vitamin B\xa0. And\u2003C\u2028. Next\u3000one.\x0bLast\x1fone. K\u2009. Z",
    "leading and trailing": "\n\n  \t First one. Second one.  \n\n\n\n\n Third one. \n\n",
    "zero width": "\ufeffOne\u200bhere. Two\x00there. Three.",
    "only punctuation": "... !!! ??? … . . .",
    "prose": PROSE,
}
ODD = [
    "a",
    "B",
    "word ",
    "Dr. ",
    ". ",
    "! ",
    "。",
    "\n",
    "\n\n",
    "\n\n\n\n",
    "\r\n",
    "\t",
    " ",
    "\xa0",
]
ODD += [
    "\u2028",
    "\x85",
    "e\u0301",
    "👩‍👧",
    '"',
    "”",
    "(",
    "1.",
    "U.S.",
    "...",
    "\x1c",
    "\u200b",
    "İ",
]
odd_texts = st.lists(st.sampled_from(ODD), min_size=1, max_size=40).map("".join)
REPORT_SCHEMA = Path(reffree.__file__).parent / "report" / "score.schema.json"


def embed(texts):
    """Vectors that differ from text to text, without a model."""
    return np.array(
        [[1, len(text), text.count("e"), text.count("t")] for text in texts], dtype=np.float32
    )


LIGHT = [kind for kind in CHUNKERS.values() if kind.__module__.endswith(".libraries")]
LIBRARY_CHUNKERS = [
    *(kind(chunk_size=size) for kind in LIGHT for size in (1, 20, 60)),
    LangChainCharacter(chunk_size=20, separator="line"),
    LangChainCharacter(chunk_size=20, separator="space"),
    ChonkieToken(chunk_size=3, tokenizer="word"),
    ChonkieSentence(chunk_size=4, tokenizer="word"),
    ChonkieSentence(chunk_size=20, min_sentences_per_chunk=2, min_characters_per_sentence=1),
    ChonkieRecursive(chunk_size=3, tokenizer="word"),
    ChonkieRecursive(chunk_size=9, min_characters_per_chunk=1),
    ChonkieSemantic(threshold=0.3, similarity_window=1, min_characters_per_sentence=1),
]
LIBRARY_CHUNKERS = [
    replace(chunker, embed=embed) if isinstance(chunker, ChonkieSemantic) else chunker
    for chunker in LIBRARY_CHUNKERS
]


def squeezed(text):
    return "".join(text.split())


def refused(action, *parts):
    with pytest.raises(InputError) as caught:
        action()
    for part in parts:
        assert part in str(caught.value)


# Sentences


def test_sentences_are_split_at_their_ends_only():
    found = [PROSE[a:b] for a, b in sentences(PROSE)]
    assert found[:4] == [
        "The server failed at noon.",
        "Dr. Smith restarted it twice!",
        "Was the disk full?",
        "It was.",
    ]
    assert found[5] == "They sleep in winter,\nclose together."
    assert len(found) == 10


@pytest.mark.parametrize("text", ["", " \n\t ", "\n\n"])
def test_nothing_has_no_sentences(text):
    assert sentences(text) == []


def test_abbreviations_are_those_of_the_language():
    text = "Am 3. Mai kam er. Gut."
    assert [text[a:b] for a, b in sentences(text, "de")] == ["Am 3. Mai kam er.", "Gut."]
    assert len(sentences(text, "en")) == 3


@given(odd_texts)
@examples(300)
def test_sentences_hold_all_text_once_and_in_order(text):
    spans = sentences(text)
    assert squeezed("".join(text[a:b] for a, b in spans)) == squeezed(text)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert all(text[a:b] == text[a:b].strip() != "" for a, b in spans)


# Chunks as strings and as spans


@st.composite
def cut_texts(draw):
    """A text, the spans it was cut at, and the pieces with their whitespace changed."""
    text = draw(st.text(alphabet="ab. \n", min_size=1, max_size=40))
    places = sorted(draw(st.sets(st.integers(0, len(text)))) | {0, len(text)})
    spans = list(pairwise(places))
    pieces = []
    for start, end in spans:
        words = text[start:end].split()
        space = draw(st.sampled_from(["", " ", "\n\n", "\t "]))
        edge = draw(st.sampled_from(["", " ", "\n"]))
        pieces.append(edge + space.join(words) + edge)
    return text, spans, pieces


@given(cut_texts())
@examples(300)
def test_chunks_are_found_whatever_happened_to_their_whitespace(cut):
    text, spans, pieces = cut
    expected = trimmed(text, spans)
    assert locate(text, pieces) == expected
    assert spans_of(text, iter(pieces)) == expected
    assert spans_of(text, (span for span in spans)) == expected


def test_text_may_be_missing_between_chunks():
    text = "One. Two. -- Three. Four."
    assert locate(text, ["One.", "Three."]) == [(0, 4), (13, 19)]
    # A short chunk that also ends the one before is not taken for an overlap.
    assert locate("he said so. so", ["he said so", "so"]) == [(0, 10), (12, 14)]


@pytest.mark.parametrize(
    ("text", "chunks", "spans"),
    [
        ("One. Two. Three.", ["One. Two.", "Two. Three."], [(0, 9), (5, 16)]),
        ("One. Two.\n\nThree.", ["One. Two.", "Two. Three."], [(0, 9), (5, 17)]),
        # What follows immediately is no overlap, though it could be one.
        ("ab ab ab", ["ab", "ab", "ab"], [(0, 2), (3, 5), (6, 8)]),
    ],
)
def test_overlapping_chunks_are_found(text, chunks, spans):
    assert locate(text, chunks) == spans


@pytest.mark.parametrize(
    ("text", "chunks", "said"),
    [
        ("One. Two. Three.", ["One.", "One.", "Two. Three."], "stands only before or inside"),
        ("One. Two. Three.", ["Two. Three.", "One."], "stands only before or inside"),
        ("One. Two. Three.", ["One. Two.", "Two."], "stands only before or inside"),
        # The second chunk stands both in an overlap and behind a gap.
        ("ab ab cd. x ab cd.", ["ab ab", "ab cd."], "which stands at several places behind"),
    ],
)
def test_unordered_and_unclear_chunks_are_refused(text, chunks, said):
    refused(lambda: locate(text, chunks), f"chunk 2, {chunks[1]!r}, which", said)


def test_what_a_library_may_share_says_where_a_chunk_stands():
    text = "ab ab ab ab cd"
    chunks = ["ab ab", "ab ab", "ab cd"]
    assert locate(text, chunks, lambda shared: False) == [(0, 5), (6, 11), (9, 14)]
    one = [(0, 5), (3, 8), (9, 14)]
    assert locate(text, chunks, lambda shared: len(shared) <= 2) == one


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5)), min_size=1, max_size=8), st.data())
def test_overlapping_chunks_are_found_wherever_they_are(steps, data):
    """Words that occur once: of every chunk there is one place, shared or lost text or not."""
    words = [f"w{i:02d}" for i in range(60)]
    text = data.draw(st.sampled_from([" ", "\n\n", " \t"])).join(words)
    starts = np.cumsum([0, *(step for step, _ in steps)])
    spans, reached = [], 0
    for start, (_, more) in zip(starts.tolist(), steps, strict=False):
        end = max(start + 1 + more, reached + 1)  # each goes on behind all before it
        spans.append((text.index(words[start]), text.index(words[end - 1]) + len(words[end - 1])))
        reached = end
    chunks = [" ".join(text[a:b].split()) for a, b in spans]
    assert locate(text, chunks) == spans
    for may_share in (lambda shared: True, lambda shared: False):
        assert locate(text, chunks, may_share) == spans


def test_changed_chunks_are_named():
    refused(
        lambda: locate("One. Two. THREE.", ["One.", "Two.", "three."]),
        "chunk 3, 'three.', which does not occur in the text",
        "keep the chunker from changing characters",
    )


@pytest.mark.parametrize(
    ("returned", "part"),
    [
        (None, "NoneType from the chunker"),
        ("One.", "str from the chunker"),
        ([1, 2], "chunk 1, 1 (int)"),
        ([("a", "b")], "chunk 1, ('a', 'b') (tuple)"),
        ([(0, 4, 5)], "chunk 1, (0, 4, 5) (tuple)"),
        ([(0, 4), "Two."], "chunk 2, Two. (str)"),
        ([(0.0, 4.0)], "(0.0, 4.0)"),
        ([b"One."], "(bytes)"),
        ([(0, 5), (5, 90)], "chunk 2 from character 5 to 90"),
        ([(-3, 5)], "chunk 1 from character -3 to 5"),
        ([(5, 3)], "chunk 1 from character 5 to 3"),
    ],
)
def test_what_is_neither_chunks_nor_spans_is_refused(returned, part):
    refused(lambda: spans_of("One. Two.", returned), part)


def test_spans_may_be_numpy_integers():
    assert spans_of("One. Two.", np.array([[0, 5], [5, 9]])) == [(0, 4), (5, 9)]


# Snapping


def snap_obvious(chunks, units):
    """Segments and distances by looking at every sentence for every chunk."""
    starts = [start for start, _ in units]
    nearest = {
        min(range(len(starts)), key=lambda i: (abs(starts[i] - start), i))
        for start, _ in chunks[1:]
    }
    segmentation = Segmentation.from_boundaries(sorted(nearest - {0}), len(units))
    distances = [min(abs(start - a) for a, _ in units) for start, _ in chunks[1:]]
    outside = sum(all(end <= a or b <= start for start, end in chunks) for a, b in units)
    return segmentation, distances, outside


@st.composite
def chunks_and_units(draw):
    def spans(places):
        # Every other stretch, so that there are gaps; or all of them.
        step = draw(st.sampled_from([1, 2]))
        return list(pairwise(places))[::step]

    length = draw(st.integers(2, 60))
    places = st.sets(st.integers(0, length), min_size=2).map(sorted)
    return spans(draw(places)), spans(draw(places))


@given(chunks_and_units())
@examples(400)
def test_snapping_follows_the_definition(case):
    chunks, units = case
    segmentation, report = snap(chunks, units)
    wanted, distances, outside = snap_obvious(chunks, units)
    assert segmentation == wanted
    assert report == SnapReport(
        chunks=len(chunks),
        segments=len(segmentation),
        starts=len(distances),
        moved=len([d for d in distances if d]),
        distance=sum(distances),
        furthest=max(distances, default=0),
        outside=outside,
    )
    assert 0 <= report.share_moved <= 1
    assert report.merged >= 0


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6).map(Segmentation), st.data())
def test_the_spans_of_segments_snap_to_them(segmentation, data):
    n = segmentation.n_units
    lengths = data.draw(st.lists(st.integers(1, 20), min_size=n, max_size=n))
    edges = [sum(lengths[:i]) for i in range(n + 1)]
    chunks = list(pairwise([edges[b] for b in (0, *segmentation.boundaries, n)]))
    assert snap(chunks, list(pairwise(edges)))[0] == segmentation


@pytest.mark.parametrize(
    ("chunks", "masses"),
    [
        ([(0, 4), (4, 5), (5, 19), (19, 30)], (2, 1)),  # two inside one sentence merge
        ([(10, 20), (20, 30)], (2, 1)),  # what is before the first chunk belongs to it
        ([(20, 30)], (3,)),
        ([(0, 14), (14, 30)], (1, 2)),
        ([(0, 15), (15, 30)], (1, 2)),
        ([(0, 16), (16, 30)], (2, 1)),
        ([(0, 5), (5, 30)], (3,)),
        ([(0, 6), (6, 30)], (1, 2)),
    ],
)
def test_chunks_start_at_the_nearest_sentence(chunks, masses):
    assert snap(chunks, [(0, 10), (10, 20), (20, 30)])[0].masses == masses


def test_the_earlier_of_two_equally_near_sentences():
    assert snap([(0, 5), (5, 20)], [(0, 10), (10, 20)])[0].masses == (2,)
    assert snap([(0, 6), (6, 20)], [(0, 10), (10, 20)])[0].masses == (1, 1)


def test_the_report_is_a_sentence():
    units = [(0, 10), (11, 20), (21, 30), (31, 40)]
    _, first = snap([(0, 8), (8, 13), (14, 20), (31, 40)], units)
    assert str(first) == (
        "4 chunks, 3 segments; 2 of 3 chunk starts (66.7%) lay inside a sentence and moved to the "
        "nearest sentence start, by 3.0 characters on average and 3 at most; 1 chunk came to start "
        "with the same sentence as the chunk before and merged with it; 1 sentence in no chunk, "
        "counted to the segment around"
    )
    _, second = snap([(0, 20), (21, 40)], units)
    assert str(second) == "2 chunks, 2 segments; every chunk starts with a sentence"
    assert str(snap([(0, 40)], units)[1]) == "1 chunk, 1 segment"
    both = first + second
    assert (both.chunks, both.starts, both.moved, both.furthest) == (6, 4, 2, 3)
    assert both.mean_distance == 3


def test_spans_count_by_their_starts():
    units = [(0, 10), (10, 20), (20, 30)]
    segmentation, report = snap([(0, 12), (9, 30), (20, 25)], units)
    assert segmentation.masses == (1, 1, 1)
    assert (report.overlapping, report.shared, report.outside) == (2, 13, 0)
    said = "2 of 2 chunk starts lay inside the chunk before, with 6.5 characters in common"
    assert said in str(report)
    # The second chunk ends before the first does: what lies behind it is in a chunk still.
    assert snap([(0, 30), (5, 8)], units)[1].outside == 0


def test_spans_out_of_order_or_none_are_refused():
    units = [(0, 10), (10, 20)]
    refused(
        lambda: snap([(9, 12), (0, 20)], units),
        "chunk 2, which starts at character 0, where chunk 1 starts at 9",
        "in the order in which they start",
    )
    refused(lambda: snap([(0, 12), (0, 20)], units), "starts at character 0, where chunk 1")
    refused(lambda: snap([], units), "no chunks with text", "2 sentences")


# Libraries


@pytest.mark.parametrize("chunker", LIBRARY_CHUNKERS, ids=spelling_of)
def test_libraries_cut_awkward_texts(chunker):
    for name, text in AWKWARD.items():
        spans = chunker(text)
        assert squeezed("".join(text[a:b] for a, b in spans)) == squeezed(text), name
        segmentation, report = snap(spans, sentences(text))
        assert segmentation.n_units == len(sentences(text)), name
        assert report.outside == 0, name


@given(odd_texts, st.sampled_from(LIBRARY_CHUNKERS))
@examples(300)
def test_libraries_cut_odd_texts(text, chunker):
    assume(text.strip())
    spans = chunker(text)
    assert squeezed("".join(text[a:b] for a, b in spans)) == squeezed(text)
    assert snap(spans, sentences(text))[0].n_units == len(sentences(text))


@pytest.mark.parametrize(
    ("chunker", "chunks"),
    [
        (
            LangChainRecursive(chunk_size=60),
            langchain_text_splitters.RecursiveCharacterTextSplitter(
                chunk_size=60, chunk_overlap=0
            ).split_text(PROSE),
        ),
        (
            LangChainCharacter(chunk_size=90, separator="paragraph"),
            langchain_text_splitters.CharacterTextSplitter(
                chunk_size=90, chunk_overlap=0
            ).split_text(PROSE),
        ),
        (
            LangChainCharacter(chunk_size=30, separator="space"),
            langchain_text_splitters.CharacterTextSplitter(
                separator=" ", chunk_size=30, chunk_overlap=0
            ).split_text(PROSE),
        ),
        (
            ChonkieToken(chunk_size=50),
            [chunk.text for chunk in chonkie.TokenChunker(chunk_size=50).chunk(PROSE)],
        ),
        (
            ChonkieSentence(chunk_size=70),
            [chunk.text for chunk in chonkie.SentenceChunker(chunk_size=70).chunk(PROSE)],
        ),
        (
            ChonkieRecursive(chunk_size=70),
            [chunk.text for chunk in chonkie.RecursiveChunker(chunk_size=70).chunk(PROSE)],
        ),
        (
            SemanticTextSplitter(chunk_size=70),
            semantic_text_splitter.TextSplitter(70).chunks(PROSE),
        ),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_chunks_are_the_libraries_own(chunker, chunks):
    assert len(chunks) > 2
    assert [squeezed(PROSE[a:b]) for a, b in chunker(PROSE)] == [squeezed(c) for c in chunks]


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (LangChainRecursive, langchain_text_splitters.RecursiveCharacterTextSplitter()),
        (LangChainCharacter, langchain_text_splitters.CharacterTextSplitter()),
    ],
)
def test_langchain_defaults_but_for_the_overlap(kind, own):
    assert kind().chunk_size == own._chunk_size
    assert own._chunk_overlap == 200
    assert kind().chunk_overlap == 0
    assert "chunk_overlap is 0 here, 200 in LangChain" in kind().remark
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


def test_blank_lines_lost_by_langchain_do_not_matter():
    text = "One here.\n\n\n\nTwo there.\n\n\n\nThree now."
    chunks = langchain_text_splitters.CharacterTextSplitter(
        chunk_size=25, chunk_overlap=0
    ).split_text(text)
    assert chunks[0] not in text
    assert LangChainCharacter(chunk_size=25)(text) == [(0, 23), (27, 37)]


def test_semantic_chunks_are_cut_by_the_given_vectors():
    text = PROSE * 5
    own = chonkie.SemanticChunker(Embeddings()).chunk(text)
    chunks = [text[a:b] for a, b in ChonkieSemantic(embed=embed)(text)]
    assert [squeezed(chunk) for chunk in chunks] == [squeezed(chunk.text) for chunk in own]
    assert len(chunks) > 2
    refused(lambda: ChonkieSemantic()(text), "chonkie-semantic without an encoder")


def test_a_megabyte():
    rng = np.random.default_rng(0)
    words = ["lamp", "honey", "disk", "budget", "winter", "queue", "server", "light"]
    paragraphs = []
    for _ in range(4500):
        rows = rng.choice(words, size=(4, 9))
        paragraphs.append(" ".join(f"{' '.join(row).capitalize()}." for row in rows))
    text = "\n\n".join(paragraphs)
    assert len(text) > 1_000_000
    chunkers = [kind() for kind in LIGHT if kind is not ChonkieSemantic]
    corpus, reports = chunked([PlainText("big", text, Place())], chunkers)
    assert corpus.n_units == 4 * 4500
    reports = {name: report.snap for name, report in reports.items()}
    assert all(report.segments > 200 for report in reports.values())
    assert all(report.outside == 0 for report in reports.values())
    # Whatever is cut at sentences is not moved.
    assert reports["semantic-text-splitter"].moved == 0
    assert reports["chonkie-token"].share_moved > 0.9


@pytest.mark.parametrize(
    ("module", "package", "chunker"),
    [
        ("langchain_text_splitters", "langchain-text-splitters", LangChainRecursive()),
        ("chonkie", "chonkie", ChonkieToken()),
        ("semantic_text_splitter", "semantic-text-splitter", SemanticTextSplitter()),
    ],
)
def test_a_missing_library_is_named_with_its_command(monkeypatch, module, package, chunker):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError) as caught:
        chunked([PlainText("a", PROSE, Place(file="a.txt"))], [chunker])
    assert str(caught.value) == (
        f"system '{chunker.name}': found no installed {package}; expected this library, since "
        f"{chunker.name} needs it; install it with pip install {package}, or all that are known "
        "with pip install 'reffree[chunkers]'"
    )


def test_a_missing_sentence_splitter_is_named_with_its_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    refused(lambda: sentences("One."), "pip install sentencex", "reffree chunkers needs it")


# Names


def test_names_are_read_back():
    for chunker in LIBRARY_CHUNKERS:
        assert find_chunker(spelling_of(chunker)) == chunker
    assert find_chunker("chonkie-token") == ChonkieToken()


def test_a_library_and_its_splitter():
    expected = LangChainRecursive(chunk_size=500)
    for spec in (
        "langchain:chunk_size=500",
        "langchain:recursive,chunk_size=500",
        "langchain:RecursiveCharacterTextSplitter,chunk_size=500",
        "langchain-recursive:chunk_size=500",
    ):
        assert find_chunker(spec) == expected
    assert find_chunker("chonkie:token") == ChonkieToken()
    assert find_chunker("langchain") == LangChainRecursive()


@pytest.mark.parametrize(
    ("spec", "error", "part"),
    [
        (
            "langchain:recursiv",
            UnknownNameError,
            "unknown chunker 'langchain-recursiv'; did you mean 'langchain-recursive'",
        ),
        ("chonkie:late", UnknownNameError, "unknown chunker 'chonkie-late'"),
        ("semantic-text-spliter", UnknownNameError, "did you mean 'semantic-text-splitter'"),
        ("chonkie-token:size=5", OptionError, "chunk_size=INTEGER"),
        ("chonkie-token:chunk_size=big", OptionError, "chunk_size=INTEGER"),
        ("chonkie-token:chunk_size=0", OptionError, "a whole number, 1 or more"),
        ("chonkie-token:tokenizer=gpt2", OptionError, "tokenizer=character or tokenizer=word"),
        ("chonkie-semantic:embed=x", OptionError, "the option 'embed=x'"),
        ("chonkie-semantic:threshold=1", OptionError, "between 0 and 1"),
        ("chonkie-semantic:similarity_window=0", OptionError, "1 or more"),
        ("chonkie-sentence:min_sentences_per_chunk=0", OptionError, "1 or more"),
        ("chonkie-sentence:min_characters_per_sentence=0", OptionError, "1 or more"),
        ("chonkie-recursive:min_characters_per_chunk=0", OptionError, "1 or more"),
        ("semantic-text-splitter:chunk_size=0", OptionError, "1 or more"),
        ("langchain-recursive:chunk_overlap=-1", OptionError, "0 or more"),
        ("langchain-recursive:chunk_size=9,chunk_overlap=10", OptionError, "at most chunk_size, 9"),
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


# Functions


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
    corpus, reports = chunked([PlainText("a", PROSE, Place())], [strings, spans])
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
    refused(lambda: find_chunker(f"{name}:cut"), part, f"python -c 'import {name}'")


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
        (lambda text: ["", "  "], "no chunks with text"),
        (lambda text: text, "str from the chunker"),
        (lambda text: [text.upper()], "chunk 1, 'THE SERVER"),
        (lambda text: [text, text], "chunk 2, 'The server"),
        (lambda text: [(27, 60), (0, 30)], "chunk 2, which starts at character 0"),
        (lambda: [], "TypeError"),
    ],
)
def test_failing_functions_are_told_with_their_place(function, part):
    texts = [PlainText("a", PROSE, Place(file="a.txt"))]
    refused(
        lambda: chunked(texts, [FunctionChunker("mine:cut", function)]),
        "a.txt, system 'mine:cut', document 'a': found ",
        part,
    )


def test_lost_text_is_counted():
    chunker = FunctionChunker("mine:cut", lambda text: [(88, 120), (177, len(text))])
    corpus, reports = chunked([PlainText("a", PROSE, Place())], [chunker])
    assert corpus[0].systems["mine:cut"].masses == (7, 3)
    assert reports["mine:cut"].snap.outside == 5


def test_no_text_is_refused():
    refused(lambda: chunked([PlainText("a", " \n", Place(file="a.txt"))], []), "a.txt", "no units")


# The command


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "a.txt").write_text(PROSE + "\n")
    (tmp_path / "b.txt").write_bytes(PROSE.replace("\n", "\r\n").encode())
    (tmp_path / "own_cutter.py").write_text("def cut(text):\n    return text.split('\\n\\n')\n")
    rng = np.random.default_rng(0)
    vectors = {name: rng.normal(size=(10, 4)) for name in ("a", "b")}
    np.savez(tmp_path / "v.npz", **vectors)
    np.savez(tmp_path / "one.npz", stdin=vectors["a"])
    return tmp_path


def invoke(*arguments, stdin=None, code=0):
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], input=stdin)
    if code == 0 and result.exception is not None:
        raise result.exception
    assert result.exit_code == code
    return result


OWN = ("--chunker", "own_cutter:cut", "--embeddings", "v.npz")


def test_chunkers_are_scored_like_systems(files):
    arguments = ("--chunker", "chonkie-token:chunk_size=90", "--null", 20, "--save", "c.jsonl")
    done = invoke("a.txt", "b.txt", *OWN, *arguments, "-f", "json")
    table = json.loads(done.stdout)
    jsonschema.validate(table, json.loads(REPORT_SCHEMA.read_text()))
    assert [row["system"] for row in table["systems"]] == [
        "own_cutter:cut",
        "chonkie-token:chunk_size=90",
    ]
    assert table["corpus"]["units"] == 20
    assert table["systems"][0]["segments"] == 6
    notes = "\n".join(table["notes"])
    assert "b.txt, line 1: found a Windows line end (CRLF)" in notes
    assert "own_cutter:cut: 6 chunks, 6 segments; every chunk starts with a sentence." in notes
    assert "chonkie-token:chunk_size=90: 6 chunks, 6 segments; 4 of 4 chunk starts" in notes
    assert f"|chunkers:chonkie@{chonkie.__version__}" in table["signature"]
    assert "|sentences:sentencex@" in table["signature"]
    for note in table["notes"]:
        assert note in done.stderr

    saved = load(files / "c.jsonl")
    assert saved[0].systems["own_cutter:cut"].masses == (4, 3, 3)
    assert saved[1].units == saved[0].units
    from reffree.encoders.embed import from_file
    from reffree.evaluate.score import score

    again = score(saved, embeddings=from_file(saved, files / "v.npz"), null=20).to_dict()
    assert again["systems"] == table["systems"]


def test_output_is_a_table_and_goes_where_it_is_told(files):
    arguments = ("a.txt", "b.txt", "--chunker", "langchain-recursive:chunk_size=60")
    arguments += ("--chunker", "langchain-character:chunk_size=60", "--embeddings", "v.npz")
    printed = invoke(*arguments, "-m", "arp_pair").stdout
    assert "langchain-recursive:chunk_size=60: 12 chunks" in " ".join(printed.split())
    assert printed.count("chunk_overlap is 0 here, 200 in LangChain") == 2
    invoke(*arguments, "-m", "arp_pair", "--per-document", "-o", "scores.csv")
    assert (files / "scores.csv").read_text().startswith("system,document,segment,metric")


def test_standard_input_and_further_systems(files):
    (files / "gold.jsonl").write_text('{"id": "stdin", "segmentation": [4, 3, 3]}\n')
    done = invoke(
        *("-", "--chunker", "own_cutter:cut", "--embeddings", "one.npz", "--average", "micro"),
        *("--system", "gold=gold.jsonl", "-m", "pk", "-m", "arp_pair", "-f", "json"),
        stdin=PROSE,
    )
    table = json.loads(done.stdout)
    values = {row["system"]: row["metrics"]["pk"]["value"] for row in table["systems"]}
    assert values == {"gold": 0, "own_cutter:cut": 0}
    assert "|gold:micro(documents)|" in table["signature"]


def test_the_language_splits_and_is_told(files):
    (files / "de.txt").write_text("Am 3. Mai kam er.\n\nAlles war gut.")
    np.savez(files / "de.npz", de=np.eye(2))
    done = invoke(
        *("de.txt", "--language", "de", "--chunker", "own_cutter:cut", "--embeddings", "de.npz"),
        *("-m", "arp_pair", "--explain", "--per-segment", "-f", "json"),
    )
    table = json.loads(done.stdout)
    assert table["corpus"]["units"] == 2
    assert table["signature"].split("|")[-1].startswith("sentences:sentencex@")
    assert table["signature"].endswith("(de)")
    metrics = table["documents"][0]["metrics"]["arp_pair"]
    assert len(metrics["segments"]) == 2
    assert "explanations" in table["documents"][0]


def test_files_of_the_same_name_are_kept_apart(files):
    (files / "sub").mkdir()
    (files / "sub" / "a.txt").write_text(PROSE)
    np.savez(files / "two.npz", **{"a.txt": np.eye(10), "sub/a.txt": np.eye(10)})
    done = invoke(
        *("a.txt", "sub/a.txt", "--chunker", "own_cutter:cut", "--embeddings", "two.npz"),
        *("-m", "arp_pair", "--per-document", "-f", "json"),
    )
    ids = [row["id"] for row in json.loads(done.stdout)["documents"]]
    assert ids == ["a.txt", "sub/a.txt"]


class CountingEncoder:
    """Stands in for a model, and hands its vectors out last first."""

    spec = EncoderSpec("counting", "1", "none", "none", "float32", None, "test")

    def stream(self, texts):
        assert len(set(texts)) == len(texts)
        for position in reversed(range(len(texts))):
            yield EncodedTexts([position], embed([texts[position]]), [1])


def test_semantic_chunks_take_the_encoder_that_scores(files, monkeypatch):
    opened = []
    home = "reffree.encoders.sentence_transformer"
    monkeypatch.setattr(f"{home}.find_model", lambda name, **how: name)
    monkeypatch.setattr(f"{home}.suited", lambda folder, *_: folder)
    monkeypatch.setattr(
        f"{home}.SentenceTransformerEncoder",
        lambda *arguments: opened.append(arguments) or CountingEncoder(),
    )
    (files / "long.txt").write_text(PROSE * 5)
    done = invoke(
        *(
            "long.txt",
            "--chunker",
            "chonkie-semantic",
            "--chunker",
            "chonkie-semantic:threshold=0.5",
        ),
        *(
            "--encoder",
            "some/model",
            "-m",
            "arp_pair",
            "--cache",
            "off",
            "--device",
            "cpu",
            "-f",
            "json",
        ),
    )
    table = json.loads(done.stdout)
    expected = len(ChonkieSemantic(embed=embed)(PROSE * 5))
    assert table["systems"][0]["segments"] == expected > 2
    assert any("cuts by the encoder that scores it" in note for note in table["notes"])
    assert len(opened) == 3  # to chunk, to score, to count tokens
    assert opened[0] == opened[1]
    assert (opened[0][0], str(opened[0][1])) == ("some/model", "cpu")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["a.txt"], "Missing option '--chunker'"),
        (["--chunker", "own_cutter:cut"], "Missing argument 'TEXT...'"),
        (["a.txt", *OWN, "--chunker", "own_cutter:cut"], "own_cutter:cut twice"),
        (["-", "-", *OWN], "- twice"),
        (["a.txt", *OWN, "--save", "-"], "--save -"),
        (["a.txt", *OWN, "--save", "a.txt"], "this is an input"),
        (["a.txt", *OWN, "--save", "s.json", "-o", "s.json"], "this is also -o"),
        (["a.txt", *OWN, "-o", "a.txt"], "this is an input"),
        (["a.txt", *OWN, "--encoder", "minilm"], "exclude each other"),
        (["a.txt", *OWN, "--seed", "-1"], "--seed -1"),
        (["a.txt", *OWN, "--system", "x"], "expected NAME=FILE"),
        (["a.txt", *OWN, "--chunker", "chonkie-semantic"], "no vectors for what chonkie-semantic"),
    ],
)
def test_usage_errors(files, arguments, part):
    before = (files / "a.txt").read_bytes()
    assert part in invoke(*arguments, code=2).stderr
    assert (files / "a.txt").read_bytes() == before


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ["empty.txt", "no units"]),
        (b" \n\n ", ["empty.txt", "no units"]),
        (b"caf\xe9", ["empty.txt, line 1", "not UTF-8"]),
    ],
)
def test_texts_that_cannot_be_read(files, content, parts):
    (files / "empty.txt").write_bytes(content)
    result = CliRunner().invoke(command, ["a.txt", "empty.txt", "--chunker", "chonkie-token"])
    assert isinstance(result.exception, InputError)
    for part in parts:
        assert part in str(result.exception)


def test_the_help_says_what_scores_do_not_say_and_lists_every_chunker():
    text = " ".join(invoke("--help").stdout.split())
    assert "These scores do not predict retrieval quality" in text
    assert "2505.02171" in text
    for name in CHUNKERS:
        assert name in text
    code = (
        "import sys\nfrom reffree.cli.chunkers import command\n"
        "try: command(['--help'])\nexcept SystemExit: pass\n"
        "heavy = ('torch', 'numpy', 'chonkie', 'langchain_core', 'sentencex', 'rich')\n"
        "print('HEAVY', [m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"
