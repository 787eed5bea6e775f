"""Batches in flight: none lost, doubled or swapped, whatever order the device works in."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

from reffree.encoders import pipeline
from reffree.encoders.accelerators import PlainAccelerator
from reffree.encoders.batching import batch_of, plan_batches, planned
from reffree.encoders.budget import budget_within, recalled_budget
from reffree.encoders.cache import CachedEncoder, EmbeddingCache, cache_path
from reffree.encoders.cache.writer import WAITING, in_background
from reffree.encoders.device import recall, remember
from reffree.encoders.forward import DeviceForward, tf32
from reffree.encoders.models import find_model
from reffree.encoders.options import ModelSettings
from reffree.encoders.pipeline import IN_FLIGHT, Pipeline
from reffree.encoders.sentence_transformer import SentenceTransformerEncoder
from reffree.encoders.tokenising import PackedOnce
from reffree.util.errors import CacheError, EncoderError
from tests.checkpoints import CONFIGS, WORDS
from tests.encoders.delayed_device import DelayedDevice, DelayedEvent, DelayedQueue, Features
from tests.encoders.streams import encode
from tests.encoders.test_devices import Watch

CPU = torch.device("cpu")
TEXTS = [" ".join(WORDS[:k]) for k in (1, 3, 7, 15, 2)] + [" ".join(WORDS * 4), "bees bees"]


def opened(folder, accelerator=None, batch_tokens=None, kept=None, **settings):
    model = find_model(str(folder), settings=ModelSettings(**settings))
    return SentenceTransformerEncoder(model, CPU, batch_tokens, accelerator=accelerator, kept=kept)


# The pipeline alone.


def made_of(features):
    """Stands for a model: a row is the batch's number, and the row's own."""
    ids = features["ids"]
    return torch.stack([ids, ids * 2 + 1], dim=1).float()


def batches(n, seed):
    draw, start = random.Random(seed), 0
    for _ in range(n):
        size = draw.randint(1, 5)
        yield Features(ids=torch.arange(start, start + size))
        start += size


def expected_of(features):
    return made_of(features).numpy()


def through(device, n, seed=0, in_flight=IN_FLIGHT):
    """Compute batches, those that fail again as the encoder does; yields (features, rows)."""
    line = Pipeline(device, made_of, in_flight)
    for features, result in line.stream(batches(n, seed), Features):  # which copies
        while True:
            try:
                rows = result()
            except RuntimeError:
                result = lambda: line.compute(features)  # noqa: B023, E731
            else:
                break
        yield features, rows


@pytest.mark.parametrize("in_flight", [1, 2, 3, 8])
def test_no_row_is_lost_doubled_or_swapped(in_flight):
    """10,000 batches in all, on devices that delay, reorder and fail."""
    for seed, failures in enumerate((0.0, 0.02)):
        n = 1250
        device = DelayedDevice(seed=seed, failures=failures)
        seen = list(through(device, n, seed, in_flight))
        assert [one["ids"].tolist() for one, _ in seen] == [
            one["ids"].tolist() for one in batches(n, seed)
        ]
        for features, rows in seen:
            assert_array_equal(rows, expected_of(features))
        assert device.n_hazards == 0
        assert (device.n_failed > 0) == (failures > 0)
        # A batch in flight holds three results: itself on the device, its vectors, the copy's.
        assert device.most_live <= 3 * (in_flight + 2)
        assert device.n_pinned <= 5 * in_flight  # a buffer grows to the largest batch


class Hasty(DelayedQueue):
    """Forgets to wait for another queue."""

    def wait_event(self, event):
        pass


def is_right(device):
    done = list(through(device, 200))
    return all(np.array_equal(rows, expected_of(features)) for features, rows in done)


def test_the_device_notices_a_missing_wait():
    device = DelayedDevice()
    device.queue = lambda: device.queues.append(Hasty(device)) or device.queues[-1]
    assert not is_right(device)
    assert device.n_hazards > 0


def test_the_device_notices_memory_let_go_too_early(monkeypatch):
    class Careless(pipeline.Flight):
        def __init__(self, slot, held, arrived):
            super().__init__(slot, (), arrived)

    monkeypatch.setattr(pipeline, "Flight", Careless)
    device = DelayedDevice()
    assert not is_right(device)
    assert device.n_hazards > 0


def test_the_device_notices_vectors_read_too_early(monkeypatch):
    monkeypatch.setattr("tests.encoders.delayed_device.DelayedEvent.synchronize", lambda self: None)
    assert not is_right(DelayedDevice())


def test_the_device_notices_a_slot_used_twice():
    class OneSlot(Pipeline):
        def __init__(self, *given):
            super().__init__(*given)
            self._free = type(self._free)([self._free[0]] * IN_FLIGHT)

    line = OneSlot(DelayedDevice(), made_of)
    done = [(one, result()) for one, result in line.stream(batches(200, 0), lambda one: one)]
    assert not all(np.array_equal(rows, expected_of(one)) for one, rows in done)


def test_what_fails_at_its_source_fails_here_and_leaves_the_pipeline_usable():
    def failing():
        yield from batches(5, 0)
        raise EncoderError("found no vocabulary")

    device = DelayedDevice(seed=1)
    line = Pipeline(device, made_of)
    seen = []
    stream = line.stream(failing(), lambda one: one)
    with pytest.raises(EncoderError, match="no vocabulary"):
        seen.extend((one, result()) for one, result in stream)
    assert all(np.array_equal(rows, expected_of(one)) for one, rows in seen)
    (last,) = batches(1, 3)
    assert_array_equal(line.compute(last), expected_of(last))
    assert len(line._free) == IN_FLIGHT


@pytest.mark.parametrize("how", ["close", "interrupt"])
def test_leaving_early_waits_for_the_device(how):
    device = DelayedDevice(seed=2)
    line = Pipeline(device, made_of)
    stream = line.stream(batches(50, 0), lambda one: one)
    for _ in range(4):
        one, result = next(stream)
        assert_array_equal(result(), expected_of(one))
    if how == "close":
        stream.close()
    else:
        with pytest.raises(KeyboardInterrupt):
            stream.throw(KeyboardInterrupt)
    assert not any(queue.todo for queue in device.queues)
    assert len(line._free) == IN_FLIGHT
    assert [len(list(line.stream(batches(n, 1), lambda one: one))) for n in (0, 1, 9)] == [0, 1, 9]


def test_an_interrupt_while_waiting_waits_all_the_same(monkeypatch):
    device = DelayedDevice(seed=3)
    line = Pipeline(device, made_of)
    plain, n_left = DelayedEvent.synchronize, [4]

    def interrupted(event):
        n_left[0] -= 1
        if n_left[0] == 0:
            raise KeyboardInterrupt
        plain(event)

    monkeypatch.setattr(DelayedEvent, "synchronize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(line.stream(batches(50, 0), lambda one: one))
    assert not any(queue.todo for queue in device.queues)
    assert len(line._free) == IN_FLIGHT
    n_left[0] = 3
    with pytest.raises(KeyboardInterrupt):
        [line.compute(one) for one in batches(9, 1)]
    assert not any(queue.todo for queue in device.queues)
    assert device.n_hazards == 0
    done = [(one, result()) for one, result in line.stream(batches(50, 2), lambda one: one)]
    assert all(np.array_equal(rows, expected_of(one)) for one, rows in done)


class Copies(TorchDispatchMode):
    """Notes of every copy between tensors whether the host would wait for it."""

    def __init__(self):
        super().__init__()
        self.waits = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.copy_.default:
            self.waits.append(not (args[2] if len(args) > 2 else False))
        return func(*args, **(kwargs or {}))


def test_a_device_without_events_has_its_copies_waited_for():
    """Metal's copies to the host are late if they may be, and nothing would wait for them."""
    line = Pipeline(PlainAccelerator(CPU), made_of)
    (one,) = batches(1, 0)
    with Copies() as copies:
        assert_array_equal(line.compute(one), expected_of(one))
    assert copies.waits == [True]


