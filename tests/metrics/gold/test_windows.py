"""Window metrics against the written-out definitions, segeval, nltk and the published values."""

from __future__ import annotations

import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from reffree.data.segmentation import Segmentation
from reffree.metrics.gold import pairs as pairs_module
from reffree.metrics.gold.metric import count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.metrics.gold.windows import (
    Pk,
    PkPrime,
    PrError,
    PrFalseAlarm,
    PrMiss,
    WindowDiff,
    WinPr,
    WinPrPrecision,
    WinPrRecall,
)
from reffree.reference import pk
from reffree.util.errors import InputError, OptionError
from tests.oracles import reference_based as oracles
from tests.properties import examples

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import segeval
    import segeval.data  # segeval would import these when they are first used
    import segeval.ml
    from nltk.metrics import segmentation as nltk_metrics

METRICS = [Pk, WindowDiff, PkPrime, PrError, PrMiss, PrFalseAlarm]
METRICS += [WinPr, WinPrPrecision, WinPrRecall]
PADDED = [partial(WindowDiff, padding="exact"), partial(WindowDiff, padding="segeval")]


@st.composite
def segmentations(draw, n):
    """No boundary, all boundaries, few, or any."""
    chance = draw(st.sampled_from(["none", "all", "few", "any"]))
    if chance == "few":
        marked = set(draw(st.lists(st.integers(1, max(1, n - 1)), max_size=3))) - {n}
    else:
        choice = {"none": st.just(False), "all": st.just(True), "any": st.booleans()}[chance]
        marked = {b for b in range(1, n) if draw(choice)}
    return list(Segmentation.from_boundaries(marked, n).masses)


@st.composite
def pairs(draw, max_units=14):
    n = draw(st.integers(1, max_units))
    return draw(segmentations(n)), draw(segmentations(n))


def agree(got, expected):
    if expected is None or got is None:
        return got is expected
    return got == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


# The definitions ------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@given(pair=pairs(), k=st.none() | st.integers(1, 17))
@example(pair=([1], [1]), k=None)
@example(pair=([1], [1]), k=1)
@example(pair=([1, 1], [2]), k=None)
@example(pair=([3], [1, 1, 1]), k=3)
@example(pair=([1] * 5, [1] * 5), k=None)
@example(pair=([5], [5]), k=None)
@examples(120)
def test_equals_the_definition(metric, pair, k):
    expected = getattr(oracles, metric.name)(*pair, k=k)
    assert agree(metric(k=k)(*pair), expected)


@pytest.mark.parametrize("padding", ["plain", "exact", "segeval"])
@given(pair=pairs(), k=st.none() | st.integers(1, 17))
@example(pair=([1], [1]), k=1)
@example(pair=([1, 2], [3]), k=9)
@examples(150)
def test_padding_equals_the_definition(padding, pair, k):
    expected = oracles.windowdiff(*pair, k=k, padding=padding)
    assert agree(WindowDiff(k=k, padding=padding)(*pair), expected)


@given(pairs(), st.floats(0, 4), st.floats(0, 4))
@examples(60)
def test_costs_equal_the_definition(pair, c_miss, c_fa):
    expected = oracles.pr_error(*pair, c_miss=c_miss, c_fa=c_fa)
    assert agree(PrError(c_miss=c_miss, c_fa=c_fa)(*pair), expected)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=9))
@example([5, 5])
@examples(200)
def test_window_size_equals_the_definition(reference):
    assert Pk().sizes(Pairs.of(reference, reference)).tolist() == [oracles.window_size(reference)]


@pytest.mark.parametrize(
    ("reference", "k"),
    [
        *([([5, 5], 2), ([7, 7], 4), ([9, 9], 4), ([1], 2), ([1] * 9, 2), ([10], 5)]),
        # Half of 2⁵³ + 3 lies halfway between two integers and is no float.
        ([2**53 + 3], 2**52 + 2),
        ([2**53 + 1], 2**52),
    ],
)
def test_halves_round_to_even(reference, k):
    given_pairs = Pairs(np.array([reference]), np.array([reference]))
    assert Pk().sizes(given_pairs).tolist() == [k]


