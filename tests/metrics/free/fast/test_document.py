"""The compiled loop against the oracles and the torch path."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from reffree.data.masses import mass_matrix
from reffree.metrics.free.engine import TOLERANCE, score_document, score_documents
from reffree.metrics.free.fast import distances as workspace
from reffree.metrics.free.fast import document as compiled
from reffree.metrics.free.fast.distances import give_back, take
from reffree.metrics.free.fast.document import CompiledDocument
from reffree.metrics.free.fast.tables import Rows, TableBand, build_tables, sweep_tables
from reffree.metrics.registry import COMPILED, parse_metrics
from reffree.util.errors import InputError
from reffree.util.parallel import in_threads
from tests.metrics.free.test_scoring import AS_PRINTED, by_torch, random_masses


def test_both_paths_agree_on_a_real_size():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 32)) + np.repeat(rng.normal(size=(30, 32)), 10, axis=0)
    x[50:60] = x[49]
    x[100] = 0
    masses = [random_masses(rng, 300, int(k)) for k in rng.integers(2, 120, size=400)]
    metrics = parse_metrics([*COMPILED, *AS_PRINTED])
    many = score_documents([x], [masses], metrics, keep_segments=True)
    with by_torch():
        torch_path = score_documents([x], [masses], metrics, keep_segments=True)
    for name, ours in many.items():
        theirs = torch_path[name]
        for field in ("documents", "weights", "left_out", "segments"):
            ours_, theirs_ = getattr(ours[0], field), getattr(theirs[0], field)
            assert_allclose(ours_, theirs_, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


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


@pytest.mark.parametrize("n", [7, 64, 200])
def test_a_score_is_the_same_to_the_last_bit_in_any_company(n):
    """Neither other hypotheses nor threads change it."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, 1100)) * 10 ** rng.uniform(-4, 4, size=(n, 1))
    x[3] = x[4]
    masses = [random_masses(rng, n, int(k)) for k in rng.integers(2, n, size=600)]
    in_company = score_document(x, masses)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3 if threads != 3 else 2)
        other_threads = score_document(x, masses)
    finally:
        torch.set_num_threads(threads)
    for name, values in in_company.items():
        assert_array_equal(values, other_threads[name])
    for i in range(0, 600, 60):
        for name, values in score_document(x, [masses[i]]).items():
            assert values[0] == in_company[name][i], name


def test_tables_of_one_document_are_safe_from_the_next():
    rng = np.random.default_rng(6)
    matrix = mass_matrix([[10, 20, 30], [30, 20, 10]], 60)
    kept, gone, last = (CompiledDocument(torch.from_numpy(rng.normal(size=(60, 3)))) for _ in "abc")
    for document in (kept, gone):
        document.prepare([matrix], lambda: 1 << 30)
    before = kept.score(matrix, 1).raw
    gone.discard()
    last.prepare([matrix], lambda: 1 << 30)  # in the memory of the one that is gone
    last.score(matrix, 1)
    assert_array_equal(kept.score(matrix, 1).raw, before)
    with pytest.raises(RuntimeError, match="prepare"):
        gone.score(matrix, 1)


def test_spreads_are_the_dispersions_of_all_spans():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(9, 3))
    edges = np.arange(10)
    everything = TableBand(np.zeros_like(edges), np.full_like(edges, 9), edges * 9, 90)
    document = CompiledDocument(torch.from_numpy(x))
    spread = build_tables(document.vectors, everything).spread.reshape(10, 9, 3)
    for start in range(9):
        for stop in range(start + 2, 10):
            part = x[start:stop]
            unit = part / np.linalg.norm(part, axis=1, keepdims=True)
            centre = part.mean(axis=0)
            cosines = [a @ b for i, a in enumerate(unit) for b in unit[:i]]
            expected = (
                part.var(axis=0).sum(),
                1 - (unit @ centre).mean() / np.linalg.norm(centre),
                1 - np.mean(cosines),
            )
            assert_allclose(spread[start, stop - 1], expected, rtol=1e-12)
    assert not np.tril(spread[:9, :, 0]).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_what_is_not_finite_is_refused(bad, dtype):
    x = np.ones((40, 3), dtype=dtype)
    x[6, 2] = bad
    with pytest.raises(InputError, match="NaN or infinity in the vector of unit 7"):
        score_document(x, [[20, 20]])


