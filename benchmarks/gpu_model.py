"""Predict what encoding and scoring cost on three GPUs, from their data sheets.

Operations and bytes of one unit and of one hypothesis, divided by what a card can do, beside what
the host must do for them; the slowest stage bounds. The formulas and assumptions are in
`gpu_costs.py` and `gpu_scoring_costs.py`; `gpu.py` holds the prediction against a real card. The
formulas are also held against figures others published for such cards, and, with ``--calibrate``,
against this CPU. Writes ``benchmarks/results/gpu_model.json``; ``--table`` prints that file as
markdown.

    python benchmarks/gpu_model.py --calibrate
    python benchmarks/gpu_model.py --table
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

from gpu_checks import calibrate, published
from gpu_costs import CARDS, LENGTHS, MODELS, Dtype, encoding
from gpu_scoring_costs import scoring

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
    for card, dimension, count in product(CARDS, (768, 4544), (100, 10_000)):
        one, many = (scoring(units, dimension, count, card, corpus=x) for x in (False, True))
        yield {
            "card": card.name,
            "dimension": dimension,
            "hypotheses": count,
            "document": {"per_second": round(one.alone), "bound": one.bound_alone},
            "corpus": {
                "per_second": round(many.in_stream),
                "bound": many.bound_in_stream,
                "documents": many.hypotheses // count,
            },
            "microseconds": {
                name: float(f"{1e6 * seconds / many.hypotheses:.3g}")
                for name, seconds in (many.on_card | many.on_host).items()
            },
        }


def predict_scaling() -> Iterator[dict[str, Any]]:
    """Cards of a host, then hosts."""
    for model in (MODELS[0], MODELS[2], MODELS[3]):
        one = encoding(model, LENGTHS[0], CARDS[0], "bfloat16")
        assert one is not None  # an A100 holds all of them
        for cards, hosts in ((1, 1), (2, 1), (4, 1), (8, 1), (1, 8), (1, 64), (8, 64)):
            row: dict[str, Any] = {"model": model.name, "cards": cards, "hosts": hosts}
            ways = {
                "one_cache": one.on(cards, hosts),
                "own_caches": one.on(cards, hosts, writers=hosts),
            }
            for name, stages in ways.items():
                row[name] = {
                    "units_per_second": round(stages.units_per_second),
                    "bound": stages.bound,
                    "whole_run": round(stages.whole_run),
                }
            yield row


def predict_threads(cards: int = 8) -> Iterator[dict[str, Any]]:
    """Cards of a host that threads of one process work with, or processes."""
    for tokens in LENGTHS:
        one = encoding(MODELS[0], tokens, CARDS[0], "bfloat16")
        assert one is not None
        for way, alone in (("processes", False), ("threads", True)):
            for name, stages in (("cached", one), ("not cached", replace(one, cache=0.0))):
                spread = stages.on(cards, one_process=alone)
                yield {
                    **{"tokens": tokens, "cards": cards, "by": way, "vectors": name},
                    "units_per_second": round(spread.units_per_second),
                    "bound": spread.bound,
                }


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
            *(_rate(row[way], "per_second") for way in ("document", "corpus")),
            row["corpus"]["documents"],
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
    by_way: dict[tuple[int, str], list[str]] = {}
    for row in results["threads"]:
        cells = by_way.setdefault((row["tokens"], row["vectors"]), [])
        cells.append(_rate(row, "units_per_second"))
    threaded = [[*setting, *cells] for setting, cells in by_way.items()]
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
        "Scoring, hypotheses per second of documents of 500 units, the five metrics without a "
        "search. One document whose vectors are on the card, in a call that is waited for; and a "
        "corpus of them from the host, so many documents together:",
        "",
        *markdown("card | dimensions | hypotheses | one document | corpus | together", scored, 1),
        "",
        "Cards and hosts, A100 80GB SXM, bfloat16, 20 tokens: units per second while encoding, and "
        "of a whole run, which first looks every unit up. Several cards of a host write one cache, "
        "and so does Ray's driver for all hosts; the next two columns are for a part of the corpus "
        "and a cache of its own for every host:",
        "",
        *markdown(
            "model | cards × hosts | one cache | whole run | a cache a host | whole run", scaled, 1
        ),
        "",
        "Every card has a thread, and threads take turns at Python; were they processes, they "
        "would not. MPNet-base on eight of these cards, with the cache and without:",
        "",
        *markdown("tokens | vectors | a process a card | a thread a card", threaded, 2),
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
        f"Tokenising makes {found['tokens_per_second']:,.0f} tokens a second on a core, of which "
        f"Python takes {found['python_unit_microseconds']:.1f} µs a unit and "
        f"{found['python_token_microseconds']:.2f} µs a token, batches included; the cache "
        f"takes {found['row_microseconds']:.0f} µs for a row and "
        f"{found['byte_nanoseconds']:.1f} ns for each of its bytes."
    )


def summary(results: dict[str, Any]) -> str:
    """Markdown of encoding on each card."""
    return table(results).split("\n\nScoring, hypotheses")[0]


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
            "threads": list(predict_threads()),
            "published": list(published()),
        }
        if arguments.calibrate:
            results["calibration"] = calibrate()
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
