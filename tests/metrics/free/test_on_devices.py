"""What scores on other devices: on CPU tensors, without values, and on a device that is small."""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from reffree.metrics.free import engine, on_devices
from reffree.metrics.free.engine import score_document, score_documents
from reffree.metrics.free.inputs import check_matrix
from reffree.metrics.free.on_devices import TorchTask
from reffree.metrics.free.published import ArpPair
from reffree.metrics.registry import COMPILED, WITHOUT_SEARCH, parse_metrics
from tests.encoders.test_devices import Watch
from tests.helpers import refusal
from tests.metrics.free.test_scoring import AS_PRINTED, SPELLINGS, by_torch, oracle, random_masses

EVERY = [*COMPILED, *AS_PRINTED, "arp_pair:pool_n=median", "silhouette:pool_n=length"]


# Scores ----------------------------------------------------------------------------------------


def hard_documents(rng):
    plain = rng.normal(size=(30, 12))
    zeros = plain.copy()
    zeros[[0, 7, 8, 29]] = 0
    repeated = plain[rng.integers(3, size=30)]
    return {
        "offset": plain + 1e4,
        "zero vectors": zeros,
        "all zero": np.zeros((8, 3)),
        "repeats": repeated,
        "one unit": plain[:1],
        "two units": plain[:2],
        "one dimension": plain[:, :1],
        "float16": plain.astype(np.float16),
        "float32": plain.astype(np.float32),
        "many dimensions": rng.normal(size=(12, 3000)),
        "tiny": 1e-300 * plain,
        "huge": 1e300 * plain,
        "long": rng.normal(size=(150, 4)) + np.repeat(rng.normal(size=(15, 4)), 10, axis=0),
    }