# Of a corpus, and in words ----------------------------------------------------------------------


@given(st.lists(pairs(), min_size=1, max_size=5), st.none() | st.integers(1, 6))
@example([([2, 2], [4]), ([1, 1, 4], [6])], None)
@example([([1], [1])], None)
@examples(60)
def test_p_seg_is_that_of_the_corpus(batch, k):
    hypotheses, references = (list(side) for side in zip(*batch, strict=True))
    p_seg = oracles.share_of_windows(references, k)
    found = PkPrime(k=k)(hypotheses, references)
    for value, pair in zip(found, batch, strict=True):
        expected = oracles.pk_prime(*pair, k=k, p_seg=p_seg)
        assert agree(None if np.isnan(value) else float(value), expected)
        if p_seg is not None:
            assert agree(PkPrime(k=k, p_seg=float(p_seg))(*pair), expected)


def test_pk_prime_by_hand():
    # Windows of two gaps: of 6 each document has 2, 2 and none with a boundary, so P_seg is 4/18.
    references = [[4, 4], [2, 6], [8]]
    nothing = [[8]] * 3
    assert_allclose(WindowDiff(k=2)(nothing, references), [2 / 6, 2 / 6, 0])
    assert_allclose(PkPrime(k=2)(nothing, references), [4 / 18, 4 / 18, 0])
    # A boundary too many: false alarms in 2 of 4 windows, and where there are no others in 2 of 6.
    extra = [[2, 2, 4], [2, 4, 2], [2, 6]]
    assert_allclose(WindowDiff(k=2)(extra, references), [2 / 6, 2 / 6, 2 / 6])
    assert_allclose(PkPrime(k=2)(extra, references), [14 / 18 / 2, 14 / 18 / 2, 2 / 6])
    assert PkPrime(k=2, p_seg=0.5)([8], [4, 4]) == 0.5


@given(st.lists(pairs(), min_size=1, max_size=5))
@examples(60)
def test_no_boundaries_cost_p_seg_whatever_the_document(batch):
    references = [r for _, r in batch]
    p_seg = oracles.share_of_windows(references)
    found = PkPrime()([[sum(r)] for r in references], references)
    for value, reference in zip(found, references, strict=True):
        own = oracles.share_of_windows([reference])
        if own is not None and 0 < own < 1:
            assert value == pytest.approx(float(p_seg))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@given(batch=st.lists(pairs(), min_size=1, max_size=5))
@examples(25)
def test_one_window_of_a_corpus(metric, batch):
    hypotheses, references = (list(side) for side in zip(*batch, strict=True))
    k = oracles.corpus_window_size(references)
    settled = metric(k="corpus").over(lambda: [Pairs.of([r], [r]) for r in references])
    assert settled.k == k
    found = metric(k="corpus")(hypotheses, references)
    assert_array_equal(found, metric(k=k)(hypotheses, references))


def test_the_window_of_a_corpus_is_half_its_mean_segment():
    # Segments of 10 and of 3, 3, 4, 4: 24 units in 5, half of 4.8.
    references = [[10], [3, 3, 4, 4]]
    assert Pk(k="corpus").over(lambda: [Pairs.of([r], [r]) for r in references]).k == 2
    references = [[10], [7, 7]]
    assert Pk(k="corpus").over(lambda: [Pairs.of([r], [r]) for r in references]).k == 4


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@given(
    pair=pairs(max_units=8),
    words=st.lists(st.integers(0, 4), min_size=8, max_size=8),
    k=st.sampled_from([None, 1, 3, 7, "corpus"]),
)
@examples(25)
def test_in_words_a_document_is_as_long_as_its_words(metric, pair, words, k):
    units = [["one,", "the", "two", "three", "four"][:n] for n in words[: sum(pair[0])]]
    texts = [" ".join(unit) or "…" for unit in units]
    expected = metric(k=k)(*(oracles.in_words(side, words) for side in pair))
    assert agree(metric(k=k, unit="words")(*pair, texts), expected)
    terms = [sum(word != "the" for word in unit) for unit in units]
    expected = metric(k=k)(*(oracles.in_words(side, terms) for side in pair))
    assert agree(metric(k=k, unit="terms")(*pair, texts), expected)


