"""Loaders, settings and fingerprints of models, on tiny checkpoints and on packaged real ones."""

from __future__ import annotations

import json
import logging
import pickle
import shutil
import socket
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import reffree
from reffree.encoders.aliases import ALIASES, PACKAGED, is_installed
from reffree.encoders.cache import cache_path
from reffree.encoders.device import may_have_card
from reffree.encoders.models import DECODERS, find_model, is_decoder
from reffree.encoders.models import ENCODERS as ENCODER_TYPES
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import SETTINGS, EncoderOptions, ModelSettings, parse_encoder
from reffree.util.errors import EncoderError, OptionError
from tests.checkpoints import CONFIGS, ENCODERS
from tests.encoders.streams import TEXTS, encode, opened, spelt


@pytest.fixture(scope="session")
def minilm():
    return opened("minilm")


def states_one_by_one(folder):
    """Each text alone, without padding, through transformers itself: its states at every layer."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    states = []
    for text in TEXTS:
        ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=32)["input_ids"]
        with torch.no_grad():
            states.append([x[0] for x in model(ids, output_hidden_states=True).hidden_states])
    return states


POOLED = {"mean": lambda x: x.mean(0), "cls": lambda x: x[0], "lasttoken": lambda x: x[-1]}


@pytest.mark.parametrize("padding_side", ["left", "right"])
@pytest.mark.parametrize("architecture", CONFIGS)
def test_batches_equal_texts_alone(checkpoint, architecture, padding_side):
    folder = checkpoint(architecture, padding_side=padding_side)
    states = states_one_by_one(folder)
    for pooling in POOLED:
        for layer in (-1, 1):
            if pooling == "cls" and architecture not in ENCODERS:
                continue
            encoder = opened(folder, pooling=pooling, layer=layer)
            expected = [POOLED[pooling](layers[layer]).numpy() for layers in states]
            for batch_tokens in (1, 40, 4096):
                encoder.batch_tokens = batch_tokens
                assert_allclose(encode(encoder, TEXTS), expected, atol=1e-5, rtol=1e-5)


SPREAD = {
    "falcon": dict.fromkeys(["word_embeddings", "h.0", "h.1", "ln_f", "rotary_emb"], "disk"),
    "llama": {
        **{"embed_tokens": "cpu", "layers.0": "cpu", "layers.1": "disk"},
        **{"norm": "cpu", "rotary_emb": "cpu"},
    },
    "roberta": {"embeddings": "cpu", "encoder": "disk", "pooler": "cpu"},
}


@pytest.mark.parametrize("architecture", SPREAD)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_model_spread_over_memory_and_disk_gives_the_same(checkpoint, architecture, dtype):
    """In another type than they are stored in, weights cannot stay in their own file."""
    folder = checkpoint(architecture)
    expected = encode(opened(folder, dtype=dtype), TEXTS)
    spread = opened(folder, device_map=SPREAD[architecture], dtype=dtype)
    assert_allclose(encode(spread, TEXTS), expected, atol=1e-6)
    assert "disk" in map(str, spread._model[0].model.hf_device_map.values())
    anywhere = opened(folder, device_map="auto", dtype=dtype)
    assert_allclose(encode(anywhere, TEXTS), expected, atol=1e-6)


# README of sentence-transformers (v3 and later), "Getting Started", of all-MiniLM-L6-v2.
REFERENCE = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
REFERENCE_COSINES = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]


def test_the_packaged_encoder_has_the_cosines_its_authors_print(minilm):
    x = encode(minilm, REFERENCE)
    assert_allclose(x @ x.T, REFERENCE_COSINES, atol=5e-5)


@pytest.mark.skipif(not is_installed("wordllama"), reason="an optional package")
def test_static_vectors_are_means_of_the_packages_own():
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    encoder = opened("wordllama")
    weights, tokenizer = (encoder.folder.path / name for name in PACKAGED["wordllama"].files)
    (table,) = load_file(weights).values()
    tokens = Tokenizer.from_file(str(tokenizer))
    texts = [*REFERENCE, "Yes.", "你好", "word " * 3000]
    expected = [
        table[tokens.encode(text, add_special_tokens=False).ids].astype(np.float64).mean(0)
        for text in texts
    ]
    assert_allclose(encode(encoder, texts), expected, atol=1e-5)
    encoder.batch_tokens = 1
    assert_allclose(encode(encoder, texts), expected, atol=1e-5)
    with pytest.raises(OptionError, match="layer = 1 for wordllama"):
        find_model("wordllama", settings=ModelSettings(layer=1))


@pytest.mark.skipif(not is_installed("smollm2"), reason="optional packages")
def test_a_real_decoder_encodes_plain_text():
    """Alone, the definition: a text's hidden states, without the chat template it comes with."""
    encoder = opened("smollm2")
    texts = [*REFERENCE, "Yes."]
    vectors = encode(encoder, texts)
    model, tokenizer = encoder._model[0].model, encoder._model.tokenizer
    assert (type(model).__name__, vectors.shape) == ("LlamaModel", (4, 576))
    assert sum(p.numel() for p in model.parameters()) == ALIASES["smollm2"].parameters
    assert tokenizer.chat_template is not None
    for text, vector in zip(texts, vectors, strict=True):
        with torch.no_grad():
            ids = tokenizer(text, return_tensors="pt")["input_ids"]
            expected = model(ids).last_hidden_state[0].mean(0)
        assert_allclose(vector, expected, atol=1e-4)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    assert cosines[0, 1] > max(cosines[0, 2], cosines[1, 2])


