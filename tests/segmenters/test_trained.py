"""What all trained networks promise: folders, encoders, interruptions, repetition, refusals."""

from __future__ import annotations

import inspect
import json
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import reffree
from reffree.cli.declaration import read_declaration
from reffree.cli.train import KINDS, command
from reffree.data.corpus import Corpus, Document
from reffree.encoders.address import is_endpoint
from reffree.encoders.base import EncoderSpec
from reffree.encoders.embed import embed, from_arrays
from reffree.encoders.options import EncoderOptions
from reffree.segmenters.base import Inputs
from reffree.segmenters.segment import parse_segmenter, segment
from reffree.segmenters.trained.csm import CoherenceModel, train_csm
from reffree.segmenters.trained.folder import trained_encoding
from reffree.segmenters.trained.labeller import TrainedLabeller, train_segmenter
from reffree.segmenters.trained.scorer import TrainedScorer, gap_probabilities, train_scorer
from reffree.segmenters.trained.settings import CsmSettings, LabellerSettings, ScorerSettings
from reffree.util.declare import options_of
from reffree.util.errors import EncoderError, InputError, OptionError
from reffree.util.naming import spelling_of
from tests.helpers import corpus_of, invoke, topical_corpus

GOLDS = [[4, 5, 3], [5, 4], [3, 3, 6], [6, 5]] * 3
CORPUS, VECTORS = topical_corpus(GOLDS)
FRESH_CORPUS, FRESH_VECTORS = topical_corpus(GOLDS[:4], seed=1)
FRESH = Inputs(FRESH_CORPUS, embeddings=FRESH_VECTORS, device="cpu")

QUICK = {
    "scorer": {"splice_epochs": 1, "epochs": 3, "hidden": 8},
    "csm": {"epochs": 4, "hidden": 8},
    "segmenter": {"epochs": 4, "hidden": 8, "layers": 1},
}
TRAINED = {"scorer": TrainedScorer, "csm": CoherenceModel, "segmenter": TrainedLabeller}
SETTINGS = {"scorer": ScorerSettings, "csm": CsmSettings, "segmenter": LabellerSettings}
FUNCTIONS = {"scorer": train_scorer, "csm": train_csm, "segmenter": train_segmenter}
every_kind = pytest.mark.parametrize("kind", TRAINED)


def train(kind, corpus=CORPUS, vectors=VECTORS, **more):
    options = QUICK[kind] | {"device": "cpu"} | more
    given = vectors if kind == "segmenter" else {"corpus": vectors}
    return FUNCTIONS[kind](corpus, embeddings=given, **options)


def method_of(kind, folder):
    return f"{KINDS[kind][1]}:path={folder}"


@pytest.fixture(scope="module")
def networks():
    return {kind: train(kind) for kind in TRAINED}