def test_words_need_text():
    with pytest.raises(InputError, match=r"1 pair with the text of 0; .* or leave unit=words out"):
        Pk(unit="words")([2, 2], [4])
    with pytest.raises(InputError, match="segmentations of 4 units and a text of 3"):
        pk([2, 2], [4], unit="words", units=["a"] * 3)
    with pytest.raises(InputError, match="unit = letters; expected units or words or terms"):
        Pk(unit="letters")
    with pytest.raises(InputError, match=r"found k = document; expected a whole number.*k=corpus"):
        Pk(k="document")
    with pytest.raises(InputError, match=r"found p_seg = 1\.5; expected a number, 1 or less"):
        PkPrime(p_seg=1.5)
    units = ["one two three", "four", "five", "six seven"]
    assert pk([2, 2], [1, 3], k=2, unit="words", units=units) == Pk(k=2)([4, 3], [3, 4])


# Published values -----------------------------------------------------------------------------

REFERENCE = [2, 3, 5]


@given(pairs(max_units=30), st.integers(1, 6))
@examples(60)
def test_nltk_agrees(pair, k):
    assume(sum(pair[0]) > k)
    hypothesis, reference = (Segmentation(tuple(masses)).to_string("gap") for masses in pair)
    assert agree(Pk(k=k)(*pair), nltk_metrics.pk(reference, hypothesis, k))
    assert agree(WindowDiff(k=k)(*pair), nltk_metrics.windowdiff(reference, hypothesis, k))


@given(pairs(max_units=40), st.none() | st.integers(2, 6))
@examples(60)
def test_segeval_agrees(pair, k):
    n = sum(pair[0])
    assume(n > (k or oracles.window_size(pair[1])))
    size = {} if k is None else {"window_size": k}
    assert agree(Pk(k=k)(*pair), segeval.pk(*pair, **size))
    assert agree(WindowDiff(k=k)(*pair), segeval.window_diff(*pair, **size))
    padded = segeval.window_diff(*pair, lamprier_et_al_2007_fix=True, **size)
    assert agree(WindowDiff(k=k, padding="segeval")(*pair), padded)


# What the metrics promise ---------------------------------------------------------------------


@given(st.lists(pairs(), min_size=1, max_size=4), st.none() | st.integers(1, 6))
@examples(60)
def test_pk_prime_is_windowdiff_where_the_weights_cancel(batch, k):
    """With P_seg counted on the same windows: of a pair, and of a corpus counted as one."""
    for pair in batch:
        assert agree(PkPrime(k=k)(*pair), WindowDiff(k=k)(*pair))
    hypotheses, references = (list(side) for side in zip(*batch, strict=True))
    together = Pairs.of(hypotheses, references)
    metric = PkPrime(k=k).over(lambda: [Pairs.of(references, references)])
    pooled, expected = (m.value(m.counts(together).sum(0)) for m in (metric, WindowDiff(k=k)))
    assert_allclose(pooled, expected, atol=1e-12)


@given(pairs(), st.floats(0, 1))
@examples(60)
def test_no_boundaries_cost_a_miss(pair, c_miss):
    """Georgescul et al., section 4.3: placing no boundaries costs one half when costs are equal."""
    reference = pair[1]
    n = sum(reference)
    assume(len(reference) > 1 and n > oracles.window_size(reference))
    value = PrError(c_miss=c_miss, c_fa=1 - c_miss)([n], reference)
    assert value == pytest.approx(c_miss)


def test_the_worst_segmentation_of_the_paper_is_not_the_worst():
    """Boundaries everywhere but in the right places: "100 %" in the paper, 1/4 by its formula.

    Of the windows 1–2, 2–3, 3–4, 4–5, 5–6, 6–7, 7–8, 8–9 those at 2 and at 5 hold one boundary of
    each side; the other four hold two of the hypothesis and none of the reference.
    """
    complement = [1, 2, 1, 2, 1, 1, 1, 1]
    assert PrMiss(k=2)(complement, REFERENCE) == 0
    assert PrFalseAlarm(k=2)(complement, REFERENCE) == pytest.approx(1 / 2)
    assert PrError(k=2)(complement, REFERENCE) == pytest.approx(1 / 4)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@given(segmentations(12))
