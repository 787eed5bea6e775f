"""Hard inputs against arithmetic of 60 digits, and what counts as identical."""

from __future__ import annotations

from contextlib import nullcontext

import mpmath
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from reffree.metrics.free.engine import score_document, score_documents
from reffree.metrics.registry import COMPILED, WITHOUT_SEARCH, parse_metrics
from tests.metrics.free.test_scoring import by_torch

mpmath.mp.dps = 60


def exact_vectors(x):
    return [[mpmath.mpf(float(v)) for v in row] for row in x]


def dot(a, b):
    return mpmath.fsum(p * q for p, q in zip(a, b, strict=True))


def minus(a, b):
    return [p - q for p, q in zip(a, b, strict=True)]


def mean_of(rows):
    return [mpmath.fsum(column) / len(rows) for column in zip(*rows, strict=True)]


def norm(a):
    return mpmath.sqrt(dot(a, a))


def dispersion(rows, kind):
    centre = mean_of(rows)
    if kind == "std":
        return mpmath.fsum(dot(minus(r, centre), minus(r, centre)) for r in rows) / len(rows)
    if kind == "cos":
        cosines = [dot(centre, r) / (norm(centre) * norm(r)) for r in rows]
    else:
        pairs = [(a, b) for i, a in enumerate(rows) for b in rows[:i]]
        cosines = [dot(a, b) / (norm(a) * norm(b)) for a, b in pairs]
    return 1 - mpmath.fsum(cosines) / len(cosines)