@pytest.mark.parametrize("alias", PACKAGED)
def test_a_packaged_model_that_is_not_installed_says_how_to_get_it(monkeypatch, alias):
    monkeypatch.setitem(PACKAGED, alias, replace(PACKAGED[alias], needs=("no-such-reader",)))
    with pytest.raises(EncoderError, match=r"no installed package (no-such-reader|llm-)"):
        find_model(alias)
    absent = replace(PACKAGED[alias], package="no-such-package")
    monkeypatch.setitem(PACKAGED, alias, absent)
    with pytest.raises(EncoderError) as error:
        find_model(alias)
    assert "found no installed package no-such-package" in str(error.value)
    assert absent.install in str(error.value)
    wrong = replace(absent, package="click", needs=(), files={"core.py": ""})
    monkeypatch.setitem(PACKAGED, alias, wrong)
    with pytest.raises(EncoderError, match=r"core.py: found sha256 .* is not the release"):
        find_model(alias)


def test_settings_do_not_mix_in_the_cache(checkpoint, tmp_path):
    folder = str(checkpoint("roberta"))
    chosen = [{}, {"pooling": "cls"}, {"prompt": "winter "}, {"layer": 1}, {"max_length": 5}]
    kinds = [*chosen, {"dtype": "float16"}, {"attention": "eager"}, {"quantisation": "8bit"}]
    kinds += [{"layer": 0}, {"trust_remote_code": True}]
    specs = [find_model(folder, settings=ModelSettings(**how)).spec for how in kinds]
    assert len({cache_path(tmp_path, spec) for spec in specs}) == len(kinds)
    alone = [
        encode(open_encoder(EncoderOptions(encoder=spelt(folder, **how), cache="off")), TEXTS)
        for how in chosen
    ]
    for i, a in enumerate(alone):
        for b in alone[:i]:
            assert np.abs(a - b).max() > 1e-3
    for _ in range(2):  # filled, then read
        for how, expected in zip(chosen, alone, strict=True):
            options = EncoderOptions(encoder=spelt(folder, **how), cache=tmp_path)
            assert_array_equal(encode(open_encoder(options), TEXTS), expected)


def test_one_layer_has_one_name(checkpoint):
    folder = str(checkpoint("llama"))

    def layer(n):
        return find_model(folder, settings=ModelSettings(layer=n)).spec

    assert layer(-1) == layer(2) == layer(None)
    assert layer(-2) == layer(1) != layer(0) == layer(-3)
    for wrong in (3, -4):
        with pytest.raises(OptionError, match=f"layer = {wrong}; expected 0 .* to 2, or -1"):
            layer(wrong)


def test_settings_that_do_not_exist_or_fit(checkpoint):
    for name in (name for name, (kind, _) in SETTINGS.items() if isinstance(kind, tuple)):
        with pytest.raises(OptionError, match=f"{name} = 'x'; expected"):
            ModelSettings(**{name: "x"})
    for length in (3, 513):
        with pytest.raises(OptionError, match=r"expected at least 4 tokens and at most 512"):
            find_model("minilm", settings=ModelSettings(max_length=length))
    assert find_model("minilm", settings=ModelSettings(max_length=512)).spec.max_length == 512
    with pytest.raises(OptionError, match="whose first token sees no other"):
        opened(checkpoint("falcon"), pooling="cls")
    spec = find_model("minilm", settings=ModelSettings(pooling="cls")).spec
    assert (spec.backend, spec.pooling, spec.normalisation) == (
        *("transformers-encoder", "cls", "none"),
    )


