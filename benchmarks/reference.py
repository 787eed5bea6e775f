"""Time the gold-based metrics against segeval and nltk.

Everything runs in one process on one thread, interleaved, and the best of several rounds counts, so
that noise of the machine hits all alike. segeval and nltk are timed on the first few hypotheses and
scaled; all get what they read directly, masses or, for nltk, gap strings. Writes
``benchmarks/results/reference.json``; ``--table`` prints that file as markdown.

    python benchmarks/reference.py
    python benchmarks/reference.py --table
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reffree.data.masses import mass_matrix, masses_from_gaps
from reffree.data.segmentation import Segmentation
from reffree.metrics.gold.boundary_edits import BoundarySimilarity, Ghd
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.gold.windows import Pk, WindowDiff

with warnings.catch_warnings():
    # segeval's docstrings have invalid escapes.
    warnings.simplefilter("ignore")
    import segeval
    from nltk.metrics import segmentation as nltk

RESULTS = Path(__file__).parent / "results" / "reference.json"
Masses = list[int]

METRICS: tuple[GoldMetric, ...] = (Pk(), WindowDiff(), BoundarySimilarity(), Ghd())
SEGEVAL: dict[str, Callable[[Masses, Masses], Any]] = {
    "pk": segeval.pk,
    "windowdiff": segeval.window_diff,
    "boundary_similarity": segeval.boundary_similarity,
}
NLTK: dict[str, Callable[[str, str, int], float]] = {
    "pk": lambda h, r, k: nltk.pk(r, h, k),
    "windowdiff": lambda h, r, k: nltk.windowdiff(r, h, k),
    "ghd": lambda h, r, k: nltk.ghd(r, h),
}
TIMED_OF_OTHERS = 20
"""Hypotheses that segeval and nltk are timed on."""


def random_masses(n: int, count: int, rng: np.random.Generator) -> list[Masses]:
    """Segmentations with a mean segment length from 8 to 40 units."""
    densities = 1 / rng.uniform(8, 40, size=(count, 1))
    matrix = masses_from_gaps(rng.random((count, n - 1)) < densities)
    return [[int(mass) for mass in row if mass] for row in matrix]


def seconds(run: Callable[..., object], *arguments: object) -> float:
    """Time one run."""
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start


def one_by_one(run: Callable[..., Any], hypotheses: list[Any], *others: object) -> list[float]:
    """Score hypothesis after hypothesis, as segeval and nltk do."""
    return [float(run(hypothesis, *others)) for hypothesis in hypotheses]


def contestants(
    metric: GoldMetric, hypotheses: list[Masses], reference: Masses
) -> dict[str, Callable[[], Any]]:
    """Every way to score the hypotheses; segeval and nltk only score the first few."""
    few = hypotheses[:TIMED_OF_OTHERS]
    matrix = mass_matrix(hypotheses, sum(reference))
    runs: dict[str, Callable[[], Any]] = {
        "lists": partial(metric, hypotheses, reference),
        "matrix": partial(metric, matrix, reference),
    }
    if metric.name in SEGEVAL:
        runs["segeval"] = partial(one_by_one, SEGEVAL[metric.name], few, reference)
    if metric.name in NLTK:
        k = max(2, round(sum(reference) / len(reference) / 2))
        gaps, *few_gaps = (Segmentation(tuple(m)).to_string() for m in (reference, *few))
        runs["nltk"] = partial(one_by_one, NLTK[metric.name], few_gaps, gaps, k)
    return runs


def one_document(n: int, count: int, rounds: int) -> list[dict[str, Any]]:
    """Time per hypothesis of one document, in microseconds, by metric and contestant."""
    reference, *hypotheses = random_masses(n, count + 1, np.random.default_rng(0))
    runs = {metric.name: contestants(metric, hypotheses, reference) for metric in METRICS}
    best = {(name, who): np.inf for name, ways in runs.items() for who in ways}
    for _ in range(rounds):
        for name, who in best:
            best[name, who] = min(best[name, who], seconds(runs[name][who]))
    rows = []
    for name, ways in runs.items():
        row: dict[str, Any] = {"metric": name, "n": n, "hypotheses": count}
        values = {
            who: np.asarray(run(), dtype=float)[:TIMED_OF_OTHERS] for who, run in ways.items()
        }
        for who, spent in ((who, best[name, who]) for who in ways):
            scored = count if who in ("lists", "matrix") else TIMED_OF_OTHERS
            row[f"{who}_us"] = round(spent / scored * 1e6, 3)
        difference = max(float(abs(values["lists"] - other).max()) for other in values.values())
        rows.append({**row, "largest_difference": difference})
    return rows


def growth(lengths: tuple[int, ...], count: int, rounds: int) -> list[dict[str, Any]]:
    """Time per hypothesis of longer and longer documents, and the slope on log-log axes."""
    rng = np.random.default_rng(1)
    given = {n: random_masses(n, count + 1, rng) for n in lengths}
    matrices = {n: (mass_matrix(made[1:], n), made[0]) for n, made in given.items()}
    best: dict[tuple[str, int], float] = {}
    for _ in range(rounds):
        for n, (matrix, reference) in matrices.items():
            for metric in METRICS:
                spent = seconds(metric, matrix, reference) / count
                best[metric.name, n] = min(spent, best.get((metric.name, n), np.inf))
    rows = []
    for metric in METRICS:
        times = [best[metric.name, n] for n in lengths]
        slope = np.polyfit(np.log(lengths), np.log(times), 1)[0]
        rows.append(
            {
                "metric": metric.name,
                "n": list(lengths),
                "hypotheses": count,
                "us": [round(spent * 1e6, 3) for spent in times],
                "slope": round(float(slope), 3),
            }
        )
    return rows


def many_pairs(n: int, count: int, rounds: int) -> list[dict[str, Any]]:
    """Seconds for very many pairs in one call, from matrices of masses."""
    rng = np.random.default_rng(2)
    sides = [masses_from_gaps(rng.random((count, n - 1)) < 0.1) for _ in range(2)]
    best: dict[str, float] = {}
    for _ in range(rounds):
        for metric in METRICS:
            spent = seconds(metric, *sides)
            best[metric.name] = min(spent, best.get(metric.name, np.inf))
    return [
        {"metric": name, "n": n, "pairs": count, "seconds": round(spent, 3)}
        for name, spent in best.items()
    ]


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""

    def cell(value: float | None, digits: int) -> str:
        return "–" if value is None else f"{value:,.{digits}f}"

    def ratio(row: dict[str, Any], other: str, ours: str) -> str:
        spent = row.get(f"{other}_us")
        return "–" if spent is None else f"{spent / row[f'{ours}_us']:,.0f}×"

    document = results["document"]
    lines = [
        f"{document[0]['hypotheses']:,} hypotheses of one document of {document[0]['n']} units, µs "
        f"per hypothesis (segeval and nltk on {TIMED_OF_OTHERS} of them):",
        "",
        "| metric | reffree, from lists | reffree, from a matrix | segeval | nltk | "
        "segeval / lists | segeval / matrix | nltk / matrix |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in document:
        spent = [row.get(f"{who}_us") for who in ("lists", "matrix", "segeval", "nltk")]
        cells = [row["metric"], *(cell(us, 1) for us in spent)]
        cells += [ratio(row, "segeval", "lists"), ratio(row, "segeval", "matrix")]
        cells.append(ratio(row, "nltk", "matrix"))
        lines.append("| " + " | ".join(cells) + " |")
    lengths, at_a_time = (results["growth"][0][key] for key in ("n", "hypotheses"))
    lines += [
        "",
        f"Growth, µs per hypothesis ({at_a_time:,} at a time, from a matrix); the slope is of log "
        "time against log units, 1 is linear:",
        "",
        "| metric | " + " | ".join(f"{n:,} units" for n in lengths) + " | slope |",
        "|---|" + "--:|" * (len(lengths) + 1),
    ]
    for row in results["growth"]:
        cells = [row["metric"], *(cell(us, 1) for us in row["us"]), cell(row["slope"], 2)]
        lines.append("| " + " | ".join(cells) + " |")
    pairs = results["pairs"]
    lines += [
        "",
        f"{pairs[0]['pairs']:,} pairs of {pairs[0]['n']} units in one call, from matrices:",
        "",
        "| metric | seconds |",
        "|---|--:|",
    ]
    lines += [f"| {row['metric']} | {row['seconds']:.2f} |" for row in pairs]
    return "\n".join(lines)


def summary(results: dict[str, Any]) -> str:
    """Markdown of one document's hypotheses."""
    return table(results).split("\n\nGrowth")[0]


def main() -> None:
    """Run everything, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="print the last results")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    # segeval and nltk have one thread too.
    torch.set_num_threads(1)
    # Compile before anything is timed.
    for metric in METRICS:
        metric([[25, 25]], [[20, 30]])
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    results = {
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "segeval": version("segeval"),
        "nltk": version("nltk"),
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "document": one_document(500, 1000, arguments.rounds),
        "growth": growth((100, 200, 500, 1000, 2000, 4000, 8000), 1000, arguments.rounds),
        "pairs": many_pairs(50, 1_000_000, max(1, arguments.rounds // 3)),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
