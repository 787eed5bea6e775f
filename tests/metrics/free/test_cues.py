"""Cues of the form of units, against the definition written out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from reffree.metrics.free.cues import (
    ADDRESS,
    ANAPHORA,
    CONNECTIVES,
    FAREWELLS,
    GREETINGS,
    cue_evidence,
)
from tests.oracles import cues as oracle
from tests.properties import examples

WORDS = sorted(
    ANAPHORA
    | CONNECTIVES
    | ADDRESS
    | GREETINGS
    | FAREWELLS
    | {"ships", "sail", "cake", "it's", "Éa", "水"}
)
ENDS = ["", ".", "?", "？", "؟", '?"', "?)\u2009", "? Yes.", "?!"]

unit = st.builds(
    lambda words, end: " ".join(words) + end,
    st.lists(st.sampled_from(WORDS), max_size=7),
    st.sampled_from(ENDS),
)


@examples(100)
@given(st.lists(unit, min_size=2, max_size=12))
def test_cues_are_those_of_the_definition(units):
    assert_allclose(cue_evidence(units), oracle.gap_cues(units), atol=1e-12)


@pytest.mark.parametrize("units", [[], ["Alone."]])
def test_without_a_gap_there_is_no_cue(units):
    assert cue_evidence(units).shape == (0,)


def test_a_unit_that_leans_on_the_one_before_hardly_begins_a_topic():
    units = ["Salt is mined.", "And it is boiled.", "Cats sleep all day.", "They purr."]
    leaning, fresh, pronoun = cue_evidence(units)
    assert fresh > 0 > pronoun > leaning


def test_a_question_is_answered_before_the_topic_changes():
    units = ["Is it far?", "Two miles.", "Shall we eat?", "Gladly."]
    answered, asked, answered_again = cue_evidence(units)
    assert asked > 0 > max(answered, answered_again)


def test_people_greet_at_the_beginning_and_thank_at_the_end():
    units = ["A room for two.", "It is booked.", "Thanks a lot!", "You are welcome.", "Hello."]
    asked, thanked, answered, greeted = cue_evidence(units)
    assert greeted > max(asked, thanked, answered)
    units = ["Thank you.", "A taxi to the station.", "At nine."]
    after_thanks, inside = cue_evidence(units)
    assert after_thanks > inside
