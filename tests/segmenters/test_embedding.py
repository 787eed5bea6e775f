"""Segmenters over vectors, against literal searches, exhaustive ones and ruptures."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reffree.data.corpus import Corpus, Document
from reffree.metrics.free.engine import score_document
from reffree.segmenters import changepoint, optimal
from reffree.segmenters.base import Inputs
from reffree.segmenters.changepoint import ChangePoint, noise_penalty
from reffree.segmenters.optimal import Greedy, Optimal
from reffree.segmenters.posterior import LeastExpectedPk
from reffree.segmenters.texttiling import Depth, depths_of, gap_similarities
from reffree.util.errors import InputError
from tests.oracles.reference_free import cosine, document_score
from tests.oracles.selection import greedy
from tests.properties import examples

COUNTED = {method.name: method for method in (Depth, ChangePoint, Greedy, Optimal)}
METHODS = {**COUNTED, LeastExpectedPk.name: LeastExpectedPk}
KERNELS = ("linear", "cosine", "rbf")
ARPS = ("arp_std", "arp_std:p=1", "arp_cos", "arp_pair")
EVERY_METRIC = (*ARPS, "silhouette", "silhouette:average=units", "segrefree")


@st.composite
def vectors(draw, max_units=9):
    """Repeated, zero, opposite and distant vectors, and ones without any tie."""
    n = draw(st.integers(1, max_units))
    d = draw(st.integers(1, 3))
    if draw(st.booleans()):
        return np.random.default_rng(draw(st.integers(0, 1 << 30))).normal(size=(n, d))
    component = draw(
        st.sampled_from([st.integers(-2, 2).map(float), st.sampled_from([0.0, 1.0, 1e3])])
    )
    distinct = draw(st.lists(st.lists(component, min_size=d, max_size=d), min_size=1, max_size=n))
    return np.array(draw(st.lists(st.sampled_from(distinct), min_size=n, max_size=n)))


def inputs_of(*documents, seed=0):
    corpus = Corpus(tuple(Document.build(f"d{i}", ["x"] * len(x)) for i, x in enumerate(documents)))
    return Inputs(corpus, seed, documents)


def run(method, x):
    (found,) = method(inputs_of(x))
    return found


def masses_of(boundaries, n):
    return tuple(np.diff([0, *sorted(boundaries), n]).tolist())


def every_masses(n):
    return [masses_of(b, n) for k in range(n) for b in combinations(range(1, n), k)]


def topics(rng, masses, d=16, spread=0.4):
    return np.repeat(rng.normal(size=(len(masses), d)), masses, axis=0) + spread * rng.normal(
        size=(sum(masses), d)
    )


@pytest.mark.parametrize("name", COUNTED)
def test_gold_gives_the_number_of_boundaries(name):
    x = topics(np.random.default_rng(2), (6, 8, 10, 6))
    document = Document.build("d", ["x"] * 30, gold=(6, 8, 10, 6))
    inputs = Inputs(Corpus((document,)), 0, [x])
    assert len(METHODS[name](k="gold")(inputs)[0]) == 4
    with pytest.raises(InputError, match=f"no gold for {name}"):
        METHODS[name](k="gold")(inputs_of(x))


@pytest.mark.parametrize("name", METHODS)
def test_wrong_embeddings_are_refused(name):
    method = METHODS[name]()
    assert method.needs_embeddings
    corpus = Corpus((Document.build("d", ["x"] * 3),))
    with pytest.raises(InputError, match="no embeddings"):
        method(Inputs(corpus))
    for x in (np.zeros((4, 2)), np.zeros(3)):
        with pytest.raises(InputError, match="expected 3 rows, one for every unit"):
            method(Inputs(corpus, 0, [x]))
    with pytest.raises(InputError, match="NaN or infinity in the vector of unit 1"):
        method(Inputs(corpus, 0, [np.full((3, 2), np.nan)]))


def literal_depths(x, window):
    n = len(x)
    similarity = [
        cosine(x[max(0, b - window) : b].mean(axis=0), x[b : b + window].mean(axis=0))
        for b in range(1, n)
    ]
    depths = []
    for i, here in enumerate(similarity):
        depth = 0.0
        for step in (-1, 1):
            peak, j = here, i + step
            while 0 <= j < len(similarity) and similarity[j] >= peak:
                peak, j = similarity[j], j + step
            depth += peak - here
        depths.append(depth)
    return similarity, depths


@given(st.integers(0, 1 << 30), st.integers(1, 12), st.integers(1, 15))
def test_depths_are_hearst_s(seed, n, window):
    x = np.random.default_rng(seed).normal(size=(n, 3))
    similarity, depths = literal_depths(x, window)
    np.testing.assert_allclose(gap_similarities(x, window), similarity, atol=1e-12)
    np.testing.assert_allclose(depths_of(x, window), depths, atol=1e-9)


@given(st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=14))
def test_depth_crosses_plateaus(units):
    x = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])[units]  # similarities are exactly -1, 0, 1
    assert depths_of(x, 1).tolist() == literal_depths(x, 1)[1]


def test_depth_finds_topics():
    rng = np.random.default_rng(3)
    x = topics(rng, (12, 9, 15, 10))
    assert run(Depth(k=3), x).masses == (12, 9, 15, 10)
    assert run(Depth(threshold=1.5), x).masses == (12, 9, 15, 10)
    n_boundaries = [len(run(Depth(threshold=c), x)) - 1 for c in (-1.0, 0.0, 1.0, 2.0)]
    assert n_boundaries == sorted(n_boundaries, reverse=True)


def test_no_valley_no_boundary():
    identical = np.repeat(np.random.default_rng(5).normal(size=(1, 8)), 30, axis=0)
    for threshold in (-3.0, 0.5):
        assert run(Depth(threshold=threshold), identical).masses == (30,)


def gram(x, kernel):
    if kernel == "cosine":
        return np.array([[cosine(a, b) for b in x] for a in x])
    if kernel == "linear":
        return x @ x.T
    squared = ((x[:, None] - x[None]) ** 2).sum(2)
    pairs = squared[np.triu_indices(len(x), 1)]
    width = np.median(pairs) if len(pairs) else 0.0
    if width == 0.0:
        width = np.median(pairs[pairs > 0]) if pairs.any() else 1.0
    return np.exp(-np.clip(squared / width, 0.01, 100.0))


def kernel_cost(products, masses):
    total, start = 0.0, 0
    for mass in masses:
        part = products[start : start + mass, start : start + mass]
        total += float(np.trace(part) - part.sum() / mass)
        start += mass
    return total


@given(vectors(7), st.sampled_from(KERNELS), st.integers(0, 5), st.integers(1, 3))
@examples(150)
def test_k_change_points_are_the_best(x, kernel, k, min_size):
    products = gram(x, kernel)
    found = run(ChangePoint(kernel=kernel, k=k, min_size=min_size), x)
    k = max(0, min(k, len(x) // min_size - 1))
    assert len(found) == k + 1
    costs = [
        kernel_cost(products, masses)
        for masses in every_masses(len(x))
        if len(masses) == k + 1 and (k == 0 or min(masses) >= min_size)
    ]
    scale = max(1.0, np.abs(products).max())
    assert kernel_cost(products, found.masses) == pytest.approx(min(costs), abs=1e-9 * scale)


@given(
    vectors(7),
    st.sampled_from(KERNELS),
    st.sampled_from([0.01, 0.1, 0.5, 1.0, 10.0]),
    st.integers(1, 3),
)
@example(x=np.array([[0.0]] * 5 + [[3.0]]), kernel="rbf", penalty=0.8, min_size=1)
@examples(150)
def test_penalised_change_points_are_the_best(x, kernel, penalty, min_size):
    products = gram(x, kernel)
    found = run(ChangePoint(kernel=kernel, penalty=penalty, min_size=min_size), x)
    costs = {
        masses: kernel_cost(products, masses) + penalty * (len(masses) - 1)
        for masses in every_masses(len(x))
        if len(masses) == 1 or min(masses) >= min_size
    }
    scale = max(1.0, np.abs(products).max())
    assert costs[found.masses] == pytest.approx(min(costs.values()), abs=1e-9 * scale)


def test_scale_moves_the_linear_kernel_only():
    x = topics(np.random.default_rng(7), (8, 8, 8))
    linear = ChangePoint(kernel="linear", penalty=10.0)
    scaled = ChangePoint(kernel="linear", penalty=10.0 * 2.0**20)
    assert run(linear, x) == run(scaled, 2.0**10 * x)
    for method in (ChangePoint(), ChangePoint(kernel="rbf"), ChangePoint(penalty=1.0)):
        assert run(method, x) == run(method, 1000 * x)


@pytest.mark.parametrize("kernel", KERNELS)
def test_noise_has_no_change_points_and_topics_have(kernel):
    rng = np.random.default_rng(8)
    noise = [rng.normal(size=(n, 24)) * rng.uniform(0.1, 2, size=24) for n in (10, 60, 60, 200)]
    assert all(len(s) == 1 for s in ChangePoint(kernel=kernel)(inputs_of(*noise)))
    assert run(ChangePoint(kernel=kernel), topics(rng, (12, 9, 15, 10))).masses == (12, 9, 15, 10)


@pytest.mark.parametrize("n_dimensions", [1, 5, 50])
def test_noise_penalty_is_a_bound_and_not_a_wide_one(n_dimensions):
    """Chernoff's bound of a weighted sum of squares, by simulation and by its own definition."""
    rng = np.random.default_rng(9)
    eigenvalues = rng.uniform(0.1, 2, size=n_dimensions)
    penalty = noise_penalty(eigenvalues, 200)
    sums = np.square(rng.normal(size=(100_000, n_dimensions))) @ eigenvalues
    assert 1 / 200 / 50 < np.mean(sums >= penalty) < 1 / 200
    s = np.linspace(0, 0.5 / eigenvalues.max(), 20_001)[1:-1, None]
    exponents = s[:, 0] * penalty + np.log1p(-2 * s * eigenvalues).sum(1) / 2
    assert exponents.max() == pytest.approx(math.log(200), rel=1e-3)