def test_any_kind_of_matrix_is_read():
    matrix = mass_matrix([[3, 4, 5], [6, 6], [12]], 12)
    for other in (np.asfortranarray(matrix), matrix.astype(np.uint8), matrix.copy()):
        other.flags.writeable = False
        assert_array_equal(mass_matrix(other, 12), matrix)
        assert mass_matrix(other, 12).flags.c_contiguous


@pytest.mark.parametrize("row", [[3.0, 4], [[3], [4]], "34", [None, 7], [1 << 70, 1]])
def test_masses_that_are_no_whole_numbers_are_refused(row):
    with pytest.raises(InputError, match="hypothesis 2 with masses that are not whole numbers"):
        mass_matrix([[3, 4], row], 7)


def test_a_call_that_fails_elsewhere_fails_here():
    def fail():
        raise ValueError("elsewhere")

    done = []
    with pytest.raises(ValueError, match="elsewhere"):
        in_threads([lambda: done.append(1), fail])
    assert done == [1]


@pytest.mark.parametrize("memory", [1, 8 << 20])
def test_a_small_budget_changes_nothing(memory, monkeypatch):
    monkeypatch.setattr(compiled, "SMALL", 0)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(500, 8))
    x[70:90] = x[70]
    x[200] = 0
    masses = [random_masses(rng, 500, int(k)) for k in rng.integers(1, 90, size=100)]
    masses += [[250, 250], [1] * 500, [499, 1], [1, 499], [400, 1, 99]]
    plenty = score_document(x, masses, memory=1 << 40)
    # Too little for the tables: groups of hypotheses, or each alone, from some of their rows.
    for name, values in score_document(x, masses, memory=memory).items():
        assert values.numpy().tobytes() == plenty[name].numpy().tobytes(), name


def test_rows_stay_within_the_budget(monkeypatch):
    made = []

    def watched(vectors, masses, threads):
        made.append(Rows.of(masses, len(vectors)).bytes)
        return sweep_tables(vectors, masses, threads)

    monkeypatch.setattr(compiled, "SMALL", 0)
    monkeypatch.setattr(compiled, "sweep_tables", watched)
    rng = np.random.default_rng(5)
    masses = [random_masses(rng, 3000, int(k)) for k in rng.integers(2, 9, size=20)]
    score_document(rng.normal(size=(3000, 2)), masses, memory=10 << 20)
    assert 1 < len(made) < 20
    assert max(made) <= 5 << 20


def test_groups_of_different_width_are_joined_segment_by_segment():
    document = CompiledDocument(
        torch.as_tensor(np.random.default_rng(8).normal(size=(9, 4))), "doc"
    )
    assert document.name == "doc"
    matrix = mass_matrix([[3, 3, 3], [4, 5], [2, 2, 2, 3], [9]], 9)
    document.prepare([matrix], lambda: 1 << 30)
    whole = document.score(matrix, 1, keep_segments=True)
    narrow, wide = np.ascontiguousarray(matrix[:2, :3]), matrix[2:]
    parts = [document.score(part, 1, keep_segments=True) for part in (narrow, wide)]
    for name, values in compiled.joined(parts)._asdict().items():
        assert_array_equal(values, getattr(whole, name), err_msg=name)


def test_a_zero_does_not_hide_how_large_the_others_are():
    x = np.random.default_rng(9).normal(size=(12, 5))
    x[4, 2] = x[7] = 0
    usual = score_document(x, [[3, 4, 5], [6, 6]])
    for scale in (2.0**700, 2.0**-700):
        for name, values in score_document(scale * x, [[3, 4, 5], [6, 6]]).items():
            assert_allclose(values, usual[name], rtol=1e-12, err_msg=name)


# Memory that is used again ----------------------------------------------------------------------


LARGEST = (1 << 25) // 8  # numbers in 32 MiB


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(workspace, "spare", [])


def test_memory_is_new_where_none_fits():
    assert len(take(5)) == 5
    give_back(np.empty(4))
    assert len(take(5)) == 5
    assert [len(memory) for memory in workspace.spare] == [4]


def test_the_least_that_fits_is_taken_and_no_longer_spare():
    large, fitting = np.empty(9), np.empty(5)
    give_back(large)
    give_back(fitting)
    assert take(5) is fitting
    assert take(5) is large
    assert workspace.spare == []


def test_the_two_largest_are_kept():
    for size in (7, 3, 8, 5):
        give_back(np.empty(size))
    assert sorted(len(memory) for memory in workspace.spare) == [7, 8]


def test_what_is_very_large_is_not_kept():
    give_back(np.empty(LARGEST + 1))
    assert workspace.spare == []
    give_back(np.empty(LARGEST))
    assert len(workspace.spare) == 1