@pytest.mark.parametrize("default", [{"dtype": torch.float64}, {"device": "meta"}])
def test_buffers_are_float32_on_the_host_whatever_a_program_s_defaults(default):
    (one,) = batches(1, 0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(default.get("dtype", before))
    torch.set_default_device(default.get("device"))
    try:
        rows = Pipeline(PlainAccelerator(CPU), made_of).compute(one)
    finally:
        torch.set_default_dtype(before)
        torch.set_default_device(None)
    assert rows.dtype == np.float32
    assert_array_equal(rows, expected_of(one))


# The encoder with it.


@pytest.mark.parametrize("architecture", CONFIGS)
def test_the_pipeline_gives_the_vectors_of_the_plain_path(checkpoint, architecture):
    folder, texts = checkpoint(architecture), TEXTS * 3
    expected = encode(opened(folder), texts)
    for batch_tokens in (17, 64, 4096):
        for accelerator in (PlainAccelerator(CPU), DelayedDevice(seed=batch_tokens)):
            found = encode(opened(folder, accelerator, batch_tokens), texts)
            assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


def test_the_real_encoder_through_the_pipeline():
    texts = [*(f"Bees dance {k} times." for k in range(40)), "word " * 400, "Why?"]
    expected = encode(opened("minilm"), texts)
    assert_allclose(encode(opened("minilm", DelayedDevice()), texts), expected, atol=1e-6)


def test_memory_that_runs_out_at_random_loses_no_text(checkpoint):
    folder, texts = checkpoint("roberta"), TEXTS * 8
    expected = encode(opened(folder), texts)
    device = DelayedDevice(seed=5, failures=0.02, message="CUDA out of memory. Tried 2 GiB")
    encoder = opened(folder, device, 500)
    assert_allclose(encode(encoder, texts), expected, atol=1e-5)
    assert device.n_failed > 0
    assert encoder.batch_tokens < 500


def test_after_memory_has_run_out_no_larger_batch_is_tried_and_none_twice(checkpoint):
    folder, texts = checkpoint("roberta"), TEXTS * 8
    encoder = opened(folder, PlainAccelerator(CPU), 200)
    plain, tried = encoder._pipeline._forward, []

    def scarce(features):
        tried.append(tuple(features["input_ids"].shape))
        if features["input_ids"].numel() > 60:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return plain(features)

    encoder._pipeline._forward = scarce
    assert_allclose(encode(encoder, texts), encode(opened(folder), texts), atol=1e-5)
    failed = [rows * width for rows, width in tried if rows * width > 60]
    assert len(failed) > 1
    assert all(b <= a // 2 for a, b in pairwise(failed))
    assert sum(rows for rows, width in tried if rows * width <= 60) == len(texts)


def test_batches_in_flight_are_not_computed_again(checkpoint):
    """They were begun before memory ran out, with more tokens than batches have since."""
    folder, texts = checkpoint("roberta"), TEXTS * 8
    device = DelayedDevice(seed=4)
    encoder = opened(folder, device, 200)
    plain, n_rows, n_calls = encoder._pipeline._forward, [], [0]

    def scarce_once(features):
        n_calls[0] += 1
        if n_calls[0] == 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        n_rows.append(len(features["input_ids"]))
        return plain(features)

    encoder._pipeline._forward = scarce_once
    assert_allclose(encode(encoder, texts), encode(opened(folder), texts), atol=1e-5)
    assert encoder.batch_tokens <= 100
    assert sum(n_rows) == len(texts)


def test_other_failures_get_a_sentence(checkpoint):
    device = DelayedDevice(seed=1, failures=0.2, message="illegal memory access\nlong trace")
    n_threads = threading.active_count()
    with pytest.raises(EncoderError, match="illegal memory access; expected") as error:
        encode(opened(checkpoint("roberta"), device, 17), TEXTS * 4)
    assert "long trace" not in str(error.value)
    assert threading.active_count() == n_threads
    assert not any(queue.todo for queue in device.queues)


# Nothing waits, nothing is made elsewhere.


READ_POSITIONS = ("llama", "gpt2")
"""Without a mask transformers looks at their positions, for texts that share a row."""


@pytest.mark.parametrize(
    "architecture", [*(x for x in CONFIGS if x not in READ_POSITIONS), "minilm"]
)
def test_a_pass_makes_nothing_elsewhere_and_does_not_wait(checkpoint, architecture):
    """On the meta device there are no values: whatever needs one on the host would fail."""
    encoder = opened("minilm" if architecture == "minilm" else checkpoint(architecture))
    forward = encoder._forward
    padded, even = (
        batch_of(encoder._tokeniser.read(range(len(texts)), texts), encoder._tokeniser)
        for texts in (TEXTS, ["bees dance"] * 3)
    )
    there = [PlainAccelerator("meta").send(forward.features_of(batch)) for batch in (padded, even)]
    encoder._model.to("meta")
    for features, n in zip(there, (len(TEXTS), 3), strict=True):
        with Watch("meta") as watch:
            vectors = forward(features)
        assert vectors.shape == (n, 384 if architecture == "minilm" else 16)
        assert vectors.device.type == "meta"
        assert watch.waits == []
        assert watch.elsewhere == []


@pytest.mark.parametrize("architecture", CONFIGS)
def test_batches_are_computed_without_a_look_at_them(checkpoint, architecture):
    """Counted where values exist; two architectures look at each batch once."""
    encoder = opened(checkpoint(architecture), PlainAccelerator(CPU), 64)
    assert encoder._pipeline
    with Watch(CPU) as watch:
        n = len(list(encoder.stream(TEXTS * 3)))
    assert n > 3
    # Besides, each mask is looked at while it is on the host.
    assert len(watch.waits) == (2 * n if architecture in READ_POSITIONS else n)


def test_a_mask_is_shown_to_models_that_need_it(checkpoint):
    """Those that look to both sides see that there is padding, and those that do not, need not."""
    forms = {name: opened(checkpoint(name))._forward._padded for name in CONFIGS}
    assert forms == {
        **dict.fromkeys(("roberta", "mpnet", "bert", "distilbert"), "added"),
        **dict.fromkeys(("falcon", "llama", "gpt2"), "nothing"),
    }


def test_a_model_that_takes_no_other_mask_gets_its_own(checkpoint, monkeypatch):
    encoder = opened(checkpoint("roberta"), PlainAccelerator(CPU), 64)
    first = encoder._model[0]
    plain = first.forward

    def strict(features, **more):
        if "attention_mask" not in features or features["attention_mask"].ndim != 2:
            raise ValueError("wrong shape for attention_mask")
        return plain(features, **more)

    expected = encode(opened(checkpoint("roberta")), TEXTS)
    monkeypatch.setattr(first, "forward", strict)
    forward = DeviceForward(encoder._model, encoder._tokeniser, encoder.spec)
    assert forward._padded == "as made"
    batch = batch_of(encoder._tokeniser.read(range(len(TEXTS)), TEXTS), encoder._tokeniser)
    assert_allclose(forward(forward.features_of(batch)).numpy(), expected, atol=1e-5)


def test_flash_attention_is_not_tried_with_numbers_to_add(checkpoint, monkeypatch):
    """It would take their sums for lengths of texts, and read other memory of the card."""
    encoder = opened(checkpoint("roberta"))
    first, shapes = encoder._model[0], []
    plain, tokeniser = first.forward, encoder._tokeniser

    def watched(features, **more):
        shapes.append(features["attention_mask"].ndim if "attention_mask" in features else None)
        return plain(features, **more)

    monkeypatch.setattr(first, "forward", watched)
    spec = replace(encoder.spec, attention="flash_attention_2")
    assert DeviceForward(encoder._model, tokeniser, spec)._padded == "as made"
    assert shapes == [2, None]


@pytest.mark.skipif(
    not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="torch has one setting"
)
def test_tf32_is_turned_on_beside_any_way_to_set_it():
    """Of torch's two, one refuses to be read once the other was used."""
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32"
    try:
        with tf32():
            assert matmul.fp32_precision == "tf32"
        assert matmul.fp32_precision == "tf32"
    finally:
        matmul.fp32_precision = before


def test_tf32_ends_with_the_last_block_that_asked_for_it():
    matmul = torch.backends.cuda.matmul
    assert not matmul.allow_tf32
    with tf32():
        other = tf32()
        other.__enter__()
        assert matmul.allow_tf32
    assert matmul.allow_tf32
    other.__exit__(None, None, None)
    assert not matmul.allow_tf32


# The cache behind it.


def cached(folder, tmp_path, accelerator, batch_tokens=17, rows_per_commit=3):
    encoder = opened(folder, accelerator, batch_tokens)
    cache = EmbeddingCache(cache_path(tmp_path, encoder.spec), encoder.spec)
    return CachedEncoder(encoder, cache, None, rows_per_commit, saves_in_background=True)


def test_vectors_are_saved_in_the_background(checkpoint, tmp_path):
    folder, texts = checkpoint("roberta"), [f"{a} {b} bees" for a in WORDS for b in WORDS]
    encoder = cached(folder, tmp_path, DelayedDevice())
    savers = set()
    add = encoder.cache.add
    encoder.cache.add = lambda rows: savers.add(threading.current_thread().name) or add(rows)
    n_threads = threading.active_count()
    found = encode(encoder, texts)
    assert threading.active_count() == n_threads
    assert savers == {"reffree-saving_0"}
    assert encoder.n_encoded == encoder.cache.n_rows == len(texts)
    encoder.inner = None  # all are there
    assert_array_equal(encode(encoder, texts), found)
    assert_allclose(found, encode(opened(folder), texts), atol=1e-5)


def test_an_interrupt_keeps_what_was_encoded(checkpoint, tmp_path):
    encoder, texts = cached(checkpoint("roberta"), tmp_path, DelayedDevice()), TEXTS[:-1]
    stream, seen = encoder.stream(texts), []
    for _ in range(3):
        seen += next(stream).positions
    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt)
    kept = [i for encoded in encoder.cache.get(texts) for i in encoded.positions]
    assert sorted(kept) == sorted(seen)
    assert 0 < len(kept) < len(texts)
    expected = encode(opened(checkpoint("roberta")), texts)
    assert_allclose(encode(encoder, texts), expected, atol=1e-5)


def test_what_cannot_be_saved_is_said(checkpoint, tmp_path):
    encoder = cached(checkpoint("roberta"), tmp_path, DelayedDevice())

    def full(rows):
        raise CacheError("disk is full")

    encoder.cache.add = full
    n_threads = threading.active_count()
    with pytest.raises(CacheError, match="disk is full"):
        encode(encoder, TEXTS[:-1])
    assert threading.active_count() == n_threads


def test_the_last_failure_to_save_is_raised_too():
    def full(what):
        raise CacheError("disk is full")

    def saving():
        with in_background(full) as save:
            save("the only one")

    with pytest.raises(CacheError, match="disk is full"):
        saving()


def test_few_saves_wait():
    begun, may_go, given = [], threading.Event(), []

    def slow(what):
        begun.append(what)
        may_go.wait(60)

    with in_background(slow) as save:
        for i in range(WAITING + 1):
            save(i)
            given.append(i)
        late = threading.Thread(target=lambda: (save("late"), given.append("late")))
        late.start()
        late.join(0.05)
        assert given == list(range(WAITING + 1))
        may_go.set()
        late.join()
    assert begun == [*range(WAITING + 1), "late"]


# Memory of the device.


@pytest.mark.parametrize(
    ("free", "fixed", "per_text", "tokens"),
    [
        (10**9, 0, 10**6, 800 * 128),  # capped below
        (10**8, 10**7, 10**6, 70 * 128),
        (10**6, 10**7, 10**6, 128),  # no room: one text at a time
        (10**12, 0, 1, 2**16),
    ],
)
def test_a_budget_fits_into_what_is_free(free, fixed, per_text, tokens):
    found = budget_within(free, lambda rows: fixed + rows * per_text, 128)
    assert found == min(tokens, 2**16)


class Sized(PlainAccelerator):
    """A CPU that counts memory: a fixed number of bytes a token of the batch."""

    def __init__(self, free, per_token):
        super().__init__(CPU)
        self.free, self.per_token, self.probed = free, per_token, []

    def free_bytes(self):
        return self.free

    def send(self, features):
        self.size = features["input_ids"].numel()
        return super().send(features)

    def peak_bytes(self, work):
        work()
        self.probed.append(self.size)
        if self.size * self.per_token > self.free:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self.size * self.per_token


def test_the_budget_is_tried_once_and_remembered(checkpoint, tmp_path):
    folder = checkpoint("roberta")
    device = Sized(free=100_000, per_token=100)
    encoder = opened(folder, device, kept=tmp_path)
    expected = encode(opened(folder), TEXTS)
    assert_allclose(encode(encoder, TEXTS), expected, atol=1e-5)
    assert device.probed == [32, 64]
    assert encoder.batch_tokens == 800
    assert recall(encoder._budget_path) == {"batch_tokens": 800, "free_bytes": 100_000}
    again = Sized(free=100_000, per_token=100)
    encode(opened(folder, again, kept=tmp_path), TEXTS)
    assert again.probed == []
    shared = opened(folder, Sized(free=25_000, per_token=100), kept=tmp_path)
    encode(shared, TEXTS)
    assert shared.batch_tokens == 200  # another program has taken three quarters
    roomy = Sized(free=300_000, per_token=100)
    freed = opened(folder, roomy, kept=tmp_path)
    encode(freed, TEXTS)
    assert (roomy.probed, freed.batch_tokens) == ([32, 64], 2400)
    given = Sized(free=100_000, per_token=100)
    asked = opened(folder, given, 77, kept=tmp_path)
    encode(asked, TEXTS)
    assert (given.probed, asked.batch_tokens) == ([], 77)
    tight = opened(folder, Sized(free=5_000, per_token=100))
    assert_allclose(encode(tight, TEXTS), expected, atol=1e-5)
    assert tight.batch_tokens == 32


def test_a_remembered_budget_is_never_more_than_it_was_and_tried_again_with_more_room(tmp_path):
    path = tmp_path / "x.json"
    remember(path, {"batch_tokens": 1000, "free_bytes": 100})
    assert [recalled_budget(path, free) for free in (None, 10, 100, 200, 201, 0)] == [
        *(1000, 100, 1000, 1000, None, 1)
    ]
    remember(path, {"batch_tokens": 2**16, "free_bytes": 100})
    assert recalled_budget(path, 1000) == 2**16  # there are never more


# Without padding.


def attention_by_text(module, query, key, value, attention_mask, scaling=None, **how):
    """What flash attention computes on texts in one row, written down: each text by itself."""
    groups = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    ends = how["cu_seq_lens_q"].tolist()
    parts = []
    for start, end in pairwise(ends):
        q, k, v = (x[:, :, start:end] for x in (query, key, value))
        parts.append(
            torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=module.is_causal, scale=scaling
            )
        )
    return torch.cat(parts, dim=2).transpose(1, 2), None


