"""The compiled loop against the oracles and the torch path."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from reffree.masses import mass_matrix
from reffree.scoring.compiled import CompiledDocument
from reffree.scoring.engine import COMPILED_FROM, score_document, score_documents
from reffree.scoring.metrics import COMPILED, parse_metrics
from tests.test_scoring import documents, hypotheses, oracle, random_masses


def run_compiled(embeddings, masses):
    x = torch.as_tensor(np.asarray(embeddings))
    document = CompiledDocument(x)
    matrix = mass_matrix(masses, len(x), "d")
    assert document.prepare(matrix, memory=lambda: 1 << 30)
    return document.score(matrix, threads=2)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_scores_equal_the_definition(data):
    embeddings = data.draw(documents())
    masses = data.draw(hypotheses(len(embeddings)))
    scores, _ = run_compiled(embeddings, masses)
    for column, name in enumerate(COMPILED):
        for row, m in enumerate(masses):
            expected = oracle(embeddings, m, name)
            got = scores[row, column]
            if expected is None:
                assert math.isnan(got), (name, m)
            else:
                assert got == pytest.approx(expected, abs=1e-6, rel=1e-6), (name, m)


def test_both_paths_agree_on_a_real_size():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 32)) + np.repeat(rng.normal(size=(30, 32)), 10, axis=0)
    x[50:60] = x[49]
    x[100] = 0
    masses = [random_masses(rng, 300, int(k)) for k in rng.integers(2, 120, size=400)]
    assert len(masses) * 300 >= COMPILED_FROM
    many = score_documents([x], [masses], parse_metrics(list(COMPILED)))
    # The compiled loop keeps no segments, so asking for them takes the other path.
    torch_path = score_documents([x], [masses], parse_metrics(list(COMPILED)), keep_segments=True)
    for name in COMPILED:
        ours, theirs = many[name].documents[0], torch_path[name].documents[0]
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10, err_msg=name)
        assert_array_equal(many[name].left_out[0], torch_path[name].left_out[0])


def test_policies_and_duplicates():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(100, 4))
    masses = [[100], [50, 50], [20, 80]] * 400
    for policy, expected in {"neutral": 0.0, "worst": -1.0, "skip": math.nan}.items():
        scores = score_document(x, masses, ["arp_cos"], unsegmented=policy)["arp_cos"]
        assert_array_equal(scores[::3], [expected] * 400)
        assert len(set(scores[1::3].tolist())) == len(set(scores[2::3].tolist())) == 1


def test_a_matrix_of_masses_equals_a_list():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 4))
    masses = [random_masses(rng, 60, int(k)) for k in rng.integers(1, 30, size=1000)]
    matrix = mass_matrix(masses, 60, "d")
    listed = score_document(x, masses)
    for name, values in score_document(x, matrix).items():
        assert_array_equal(values, listed[name])


def test_a_million_hypotheses_in_a_small_memory():
    """Chunks of hypotheses and repeated ones keep this quick; the budget keeps it small."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(12, 3))
    cuts = rng.integers(1, 12, size=1_000_000)
    matrix = np.stack([cuts, 12 - cuts], axis=1)
    scores = score_document(x, matrix, memory=64 << 20)
    alone = {cut: score_document(x, [[cut, 12 - cut]]) for cut in range(1, 12)}
    for name, values in scores.items():
        assert len(values) == 1_000_000
        expected = np.array([alone[cut][name].item() for cut in range(1, 12)])[cuts - 1]
        assert_allclose(values, expected, atol=1e-12)


def test_a_small_budget_changes_nothing():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(500, 8))
    masses = [random_masses(rng, 500, int(k)) for k in rng.integers(2, 90, size=100)]
    plenty = score_document(x, masses)
    # Too little for the compiled tables: torch, in small blocks of rows and hypotheses.
    for name, values in score_document(x, masses, memory=8 << 20).items():
        assert_allclose(values, plenty[name], rtol=1e-10, atol=1e-10, err_msg=name)