def as_sentence_transformer(folder, **config):
    """Give a plain folder a sentence-transformers head with mean pooling."""
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_P", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_P").mkdir()
    pooling = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}
    (folder / "1_P" / "config.json").write_text(json.dumps(pooling))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config))
    return folder


def test_prompts(checkpoint, tmp_path):
    folder = checkpoint("roberta")
    told = encode(opened(folder, prompt="winter "), TEXTS[:3])
    expected = encode(opened(folder), [f"winter {text}" for text in TEXTS[:3]])
    assert_allclose(told, expected, atol=1e-6)
    own = as_sentence_transformer(
        shutil.copytree(folder, tmp_path / "own"),
        prompts={"it": "winter "},
        default_prompt_name="it",
    )
    assert opened(own).spec.prompt == "winter "
    assert_allclose(encode(opened(own), TEXTS[:3]), expected, atol=1e-6)
    silent = encode(opened(own, prompt=""), TEXTS[:3])
    assert_allclose(silent, encode(opened(folder), TEXTS[:3]), atol=1e-6)
    counts = {e.tokens[0] for e in opened(own).stream(["bees"])}
    assert counts == {4}  # <s> winter bees </s>


def test_attention_is_the_architectures_best_unless_it_is_asked_for(checkpoint):
    for architecture, best in {"mpnet": "eager", "roberta": "sdpa", "llama": "sdpa"}.items():
        encoder = opened(checkpoint(architecture))
        assert encoder._model[0].model.config._attn_implementation == best
        eager = opened(checkpoint(architecture), attention="eager")
        assert_allclose(encode(eager, TEXTS), encode(encoder, TEXTS), atol=1e-5)
    with pytest.raises(EncoderError, match=r"MPNetModel does not support .*; leave out attention"):
        encode(opened(checkpoint("mpnet"), attention="sdpa"), TEXTS)


OWN_CODE = """
from pathlib import Path
from transformers import RobertaConfig, RobertaModel
Path({marker!r}).touch()
class OwnConfig(RobertaConfig):
    model_type = "own"
class OwnModel(RobertaModel):
    config_class = OwnConfig
"""


def with_code(folder, target, marker, model_type):
    shutil.copytree(folder, target)
    (target / "own.py").write_text(OWN_CODE.format(marker=str(marker)))
    config = json.loads((target / "config.json").read_text())
    auto_map = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    config |= {"auto_map": auto_map, "model_type": model_type}
    (target / "config.json").write_text(json.dumps(config))
    return target


def test_code_runs_only_when_asked_and_is_said(checkpoint, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "hf"))
    monkeypatch.syspath_prepend(str(tmp_path / "hf"))
    marker = tmp_path / "ran"
    folder = with_code(checkpoint("roberta"), tmp_path / "m", marker, "own")
    with pytest.raises(EncoderError, match=r"architecture 'own'.*or set trust_remote_code=true"):
        opened(folder)
    assert not marker.exists()
    encoder = opened(folder, trust_remote_code=True)
    with caplog.at_level(logging.WARNING, "reffree"):
        vectors = encode(encoder, TEXTS[:5])
    assert marker.exists()
    assert encoder.spec.code == "trusted"
    assert "encoder 'm' may run code that comes with it (trust_remote_code)" in caplog.text
    assert_allclose(vectors, encode(opened(checkpoint("roberta")), TEXTS[:5]), atol=1e-6)


def test_code_of_a_known_architecture_is_left_alone(checkpoint, tmp_path):
    """As in Falcon's folder, whose own code transformers has replaced."""
    marker = tmp_path / "ran"
    folder = with_code(checkpoint("roberta"), tmp_path / "m", marker, "roberta")
    expected = encode(opened(checkpoint("roberta")), TEXTS)
    assert_allclose(encode(opened(folder), TEXTS), expected, atol=1e-6)
    assert not marker.exists()


class Evil:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (self.marker,))


def test_pickled_weights_are_read_only_when_asked(checkpoint, tmp_path, caplog):
    from safetensors.torch import load_file

    source, folder = checkpoint("roberta"), tmp_path / "m"
    shutil.copytree(source, folder)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    with pytest.raises(EncoderError, match=r"found no .safetensors weights.*allow_pickle=true"):
        opened(folder)
    encoder = opened(folder, allow_pickle=True)
    with caplog.at_level(logging.WARNING, "reffree"):
        assert_allclose(encode(encoder, TEXTS), encode(opened(source), TEXTS), atol=1e-6)
    assert encoder.spec.weights == "bin"
    assert "is read from pickled weights" in caplog.text
    marker = tmp_path / "ran"
    with (folder / "pytorch_model.bin").open("wb") as file:
        pickle.dump({"embeddings": Evil(marker)}, file)
    with pytest.raises(EncoderError):
        encode(opened(folder, allow_pickle=True), TEXTS)
    assert not marker.exists()


