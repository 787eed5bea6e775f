"""Time scoring many hypotheses of one document against three ways people write it today.

Everything runs in one process, interleaved, and the best of several rounds counts, so that noise of
the machine hits all alike. In a round every way runs three times in a row, so that none is timed
with the caches that another left. OpenMP's threads do not spin while others work. Writes
``benchmarks/results/scoring.json``; ``--table`` prints that file as markdown.

    python benchmarks/scoring.py
    python benchmarks/scoring.py --table
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when the libraries load

import numpy as np
import torch
from sklearn.metrics import silhouette_samples

import reffree
from reffree.data.masses import mass_matrix
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.expected import ExpectedWindowDiff
from reffree.metrics.free.fast import distances as workspace
from reffree.metrics.free.posterior import Posterior
from reffree.metrics.registry import WITHOUT_SEARCH
from reffree.util.arrays import Floats

RESULTS = Path(__file__).parent / "results" / "scoring.json"
EXPECTED_TIMES = ("posterior_ms", "hypothesis_ms", "drawn_hypothesis_ms")
TURNS = 3
"""Runs of one way in a row."""

Masses = Sequence[int]


def segments_of(x: Floats, masses: Masses) -> list[Floats]:
    """Cut a matrix into its segments."""
    return np.split(x, np.cumsum(masses)[:-1])


def numpy_hypothesis(x: Floats, masses: Masses) -> tuple[float, ...]:
    """All five metrics as a careful researcher writes them: vectorised inside a segment."""
    parts = segments_of(x, masses)
    unit = [p / np.linalg.norm(p, axis=1, keepdims=True) for p in parts]
    return (*numpy_arp(parts, unit), numpy_silhouette(parts), numpy_segrefree(parts))


def numpy_arp(parts: list[Floats], unit: list[Floats]) -> tuple[float, float, float]:
    """ARP with its three dispersions."""

    def std(e: Floats, u: Floats) -> float:
        return float(e.var(axis=0).sum())

    def cos(e: Floats, u: Floats) -> float:
        centre = e.mean(axis=0)
        return float(1 - (u @ centre).mean() / np.linalg.norm(centre))

    def pair(e: Floats, u: Floats) -> float:
        total = u.sum(axis=0)
        return float(1 - (total @ total - len(u)) / (len(u) * (len(u) - 1)))

    scores = []
    for disperse in (std, cos, pair):
        inter, intra = [], []
        for i in range(len(parts) - 1):
            m, following = len(parts[i]), len(parts[i + 1])
            cut = min(2 * following, m)
            left, right = (1, 1) if m == 1 else ((cut + 1) // 2, cut // 2)
            window = [np.concatenate([p[i][m - left :], p[i + 1][:right]]) for p in (parts, unit)]
            inter.append(disperse(*window))
            own = disperse(parts[i][m - cut :], unit[i][m - cut :]) if m > 1 else np.nan
            intra.append(own)
        a, b = np.array(inter), np.array(intra)
        b = np.where(np.isnan(b), np.nanmean(b) if not np.isnan(b).all() else a.mean(), b)
        scores.append(float(((a - b) / (a + b)).mean()))
    return scores[0], scores[1], scores[2]


def distances(a: Floats, b: Floats) -> Floats:
    """Euclidean distances by the Gram matrix."""
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T
    result: Floats = np.sqrt(np.maximum(squared, 0))
    return result


def numpy_silhouette(parts: list[Floats]) -> float:
    """Silhouette over adjacent segments."""
    means = []
    for i, own in enumerate(parts):
        if len(own) == 1:
            means.append(0.0)
            continue
        a = distances(own, own).sum(1) / (len(own) - 1)
        sides = [distances(own, parts[j]).mean(1) for j in (i - 1, i + 1) if 0 <= j < len(parts)]
        b = np.min(sides, axis=0)
        means.append(float(((b - a) / np.maximum(a, b)).mean()))
    return float(np.mean(means))


def numpy_segrefree(parts: list[Floats]) -> float:
    """Davies-Bouldin of neighbours with the size correction."""
    centres = np.stack([p.mean(axis=0) for p in parts])
    spread = np.array(
        [
            np.linalg.norm(p - c, axis=1).mean() / (1 - len(p) ** -0.5) if len(p) > 1 else np.nan
            for p, c in zip(parts, centres, strict=True)
        ]
    )
    spread = np.where(np.isnan(spread), np.nanmean(spread), spread)
    ratio = (spread[1:] + spread[:-1]) / np.linalg.norm(np.diff(centres, axis=0), axis=1)
    worst = np.maximum(np.append(ratio, -np.inf), np.append(-np.inf, ratio))
    return float(worst.mean())


def sklearn_hypothesis(x: Floats, masses: Masses) -> float:
    """scikit-learn's silhouette of the document: one metric, neighbours not only adjacent."""
    labels = np.repeat(np.arange(len(masses)), masses)
    return float(silhouette_samples(x, labels).mean())


