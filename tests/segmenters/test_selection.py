"""Boundary selection: the paper's rules, written out, against the implementation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.data.corpus import Corpus, Document
from reffree.segmenters.selection import (
    AdaptiveThreshold,
    parse_selection,
    select_above,
    select_adaptive,
    select_share,
    select_top,
    speaker_candidates,
)
from reffree.util.errors import InputError, ReffreeError
from tests.helpers import refusal
from tests.oracles import selection as oracle
from tests.properties import examples

# Few values, so that scores tie and meet the threshold exactly.
SCORES = st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0]), max_size=25)


def drifting(n, rng):
    """Scores whose level and spread change slowly, and once of a sudden."""
    t = np.arange(n)
    level = 0.2 + 0.3 * t / n + 0.25 * (t > n // 2)
    return level + (0.05 + 0.1 * t / n) * rng.normal(size=n)


def quarter_rates(segmentation):
    n = segmentation.n_units
    return np.histogram(segmentation.boundaries, bins=4, range=(0, n))[0] / (n / 4)


@given(SCORES, st.integers(0, 30), st.integers(1, 8))
def test_top_is_the_same_suppression_without_a_threshold(scores, k, min_gap):
    found = select_top(scores, k, min_gap)
    everything = set(range(1, len(scores) + 1))
    assert list(found.boundaries) == oracle.suppressed(scores, everything, k, min_gap)
    assert min_gap > 1 or len(found) - 1 == min(k, len(scores))


def test_defaults_are_the_papers():
    scores = np.random.default_rng(5).random(60) * 1.2 - 0.1
    assert select_above(scores) == select_above(scores, 0.5, 3)
    assert select_top(scores, 20) == select_top(scores, 20, 1)
    assert select_share(scores, 0.4) == select_share(scores, 0.4, 1)
    paper = AdaptiveThreshold(0.1, min_gap=3, window=50, step_size=0.2, threshold=0.5, lifetime=3)
    assert AdaptiveThreshold(0.1) == paper


@pytest.mark.parametrize("rate", [0.05, 0.1, 1 / 6, 0.25])
@pytest.mark.parametrize("lifetime", [1, 3])
def test_realised_rate_reaches_its_target_while_scores_drift(rate, lifetime):
    scores = drifting(6000, np.random.default_rng(0))
    controller = AdaptiveThreshold(rate=rate, lifetime=lifetime)
    found = select_adaptive(scores, controller)
    assert (len(found) - 1) / len(scores) == pytest.approx(rate, rel=0.1)
    assert min(np.diff(found.boundaries)) >= controller.min_gap
    # In every quarter, too: the target is not met by errors that cancel.
    assert quarter_rates(found) == pytest.approx(rate, rel=0.2)
    fixed = quarter_rates(select_above(scores, float(np.quantile(scores, 1 - rate))))
    assert max(fixed) > 3 * min(fixed)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: select_above([[0.1]]), "scores of shape"),
        (lambda: select_top([float("nan")], 1), "a score that is no number"),
        (lambda: select_top([0.1], -1), "k = -1"),
        (lambda: select_top([0.1], 1, min_gap=0), "min_gap = 0"),
        (lambda: select_share([0.1], 1.5), "share = 1.5"),
        (lambda: AdaptiveThreshold(rate=0.5), "at most 1/3, all that the gap leaves room for"),
        (lambda: AdaptiveThreshold(rate=0.0), "rate = 0.0"),
        (lambda: AdaptiveThreshold(rate=0.1, step_size=0.0), "a step above 0"),
        (lambda: AdaptiveThreshold(rate=0.1, lifetime=0), "lifetime = 0"),
        (lambda: AdaptiveThreshold(rate=0.1, window=0), "window = 0"),
    ],
)
def test_refusals_say_what_is_wrong(call, message):
    with pytest.raises(InputError, match=message):
        call()


MASKED = st.lists(
    st.tuples(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0]), st.booleans()), max_size=25
)


def unzipped(pairs, *, is_masked):
    scores, mask = [s for s, _ in pairs], [m for _, m in pairs]
    return scores, mask if is_masked else None


@given(MASKED, st.booleans(), st.sampled_from([-2.0, 0.0, 0.5, 0.75, 2.0]), st.integers(1, 8))
def test_static_rule_is_the_paper_s(pairs, is_masked, threshold, min_gap):
    scores, mask = unzipped(pairs, is_masked=is_masked)
    found = select_above(scores, threshold, min_gap, mask)
    assert found.n_units == len(scores) + 1
    assert list(found.boundaries) == oracle.static(scores, threshold, min_gap, mask)


@given(MASKED, st.booleans(), st.one_of(st.floats(0, 1), st.just(0.5)))
def test_share_is_of_the_candidates_and_rounds_half_up(pairs, is_masked, share):
    scores, mask = unzipped(pairs, is_masked=is_masked)
    found = select_share(scores, share, candidates=mask).boundaries
    assert all(mask is None or mask[b - 1] for b in found)
    assert len(found) == math.floor(share * sum(mask or [True] * len(scores)) + 0.5)


SETTINGS = st.tuples(
    st.integers(1, 7),
    st.sampled_from([0.05, 0.5, 4.0]),
    st.sampled_from([-0.5, 0.5, 1.5]),
    st.integers(1, 6),
    st.sampled_from([-math.inf, -1.0, 0.25, 0.75]),
)
"""Window, step, first threshold, lifetime, least."""


@given(
    st.lists(MASKED, min_size=1, max_size=3),
    st.booleans(),
    st.integers(1, 4),
    st.floats(0.01, 1),
    SETTINGS,
)
@examples(400)
def test_controller_is_the_paper_s(documents, is_masked, min_gap, share, more):
    settings = (share / min_gap, min_gap, *more)
    scores, masks = zip(*(unzipped(each, is_masked=is_masked) for each in documents), strict=True)
    controller = AdaptiveThreshold(*settings)
    expected, thresholds = oracle.adaptive(scores, *settings, masks if is_masked else None)
    for values, mask, boundaries in zip(scores, masks, expected, strict=True):
        assert list(select_adaptive(values, controller, mask).boundaries) == boundaries
    assert controller.threshold == pytest.approx(thresholds[-1], abs=1e-12)


@given(st.lists(SCORES, min_size=1, max_size=4))
def test_rules_by_name_are_the_functions(documents):
    rules = {
        "static:tau=0.25,gap=2": lambda s: select_above(s, 0.25, 2),
        "density:rate=.3": lambda s: select_share(s, 0.3, 3),
    }
    for text, expected in rules.items():
        assert parse_selection(text)(documents) == tuple(map(expected, documents))
    controller = AdaptiveThreshold(0.2, 2, 20, 0.1, 0.4, 2, 0.0)
    text = "adaptive:rho=.2,gap=2,window=20,step=.1,tau=.4,lifetime=2,least=0"
    expected = tuple(select_adaptive(each, controller) for each in documents)
    assert parse_selection(text)(documents) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("statik", "unknown selection 'statik'; did you mean 'static'?"),
        ("static:tau=high", "expected tau=NUMBER"),
        ("static:gap=0", "gap = 0"),
        ("density", "found no rate in 'density'; expected boundaries a candidate"),
        ("density:rate=0.5", "rate = 0.5 with gap = 3 in 'density:rate=0.5'; expected boundaries"),
        ("adaptive", "found no rho"),
        ("adaptive:rho=0.4", "at most 1/3"),
        ("adaptive:rho=0.1,step=0", "a step above 0"),
        ("adaptive:rho=0.1,lifetime=0", "lifetime = 0"),
    ],
)
def test_rules_that_are_none(text, said):
    with pytest.raises(ReffreeError) as error:
        parse_selection(text)
    assert said in str(error.value)


def talk(*speakers):
    units = [f"unit {i}" for i in range(len(speakers))]
    return Document.build("talk", units, speakers=speakers)


def test_speakers_say_which_gaps_are_candidates():
    corpus = Corpus((talk("user", "bot", "user", "user", ""),))
    (mask,) = speaker_candidates(corpus, "user")
    assert mask.tolist() == [False, True, True, False]
    (both,) = speaker_candidates(corpus, ["user", "bot"])
    assert both.tolist() == [True, True, True, False]
    assert speaker_candidates(corpus, ()) is None


def test_speakers_that_are_not_there():
    corpus = Corpus((talk("user", "bot"),))
    said = refusal(speaker_candidates, corpus, "usr")
    assert said == (
        "found no unit of the speaker 'usr'; expected one of the corpus's, 'user', 'bot'; "
        "did you mean 'user'?"
    )
    without = Corpus((Document.build("plain", ["a", "b"]),))
    assert "document 'plain': found units without speakers" in refusal(
        speaker_candidates, without, ["user"]
    )


def test_candidates_of_another_length():
    assert "candidates of shape (2,) for 3 scores" in refusal(
        select_above, [1.0, 0.0, 1.0], candidates=[True, False]
    )
