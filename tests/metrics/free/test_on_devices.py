"""What scores on other devices: on CPU tensors, without values, and on a device that is small."""

from __future__ import annotations

import math
import weakref
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reffree.metrics.free.arithmetic import (
    FLOAT32,
    FLOAT64,
    Digits,
    arithmetic_of,
    row_sums,
    running_sums,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from reffree.metrics.free import batches, engine, pairs
from reffree.metrics.free.batches import Budget
from reffree.metrics.free.engine import score_document, score_documents
from reffree.metrics.registry import COMPILED, WITHOUT_SEARCH, parse_metrics
from tests.encoders.test_devices import Watch
from tests.helpers import refusal
from tests.metrics.free.test_scoring import (
    AS_PRINTED,
    SPELLINGS,
    documents,
    hypotheses,
    oracle,
    random_masses,
)
from tests.properties import examples

BOTH = pytest.mark.parametrize("arithmetic", [FLOAT64, FLOAT32], ids=lambda a: a.dtype_name)
EVERY = [*COMPILED, *AS_PRINTED, "arp_pair:pool_n=median", "silhouette:pool_n=length"]


@contextmanager
def forced(arithmetic):
    """Score as on a device that multiplies so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "COMPILED_DEVICES", frozenset())
        patch.setattr(pairs, "arithmetic_of", lambda device: arithmetic)
        yield patch


# Distances -------------------------------------------------------------------------------------


def vectors_of(kind, rng, n=10, d=24):
    x = rng.normal(size=(n, d))
    if kind == "offset":
        x += 1e8
    elif kind == "near":
        x = x[0] + 1e-9 * x
    elif kind == "wild":
        x *= 10.0 ** rng.uniform(-9, 9, size=(n, 1))
    elif kind == "sparse":
        x *= rng.random(size=(n, d)) < 0.1
    elif kind == "about a power of two":
        x = np.where(rng.random(size=(n, d)) < 0.5, 1.0, -0.25) * (1 + 1e-10 * x)
    elif kind == "float16":
        x = x.astype(np.float16).astype(np.float64)
    return x / (1.001 * np.abs(x).max())


KINDS = ["plain", "offset", "near", "wild", "sparse", "about a power of two", "float16"]


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_distances_keep_within_the_bound(kind, arithmetic):
    """The one of the docstring, against exact fractions."""
    x = vectors_of(kind, np.random.default_rng(1))
    n, d = x.shape
    found = Digits.of(torch.tensor(x)[None], arithmetic).squared_distances(slice(n), slice(n))[0]
    exact = [[Fraction(float(v)) for v in row] for row in x]
    size = [2.0 ** math.frexp(np.abs(row).max())[1] for row in x]
    for i in range(n):
        assert found[i, i] == 0
        for j in range(i):
            square = sum((a - b) ** 2 for a, b in zip(exact[i], exact[j], strict=True))
            distance = math.sqrt(square)
            moved = 2.0**-54 * math.sqrt(d) * (size[i] + size[j])
            added = 2.0**-86 * d * max(size[i], size[j]) ** 2
            bound = 2 * distance * moved + moved**2 + added + 2.0**-48 * float(square)
            assert abs(float(Fraction(float(found[i, j])) - square)) <= bound, (i, j)


@BOTH
def test_distances_of_float32_are_exact_however_near(arithmetic):
    rng = np.random.default_rng(2)
    x = (1 + 1e-6 * rng.normal(size=(6, 40))).astype(np.float32)
    found = Digits.of(torch.tensor(x).double()[None] / 2, arithmetic)
    got = found.squared_distances(slice(6), slice(6))[0] * 4
    exact = ((x[:, None].astype(np.longdouble) - x[None]) ** 2).sum(-1).astype(np.float64)
    assert_allclose(got, exact, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 255, 257, 700])
def test_both_arithmetics_give_the_same_bits(d):
    rng = np.random.default_rng(d)
    for kind in KINDS:
        x = torch.tensor(vectors_of(kind, rng, n=13, d=d))[None]
        x[0, 3] = x[0, 2]
        x[0, 5] = 0
        one, other = (Digits.of(x, arithmetic) for arithmetic in (FLOAT64, FLOAT32))
        rows, columns = slice(0, 13), slice(2, 9)
        distances = one.squared_distances(rows, columns)
        assert torch.equal(distances, other.squared_distances(rows, columns))
        assert torch.equal(one.lengths, other.lengths)
        assert (distances >= 0).all()
        assert_allclose(one.lengths, torch.linalg.vector_norm(x, dim=-1), rtol=1e-13)


def test_halves_of_digits_are_exact_in_any_number_format_of_a_device():
    """In bfloat16 and TF32, and every sum of their products below 2 to the 24th."""
    x = torch.tensor(vectors_of("plain", np.random.default_rng(3), n=30, d=700))[None]
    x[0, 0] = x.abs().max()
    pieces = Digits.of(x, FLOAT32).pieces
    assert torch.equal(pieces.bfloat16().float(), pieces)
    assert torch.equal(pieces.round(), pieces)
    assert pieces.abs().max() ** 2 * pieces.shape[-1] <= 2**24


@given(st.data())
@examples(50)
def test_sums_do_not_depend_on_zeros_at_the_far_end(data):
    n, more = data.draw(st.integers(1, 40)), data.draw(st.integers(0, 40))
    x = torch.tensor(np.random.default_rng(n).uniform(size=(2, n, 3)))
    longer = torch.nn.functional.pad(x, (0, 0, 0, more))
    before = torch.nn.functional.pad(x, (0, 0, more, 0))
    backwards = running_sums(x, 1, backwards=True)
    assert torch.equal(running_sums(longer, 1, backwards=True)[:, :n], backwards)
    assert torch.equal(running_sums(before, 1)[:, more:], running_sums(x, 1))
    assert torch.equal(row_sums(longer[:, :, 0]), row_sums(x[:, :, 0]))
    assert_allclose(backwards, x.flip(1).cumsum(1).flip(1), rtol=1e-14)
    assert_allclose(running_sums(x, 1), x.cumsum(1), rtol=1e-14)
    assert_allclose(row_sums(x[:, :, 1]), x[:, :, 1].sum(1), rtol=1e-14)


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        *(((major, 0), FLOAT64) for major in (6, 7, 8, 9, 10)),
        *((c, FLOAT32) for c in [(6, 1), (7, 5), (8, 6), (8, 9), (10, 3), (12, 0)]),
    ],
)
def test_the_faster_arithmetic_is_chosen(capability, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert arithmetic_of(torch.device("cuda:1")) == expected
    assert arithmetic_of(torch.device("cpu")) == FLOAT64


# Scores ----------------------------------------------------------------------------------------


@BOTH
@given(st.data())
@examples(60)
def test_scores_equal_the_definition(arithmetic, data):
    embeddings = data.draw(documents())
    masses = data.draw(hypotheses(len(embeddings)))
    names = [*SPELLINGS, *AS_PRINTED]
    with forced(arithmetic):
        scores = score_document(embeddings, masses, names, unsegmented="skip")
    for name in names:
        expected = [oracle(embeddings, m, name) for m in masses]
        expected = [math.nan if value is None else value for value in expected]
        assert_allclose(scores[name], expected, rtol=1e-6, atol=1e-6, err_msg=name)


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


@BOTH
@pytest.mark.parametrize("kind", hard_documents(np.random.default_rng(0)))
def test_hard_documents_equal_the_definition(kind, arithmetic):
    rng = np.random.default_rng(0)
    x = hard_documents(rng)[kind]
    n = len(x)
    every = {1, 2, n // 4, n // 2, n} & set(range(1, n + 1))
    masses = [random_masses(rng, n, k) for k in sorted(every)]
    with forced(arithmetic):
        scores = score_document(x, masses, SPELLINGS, unsegmented="skip")
    scale = 1 / np.abs(x).max() if kind in ("tiny", "huge") else 1.0  # for the oracle's squares
    for name in SPELLINGS:
        expected = [oracle(x.astype(np.float64) * scale, m, name) for m in masses]
        expected = [math.nan if value is None else value for value in expected]
        assert_allclose(scores[name], expected, rtol=1e-6, atol=1e-6, err_msg=name)


@BOTH
def test_scores_agree_with_the_compiled_loop_within_the_tolerance(arithmetic):
    rng = np.random.default_rng(4)
    x = (rng.normal(size=(200, 384)) + np.repeat(rng.normal(size=(20, 384)), 10, axis=0)) / 30
    x = x.astype(np.float32)
    masses = [random_masses(rng, 200, k) for k in (2, 10, 20, 60, 199)]
    expected = score_document(x, masses, list(COMPILED))
    with forced(arithmetic):
        found = score_document(x, masses, list(COMPILED))
    for name in COMPILED:
        limit = {"rtol": engine.TOLERANCE, "atol": engine.TOLERANCE}
        assert_allclose(found[name], expected[name], **limit, err_msg=name)


# Same bits -------------------------------------------------------------------------------------


def corpus(rng):
    lengths = [40, 3, 17, 40, 1, 29]
    xs = [rng.normal(size=(n, 6)).astype(np.float32) for n in lengths]
    masses = [[random_masses(rng, n, int(k)) for k in rng.integers(1, n + 1, 7)] for n in lengths]
    return xs, masses


def same(one, other):
    return all(
        torch.equal(getattr(a, part).nan_to_num(99), getattr(b, part).nan_to_num(99))
        for a, b in zip(one, other, strict=True)
        for part in ("documents", "weights", "left_out", "segments")
    )


@BOTH
def test_scores_are_the_same_bits_whatever_is_beside_them(arithmetic):
    rng = np.random.default_rng(5)
    xs, masses = corpus(rng)
    metrics = parse_metrics(EVERY)
    with forced(arithmetic) as patch:
        base = score_documents(xs, masses, metrics)
        for step in (1, 3, 1000):
            patch.setattr(Budget, "hypotheses", lambda *_, step=step: step)
            again = score_documents(xs, masses, metrics)
            assert all(same(base[name], again[name]) for name in base)
        for i, (x, given) in enumerate(zip(xs, masses, strict=True)):
            order = rng.permutation(len(given))
            alone = score_documents([x], [[given[k] for k in order]], metrics)
            for name in base:
                expected = base[name][i].documents[order].nan_to_num(99)
                assert torch.equal(alone[name][0].documents.nan_to_num(99), expected), name


@BOTH
def test_threads_change_no_bit(arithmetic):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(120, 300))
    masses = [random_masses(rng, 120, k) for k in (2, 12, 60)]
    threads = torch.get_num_threads()
    try:
        with forced(arithmetic):
            first = score_document(x, masses)
            torch.set_num_threads(1 if threads > 1 else 2)
            second = score_document(x, masses)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(first[name], second[name]) for name in first)


ADDS = {
    *("sum", "mean", "cumsum", "prod", "std", "var", "norm", "linalg_vector_norm", "dot"),
    *("mm", "bmm", "addmm", "baddbmm", "mv", "matmul", "einsum", "logsumexp"),
}
IN_ANY_ORDER = {
    *("scatter_add", "scatter_add_", "index_add", "index_add_", "scatter_reduce", "bincount"),
    *("scatter_reduce_", "index_reduce", "_cdist_forward", "segment_reduce", "embedding_bag"),
    *("_embedding_bag", "histc", "index_put", "index_put_", "put_", "median"),
}


class Additions(TorchDispatchMode):
    """Notes what adds numbers up in an order that is the device's own, unless they are whole."""

    def __init__(self):
        super().__init__()
        self.seen, self.rounded = set(), []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.__name__.split(".")[0]
        self.seen.add(name)
        if name in IN_ANY_ORDER:
            self.rounded.append(name)
        if name in ADDS:
            given = [x for x in tree_leaves(args) if isinstance(x, torch.Tensor)]
            if any(x.is_floating_point() and not torch.equal(x, x.round()) for x in given):
                self.rounded.append(name)
        return function(*args, **(kwargs or {}))


@BOTH
@pytest.mark.parametrize("memory", [None, 20_000])
def test_only_whole_numbers_are_added_in_an_order_of_the_device_s_own(arithmetic, memory):
    """So no kernel, no split of a product and no atomic addition can change a bit."""
    xs, masses = corpus(np.random.default_rng(7))
    if memory:
        xs, masses = xs[:3], [given[:2] for given in masses[:3]]
    with forced(arithmetic), Additions() as additions:
        score_documents(xs, masses, parse_metrics(EVERY), memory=memory)
    assert additions.rounded == []
    assert {"bmm", "sum", "cumsum"} <= additions.seen


def test_the_additions_can_be_seen():
    x = torch.tensor([[0.5, 1.0]])
    with Additions() as additions:
        x.sum()
        x.round().sum()
        x @ x.T
        torch.zeros(1, 1).scatter_add_(1, torch.zeros(1, 2, dtype=torch.int64), x)
    assert additions.rounded == ["sum", "mm", "scatter_add_"]


# Without values --------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("n_hypotheses", "memory"), [(1, None), (1, 20_000), (300, None), (30, 400_000)]
)
def test_the_whole_branch_runs_without_values(n_hypotheses, memory, arithmetic):
    """On the meta device whatever needs a value on the host would fail."""
    rng = np.random.default_rng(8)
    xs = [torch.empty(n, 8, device="meta") for n in (30, 17, 30)]
    masses = [
        [random_masses(rng, len(x), int(rng.integers(1, 12))) for _ in range(n_hypotheses)]
        for x in xs
    ]
    with forced(arithmetic), Watch("meta") as watch:
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