@pytest.fixture
def packed():
    """Have a model take texts in one row, as it does with flash attention on a card."""
    name = "attention-by-text"
    AttentionInterface.register(name, attention_by_text)
    AttentionMaskInterface.register(name, lambda *given, **how: None)

    def opened_packed(folder, batch_tokens, accelerator):
        encoder = opened(folder, accelerator, batch_tokens)
        first = encoder._model[0]
        first.model.set_attn_implementation(name)
        with pytest.MonkeyPatch.context() as patch:
            flash = "transformers.modeling_flash_attention_utils.lazy_import_flash_attention"
            patch.setattr(flash, lambda name: ((None, True), None))
            patch.setattr(first, "_is_flash_attention_requested", lambda: True)
            first.unpad_inputs = True  # by itself where flash attention is there
        assert first.can_flatten_inputs
        assert isinstance(encoder._tokeniser, PackedOnce)
        return encoder

    return opened_packed


@pytest.mark.parametrize("architecture", ["roberta", "bert", "llama"])
def test_texts_in_one_row_give_the_vectors_of_padded_ones(checkpoint, packed, architecture):
    folder, texts = checkpoint(architecture), TEXTS * 3
    expected = encode(opened(folder), texts)
    for batch_tokens in (17, 64, 4096):
        encoder = packed(folder, batch_tokens, PlainAccelerator(CPU))
        assert_allclose(encode(encoder, texts), expected, atol=1e-5, rtol=1e-5)
    batch = next(planned(texts, encoder._tokeniser, lambda: (4096, None)))
    assert batch.features["input_ids"].shape == (1, batch.size)
    assert batch.size == sum(read.length for read in batch.reads)


def test_rows_are_those_the_model_makes_itself(checkpoint, packed):
    encoder = packed(checkpoint("roberta"), 64, PlainAccelerator(CPU))
    expected = encoder._model.preprocess(TEXTS)
    found = encoder._tokeniser.collate(encoder._tokeniser.read(range(len(TEXTS)), TEXTS))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, torch.Tensor):
            assert found[name].dtype == value.dtype
            assert torch.equal(found[name], value)
        else:
            assert found[name] == value


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 99))
def test_packed_batches_hold_every_text_once_within_the_budget(lengths, budget):
    batches = plan_batches(lengths, budget, is_packed=True)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    sums = [sum(lengths[i] for i in batch) for batch in batches]
    assert all(len(batch) == 1 or held <= budget for batch, held in zip(batches, sums, strict=True))
    for held, following in zip(sums, batches[1:], strict=False):
        assert max(1, held) + lengths[following[0]] > budget
