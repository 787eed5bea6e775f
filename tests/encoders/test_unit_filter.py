"""Context, and units that take no part: backchannels and repeats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.data.filter import filter_units, is_backchannel, restore
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncodedTexts, EncoderSpec
from reffree.encoders.embed import (
    corpus_vectors,
    distinct_texts,
    encode_corpus,
    from_arrays,
    unit_texts,
    units_taking_part,
)
from reffree.encoders.options import EncoderOptions
from reffree.util.errors import InputError, OptionError

BOTH = EncoderOptions(drop=["repeats", "backchannels"])
UNITS = ["Yeah.", "Bees dance.", "Mm-hmm!", " ", "Bees dance.", "The bill.", "okay", "Thanks."]


def corpus():
    how = {"systems": {"s": [1, 7]}, "golds": {"x": [4, 4]}, "speakers": list("abcdefgh")}
    first = Document.build("a", UNITS, gold=[3, 2, 3], **how)
    second = Document.build(
        "b", ["Bees dance.", "Right, the bill."], gold=[1, 1], systems={"s": [2]}
    )
    return Corpus((first, second), ("a note",))


def without(*gone):
    """The same corpus, made from the units that stay."""
    units = [u for i, u in enumerate(UNITS) if i not in gone]

    def kept(masses):
        ids = np.repeat(np.arange(len(masses)), masses)
        return np.unique(np.delete(ids, gone), return_counts=True)[1].tolist()

    speakers = [s for i, s in enumerate("abcdefgh") if i not in gone]
    how = {"systems": {"s": kept([1, 7])}, "golds": {"x": kept([4, 4])}, "speakers": speakers}
    first = Document.build("a", units, gold=kept([3, 2, 3]), **how)
    return Corpus((first, corpus().documents[1]))


@pytest.mark.parametrize(
    ("drop", "gone", "dropped"),
    [
        ([], (), "none"),
        (["backchannels"], (0, 2, 6), "backchannels"),
        (["repeats"], (4,), "repeats"),
        (["repeats", "backchannels"], (0, 2, 4, 6), "backchannels+repeats"),
    ],
)
def test_units_are_left_out_as_if_they_had_never_been_there(drop, gone, dropped):
    chosen = filter_units(corpus(), EncoderOptions(drop=drop).drop)
    expected = without(*gone)
    for document, other in zip(chosen.corpus, expected, strict=True):
        assert replace(document, kept=(), place=other.place) == replace(other, kept=())
    assert chosen.dropped == dropped
    assert chosen.corpus.n_dropped == 1 + len(gone)  # one has no text
    kept = [i for i, keep in enumerate(chosen.corpus.documents[0].kept) if keep]
    assert kept == [i for i in range(8) if i not in (*gone, 3)]
    counted = [note for note in chosen.corpus.notes if "left out as" in note]
    assert len(counted) == len(drop)
    assert chosen.corpus.notes[0] == "a note"
    if len(drop) == 2:
        assert counted == [
            "3 units left out as backchannels, the boundaries reindexed.",
            "1 unit left out as repeats, the boundaries reindexed.",
        ]


def test_a_document_of_backchannels_is_refused():
    nothing = Corpus((Document.build("a", ["yeah", "mm"], gold=[1, 1]),))
    with pytest.raises(InputError, match=r"document 'a': found nothing but units to leave out"):
        filter_units(nothing, BOTH.drop)


@pytest.mark.parametrize(
    ("unit", "is_one"),
    [
        *(("Yeah", True), ("MM-HMM.", True), ("uh-huh, uh-huh", True), ("Oh — okay…", True)),
        *(("Yes.", False), ("No", False), ("Right, the budget.", False), ("...", False)),
        *(("你好", False), ("yeah 3", False), ("okay_then", False), ("Ja", False)),
    ],
)
def test_backchannels(unit, is_one):
    assert is_backchannel(unit) is is_one


masks = st.lists(st.booleans(), min_size=1, max_size=12).filter(any)


@given(masks, st.data())
def test_segmentations_come_back(mask, data):
    n = sum(mask)
    boundaries = data.draw(st.sets(st.integers(1, n - 1))) if n > 1 else set()
    made = Segmentation.from_boundaries(sorted(boundaries), n)
    whole = restore(made, mask)
    assert whole.n_units == len(mask)
    assert whole.keep(mask) == made
    # What was left out stays with what it follows.
    ids = whole.to_segment_ids()
    first = mask.index(True)
    assert len(set(ids[: first + 1])) == 1
    for i in range(first + 1, len(mask)):
        if not mask[i]:
            assert ids[i] == ids[i - 1]


def test_systems_made_for_the_rest_come_back():
    chosen = filter_units(corpus(), BOTH.drop)
    made = chosen.corpus.with_system("new", {"a": [2, 1], "b": [1, 1]})
    whole = chosen.restored(made)
    assert [d.units for d in whole] == [d.units for d in corpus()]
    assert whole.documents[0].systems["new"].masses == (6, 1)  # of seven units with text
    assert whole.documents[0].systems["s"] == corpus().documents[0].systems["s"]
    assert chosen.corpus.documents[0].units == ("Bees dance.", "The bill.", "Thanks.")


def test_given_vectors_follow_their_units():
    arrays = [np.arange(16.0).reshape(8, 2), np.ones((2, 2))]
    for vectors in (arrays, {"a": arrays[0], "b": arrays[1]}, from_arrays(corpus(), arrays)):
        chosen, given = units_taking_part(corpus(), vectors, BOTH)
        embedded = corpus_vectors(chosen.corpus, given, BOTH, None)
        assert_array_equal(embedded.vectors[0], arrays[0][[1, 5, 7]])
        assert embedded.spec.dropped == "backchannels+repeats"
    chosen, given = units_taking_part(corpus(), arrays, EncoderOptions())
    assert chosen.corpus == corpus()
    assert given is arrays


@given(st.lists(st.text(max_size=3), max_size=8), st.integers(0, 10))
def test_context_is_the_neighbours_in_order(units, context):
    texts = unit_texts(units, context)
    assert len(texts) == len(units)
    for i, text in enumerate(texts):
        around = [units[j] for j in range(len(units)) if abs(j - i) <= context]
        assert text == " ".join(around)


class Lengths:
    """A text's vector is its length."""

    spec = EncoderSpec("lengths", "1", "none", "none", "float32", 30, "test")

    def stream(self, texts):
        lengths = [len(text) for text in texts]
        yield EncodedTexts(
            list(range(len(texts))), np.array(lengths, dtype=np.float32)[:, None], lengths
        )


