"""The segmenter with the least expected Pk, against a trial of every segmentation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.evaluate.score import score
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.posterior import Posterior
from reffree.segmenters.base import Inputs
from reffree.segmenters.posterior import LeastExpectedPk
from reffree.segmenters.segment import segment
from reffree.util.errors import InputError
from tests.oracles.expected import best_segmentation, evidence_and_nodes, expected_pk, mixture
from tests.properties import examples

WORDS = ("bees", "honey", "router", "cable", "ship", "rope")
"""Words that no stemmer makes equal, so that a unit's terms are its words."""


@st.composite
def small_documents(draw):
    """Vectors, some of them repeated or zero, and a text of few words."""
    n = draw(st.integers(3, 8))
    vectors = np.random.default_rng(draw(st.integers(0, 1 << 30))).normal(size=(n, 3))
    rows = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    vectors = vectors[rows] * draw(st.sampled_from([0.0, 1.0, 1e150]))
    spoken = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
    return vectors, draw(st.lists(spoken, min_size=n, max_size=n))


def inputs_of(units, vectors):
    corpus = Corpus((Document.build("d", units),))
    return Inputs(corpus, embeddings=None if vectors is None else [vectors])


@examples(40)
@given(
    small_documents(),
    st.sampled_from(["all", "embedding", "words"]),
    st.sampled_from([None, 1.0, 2.5, 40.0]),
)
def test_no_segmentation_has_a_lower_expected_pk(document, evidence, length):
    vectors, units = document
    n = len(units)
    posterior = Posterior(vectors, Reading(units), evidence=evidence)
    table, nodes = evidence_and_nodes(
        None if evidence == "words" else vectors,
        None if evidence == "embedding" else [unit.split() for unit in units],
        units=units if evidence == "all" else None,
        orders=[order.tolist() for order in posterior.orders],
        n=n,
        length=length,
    )
    mixed = mixture(table, n, nodes)
    (found,) = LeastExpectedPk(length, evidence)(inputs_of(units, vectors))
    assert found.n_units == n
    _, least = best_segmentation(mixed, n)
    # Several may have the least.
    assert expected_pk(found.masses, mixed) == pytest.approx(least, abs=1e-9)


def test_topics_are_found_where_they_change():
    rng = np.random.default_rng(0)
    masses = (9, 7, 12, 8, 10, 6)
    vectors = np.repeat(rng.normal(size=(6, 64)), masses, axis=0)
    vectors = vectors + 0.7 * rng.normal(size=vectors.shape)
    units = [
        " ".join(f"{word}{i}" for i in rng.choice(12, 5))
        for word, n in zip(WORDS, masses, strict=True)
        for _ in range(n)
    ]
    assert LeastExpectedPk(length=9)(inputs_of(units, vectors)) == (Segmentation(masses),)
    (unaided,) = LeastExpectedPk()(inputs_of(units, vectors))
    assert set(Segmentation(masses).boundaries) <= set(unaided.boundaries)
    # Words alone say so, too, and need no vectors.
    by_words = LeastExpectedPk(length=8, evidence="words")
    assert not by_words.needs_embeddings
    assert by_words(inputs_of(units, None)) == (Segmentation(masses),)


@pytest.mark.parametrize("n", [1, 2])
def test_documents_too_short_for_a_window_stay_whole(n):
    vectors = np.eye(n)
    assert LeastExpectedPk()(inputs_of(["a"] * n, vectors)) == (Segmentation((n,)),)


def test_no_other_system_scores_better():
    rng = np.random.default_rng(1)
    documents = [Document.build(f"d{i}", [f"{w}" for w in rng.choice(WORDS, 20)]) for i in range(3)]
    vectors = [np.cumsum(rng.normal(size=(20, 5)), axis=0) for _ in documents]
    methods = ["posterior:length=5", "none", "all", "even:k=4", "depth", "changepoint"]
    made = segment(Corpus(tuple(documents)), methods, embeddings=vectors)
    table = score(made, metrics=["expected_pk:length=5"], embeddings=vectors, per_document=True)
    values = {}
    for row in table.documents:
        values.setdefault(row.id, {})[row.system] = row.metrics["expected_pk:length=5"].value
    for found in values.values():
        assert found["posterior:length=5"] <= min(found.values()) + 1e-9


def test_a_scorer_that_is_not_there_is_refused(tmp_path):
    corpus = Corpus((Document.build("d", ["a"] * 4),))
    # Before anything is encoded: there is no such encoder.
    with pytest.raises(InputError, match="train scorer"):
        segment(corpus, f"posterior:evidence=scorer:{tmp_path}", encoder="none")