@pytest.fixture(scope="module")
def folders(networks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    for kind, network in networks.items():
        network.save(folder / kind)
    return folder


@pytest.fixture
def encodes_nothing(monkeypatch):
    def encode(*args, **options):
        raise AssertionError("encoded all the same")

    monkeypatch.setattr("reffree.encoders.embed.encode_corpus", encode)


@every_kind
def test_functions_commands_and_settings_have_the_same_options(kind):
    declared = {option.name: option.default for option in options_of(FUNCTIONS[kind])}
    settings = {each.name: each.default for each in fields(SETTINGS[kind])}
    shared = declared.keys() & settings.keys()
    assert settings.keys() - shared <= {"finetune", "weight_decay"}
    resolved = SETTINGS[kind]().resolved()
    for name in shared:
        assert declared[name] in (settings[name], getattr(resolved, name)), name
    module = inspect.getmodule(inspect.unwrap(FUNCTIONS[kind])).__name__
    assert KINDS[kind][0] == module.rpartition(".")[2]
    read = read_declaration(module, f"train_{kind}")
    assert {option.name: option.default for option in read.options} == declared
    flags = [param for param in command.load(kind).params if param.param_type_name == "option"]
    assert len(flags) <= 20


@every_kind
def test_round_trip(kind, networks, folders):
    loaded = TRAINED[kind].load(folders / kind)
    assert replace(loaded.description, weights="") == networks[kind].description
    pairs = zip(networks[kind].gap_scores(FRESH), loaded.gap_scores(FRESH), strict=True)
    assert all((a == b).all() for a, b in pairs)
    assert {p.name for p in (folders / kind).iterdir()} == {"trained.json", "weights.safetensors"}
    written = json.loads((folders / kind / "trained.json").read_text())
    assert written["kind"] == kind
    assert written["fingerprint"] == loaded.description.encoder.fingerprint
    resolved = loaded.description.settings
    assert None not in (resolved.learning_rate, resolved.batch_size, resolved.dropout)


@every_kind
def test_one_seed_makes_the_same_network(kind, networks, folders, tmp_path):
    torch.manual_seed(99)  # the caller's own random numbers change nothing, and go on as they were
    before = torch.get_rng_state()
    again = train(kind)
    assert torch.equal(before, torch.get_rng_state())
    assert again.description == networks[kind].description
    again.save(tmp_path / "again")
    paths = (folders / kind, tmp_path / "again")
    first, second = (load_file(path / "weights.safetensors") for path in paths)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert train(kind, seed=1).description.history != again.description.history


def spoil(folder, **changes):
    path = folder / "trained.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@every_kind
@pytest.mark.parametrize(
    ("spoiling", "message"),
    [
        (
            lambda f: (f / "trained.json").unlink(),
            r"trained\.json: found no KIND \(.*train KIND wr",
        ),
        (lambda f: (f / "trained.json").rename(f / "KIND.json"), "a KIND of another version"),
        (lambda f: (f / "trained.json").write_text("{"), "found a damaged description"),
        (lambda f: (f / "trained.json").write_text("[1]"), "found a damaged description"),
        (lambda f: spoil(f, kind="other"), "found no KIND, but a other|a damaged description"),
        (lambda f: spoil(f, format=9), "a KIND of another version of reffree"),
        (lambda f: spoil(f, settings={"hidden": -3}), "found a damaged description|hidden = -3"),
        (lambda f: spoil(f, settings={"depth": 3}), "found a damaged description"),
        (lambda f: spoil(f, dimension=7), "weights of another shape than described"),
        (lambda f: (f / "weights.safetensors").unlink(), "found no weights"),
        (lambda f: (f / "weights.safetensors").write_bytes(b"x"), "do not belong to the descr"),
    ],
)
def test_damaged_folders_are_refused(kind, networks, tmp_path, spoiling, message, encodes_nothing):
    networks[kind].save(tmp_path / "s")
    spoiling(tmp_path / "s")
    if (tmp_path / "s" / "KIND.json").exists():
        (tmp_path / "s" / "KIND.json").rename(tmp_path / "s" / f"{kind}.json")
    with pytest.raises(InputError, match=message.replace("KIND", kind)):
        segment(CORPUS, method_of(kind, tmp_path / "s"))


def test_a_folder_of_another_kind_is_refused(folders, encodes_nothing):
    with pytest.raises(InputError, match="found no scorer, but a csm; expected a folder that"):
        segment(CORPUS, f"scorer:path={folders / 'csm'}")


def test_nothing_is_written_over(networks, tmp_path):
    network = networks["csm"]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="full: found a folder that is not empty"):
        network.save(tmp_path / "full")
    with pytest.raises(InputError, match=r"mine\.txt: found a file"):
        network.save(tmp_path / "full" / "mine.txt")
    with pytest.raises(InputError, match="found no folder"):
        network.save(tmp_path / "none" / "s")
    network.save(tmp_path / "empty")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "full"]


@every_kind
def test_methods_are_named_by_their_folders(kind, folders):
    text = f"{method_of(kind, folders / kind)},threshold=held_out"
    method = parse_segmenter(text)
    assert spelling_of(method) == text.removesuffix(",threshold=held_out") + (
        "" if kind == "segmenter" else ",threshold=held_out"
    )
    assert method.needs_embeddings
    made = segment(FRESH_CORPUS, {"s": text}, embeddings=FRESH_VECTORS).hypotheses["s"]
    assert made == method(FRESH)


@every_kind
def test_the_threshold_of_training_can_be_asked_for(kind, networks, tmp_path):
    network = networks[kind]
    description = replace(
        network.description, figures=network.description.figures | {"threshold": 0.3}
    )
    replace(network, description=description).save(tmp_path / "s")
    text = method_of(kind, tmp_path / "s")
    own, given = (parse_segmenter(f"{text},threshold={t}")(FRESH) for t in ("held_out", "0.3"))
    assert own == given


