"""The cost model counts what torch counts, and the GPU's benchmark runs from end to end."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel

from reffree.encoders.precision import abilities_of
from reffree.metrics.free.on_devices import TorchTask
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
    # Threads of one process take turns at Python, processes do not.
    slow = replace(without, python=2e-6)
    assert slow.on(8).units_per_second == pytest.approx(1 / (3e-6 / 8))
    together = slow.on(8, one_process=True)
    assert (together.bound, together.units_per_second) == ("Python", pytest.approx(1 / 2e-6))


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


# Scoring ---------------------------------------------------------------------------------------

MEMORY = 1 << 30


def test_bytes_are_those_that_operations_read_and_write(module):
    x, y = torch.ones(10, 6, dtype=torch.float64), torch.ones(10, 6, dtype=torch.float64)
    index, sector = torch.zeros(7, dtype=torch.int64), module("gpu_scoring_costs").SECTOR_BYTES
    for work, moved in (
        (lambda: x + y, 3 * 480),
        (lambda: torch.add(x, y, out=y), 3 * 480),
        (lambda: x.add_(y), 3 * 480),
        (lambda: x.copy_(y), 2 * 480),
        (lambda: x[:5].view(30), 0),
        (lambda: x[:, :1].expand(10, 6) + y, 80 + 2 * 480),
        (lambda: torch.zeros_like(x), 480),
        (lambda: torch.empty_like(x), 0),
        (lambda: torch.take(x, index), 7 * (8 + sector + 8)),
        (lambda: x @ y.T, 2 * 480 + 800),
    ):
        with module("gpu_scoring_costs").Traffic() as traffic:
            work()
        assert (traffic.moved, traffic.kernels) == (moved, int(moved > 0))


@pytest.mark.parametrize("shape", [(40, 24), (33, 700)])
def test_operations_are_those_of_two_matrices_of_distances(shape, module):
    """Of the vectors and of their directions."""
    n, d = shape
    assert module("gpu_scoring_costs").count(1, shape, 3, MEMORY).flops == 2 * 3 * n * n * d


def test_counts_without_values_are_those_of_cpu_tensors(module):
    count = module("gpu_scoring_costs").count
    for documents, hypotheses in ((1, 5), (3, 40)):
        given = (documents, (64, 48), hypotheses, MEMORY)
        meta, cpu = count(*given), count(*given, device="cpu")
        assert meta.flops == cpu.flops
        assert meta.moved == pytest.approx(cpu.moved, rel=0.01)
        assert meta.kernels == pytest.approx(cpu.kernels, rel=0.01)


def test_hypotheses_and_documents_add_bytes_but_no_kernels(module):
    count = module("gpu_scoring_costs").count
    one, two, three = (count(1, (64, 48), h, MEMORY) for h in (100, 200, 300))
    assert one.flops == two.flops
    assert one.kernels == two.kernels
    assert three.moved - two.moved == two.moved - one.moved > 0
    together = count(4, (64, 48), 25, MEMORY)
    assert together.flops == 4 * one.flops
    assert together.kernels < 1.1 * one.kernels


def test_the_host_works_beside_the_card_unless_it_is_waited_for(module):
    made = module("gpu_scoring_costs").Scoring
    busy = made(100, products=3.0, memory=4.0, copies=1.0, launches=5.0, reading=2.0, vectors=0.5)
    assert (busy.in_stream, busy.bound_in_stream) == (pytest.approx(100 / 8), "memory")
    assert (busy.alone, busy.bound_alone) == (pytest.approx(100 / 10.5), "memory")
    starved = replace(busy, launches=9.0)
    assert (starved.in_stream, starved.bound_in_stream) == (pytest.approx(100 / 11.5), "launches")
    assert (starved.alone, starved.bound_alone) == (pytest.approx(100 / 11.5), "launches")


def test_the_benchmark_scores_by_torch_even_on_a_cpu(module, monkeypatch):
    measures, scored = module("gpu_measures"), []
    module("gpu_scoring_costs").count.cache_clear()

    score = TorchTask.score

    def watched(*args, **kwargs):
        scored.append(1)
        return score(*args, **kwargs)

    monkeypatch.setattr(TorchTask, "score", watched)
    bench = measures.Bench(torch.device("cpu"), measures.SMOKE)
    (row,) = measures.measure_scoring(bench, module("gpu_costs").CARDS[0])
    # Once for the scores, once for the time, once to count; never for the compiled loop's.
    assert len(scored) == 2 + measures.SMOKE.rounds
    assert row["deviation"] < 1e-6


# From end to end -------------------------------------------------------------------------------


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
    dtypes = [dtype for dtype in dtypes if dtype != "tf32" or can.is_new]
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
