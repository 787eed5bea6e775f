"""Whether a system agrees with the vectors more than with the rest: against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from reffree.data.masses import mass_matrix
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.placement import LEAST_ROOM, Excess, watched_excess
from reffree.metrics.free.posterior import Posterior
from reffree.metrics.registry import parse_metrics
from reffree.util.words import Lexicon
from tests.oracles import expected as expected_oracle
from tests.oracles import placement as oracle
from tests.properties import examples

NOUNS = ["garden", "tax", "boat", "violin"]


def window_sharing(table, n, K, window):
    """The probability that units a window apart share a segment, at K segments, by a table."""
    return expected_oracle.same_segment(expected_oracle.posterior(table, n, K), n, window)


@examples(25)
@given(st.integers(4, 7), st.integers(0, 2**32 - 1), st.sampled_from([0.2, 1.0]))
def test_excess_is_that_of_enumeration(n, seed, noise):
    rng = np.random.default_rng(seed)
    x = noise * rng.normal(size=(n, 3)) + np.repeat(rng.normal(size=(n, 3)), 3, axis=0)[:n]
    units = [" ".join(rng.choice([*NOUNS, "it", "and"], 3)) + rng.choice([".", "?"]) for _ in x]
    posterior = Posterior(x, Reading(units))
    chosen = [masses for masses in expected_oracle.every_segmentation(n) if 1 < len(masses) < n]
    values, weights = Excess().weighted_scores(posterior, mass_matrix(chosen, n, "x"))
    numbers = Lexicon("english").terms(units)
    terms = [numbers.ids[a:b].tolist() for a, b in itertools.pairwise(numbers.edges.tolist())]
    K = posterior.segments
    window = max(2, round(n / K / 2))
    # Vectors count as beside text: what vectors and cues say together, less what cues say.
    both, _ = expected_oracle.evidence_and_nodes(x, None, units=units, n=n, length=2)
    cues = expected_oracle.cue_table(units, 1)
    table = {stretch: each - cues[stretch] for stretch, each in both(K).items()}
    others, _ = expected_oracle.evidence_and_nodes(None, terms, units=units, n=n, length=2)
    by_vectors = window_sharing(table, n, K, window)
    by_others = window_sharing(others(K), n, K, window)
    edges = posterior.edges[1:].tolist()
    for masses, value, weight in zip(chosen, values, weights, strict=True):
        gained = [
            oracle.gained_and_room(masses, shared, window, edges)
            for shared in (by_vectors, by_others)
        ]
        if min(room for _, room in gained) <= 2 * LEAST_ROOM:
            continue  # undefined, or all but
        assert_allclose([value, weight], oracle.excess_and_weight(*gained), rtol=1e-5, atol=1e-6)


def test_who_looks_for_what_vectors_see_agrees_with_them_more():
    """Vectors change topic elsewhere than words do: each system agrees with one of them."""
    rng = np.random.default_rng(2)
    by_vectors, by_words = [5, 9, 4, 10, 6, 14], [8, 4, 12, 7, 10, 7]
    x = np.repeat(rng.normal(size=(6, 12)), by_vectors, axis=0) + 0.4 * rng.normal(size=(48, 12))
    words = np.repeat(
        ["garden soil", "tax law", "boat sail", "violin bow", "stew", "hill"], by_words
    )
    posterior = Posterior(x, Reading(words.tolist()))
    found = Excess().scores(posterior, mass_matrix([by_vectors, by_words], 48, "x"))
    assert found[0] > 0.5
    assert found[1] < -0.5


@pytest.mark.parametrize(
    ("x", "units"),
    [
        (np.ones((12, 3)), [*NOUNS] * 3),
        (np.zeros((12, 3)), [*NOUNS] * 3),
        (np.eye(12), ["the"] * 12),
        (np.eye(2), ["garden", "tax"]),
    ],
)
def test_where_one_of_the_two_says_nothing_there_is_none(x, units):
    n = len(x)
    hypotheses = mass_matrix([[1, n - 1], [n], [1] * n], n, "x")
    values, weights = Excess().weighted_scores(Posterior(x, Reading(units)), hypotheses)
    assert np.isnan(values).all()
    assert (weights == 1).all()


@pytest.mark.parametrize(
    ("names", "length"),
    [
        (["granularity", "placement"], None),
        (["arp_pair", "expected_pk:length=6"], 6),
        (["expected_pk:without=vectors", "expected_pk"], None),
    ],
)
def test_it_is_looked_at_beside_a_metric_that_reads_all_sources(names, length):
    assert watched_excess(parse_metrics(names, 0)) == [Excess(length=length)]


@pytest.mark.parametrize("name", ["arp_pair", "expected_pk:evidence=words", "granularity"])
def test_it_is_not_looked_at_otherwise(name):
    assert watched_excess(parse_metrics([name, "expected_pk:without=words"], 0)) == []