@examples(25)
def test_the_reference_itself_is_perfect(metric, masses):
    value = metric()(masses, masses)
    assert value in (None, 0 if metric.direction == "lower" else 1)


# Batches --------------------------------------------------------------------------------------


def test_parts_equal_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    gaps = rng.random((50, 19)) < 0.3
    batch = Pairs.of(gaps, gaps[::-1].copy())
    whole = count_pairs(WindowDiff(), batch)
    monkeypatch.setattr(pairs_module, "PAIR_ELEMENTS", 100)
    assert len(list(batch.chunks())) > 10
    assert_array_equal(count_pairs(WindowDiff(), batch), whole)


def test_sides_that_do_not_belong_together():
    three, two = [[5], [2, 3], [1, 4]], [[5], [4, 1]]
    with pytest.raises(InputError, match="found 3 hypotheses and 2 references; expected as many"):
        Pairs.of(three, two)
    with pytest.raises(InputError, match="of 5 units and a reference of 4 in pair 2;"):
        Pairs.of(two, [[5], [4]])
    with pytest.raises(InputError, match="of 5 units and a reference of 4;"):
        Pairs.of([5], [4])


@given(st.lists(pairs(), min_size=1, max_size=6))
@examples(60)
def test_summed_counts_give_the_pooled_value(batch):
    hypotheses, references = zip(*batch, strict=True)
    given_pairs = Pairs.of(list(hypotheses), list(references))

    def pooled(metric):
        value = metric.value(metric.counts(given_pairs).sum(0))
        assert value.shape == ()
        return None if np.isnan(value) else float(value)

    windows = [
        window for h, r in batch for window in oracles.boundary_counts(h, r, oracles.window_size(r))
    ]
    wrong = sum(h != r for h, r in windows)
    parted = sum((h > 0) != (r > 0) for h, r in windows)
    assert agree(pooled(WindowDiff()), oracles.ratio(wrong, len(windows)))
    assert agree(pooled(Pk()), oracles.ratio(parted, len(windows)))
    miss = oracles.ratio(sum(r > h for h, r in windows), sum(r > 0 for _, r in windows))
    false_alarm = oracles.ratio(sum(r < h for h, r in windows), len(windows))
    error = None if miss is None else Fraction(1, 2) * (miss + false_alarm)
    assert agree(pooled(PrError()), error)
    hits = sum(oracles.winpr_counts(h, r)[0] for h, r in batch)
    n_h, n_r = (sum(len(masses) - 1 for masses in side) for side in (hypotheses, references))
    assert agree(pooled(WinPrPrecision()), oracles.ratio(hits, n_h))
    assert agree(pooled(WinPrRecall()), oracles.ratio(hits, n_r))
    assert agree(pooled(WinPr()), oracles.ratio(2 * hits, n_h + n_r))


# Options --------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_window_holds_something(metric):
    with pytest.raises(
        InputError, match="found k = 0; expected a whole number, 1 or more; write k=5 or k=corpus"
    ):
        metric(k=0)


def test_costs_are_not_negative():
    with pytest.raises(InputError, match=r"found c_miss = -0.1; expected a number, 0 or more"):
        PrError(c_miss=-0.1)
    with pytest.raises(InputError, match="found c_fa = nan; expected a number, 0 or more"):
        PrError(c_fa=float("nan"))


def test_unknown_padding():
    with pytest.raises(OptionError, match="padding = lamprier; expected plain or exact or segeval"):
        WindowDiff(padding="lamprier")


def test_options_tell_metrics_apart():
    assert PrError(k=3) == PrError(k=3, c_miss=0.5) != PrError(k=3, c_miss=0.4)
    assert Pk() != PkPrime()
    with pytest.raises(AttributeError):
        Pk().k = 3
