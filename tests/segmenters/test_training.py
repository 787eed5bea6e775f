"""The training loop: on any device, without waiting for it, and on the one that was asked for."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel

import reffree
from reffree.encoders.device import choose_device
from reffree.segmenters.base import Inputs
from reffree.segmenters.trained.csm import train_csm, triple_loss
from reffree.segmenters.trained.examples import Gaps, windows_of
from reffree.segmenters.trained.gap_networks import (
    Head,
    HeadOnVectors,
    PairClassifier,
    PairReader,
    send,
)
from reffree.segmenters.trained.labeller import document_loss, train_segmenter
from reffree.segmenters.trained.labellers import NETWORKS as LABELLERS
from reffree.segmenters.trained.labellers import make_network
from reffree.segmenters.trained.scorer import TrainedScorer, gap_loss, read_gaps, train_scorer
from reffree.segmenters.trained.settings import LabellerSettings, ScorerSettings
from reffree.segmenters.trained.training import Trainer, computes_in, falling, rise, training_on
from reffree.util.errors import OptionError
from tests.checkpoints import config, tokenizer
from tests.helpers import keywords, topical_corpus

CPU, META = torch.device("cpu"), torch.device("meta")
DIMENSION, UNITS = 8, 40
GOLDS = [[4, 5, 3], [5, 4], [3, 3, 6], [6, 5]] * 2
CORPUS, VECTORS = topical_corpus(GOLDS)
QUICK = ScorerSettings(splice_epochs=1, epochs=1, hidden=8)


def head(device):
    rng = np.random.default_rng(0)
    model = HeadOnVectors(Head(DIMENSION, 2, 4, 0.1), [rng.normal(size=(UNITS, DIMENSION))], device)
    windows = windows_of(np.arange(UNITS), 2)
    labels = (np.arange(UNITS - 1) % 3 == 0).astype(np.float32)
    return (
        model.network,
        partial(gap_loss, model),
        partial(read_gaps, Gaps(windows, labels, ()), model.read),
    )


def triples(device):
    model = HeadOnVectors(Head(DIMENSION, 1, 4, 0.1), [np.eye(UNITS, DIMENSION)], device)
    pairs = np.random.default_rng(0).integers(UNITS, size=(UNITS, 3, 2))

    def read(chosen):
        return model.read(pairs[chosen].reshape(-1, 2))

    return model.network, partial(triple_loss, model, 1.0), read


def labeller(architecture, device):
    settings = LabellerSettings(architecture=architecture, hidden=4, heads=2)
    network = make_network(DIMENSION, settings).to(device)

    def read(chosen):
        units = torch.zeros(len(chosen), 6, DIMENSION)
        return units, [6] * len(chosen), torch.ones(len(chosen), 5)

    return network, partial(document_loss, network), read


def pair(device):
    transformer = AutoModel.from_config(config("bert"))
    network = PairClassifier(transformer, reads_first=True).to(device)
    reader = PairReader(tokenizer("bert"), ["bees honey winter"] * UNITS, 16)
    gaps = Gaps(windows_of(np.arange(UNITS), 1), np.ones(UNITS - 1, dtype=np.float32), ())

    def loss_of(batch):
        logits = network(batch[0])
        wanted = batch[1]
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, wanted), len(wanted)

    return network, loss_of, partial(read_gaps, gaps, reader)


NETWORKS = {
    "head": head,
    "triples": triples,
    "pair": pair,
    **{name: partial(labeller, name) for name in LABELLERS},
}
OURS = [name for name in NETWORKS if name != "pair"]
"""All but the one of transformers, which asks of every mask itself whether it hides anything."""


@pytest.mark.parametrize("name", [name for name in OURS if name != "bilstm"])
def test_the_loop_runs_on_another_device(name):
    # A tensor of the device meta has no numbers: whatever reads one fails.
    from accelerate import Accelerator

    with training_on(CPU, ScorerSettings(mixed_precision="no")):
        accelerator = Accelerator(cpu=True, device_placement=False)
        network, loss_of, read = NETWORKS[name](META)
        trainer = Trainer(network, loss_of, accelerator)
        trainer.begin(0.01, 0.0, falling([3], 1, 0.1))
        made = trainer.batches(8, 4, lambda chosen: on_meta(read(chosen)))
        loss = trainer.epoch(made)
        trainer.keep()
    assert loss.is_meta
    assert all(tensor.is_meta for tensor in trainer.best.values())


def on_meta(batch):
    if isinstance(batch, tuple):
        return tuple(each if isinstance(each, list) else send(each, META) for each in batch)
    return send(batch, META)


def test_weights_and_figures_are_float32_whatever_the_precision():
    settings = replace(QUICK, mixed_precision="bf16")
    given = {"embeddings": {"corpus": VECTORS}, "device": "cpu"}
    if not computes_in(CPU, "bf16"):  # older processors cannot
        with pytest.raises(OptionError, match=r"a device \(cpu\) that cannot train in bf16"):
            train_scorer(CORPUS, **keywords(settings), **given)
        return
    seen = []
    made = train_scorer(CORPUS, on_epoch=seen.append, **keywords(settings), **given)
    plain = train_scorer(CORPUS, **keywords(QUICK), **given)
    assert seen[0]["training_loss"] != plain.description.history[0]["training_loss"]
    assert seen[0]["training_loss"] == pytest.approx(
        plain.description.history[0]["training_loss"], rel=0.05
    )
    assert {p.dtype for p in made.network.parameters()} == {torch.float32}
    # Accelerate puts a forward of its own on what it is given, which is not the network itself.
    assert "forward" not in vars(made.network)
    with torch.no_grad():
        assert made.network(*_windows(made)).dtype == torch.float32


def _windows(made):
    model = HeadOnVectors(made.network, VECTORS[:1])
    window = made.description.settings.window
    return model.gather(torch.from_numpy(windows_of(np.arange(model.n_units), window)))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A scorer, a coherence model and a segmenter, trained on vectors."""
    folder = tmp_path_factory.mktemp("trained")
    named = {"embeddings": {"corpus": VECTORS}, "device": "cpu"}
    train_scorer(CORPUS, **keywords(QUICK), **named).save(folder / "scorer")
    train_csm(CORPUS, epochs=1, hidden=4, **named).save(folder / "csm")
    small = train_segmenter(CORPUS, epochs=1, hidden=4, embeddings=VECTORS, device="cpu")
    small.save(folder / "segmenter")
    return folder