def exact_arp(x, m, s, kind):
    """RP of segment ``s`` of equal masses ``m`` > 1."""
    rows = exact_vectors(x[s * m : (s + 2) * m])
    left = -(-m // 2)
    inter = dispersion(rows[m - left : m + m // 2], kind)
    intra = dispersion(rows[:m], kind)
    return float((inter - intra) / (inter + intra))


def exact_silhouette(x, m, s):
    own, after = exact_vectors(x[s * m : (s + 1) * m]), exact_vectors(x[(s + 1) * m : (s + 2) * m])
    before = exact_vectors(x[(s - 1) * m : s * m])
    values = []
    for i, unit in enumerate(own):
        a = mpmath.fsum(norm(minus(unit, o)) for o in own[:i] + own[i + 1 :]) / (m - 1)
        b = min(mpmath.fsum(norm(minus(unit, o)) for o in side) / m for side in (before, after))
        values.append((b - a) / max(a, b))
    return float(mpmath.fsum(values) / m)


def exact_segrefree(x, m, s):
    segments = [exact_vectors(x[k * m : (k + 1) * m]) for k in (s - 1, s, s + 1)]
    centres = [mean_of(rows) for rows in segments]
    spread = [
        mpmath.fsum(norm(minus(r, c)) for r in rows) / m / (1 - 1 / mpmath.sqrt(m))
        for rows, c in zip(segments, centres, strict=True)
    ]
    ratios = [(spread[1] + spread[k]) / norm(minus(centres[1], centres[k])) for k in (0, 2)]
    return float(max(ratios))


def nearly_identical(rng, n=10_000, d=6):
    return rng.normal(size=d) + 1e-6 * rng.normal(size=(n, d))


def of_all_lengths(rng, n=600, d=6):
    """Norms from 1e-6 to 1e6 in one document, neighbours of similar norm."""
    return rng.normal(size=(n, d)) * 10 ** np.linspace(-6, 6, n)[:, None]


def far_from_the_origin(rng, n=400, d=6):
    return rng.normal(size=(n, d)) + 1e7


@pytest.mark.parametrize("path", [nullcontext, by_torch])
@pytest.mark.parametrize("make", [nearly_identical, of_all_lengths, far_from_the_origin])
def test_hard_documents_against_sixty_digits(make, path):
    rng = np.random.default_rng(0)
    x = make(rng)
    m = 5
    masses = [m] * (len(x) // m)
    with path():
        raw = score_documents([x], [[masses]], parse_metrics(WITHOUT_SEARCH), keep_segments=True)
    for s in (1, 2, len(masses) // 2, len(masses) - 2):
        expected = {
            **{f"arp_{kind}": exact_arp(x, m, s, kind) for kind in ("std", "cos", "pair")},
            "silhouette": exact_silhouette(x, m, s),
            "segrefree": exact_segrefree(x, m, s),
        }
        for name, value in expected.items():
            got = raw[name][0].segments[0][s].item()
            assert got == pytest.approx(value, rel=1e-6, abs=1e-6), (name, s)


def of_wild_lengths(rng, n=600, d=6):
    """Neighbours' norms differ by up to twelve orders of magnitude."""
    return rng.normal(size=(n, d)) * 10 ** rng.uniform(-6, 6, size=n)[:, None]


def test_the_compiled_loop_is_as_exact():
    x = torch.as_tensor(of_wild_lengths(np.random.default_rng(1), n=300))
    masses = [[5] * 60, [7, 3] * 30, [1, 4] * 60]
    scores = score_document(x, masses, COMPILED)
    with by_torch():
        expected = score_document(x, masses, COMPILED)
    for name in COMPILED:
        assert_allclose(scores[name], expected[name], rtol=1e-7, atol=1e-7, err_msg=name)


def test_a_far_unit_leaves_other_segments_alone():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(20, 4))
    far = np.concatenate([x, 1e7 * rng.normal(size=(5, 4))])
    metrics = parse_metrics(WITHOUT_SEARCH)
    near = score_documents([x], [[[5] * 4]], metrics, keep_segments=True)
    with_far = score_documents([far], [[[5] * 5]], metrics, keep_segments=True)
    for name in near:
        a, b = near[name][0].segments[0][:3], with_far[name][0].segments[0][:3]
        assert_allclose(b, a, rtol=1e-6, atol=1e-9, err_msg=name)


def test_the_same_sentence_from_two_batches_is_one():
    """Float32 vectors of one text differ in the last bits from batch to batch."""
    rng = np.random.default_rng(3)
    sentence = rng.normal(size=384)
    sentence /= np.linalg.norm(sentence)
    noisy = (sentence + 2e-8 * rng.normal(size=(30, 384))).astype(np.float32)
    scores = score_document(noisy, [[10, 20], [1] * 30, [5, 1, 24]])
    for name in ("arp_std", "arp_cos", "arp_pair", "silhouette"):
        assert scores[name].tolist() == [0, 0, 0], name
    assert scores["segrefree"].isnan().tolist() == [True, False, True]
    # In float64 the same differences are meant.
    meant = score_document(noisy.astype(np.float64), [[10, 20]])
    assert all(meant[name].item() != 0 for name in ("arp_std", "arp_cos", "silhouette"))


def test_opposite_vectors_have_no_centroid_direction():
    x = np.array([[1.0, 0], [-1, 1e-12], [0, 1], [0, -1], [1, 1], [1, 1.1]])
    # Both pairs' centroids vanish: cosine 0, dispersion 1 on each side of the first boundary.
    segments = score_documents([x], [[[2, 2, 2]]], parse_metrics(["arp_cos"]), keep_segments=True)
    assert abs(segments["arp_cos"][0].segments[0][0].item()) < 1


def test_equal_centroids_of_different_units_are_left_out():
    x = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [5, 5], [6, 5]])
    raw = score_documents([x], [[[2, 2, 2]]], parse_metrics(["segrefree"]), keep_segments=True)
    assert raw["segrefree"][0].left_out.tolist() == [1]
    assert np.isnan(raw["segrefree"][0].segments[0]).tolist() == [True, False, False]
    single = score_documents([x], [[[1] * 6]], parse_metrics(["segrefree"]))
    assert single["segrefree"][0].left_out.tolist() == [0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_neighbours_are_one(dtype):
    x = torch.tensor([[1.0, 0.5], [1.0, 0.5], [1.0, 0.5], [1.0, 0.5]], dtype=dtype)
    x[1, 0] = torch.nextafter(x[1, 0].float(), torch.tensor(2.0)).to(dtype)
    bumped = x.clone()
    bumped.view(torch.int16)[1, 0] += 1  # the next representable number
    assert score_document(bumped, [[2, 2]])["arp_std"].item() == 0


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("path", [nullcontext, by_torch])
def test_parallel_vectors_of_any_type_have_no_angle(dtype, path):
    x = np.outer(np.arange(1, 12), [1, 7, 3, 5, 11]).astype(dtype)
    with path():
        scores = score_document(x, [[4, 7], [6, 5], [1] * 11], ["arp_cos", "arp_pair"])
    assert scores["arp_cos"].tolist() == scores["arp_pair"].tolist() == [0, 0, 0]


def test_whole_numbers_are_told_apart():
    """The least difference there is, of large numbers."""
    x = np.full((8, 3), 1 << 30, dtype=np.int64)
    x[4:, 0] += 1
    assert score_document(x, [[4, 4]])["silhouette"].item() == 1