def test_long_documents_are_sampled(monkeypatch):
    x = topics(np.random.default_rng(10), (30, 25, 40))
    for kernel in ("cosine", "rbf"):
        whole = run(ChangePoint(kernel=kernel), x)
        with monkeypatch.context() as patch:
            patch.setattr(changepoint, "SAMPLED", 12)
            assert run(ChangePoint(kernel=kernel), x) == whole
        assert whole.masses == (30, 25, 40)


def loss_by_definition(x, metric):
    """Losses from the oracles, infinite where undefined, neutral without a boundary."""
    name, _, option = metric.partition(":")
    keywords = {"p=1": {"p": 1}, "average=units": {"average": "units"}}.get(option, {})
    known = {}

    def loss(boundaries):
        if boundaries not in known:
            known[boundaries] = compute(masses_of(boundaries, len(x)))
        return known[boundaries]

    def compute(masses):
        if len(masses) == 1:
            return math.inf if name == "segrefree" else 0.5
        raw = document_score(x, masses, name, **keywords)
        if raw is None:
            return math.inf
        return raw if name == "segrefree" else (1 - raw) / 2

    return loss


@given(
    vectors(7), st.sampled_from(EVERY_METRIC), st.sampled_from([None, 0, 1, 2, 4]), st.booleans()
)
@examples(120)
def test_greedy_is_the_literal_search(x, metric, k, climb):
    found = run(Greedy(metric=metric, k=k, climb=climb), x)
    expected = greedy(len(x), k, climb, loss_by_definition(x, metric))
    assert set(found.boundaries) == set(expected)


