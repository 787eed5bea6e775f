"""Chunks as spans of characters, and spans snapped to sentences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.chunkers.blocks import LONGEST
from reffree.chunkers.spans import SnapReport, locate, snap, spans_of, trimmed
from reffree.data.segmentation import Segmentation
from tests.chunkers.texts import PROSE, unit_spans
from tests.helpers import refusal
from tests.properties import examples

# Sentences


def test_sentences_are_split_at_their_ends_only():
    found = [PROSE[a:b] for a, b in unit_spans(PROSE)]
    assert found[:4] == [
        "The server failed at noon.",
        "Dr. Smith restarted it twice!",
        "Was the disk full?",
        "It was.",
    ]
    assert found[5] == "They sleep in winter,\nclose together."
    assert len(found) == 10


def test_abbreviations_are_those_of_the_language():
    text = "Am 3. Mai kam er. Gut."
    assert [text[a:b] for a, b in unit_spans(text, "de")] == ["Am 3. Mai kam er.", "Gut."]
    assert len(unit_spans(text)) == 3


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
    assert f"chunk 2, {chunks[1]!r}, which" in (found := refusal(locate, text, chunks))
    assert said in found


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
    said = refusal(locate, "One. Two. THREE.", ["One.", "Two.", "three."])
    assert "chunk 3, 'three.', which does not occur in the text" in said
    assert "keep the chunker from changing characters" in said


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
    assert part in refusal(spans_of, "One. Two.", returned)


def snap_obvious(chunks, units):
    """Segments and what starts did by looking at every unit for every chunk."""
    starts = [start for start, _ in units]
    boundaries, distances, inside = set(), [], 0
    for start, _ in chunks[1:]:
        nearest = min(range(len(starts)), key=lambda i: (abs(starts[i] - start), i))
        inside += any(a < start < b for a, b in units)
        if abs(starts[nearest] - start) <= LONGEST:
            boundaries.add(nearest)
            distances.append(abs(starts[nearest] - start))
    return SnapReport(
        chunks=len(chunks),
        segments=len(boundaries - {0}) + 1,
        starts=len(chunks) - 1,
        inside=inside,
        moved=len([d for d in distances if d]),
        distance=sum(distances),
        furthest=max(distances, default=0),
        left_out=len(chunks) - 1 - len(distances),
        outside=sum(all(end <= a or b <= start for start, end in chunks) for a, b in units),
    ), sorted(boundaries - {0})


@st.composite
def chunks_and_units(draw):
    def spans(places):
        # Every other stretch, so that there are gaps; or all of them.
        step = draw(st.sampled_from([1, 2]))
        return list(pairwise(places))[::step]

    scale = draw(st.sampled_from([1, 150]))  # with which units are longer than starts may move
    length = draw(st.integers(2, 60))
    places = st.sets(st.integers(0, length), min_size=2)
    scaled = places.map(lambda chosen: sorted(scale * place for place in chosen))
    return spans(draw(scaled)), spans(draw(scaled))


@given(chunks_and_units())
@examples(400)
def test_snapping_follows_the_definition(case):
    chunks, units = case
    segmentation, report = snap(chunks, units)
    wanted, boundaries = snap_obvious(chunks, units)
    assert report == wanted
    assert segmentation == Segmentation.from_boundaries(boundaries, len(units))


def test_what_snapping_did_is_a_row():
    units = [(0, 10), (11, 20), (21, 30), (31, 40)]
    _, first = snap([(0, 8), (8, 13), (14, 20), (31, 40)], units)
    row = first.row
    assert (row["chunks"], row["segments"], row["starts"], row["merged"]) == (4, 3, 3, 1)
    assert row["inside"] == pytest.approx(2 / 3)
    assert (row["distance"], row["furthest"], row["outside"]) == (3, 3, 1)
    _, second = snap([(0, 20), (21, 40)], units)
    assert (second.inside, second.merged, second.row["distance"]) == (0, 0, None)
    assert snap([(0, 40)], units)[1].row["inside"] is None
    both = first + second
    assert (both.chunks, both.starts, both.moved, both.furthest) == (6, 4, 2, 3)
    assert both.row["distance"] == 3


def test_a_start_in_a_very_long_unit_is_left_out_and_counted():
    units = [(0, 10), (11, 5000), (5001, 5020)]
    segmentation, report = snap([(0, 300), (300, 2500), (2500, 4800), (4800, 5020)], units)
    assert segmentation.masses == (1, 1, 1)
    assert (report.left_out, report.merged, report.inside, report.furthest) == (1, 0, 3, 289)


def test_spans_count_by_their_starts():
    units = [(0, 10), (10, 20), (20, 30)]
    segmentation, report = snap([(0, 12), (9, 30), (20, 25)], units)
    assert segmentation.masses == (1, 1, 1)
    assert (report.overlapping, report.shared, report.outside) == (2, 13, 0)
    assert report.row["shared"] == 6.5
    # The second chunk ends before the first does: what lies behind it is in a chunk still.
    assert snap([(0, 30), (5, 8)], units)[1].outside == 0


def test_spans_out_of_order_or_none_are_refused():
    units = [(0, 10), (10, 20)]
    said = refusal(snap, [(9, 12), (0, 20)], units)
    assert "chunk 2, which starts at character 0, where chunk 1 starts at 9" in said
    assert "in the order in which they start" in said
    assert "starts at character 0, where chunk 1" in refusal(snap, [(0, 12), (0, 20)], units)
    said = refusal(snap, [], units)
    assert "no chunks with text" in said
    assert "2 units" in said
