"""Encoding on a real card: what the tests on other devices stand for."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from reffree.encoders.batching import batch_of, make_batches
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.encoders.precision import PROBE, abilities_of, cosine_deviation
from tests.checkpoints import CONFIGS, WORDS, save_checkpoint
from tests.encoders.streams import CPU, TEXTS, encode, opened

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
CARD = torch.device("cuda:0")
MANY = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS]


def on(device, folder, batch_tokens=None, kept=None, **settings):
    return opened(folder, kept, device, batch_tokens=batch_tokens, **settings)


def has_tf32():
    return abilities_of([CARD]).is_new


@pytest.mark.parametrize("architecture", CONFIGS)
def test_vectors_are_those_of_the_cpu(tmp_path, architecture):
    folder = save_checkpoint(architecture, tmp_path / "m")
    expected = encode(on(CPU, folder), TEXTS)
    for batch_tokens in (17, 64, 4096):
        found = encode(on(CARD, folder, batch_tokens), TEXTS * 3)
        assert_allclose(found, np.concatenate([expected] * 3), atol=1e-4, rtol=1e-4)


def test_many_batches_in_flight_equal_one_at_a_time():
    encoder = on(CARD, "minilm", 64)
    flying = encode(encoder, MANY)
    one_by_one = np.empty_like(flying)
    for batch in make_batches(MANY, encoder._tokeniser, lambda: (64, None), pinned=True):
        one_by_one[[read.position for read in batch.reads]] = encoder._compute(batch)
    assert_allclose(flying, one_by_one, atol=1e-6)


def test_a_batch_is_sent_from_pinned_memory_and_fetched_when_it_is_asked_for():
    encoder = on(CARD, "minilm")
    reads = encoder._tokeniser.read(range(len(TEXTS)), TEXTS)
    batch = batch_of(reads, encoder._tokeniser, pinned=True)
    assert all(v.is_pinned() for v in batch.features.values() if isinstance(v, torch.Tensor))
    assert encoder._vectors(batch.features).device == CARD
    waits = [encoder._begin(batch) for _ in range(3)]
    for wait in waits:
        assert_allclose(wait(), encode(on(CPU, "minilm"), TEXTS), atol=1e-4)


def test_the_type_suits_the_card_and_is_held_against_float32(tmp_path):
    options = EncoderOptions(encoder="minilm", device="cuda:0", cache=tmp_path)
    encoder = open_encoder(options)
    exact = encode(on(CARD, "minilm"), list(PROBE))
    moved = cosine_deviation(encode(encoder, list(PROBE)), exact)
    assert encoder.spec.dtype == ("tf32" if has_tf32() else "float32")
    assert not torch.backends.cuda.matmul.allow_tf32
    if has_tf32():
        assert 0 < encoder.spec.deviation < 0.01
        assert moved < 0.01
    else:
        assert encoder.spec.deviation is None
        assert moved < 1e-4
    asked = open_encoder(EncoderOptions(encoder="minilm:dtype=float32", device="cuda:0"))
    assert asked.spec.dtype == "float32"
    assert asked.spec.deviation is None


def test_two_copies_give_the_vectors_of_one(tmp_path):
    devices = ",".join(f"cuda:{i % torch.cuda.device_count()}" for i in range(2))
    given = {"encoder": "minilm:dtype=float32", "cache": False}
    one = encode(open_encoder(EncoderOptions(device="cuda:0", **given)), MANY)
    two = encode(open_encoder(EncoderOptions(device=devices, **given)), MANY)
    assert_allclose(two, one, atol=1e-5)


def test_memory_that_runs_out_halves_the_batches(tmp_path):
    encoder = on(CARD, "minilm", 4096)
    expected = encode(encoder, MANY)
    plain = encoder._vectors

    def scarce(features):
        made = plain(features)
        if features["input_ids"].numel() > 500:
            torch.empty(2**50, dtype=torch.uint8, device=CARD)  # a thousand terabytes
        return made

    encoder._vectors = scarce
    assert_allclose(encode(encoder, MANY), expected, atol=1e-5)
    assert encoder.batch_tokens <= 500


def test_falcon_over_a_card_memory_and_disk(tmp_path):
    folder = save_checkpoint("falcon", tmp_path / "falcon", head=True)
    place = {"word_embeddings": 0, "h.0": 0, "h.1": "cpu", "ln_f": "disk", "rotary_emb": 0}
    expected = encode(on(CPU, folder), TEXTS)
    assert_allclose(encode(on(CARD, folder, device_map=place), TEXTS), expected, atol=1e-4)
    anywhere = on(CARD, folder, device_map="auto")
    assert_allclose(encode(anywhere, TEXTS), expected, atol=1e-4)


@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed")
@pytest.mark.parametrize(("quantisation", "most"), [("8bit", 0.05), ("4bit", 0.3)])
def test_quantised_weights_move_cosines_little(quantisation, most):
    exact = encode(on(CARD, "minilm"), list(PROBE))
    small = encode(on(CARD, "minilm", quantisation=quantisation, dtype="bfloat16"), list(PROBE))
    assert 0 < cosine_deviation(small, exact) < most


@pytest.mark.skipif(find_spec("flash_attn") is None, reason="flash-attn is not installed")
def test_flash_attention_moves_cosines_little():
    options = {"device": "cuda:0", "cache": False}
    encoder = open_encoder(EncoderOptions(encoder="minilm:dtype=bfloat16", **options))
    assert encoder.spec.attention == "flash_attention_2"
    named = "minilm:dtype=bfloat16,attention=sdpa"
    plain = encode(open_encoder(EncoderOptions(encoder=named, **options)), list(PROBE))
    assert cosine_deviation(encode(encoder, list(PROBE)), plain) < 0.02
