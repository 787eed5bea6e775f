"""Batches made ready ahead, budgets that fit into memory, and backends held against torch."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch._dynamo.exc import TorchDynamoException
from torch._dynamo.utils import counters

import reffree
from reffree.encoders.aliases import is_installed
from reffree.encoders.batching import (
    BagsOfTokens,
    ThreadShare,
    TokenisedOnce,
    Tokeniser,
    make_batches,
    plan_batches,
    run_side_by_side,
    tokeniser_of,
)
from reffree.encoders.cache import (
    fact_files,
    remember,
)
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.encoders.precision import PROBE, cosine_deviation
from reffree.util.errors import EncoderError, OptionError
from tests import checkpoints
from tests.checkpoints import CONFIGS, save_checkpoint
from tests.encoders.streams import TEXTS, encode, opened, spelt

needs_compiler = pytest.mark.skipif(
    not shutil.which(os.environ.get("CXX", "g++")), reason="torch.compile finds no C++ compiler"
)


# Tokenised once.


@pytest.mark.parametrize("padding_side", ["left", "right"])
@pytest.mark.parametrize("prompt", ["", "the honey "])
@pytest.mark.parametrize("architecture", CONFIGS)
def test_features_are_those_the_model_makes_itself(checkpoint, architecture, prompt, padding_side):
    encoder = opened(checkpoint(architecture, padding_side=padding_side), prompt=prompt)
    model = encoder._model
    model.tokenizer.padding_side = padding_side  # plain ones are read with padding on the right
    once = tokeniser_of(model, encoder.spec)
    assert isinstance(once, TokenisedOnce)
    expected = model.preprocess(TEXTS, prompt=prompt)
    reads = once.read(range(len(TEXTS)), TEXTS)
    found = once.collate(reads)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert (
            torch.equal(found[name], value)
            if isinstance(value, torch.Tensor)
            else (found[name] == value)
        )
    specials = len(once.read([0], [""])[0].content["input_ids"]) - len(prompt.split())
    words = [len((prompt + text).split()) + specials for text in TEXTS]
    assert [read.tokens for read in reads] == words
    assert [read.length for read in reads] == [min(count, 32) for count in words]


@pytest.mark.skipif(not is_installed("wordllama"), reason="reffree[wordllama] is not installed")
@pytest.mark.parametrize("prompt", ["", "the honey "])
def test_bags_of_tokens_are_those_the_model_makes_itself(prompt):
    encoder = opened("wordllama", prompt=prompt)
    once = tokeniser_of(encoder._model, encoder.spec)
    assert isinstance(once, BagsOfTokens)
    texts = [*PROBE, "", "a", "\u3000 \n", "ﷺ🐝"]
    reads = once.read(range(len(texts)), texts)
    found, expected = once.collate(reads), encoder._model.preprocess(texts, prompt=prompt)
    assert found.keys() == expected.keys() == {"input_ids", "offsets"}
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert [read.tokens for read in reads] == [read.length for read in reads]
    assert sum(read.length for read in reads) == len(found["input_ids"])
    plain = encoder._model.encode(list(PROBE), prompt=prompt)
    assert_allclose(encode(encoder, list(PROBE)), plain, atol=1e-6)


def test_models_that_ask_more_of_their_tokenizer_make_their_own_features(checkpoint):
    """Such as another maximum length in the model's folder: what is tried at loading differs."""
    encoder = opened(checkpoint("roberta"))
    other = replace(encoder.spec, max_length=12)
    assert type(tokeniser_of(encoder._model, other)) is Tokeniser
    encoder._model[0].processing_kwargs = {"text": {"add_special_tokens": False}}
    own = tokeniser_of(encoder._model, encoder.spec)
    assert type(own) is Tokeniser
    assert own.collate(own.read([0], ["the bees"]))["input_ids"].shape == (1, 2)


class Lengths:
    """Stands for a tokenizer: a text is as long as its number says."""

    def read(self, positions, texts):
        from reffree.encoders.batching import Read

        return [Read(p, len(t), len(t), t) for p, t in zip(positions, texts, strict=True)]

    def collate(self, reads):
        return {"texts": [read.content for read in reads]}