@every_kind
def test_every_document_is_covered(kind, folders):
    rng = np.random.default_rng(0)
    vectors = {
        "one": rng.normal(size=(1, 8)),
        "two": rng.normal(size=(2, 8)),
        "alike": np.ones((9, 8)),
        "zero": np.zeros((5, 8)),
        "huge": rng.normal(size=(6, 8)) * 1e300,
        "tiny": rng.normal(size=(6, 8)) * 1e-300,
        "mixed": rng.normal(size=(6, 8)) * np.logspace(-200, 200, 6)[:, None],
        "whole": rng.integers(-3, 3, size=(7, 8)),
        "long": rng.normal(size=(3000, 8)),
    }
    corpus = Corpus(tuple(Document.build(k, ["x"] * len(x)) for k, x in vectors.items()))
    inputs = Inputs(corpus, embeddings=list(vectors.values()), device="cpu")
    text = method_of(kind, folders / kind)
    for scores, x in zip(
        parse_segmenter(text).boundary_scores(inputs), vectors.values(), strict=True
    ):
        assert scores.shape == (len(x) - 1,)
        assert ((scores >= 0) & (scores <= 1)).all()
    more = ("", ",k=3", *((",density=0.3",) if kind != "segmenter" else ()))
    for option in more:
        found = parse_segmenter(text + option)(inputs)
        assert [s.n_units for s in found] == [len(x) for x in vectors.values()]


@every_kind
def test_awkward_documents_can_be_trained_on(kind):
    golds = [(1,), (1, 1), (4,), (1, 1, 1), (2, 3), (3, 2), (1,), (5, 1), (2, 4)]
    sizes = np.logspace(-200, 200, 9)
    rng = np.random.default_rng(0)
    vectors = [np.zeros((5, 4)) if i == 4 else x * rng.normal(size=(sum(golds[i]), 4))
               for i, x in enumerate(sizes)]  # fmt: skip
    corpus = corpus_of(*golds)
    made = train(kind, corpus, vectors, epochs=1, held_out=0.4, batch_size=3)
    found = made.gap_scores(Inputs(corpus, embeddings=vectors, device="cpu"))
    assert [len(each) for each in found] == [sum(gold) - 1 for gold in golds]
    assert np.isfinite(np.concatenate(found)).all()


@every_kind
def test_another_encoder_is_refused(kind, networks, tmp_path, encodes_nothing):
    spec = replace(networks[kind].description.encoder, name="mini", max_length=384)
    network = replace(networks[kind], description=replace(networks[kind].description, encoder=spec))
    assert network.gap_scores(replace(FRESH, encoder=spec))
    assert (
        network.gap_scores(replace(FRESH, encoder=replace(spec, dtype="tf32")))
        if (spec.dtype == "float32")
        else True
    )
    said = (
        rf"{kind}: found vectors of another encoder \(layer 3 instead of None\); expected those it "
        "was trained on, of 'mini'; use --encoder mini with layer None, or train"
    )
    with pytest.raises(EncoderError, match=said):
        network.gap_scores(replace(FRESH, encoder=replace(spec, layer=3)))
    network.save(tmp_path / "s")
    with pytest.raises(EncoderError, match=r"MiniLM-L6-v2 instead of mini, .*use --encoder mini"):
        segment(CORPUS, method_of(kind, tmp_path / "s"), encoder="minilm")


def test_what_a_network_was_trained_on_may_come_from_a_card(networks):
    def check(found, trained):
        replace(networks["scorer"].description, encoder=trained).check_encoder(found)

    spec = EncoderSpec("a/b", "1", "mean", "none", "float32", 128, "test")
    check(replace(spec, dtype="tf32", deviation=1e-3), spec)
    said = r"\(dtype bfloat16 instead of tf32\).* use --encoder a/b with dtype float32, or"
    with pytest.raises(EncoderError, match=said):
        check(replace(spec, dtype="bfloat16", deviation=0.1), replace(spec, dtype="tf32"))
    with pytest.raises(EncoderError, match=r"\(name c/d instead of a/b\).* use --encoder a/b, or"):
        check(replace(spec, name="c/d", dtype="tf32"), spec)  # the name is what differs


@every_kind
def test_vectors_that_users_bring_need_only_be_as_many_numbers(kind, networks, folders):
    fresh = from_arrays(FRESH_CORPUS, FRESH_VECTORS)
    assert fresh.spec.fingerprint != networks[kind].description.encoder.fingerprint
    made = segment(FRESH_CORPUS, {"s": method_of(kind, folders / kind)}, embeddings=fresh)
    assert len(made.hypotheses["s"]) == len(FRESH_CORPUS)
    narrow = replace(FRESH, embeddings=[x[:, :5] for x in FRESH_VECTORS])
    with pytest.raises(EncoderError, match=f"{kind}: found vectors of 5 dimensions; expected 8"):
        networks[kind].gap_scores(narrow)
    with pytest.raises(InputError, match=f"found no embeddings for {kind}"):
        networks[kind].gap_scores(Inputs(FRESH_CORPUS))