@pytest.fixture
def asked(monkeypatch):
    """Names of the devices that are asked for where networks score gaps."""
    names = []

    def choose(name="auto"):
        names.append(name)
        return choose_device("cpu")

    for module in ("base", "labeller", "csm"):
        monkeypatch.setattr(f"reffree.segmenters.trained.{module}.choose_device", choose)
    return names


@pytest.mark.parametrize("method", ["scorer", "csm", "trained"])
def test_segmenters_score_on_the_device_asked_for(method, folders, asked):
    folder = folders / ("segmenter" if method == "trained" else method)
    reffree.segment(CORPUS, f"{method}:path={folder}", embeddings=VECTORS, device="cuda:7")
    assert set(asked) == {"cuda:7"}


def test_evidence_is_scored_on_the_device_asked_for(folders, asked, monkeypatch):
    monkeypatch.setattr("reffree.encoders.device.device_names", lambda name: ["cpu"])
    metric = f"expected_pk:evidence=scorer:{folders / 'scorer'}"
    reffree.score(CORPUS, metrics=[metric], embeddings=VECTORS, device="cuda:7")
    assert set(asked) == {"cuda:7"}


def test_readers_of_texts_can_be_sent_to_other_processes():
    _, _, reader = pair(CPU)
    again = pickle.loads(pickle.dumps(reader))
    (tokens, labels), (sent_tokens, sent_labels) = reader([3, 1]), again([3, 1])
    assert torch.equal(labels, sent_labels)
    assert all(torch.equal(tokens[name], sent_tokens[name]) for name in tokens)


def test_processes_of_a_launcher_train_one_network(tmp_path):
    # Each sees half of every epoch's batches, and all end with the same weights.
    script = tmp_path / "train.py"
    script.write_text(
        "import os, sys\n"
        "from pathlib import Path\n"
        "from reffree.cli.interrupts import end_process\n"
        "from reffree.segmenters.trained.scorer import train_scorer\n"
        "from tests.helpers import topical_corpus\n"
        f"corpus, vectors = topical_corpus({GOLDS})\n"
        "named = {'embeddings': {'corpus': vectors}, 'device': 'cpu'}\n"
        f"made = train_scorer(corpus, **{keywords(QUICK)}, **named)\n"
        "made.save(Path(sys.argv[1]) / os.environ['RANK'])\n"
        "end_process(0)\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [*command, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stderr
    one, other = (TrainedScorer.load(tmp_path / rank) for rank in "01")
    assert one.description == other.description
    assert one.description.weights == other.description.weights
    alone = train_scorer(CORPUS, **keywords(QUICK), embeddings={"corpus": VECTORS}, device="cpu")
    assert one.description.counts == alone.description.counts
    losses = [made.description.history[0]["training_loss"] for made in (one, alone)]
    assert losses[0] == pytest.approx(losses[1], rel=0.5)


@pytest.mark.gpu
@pytest.mark.parametrize("train", [train_scorer, train_csm, train_segmenter])
def test_gpu_trains_and_scores_as_the_cpu_does(train):
    options = {"epochs": 1, "hidden": 8, "dropout": 0.0, "mixed_precision": "no"}
    options["embeddings"] = VECTORS if train is train_segmenter else {"corpus": VECTORS}
    here, there = (train(CORPUS, device=device, **options) for device in ("cpu", "cuda"))
    losses = [made.description.history[0]["training_loss"] for made in (here, there)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    inputs = [Inputs(CORPUS, embeddings=VECTORS, device=device) for device in ("cuda", "cpu")]
    for a, b in zip(*(here.gap_scores(each) for each in inputs), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)


@pytest.mark.gpu
def test_gpu_reads_texts_in_other_processes():
    settings = ScorerSettings(finetune=True)
    with training_on(torch.device("cuda"), settings) as accelerator:
        network, loss_of, read = pair(torch.device("cuda"))
        trainer = Trainer(network, loss_of, accelerator)
        trainer.begin(0.01, 0.0, rise(3))
        assert torch.isfinite(trainer.epoch(trainer.batches(16, 4, read, workers=2)))