def cdist_hypothesis(x: torch.Tensor, masses: Masses) -> float:
    """Silhouette from torch.cdist, segment by segment: one metric."""
    parts = torch.split(x, list(masses))
    means = []
    for i, own in enumerate(parts):
        if len(own) == 1:
            means.append(x.new_zeros(()))
            continue
        a = torch.cdist(own, own).sum(1) / (len(own) - 1)
        sides = [torch.cdist(own, parts[j]).mean(1) for j in (i - 1, i + 1) if 0 <= j < len(parts)]
        b = torch.stack(sides).amin(0)
        means.append(((b - a) / torch.maximum(a, b)).mean())
    return float(torch.stack(means).mean())


def random_hypotheses(n: int, count: int, rng: np.random.Generator) -> list[list[int]]:
    """Segmentations with 2 to n/8 segments."""
    made = []
    for _ in range(count):
        k = int(rng.integers(2, max(3, n // 8)))
        inner = np.sort(rng.choice(np.arange(1, n), size=k - 1, replace=False))
        made.append([int(m) for m in np.diff([0, *inner, n])])
    return made


def best_of(run: Callable[[], object], rounds: int) -> float:
    """Shortest time in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(n: int, d: int, count: int, rounds: int) -> dict[str, Any]:
    """Time per hypothesis, in milliseconds, of every way."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    tensor = torch.from_numpy(x)
    hypotheses = random_hypotheses(n, count, rng)
    few = hypotheses[: max(1, min(5, 20_000 // n))]  # the slow ways need no more to be timed
    ours = reffree.score_document(x, few[:1])
    names = WITHOUT_SEARCH
    expected = numpy_hypothesis(x, few[0])
    error = max(abs(float(ours[k][0]) - v) for k, v in zip(names, expected, strict=True))
    seconds: dict[str, float] = {}
    for _ in range(rounds):
        runs: dict[str, Callable[[], object]] = {
            "reffree": lambda: reffree.score_document(x, hypotheses),
            "numpy": lambda: [numpy_hypothesis(x, h) for h in few],
            "sklearn": lambda: [sklearn_hypothesis(x, h) for h in few[:1]],
            "cdist": lambda: [cdist_hypothesis(tensor, h) for h in few],
        }
        sizes = {"reffree": count, "numpy": len(few), "sklearn": 1, "cdist": len(few)}
        for name, run in runs.items():
            spent = best_of(run, TURNS if n < 5000 else 1) / sizes[name]
            seconds[name] = min(spent, seconds.get(name, np.inf))
    workspace.spare.clear()  # memory kept from before counts, too
    tracemalloc.start()
    reffree.score_document(x, hypotheses)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "n": n,
        "d": d,
        "hypotheses": count,
        "peak_mb": round(peak / 1e6, 1),
        **{f"{name}_ms": round(value * 1e3, 4) for name, value in seconds.items()},
        "ratio_to_numpy": round(seconds["numpy"] / seconds["reffree"], 1),
        "largest_difference": error,
    }


def measure_expected(n: int, d: int, rounds: int) -> dict[str, Any]:
    """Time expected errors of one document: the posterior once, then one more hypothesis.

    WindowDiff says what a hypothesis costs where the expectation is a mean over 200 draws.
    """
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(n // 10, d)), 10, axis=0) + 2 * rng.normal(size=(n, d))
    hypotheses = mass_matrix(random_hypotheses(n, 1000, rng), n, "benchmark")
    posterior = Posterior(x, Reading())
    drawn = ExpectedWindowDiff()
    times = {
        "posterior_ms": best_of(lambda: Posterior(x, Reading()), rounds),
        "hypothesis_ms": best_of(lambda: posterior.expected_pk(hypotheses), rounds) / 1000,
        "drawn_hypothesis_ms": best_of(lambda: drawn.scores(posterior, hypotheses[:100]), rounds)
        / 100,
    }
    return {"n": n, "d": d, **{name: 1000 * value for name, value in times.items()}}


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    lines = [
        "| units | dimensions | hypotheses | reffree ms | peak MB | NumPy ms | ratio | "
        "scikit-learn ms (silhouette only) | torch.cdist ms (silhouette only) |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in results["rows"]:
        cells = [row["n"], row["d"], row["hypotheses"], row["reffree_ms"]]
        cells += [row["peak_mb"], row["numpy_ms"]]
        cells += [f"{row['ratio_to_numpy']}×", row["sklearn_ms"], row["cdist_ms"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += [
        "",
        "Expected errors of one document from its vectors, ms: the posterior for seven numbers of "
        "segments, one more hypothesis in closed form (Pk) and over 200 draws (WindowDiff). Beyond "
        "1,024 units a document is read in steps.",
        "",
        "| units | posterior | one more, Pk (µs) | one more, WindowDiff |",
        "|--:|--:|--:|--:|",
    ]
    for row in results.get("expected", []):
        times = [row[name] for name in EXPECTED_TIMES]
        times[1] *= 1000  # in microseconds
        cells = [f"{value:,.2f}" for value in times]
        lines.append(f"| {row['n']:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(results: dict[str, Any]) -> str:
    """Markdown of what one hypothesis takes with vectors of 384 numbers."""
    lines = [
        "| units | hypotheses | ms a hypothesis | NumPy ms | ratio | peak MB |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for row in sorted(results["rows"], key=lambda row: (row["n"], row["hypotheses"])):
        if row["d"] == 384 and row["hypotheses"] in (10, 100, 1000, 10_000):
            names = ("reffree_ms", "numpy_ms", "ratio_to_numpy", "peak_mb")
            cells = [f"{row['n']:,}", f"{row['hypotheses']:,}", *(f"{row[x]:,.4g}" for x in names)]
            lines.append(f"| {' | '.join(cells)} |")
    posteriors = [f"{row['posterior_ms']:,.0f} ({row['n']:,})" for row in results["expected"]]
    return "\n".join(
        [*lines, "", f"The posterior of expected errors, ms (units): {', '.join(posteriors)}."]
    )


def main() -> None:
    """Run everything, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="print the last results")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--expected", action="store_true", help="time expected errors alone")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    expected = [measure_expected(n, 384, arguments.rounds) for n in (50, 500, 1000, 50_000)]
    if arguments.expected:
        kept = json.loads(RESULTS.read_text())
        RESULTS.write_text(json.dumps({**kept, "expected": expected}, indent=1) + "\n")
        print(table({**kept, "expected": expected}))
        return
    # Compile before anything is timed.
    reffree.score_document(np.random.default_rng(0).normal(size=(50, 4)), [[25, 25]] * 2000)
    rows = []
    for n, d in ((500, 384), (50, 384), (5000, 384), (50, 4544), (500, 4544), (5000, 4544)):
        for count in (1, 10, 100, 1000, 10_000):
            rows.append(measure(n, d, count, arguments.rounds if n < 5000 else 2))
            print(rows[-1], flush=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    results = {
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "rows": rows,
        "expected": expected,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
