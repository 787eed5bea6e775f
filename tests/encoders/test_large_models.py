"""Models too large for one device: spread, one layer's output alone, padded on either side."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, DynamicCache

from reffree.encoders.batching import batch_of
from reffree.util.errors import EncoderError
from tests.checkpoints import SPECIAL, WORDS
from tests.encoders.streams import TEXTS, encode, opened

DECODERS = ("falcon", "llama", "gpt2")


# One layer's output, and nothing else.


class Widths(TorchDispatchMode):
    """Notes how wide the results of matrix products are."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function.__name__.split(".")[0] in ("mm", "addmm", "bmm", "matmul", "linear"):
            self.found.add(result.shape[-1])
        return result


@pytest.mark.parametrize("is_replica", [False, True])
@pytest.mark.parametrize("architecture", DECODERS)
def test_no_token_is_predicted_and_no_key_is_kept(
    checkpoint, architecture, is_replica, monkeypatch
):
    encoder = opened(checkpoint(architecture, head=True), is_replica=is_replica)
    assert encoder.spec.backend == "transformers-decoder"
    assert encoder._model.tokenizer.pad_token == "</s>"  # it had none
    vocabulary = len(WORDS) + len(SPECIAL)
    model = encoder._model[0].model
    assert model.config.vocab_size == vocabulary
    outputs, kept = [], []
    model.register_forward_hook(lambda module, given, output: outputs.append(output))
    monkeypatch.setattr(DynamicCache, "update", lambda self, *given: kept.append(given))
    batch = batch_of(encoder._tokeniser.read(range(len(TEXTS)), TEXTS), encoder._tokeniser)
    with Widths() as widths:
        encoder._compute(batch)
    assert model.config.hidden_size in widths.found
    assert vocabulary not in widths.found
    assert kept == []
    assert all(output.get("hidden_states") is None for output in outputs)
    assert all(output.get("past_key_values") is None for output in outputs)


def test_the_widths_can_see(checkpoint):
    model = AutoModelForCausalLM.from_pretrained(checkpoint("falcon", head=True))
    with Widths() as widths, torch.no_grad():
        model(torch.tensor([[5, 6, 7]]))
    assert len(WORDS) + len(SPECIAL) in widths.found


# Padding.


@pytest.mark.parametrize("pooling", ["mean", "lasttoken"])
@pytest.mark.parametrize("padding_side", ["left", "right"])
@pytest.mark.parametrize("architecture", ["falcon", "llama"])
def test_a_saved_decoder_gives_the_same_with_padding_on_either_side(
    checkpoint, tmp_path, architecture, padding_side, pooling
):
    """As they are saved, such models bring the side that they were trained with."""
    transformer = Transformer(str(checkpoint(architecture)))
    tokenizer = transformer.tokenizer
    tokenizer.pad_token, tokenizer.padding_side = tokenizer.eos_token, padding_side
    head = Pooling(transformer.get_embedding_dimension(), pooling_mode=pooling)
    SentenceTransformer(modules=[transformer, head], device="cpu").save(str(tmp_path / "saved"))
    expected = encode(opened(checkpoint(architecture), pooling=pooling), TEXTS)
    for is_replica in (False, True):
        encoder = opened(tmp_path / "saved", is_replica=is_replica, max_length=32)
        assert encoder.spec.backend == "sentence-transformers"
        assert encoder._model.tokenizer.padding_side == padding_side
        alone = np.concatenate([encode(encoder, [text]) for text in TEXTS])
        assert_allclose(alone, expected, atol=1e-5)
        for batch_tokens in (40, 4096):
            encoder.batch_tokens = batch_tokens
            assert_allclose(encode(encoder, TEXTS), expected, atol=1e-5, rtol=1e-5)


# Quantised.


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="for where it is not installed")
@pytest.mark.parametrize("quantisation", ["8bit", "4bit"])
def test_quantisation_without_its_package_gets_a_sentence(checkpoint, quantisation):
    with pytest.raises(EncoderError, match="found no installed package bitsandbytes; expected it"):
        encode(opened(checkpoint("falcon"), quantisation=quantisation), TEXTS)