@pytest.fixture(scope="module")
def minilm_folder(tmp_path_factory):
    """A scorer of vectors that are not those of the default encoder: three units are one text."""
    folder = tmp_path_factory.mktemp("minilm") / "s"
    options = {"encoder": "minilm:context=1,max_length=32", "drop": ["repeats"], "offline": True}
    train_scorer(CORPUS, **QUICK["scorer"], **options).save(folder)
    return folder


def test_a_folder_knows_its_encoder(minilm_folder, encodes_nothing):
    spec = TrainedScorer.load(minilm_folder).description.encoder
    found = trained_encoding(EncoderOptions(offline=True), [spec])
    assert (found.model, found.context, found.drop) == ("minilm", 1, ("repeats",))
    assert found.model_settings.max_length == 32
    assert trained_encoding(EncoderOptions(encoder="minilm"), [spec]).context == 0
    # A server is never taken from a folder.
    address = "http://example.org/v1#m"
    assert is_endpoint(address)
    assert trained_encoding(EncoderOptions(), [replace(spec, name=address)]).encoder is None


def test_segment_and_score_take_the_encoder_of_a_folder(minilm_folder):
    text = f"scorer:path={minilm_folder}"
    made = segment(CORPUS, {"s": text}, offline=True)
    options = {"encoder": "minilm:context=1,max_length=32", "drop": ["repeats"], "offline": True}
    assert made.hypotheses["s"] == segment(CORPUS, {"s": text}, **options).hypotheses["s"]
    vectors = embed(CORPUS, **options)
    expected = gap_probabilities(minilm_folder, CORPUS, vectors.vectors, vectors.spec)
    assert [len(each) for each in expected] == [len(d.units) - 1 for d in CORPUS]
    with pytest.raises(EncoderError, match="context 0 instead of 1"):
        segment(CORPUS, text, encoder="minilm:max_length=32", drop=["repeats"], offline=True)


class Stop:
    """Ctrl-C after so many calls."""

    def __init__(self, after):
        self.left = after
        self.seen = []

    def __call__(self, value):
        self.seen.append(value)
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@every_kind
def test_interrupted_training_keeps_the_best_state(kind):
    stop = Stop(2)
    kept = train(kind, on_epoch=stop)
    assert kept.description.is_interrupted
    assert kept.description.history == tuple(stop.seen)
    assert len(stop.seen) == 2
    assert [len(s) for s in kept.gap_scores(FRESH)] == [len(d.units) - 1 for d in FRESH_CORPUS]


