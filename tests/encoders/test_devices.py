"""What a GPU needs, tested without one: nothing read back, nothing made elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from reffree.data.masses import mass_matrix
from reffree.metrics.free.on_devices import Layout, LookUps
from reffree.metrics.registry import parse_metrics
from tests.metrics.free.test_scoring import random_masses

READS_BACK = {
    "_local_scalar_dense",
    "nonzero",
    "is_nonzero",
    "equal",
    "masked_select",
    "unique_dim",
}
COPIES = {"_to_copy", "copy_"}
METRICS = parse_metrics(
    ["arp_std", "arp_std:p=1", "arp_cos", "arp_pair", "silhouette", "segrefree"]
)


class Watch(TorchDispatchMode):
    """Counts what would make the host wait, and notes tensors made on another device."""

    def __init__(self, device):
        super().__init__()
        self.device = torch.device(device)
        self.waits = []
        self.elsewhere = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function.__name__.split(".")[0]
        if name in READS_BACK:
            self.waits.append(name)
        made = result if isinstance(result, (tuple, list)) else [result]
        if name not in COPIES:
            for tensor in made:
                if isinstance(tensor, torch.Tensor) and tensor.device != self.device:
                    self.elsewhere.append((name, tensor.device))
        return result


def prepared(n_hypotheses, device):
    rng = np.random.default_rng(0)
    documents = [torch.empty(n, 8, device=device) for n in (30, 17)]
    masses = [random_masses(rng, 30, int(rng.integers(1, 12))) for _ in range(n_hypotheses)]
    matrix = mass_matrix(masses, 30, "d")
    exponent = torch.zeros(2, dtype=torch.int32, device=device)
    layout = Layout(np.zeros(n_hypotheses, dtype=np.int64), matrix, 30, exponent)
    return documents, layout


def score_all(documents, layout, device):
    requests = [request for metric in METRICS for request in metric.requests]
    sums = LookUps(documents, torch.device(device), requests).sums(layout)
    return [metric.from_sums(layout, sums) for metric in METRICS]


@pytest.mark.parametrize("n_hypotheses", [1, 500])
def test_the_scorer_runs_on_the_meta_device(n_hypotheses):
    """No value exists there, so whatever needs one on the host would fail."""
    for scores in score_all(*prepared(n_hypotheses, "meta"), "meta"):
        assert scores.documents.shape == (n_hypotheses,)
        assert scores.documents.device.type == "meta"
        assert scores.documents.dtype == torch.float64


@pytest.mark.parametrize("n_hypotheses", [1, 500])
def test_nothing_waits_and_nothing_is_made_elsewhere(n_hypotheses):
    documents, layout = prepared(n_hypotheses, "meta")
    with Watch("meta") as watch:
        score_all(documents, layout, "meta")
    assert watch.waits == []
    # The documents' lengths and roundings are written on the host and sent over: two small copies.
    made = {name for name, _ in watch.elsewhere}
    assert made <= {"lift_fresh", "detach", "empty", "scalar_tensor"}, watch.elsewhere
    assert len(watch.elsewhere) <= 8


def test_the_watch_can_see():
    with Watch("cpu") as watch:
        torch.ones(3).nonzero()
        assert torch.ones(1).item() == 1
        torch.ones(1, device="meta")
    assert watch.waits == ["nonzero", "_local_scalar_dense"]
    assert watch.elsewhere == [("ones", torch.device("meta"))]


@pytest.mark.gpu
def test_gpu_equals_cpu_in_batches():
    rng = np.random.default_rng(1)
    documents = [torch.tensor(rng.normal(size=(n, 8))) for n in (30, 17)]
    _, layout = prepared(100, "cpu")
    _, on_gpu = prepared(100, "cuda")
    for a, b in zip(
        score_all(documents, layout, "cpu"), score_all(documents, on_gpu, "cuda"), strict=True
    ):
        assert torch.allclose(a.documents, b.documents.cpu(), atol=1e-9, equal_nan=True)
