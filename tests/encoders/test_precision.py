"""What cards compute in, how far from float32, and several of them at once."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import reffree
from reffree.encoders import device, sentence_transformer
from reffree.encoders.base import EncodedTexts, EncoderSpec
from reffree.encoders.device import (
    RayCluster,
    choose_device,
    device_names,
    parse_ray,
)
from reffree.encoders.models import find_model
from reffree.encoders.opening import ReplicatedEncoder, open_encoder, shares
from reffree.encoders.options import EncoderOptions, ModelSettings
from reffree.encoders.precision import (
    PROBE,
    Abilities,
    abilities_of,
    cosine_deviation,
    one_digit_up,
    suit_devices,
)
from reffree.util.errors import EncoderError, OptionError
from tests.checkpoints import WORDS
from tests.encoders.streams import CPU, encode, opened, spelt

TEXTS = [f"{a} {b} bees" for a in WORDS for b in WORDS]
AMPERE = Abilities(is_new=True)
WITH_FLASH = Abilities(is_new=True, flash=True)


def chosen(folder, can, **settings):
    settings = ModelSettings(**settings)
    return suit_devices(find_model(str(folder), settings=settings), settings, can).spec


# Chosen for the card.


@pytest.mark.parametrize(
    ("stored", "asked", "can", "dtype"),
    [
        (torch.float32, None, Abilities(), "float32"),
        (torch.float32, None, AMPERE, "tf32"),
        (torch.float32, "auto", AMPERE, "tf32"),
        (torch.float32, "float32", AMPERE, "float32"),
        (torch.float32, "bfloat16", AMPERE, "bfloat16"),
        (torch.float32, "bfloat16", Abilities(), "bfloat16"),
        (torch.bfloat16, None, AMPERE, "bfloat16"),
        (torch.bfloat16, None, Abilities(), "float32"),
        (torch.bfloat16, "auto", Abilities(), "bfloat16"),  # as on CPUs all along
        (torch.float16, None, AMPERE, "float16"),
        (torch.float16, "float32", AMPERE, "float32"),
        (torch.float16, None, Abilities(), "float32"),
    ],
)
def test_the_type_suits_the_card(checkpoint, stored, asked, can, dtype):
    folder = checkpoint("roberta", dtype=stored)
    assert chosen(folder, can, dtype=asked).dtype == dtype


@pytest.mark.parametrize(
    ("architecture", "settings", "attention"),
    [
        ("roberta", {"dtype": "bfloat16"}, "flash_attention_2"),
        ("falcon", {"dtype": "float16"}, "flash_attention_2"),
        ("roberta", {}, "auto"),  # TF32 is no half precision
        ("mpnet", {"dtype": "bfloat16"}, "auto"),  # which transformers has no flash attention for
        ("roberta", {"dtype": "bfloat16", "attention": "sdpa"}, "sdpa"),
    ],
)
def test_flash_attention_is_taken_where_the_architecture_has_it(
    checkpoint, architecture, settings, attention
):
    folder = checkpoint(architecture)
    assert chosen(folder, WITH_FLASH, **settings).attention == attention
    assert chosen(folder, AMPERE, **settings).attention == settings.get("attention", "auto")


def test_nothing_is_chosen_on_a_cpu(checkpoint):
    folder = str(checkpoint("roberta"))
    assert abilities_of([CPU]) == abilities_of([CPU, torch.device("cuda")]) == Abilities()
    encoder = open_encoder(EncoderOptions(encoder=folder, device="cpu", cache=False))
    assert not encoder.is_queued
    assert encoder.spec == find_model(folder).spec
    assert encoder.spec.deviation is None
    assert chosen("wordllama", WITH_FLASH).dtype == "float32"


def test_tf32_is_refused_where_it_would_be_float32(checkpoint):
    options = EncoderOptions(encoder=spelt(checkpoint("roberta"), dtype="tf32"), cache=False)
    with pytest.raises(EncoderError, match="dtype tf32 on cpu: found a device without it"):
        encode(open_encoder(options), TEXTS[:3])


# Held against float32.


def on_accelerator(folder, kept, **settings):
    return opened(folder, kept, is_replica=True, **settings)


def test_the_deviation_is_measured_once_said_and_kept(checkpoint, tmp_path, caplog):
    folder = checkpoint("roberta")
    encoder = on_accelerator(folder, tmp_path, dtype="bfloat16")
    plain = encode(on_accelerator(folder, tmp_path), list(PROBE))
    expected = cosine_deviation(encode(encoder, list(PROBE)), plain)
    assert encoder.spec.deviation == pytest.approx(expected, rel=0.2)
    assert 0 < encoder.spec.deviation < 0.1
    (said,) = (record.getMessage() for record in caplog.records)
    digit = one_digit_up(encoder.spec.deviation)
    assert f"computes in bfloat16, which moves cosines of 64 texts by {digit} at most" in said
    again = on_accelerator(folder, tmp_path, dtype="bfloat16")
    assert again.spec.deviation == encoder.spec.deviation
    assert "_model" not in vars(again)  # nothing was loaded
    assert len(caplog.records) == 1
    assert again.spec.fingerprint == encoder.folder.spec.fingerprint
    (path,) = (tmp_path / "facts").iterdir()
    path.write_text(json.dumps({"cosine_deviation": "much"}))
    assert on_accelerator(folder, tmp_path, dtype="bfloat16").spec.deviation is not None
    assert len(caplog.records) == 2


def test_what_loses_nothing_is_not_measured(checkpoint, caplog):
    half = checkpoint("roberta", dtype=torch.bfloat16)
    assert on_accelerator(half, None, dtype="bfloat16").spec.deviation is None
    assert on_accelerator(half, None, dtype="float32").spec.deviation is None
    assert not caplog.records


def test_no_room_for_float32_leaves_the_deviation_unknown(checkpoint, monkeypatch, caplog):
    encoder = on_accelerator(checkpoint("roberta"), None, dtype="bfloat16")

    def load(*given):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 28.00 GiB.")

    assert encoder._model
    monkeypatch.setattr(sentence_transformer, "load", load)
    assert encoder.spec.deviation is None
    assert not caplog.records


def test_the_signature_has_the_deviation(write_corpus):
    document = {"id": "a", "units": ["a b", "c d", "e f"], "gold": [1, 2], "systems": {"x": [2, 1]}}
    corpus = reffree.load(write_corpus([document]))
    embedded = reffree.embed(corpus, cache=False)
    spec = replace(embedded.spec, dtype="tf32", deviation=0.00034)
    given = {"metrics": ["arp_cos"], "embeddings": replace(embedded, spec=spec)}
    scored = reffree.score(corpus, **given)
    assert "|dtype:tf32(cosine deviation<=4e-04 on 64 texts)|" in scored.signature


# Several devices.


def test_devices():
    assert device_names("cpu, cpu") == ["cpu", "cpu"]
    assert choose_device("cpu,cpu") == CPU
    with pytest.raises(OptionError, match=r"the device 'gpu'; .*several with commas"):
        device_names("cpu,gpu")
    count = torch.cuda.device_count()
    with pytest.raises(EncoderError, match=f"found {count} CUDA devices"):
        choose_device(f"cuda:{count}")
    if not count:
        with pytest.raises(EncoderError, match="device 'all': found no CUDA devices"):
            choose_device("all")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "cuda"),
        ({"WORLD_SIZE": "1", "LOCAL_RANK": "0"}, "cuda"),
        ({"WORLD_SIZE": "4", "LOCAL_RANK": "3"}, "cuda:3"),
        ({"WORLD_SIZE": "8", "LOCAL_RANK": "5"}, "cuda:1"),  # as accelerate shares them out
    ],
)
def test_processes_of_a_launcher_have_a_card_each(monkeypatch, environment, expected):
    monkeypatch.setattr(device, "may_have_card", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert [str(choose_device(name)) for name in ("auto", "cuda")] == [expected] * 2
    assert str(choose_device("cuda:2")) == "cuda:2"
    assert str(choose_device("cpu")) == "cpu"


@pytest.mark.parametrize(
    ("name", "cluster"),
    [
        ("ray", RayCluster(None, None)),
        ("ray:actors=4", RayCluster(None, 4)),
        ("ray:address=auto", RayCluster("auto", None)),
        ("ray:actors=2,address=10.0.0.1:6379", RayCluster("10.0.0.1:6379", 2)),
        *((name, None) for name in ("cpu", "all", "ray:", "ray:actors=0", "ray:gpus=1", "rays")),
    ],
)
def test_clusters(name, cluster):
    assert parse_ray(name) == cluster


@pytest.mark.parametrize("n", [0, 1, 7, 100, 10_000])
def test_shares_hold_every_text_once_longest_first(n):
    texts = ["x" * (i % 17) for i in range(n)]
    parts = shares(texts, 3)
    positions = [i for part in parts for i in part]
    assert sorted(positions) == list(range(n))
    lengths = [len(texts[i]) for i in positions]
    assert lengths == sorted(lengths, reverse=True)
    assert all(len(part) <= 4096 for part in parts)


def test_copies_on_several_devices_give_the_vectors_of_one(checkpoint, tmp_path):
    folder = str(checkpoint("roberta"))
    alone = encode(open_encoder(EncoderOptions(encoder=folder, device="cpu", cache=False)), TEXTS)
    named = spelt(folder, batch_tokens=64)
    options = EncoderOptions(encoder=named, device="cpu,cpu,cpu", cache=tmp_path)
    encoder = open_encoder(options)
    n_threads = threading.active_count()
    found = encode(encoder, TEXTS)
    assert threading.active_count() == n_threads
    assert_allclose(found, alone, atol=1e-5)
    assert len({id(one._model) for one in encoder.inner._replicas}) == 3
    assert encoder.cache.n_rows == encoder.n_encoded == len(set(TEXTS))
    assert_array_equal(encode(open_encoder(replace(options, device="cpu")), TEXTS), found)
    assert encoder.inner.count_tokens(TEXTS[:2]) == [5, 5]


class Slow:
    """A device that waits for its turn, then encodes or fails."""

    def __init__(self, spec, may_go, error=None):
        self.spec, self.may_go, self.error, self.n = spec, may_go, error, 0

    def stream(self, texts):
        self.may_go.wait(60)
        if self.error:
            raise self.error
        for i in range(len(texts)):
            self.n += 1
            yield EncodedTexts([i], np.ones((1, 2), dtype=np.float32), [1])


SPEC = EncoderSpec("a/b", "1", "mean", "none", "float32", 128, "test")
OPEN = threading.Event()
OPEN.set()


def test_what_fails_on_one_device_ends_all():
    others = Slow(SPEC, OPEN)
    failing = Slow(SPEC, OPEN, EncoderError("found no card"))
    n_threads = threading.active_count()
    with pytest.raises(EncoderError, match="found no card"):
        list(ReplicatedEncoder([others, failing]).stream(["x"] * 10**5))
    assert threading.active_count() == n_threads
    assert others.n < 10**5


@pytest.mark.parametrize("how", ["close", "interrupt"])
def test_leaving_early_ends_all_devices(how):
    devices = [Slow(SPEC, OPEN) for _ in range(3)]
    n_threads = threading.active_count()
    stream = ReplicatedEncoder(devices).stream(["x"] * 10**5)
    next(stream)
    if how == "close":
        stream.close()
    else:
        with pytest.raises(KeyboardInterrupt):
            stream.throw(KeyboardInterrupt)
    assert threading.active_count() == n_threads
    assert sum(device.n for device in devices) < 10**5


def test_a_slow_device_leaves_the_rest_to_the_others():
    gate = threading.Event()
    slow, fast = Slow(SPEC, gate), Slow(SPEC, OPEN)
    stream = ReplicatedEncoder([slow, fast]).stream(["x"] * 800)
    for _ in range(700):
        next(stream)
    gate.set()
    assert len(list(stream)) == 100
    assert (slow.n, fast.n) == (100, 700)