@BOTH
def test_nothing_is_read_back_however_many_hypotheses(arithmetic):
    rng = np.random.default_rng(9)
    x = torch.tensor(rng.normal(size=(25, 5)))
    copies = []
    for count in (1, 400):
        masses = [random_masses(rng, 25, 5) for _ in range(count)]
        with forced(arithmetic), Watch("cpu") as watch:
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
    metrics = ["arp_cos", "arp_cos:rule=paper", "expected_pk", "sag"]
    found = score_document(x.as_subclass(OnMetal), [[6, 6], [3, 9]], metrics)
    for name, scores in score_document(x, [[6, 6], [3, 9]], metrics).items():
        assert torch.equal(found[name], scores)


def test_metal_has_no_float64_so_its_documents_are_scored_on_the_cpu():
    task = engine._Task([torch.zeros(2, 2)], [], ["d"], "skip", False, torch.device("mps"), 1, {})
    assert task.device_of(0) == torch.device("cpu")


@BOTH
def test_mixed_precision_around_a_training_loop_changes_no_bit(arithmetic):
    x = torch.tensor(np.random.default_rng(0).normal(size=(30, 300)), dtype=torch.float32)
    hypotheses = [[10, 20], [7, 3, 20]]
    with forced(arithmetic):
        expected = score_document(x, hypotheses, COMPILED)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = score_document(x, hypotheses, COMPILED)
    assert all(torch.equal(found[name], expected[name]) for name in COMPILED)


