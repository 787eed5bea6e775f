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
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModel

import reffree
from reffree.encoders.device import choose_device
from reffree.segmenters.base import Inputs
from reffree.segmenters.trained.csm import CoherenceScoring, train_csm, triple_loss
from reffree.segmenters.trained.examples import Gaps, windows_of
from reffree.segmenters.trained.gap_networks import (
    Head,
    HeadOnVectors,
    PairClassifier,
    PairReader,
    logits_of,
)
from reffree.segmenters.trained.labeller import document_loss, train_segmenter
from reffree.segmenters.trained.labellers import make_network
from reffree.segmenters.trained.scorer import (
    Scorer,
    TrainedScorer,
    gap_loss,
    read_gaps,
    train_scorer,
)
from reffree.segmenters.trained.settings import (
    ARCHITECTURES,
    LabellerSettings,
    ScorerSettings,
)
from reffree.segmenters.trained.training import (
    Trainer,
    computes_in,
    falling,
    rise,
    send,
    steps_of,
    training_on,
)
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
    return model.network, partial(gap_loss, model), partial(read_gaps, Gaps(windows, labels, ()), model.read)


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
    **{name: partial(labeller, name) for name in ARCHITECTURES},
}
OURS = [name for name in NETWORKS if name != "pair"]
"""All but the one of transformers, which asks of every mask itself whether it hides anything."""


class Reads(TorchDispatchMode):
    """Notes every number that is read from a tensor: where it stands in memory, and its kind."""

    def __init__(self):
        super().__init__()
        self.places = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.__name__.split(".")[0] == "_local_scalar_dense":
            self.places.append((args[0].data_ptr(), args[0].dtype))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("n", [8, 32])
def test_no_step_reads_anything_back(name, n):
    with training_on(CPU, ScorerSettings(mixed_precision="no")) as accelerator:
        network, loss_of, read = NETWORKS[name](CPU)
        trainer = Trainer(network, loss_of, accelerator)
        trainer.begin(0.01, 0.0, rise(3))
        batches = trainer.batches(n, 4, read)
        with Reads() as reads:
            loss = trainer.epoch(batches)
    # AdamW counts its steps on the host, one count a weight, whatever the device.
    counters = {state["step"].data_ptr() for state in trainer._optimiser.state.values()}
    others = [dtype for place, dtype in reads.places if place not in counters]
    if name == "bilstm":  # packing reads the documents' lengths, which stay on the host
        others = [dtype for dtype in others if dtype.is_floating_point]
    assert len(reads.places) - len(others) >= n / 4
    assert len(others) <= 1  # a loader's seed, once an epoch
    assert torch.isfinite(loss)


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


def test_the_mean_loss_is_over_all_examples_alike():
    network = torch.nn.Linear(1, 1)
    values = torch.arange(5.0)

    def loss_of(batch):
        return (batch * network.weight.detach() * 0 + batch + 0 * network.weight).mean(), len(batch)

    told = []
    with training_on(CPU, ScorerSettings(mixed_precision="no")) as accelerator:
        trainer = Trainer(network, loss_of, accelerator)
        trainer.begin(0.01, 0.0, rise(1))
        batches = trainer.batches(5, 2, lambda chosen: values[chosen])
        assert trainer.epoch(batches, told.append).item() == pytest.approx(2.0)
    assert told == [2, 2, 1]
    assert steps_of([5, 4], 2) == 5


def test_several_cards_are_no_reason_to_warn(monkeypatch, recwarn):
    """Torch warns of random numbers that are put back on every card, unless told which."""
    states = []
    monkeypatch.setattr(torch.random, "_fork_rng_warned_already", False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: states.append(device))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: states.remove(device))
    with training_on(CPU, ScorerSettings(mixed_precision="no")):
        assert states == [0, 1]
    assert states == []
    assert [str(one.message) for one in recwarn if "devices" in str(one.message)] == []


def test_the_rate_rises():
    assert [rise(4)(step) for step in (0, 2, 4, 9)] == [0.25, 0.625, 1.0, 1.0]
    # As torch's own schedule has it.
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1 / 4, 1.0, 4)
    for step in range(6):
        assert rise(4)(step) == pytest.approx(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()


# Precision ------------------------------------------------------------------------------------


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


# Where trained networks run -------------------------------------------------------------------


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


@pytest.mark.parametrize(("kind", "name"), [(Scorer, "scorer"), (CoherenceScoring, "csm")])
def test_a_head_runs_where_it_is_told_to(kind, name, folders, monkeypatch):
    monkeypatch.setattr("reffree.segmenters.trained.base.choose_device", lambda name: META)
    inputs = Inputs(CORPUS, embeddings=VECTORS, device="cuda")
    with pytest.raises(NotImplementedError, match="meta"):  # there is nothing to be read there
        kind(path=str(folders / name)).boundary_scores(inputs)


def test_scores_are_read_back_once_for_all_documents(folders):
    made = TrainedScorer.load(folders / "scorer")
    with Copies() as copies:
        scores = made.gap_scores(Inputs(CORPUS, embeddings=VECTORS, device="cpu"))
    assert [len(each) for each in scores] == [len(d.units) - 1 for d in CORPUS]
    assert copies.count == 1


class Copies(TorchDispatchMode):
    """Counts tensors that become float64, as all do that are taken to the host."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if (kwargs or {}).get("dtype") == torch.float64:
            self.count += 1
        return function(*args, **(kwargs or {}))


# Other processes ------------------------------------------------------------------------------


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
        "from reffree.cli.train import _end_process\n"
        "from reffree.segmenters.trained.scorer import train_scorer\n"
        "from tests.helpers import topical_corpus\n"
        f"corpus, vectors = topical_corpus({GOLDS})\n"
        "named = {'embeddings': {'corpus': vectors}, 'device': 'cpu'}\n"
        f"made = train_scorer(corpus, **{keywords(QUICK)}, **named)\n"
        "made.save(Path(sys.argv[1]) / os.environ['RANK'])\n"
        "_end_process(0)\n"
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


# A card ---------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_gpu_trains_and_scores_as_the_cpu_does():
    settings = replace(QUICK, dropout=0.0, mixed_precision="no")
    here, there = (
        train_scorer(CORPUS, settings=settings, embeddings={"corpus": VECTORS}, device=device)
        for device in ("cpu", "cuda")
    )
    losses = [[e.training_loss for e in made.description.history] for made in (here, there)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3)
    models = [HeadOnVectors(here.network, VECTORS, torch.device(d)) for d in ("cpu", "cuda")]
    windows = windows_of(np.arange(models[0].n_units), settings.window)
    on_cpu, on_gpu = (logits_of(model, windows) for model in models)
    np.testing.assert_allclose(on_gpu, on_cpu, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_gpu_trains_segmenters(architecture):
    settings = LabellerSettings(architecture, epochs=2, hidden=8, heads=2)
    made = train_segmenter(CORPUS, settings, embeddings=VECTORS, device="cuda")
    assert made.description.device.startswith("cuda")
    inputs = [Inputs(CORPUS, embeddings=VECTORS, device=device) for device in ("cuda", "cpu")]
    for a, b in zip(*(made.gap_scores(each) for each in inputs), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)


@pytest.mark.gpu
def test_gpu_reads_texts_in_other_processes():
    with training_on(torch.device("cuda"), "auto", 0, has_idle=True) as accelerator:
        network, loss_of, read = pair(torch.device("cuda"))
        trainer = Trainer(network, loss_of, accelerator)
        trainer.begin(0.01, 0.0, rise(3))
        assert torch.isfinite(trainer.epoch(trainer.batches(16, 4, read, workers=2)))
