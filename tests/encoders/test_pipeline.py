"""Batches queued on a device, as on cards; here on the CPU, as a replica beside others uses it."""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from reffree.encoders.batching import queue_ahead
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.encoders.precision import tf32
from reffree.util.errors import EncoderError
from tests.checkpoints import CONFIGS
from tests.encoders.streams import TEXTS, encode, opened, spelt

META = torch.device("meta")


class Device:
    """Does nothing before it is waited for; fails for some items when they are begun or awaited."""

    def __init__(self, begin_fails=(), wait_fails=()):
        self.begin_fails, self.wait_fails = begin_fails, wait_fails
        self.begun, self.open = [], 0

    def begin(self, item):
        if item in self.begin_fails:
            raise torch.OutOfMemoryError(f"begin {item}")
        self.begun.append(item)
        self.open += 1

        def wait():
            self.open -= 1
            if item in self.wait_fails:
                raise RuntimeError(f"wait {item}")
            return item * item

        return wait


@given(
    st.integers(0, 20),
    st.integers(1, 5),
    st.sets(st.integers(0, 19), max_size=6),
    st.sets(st.integers(0, 19), max_size=6),
)
def test_no_result_is_lost_doubled_or_swapped(n, depth, begin_fails, wait_fails):
    device = Device(begin_fails, wait_fails)
    seen = []
    for item, result in queue_ahead(range(n), device.begin, depth):
        assert device.open <= depth
        assert all(begun <= item + depth for begun in device.begun), "not far ahead"
        if item in begin_fails:
            assert max(device.begun, default=-1) < item, "none is begun before it is split"
            with pytest.raises(torch.OutOfMemoryError, match=f"begin {item}$"):
                result()
        elif item in wait_fails:
            with pytest.raises(RuntimeError, match=f"wait {item}$"):
                result()
        else:
            assert result() == item * item
        seen.append(item)
    assert seen == list(range(n))
    assert device.open == 0


@pytest.mark.parametrize("architecture", CONFIGS)
def test_queued_batches_give_the_vectors_of_the_plain_path(checkpoint, architecture):
    folder, texts = checkpoint(architecture), TEXTS * 3
    expected = encode(opened(folder), texts)
    for batch_tokens in (17, 64, 4096):
        encoder = opened(folder, is_replica=True, batch_tokens=batch_tokens)
        assert encoder.is_queued
        assert_allclose(encode(encoder, texts), expected, atol=1e-5, rtol=1e-5)


def scarce(folder, most, batch_tokens, once=False):
    """Open an encoder whose device has room for some tokens; say what was tried."""
    encoder, tried = opened(folder, is_replica=True, batch_tokens=batch_tokens), []
    plain = encoder._vectors

    def vectors(features):
        tried.append(tuple(features["input_ids"].shape))
        size = features["input_ids"].numel()
        if size > most and not (once and sum(r * w > most for r, w in tried) > 1):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return plain(features)

    encoder._vectors = vectors
    return encoder, tried


def test_after_memory_has_run_out_no_larger_batch_is_tried_and_none_twice(checkpoint):
    folder, texts = checkpoint("roberta"), TEXTS * 8
    encoder, tried = scarce(folder, 60, 200)
    assert_allclose(encode(encoder, texts), encode(opened(folder), texts), atol=1e-5)
    failed = [rows * width for rows, width in tried if rows * width > 60]
    assert len(failed) > 1
    assert all(b <= a // 2 for a, b in pairwise(failed))
    assert sum(rows for rows, width in tried if rows * width <= 60) == len(texts)


def test_batches_in_flight_are_not_computed_again(checkpoint):
    """They were begun before memory ran out, with more tokens than batches have since."""
    folder, texts = checkpoint("roberta"), TEXTS * 8
    encoder, tried = scarce(folder, 150, 200, once=True)
    assert_allclose(encode(encoder, texts), encode(opened(folder), texts), atol=1e-5)
    assert encoder.batch_tokens <= 100
    (failed,) = [rows for rows, width in tried[:1] if rows * width > 150]
    assert sum(rows for rows, _ in tried) == len(texts) + failed


def test_other_failures_get_a_sentence(checkpoint):
    encoder = opened(checkpoint("roberta"), is_replica=True, batch_tokens=17)
    plain, calls = encoder._vectors, []

    def fails(features):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("illegal memory access\nlong trace")
        return plain(features)

    encoder._vectors = fails
    n_threads = threading.active_count()
    with pytest.raises(EncoderError, match="illegal memory access; expected") as error:
        encode(encoder, TEXTS * 4)
    assert "long trace" not in str(error.value)
    assert threading.active_count() == n_threads


@pytest.mark.parametrize("architecture", [x for x in CONFIGS if x not in ("llama", "gpt2")])
def test_a_pass_makes_nothing_elsewhere_and_does_not_wait(checkpoint, architecture):
    """On the meta device, which has no numbers to wait for: the vectors stay there.

    Without a mask transformers looks at the positions of the two that are left out.
    """
    encoder = opened(checkpoint(architecture), is_replica=True)
    batch = encoder._tokeniser.collate(encoder._tokeniser.read(range(4), ["bees dance"] * 4))
    encoder._model.to(META)
    vectors = encoder._vectors(batch)
    assert (vectors.device, vectors.dtype, vectors.shape[0]) == (META, torch.float32, 4)


@pytest.mark.parametrize("before", [False, True])
def test_tf32_ends_with_the_last_block_that_asked_for_it(before):
    matmul = torch.backends.cuda.matmul
    plain, matmul.allow_tf32 = matmul.allow_tf32, before
    try:
        first, second = tf32(), tf32()
        first.__enter__()
        second.__enter__()
        assert matmul.allow_tf32
        first.__exit__(None, None, None)
        assert matmul.allow_tf32
        second.__exit__(None, None, None)
        assert matmul.allow_tf32 == before
    finally:
        matmul.allow_tf32 = plain


@pytest.mark.parametrize("device", ["cpu", "cpu,cpu"])
def test_an_interrupt_keeps_what_was_encoded(checkpoint, tmp_path, device):
    named = spelt(checkpoint("roberta"), batch_tokens=17)
    options = EncoderOptions(encoder=named, cache=tmp_path, device=device)
    n_threads = threading.active_count()
    stream = open_encoder(options).stream(TEXTS * 4)
    done = [next(stream) for _ in range(3)]
    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt)
    assert threading.active_count() == n_threads
    again = open_encoder(options)
    n_done = len({(TEXTS * 4)[i] for encoded in done for i in encoded.positions})
    assert again.cache.n_rows >= n_done > 0
    assert_array_equal(
        encode(again, TEXTS)[done[0].positions[0] % 7], done[0].vectors[0].astype(np.float32)
    )
