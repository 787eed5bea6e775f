"""Do the intervals and tests of `reffree.statistics` hold what they promise?

Simulates metrics whose systems have known expected scores. A loss is a system's expected score,
plus something common to all systems of a document, plus noise of its own; expected scores have
variance 1 over systems. Two worlds: *normal* (expected scores and noise are), and *uneven* (a third
of the systems is far worse than the rest under both metrics, so the given correlation is only that
inside the groups; noise is skewed, of different size from system to system and half shared by the
two metrics). A value's interval should hold the mean of the value over corpora of as many
documents in 95 % of runs, that of the value without noise the correlation of the expected scores;
a test should reject a true null hypothesis in 5 %. Writes
``benchmarks/results/interval_coverage.json``; ``--table`` prints it as markdown.

    python benchmarks/interval_coverage.py
    python benchmarks/interval_coverage.py --table
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reffree.statistics.coefficients import COEFFICIENTS, Coefficient, correlation
from reffree.statistics.losses import MeanOverDocuments
from reffree.statistics.meta_evaluation import Estimate, MetaEvaluation
from reffree.statistics.resampling import resampled_documents
from reffree.statistics.significance import benjamini_hochberg
from reffree.util.arrays import Floats
from reffree.util.seeds import rng_for

RESULTS = Path(__file__).parent / "results" / "interval_coverage.json"
RESAMPLES = 300
PERMUTATIONS = 300
SIZES = ((30, 12), (10, 50), (20, 100), (30, 50), (30, 200))
TESTED = ((10, 50), (30, 200))
SHARED_NOISE = 0.5
EQUAL = 1e-9
NULLS = ("noise only", "own views", "equal")

Span = tuple[float, float]


def directions(n_systems: int, count: int, rng: np.random.Generator) -> Floats:
    """Uncorrelated expected scores (count, systems), each of mean 0 and variance 1."""
    basis, _ = np.linalg.qr(np.c_[np.ones(n_systems), rng.normal(size=(n_systems, count))])
    scores: Floats = basis[:, 1:].T * np.sqrt(n_systems)
    return scores


def expected_pair(world: str, n_systems: int, rho: float, rng: np.random.Generator) -> Floats:
    """Expected scores (2, systems) of two metrics; in the normal world of exact correlation rho."""
    one, other = directions(n_systems, 2, rng)
    pair = np.stack([one, rho * one + np.sqrt(1 - rho**2) * other])
    if world == "uneven":
        pair = pair / 2 + 2.5 * (np.arange(n_systems) < n_systems // 3)
    scaled: Floats = (pair - pair.mean(1, keepdims=True)) / pair.std(1, keepdims=True)
    return scaled


def losses(
    world: str, expected: Floats, n_documents: int, noise: float, rng: np.random.Generator
) -> Floats:
    """Losses (metrics, systems, documents)."""
    shape = (*expected.shape, n_documents)
    if world == "uneven":
        own, shared = rng.gamma(1, size=shape) - 1, rng.gamma(1, size=shape[1:]) - 1
        size = rng_for(0, "sizes of noise").uniform(0.5, 1.5, size=(shape[1], 1))
        own = size * (np.sqrt(SHARED_NOISE) * shared + np.sqrt(1 - SHARED_NOISE) * own)
    else:
        own, shared = rng.normal(size=shape), rng.normal(size=shape[1:])
        own = np.sqrt(SHARED_NOISE) * shared + np.sqrt(1 - SHARED_NOISE) * own
    common = rng.normal(size=(shape[0], 1, n_documents))
    made: Floats = expected[..., None] + common + noise * own
    return made


def evaluation(made: Floats, run: int) -> MetaEvaluation:
    """Metrics named by their numbers."""
    metrics = {str(i): MeanOverDocuments(values) for i, values in enumerate(made)}
    return MetaEvaluation(metrics, rng=partial(rng_for, run), resamples=RESAMPLES)


def width(interval: Span | None) -> float:
    """NaN without an interval."""
    return np.nan if interval is None else interval[1] - interval[0]


def holds(interval: Span | None, truth: float) -> float:
    """1 where the interval holds the truth, 0 where not, NaN without an interval."""
    if interval is None:
        return np.nan
    return float(interval[0] - EQUAL <= truth <= interval[1] + EQUAL)


def share(values: list[float] | NDArray[Any]) -> float | None:
    """Mean of what is defined."""
    defined = [value for value in values if not np.isnan(value)]
    return round(float(np.mean(defined)), 4) if defined else None


def cells(name: str, runs: int, *settings: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Every combination of settings, with a generator of its own for each run."""
    for combination in product(*settings):
        print(name, *combination, flush=True)
        yield *combination, [(run, rng_for(run, name, *combination)) for run in range(runs)]


