"""Batches made ready ahead, budgets that fit into memory, and backends held against torch."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import threading
from dataclasses import replace
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
from reffree.encoders import backends
from reffree.encoders.aliases import is_installed
from reffree.encoders.backends import fastest_backend
from reffree.encoders.batching import (
    ThreadShare,
    make_batches,
    plan_batches,
    run_side_by_side,
)
from reffree.encoders.cache import (
    FACTS,
    GRAPHS,
    EmbeddingCache,
    cache_files,
    other_files,
    recall,
    remember,
    remove,
)
from reffree.encoders.opening import check_backend, open_encoder
from reffree.encoders.options import EncoderOptions, ModelSettings
from reffree.encoders.probe import PROBE, cosine_deviation, vector_deviation
from reffree.encoders.tokenising import BagsOfTokens, TokenisedOnce, Tokeniser, tokeniser_of
from reffree.util.errors import CacheError, EncoderError, OptionError
from tests import checkpoints
from tests.checkpoints import CONFIGS, WORDS, save_checkpoint
from tests.encoders.streams import encode, opened, spelt

TEXTS = [" ".join(WORDS[:k]) for k in (1, 3, 7, 15, 2)] + [" ".join(WORDS * 4), "bees bees"]
HAS_ONNX = all(map(importlib.util.find_spec, ("onnx", "onnxscript", "onnxruntime")))
HAS_OPENVINO = all(map(importlib.util.find_spec, ("onnx", "onnxscript", "openvino")))
needs_onnx = pytest.mark.skipif(not HAS_ONNX, reason="the extra reffree[onnx] is not installed")
needs_compiler = pytest.mark.skipif(
    not shutil.which(os.environ.get("CXX", "g++")), reason="torch.compile finds no C++ compiler"
)
needs_openvino = pytest.mark.skipif(
    not HAS_OPENVINO, reason="the extra reffree[openvino] is not installed"
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
        from reffree.encoders.tokenising import Read

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
    assert other_files(tmp_path, FACTS) == [path] == list(path.parent.iterdir())
    path.write_text(content)
    assert opened(checkpoint("roberta"), kept=tmp_path).batch_tokens >= 1024


# Backends.


def test_deviations_by_their_definition():
    a = np.array([[3, 4], [1, 0], [0, 0]], dtype=np.float32)
    b = np.array([[3, 3.5], [1, 0], [0, 0]], dtype=np.float32)
    assert vector_deviation(b, a) == pytest.approx(0.1)
    assert cosine_deviation(b, a) == pytest.approx(3 / np.hypot(3, 3.5) - 0.6)
    assert len(set(PROBE)) == 64


def test_backends_say_what_they_cannot_run(checkpoint, monkeypatch):
    folder = checkpoint("roberta")
    with pytest.raises(OptionError, match="backend onnx with dtype bfloat16"):
        open_encoder(EncoderOptions(encoder=spelt(folder, backend="onnx", dtype="bfloat16")))
    with pytest.raises(OptionError, match="backend openvino with device cuda"):
        check_backend(ModelSettings(backend="openvino"), opened(folder).spec, ["cuda"])
    with pytest.raises(OptionError, match="with weights spread by device_map"):
        open_encoder(EncoderOptions(encoder=spelt(folder, backend="onnx", device_map="auto")))
    for settings, what in (
        ({"device_map": "auto"}, "device_map"),
        ({"backend": "onnx"}, "backend"),
    ):
        options = EncoderOptions(encoder=spelt(folder, **settings), device="cpu,cpu")
        with pytest.raises(OptionError, match=f"several devices with {what}"):
            open_encoder(options)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EncoderError, match=r"pip install 'reffree\[openvino\]'"):
        open_encoder(EncoderOptions(encoder=spelt(folder, backend="openvino")))


CORPUS = {"id": "d", "units": TEXTS[1:5], "systems": {"halves": [2, 2]}}


def scored(tmp_path, **how):
    """Score a document; return its vectors as they were cached, and the signature."""
    (tmp_path / "c.jsonl").write_text(json.dumps(CORPUS))
    corpus = reffree.load(tmp_path / "c.jsonl")
    table = reffree.score(corpus, metrics=["arp_pair"], cache=tmp_path / "cache", **how)
    (file,) = cache_files(tmp_path / "cache")
    with EmbeddingCache(file) as cache:
        (found,) = cache.get(CORPUS["units"])
    return found.vectors[np.argsort(found.positions)], table.signature.split("|")


@needs_compiler
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_compiled_code_gives_the_same_vectors(tmp_path, monkeypatch):
    monkeypatch.setitem(checkpoints.SMALL, "num_hidden_layers", 1)
    folder = save_checkpoint("roberta", tmp_path / "small")
    counters.clear()
    # No processes of its own, and no trial compilations.
    with torch._inductor.config.patch({"compile_threads": 1, "cpp.vec_isa_ok": True}):
        found, signature = scored(tmp_path, encoder=spelt(folder, backend="compile"))
    torch._dynamo.reset()
    assert counters["stats"]["unique_graphs"] == 1
    assert_allclose(found, encode(opened(folder), CORPUS["units"]), atol=1e-5)
    assert "backend:transformers-encoder+compile" in signature
    assert opened(folder, backend="compile").spec.backend == "transformers-encoder+compile"


def test_without_a_compiler_there_is_a_sentence(checkpoint, monkeypatch):
    def fails(module, dynamic):
        def compiled(features):
            raise TorchDynamoException("No working C++ compiler found\nlong trace")

        return compiled

    monkeypatch.setattr(torch, "compile", fails)
    expected = r"backend compile cannot run it \(No working C\+\+ .* found\); expected a C\+\+ comp"
    with pytest.raises(EncoderError, match=expected):
        encode(opened(checkpoint("roberta"), backend="compile"), TEXTS)


@pytest.mark.parametrize("dtype", ["float32", "tf32"])
def test_tf32_is_on_only_where_the_settings_say_so(checkpoint, monkeypatch, dtype):
    encoder = opened(checkpoint("roberta"))
    seen, first = [], encoder._model[0]
    first.register_forward_pre_hook(
        lambda *given: seen.append(torch.backends.cuda.matmul.allow_tf32)
    )
    spec = replace(encoder.folder.spec, dtype=dtype)
    encoder.folder = replace(encoder.folder, spec=spec)
    encoder.run_torch(encoder._tokeniser.collate(encoder._tokeniser.read([0], ["bees dance"])))
    assert seen == [dtype == "tf32"]
    assert not torch.backends.cuda.matmul.allow_tf32


def never_loaded():
    raise AssertionError("the model was loaded")


@pytest.fixture(scope="session")
def exported(checkpoint, tmp_path_factory):
    """A cache folder with one graph, exported once for all tests."""
    kept = tmp_path_factory.mktemp("kept")
    encode(opened(checkpoint("mpnet"), kept=kept, backend="onnx"), TEXTS)
    return kept


@pytest.fixture
def ready_export(exported, monkeypatch):
    """Other backends start from the same graph: exporting takes seconds."""
    (graph,) = (exported / "graphs").iterdir()

    def copy(model, example, folder, is_small):
        for path in graph.glob("model.onnx*"):
            shutil.copy(path, folder)
        if is_small:
            backends.quantise_graph(folder)

    monkeypatch.setattr(backends, "write_graph", copy)


@needs_onnx
def test_an_exact_backend_gives_the_same_vectors_from_a_kept_graph(checkpoint, exported):
    (graph,) = (exported / "graphs").iterdir()
    before = {path.name: path.stat().st_mtime_ns for path in graph.iterdir()}
    assert {"model.onnx", "measured.json"} <= before.keys()
    assert other_files(exported, GRAPHS) == [graph]
    assert recall(graph / "measured.json")["encoder"] == opened(checkpoint("mpnet")).spec.name
    encoder = opened(checkpoint("mpnet"), kept=exported, backend="onnx")
    assert encoder.spec.backend == "transformers-encoder+onnx"
    expected = encode(opened(checkpoint("mpnet")), TEXTS)
    for batch_tokens in (1, 40, 4096):
        encoder.batch_tokens = batch_tokens
        assert_allclose(encode(encoder, TEXTS), expected, atol=1e-5)
    assert {path.name: path.stat().st_mtime_ns for path in graph.iterdir()} == before
    assert encoder.spec.fingerprint != opened(checkpoint("mpnet")).spec.fingerprint


@needs_onnx
def test_a_backend_that_deviates_on_the_corpus_is_refused(checkpoint, exported):
    encoder = opened(checkpoint("mpnet"), kept=exported, backend="onnx")
    run = encoder._backend._run
    encoder._backend._run = lambda features: run(features) * np.float32(1 + 1e-3)
    with pytest.raises(EncoderError, match=r"backend onnx deviates from torch by .*e-04"):
        encode(encoder, TEXTS)


@needs_onnx
def test_a_graph_that_deviates_is_not_kept(checkpoint, ready_export, tmp_path, monkeypatch):
    plain = backends.load_onnx

    def off(folder):
        run = plain(folder)
        return lambda given: run(given) + np.float32(0.01)

    monkeypatch.setattr(backends, "load_onnx", off)
    with pytest.raises(EncoderError, match="on 64 texts; expected at most 1e-05"):
        encode(opened(checkpoint("mpnet"), kept=tmp_path, backend="onnx"), TEXTS)
    assert not list((tmp_path / "graphs").iterdir())


DAMAGES = {
    "nothing": lambda graph: shutil.rmtree(graph) or graph.mkdir(),
    "no graph": lambda graph: (graph / "model.onnx").unlink(),
    "half a graph": lambda graph: halve(graph / "model.onnx"),
    "half the weights": lambda graph: halve(graph / "model.onnx.data"),
    "other weights": lambda graph: zero(graph / "model.onnx.data"),
    "another file": lambda graph: (graph / "more").touch(),
    "a folder for a file": lambda graph: (graph / "more").mkdir(),
    "a file for a folder": lambda graph: shutil.rmtree(graph) or graph.touch(),
}


def halve(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero(path):
    path.write_bytes(bytes(path.stat().st_size))


@needs_onnx
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_graph_gets_a_sentence(checkpoint, exported, tmp_path, damage):
    shutil.copytree(exported / "graphs", tmp_path / "graphs")
    (graph,) = (tmp_path / "graphs").iterdir()
    DAMAGES[damage](graph)
    with pytest.raises(
        CacheError, match=rf"^{graph}: found .*; remove it with reffree cache rm {graph.name}"
    ):
        encode(opened(checkpoint("mpnet"), kept=tmp_path, backend="onnx"), TEXTS)
    assert other_files(tmp_path, GRAPHS) == [graph]
    remove([graph])
    assert list(graph.parent.iterdir()) == []


def writes_junk(model, example, folder, is_small):
    (folder / "model.onnx").write_text("junk")


def exports_nothing(model, example, folder, is_small):
    raise torch.onnx.OnnxExporterError("no decomposition\nlong trace")


def is_in_the_way(model, example, folder, is_small):
    raise PermissionError(13, "Permission denied")


@needs_onnx
@pytest.mark.parametrize(
    ("write", "found"),
    [
        (writes_junk, r"backend onnx cannot run it \(.*PROTOBUF.*\); expected"),
        (exports_nothing, r"cannot run it \(no decomposition\); expected"),
        (is_in_the_way, r"cannot run it \(.*Permission denied\); expected"),
    ],
)
def test_a_graph_that_cannot_be_made_gets_a_sentence(
    checkpoint, tmp_path, monkeypatch, write, found
):
    monkeypatch.setattr(backends, "write_graph", write)
    with pytest.raises(EncoderError, match=found):
        encode(opened(checkpoint("mpnet"), kept=tmp_path, backend="onnx"), TEXTS)
    assert not list((tmp_path / "graphs").iterdir())
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CacheError, match="a folder that can be written"):
        encode(opened(checkpoint("mpnet"), kept=tmp_path / "file", backend="onnx"), TEXTS)


@needs_onnx
def test_an_approximate_backend_carries_its_deviation(checkpoint, ready_export, tmp_path):
    folder = checkpoint("mpnet")
    encoder = opened(folder, kept=tmp_path, backend="onnx-int8")
    spec = encoder.spec
    assert spec.backend == "transformers-encoder+onnx-int8"
    plain = encode(opened(folder), list(PROBE))
    moved = cosine_deviation(encode(encoder, list(PROBE)), plain)
    assert 0 < moved <= spec.deviation + 0.01
    # The next run knows it without the model.
    options = EncoderOptions(encoder=spelt(folder, backend="onnx-int8"), cache=tmp_path)
    again = open_encoder(options)
    assert (again.spec, again.spec.deviation) == (spec, spec.deviation)
    assert "inner" not in vars(again)


@needs_openvino
@needs_onnx
def test_openvino_in_full_precision(checkpoint, ready_export):
    folder = checkpoint("mpnet")
    encoder = opened(folder, backend="openvino")
    assert_allclose(encode(encoder, TEXTS), encode(opened(folder), TEXTS), atol=1e-5)


@needs_onnx
def test_the_fastest_is_an_exact_one_and_in_the_signature(checkpoint, ready_export, tmp_path):
    folder, kept = checkpoint("mpnet"), tmp_path / "cache"
    plain = encode(opened(folder), CORPUS["units"])
    exact = {"torch", "onnx", *(["openvino"] if HAS_OPENVINO else [])}
    options = EncoderOptions(encoder=spelt(folder, backend="auto"), cache=kept)
    label = open_encoder(options).spec.backend
    (file,) = (kept / "facts").glob("fastest-*.json")
    fastest = recall(file)
    assert fastest["seconds"].keys() == exact
    assert fastest["backend"] == min(exact, key=lambda name: fastest["seconds"][name])
    assert label.partition("+")[2] == fastest["backend"].removeprefix("torch")
    # What is remembered is what is taken, without the model and without trying again.
    spec = opened(folder).spec
    for name in sorted(exact):
        remember(file, {"backend": name})
        assert fastest_backend(spec, kept, never_loaded, never_loaded) == name
    remember(file, {"backend": "onnx"})
    remove(cache_files(kept))
    found, signature = scored(tmp_path, encoder=spelt(folder, backend="auto"))
    assert "backend:transformers-encoder+onnx" in signature
    assert_allclose(found, plain, atol=1e-5)
    # But for what is not exact.
    remember(file, {"backend": "onnx-int8"})
    assert "int8" not in open_encoder(options).spec.backend
    assert recall(file)["backend"] in exact
