"""Search-adjusted gain: the search against every segmentation, ruptures and its own promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
import ruptures
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reffree.metrics.free.fast.search import largest_gains, search_document
from reffree.metrics.free.sag import Sag

from reffree.data.masses import mass_matrix
from reffree.metrics.free.engine import score_documents
from reffree.metrics.free.fast import document as compiled
from reffree.metrics.free.fast import search
from reffree.metrics.free.fast.document import CompiledDocument
from reffree.metrics.free.fast.vectors import Vectors
from reffree.metrics.registry import parse_metrics
from reffree.util.errors import InputError
from tests.metrics.free.test_scoring import random_masses
from tests.oracles.search import (
    best_gain,
    every_segmentation,
    gain,
    orders,
    random_gain,
    search_gain,
    within,
)
from tests.oracles.search import sag as sag_oracle
from tests.properties import examples


@st.composite
def documents(draw, min_units=1, max_units=9):
    """Repeated, zero, opposite and distant vectors."""
    n = draw(st.integers(min_units, max_units))
    d = draw(st.integers(1, 3))
    component = draw(
        st.sampled_from(
            [
                st.integers(-2, 2).map(float),
                st.sampled_from([0.0, 1.0]),
                st.floats(-1, 1, allow_nan=False).map(lambda x: round(x, 3)),
                st.sampled_from([0.0, 1e-3, 1e3]),
            ]
        )
    )
    distinct = draw(st.lists(st.lists(component, min_size=d, max_size=d), min_size=1, max_size=n))
    return np.array(draw(st.lists(st.sampled_from(distinct), min_size=n, max_size=n)))


def gains_in_order(x, k_max):
    units = np.asarray(x, dtype=np.float64)
    squared = np.square(units[:, None] - units[None]).sum(2)
    return largest_gains(squared, np.arange(len(x))[None], k_max, threads=1)[0]


def search_gains(xs, k_max, **options):
    """Gains in each document, on the scale of its vectors as given."""
    found = []
    for x, k in zip(xs, k_max, strict=True):
        vectors = Vectors.of(x)
        gains = search_document(vectors, k, **options).gains
        found.append(torch.from_numpy(np.ldexp(gains, 2 * vectors.exponent)))
    return found


def whole(x):
    return within(np.asarray(x, dtype=np.float64), [len(x)])


# The search -----------------------------------------------------------------------------------


@given(documents())
@examples(120)
def test_no_segmentation_gains_more(x):
    got = gains_in_order(x, len(x) - 1)
    expected = [best_gain(x, k) for k in range(len(x))]
    assert_allclose(got, expected, rtol=0, atol=1e-12 * (1 + whole(x)))


@given(st.lists(documents(max_units=7), min_size=1, max_size=3), st.integers(0, 3))
@examples(25)
def test_shuffled_gains_equal_the_definition(xs, seed):
    xs = [x[:, :1] for x in xs]
    k_max = [len(x) - 1 for x in xs]
    got = search_gains([torch.tensor(x) for x in xs], k_max, n_shuffles=3, seed=seed)
    for x, gains in zip(xs, got, strict=True):
        expected = [search_gain(x, k, n_shuffles=3, seed=seed) for k in range(len(x))]
        assert_allclose(gains.numpy(), expected, rtol=0, atol=1e-12 * (1 + whole(x)))


@pytest.mark.parametrize("n", [40, 75, 120])
def test_same_gain_as_ruptures(n):
    """An independent exact search: dynamic programming of ruptures 1.1, linear kernel."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, 5)) + np.repeat(rng.normal(size=(5, 5)), n // 5, axis=0)
    shuffle = orders(n, 1, seed=4)[0]
    in_order = gains_in_order(x, 30)
    shuffled = search_gains([torch.tensor(x)], [30], n_shuffles=1, seed=4)[0]
    for k in (1, 2, 3, 7, 15, 30):
        for units, got in ((x, in_order[k]), (x[shuffle], shuffled[k].item())):
            ends = ruptures.KernelCPD(kernel="linear", min_size=1).fit(units).predict(n_bkps=k)
            assert got == pytest.approx(gain(units, np.diff([0, *ends]).tolist()), rel=1e-9)


@given(documents(min_units=2), st.integers(0, 5))
@examples(40)
def test_every_boundary_adds_until_nothing_is_left(x, seed):
    gains = search_gains([torch.tensor(x)], [len(x) - 1], n_shuffles=4, seed=seed)[0].numpy()
    tiny = 1e-12 * (1 + whole(x))
    assert gains[0] == 0
    assert (np.diff(gains) >= -tiny).all()
    assert gains[-1] == pytest.approx(whole(x), abs=tiny)