# Memory ----------------------------------------------------------------------------------------


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


@BOTH
@pytest.mark.parametrize(
    ("copies", "n", "d", "k", "count", "memory"),
    [
        (3, 60, 4, 6, 2000, 8 << 20),
        (3, 60, 4, 60, 2000, 8 << 20),
        (3, 300, 8, 30, 50, 40 << 20),
        (3, 300, 8, 30, 50, 4 << 20),
        (9, 20, 900, 4, 5, 7 << 20),
        (1, 1200, 2, 240, 6, 6 << 20),
    ],
)
def test_scoring_keeps_within_its_memory(copies, n, d, k, count, memory, arithmetic):
    rng = np.random.default_rng(10)
    x = torch.tensor(rng.normal(size=(n, d)))
    masses = np.array([sorted(random_masses(rng, n, k)) for _ in range(count)])
    with forced(arithmetic), SmallDevice() as device:
        metrics = parse_metrics(WITHOUT_SEARCH)
        score_documents([x] * copies, [masses] * copies, metrics, memory=memory)
    assert device.peak <= memory
    assert device.peak >= memory / 60  # and makes use of it


@BOTH
def test_half_is_tried_where_memory_is_full(arithmetic):
    rng = np.random.default_rng(11)
    xs = [torch.tensor(rng.normal(size=(n, 5))) for n in (40, 200, 40, 60)]
    masses = [[random_masses(rng, len(x), 7) for _ in range(200)] for x in xs]
    metrics = parse_metrics(list(COMPILED))
    expected = score_documents(xs, masses, metrics)
    told = []
    with forced(arithmetic), SmallDevice(limit=2 << 20) as device:
        found = score_documents(xs, masses, metrics, memory=1 << 30, progress=told.append)
    assert device.refused > 2
    assert sum(told) == 800
    assert min(told) > 0
    for name in expected:
        for a, b in zip(expected[name], found[name], strict=True):
            assert_allclose(b.documents, a.documents, rtol=1e-9, atol=1e-9, err_msg=name)


