"""Predict what encoding and scoring cost on three GPUs, from their data sheets.

Operations and bytes of one unit and of one hypothesis, divided by what a card can do, beside what
the host must do for them; the slowest stage bounds. The formulas and assumptions are in
`gpu_costs.py`; `gpu.py` holds the prediction against a real card. The formulas are also held
against figures others published for such cards, and, with ``--calibrate``, against this CPU. Writes
``benchmarks/results/gpu_model.json``; ``--table`` prints that file as markdown.

    python benchmarks/gpu_model.py --calibrate
    python benchmarks/gpu_model.py --table
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from gpu_checks import calibrate, published
from gpu_costs import CARDS, LENGTHS, MODELS, Dtype, encoding, scoring

RESULTS = Path(__file__).parent / "results" / "gpu_model.json"


def predict_encoding() -> Iterator[dict[str, Any]]:
    """Every card, model, length and kind of numbers."""
    dtypes: tuple[Dtype, ...] = ("float32", "tf32", "bfloat16")
    for card, model, tokens, dtype in product(CARDS, MODELS, LENGTHS, dtypes):
        row: dict[str, Any] = {
            "card": card.name,
            "model": model.name,
            "tokens": tokens,
            "dtype": dtype,
            "gigaflops": round(model.flops(tokens) / 1e9, 2),
        }
        if (stages := encoding(model, tokens, card, dtype)) is not None:
            row["units_per_second"] = round(stages.units_per_second)
            row["bound"] = stages.bound
            row["seconds"] = {name: float(f"{x:.3g}") for name, x in stages.seconds.items()}
        yield row


def predict_scoring(units: int = 500) -> Iterator[dict[str, Any]]:
    """Every card, with vectors of MPNet and of Falcon, few hypotheses and many."""
    dtypes: tuple[Dtype, ...] = ("float64", "float32")
    for card, dimension, count in product(CARDS, (768, 4544), (100, 10_000)):
        row: dict[str, Any] = {"card": card.name, "dimension": dimension, "hypotheses": count}
        for dtype in dtypes:
            cost = scoring(units, dimension, card, dtype)
            row[dtype] = {"per_second": round(cost.per_second(count)), "bound": cost.bound(count)}
        yield row


def predict_scaling() -> Iterator[dict[str, Any]]:
    """Cards of a host, then hosts."""
    for model in (MODELS[0], MODELS[2], MODELS[3]):
        one = encoding(model, LENGTHS[0], CARDS[0], "bfloat16")
        assert one is not None  # an A100 holds all of them
        for cards, hosts in ((1, 1), (2, 1), (4, 1), (8, 1), (1, 8), (1, 64), (8, 64)):
            row: dict[str, Any] = {"model": model.name, "cards": cards, "hosts": hosts}
            for name, writers in (("one_cache", 1), ("own_caches", hosts)):
                stages = one.on(cards, hosts, writers=writers)
                row[name] = {
                    "units_per_second": round(stages.units_per_second),
                    "bound": stages.bound,
                    "whole_run": round(stages.whole_run),
                }
            yield row


def markdown(header: str, rows: Iterable[Iterable[object]], left: int) -> list[str]:
    """Lines of a table whose first columns are words and the others numbers."""
    names = header.split(" | ")
    marks = ["---"] * left + ["--:"] * (len(names) - left)
    cells = [names, *rows]
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in cells]
    return [lines[0], "|" + "|".join(marks) + "|", *lines[1:]]


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    by_setting: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in results["encoding"]:
        by_setting.setdefault((row["card"], row["model"]), []).append(row)
    encoded = [
        [
            *setting,
            _both(f"{x['gigaflops']:,}" for x in rows if x["dtype"] == "float32"),
            *(
                _both(_rate(x, "units_per_second") for x in rows if x["dtype"] == dtype)
                for dtype in ("float32", "tf32", "bfloat16")
            ),
        ]
        for setting, rows in by_setting.items()
    ]
    scored = [
        [
            *(row["card"], f"{row['dimension']:,}", f"{row['hypotheses']:,}"),
            *(_rate(row[dtype], "per_second") for dtype in ("float64", "float32")),
        ]
        for row in results["scoring"]
    ]
    scaled = [
        [
            *(row["model"], f"{row['cards']} × {row['hosts']}"),
            *(
                cell
                for each in (row["one_cache"], row["own_caches"])
                for cell in (_rate(each, "units_per_second"), f"{each['whole_run']:,}")
            ),
        ]
        for row in results["scaling"]
    ]
    checked = [
        [row["source"], row["model"], f"{row['measured']:,}", f"{row['predicted']:,}", row["ratio"]]
        for row in results["published"]
    ]
    names = "card | model | GFLOP a unit | float32 | TF32 | bfloat16"
    lines = [
        "Predicted units per second and what bounds them, one card, units of 20 and of 60 tokens:",
        "",
        *markdown(names, encoded, 2),
        "",
        "Scoring, hypotheses per second of a document of 500 units, the five metrics without a "
        "search; the product of all pairs in float64 or in float32 (TF32 off):",
        "",
        *markdown("card | dimensions | hypotheses | float64 | float32", scored, 1),
        "",
        "Cards and hosts, A100 80GB SXM, bfloat16, 20 tokens: units per second while encoding, and "
        "of a whole run, which first looks every unit up. Several cards of a host write one cache, "
        "and so does Ray's driver for all hosts; the last two columns are for a part of the corpus "
        "and a cache of its own for every host, merged afterwards (`reffree cache merge`):",
        "",
        *markdown(
            "model | cards × hosts | one cache | whole run | a cache a host | whole run", scaled, 1
        ),
        "",
        "The formulas against what NVIDIA published for an A100 40GB, sequences per second:",
        "",
        *markdown("measured by | model | measured | predicted | ratio", checked, 2),
    ]
    if found := results.get("calibration"):
        lines += ["", _calibrated(found)]
    return "\n".join(lines)


def _both(cells: Iterable[str]) -> str:
    return " / ".join(cells)


def _rate(row: dict[str, Any], name: str) -> str:
    return f"{row[name]:,} ({row['bound']})" if name in row else "does not fit"


def _calibrated(found: dict[str, Any]) -> str:
    return (
        f"The same formulas on one core of this CPU ({found['gflops']:,.0f} GFLOP/s in products of "
        f"MiniLM's shapes and {found['bandwidth'] / 1e9:.0f} GB/s, both measured): "
        f"{found['predicted']:,.0f} units of {found['tokens']:.0f} tokens a second predicted, "
        f"{found['measured']:,.0f} measured, ratio {found['predicted'] / found['measured']:.2f}. "
        f"Tokenising makes {found['tokens_per_second']:,.0f} tokens a second on a core; the cache "
        f"takes {found['row_microseconds']:.0f} µs for a row and "
        f"{found['byte_nanoseconds']:.1f} ns for each of its bytes."
    )


def main() -> None:
    """Predict, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="print the last results")
    parser.add_argument("--calibrate", action="store_true", help="measure this CPU, too")
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not arguments.table:
        results |= {
            "cards": [asdict(card) for card in CARDS],
            "encoding": list(predict_encoding()),
            "scoring": list(predict_scoring()),
            "scaling": list(predict_scaling()),
            "published": list(published()),
        }
        if arguments.calibrate:
            results["calibration"] = calibrate()
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