def test_a_unit_that_looks_like_a_file_is_text(checkpoint, tmp_path):
    """Of a model that also reads pictures: none is opened because a corpus names it."""
    folder = as_sentence_transformer(shutil.copytree(checkpoint("roberta"), tmp_path / "m"))
    how = {"method": "forward", "method_output_name": "last_hidden_state"}
    config = {"modality_config": {"text": how, "image": how}}
    config |= {"module_output_name": "token_embeddings", "transformer_task": "feature-extraction"}
    (folder / "sentence_bert_config.json").write_text(json.dumps(config))
    picture = tmp_path / "bees.png"
    picture.write_text("no picture")
    texts = [str(picture), "https://example.org/bees.png", "bees.mp4"]
    vectors = encode(opened(folder), texts)
    assert_allclose(vectors, encode(opened(checkpoint("roberta")), texts), atol=1e-6)


@pytest.fixture
def no_connections(monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", forbidden)
    monkeypatch.setattr(socket, "getaddrinfo", forbidden)
    monkeypatch.setattr(socket, "create_connection", forbidden)


def test_offline_from_the_name_to_the_vectors(no_connections, tmp_path):
    options = EncoderOptions(encoder="minilm", offline=True, cache=tmp_path, device="cpu")
    assert encode(open_encoder(options), ["Bees dance."]).shape == (1, 384)


def test_aliases_pin_their_settings(monkeypatch, checkpoint):
    """Falcon is computed in the type its weights have; no name of a folder gets in between."""
    folder = checkpoint("falcon")
    monkeypatch.setattr("reffree.encoders.models.hub_folder", lambda name, **how: folder)
    falcon = find_model("falcon-7b").spec
    assert (falcon.dtype, falcon.pooling, falcon.name) == ("bfloat16", "mean", "tiiuae/falcon-7b")
    assert find_model("falcon-7b", settings=ModelSettings(dtype="float32")).spec.dtype == "float32"
    assert find_model("someone/other").spec.dtype == "float32"


def test_models_are_listed(run, no_connections):
    done = run("models", "-f", "json")
    listed = {row["alias"]: row for row in json.loads(done.stdout)}
    assert list(listed) == list(ALIASES)
    assert listed["minilm"]["offline"] is True
    assert listed["minilm"]["revision"] == find_model("minilm").spec.revision
    assert listed["falcon-7b"]["dimension"] == 4544
    assert all(row["licence"] and row["parameters"] and row["bytes"] for row in listed.values())
    assert listed["minilm"]["speed"]["units_per_second"] > 0
    table = run("models").stdout
    assert "sentence-transformers/all-mpnet-base-v2" in table
    assert "To get falcon-7b: hf download tiiuae/falcon-7b" in table
    assert "units/s" in table


def test_settings_are_shown_once_and_taken_everywhere(run):
    shown = run("models", "--help").stdout
    assert all(f"  {field.name}=" in shown for field in fields(ModelSettings))
    assert "--encoder" in run("score", "--help").stdout


@pytest.mark.parametrize("name", [*(n for n in ALIASES if n not in PACKAGED), "someone/a-model"])
def test_offline_says_where_it_looked_and_names_the_pinned_revision(no_connections, name):
    with pytest.raises(EncoderError) as error:
        find_model(name, offline=True)
    known = ALIASES.get(name)
    at = f"{known.model} --revision {known.revision}" if known else name
    assert "(offline); expected a downloaded model; download it on a machine" in str(error.value)
    assert f"hf download {at}" in str(error.value)
    assert "Names that need no download: minilm" in str(error.value)


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("mpnet", "mpnet", {}),
        ("e5:prompt=query: ", "e5", {"prompt": "query: "}),
        ("e5:prompt=", "e5", {"prompt": ""}),
        ("m:prompt=a, b: c=d,layer=-2", "m", {"prompt": "a, b: c=d", "layer": -2}),
        ("org/model:pooling=cls,max_length=16", "org/model", {"pooling": "cls", "max_length": 16}),
        (r"C:\models\m:dtype=auto", r"C:\models\m", {"dtype": "auto"}),
        ("http://h:80/v1#a/b:v1:context=1", "http://h:80/v1#a/b:v1", {"context": 1}),
        ("m:allow_pickle=true,device_map=auto", "m", {"allow_pickle": True, "device_map": "auto"}),
        ('m:device_map={"a": 0, "b": "cpu"}', "m", {"device_map": '{"a": 0, "b": "cpu"}'}),
    ],
)
def test_names_and_settings_are_told_apart(text, name, settings):
    assert parse_encoder(text) == (name, ModelSettings(**settings))
    options = EncoderOptions(encoder=text)
    assert (options.model, options.model_settings) == (name, ModelSettings(**settings))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("m:poolin=cls", "the encoder setting 'poolin'; expected pooling, layer, "),
        ("m:pooling=max", "pooling = 'max'; expected mean or cls or lasttoken; leave it out"),
        ("m:pooling=", "pooling = ''; expected mean or"),
        ("m:layer=two", "layer = 'two'; expected a whole number; leave it out"),
        ("m:max_length=0", "max_length = '0'; expected a whole number, 1 or more"),
        ("m:context=-1", "context = '-1'; expected a whole number, 0 or more"),
        ("m:batch_tokens=" + "9" * 5000, "batch_tokens = '9999"),
        ("m:allow_pickle=yes", "allow_pickle = 'yes'; expected true or false"),
        ("m:layer=1,layer=2", "the encoder setting layer twice; expected it once"),
        ("m:layer=1,poolin=cls", "layer = '1,poolin=cls'; expected a whole number"),
        ("m:device_map=both", "device_map = 'both'; expected auto or balanced or"),
        ("m:device_map={", "device_map = '{'; expected auto or balanced or"),
        ({"device": "gpu"}, "the device 'gpu'; expected auto, cpu, cuda"),
        ({"device": "ray:actors=0"}, "the device 'ray:actors=0'"),
    ],
)
def test_options_that_are_none_are_refused_before_anything_is_looked_for(options, found):
    with pytest.raises(OptionError) as error:
        EncoderOptions(**({"encoder": options} if isinstance(options, str) else options))
    assert f"found {found}" in str(error.value)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"drop": ["repeat"]}, "drop = repeat; expected backchannels or repeats"),
        ({"cache": True}, "cache = True; expected"),
    ],
)
def test_options_of_no_kind_are_refused_by_functions(options, found):
    corpus = reffree.Corpus((reffree.Document.build("d", ["a", "b"], gold=[1, 1]),))
    with pytest.raises(OptionError, match=f"found {found}"):
        reffree.embed(corpus, **options)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_what_reads_to_the_left_only_is_known_without_transformers(checkpoint, architecture):
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES as MASKED

    config = json.loads((checkpoint(architecture) / "config.json").read_text())
    kinds = {config["model_type"], *DECODERS, *ENCODER_TYPES, "bart"}
    for kind in kinds:
        assert is_decoder({"model_type": kind}) == (kind in CAUSAL and kind not in MASKED), kind