@pytest.mark.parametrize("kind", hard_documents(np.random.default_rng(0)))
def test_hard_documents_equal_the_definition(kind):
    rng = np.random.default_rng(0)
    x = hard_documents(rng)[kind]
    n = len(x)
    every = {1, 2, n // 4, n // 2, n} & set(range(1, n + 1))
    masses = [random_masses(rng, n, k) for k in sorted(every)]
    with by_torch():
        scores = score_document(x, masses, SPELLINGS, unsegmented="skip")
    scale = 1 / np.abs(x).max() if kind in ("tiny", "huge") else 1.0  # for the oracle's squares
    for name in SPELLINGS:
        expected = [oracle(x.astype(np.float64) * scale, m, name) for m in masses]
        expected = [math.nan if value is None else value for value in expected]
        assert_allclose(scores[name], expected, rtol=1e-6, atol=1e-6, err_msg=name)


# Without values --------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_hypotheses", "memory"), [(1, None), (300, None), (30, 400_000)])
def test_the_whole_branch_runs_without_values(n_hypotheses, memory):
    """On the meta device whatever needs a value on the host would fail."""
    rng = np.random.default_rng(8)
    xs = [torch.empty(n, 8, device="meta") for n in (30, 17, 30)]
    masses = [
        [random_masses(rng, len(x), int(rng.integers(1, 12))) for _ in range(n_hypotheses)]
        for x in xs
    ]
    with by_torch(), Watch("meta") as watch:
        found = score_documents(xs, masses, parse_metrics(EVERY), keep_segments=True, memory=memory)
    assert watch.waits == []
    # Written on the host and sent over: roundings of a batch, and the edges of its hypotheses.
    # Empty ones stand for what was not asked for.
    assert {name for name, _ in watch.elsewhere} <= {"lift_fresh", "empty"}
    for scores in found.values():
        for x, raw in zip(xs, scores, strict=True):
            assert raw.documents.shape == raw.weights.shape == (n_hypotheses,)
            assert raw.documents.dtype == raw.segments.dtype == torch.float64
            assert raw.documents.device == raw.segments.device == x.device
    assert len(score_document(xs[0], [], ["arp_pair"])["arp_pair"]) == 0
    assert score_document(xs[0], [], ["arp_pair"])["arp_pair"].is_meta


def test_nothing_is_read_back_however_many_hypotheses():
    rng = np.random.default_rng(9)
    x = torch.tensor(rng.normal(size=(25, 5)))
    copies = []
    for count in (1, 400):
        masses = [random_masses(rng, 25, 5) for _ in range(count)]
        with by_torch(), Watch("cpu") as watch:
            score_document(x, masses, EVERY)
        assert watch.waits == []
        copies.append(len(watch.elsewhere))
    assert copies == [0, 0]


class OnMetal(torch.Tensor):
    """Refuses float64, as Metal does, until it is on the host."""

    is_mps = True

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        asked = (*args, *(kwargs or {}).values())
        if function is torch.Tensor.double or any(one is torch.float64 for one in asked):
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        if function is torch.Tensor.cpu:
            with torch._C.DisableTorchFunctionSubclass():
                return args[0].as_subclass(torch.Tensor)
        return super().__torch_function__(function, types, args, kwargs or {})


def test_vectors_on_metal_are_brought_to_the_host_first():
    x = torch.tensor(np.random.default_rng(0).normal(size=(12, 4)), dtype=torch.float32)
    metrics = ["arp_cos", "arp_cos:rule=paper", "expected_pk"]
    found = score_document(x.as_subclass(OnMetal), [[6, 6], [3, 9]], metrics)
    for name, scores in score_document(x, [[6, 6], [3, 9]], metrics).items():
        assert torch.equal(found[name], scores)


def test_metal_has_no_float64_so_its_documents_are_scored_on_the_cpu():
    x = torch.tensor(np.random.default_rng(0).normal(size=(12, 4)))
    metrics = parse_metrics(["arp_cos"])
    there = score_documents([x], [[[6, 6]]], metrics, device=torch.device("mps"))
    here = score_documents([x], [[[6, 6]]], metrics)
    assert there["arp_cos"][0].documents == here["arp_cos"][0].documents


def test_mixed_precision_around_a_training_loop_changes_no_bit():
    x = torch.tensor(np.random.default_rng(0).normal(size=(30, 300)), dtype=torch.float32)
    hypotheses = [[10, 20], [7, 3, 20]]
    with by_torch():
        expected = score_document(x, hypotheses, COMPILED)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = score_document(x, hypotheses, COMPILED)
    assert all(torch.equal(found[name], expected[name]) for name in COMPILED)


class SmallDevice(TorchDispatchMode):
    """Counts the bytes of all tensors that are alive, and has no room for more than a limit."""

    def __init__(self, limit=math.inf):
        super().__init__()
        self.limit, self.alive, self.peak, self.refused = limit, 0, 0, 0
        self.sizes = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.count(tensor.untyped_storage())
        return result

    def count(self, storage):
        key = storage._cdata
        if key in self.sizes:
            return
        if self.alive + storage.nbytes() > self.limit:
            self.refused += 1
            raise torch.OutOfMemoryError(f"no place for {storage.nbytes()} bytes")
        self.sizes[key] = storage.nbytes()
        self.alive += storage.nbytes()
        self.peak = max(self.peak, self.alive)
        weakref.finalize(storage, self.forget, key)

    def forget(self, key):
        self.alive -= self.sizes.pop(key)


@pytest.mark.parametrize(
    ("copies", "n", "d", "k", "count", "memory"),
    [
        (3, 60, 4, 6, 2000, 8 << 20),
        (3, 60, 4, 60, 2000, 8 << 20),
        (3, 300, 8, 30, 50, 40 << 20),
        (9, 20, 900, 4, 5, 7 << 20),
    ],
)
def test_scoring_keeps_within_its_memory(copies, n, d, k, count, memory):
    rng = np.random.default_rng(10)
    x = torch.tensor(rng.normal(size=(n, d)))
    masses = np.array([sorted(random_masses(rng, n, k)) for _ in range(count)])
    with by_torch(), SmallDevice() as device:
        metrics = parse_metrics(WITHOUT_SEARCH)
        score_documents([x] * copies, [masses] * copies, metrics, memory=memory)
    assert device.peak <= memory
    assert device.peak >= memory / 60  # and makes use of it


@pytest.mark.parametrize("limit", [2 << 20, 20_000])
def test_less_is_tried_where_memory_is_full_and_the_cpu_at_last(limit):
    rng = np.random.default_rng(11)
    xs = [torch.tensor(rng.normal(size=(n, 5))) for n in (40, 200, 40, 60)]
    masses = [[random_masses(rng, len(x), 7) for _ in range(200)] for x in xs]
    metrics = parse_metrics(list(COMPILED))
    expected = score_documents(xs, masses, metrics)
    told = []
    with by_torch(), SmallDevice(limit=limit) as device:
        found = score_documents(xs, masses, metrics, memory=1 << 30, progress=told.append)
    assert device.refused > 2
    assert sum(told) == 800
    assert min(told) > 0
    for name in expected:
        for a, b in zip(expected[name], found[name], strict=True):
            assert_allclose(b.documents, a.documents, rtol=1e-9, atol=1e-9, err_msg=name)


@dataclass(frozen=True)
class OnTorchAlone(ArpPair):
    name = "on_torch_alone"


def test_a_metric_without_a_compiled_loop_is_scored_by_torch_or_gets_a_sentence():
    x = np.random.default_rng(12).normal(size=(50, 5))
    found = score_documents([x], [[[20, 30]]], [OnTorchAlone()])["on_torch_alone"][0]
    assert_allclose(found.documents, score_document(x, [[20, 30]], ["arp_pair"])["arp_pair"])
    message = refusal(score_documents, [x], [[[20, 30]]], [OnTorchAlone()], memory=3000)
    assert message.startswith("document '0': found 50 units that have no place in the memory of")
    assert "--device cpu" in message


def test_a_document_too_long_for_a_device_is_scored_on_the_cpu():
    x = np.random.default_rng(12).normal(size=(50, 5))
    expected = score_document(x, [[20, 30]], ["silhouette"])["silhouette"]
    with by_torch(), Watch("cpu") as watch:
        found = score_document(x, [[20, 30]], ["silhouette"], memory=3000)["silhouette"]
    assert watch.waits == []
    assert torch.equal(found, expected)


def task_on(device, documents=(), memory=None, hypotheses=None):
    given = [check_matrix(x, "d") for x in documents]
    hypotheses = hypotheses or [[[len(x)]] for x in given]
    task = engine.Task(given, hypotheses, ["d"] * len(given), "skip", False, memory, {})
    return TorchTask(torch.device(device), task, parse_metrics(["arp_pair"]))


def test_a_gpu_s_own_memory_is_the_limit(monkeypatch):
    class Card:
        mem_get_info = staticmethod(lambda device: (8_000, 24_000))
        memory_reserved = staticmethod(lambda device: 3_000)
        memory_allocated = staticmethod(lambda device: 1_000)

    monkeypatch.setattr(torch, "get_device_module", lambda device: Card)
    assert on_devices.free_memory(torch.device("cuda:1")) == 10_000
    assert task_on("cuda:1").memory == 2_500
    assert task_on("cuda:1", memory=77).memory == 77


def test_documents_are_packed_together_while_they_are_alike_and_small():
    given = [np.zeros((5, 1))] * 3 + [np.zeros((2, 3))] * 9 + [np.zeros((9, 9))]
    task = task_on("cpu", given, memory=2 * on_devices.PAIR_BYTES * 50)
    groups = [batch for batch, _ in task.score(range(len(given)))]
    assert groups == [[*range(3, 12)], [0, 1], [2]]  # the last has no place


# On a card -------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_a_card_gives_what_a_cpu_gives():
    rng = np.random.default_rng(13)
    x = torch.tensor(rng.normal(size=(300, 384)), dtype=torch.float32)
    masses = [random_masses(rng, 300, k) for k in (2, 30, 100, 300)]
    expected, found = score_document(x, masses, EVERY), score_document(x.cuda(), masses, EVERY)
    for name in EVERY:
        assert found[name].is_cuda
        assert_allclose(found[name].cpu(), expected[name], rtol=1e-9, atol=1e-9)


@pytest.mark.gpu
def test_a_card_is_never_waited_for():
    rng = np.random.default_rng(14)
    x = torch.tensor(rng.normal(size=(300, 64)), device="cuda")
    masses = np.array([random_masses(rng, 300, 30) for _ in range(2000)])
    task = task_on("cuda", [x], memory=1 << 30, hypotheses=[masses])
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        assert task.score_batch([0])
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
def test_a_card_that_is_full_is_given_half():
    rng = np.random.default_rng(16)
    x = torch.tensor(rng.normal(size=(3000, 64)), device="cuda")
    masses = np.array([random_masses(rng, 3000, 100) for _ in range(200)])
    expected = score_document(x, masses, ["arp_pair", "silhouette"])
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(x.device).total_memory
    torch.cuda.set_per_process_memory_fraction((600 << 20) / total)
    try:
        found = score_document(x, masses, ["arp_pair", "silhouette"], memory=16 << 30)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    for name, values in expected.items():
        assert_allclose(found[name].cpu(), values.cpu(), rtol=1e-9, atol=1e-9)