@given(st.lists(st.integers(0, 30), max_size=80), st.integers(1, 90), st.integers(1, 20))
def test_windows_lose_no_text_and_fill_batches(lengths, budget, window):
    texts = ["x" * n for n in lengths]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reffree.encoders.batching.TOKENISED_AT_ONCE", window)
        batches = list(make_batches(texts, Lengths(), lambda: (budget, None)))
    assert sorted(r.position for b in batches for r in b.reads) == list(range(len(texts)))
    assert all(len(b.reads) == 1 or b.size <= budget for b in batches)
    # As if all had been planned at once: characters sort these texts as tokens do.
    found = [[len(r.content) for r in b.reads] for b in batches]
    assert found == [[lengths[i] for i in plan] for plan in plan_batches(lengths, budget)]


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 99), st.integers(1, 60))
def test_enough_tokens_take_no_padding(lengths, budget, enough):
    batches = plan_batches(lengths, budget, enough)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(1, *(lengths[i] for i in batch), 1)
        assert len(batch) == 1 or longest * len(batch) <= budget
        for held, i in enumerate(batch):
            assert lengths[i] == longest or longest * held < enough or held == 0


# In the background.


ALONE = ThreadShare(1, 1)


@pytest.mark.parametrize("share", [ALONE, ThreadShare(2, 1), ThreadShare(3, 2)])
def test_work_side_by_side_comes_back_in_order_and_fails_in_its_turn(share):
    def work(x):
        if x == 3:
            raise ValueError("three")
        return x * x, torch.get_num_threads()

    before, n_running = torch.get_num_threads(), threading.active_count()
    items = list(run_side_by_side(iter(range(9)), work, share))
    assert [item for item, _ in items] == list(range(9))
    done = [result() for item, result in items if item != 3]
    assert [value for value, _ in done] == [0, 1, 4, 16, 25, 36, 49, 64]
    with pytest.raises(ValueError, match="three"):
        items[3][1]()
    if share.workers > 1:
        assert {n for _, n in done[1:]} == {share.threads}
    assert (torch.get_num_threads(), threading.active_count()) == (before, n_running)


def test_work_side_by_side_is_not_done_far_ahead():
    begun = []
    work = run_side_by_side(range(100), begun.append, ThreadShare(2, 1))
    for _ in range(4):
        next(work)[1]()
    work.close()
    assert {0, 1, 2, 3} <= set(begun)
    assert len(begun) <= 6


# Memory.


class Scarce(torch.nn.Module):
    """A first module that runs out of memory above some tokens."""

    def __init__(self, inner, most):
        super().__init__()
        self.inner, self.most, self.sizes = inner, most, []

    def forward(self, features, **more):
        self.sizes.append(features["input_ids"].numel())
        if self.sizes[-1] > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self.inner(features, **more)


def scarce(folder, kept, most=40, batch_tokens=None, share=ALONE):
    encoder = opened(folder, kept=kept, batch_tokens=batch_tokens)
    encoder.enough, encoder.share = None, share  # as on a GPU
    first = Scarce(encoder._model[0], most)
    assert encoder._tokeniser  # made with the whole model
    encoder._model[0] = first
    return encoder, first


def test_the_budget_that_worked_is_where_the_next_run_starts(checkpoint, tmp_path):
    folder, texts = checkpoint("roberta"), TEXTS * 4
    expected = encode(opened(folder), texts)
    encoder, first = scarce(folder, tmp_path)
    assert_allclose(encode(encoder, texts), expected, atol=1e-5)
    assert encoder.batch_tokens <= 40 < first.sizes[0]
    failed = [size for size in first.sizes if size > 40]
    assert all(b <= a // 2 for a, b in pairwise(failed))
    again, second = scarce(folder, tmp_path)
    assert again.batch_tokens == encoder.batch_tokens
    assert_allclose(encode(again, texts), expected, atol=1e-5)
    assert max(second.sizes) <= 40
    assert scarce(folder, tmp_path, batch_tokens=77)[0].batch_tokens == 77
    assert scarce(folder, None)[0].batch_tokens >= 1024
    assert scarce(checkpoint("mpnet"), tmp_path)[0].batch_tokens >= 1024


def test_a_text_that_does_not_fit_alone_gets_a_sentence(checkpoint, tmp_path):
    encoder, _ = scarce(checkpoint("roberta"), tmp_path, most=10)
    with pytest.raises(EncoderError, match="out of memory"):
        encode(encoder, TEXTS)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"batch_tokens": "9"}', '{"batch_tokens": -1}', "[" * 10**5]
)
def test_unreadable_budgets_are_ignored(checkpoint, tmp_path, content):
    path = opened(checkpoint("roberta"), kept=tmp_path)._budget
    remember(path, {"batch_tokens": 64})
    assert opened(checkpoint("roberta"), kept=tmp_path).batch_tokens == 64
    assert fact_files(tmp_path) == [path] == list(path.parent.iterdir())
    path.write_text(content)
    assert opened(checkpoint("roberta"), kept=tmp_path).batch_tokens >= 1024