def test_nothing_heavy_is_imported_where_all_is_cached(tmp_path, pytestconfig):
    code = (
        "import sys, reffree\n"
        "corpus = reffree.load(sys.argv[1])\n"
        "for _ in range(2):\n"
        "    found = reffree.embed(corpus, cache=sys.argv[2])\n"
        "    print(found.device, *sorted({'torch', 'transformers', 'sentence_transformers'} & "
        "sys.modules.keys()), file=sys.stderr)\n"
    )
    (tmp_path / "c.jsonl").write_text('{"id": "a", "units": ["Bees dance.", "Why?"]}\n')
    command = [sys.executable, "-c", code, tmp_path / "c.jsonl", tmp_path / "cache"]
    how = {"cwd": pytestconfig.rootpath, "capture_output": True, "text": True, "check": True}
    told = [line for _ in range(2) for line in subprocess.run(command, **how).stderr.splitlines()]
    assert told[0] == "cpu sentence_transformers torch transformers"
    if not may_have_card():
        assert told[2:] == ["cpu", "cpu"]


def test_what_is_listed_of_the_packaged_models_is_so(minilm):
    encoders = {"minilm": minilm}
    if is_installed("wordllama"):
        encoders["wordllama"] = opened("wordllama")
    for alias, encoder in encoders.items():
        known = ALIASES[alias]
        assert known.loader == encoder.folder.loader
        assert known.size == (encoder.folder.path / PACKAGED[alias].weights).stat().st_size
        assert known.parameters == sum(p.numel() for p in encoder._model.parameters())
        assert known.dimension == encode(encoder, ["a"]).shape[1]
