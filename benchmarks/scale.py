"""What large inputs cost: one long document, many short ones, many hypotheses.

Vectors are drawn, so that encoding takes no part. Every row is the command a user would give, in a
process of its own, with its CPU time and peak memory; after ``--seconds`` of CPU it is ended.
Writes ``benchmarks/results/scale.json``; ``--table`` prints that file as markdown.

    python benchmarks/scale.py
    python benchmarks/scale.py --share 0.1
    python benchmarks/scale.py --table
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "scale.json"
DIMENSION = 32
SEGMENT = 20
SHAPES = ((1, 100_000, 3), (20_000, 20, 3), (1, 200, 10_000))
"""Documents, units of each, systems."""

COMMANDS = {
    "score": ["score"],
    "score --null 100": ["score", "--null", "100"],
    "score --explain": ["score", "--explain"],
    "compare": ["compare"],
    "boundaries": ["boundaries"],
    "study granularity": ["study", "granularity"],
}


def write_shape(folder: Path, documents: int, units: int, systems: int) -> tuple[Path, Path]:
    """Write a corpus without gold and its vectors: a topic every 20 units, random boundaries."""
    rng = np.random.default_rng(0)
    count = max(1, units // SEGMENT)
    corpus, vectors = folder / "c.jsonl", folder / "v.npy"
    rows = np.empty((documents * units, DIMENSION), dtype=np.float32)
    with corpus.open("w") as out:
        for i in range(documents):
            topics = rng.normal(size=(count + 1, DIMENSION))[np.arange(units) // SEGMENT]
            rows[i * units : (i + 1) * units] = topics + rng.normal(size=(units, DIMENSION))
            words = rng.integers(2000, size=(units, 8))
            cuts = rng.random((systems, units - 1)).argpartition(count - 1, axis=1)[:, : count - 1]
            masses = [np.diff([0, *sorted(1 + each), units]).tolist() for each in cuts]
            document = {
                "id": f"d{i}",
                "units": [" ".join(f"w{word}" for word in row) for row in words],
                "systems": {f"s{k}": each for k, each in enumerate(masses)},
            }
            out.write(json.dumps(document) + "\n")
    np.save(vectors, rows)
    return corpus, vectors


def measured(arguments: list[str], seconds: int) -> dict[str, Any]:
    """Run a command: CPU time of it all, peak memory, and how it ended."""

    def limit() -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    with tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "reffree", *arguments, "-f", "json"],
            stdout=subprocess.DEVNULL,
            stderr=err,
            preexec_fn=limit,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        told = [line for line in err.read().splitlines() if "error: " in line]
    ended = "done" if process.returncode == 0 else (told or ["stopped"])[0]
    is_killed = process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
    if is_killed and used.ru_utime + used.ru_stime >= seconds - 2:
        ended = f"no end within {seconds} s"
    return {
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "peak_MB": round(used.ru_maxrss / 1024),
        "ended": ended,
    }


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    lines = ["| input | command | CPU s | peak MB | |", "|---|---|---|---|---|"]
    for row in results["rows"]:
        ended = "" if row["ended"] == "done" else row["ended"]
        lines.append(
            f"| {row['input']} | `{row['command']}` | {row['cpu_s']:,.0f} | {row['peak_MB']:,} "
            f"| {ended} |"
        )
    return "\n".join(lines)


def write_results(rows: list[dict[str, Any]]) -> None:
    """Keep what was measured so far in place of earlier figures of the same commands."""
    earlier = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    new = {(row["input"], row["command"]): row for row in [*earlier, *rows]}
    order = list(COMMANDS)
    results = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "rows": sorted(new.values(), key=lambda row: (row["input"], order.index(row["command"]))),
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def main() -> None:
    """Measure everything, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="print the last results")
    parser.add_argument("--share", type=float, default=1.0, help="of every size")
    parser.add_argument("--seconds", type=int, default=600, help="of CPU for a command")
    parser.add_argument("--command", action="append", choices=COMMANDS, help="only these")
    parser.add_argument("--shape", type=int, action="append", help="only these, from 0")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    rows = []
    for number, shape in enumerate(SHAPES):
        if arguments.shape and number not in arguments.shape:
            continue
        sizes = [round(n * arguments.share) if n == max(shape) else n for n in shape]
        documents, units, systems = sizes
        name = f"{documents:,} × {units:,} units, {systems:,} systems"
        with tempfile.TemporaryDirectory() as folder:
            corpus, vectors = write_shape(Path(folder), *sizes)
            for command in arguments.command or COMMANDS:
                given = [*COMMANDS[command], str(corpus), "--embeddings", str(vectors)]
                row = {"input": name, "command": command, **measured(given, arguments.seconds)}
                print(row, flush=True)
                rows.append(row)
                write_results(rows)


if __name__ == "__main__":
    main()
