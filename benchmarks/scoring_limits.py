"""How far scoring is from what the machine can do, how it grows, and where the time goes.

Growth: time of one more hypothesis once a document's tables are there, against units and against
dimensions, as slopes of a log-log line. Limits: bytes a hypothesis must read over the measured
memory bandwidth, multiply-adds of the tables over the measured rate of a matrix product. Shares:
the steps of scoring 1,000 hypotheses of 500 units. Writes
``benchmarks/results/scoring_limits.json``.

    python benchmarks/scoring_limits.py
    python benchmarks/scoring_limits.py --table
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import reffree
from reffree.data.masses import distinct_rows, mass_matrix
from reffree.metrics.free.fast import tables as kernels
from reffree.metrics.free.fast.distances import give_back
from reffree.metrics.free.fast.document import CompiledDocument
from reffree.metrics.free.inputs import check_matrix

RESULTS = Path(__file__).parent / "results" / "scoring_limits.json"

STREAMS = 6
"""Table entries read per unit: four of distances, two of squared distances."""


def best(run: Callable[[], object], rounds: int = 7) -> float:
    """Shortest time in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def hypotheses_of(n: int, count: int, rng: np.random.Generator) -> list[list[int]]:
    """Segmentations with a boundary every 16 units on average."""
    made = []
    for _ in range(count):
        inner = np.sort(rng.choice(np.arange(1, n), size=max(1, n // 16), replace=False))
        made.append([int(m) for m in np.diff([0, *inner, n])])
    return made


def per_hypothesis(n: int, d: int, count: int = 500) -> float:
    """Seconds of one more hypothesis on one thread, the tables being there."""
    rng = np.random.default_rng(0)
    document = CompiledDocument(torch.from_numpy(rng.normal(size=(n, d))))
    masses = mass_matrix(hypotheses_of(n, count, rng), n)
    document.prepare([masses], lambda: 1 << 40)
    return best(lambda: document.score(masses, threads=1)) / count


def slope(x: list[int], y: list[float]) -> float:
    """Exponent of the power law through the points."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def growth() -> dict[str, Any]:
    """Time per hypothesis against n and against d."""
    units, dimensions = [125, 250, 500, 1000, 2000, 4000], [64, 384, 1536, 4544]
    by_n = [per_hypothesis(n, 64) for n in units]
    by_d = [per_hypothesis(500, d) for d in dimensions]
    return {
        "n": {str(n): round(t * 1e6, 2) for n, t in zip(units, by_n, strict=True)},
        "slope_in_n": round(slope(units, by_n), 2),
        "d": {str(d): round(t * 1e6, 2) for d, t in zip(dimensions, by_d, strict=True)},
        "slope_in_d": round(slope(dimensions, by_d), 2),
    }


def limits(n: int = 500, d: int = 384) -> dict[str, float]:
    """What the machine can do, and what scoring takes of it."""
    rng = np.random.default_rng(0)
    # As large as the two tables that are read unit by unit.
    table = rng.normal(size=2 * n * (n + 1))
    seconds = best(lambda: table.sum(), 30)
    bandwidth = table.nbytes / seconds
    a = rng.normal(size=(2048, 2048))
    gemm = 2048**3 / best(lambda: a @ a)
    hypothesis = per_hypothesis(n, d)
    x = torch.from_numpy(rng.normal(size=(n, d)))
    masses = mass_matrix(hypotheses_of(n, 1000, rng), n)

    def tables() -> None:
        document = CompiledDocument(x)
        document.prepare([masses], lambda: 1 << 40)
        document.discard()

    built = best(tables)
    return {
        "bandwidth_GB_per_s": round(bandwidth / 1e9, 1),
        "bytes_per_hypothesis": STREAMS * 8 * n,
        "bandwidth_limit_us": round(STREAMS * 8 * n / bandwidth * 1e6, 2),
        "hypothesis_us": round(hypothesis * 1e6, 2),
        "gemm_GMAC_per_s": round(gemm / 1e9, 1),
        "gemm_limit_ms": round(n * n / 2 * d / gemm * 1e3, 2),
        "tables_ms": round(built * 1e3, 2),
    }


def shares(n: int = 500, d: int = 384, count: int = 1000) -> dict[str, float]:
    """Milliseconds of each step of scoring many hypotheses of one document."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    hypotheses = hypotheses_of(n, count, rng)
    masses = mass_matrix(hypotheses, n)
    band = kernels.band_of(masses, n)
    document = CompiledDocument(torch.from_numpy(x))
    document.prepare([masses], lambda: 1 << 40)
    vectors, threads = document.vectors, torch.get_num_threads()

    def make_tables() -> None:
        made = kernels.build_tables(vectors, band, threads)
        give_back(made.memory)

    steps: dict[str, Callable[[], object]] = {
        "check the matrix": lambda: check_matrix(x, "d"),
        "take the vectors": lambda: CompiledDocument(torch.from_numpy(x)).discard(),
        "read the hypotheses": lambda: mass_matrix(hypotheses, n),
        "find repeats": lambda: distinct_rows(masses),
        "find what tables need": lambda: kernels.band_of(masses, n),
        f"make the tables ({threads} threads)": make_tables,
        f"score ({threads} threads)": lambda: document.score(masses, threads),
        "everything": lambda: reffree.score_document(x, hypotheses),
    }
    return {name: round(best(run) * 1e3, 2) for name, run in steps.items()}


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    grown, reached = results["growth"], results["limits"]
    by_n = ", ".join(f"{n}: {t}" for n, t in grown["n"].items())
    by_d = ", ".join(f"{d}: {t}" for d, t in grown["d"].items())
    lines = [
        f"Time of one more hypothesis (µs, one thread) by units: {by_n}; slope "
        f"{grown['slope_in_n']}. By dimensions at 500 units: {by_d}; slope {grown['slope_in_d']}.",
        "",
        f"One hypothesis of 500 units reads {reached['bytes_per_hypothesis']:,} bytes: "
        f"{reached['bandwidth_limit_us']} µs at the {reached['bandwidth_GB_per_s']} GB/s measured "
        f"for a table of that size; it takes {reached['hypothesis_us']} µs. The tables' products "
        f"take {reached['gemm_limit_ms']} ms at the {reached['gemm_GMAC_per_s']} billion "
        f"multiply-adds per second measured; all tables take {reached['tables_ms']} ms.",
        "",
        "| step, 1,000 hypotheses of 500 units | ms |",
        "|:--|--:|",
    ]
    lines += [f"| {name} | {ms} |" for name, ms in results["shares"].items()]
    return "\n".join(lines)


def summary(results: dict[str, Any]) -> str:
    """Return how time grows and what bounds it."""
    return table(results).split("\n\n| step")[0]


def main() -> None:
    """Run everything, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="print the last results")
    if parser.parse_args().table:
        print(table(json.loads(RESULTS.read_text())))
        return
    per_hypothesis(50, 4, 10)  # compile before anything is timed
    results = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "growth": growth(),
        "limits": limits(),
        "shares": shares(),
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
