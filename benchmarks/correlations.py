"""The correlation study on real corpora: figures, and where the time goes.

Corpora are files of the user's own, each with gold; none comes with reffree. Writes
``benchmarks/results/correlations.json``; ``--table`` prints that file as markdown.

    python benchmarks/correlations.py wiki50.jsonl tiage_dev.jsonl choi.jsonl qmsum_val.jsonl
    python benchmarks/correlations.py --table
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

import reffree
from reffree.study.correlate import correlate
from reffree.study.progress import Timed

RESULTS = Path(__file__).parent / "results" / "correlations.json"
GOLD = ("pk", "windowdiff", "boundary_similarity")
STAGES = {
    "encode": ("Encoding",),
    "segment": ("Segmenting",),
    "score": ("Scoring",),
    "statistics": ("Statistics", "Tests"),
}


def measure(paths: list[str]) -> dict[str, Any]:
    """Run the study on every corpus; keep the tables a reader needs."""
    corpora = {Path(path).stem: reffree.load(path) for path in paths}
    timed = Timed()
    result = correlate(corpora, texts=0, progress=timed)
    kept = ("independent", "pools", "beyond_sentinels", "aggregate")
    tables = {t.name: t.records() for t in result.tables if t.name in kept}
    return {
        "signature": result.signature,
        "threads": torch.get_num_threads(),
        "corpora": list(result.corpora),
        "seconds": {
            name: round(sum(timed.seconds.get(stage, 0.0) for stage in stages), 1)
            for name, stages in STAGES.items()
        },
        "tables": tables,
        "answer": list(result.answer),
        "notes": list(result.notes),
    }


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    lines = [
        "| corpus | metric | pk | windowdiff | boundary_similarity | pk, blind "
        "| pk, cohesion-seeking | change | better than the best sentinel |",
        "|:--|:--|--:|--:|--:|--:|--:|--:|:--|",
    ]
    pools = {(row["corpus"], row["metric"]): row for row in results["tables"]["pools"]}
    tests = {(row["corpus"], row["metric"]): row for row in results["tables"]["beyond_sentinels"]}
    for row in results["tables"]["independent"]:
        key = row["corpus"], row["metric"]
        pool, test = pools[key], tests.get(key)
        verdict = "" if test is None else f"{test['sentinel']} {test['sentinel_value']:.2f}: "
        if test is not None:
            verdict += f"p {test['p_bh']:.3f}"
        cells = [
            *key,
            *(_with_interval(row, g) for g in ("pk", "windowdiff", "boundary_similarity")),
        ]
        cells += [_number(pool["blind"]), _with_interval(pool, "cohesion"), _number(pool["change"])]
        lines.append("| " + " | ".join([*cells, verdict]) + " |")
    lines += ["", "Mean (standard deviation) over these corpora:", ""]
    lines += ["| pool | metric | pk | windowdiff | boundary_similarity | all |"]
    lines += ["|:--|:--|--:|--:|--:|--:|"]
    for row in results["tables"].get("aggregate", []):
        spans = [(row[g], row[f"{g}_sd"]) for g in GOLD]
        spans.append((row["mean"], row["sd"]))
        cells = [f"{_number(mean)} ({_number(sd)})" for mean, sd in spans]
        lines.append("| " + " | ".join([row["pool"], row["metric"], *cells]) + " |")
    seconds = ", ".join(f"{name} {value} s" for name, value in results["seconds"].items())
    sizes = ", ".join(
        f"{c['name']} ({c['documents']} documents, {c['units']:,} units)"
        for c in results["corpora"]
    )
    lines += ["", f"{sizes}; {results['threads']} threads: {seconds}.", ""]
    lines += [*results["answer"], "", f"`{results['signature']}`"]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _with_interval(row: dict[str, Any], name: str) -> str:
    span = row[f"{name}_ci"]
    inside = "" if span is None else f" [{span[0]:.2f}, {span[1]:.2f}]"
    return f"{_number(row[name])}{inside}"


def main() -> None:
    """Run the study, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", help="corpus files with gold")
    parser.add_argument("--table", action="store_true", help="print the last results")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    if not arguments.corpora:
        parser.error("name at least two corpora")
    results = measure(arguments.corpora)
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