@pytest.mark.parametrize("metric", ["arp_pair", "silhouette", "segrefree"])
def test_climbing_is_the_literal_search(metric):
    """Documents long enough for every kind of change to be made."""
    rng = np.random.default_rng(16)
    changed = set()
    for k in (None, 3):
        for _ in range(12):
            x = rng.normal(size=(11, 2))
            found = run(Greedy(metric=metric, k=k), x)
            assert set(found.boundaries) == set(
                greedy(len(x), k, True, loss_by_definition(x, metric))
            )
            if found != run(Greedy(metric=metric, k=k, climb=False), x):
                changed.add(k)
    assert changed == {None, 3}


def test_greedy_without_room_for_tables(monkeypatch):
    """Documents whose tables do not fit are scored by the slower path, with the same result."""
    x = topics(np.random.default_rng(12), (5, 7, 6))
    expected = run(Greedy(), x)
    monkeypatch.setattr(
        "reffree.metrics.free.fast.document.CompiledDocument.prepare", lambda *_: False
    )
    assert run(Greedy(), x) == expected


@given(vectors(max_units=10), st.sampled_from(ARPS), st.sampled_from([None, 0, 1, 2, 3, 5, 9]))
@examples(120)
def test_optimal_equals_exhaustive_search(x, metric, k):
    n = len(x)
    found = run(Optimal(metric=metric, k=k), x)
    allowed = [m for m in every_masses(n) if min(m[:-1], default=2) > 1]
    if k is not None:
        k = min(k, (n - 1) // 2)
        allowed = [m for m in allowed if len(m) == k + 1]
    assert found.masses in allowed
    (scores,) = score_document(x, [found, *allowed], [metric]).values()
    if not scores.isnan().all():
        best = np.nanmax(scores.numpy())
        assert scores[0].item() == pytest.approx(best, abs=1e-8, rel=1e-8)


def test_too_long_to_search(monkeypatch):
    monkeypatch.setattr(optimal, "table_bytes", lambda band: 1 << 60)
    with pytest.raises(InputError, match="document 'd0': found 3 units, for which a search needs"):
        run(Optimal(), np.eye(3))
