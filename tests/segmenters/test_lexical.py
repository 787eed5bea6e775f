"""TextTiling, C99 and TextSeg: against their definitions, and on documents that say little."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.segmenters.base import Inputs
from reffree.segmenters.c99 import C99
from reffree.segmenters.textseg import TextSeg
from reffree.segmenters.texttiling import TextTiling
from reffree.util.errors import InputError
from reffree.util.naming import spelling_of
from reffree.util.words import STOP_WORDS, Language, Lexicon, words_of
from tests.oracles import segmenters as oracle
from tests.properties import examples

METHODS = (TextTiling, C99, TextSeg)
REGISTRY = {method.name: method for method in METHODS}
TERMS = ("apple", "boat", "cloud", "drum", "engine")


def document(units, id="d", gold=None):
    return Document.build(id, units, gold=gold)


def inputs(*documents):
    return Inputs(Corpus(documents))


def segment(method, units, gold=None):
    return method(inputs(document(units, gold=gold)))[0]


def of_words(units):
    """Text of units of words; None is written as a word that makes no term."""
    return [" ".join("the" if word is None else word for word in unit) or "…" for unit in units]


@st.composite
def units_of_words(draw, max_units=12, max_words=6):
    """Few terms, so that there are ties; topics, so that there is something to find."""
    n = draw(st.integers(1, max_units))
    topics = [TERMS, TERMS[:2], TERMS[2:4], TERMS[4:]]
    units, topic = [], draw(st.sampled_from(topics))
    for _ in range(n):
        if draw(st.integers(0, 3)) == 0:
            topic = draw(st.sampled_from(topics))
        word = st.sampled_from((*topic, None))
        units.append(draw(st.lists(word, max_size=max_words)))
    return units


def test_terms_are_stems_without_stop_words_numbers_and_letters():
    lexicon = Lexicon("english")
    found = lexicon.terms(["The city's 1958 cities weren't", "Cities, U.S. 42nd AI", "…"])
    assert lexicon["cities"] == lexicon["city"] != lexicon["42nd"]
    assert found.ids.tolist() == [0, 0, 0, 1, 2]
    assert found.n_distinct == 3
    assert found.edges.tolist() == [0, 2, 5, 5]
    # the city s 1958 cities weren t | cities u s 42nd ai
    assert found.places.tolist() == [1, 4, 7, 10, 11]
    assert found.word_edges.tolist() == [0, 7, 12, 12]


def test_accents_may_be_letters_of_their_own():
    decomposed = unicodedata.normalize("NFD", "Même été à Noël")
    assert words_of(decomposed) == ["même", "été", "à", "noël"]
    found = Lexicon("french").terms([decomposed, "Noël"])
    assert found.ids.tolist() == [0, 0]


@pytest.mark.parametrize("language", get_args(Language))
def test_every_language_has_stop_words_and_a_stemmer(language):
    lexicon = Lexicon(language)
    assert len(STOP_WORDS[language]) > 50
    assert all(lexicon[word] == -1 for word in STOP_WORDS[language])
    assert lexicon["internet"] == 0


@given(
    units_of_words(max_units=20),
    st.integers(1, 5),
    st.sampled_from(["units", "words"]),
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from(["conservative", "liberal"]),
    st.integers(1, 4),
)
@examples(100)
def test_texttiling_equals_the_definition(
    units, block, measure, smoothing, rounds, cutoff, min_gap
):
    method = TextTiling(
        block=block,
        measure=measure,
        smoothing=smoothing,
        rounds=rounds,
        cutoff=cutoff,
        min_gap=min_gap,
    )
    given_inputs = inputs(document(of_words(units)))
    depths, boundaries = oracle.texttiling(
        units,
        block=block,
        measure=measure,
        smoothing=smoothing,
        rounds=rounds,
        deviations={"conservative": 0.5, "liberal": 1.0}[cutoff],
        min_gap=min_gap,
    )
    assert_allclose(method.boundary_scores(given_inputs)[0], depths, atol=1e-10)
    assert list(method(given_inputs)[0].boundaries) == boundaries


def test_a_single_valley_is_a_boundary():
    units = ["apple boat"] * 5 + ["cloud drum"] * 5
    assert segment(TextTiling(block=3), units).boundaries == (5,)


@given(st.integers(0, 3), st.lists(st.integers(0, 6), min_size=1, max_size=5))
@examples(60)
def test_a_sharp_valley_stays_where_it_was_however_much_is_smoothed(smoothing, spare):
    masses = tuple(2 * smoothing + 2 + more for more in spare)  # room for plateaus and peaks
    units = [TERMS[i % 2] for i, mass in enumerate(masses) for _ in range(mass)]
    method = TextTiling(block=1, smoothing=smoothing, min_gap=1)
    assert segment(method, units).masses == masses
    assert segment(replace(method, k="gold"), units, gold=masses).masses == masses
    depths = method.boundary_scores(inputs(document(units)))[0]
    assert np.flatnonzero(depths).tolist() == [b - 1 for b in Segmentation(masses).boundaries]


def test_a_plateau_of_the_text_itself_has_its_boundary_in_the_middle():
    # Units without terms make five gaps without similarity, 5 to 9.
    units = ["apple"] * 5 + ["the"] * 4 + ["apple"] * 5
    assert segment(TextTiling(block=1), units).boundaries == (7,)


@pytest.mark.parametrize(
    ("n", "words", "is_short"), [(39, 14, True), (40, 14, False), (39, 15, False)]
)
@pytest.mark.parametrize("measure", ["units", "words"])
def test_what_is_not_told_follows_the_document(n, words, is_short, measure):
    rng = np.random.default_rng(1)
    units = [" ".join(rng.choice(TERMS, size=words)) for _ in range(n)]
    times = 20 if measure == "words" else 1
    of_dialogues = TextTiling(block=4 * times, cutoff="liberal", min_gap=1, measure=measure)
    of_texts = TextTiling(block=10 * times, cutoff="conservative", min_gap=3, measure=measure)
    told, other = (of_dialogues, of_texts) if is_short else (of_texts, of_dialogues)
    found = segment(TextTiling(measure=measure), units)
    assert found == segment(told, units) != segment(other, units)
    kept = TextTiling(block=other.block, min_gap=other.min_gap, cutoff=other.cutoff)
    assert segment(replace(kept, measure=measure), units) == segment(other, units)


@given(units_of_words(max_units=13), st.sampled_from([3, 5, 11]), st.integers(0, 4))
@examples(60)
def test_c99_equals_the_definition(units, mask, k):
    text, c = of_words(units), Fraction(6, 5)
    k = min(k, len(units) - 1)
    got = segment(C99(mask=mask, k=k), text).boundaries
    assert list(got) == oracle.c99(units, k, mask=mask, c=c)
    assert list(segment(C99(mask=mask), text).boundaries) == oracle.c99(units, None, mask=mask, c=c)


def test_a_lower_threshold_finds_no_fewer_boundaries():
    rng = np.random.default_rng(1)
    units = [" ".join(rng.choice(TERMS, size=4)) for _ in range(40)]
    found = [len(segment(C99(c=c), units)) for c in (2.0, 1.2, 0.5, -9.0)]
    assert found == sorted(found)
    assert found[-1] == 40


@given(units_of_words(max_units=9), st.integers(0, 8))
@examples(100)
def test_no_segmentation_is_cheaper(units, k):
    text = of_words(units)
    found = segment(TextSeg(), text)
    cost = oracle.textseg_cost(units, found.masses)
    assert cost == pytest.approx(oracle.least_textseg_cost(units, None), rel=1e-12)
    k = min(k, len(units) - 1)
    found = segment(TextSeg(k=k), text)
    assert len(found) == k + 1
    cost = oracle.textseg_cost(units, found.masses)
    assert cost == pytest.approx(oracle.least_textseg_cost(units, k), rel=1e-12)


def test_a_unit_without_terms_goes_to_the_later_segment():
    units = ["apple boat " * 9] * 3 + ["the"] + ["cloud drum " * 9] * 3
    assert segment(TextSeg(), units).boundaries == (3,)
    assert segment(TextSeg(k=1), units).boundaries == (3,)


TOPICS = ["apple boat pear oar"] * 8 + ["cloud rain storm wind"] * 8 + ["drum horn flute lute"] * 8


@pytest.mark.parametrize(
    "method", [TextTiling(block=4, cutoff="conservative"), C99(k=2), TextSeg(), TextSeg(k=2)]
)
def test_planted_topics_are_found(method):
    rng = np.random.default_rng(3)
    units = [" ".join(rng.choice(unit.split(), size=3)) for unit in TOPICS]
    assert segment(method, units).masses == (8, 8, 8)


@pytest.mark.parametrize("method", [C99, TextSeg])
def test_the_known_average_is_of_the_corpus(method):
    golds = [[8, 8, 8], [24], [6, 6, 6, 6], [1, 1]]  # 10 segments in 4 documents: 2.5, so 2
    documents = [
        document(TOPICS[: sum(gold)], id=f"d{i}", gold=gold) for i, gold in enumerate(golds)
    ]
    found = method(k="mean")(inputs(*documents))
    assert [len(each) for each in found] == [2, 2, 2, 2]
    assert found == method(k=1)(inputs(*documents))
    with pytest.raises(InputError, match=f"no gold for {method.name}"):
        method(k="mean")(inputs(document(TOPICS)))


ALIKE = {
    "identical units": ["apple boat"] * 30,
    "stop words": ["the of and"] * 15,
    "punctuation": ["…", "!?", "--", "()"] * 5,
    "numbers": ["12", "1958 1959", "3"] * 4,
}


@pytest.mark.parametrize("method", [m() for m in METHODS], ids=spelling_of)
@pytest.mark.parametrize("units", ALIKE.values(), ids=ALIKE)
def test_nothing_to_tell_apart_is_one_segment(method, units):
    assert len(segment(method, units)) == 1