def test_hypotheses_that_are_scored_again_are_told_of_once():
    rng = np.random.default_rng(17)
    x = torch.tensor(rng.normal(size=(60, 5)))
    masses, told = [random_masses(rng, 60, 7) for _ in range(400)], []

    def progress(done):
        told.append(done)
        device.limit = 1 << 20  # another program comes

    metrics = parse_metrics(WITHOUT_SEARCH)
    with forced(FLOAT64), SmallDevice() as device:
        found = score_documents([x], [masses], metrics, memory=8 << 20, progress=progress)
    assert device.refused > 0
    assert told[0] > 100
    assert sum(told) == len(found["arp_pair"][0].documents) == 400


def test_a_device_that_is_too_small_gets_a_sentence():
    x = torch.tensor(np.random.default_rng(12).normal(size=(50, 5)))
    with forced(FLOAT64), SmallDevice(limit=3000):
        message = refusal(score_document, x, [[20, 30]], ["silhouette"], memory=8 << 20)
    assert message.startswith(
        "document '0': found 50 units that have no place in the memory of cpu"
    )
    assert "--device cpu" in message


def test_a_gpu_s_own_memory_is_the_limit(monkeypatch):
    class Card:
        mem_get_info = staticmethod(lambda device: (8_000, 24_000))
        memory_reserved = staticmethod(lambda device: 3_000)
        memory_allocated = staticmethod(lambda device: 1_000)

    monkeypatch.setattr(torch, "get_device_module", lambda device: Card)
    assert batches.free_memory(torch.device("cuda:1")) == 10_000
    assert Budget.of(torch.device("cuda:1"), None).memory == 2_500
    assert Budget.of(torch.device("cuda:1"), 77).memory == 77


