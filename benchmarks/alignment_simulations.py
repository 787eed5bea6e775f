"""How often a metric cannot tell a small error from a large one: three simulations, exhaustive.

Ocampo Diaz & Ouyang 2022, Section 5: `reffree.studies.moves` over all references of 5 units to 20,
held against the authors' counts. Writes ``benchmarks/results/alignment_simulations.json``;
``--table`` prints that file as markdown.

    python benchmarks/alignment_simulations.py
    python benchmarks/alignment_simulations.py --longest 20
    python benchmarks/alignment_simulations.py --table
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reffree.metrics.gold.alignment import Alignment
from reffree.metrics.gold.boundary_edits import BoundarySimilarity
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.gold.windows import WindowDiff
from reffree.studies.papers.moves import KINDS as SIMULATIONS
from reffree.studies.papers.moves import count_misjudged

RESULTS = Path(__file__).parent / "results" / "alignment_simulations.json"
SHORTEST = 5
METRICS: dict[str, GoldMetric] = {
    "B": BoundarySimilarity(),
    "WD": WindowDiff(padding="exact"),  # as in the paper, whose window may be 1
    "WD plain": WindowDiff(),
    "A": Alignment(),
}
PLOTTED = (12, 15, 18, 20)
"""Lengths whose curves the paper shows."""

# Erring references for n = 5 … 20, summed over the number of segments, from the authors' results
# (github.com/sierra98x/resources at 6730ad3). For A they are all 0.
CROSS = (0, 0, 0, 0, 0, 4, 20, 68, 196, 519, 1291, 3076, 7109, 16067, 35693, 78228)
CONSTANT = (0, 0, 0, 0, 2, 6, 16, 46, 123, 315, 772, 1846, 4324, 9942, 22543, 50508)
VANISHING_B = (0, 0, 0, 2, 8, 23, 59, 143, 334, 762, 1711, 3794, 8325, 18106, 39086, 83844)
VANISHING_WD = (
    *(2, 4, 15, 43, 89, 225, 515, 1061, 2383, 5163, 10539, 22555, 47504, 96491),
    *(201626, 417096),
)
PUBLISHED = {
    "cross-boundary": {"B": CROSS, "WD": CROSS, "A": (0,) * 16},
    "constant cost": {"B": CONSTANT, "WD": CONSTANT, "A": (0,) * 16},
    "vanishing": {"B": VANISHING_B, "WD": VANISHING_WD, "A": (0,) * 16},
}


def simulate(n: int, m: int) -> dict[str, Any]:
    """Count the references of n units and m segments with a tie and with a reversal."""
    inner = np.array(list(combinations(range(1, n), m - 1)))
    counts: dict[str, dict[str, list[int]]] = {name: {} for name in METRICS}
    for row in count_misjudged("", n, inner, METRICS):
        counts[row["metric"]][row["kind"]] = [row["tied"], row["ahead"]]
    return {"n": n, "m": m, "references": len(inner), **counts}


def totals(results: dict[str, Any], n: int, metric: str, simulation: str) -> tuple[int, int]:
    """References of a length with a tie and with a reversal, whatever their number of segments."""
    counts = [row[metric][simulation] for row in results["rows"] if row["n"] == n]
    return sum(tied for tied, _ in counts), sum(ahead for _, ahead in counts)


def percent(count: int, of: int) -> str:
    """Write a share; a dash for none at all."""
    return f"{100 * count / of:.1f}" if count else "–"


def totals_table(results: dict[str, Any]) -> list[str]:
    """References that each metric errs on, by length."""
    heads = [f"{s}: {m}" for s in SIMULATIONS for m in METRICS]
    lines = [
        f"| units | references | {' | '.join(heads)} |",
        "|--:" * (2 + len(heads)) + "|",
    ]
    for n in lengths(results):
        every = sum(row["references"] for row in results["rows"] if row["n"] == n)
        cells = [str(n), f"{every:,}"]
        for simulation in SIMULATIONS:
            for metric in METRICS:
                tied, ahead = totals(results, n, metric, simulation)
                more = f" ({percent(ahead, every)})" if ahead else ""
                cells.append(percent(tied, every) + more)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def curves_table(results: dict[str, Any], simulation: str) -> list[str]:
    """The paper's curves: share of erring references by number of segments, B / WindowDiff."""
    run = lengths(results)
    shown = [n for n in run if n in PLOTTED] or run[-1:]
    rows = {(row["n"], row["m"]): row for row in results["rows"]}
    lines = [
        f"| segments | {' | '.join(f'n = {n}' for n in shown)} |",
        "|--:" * (1 + len(shown)) + "|",
    ]
    for m in range(2, max(shown)):
        cells = [str(m)]
        for n in shown:
            row = rows.get((n, m))
            pair = [
                percent(row[metric][simulation][0], row["references"])
                for metric in ("B", "WD")
                if row
            ]
            cells.append(" / ".join(pair))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def lengths(results: dict[str, Any]) -> list[int]:
    """Lengths that were run."""
    return sorted({row["n"] for row in results["rows"]})


def agreement(results: dict[str, Any]) -> str:
    """Say how many of the authors' counts are met, and which are not."""
    wrong, compared = [], 0
    for simulation, by_metric in PUBLISHED.items():
        for metric, counts in by_metric.items():
            for n, count in enumerate(counts, SHORTEST):
                if n in lengths(results):
                    compared += 1
                    own, _ = totals(results, n, metric, simulation)
                    if own != count:
                        wrong.append(f"{simulation}, {metric}, n = {n}: {own}, not {count}")
    said = f"{compared - len(wrong)} of the authors' {compared} counts are met"
    return f"{said}: {'; '.join(wrong)}." if wrong else f"{said}."


def summary(results: dict[str, Any]) -> str:
    """Markdown of the totals."""
    legend = (
        "Percentage of references for which a metric gives the same value to a small and a large "
        "error; in brackets, for which it prefers the large one; a dash for none. "
    )
    header, rule, *rows = totals_table(results)
    return f"{legend}{agreement(results)}\n\n" + "\n".join([header, rule, *rows[::5]])


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    parts = ["\n".join(totals_table(results))]
    for number, simulation in enumerate(SIMULATIONS, 13):
        parts.append(f"Figure {number}, {simulation}, in per cent, B / WD:")
        parts.append("\n".join(curves_table(results, simulation)))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run everything, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="print the last results")
    parser.add_argument("--longest", type=int, default=16, help="units; the paper has 20")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    torch.set_num_threads(1)  # windows this small gain nothing from threads
    start = time.perf_counter()
    rows = []
    for n in range(SHORTEST, arguments.longest + 1):
        rows += [simulate(n, m) for m in range(2, n)]
        print(f"{n} units: {time.perf_counter() - start:.1f} s", flush=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    results = {
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "seconds": round(time.perf_counter() - start, 1),
        "rows": rows,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results).replace('{"n":', '\n{"n":') + "\n")  # a line per row
    print(agreement(results))


if __name__ == "__main__":
    main()
