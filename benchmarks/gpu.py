"""Measure a GPU: encoding, scoring and training, against the CPU, others and `gpu_model.py`.

One command on a machine with a card measures all of it and writes ``benchmarks/results/gpu.json``,
from which ``make_readme.py`` makes its table. Without a card it says so and ends. ``--smoke`` runs
the same code on the CPU with tiny sizes and writes nothing.

    python benchmarks/gpu.py --encoder mpnet --encoder roberta --encoder falcon-7b
    python benchmarks/gpu.py --smoke
    python benchmarks/gpu.py --table
"""

from __future__ import annotations

import argparse
import json
import math
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from gpu_measures import (
    SMOKE,
    Bench,
    Sizes,
    measure_encoding,
    measure_scoring,
    measure_training,
)

RESULTS = Path(__file__).parent / "results" / "gpu.json"
NOTHING_HERE = (
    "No CUDA device is here, so nothing was measured; --smoke runs the same code on the CPU."
)


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    peaks = results["measured"]
    told = ", ".join(
        f"{name} {peaks[name] / 1e12:,.1f}" for name in ("float64", "float32", "tf32", "bfloat16")
    )
    lines = [
        f"{results['device']}, torch {results['torch']}: TFLOP/s of a large product in {told}; "
        f"{peaks['bandwidth'] / 1e9:,.0f} GB/s. Predictions are for {results['card']} "
        f"({results['source']}).",
        "",
        "Encoding, units per second: reffree without and with its cache, sentence-transformers' "
        "`encode`, and what was predicted for the first two; deviation is 1 − cosine from float32:",
        "",
        "| encoder | tokens | dtype | reffree | with cache | plain | predicted | with cache | "
        "bound | deviation |",
        "|---|--:|---|--:|--:|--:|--:|--:|---|--:|",
    ]
    for row in results["encoding"]:
        rates = (row[name] for name in ("reffree", "reffree_cached", "plain"))
        predicted = (row.get(name, math.nan) for name in ("predicted", "predicted_cached"))
        lines.append(
            f"| {row['encoder']} | {row['tokens']} | {row['dtype']} ({row['computed_in']}) | "
            + " | ".join(f"{rate:,.0f}" for rate in (*rates, *predicted))
            + f" | {row.get('bound', '')} | {row['cosine_deviation']:.1e} |"
        )
    lines += [
        "",
        "Scoring, hypotheses per second, all metrics without a search: the CPU's compiled loop, "
        "torch on the device, and how far apart they are:",
        "",
        "| units | dimensions | hypotheses | CPU | device | predicted | bound | deviation |",
        "|--:|--:|--:|--:|--:|--:|---|--:|",
    ]
    for row in results["scoring"]:
        rates = (row[name] for name in ("cpu", "device", "predicted"))
        lines.append(
            f"| {row['units']:,} | {row['dimension']:,} | {row['hypotheses']:,} | "
            + " | ".join(f"{rate:,.0f}" for rate in rates)
            + f" | {row['bound']} | {row['deviation']:.1e} |"
        )
    lines += [
        "",
        "Training, seconds an epoch:",
        "",
        "| network | units | CPU | device |",
        "|---|--:|--:|--:|",
    ]
    for row in results["training"]:
        times = f"{row['cpu']:.3g} | {row['device']:.3g}"
        lines.append(f"| {row['network']} | {row['units']:,} | {times} |")
    return "\n".join(lines)


def measure(device: torch.device, sizes: Sizes, encoders: list[str]) -> dict[str, Any]:
    """Measure everything on a device."""
    bench = Bench(device, sizes)
    card, measured = bench.card()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU"
    return {
        "device": name,
        "card": card.name,
        "source": card.source,
        "measured": measured,
        "python": platform.python_version(),
        **{each: version(each) for each in ("torch", "sentence-transformers", "transformers")},
        "encoding": [row for encoder in encoders for row in measure_encoding(encoder, bench, card)],
        "scoring": list(measure_scoring(bench, card)),
        "training": list(measure_training(bench)),
    }


def main() -> None:
    """Measure, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", action="append", help="may be repeated  [default: mpnet]")
    parser.add_argument("--device", default="cuda", help="such as cuda:1")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes on the CPU")
    parser.add_argument("--table", action="store_true", help="print the last results")
    arguments = parser.parse_args()
    if arguments.smoke:
        encoders = arguments.encoder or ["minilm"]
        print(table(measure(torch.device("cpu"), SMOKE, encoders)))
        return
    if arguments.table and RESULTS.exists():
        print(table(json.loads(RESULTS.read_text())))
        return
    if not torch.cuda.is_available():
        print(NOTHING_HERE)
        return
    results = measure(torch.device(arguments.device), Sizes(), arguments.encoder or ["mpnet"])
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