def test_context_reaches_the_encoder_and_the_fingerprint():
    alone, wide = (
        encode_corpus(corpus(), Lengths(), EncoderOptions(encoder=f"minilm:context={k}"))
        for k in (0, 1)
    )
    units = corpus().documents[0].units
    assert wide.vectors[0][:, 0].tolist() == [len(text) for text in unit_texts(units, 1)]
    assert (alone.n_truncated, wide.n_truncated) == (0, 1)
    assert wide.n_distinct == len(distinct_texts(corpus(), 1)) == 8
    assert alone.spec == Lengths.spec
    assert wide.spec.fingerprint != alone.spec.fingerprint


def test_context_needs_texts_to_encode():
    arrays = [np.ones((8, 2)), np.ones((2, 2))]
    with pytest.raises(OptionError, match="context = 2 beside vectors that are given"):
        corpus_vectors(corpus(), arrays, EncoderOptions(encoder="minilm:context=2"), None)
    made = encode_corpus(corpus(), Lengths(), EncoderOptions(encoder="minilm:context=2"))
    assert corpus_vectors(corpus(), made, EncoderOptions(encoder="minilm:context=2"), None) is made
    assert corpus_vectors(corpus(), made, EncoderOptions(), None) is made


def test_options_reach_the_functions():
    """Scores, counts, notes, signature and systems, of vectors that are given."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(8, 3)), rng.normal(size=(2, 3))]
    table = reffree.score(corpus(), embeddings=arrays, drop=["backchannels"])
    expected = reffree.score(without(0, 2, 6), embeddings=[arrays[0][[1, 4, 5, 7]], arrays[1]])
    assert table.to_dict()["systems"] == expected.to_dict()["systems"]
    assert (table.corpus["units"], table.corpus["dropped_units"]) == (6, 4)
    assert "3 units left out as backchannels, the boundaries reindexed." in table.notes
    assert "1 unit without text dropped, the boundaries reindexed." in table.notes
    assert "|dropped:backchannels|" in table.signature
    assert "|context:0|" in table.signature
    gold = reffree.score(corpus(), metrics=["pk"], drop=["repeats"])
    assert "|dropped:repeats|" in gold.signature
    made = reffree.segment(corpus(), "depth", embeddings=arrays, drop=["backchannels"])
    assert made.documents[0].units == corpus().documents[0].units
    assert made.documents[0].systems["depth"].n_units == 7


def test_a_unit_that_is_left_out_twice_over_is_counted_once():
    units = ["yeah", "Bees dance.", "yeah", "Bees dance.", " ", "The bill."]
    document = Document.build("a", units, systems={"s": [3, 3]})
    chosen = filter_units(Corpus((document,), ()), BOTH.drop).corpus
    assert chosen.documents[0].units == ("Bees dance.", "The bill.")
    assert chosen.documents[0].n_left_out == 3  # the one without text was none of these options'
    assert [note.partition(",")[0] for note in chosen.notes] == [
        "2 units left out as backchannels",
        "1 unit left out as repeats",
    ]
    before = filter_units(Corpus((document,), ()), ["backchannels"]).corpus
    after = filter_units(before, ["repeats"]).corpus
    assert after.documents[0].n_left_out == 3