@every_kind
def test_interruption_before_there_is_anything(kind):
    def progress(stage, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(kind, progress=progress)


def test_interruption_amid_an_epoch():
    epochs, calls = [], []

    @contextmanager
    def progress(stage, total):
        calls.append((stage, total))
        # Amid the second epoch of the second stage.
        yield Stop(total // 32 // 3 + 2) if stage == "Gold" else lambda done: None

    kept = train("scorer", on_epoch=epochs.append, progress=progress, batch_size=32).description
    assert kept.is_interrupted
    assert kept.history == tuple(epochs)
    assert [(e["stage"], e["epoch"]) for e in epochs] == [("splices", 1), ("gold", 1)]
    assert [stage for stage, _ in calls] == ["Splices", "Gold"]
    assert calls[1][1] == 3 * kept.counts["training_gaps"]


@every_kind
def test_a_training_that_ends_in_no_numbers_is_refused(kind):
    wrong = {"learning_rate": 1e30} | ({"weight_decay": 1e30} if kind == "segmenter" else {})
    with (
        np.errstate(all="ignore"),
        pytest.raises(InputError, match=r"ended in no numbers; .* lower the learning rate from 1e"),
    ):
        train(kind, epochs=2, **wrong)


def without_gold(*lengths):
    return Corpus(tuple(Document.build(f"d{i}", ["x"] * n) for i, n in enumerate(lengths)))


@pytest.mark.parametrize(
    ("kinds", "corpus", "message"),
    [
        (["scorer", "segmenter"], without_gold(2, 2, 2, 2), "'d0': found no gold, which a KIND is"),
        (
            [*TRAINED],
            corpus_of(*[(2, 2)] * 3),
            "a corpus of 3 documents to train on; expected four",
        ),
        (["scorer", "segmenter"], corpus_of(*[(9,)] * 5), "gold with a boundary in no gap"),
        (["scorer", "segmenter"], corpus_of(*[(1, 1, 1)] * 5), "in no gap, or in every gap"),
        (["csm"], without_gold(1, 2, 1, 2, 1, 2), "no document of more than three units to learn"),
    ],
)
def test_corpora_that_teach_nothing_are_refused(kinds, corpus, message, encodes_nothing):
    for kind in kinds:
        with pytest.raises(InputError, match=message.replace("KIND", kind)):
            FUNCTIONS[kind](corpus)
    if "segmenter" in kinds:
        with pytest.raises(InputError, match=r"no gold, which|documents? to train on|in no gap"):
            segment(corpus, "supervised")


@every_kind
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"epochs": -1}, "epochs = -1"),
        ({"held_out": 1.0}, "held_out = 1.0; expected a share above 0"),
        ({"dropout": 1.0}, "dropout = 1.0"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
        ({"batch_size": 0}, "batch_size = 0"),
        ({"hidden": 0}, "hidden = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"mixed_precision": "fp8"}, "mixed_precision = fp8; expected auto or no or bf16"),
    ],
)
def test_settings_out_of_range_are_refused(kind, bad, message, encodes_nothing):
    with pytest.raises(InputError, match=message):
        SETTINGS[kind](**bad)
    with pytest.raises(InputError, match=message):
        FUNCTIONS[kind](CORPUS, **bad)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(ScorerSettings, window=0), "window = 0"),
        (partial(ScorerSettings, epochs=0, splice_epochs=0), "no epochs"),
        (partial(ScorerSettings, learning_rate=float("nan")), "learning_rate = nan"),
        (partial(ScorerSettings, weight_decay=-1.0), "weight_decay = -1.0"),
        (partial(CsmSettings, margin=0.0), "margin = 0.0"),
        (partial(LabellerSettings, architecture="gru"), "gru; expected bilstm or sheikh-bilstm"),
        (partial(LabellerSettings, criterion="wd"), "criterion = wd"),
        (partial(LabellerSettings, patience=0), "patience = 0"),
    ],
)
def test_settings_of_a_kind_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("text", ["scorer", "csm", "trained"])
def test_a_path_is_needed(text):
    with pytest.raises(
        OptionError, match=f"found no path in '{text}'; expected the folder of a tr"
    ):
        parse_segmenter(text)


@every_kind
def test_command(kind, tmp_path):
    reffree.save(CORPUS, tmp_path / "c.jsonl")
    path, folder, quick = str(tmp_path / "c.jsonl"), tmp_path / "s", ("--epochs", "2", "--offline")
    done = invoke("train", kind, path, "-o", str(folder), *quick)
    assert done.exit_code == 0, done.output
    lines = done.stderr.splitlines()
    stage = "gold" if kind == "scorer" else "epoch"
    assert any(
        line.startswith(f"{stage} 1: training loss ") and "held out: " in line for line in lines
    )
    assert lines[-1].startswith(f"{folder}: trained on 10 documents (cpu), 2 held out; ")
    assert lines[-1].endswith(f"use it with --method {method_of(kind, folder)}")
    assert len(TRAINED[kind].load(folder).description.history) >= 2
    out = tmp_path / "out.jsonl"
    done = invoke("segment", path, "--method", method_of(kind, folder), "--offline", "-o", str(out))
    assert done.exit_code == 0, done.output
    again = invoke("train", kind, path, "-o", str(folder), *quick)
    assert "a folder that is not empty" in str(again.exception)
    assert invoke("train", kind, path, "-o", "x", "--hidden", "0").exit_code == 2


@every_kind
def test_command_survives_an_interruption(kind, tmp_path, monkeypatch):
    reffree.save(CORPUS, tmp_path / "c.jsonl")
    monkeypatch.setattr("reffree.cli.train._tell_epoch", Stop(2))
    done = invoke("train", kind, str(tmp_path / "c.jsonl"), "-o", str(tmp_path / "s"), "--offline")
    assert done.exit_code == 130
    assert "interrupted; the best state so far is kept" in done.stderr
    assert done.stderr.rstrip().endswith(f"use it with --method {method_of(kind, tmp_path / 's')}")
    assert TRAINED[kind].load(tmp_path / "s").description.is_interrupted