def test_more_memory_is_used_where_there_is_more():
    small, large = (Budget(torch.device("cuda"), memory) for memory in (1 << 30, 1 << 34))
    assert large.pairs // small.pairs == 16
    assert large.hypotheses(100, 10) // small.hypotheses(100, 10) == 16
    assert Budget(torch.device("cpu"), 1 << 34).pairs == batches.CPU_PAIRS


# On a card -------------------------------------------------------------------------------------


@pytest.mark.gpu
@BOTH
def test_a_card_gives_the_same_bits_twice_and_what_a_cpu_gives(arithmetic):
    rng = np.random.default_rng(13)
    x = torch.tensor(rng.normal(size=(300, 384)), dtype=torch.float32)
    masses = [random_masses(rng, 300, k) for k in (2, 30, 100, 300)]
    with forced(arithmetic):
        expected = score_document(x, masses, EVERY)
        torch.use_deterministic_algorithms(True)
        try:
            found = [score_document(x.cuda(), masses, EVERY) for _ in range(2)]
        finally:
            torch.use_deterministic_algorithms(False)
    for name in EVERY:
        assert found[0][name].is_cuda
        assert torch.equal(found[0][name], found[1][name])
        assert_allclose(found[0][name].cpu(), expected[name], rtol=1e-12, atol=1e-12)


@pytest.mark.gpu
@BOTH
def test_a_card_is_never_waited_for(arithmetic):
    rng = np.random.default_rng(14)
    x = torch.tensor(rng.normal(size=(300, 64)), device="cuda")
    masses = np.array([random_masses(rng, 300, 30) for _ in range(2000)])
    metrics = parse_metrics(WITHOUT_SEARCH)
    slots = np.zeros(len(masses), dtype=np.int64)
    torch.cuda.synchronize()
    with forced(arithmetic):
        torch.cuda.set_sync_debug_mode("error")
        try:
            batches.score_batch(
                [x],
                lambda step: [(slots[:500], masses[:500]), (slots[500:], masses[500:])],
                30,
                metrics,
                Budget(x.device, 1 << 30),
                unsegmented="skip",
                keep_segments=False,
                progress=lambda done: None,
            )
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
def test_settings_of_float32_products_change_no_bit():
    rng = np.random.default_rng(15)
    x = torch.tensor(rng.normal(size=(1, 200, 768)) / 8, device="cuda")
    found = []
    before = torch.get_float32_matmul_precision()
    try:
        for precision in ("highest", "high", "medium"):
            torch.set_float32_matmul_precision(precision)
            digits = Digits.of(x, FLOAT32)
            found.append(digits.squared_distances(slice(200), slice(200)))
    finally:
        torch.set_float32_matmul_precision(before)
    expected = Digits.of(x, FLOAT64).squared_distances(slice(200), slice(200))
    assert all(torch.equal(one, expected) for one in found)


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
