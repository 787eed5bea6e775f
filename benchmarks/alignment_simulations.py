"""How often a metric cannot tell a small error from a large one: three simulations, exhaustive.

Ocampo Diaz & Ouyang 2022, Section 5, take every reference of n units and hypotheses that move one
of its boundaries, and count the references for which a metric gives the same value to two that it
should tell apart:

* cross-boundary: a soft move, and one as far that crosses a boundary;
* constant cost: a soft move, and a hard one as far;
* vanishing: a soft move, and one of the same boundary farther.

A move that stays within the two segments at its boundary is soft if both keep a Jaccard index above
1/2 with what they were, hard if both fall below. Beyond the paper, references for which a metric
even prefers the larger error are counted too. Writes ``benchmarks/alignment_table.md`` and
``benchmarks/results/alignment_simulations.json``; ``--table`` makes the former from the latter.

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
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reffree.arrays import Booleans, Integers
from reffree.reference.alignment import Alignment
from reffree.reference.boundary_edits import BoundarySimilarity
from reffree.reference.metric import GoldMetric, count_pairs
from reffree.reference.pairs import Pairs
from reffree.reference.windows import WindowDiff

RESULTS = Path(__file__).parent / "results" / "alignment_simulations.json"
TABLE = Path(__file__).parent / "alignment_table.md"
SHORTEST = 5
SIMULATIONS = ("cross-boundary", "constant cost", "vanishing")
METRICS = ("B", "WD", "WD plain", "A")
PLOTTED = (12, 15, 18, 20)
"""Lengths whose curves the paper shows."""

SAME = 1e-12
"""Values of documents of up to 20 units lie farther apart if they differ, and nearer if not."""

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


@dataclass(frozen=True)
class Moves:
    """Hypotheses with one boundary moved, of all references of n units and m segments."""

    reference: Integers  # (moves,) which reference
    boundary: Integers  # (moves,) which of its boundaries
    distance: Integers  # (moves,)
    crosses: Booleans  # (moves,) over the next boundary, or else stays between its neighbours
    soft: Booleans  # (moves,)
    hard: Booleans  # (moves,)
    pairs: Pairs

    @classmethod
    def of(cls, n: int, m: int) -> Moves:
        """Enumerate them."""
        inner = np.array(list(combinations(range(1, n), m - 1)))  # (references, m - 1)
        # The document's ends twice, so that there is nothing to cross into beyond them.
        ends = np.zeros((len(inner), 2), dtype=np.int64)
        edges = np.concatenate([ends, inner, ends + n], axis=1)[:, :, None]
        before, start, old, stop, after = (edges[:, i : i + m - 1] for i in range(5))
        new = np.arange(1, n)
        stays = (start < new) & (new < stop) & (new != old)
        crosses = ((before < new) & (new < start)) | ((stop < new) & (new < after))
        r, b, place = np.nonzero(stays | crosses)
        crosses = crosses[r, b, place]
        new, start, old, stop = place + 1, start[r, b, 0], old[r, b, 0], stop[r, b, 0]
        distance = np.abs(new - old)
        grown = np.where(new > old, old - start, stop - old)
        shrunk = np.where(new > old, stop - old, old - start)
        gaps = np.zeros((len(inner), n - 1), dtype=bool)
        np.put_along_axis(gaps, inner - 1, True, axis=1)
        moved = gaps[r]
        moved[np.arange(len(r)), old - 1] = False
        moved[np.arange(len(r)), new - 1] = True
        return cls(
            reference=r,
            boundary=b,
            distance=distance,
            crosses=crosses,
            # Jaccard indices grown / (grown + distance) and (shrunk - distance) / shrunk.
            soft=~crosses & (grown > distance) & (shrunk > 2 * distance),
            hard=~crosses & (grown < distance) & (shrunk < 2 * distance),
            pairs=Pairs.of(moved, gaps[r]),
        )


def metrics(n: int, m: int) -> dict[str, GoldMetric]:
    """B and WindowDiff as in the paper, WindowDiff as it is by default, and A."""
    # Unlike the default the authors' window, half a mean segment, may be 1.
    k = max(1, round(Fraction(n, 2 * m)))
    chosen = (BoundarySimilarity(), WindowDiff(k=k, padding="exact"), WindowDiff(), Alignment())
    return dict(zip(METRICS, chosen, strict=True))


def ranks(metric: GoldMetric, pairs: Pairs) -> Integers:
    """Place of each pair's value among the distinct values, the worst first."""
    values = metric.value(count_pairs(metric, pairs))
    values = values if metric.direction == "higher" else -values
    order = np.argsort(values)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.cumsum(np.diff(values[order], prepend=values[order[:1]]) > SAME)
    return rank


def misjudged(
    group: Integers, rank: Integers, small: Booleans, large: Booleans
) -> tuple[Integers, Integers]:
    """Groups with a small and a large error of the same rank, and with a large one ahead."""
    n_groups, n_ranks = int(group.max()) + 1, int(rank.max()) + 1
    keys = group * n_ranks + rank
    tied = np.intersect1d(keys[small], keys[large]) // n_ranks
    worst_small = np.full(n_groups, n_ranks)
    np.minimum.at(worst_small, group[small], rank[small])
    best_large = np.full(n_groups, -1)
    np.maximum.at(best_large, group[large], rank[large])
    return tied, np.flatnonzero(best_large > worst_small)


def simulate(n: int, m: int) -> dict[str, Any]:
    """Count the references of n units and m segments with a tie and with a reversal."""
    moves = Moves.of(n, m)
    n_references = comb(n - 1, m - 1)
    counts: dict[str, Any] = {}
    for name, metric in metrics(n, m).items():
        rank = ranks(metric, moves.pairs)
        erring = {s: np.zeros((2, n_references), dtype=bool) for s in SIMULATIONS}
        for x in np.unique(moves.distance[moves.soft]):
            as_far = moves.distance == x
            cases = (
                (1, moves.crosses & as_far),
                (1, moves.hard & as_far),
                (m - 1, ~moves.crosses & (moves.distance > x)),
            )
            for simulation, (parts, large) in zip(SIMULATIONS, cases, strict=True):
                # Moves compare within a reference or, in as many parts, within its boundaries.
                group = moves.reference * parts + moves.boundary % parts
                groups = misjudged(group, rank, moves.soft & as_far, large)
                for kind in range(2):
                    erring[simulation][kind, groups[kind] // parts] = True
        counts[name] = {s: found.sum(1).tolist() for s, found in erring.items()}
    return {"n": n, "m": m, "references": n_references, "moves": len(moves.pairs), **counts}


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
    return f"{legend}{agreement(results)}\n\n" + "\n".join(totals_table(results))


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    parts = [summary(results)]
    for number, simulation in enumerate(SIMULATIONS, 13):
        parts.append(f"Figure {number}, {simulation}, in per cent, B / WD:")
        parts.append("\n".join(curves_table(results, simulation)))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run everything, or make the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="make the table of the last results")
    parser.add_argument("--longest", type=int, default=16, help="units; the paper has 20")
    arguments = parser.parse_args()
    if arguments.table:
        TABLE.write_text(table(json.loads(RESULTS.read_text())))
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
    TABLE.write_text(table(results))
    print(agreement(results))


if __name__ == "__main__":
    main()