def test_random_boundaries_gain_what_chance_says():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 3)) ** 3
    for k in (1, 3, 6):
        ways = every_segmentation(9, k)
        drawn = [
            gain(x[rng.permutation(9)], ways[rng.integers(len(ways))]) / whole(x)
            for _ in range(3000)
        ]
        error = np.std(drawn) / math.sqrt(len(drawn))
        assert abs(np.mean(drawn) - random_gain(x, k) / whole(x)) < 4 * error
        assert random_gain(x, k) == pytest.approx(whole(x) * k / 8)


# Batches, seeds, memory -----------------------------------------------------------------------


def some_documents(dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    lengths = [2, 30, 7, 29, 30, 1, 64, 11]
    return [torch.randn(n, 6, generator=generator, dtype=dtype) for n in lengths]


def test_other_documents_change_nothing():
    xs = some_documents()
    k_max = [min(len(x) - 1, 3 + i) for i, x in enumerate(xs)]
    together = search_gains(xs, k_max, n_shuffles=5, seed=2)
    assert [len(gains) for gains in together] == [k + 1 for k in k_max]
    for i in range(len(xs)):
        alone = search_gains([xs[i]], [len(xs[i]) - 1], n_shuffles=5, seed=2)[0]
        assert_allclose(together[i], alone[: k_max[i] + 1], rtol=0, atol=1e-9)
    backwards = search_gains(xs[::-1], k_max[::-1], n_shuffles=5, seed=2)[::-1]
    for one, other in zip(together, backwards, strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-9)


def test_small_chunks_change_nothing(monkeypatch):
    monkeypatch.setattr(search, "WHOLE", 40)
    monkeypatch.setattr(search, "LONGEST", 50)
    monkeypatch.setattr(search, "ANCHOR", 4)
    xs = some_documents()
    k_max = [len(x) - 1 for x in xs]
    at_once = search_gains(xs, k_max, n_shuffles=7, seed=0)
    monkeypatch.setattr(search, "SHUFFLES_AT_ONCE", 3)
    for one, other in zip(at_once, search_gains(xs, k_max, n_shuffles=7, seed=0), strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()


def test_same_seed_same_bytes():
    xs = some_documents(torch.float32)
    before = [x.clone() for x in xs]
    k_max = [len(x) - 1 for x in xs]
    one, two, other = (search_gains(xs, k_max, n_shuffles=4, seed=s) for s in (3, 3, 4))
    for a, b in zip(one, two, strict=True):
        assert a.dtype == torch.float64
        assert a.numpy().tobytes() == b.numpy().tobytes()
    assert not torch.equal(one[1], other[1])
    assert all(torch.equal(a, b) for a, b in zip(xs, before, strict=True))


# Long documents -------------------------------------------------------------------------------


def excess(gains, x):
    k = torch.arange(len(gains), dtype=torch.float64)
    return gains / whole(x) - k / (len(x) - 1)


@pytest.mark.parametrize("d", [2, 64])
def test_windows_are_as_near_as_stated(monkeypatch, d):
    """The limits are scaled down; the stated error at full size is smaller."""
    x = torch.randn(200, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    exact = excess(search_gains([x], [160], n_shuffles=64, seed=0)[0], x)
    monkeypatch.setattr(search, "WHOLE", 100)
    monkeypatch.setattr(search, "ANCHOR", 12)
    estimated = excess(search_gains([x], [160], n_shuffles=64, seed=0)[0], x)
    few = search.ANCHOR
    assert_allclose(estimated[: few + 1], exact[: few + 1], rtol=1e-9, atol=1e-12)
    # Standard error of either: about 1 %.
    assert_allclose(estimated[few:], exact[few:], rtol=0.03)
    assert_allclose(estimated[few + 1] / estimated[few], exact[few + 1] / exact[few], rtol=0.005)


def test_gains_of_long_documents_do_not_depend_on_what_else_is_asked(monkeypatch):
    monkeypatch.setattr(search, "WHOLE", 40)
    monkeypatch.setattr(search, "LONGEST", 60)
    monkeypatch.setattr(search, "ANCHOR", 6)
    for n in (50, 100):
        x = torch.randn(n, 3, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
        every = search_gains([x], [n - 1], n_shuffles=6, seed=1)[0]
        assert every[-1] == pytest.approx(whole(x))
        for k in (1, 6, 7, 30):
            some = search_gains([x], [k], n_shuffles=6, seed=1)[0]
            assert_allclose(some, every[: k + 1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("component", [0.0, 1.0, 0.1])
def test_identical_units_of_a_long_document_gain_nothing(monkeypatch, component):
    monkeypatch.setattr(search, "WHOLE", 20)
    monkeypatch.setattr(search, "ANCHOR", 4)
    gains = search_gains([torch.full((50, 3), component)], [30], n_shuffles=3, seed=0)[0]
    assert_allclose(gains, 0, atol=1e-12)


# The metric -----------------------------------------------------------------------------------


class Scores:
    """Scores of lists of masses, one list per document, under one another."""

    def __init__(self, metric, xs, masses):
        (found,) = score_documents(
            [np.asarray(x) for x in xs], masses, [metric], unsegmented="skip", keep_segments=True
        ).values()
        self.documents, self.weights, self.left_out = (
            torch.cat([getattr(part, field) for part in found])
            for field in ("documents", "weights", "left_out")
        )
        self.segments = torch.cat([part.segments.flatten() for part in found])


@given(st.data())
@examples(60)
def test_sag_equals_the_definition(data):
    xs = [x[:, :1] for x in data.draw(st.lists(documents(max_units=7), min_size=1, max_size=3))]
    masses = [[[len(x)], [1] * len(x), *data.draw(st.lists(cuts(len(x)), max_size=3))] for x in xs]
    scores = Scores(Sag(shuffles=3, seed=5), xs, masses)
    expected = [
        sag_oracle(x, m, n_shuffles=3, seed=5)
        for x, given_masses in zip(xs, masses, strict=True)
        for m in given_masses
    ]
    for raw, weight, want in zip(scores.documents, scores.weights, expected, strict=True):
        if want is None:
            assert math.isnan(raw)
            assert weight == 0
        else:
            assert raw.item() == pytest.approx(want[0] / want[1], rel=1e-6, abs=1e-6)
            assert weight > 0
    assert scores.segments.isnan().all()
    assert not scores.left_out.any()


def cuts(n):
    marks = st.lists(st.booleans(), min_size=n - 1, max_size=n - 1)
    return marks.map(lambda marks: np.diff([0, *np.flatnonzero(marks) + 1, n]).tolist())


def test_weights_are_on_the_scale_of_the_vectors():
    """Σ(G - G_random) / Σ(G_search - G_random) needs weights on the vectors' own scale."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(8, 2)), rng.normal(size=(7, 2)) * 5
    masses = [[[3, 5]], [[2, 2, 3]]]
    scores = Scores(Sag(shuffles=3), [x, y], masses)
    parts = [
        sag_oracle(units, m[0], n_shuffles=3, seed=0)
        for units, m in zip([x, y], masses, strict=True)
    ]
    assert_allclose(scores.weights, [bought for _, bought in parts], rtol=1e-9)
    pooled = sum(gained for gained, _ in parts) / sum(bought for _, bought in parts)
    mean = (scores.documents * scores.weights).sum() / scores.weights.sum()
    assert mean.item() == pytest.approx(pooled)


def test_planted_topics_beat_any_search_in_noise():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 16)) + np.repeat(1.5 * rng.normal(size=(6, 16)), 10, axis=0)
    found = ruptures.KernelCPD(kernel="linear", min_size=1).fit(x).predict(n_bkps=5)
    noise = x[rng.permutation(60)]
    found_in_noise = ruptures.KernelCPD(kernel="linear", min_size=1).fit(noise).predict(n_bkps=5)
    chance = [random_masses(rng, 60, 6) for _ in range(300)]
    searched = [np.diff([0, *ends]).tolist() for ends in (found, found_in_noise)]
    scores = Scores(Sag(shuffles=32), [x, noise], [[[10] * 6, searched[0]], [searched[1]]])
    gold, best, bought = scores.documents.tolist()
    assert best >= gold > 2
    assert 0.5 < bought < 1.5
    scores = Scores(Sag(shuffles=32), [noise], [chance])
    assert abs(scores.documents.mean().item()) < 0.2


def test_nothing_can_be_bought_from_units_equally_far_apart():
    rotated = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    masses = [[3, 3], [1, 2, 3]]
    scores = Scores(Sag(shuffles=4), [np.eye(6), rotated], [masses, masses])
    assert scores.documents.isnan().all()
    assert not scores.weights.any()


def test_one_unit_and_two():
    scores = Scores(Sag(shuffles=4), [[[1.0]], [[1.0], [2.0]]], [[[1]], [[2], [1, 1]]])
    assert scores.documents.isnan().all()


def test_searches_once_per_document(monkeypatch):
    calls = []

    def watched(vectors, k_max, **options):
        calls.append(k_max)
        return search_document(vectors, k_max, **options)

    monkeypatch.setattr(compiled, "search_document", watched)
    metric, x = Sag(shuffles=2), np.random.default_rng(0).normal(size=(20, 2))
    document = CompiledDocument(torch.from_numpy(x))

    def raw(metric, masses):
        matrix = mass_matrix(masses, 20)
        return metric.scores(document, document.score_all([lambda: matrix], lambda: 1 << 30))[0]

    # One boundary less than all there are is the most that has a score.
    first = raw(metric, [[5] * 4, [20], [1] * 20])
    assert calls == [3]
    raw(metric, [[10, 10], [5] * 4])
    assert calls == [3]
    raw(metric, [[10, 2, 2, 2, 2, 2]])
    assert calls == [3, 6]
    raw(metric, [[2] * 10])
    assert calls == [3, 6, 12]
    assert raw(metric, [[5] * 4]).tobytes() == first[:1].tobytes()
    raw(Sag(shuffles=2, seed=1), [[10, 10]])
    raw(Sag(shuffles=3), [[10, 10]])
    assert calls == [3, 6, 12, 1, 1]


def test_scale_and_place_of_the_vectors_do_not_matter():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 4))
    masses = [[random_masses(rng, 30, k) for k in (2, 5, 10, 29)]]
    plain = Scores(Sag(shuffles=4), [x], masses)
    for other in (x * 1e-150, x * 1e150, x + 1000):
        scores = Scores(Sag(shuffles=4), [other], masses)
        assert_allclose(scores.documents, plain.documents, rtol=1e-6)


def test_metrics_are_equal_by_their_options():
    assert Sag() == Sag(shuffles=128, seed=0)
    assert Sag(seed=1) != Sag()
    assert len({Sag(), Sag(), Sag(shuffles=8)}) == 2
    assert Sag.orientation.loss(0.0) == 1.0
    assert Sag.orientation.loss(1.5) == -0.5


@pytest.mark.parametrize("shuffles", [0, -3, 10_001, 1_000_000_000])
def test_shuffles_are_bounded(shuffles):
    bounded = "a whole number, (1 or more|10,000 or less)"
    with pytest.raises(InputError, match=f"found shuffles = {shuffles} .*expected {bounded}"):
        parse_metrics([f"sag:shuffles={shuffles}"])


@pytest.mark.parametrize("n", [12, 600])
@pytest.mark.parametrize("scale", [1e-304, 1e-150, 1e150, 1e304, 1.7e308])
def test_vectors_of_any_scale_can_be_pooled(scale, n):
    """Raw scores do not change, and a thousand documents' weights have a finite sum of squares."""
    x = np.random.default_rng(n).uniform(-1, 1, size=(n, 3))
    masses = [[n // 2, n - n // 2], [n // 3, n - n // 3]]
    metrics = parse_metrics(["sag:shuffles=3"])
    (plain,) = score_documents([x], [masses], metrics).values()
    (scaled,) = score_documents([x * scale], [masses], metrics).values()
    assert_allclose(scaled[0].documents, plain[0].documents, rtol=1e-9)
    weights = scaled[0].weights.numpy()
    assert (weights > 0).all()
    assert np.isfinite(1000 * np.square(weights)).all()
    assert_allclose(weights[1] / weights[0], (plain[0].weights[1] / plain[0].weights[0]).item())


def test_long_documents_are_measured_from_their_mean(monkeypatch):
    """Pairs of all units would take the square of their number."""
    x = torch.randn(90, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64) + 5
    exact = search_document(Vectors.of(x), 1, n_shuffles=1, seed=0).whole
    monkeypatch.setattr(search, "LONGEST", 50)
    monkeypatch.setattr(search, "WHOLE", 40)
    assert search_document(Vectors.of(x), 1, n_shuffles=1, seed=0).whole == pytest.approx(exact)
    assert exact == pytest.approx(whole(x))
    noise = (torch.ones(90, 4) + 1e-7 * torch.rand(90, 4)).float()
    assert search_document(Vectors.of(noise), 5, n_shuffles=1, seed=0).whole == 0


def test_gains_in_windows_do_not_depend_on_scale():
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    one, other = (search._window_excess(Vectors.of(v), 20, 12, 4, 0) for v in (x, x / 1024))
    assert np.abs(one).max() > 0.01
    assert_allclose(one, other, rtol=1e-9, atol=1e-12)