def corpus_coverage(runs: int) -> list[dict[str, Any]]:
    """Intervals of correlations over systems, and plain percentiles of resamples beside them.

    Systems are the same in all runs of a cell, so the mean value over runs is the truth of the
    first and the last.
    """
    rows = []
    settings = (("normal", "uneven"), SIZES, (2.0, 4.0), (0.0, 0.5, 0.9))
    for world, (s, d), noise, rho, draws in cells("corpus", runs, *settings):
        expected = expected_pair(world, s, rho, rng_for(0, world, s, rho))
        found: dict[Coefficient, list[tuple[Estimate, Span | None]]] = {c: [] for c in COEFFICIENTS}
        for run, rng in draws:
            made = losses(world, expected, d, noise, rng)
            study = evaluation(made, run)
            counts = resampled_documents(d, rng, RESAMPLES) / d
            for coefficient in COEFFICIENTS:
                resampled = correlation(counts @ made[0].T, counts @ made[1].T, coefficient)
                low, high = np.quantile(resampled, [0.025, 0.975])
                found[coefficient].append((study.corpus("0", "1", coefficient), (low, high)))
        for coefficient, values in found.items():
            mean = float(np.mean([estimate.value for estimate, _ in values]))
            truth = float(correlation(expected[0], expected[1], coefficient))
            rows.append(
                {
                    "world": world,
                    "systems": s,
                    "documents": d,
                    "noise": noise,
                    "rho": rho,
                    "coefficient": coefficient,
                    "mean": round(mean, 4),
                    "coverage": share([holds(e.ci, mean) for e, _ in values]),
                    "width": share([width(e.ci) for e, _ in values]),
                    "truth": round(truth, 4),
                    "noiseless": share([holds(e.noiseless_ci, truth) for e, _ in values]),
                    "noiseless_width": share([width(e.noiseless_ci) for e, _ in values]),
                    "percentile": share([holds(plain, mean) for _, plain in values]),
                }
            )
    return rows


def other_coverage(runs: int) -> list[dict[str, Any]]:
    """Intervals whose target is an expectation over corpora: spa, and within documents."""
    rows = []
    settings = (TESTED, (2.0,), (0.0, 0.5, 0.9))
    for (s, d), noise, rho, draws in cells("expectation", runs, *settings):
        expected = expected_pair("normal", s, rho, rng_for(0, s, rho))
        values: dict[str, list[tuple[float, Span | None]]] = {}
        for run, rng in draws:
            study = evaluation(losses("normal", expected, d, noise, rng), run)
            for name, estimate in (
                ("spa", study.corpus("0", "1", "spa")),
                ("kendall within documents", study.documents("0", "1", "kendall")),
                ("acc_eq within documents", study.documents("0", "1", "acc_eq")),
            ):
                values.setdefault(name, []).append((estimate.value or np.nan, estimate.ci))
        for name, drawn in values.items():
            truth = float(np.mean([value for value, _ in drawn]))
            rows.append(
                {
                    "measure": name,
                    "systems": s,
                    "documents": d,
                    "rho": rho,
                    "coverage": share([holds(ci, truth) for _, ci in drawn]),
                }
            )
    return rows


def compared(
    kind: str, s: int, d: int, noise: float, count: int, rng: np.random.Generator
) -> Floats:
    """Losses of ``count`` metrics that correlate alike with the last one, the gold.

    *noise only*: all have the same expected scores. *own views*: each differs from the gold in a
    direction of its own, drawn with the systems. *equal*: as before, but on these very systems all
    have the same Pearson correlation.
    """
    if kind == "noise only":
        expected = np.repeat(directions(s, 1, rng), count + 1, axis=0)
    elif kind == "own views":
        gold, *own = rng.normal(size=(count + 1, s))
        expected = np.stack([*((gold + view) / np.sqrt(2) for view in own), gold])
    else:
        gold, *own = directions(s, count + 1, rng)
        expected = np.stack([*((gold + view) / np.sqrt(2) for view in own), gold])
    return losses("normal", expected, d, noise, rng)


def false_positives(runs: int) -> list[dict[str, Any]]:
    """Share of p at most .05 where two metrics correlate alike with a third."""
    rows = []
    settings = (NULLS, TESTED, (2.0,), ("pearson", "kendall"))
    for kind, (s, d), noise, coefficient, draws in cells("tests", runs, *settings):
        if kind == "equal" and coefficient != "pearson":
            continue  # equal Pearson correlations are not equal rank correlations
        rejected: dict[str, list[float]] = {}
        for run, rng in draws:
            study = evaluation(compared(kind, s, d, noise, 2, rng), run)
            p_values: dict[str, float | None] = {
                "swap systems": study.permutation_test(
                    "0", "1", "2", coefficient, permutations=PERMUTATIONS
                ).p,
                "swap both": study.permutation_test(
                    "0", "1", "2", coefficient, swap="both", permutations=PERMUTATIONS
                ).p,
                "williams": study.williams_test("0", "1", "2", coefficient).p,
            }
            if kind != "own views":  # on the systems drawn, such metrics do correlate differently
                difference = study.corpus_difference("0", "1", "2", coefficient)
                p_values["corpus_difference"] = difference.p
            for name, p in p_values.items():
                rejected.setdefault(name, []).append(np.nan if p is None else float(p <= 0.05))
        shares = {name: share(values) for name, values in rejected.items()}
        rows.append(
            {"null": kind, "systems": s, "documents": d, "coefficient": coefficient, **shares}
        )
    return rows


