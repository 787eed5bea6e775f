"""Segmenters without text: exact where they promise to be, uniform where they draw."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, chisquare

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.segmenters.base import Inputs
from reffree.segmenters.naive import (
    AllBoundaries,
    Even,
    NoBoundaries,
    OraclePeriodic,
    OracleRandom,
    Random,
    RandomKnown,
    RandomUnknown,
    arp_random_baselines,
    nearest_period,
)
from reffree.util.errors import InputError
from reffree.util.naming import spelling_of
from tests.helpers import corpus_of
from tests.properties import examples

WITHOUT_GOLD = [
    NoBoundaries(),
    AllBoundaries(),
    Even(k=3),
    Even(every=4),
    Random(p=0.3),
    Random(p=0.3, draw=2),
    RandomUnknown(),
]
ORACLES = [RandomKnown(), OracleRandom(), OraclePeriodic(), OraclePeriodic(match="document")]
ALIKE = 1e-3  # draws are seeded: a p-value below this is a fault, not bad luck


def plain(*lengths):
    return Corpus(tuple(Document.build(f"d{i}", ["x"] * n) for i, n in enumerate(lengths)))


def copies(gold, n):
    """Documents alike but for their ids: independent draws of one method."""
    return corpus_of(*[gold] * n)


def golds(max_units=30):
    gold = st.lists(st.booleans(), max_size=max_units - 1).map(
        lambda labels: Segmentation.from_labels(labels, "gap").masses
    )
    return st.lists(gold, min_size=1, max_size=5)


def masses(segmentations):
    return [segmentation.masses for segmentation in segmentations]


def boundaries(segmentations):
    return [frozenset(segmentation.boundaries) for segmentation in segmentations]


def equally_likely(outcomes, possible):
    seen = Counter(outcomes)
    assert set(seen) <= set(possible)
    return chisquare([seen[outcome] for outcome in possible]).pvalue > ALIKE


@pytest.mark.parametrize(
    "method", [Random(p=0.5), RandomKnown(), RandomUnknown(), OracleRandom()], ids=spelling_of
)
def test_seeds_matter(method):
    corpus = corpus_of((50, 50, 50, 50))
    assert len({method(Inputs(corpus, seed)) for seed in range(5)}) == 5


@pytest.mark.parametrize("method", WITHOUT_GOLD, ids=spelling_of)
def test_gold_is_not_looked_at(method):
    assert method(Inputs(plain(12, 1, 7))) == method(Inputs(corpus_of((3, 9), (1,), (1,) * 7)))


@pytest.mark.parametrize("method", ORACLES, ids=spelling_of)
def test_oracles_refuse_to_work_without_gold(method):
    corpus = Corpus((Document.build("a", ["x"], gold=(1,)), Document.build("b", ["x"])))
    with pytest.raises(InputError, match=f"document 'b': found no gold for {method.name}"):
        method(Inputs(corpus))


def test_none_and_all():
    inputs = Inputs(plain(1, 4))
    assert masses(NoBoundaries()(inputs)) == [(1,), (4,)]
    assert masses(AllBoundaries()(inputs)) == [(1,), (1, 1, 1, 1)]


def test_even():
    inputs = Inputs(plain(1, 2, 10, 11))
    assert masses(Even(k=3)(inputs)) == [(1,), (1, 1), (3, 3, 4), (3, 4, 4)]
    assert masses(Even(every=3)(inputs)) == [(1,), (2,), (3, 3, 3, 1), (3, 3, 3, 2)]
    assert masses(Even(k=1)(inputs)) == masses(NoBoundaries()(inputs))
    assert masses(Even(every=1)(inputs)) == masses(AllBoundaries()(inputs))


@given(st.integers(1, 200), st.integers(1, 250))
@examples(150)
def test_even_lengths_differ_by_one_at_most(n_units, number):
    (found,) = masses(Even(k=number)(Inputs(plain(n_units))))
    assert len(found) == min(number, n_units)
    assert max(found) - min(found) <= 1
    (found,) = masses(Even(every=number)(Inputs(plain(n_units))))
    assert set(found[:-1]) <= {number}
    assert found[-1] <= number


@given(st.lists(st.integers(1, 25), min_size=1, max_size=6), st.data())
@examples(200)
def test_the_period_is_the_nearest_of_all(lengths, data):
    wanted = data.draw(st.integers(0, sum(lengths) - len(lengths)))

    def missed(period):
        placed = sum(len(range(period, n, period)) for n in lengths)
        return abs(placed - wanted)

    assert nearest_period(lengths, wanted) == min(range(1, 27), key=missed)


def test_oracle_periodic():
    # 3 + 1 boundaries over 12 + 9 units: every 4 places 2 + 2.
    inputs = Inputs(corpus_of((1, 1, 1, 9), (1, 8)))
    assert masses(OraclePeriodic()(inputs)) == [(4, 4, 4), (4, 4, 1)]
    assert masses(OraclePeriodic("document")(inputs)) == [(3, 3, 3, 3), (4, 5)]


@given(golds())
@examples(60)
def test_oracles_have_as_many_boundaries_as_gold(gold):
    inputs = Inputs(corpus_of(*gold))
    for method in (RandomKnown(), OracleRandom(), OraclePeriodic("document")):
        assert [*map(len, method(inputs))] == [*map(len, gold)]


@pytest.mark.parametrize("method", [RandomKnown(), OracleRandom()], ids=spelling_of)
def test_given_their_number_all_places_are_equally_likely(method):
    found = boundaries(method(Inputs(copies((1, 1, 4), 3000))))
    assert equally_likely(found, [frozenset(c) for c in combinations(range(1, 6), 2)])


def test_unknown_numbers_are_equally_likely_and_so_are_places():
    found = boundaries(RandomUnknown()(Inputs(copies((5,), 5000))))
    assert equally_likely(map(len, found), range(5))
    pairs = [places for places in found if len(places) == 2]
    assert equally_likely(pairs, [frozenset(c) for c in combinations(range(1, 5), 2)])


@pytest.mark.parametrize("p", [0.1, 0.5, 0.75])
def test_random_is_a_coin_at_every_gap(p):
    n_gaps, n_documents = 5, 3000
    found = boundaries(Random(p=p)(Inputs(copies((n_gaps + 1,), n_documents))))
    for gap in range(1, n_gaps + 1):
        hits = sum(gap in places for places in found)
        assert binomtest(hits, n_documents, p).pvalue > ALIKE
    # Independent coins: their sum is binomial.
    counts = np.bincount([len(places) for places in found], minlength=n_gaps + 1)
    expected = binom.pmf(range(n_gaps + 1), n_gaps, p) * n_documents
    common = expected > 5
    rest = [counts[~common].sum()], [expected[~common].sum()]
    observed, wanted = (
        np.append(x[common], r) for x, r in zip((counts, expected), rest, strict=True)
    )
    some = wanted > 0
    assert chisquare(observed[some], wanted[some]).pvalue > ALIKE


def test_one_draw_is_nested_and_two_are_independent():
    inputs = Inputs(plain(4000))
    (rare,), (common,) = (boundaries(Random(p=p)(inputs)) for p in (0.2, 0.5))
    assert rare < common
    (other,) = boundaries(Random(p=0.5, draw=1)(inputs))
    # Independent coins agree in half of the gaps.
    agreeing = 3999 - len(common ^ other)
    assert binomtest(agreeing, 3999).pvalue > ALIKE


def test_the_nine_baselines_of_the_arp_paper():
    corpus = corpus_of((100, 100, 100, 100), (150, 150), (300,) * 3)  # three segments each
    baselines = arp_random_baselines(corpus)
    assert [name for name, _ in baselines] == [
        "random_mean",
        *(f"random_{n}" for n in range(2, 10)),
    ]
    assert [method.p for _, method in baselines] == [1 / 3, *(1 / n for n in range(2, 10))]
    assert len({method.draw for _, method in baselines}) == 9  # independent of one another
    found = [method(Inputs(corpus)) for _, method in baselines]
    assert len(set(found)) == 9
    for (_, method), segmentations in zip(baselines, found, strict=True):
        n_boundaries = sum(map(len, segmentations)) - 3
        assert binomtest(n_boundaries, corpus.n_units - 3, method.p).pvalue > ALIKE
    # The same probability twice gives two systems, not one.
    assert found[0] != found[2]
