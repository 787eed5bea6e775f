"""The cost model counts what torch counts, and the GPU's benchmark runs from end to end."""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel

from reffree.encoders.precision import abilities_of
from tests.checkpoints import config, save_checkpoint

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    """Import a benchmark by its name, as scripts beside it do."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.mark.parametrize("architecture", ["mpnet", "roberta", "falcon"])
@pytest.mark.parametrize(("units", "tokens"), [(1, 8), (3, 10)])
def test_operations_are_those_torch_counts(architecture, units, tokens, module, tmp_path):
    model = AutoModel.from_config(config(architecture), attn_implementation="eager").eval()
    ids = torch.full((units, tokens), 5)
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        model(input_ids=ids, attention_mask=torch.ones_like(ids))
    described = module("gpu_measures").transformer_of(str(save_checkpoint(architecture, tmp_path)))
    assert units * described.flops(tokens) == counted.get_total_flops()


def test_weights_of_the_named_models_are_those_published(module):
    costs = module("gpu_costs")
    vocabulary = {
        "MPNet-base": 30_527,
        "RoBERTa-base": 50_265,
        "RoBERTa-large": 50_265,
        "Falcon-7B": 65_024,
    }
    for model in costs.MODELS:
        made = model.layers * model.layer_weights + vocabulary[model.name] * model.hidden
        assert made == pytest.approx(model.parameters, rel=0.02), model.name


def test_the_slowest_stage_bounds(module):
    costs = module("gpu_costs")
    stages = costs.Stages(2e-6, 1e-6, 0.5e-6, 0.1e-6, 0.1e-6, 5e-6, driver=4e-6, lookup=3e-6)
    assert (stages.bound, stages.units_per_second) == ("cache writer", pytest.approx(2e5))
    assert stages.whole_run == pytest.approx(1 / 8e-6)
    without = replace(stages, cache=0.0, driver=0.0)
    assert (without.bound, without.units_per_second) == ("compute", pytest.approx(1 / 3e-6))
    assert without.on(2, 4).units_per_second == pytest.approx(8 / 3e-6)
    # One cache is written by one, however many encode; with one a host, all scale.
    assert stages.on(8, 64).units_per_second == pytest.approx(2e5)
    assert stages.on(1, 64, writers=64).units_per_second == pytest.approx(64 * 2e5)
    assert replace(stages, cache=1e-9).on(8, 64).bound == "driver"


def test_predictions_grow_with_the_card_and_shrink_with_the_text(module):
    costs = module("gpu_costs")
    a100, h100, l4 = costs.CARDS
    for model in costs.MODELS:
        rates = {
            (card.name, tokens): costs.encoding(model, tokens, card, "bfloat16").units_per_second
            for card in (a100, h100, l4)
            for tokens in (20, 60)
        }
        for tokens in (20, 60):
            assert rates[h100.name, tokens] > rates[a100.name, tokens] > rates[l4.name, tokens]
    assert costs.encoding(costs.MODELS[-1], 20, l4, "float32") is None
    double, single = (costs.scoring(500, 4544, l4, kind) for kind in ("float64", "float32"))
    assert double.tables > 10 * single.tables
    assert double.hypothesis == single.hypothesis
    assert math.isclose(single.per_second(10**9), 1 / single.hypothesis, rel_tol=1e-3)


def test_without_a_card_the_benchmark_says_so():
    if torch.cuda.is_available():
        pytest.skip("there is a card here")
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "gpu.py")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("No CUDA device is here, so nothing was measured")


def check_everything_is_measured(module, device, encoder):
    gpu, dtypes = module("gpu"), module("gpu_measures").DTYPES
    results = gpu.measure(torch.device(device), replace(gpu.SMOKE, words=(3,)), [str(encoder)])
    can = abilities_of([torch.device(device)])
    dtypes = [dtype for dtype in dtypes if dtype != "tf32" or can.tf32]
    assert [row["dtype"] for row in results["encoding"]] == dtypes
    assert all(row["reffree"] > 0 and row["plain"] > 0 for row in results["encoding"])
    assert results["scoring"][0]["deviation"] < 1e-6
    assert {row["network"] for row in results["training"]} == {
        "segmenter, bilstm",
        "scorer, on vectors",
    }
    assert gpu.table(results).count("\n| ") == 3 + len(dtypes) + 1 + 2


def test_the_benchmark_runs_from_end_to_end(module, tmp_path):
    encoder = save_checkpoint("roberta", tmp_path / "model")
    check_everything_is_measured(module, "cpu", encoder)


@pytest.mark.gpu
def test_the_benchmark_runs_on_a_card(module, tmp_path):
    encoder = save_checkpoint("roberta", tmp_path / "model")
    check_everything_is_measured(module, "cuda", encoder)