def families(runs: int, size: int = 8) -> list[dict[str, Any]]:
    """Share of families with a rejection after Benjamini and Hochberg; all nulls are true."""
    rows = []
    for (s, d), coefficient, draws in cells("families", runs, TESTED, ("pearson", "kendall")):
        rejected: dict[str, list[float]] = {"swap systems": [], "swap both": []}
        for run, rng in draws:
            study = evaluation(compared("own views", s, d, 2.0, size + 1, rng), run)
            gold = str(size + 1)
            for swap in ("systems", "both"):
                p_values = [
                    study.permutation_test(
                        str(i), "0", gold, coefficient, swap=swap, permutations=PERMUTATIONS
                    ).p
                    for i in range(1, size + 1)
                ]
                adjusted = benjamini_hochberg(p_values)
                rejected[f"swap {swap}"].append(
                    float(any(p is not None and p <= 0.05 for p in adjusted))
                )
        shares = {name: share(values) for name, values in rejected.items()}
        rows.append(
            {"tests": size, "systems": s, "documents": d, "coefficient": coefficient, **shares}
        )
    return rows


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""

    def percent(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.0f}"

    def lines_of(rows: list[dict[str, Any]], shown: list[str], counted: list[str]) -> list[str]:
        lines = ["| " + " | ".join(shown + counted) + " |"]
        lines.append("|" + "---|" * len(shown) + "--:|" * len(counted))
        for row in rows:
            fixed = [str(row[name]) for name in shown]
            lines.append(
                "| " + " | ".join([*fixed, *(percent(row.get(name)) for name in counted)]) + " |"
            )
        return lines

    runs = results["runs"]
    shown = ["world", "systems", "documents", "noise", "rho"]
    cells: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in results["corpus"]:
        cell = cells.setdefault(
            tuple(row[name] for name in shown), {name: row[name] for name in shown}
        )
        cell[row["coefficient"]] = row["coverage"]
        cell[f"{row['coefficient']}, no noise"] = row["noiseless"]
    lines = [
        f"Share (%) of 95 % intervals that hold the mean value over corpora, {runs} runs each; and",
        "of those of the value without noise that hold the correlation of the expected scores:",
        "",
    ]
    counted = [*COEFFICIENTS, *(f"{coefficient}, no noise" for coefficient in COEFFICIENTS)]
    lines += lines_of(list(cells.values()), shown, counted)
    plain = [row["percentile"] for row in results["corpus"]]
    lines += [
        "",
        f"Plain percentiles of resampled correlations hold the mean value in {percent(min(plain))}",
    ]
    lines[-1] += f" to {percent(max(plain))} %, {percent(float(np.mean(plain)))} on average."
    lines += ["", "The same of measures over pairs and inside documents:", ""]
    lines += lines_of(
        results["expectation"], ["measure", "systems", "documents", "rho"], ["coverage"]
    )
    lines += ["", "Share (%) of p ≤ .05 where two metrics correlate alike with the gold:", ""]
    tests = ["swap systems", "swap both", "williams", "corpus_difference"]
    lines += lines_of(results["tests"], ["null", "systems", "documents", "coefficient"], tests)
    lines += [
        "",
        "Share (%) of families with a discovery after Benjamini and Hochberg, nulls true:",
    ]
    lines += [
        "",
        *lines_of(results["families"], ["tests", "systems", "documents", "coefficient"], tests[:2]),
    ]
    return "\n".join(lines)


def summary(results: dict[str, Any]) -> str:
    """Return the coverages and error rates as sentences."""

    def spell(shares: list[float]) -> str:
        low, high, mean = min(shares), max(shares), float(np.mean(shares))
        return f"{100 * low:.0f} to {100 * high:.0f} %, {100 * mean:.0f} on average"

    covered = spell([row["coverage"] for row in results["corpus"]])
    plain = spell([row["percentile"] for row in results["corpus"]])
    swapped = spell([row["swap systems"] for row in results["tests"]])
    return (
        f"95 % intervals hold the mean value over corpora in {covered} of {results['runs']} runs "
        f"(plain percentiles in {plain}). Where two metrics correlate alike with gold, swapping "
        f"systems finds a difference at p ≤ .05 in {swapped}."
    )


def main() -> None:
    """Run everything, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="print the last results")
    parser.add_argument("--runs", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    results = {
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "runs": arguments.runs,
        "resamples": RESAMPLES,
        "permutations": PERMUTATIONS,
        "corpus": corpus_coverage(arguments.runs),
        "expectation": other_coverage(arguments.runs),
        "tests": false_positives(arguments.runs),
        "families": families(arguments.runs),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