# Backends.


def test_deviations_by_their_definition():
    a = np.array([[3, 4], [1, 0], [0, 0]], dtype=np.float32)
    b = np.array([[3, 3.5], [1, 0], [0, 0]], dtype=np.float32)
    assert cosine_deviation(b, a) == pytest.approx(3 / np.hypot(3, 3.5) - 0.6)
    assert len(set(PROBE)) == 64


def test_compiled_code_says_what_it_cannot_run(checkpoint):
    folder = checkpoint("roberta")
    for settings, device, what in (
        ({"backend": "compile", "dtype": "bfloat16"}, "cpu", "backend compile with dtype bfloat16"),
        ({"backend": "compile", "device_map": "auto"}, "cpu", "with weights spread by device_map"),
        ({"device_map": "auto"}, "cpu,cpu", "several devices with device_map"),
        ({"backend": "compile"}, "cpu,cpu", "several devices with backend"),
        ({"backend": "onnx"}, "cpu", "backend = 'onnx'; expected torch or compile"),
    ):
        with pytest.raises(OptionError, match=what):
            open_encoder(EncoderOptions(encoder=spelt(folder, **settings), device=device))


@needs_compiler
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_compiled_code_gives_the_same_vectors(tmp_path, monkeypatch):
    monkeypatch.setitem(checkpoints.SMALL, "num_hidden_layers", 1)
    folder = save_checkpoint("roberta", tmp_path / "small")
    counters.clear()
    # No processes of its own, and no trial compilations.
    how = {"encoder": spelt(folder, backend="compile"), "cache": tmp_path / "cache"}
    corpus = reffree.Corpus((reffree.Document.build("d", TEXTS[1:5], systems={"halves": [2, 2]}),))
    with torch._inductor.config.patch({"compile_threads": 1, "cpp.vec_isa_ok": True}):
        embedded = reffree.embed(corpus, **how)
    torch._dynamo.reset()
    assert counters["stats"]["unique_graphs"] == 1
    assert_allclose(embedded.vectors[0], encode(opened(folder), TEXTS[1:5]), atol=1e-5)
    table = reffree.score(corpus, metrics=["arp_pair"], embeddings=embedded)
    assert "|backend:transformers-encoder+compile|" in table.signature


def test_without_a_compiler_there_is_a_sentence(checkpoint, monkeypatch):
    def compiled(self, features):
        raise TorchDynamoException("No working C++ compiler found\nlong trace")

    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, dynamic: None)
    encoder = opened(checkpoint("roberta"), backend="compile")
    encoder._model[0].forward = partial(compiled, encoder._model[0])
    with pytest.raises(EncoderError, match=r"No working C\+\+ .* found; .*; leave out backend"):
        encode(encoder, TEXTS)


@pytest.mark.parametrize("dtype", ["float32", "tf32"])
def test_tf32_is_on_only_where_the_settings_say_so(checkpoint, monkeypatch, dtype):
    encoder = opened(checkpoint("roberta"))
    seen, first = [], encoder._model[0]
    first.register_forward_pre_hook(
        lambda *given: seen.append(torch.backends.cuda.matmul.allow_tf32)
    )
    spec = replace(encoder.folder.spec, dtype=dtype)
    encoder.folder = replace(encoder.folder, spec=spec)
    encode(encoder, ["bees dance"])
    assert seen == [dtype == "tf32"]
    assert not torch.backends.cuda.matmul.allow_tf32
