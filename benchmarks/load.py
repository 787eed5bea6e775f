"""A corpus of 1,000,000 distinct units through the static encoder, the cache and ``reffree score``.

Filling the cache is interrupted when it holds about a third, and run again; then the corpus is
scored, and on two Ray actors where Ray is installed. Every step is
the command a user would give, in a process of its own, with its time and its peak memory. Writes
``benchmarks/results/load.json``; ``--table`` prints that file as markdown.

    python benchmarks/load.py
    python benchmarks/load.py --table
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "load.json"
UNITS_PER_DOCUMENT = 100
UNITS_PER_TOPIC = 10
N_SHARDS = 20
ENCODER = ("--encoder", "wordllama")
METRICS = ("-m", "arp_cos", "-m", "silhouette", "-m", "pk")
WORDS = Path(__file__).read_text().split()  # any words do: the static encoder knows them all


def documents(n_units: int) -> Iterator[dict[str, Any]]:
    """Draw documents whose topics prefer some words; every unit has a number, so none repeats."""
    generator = np.random.default_rng(0)
    for start in range(0, n_units, UNITS_PER_DOCUMENT):
        n_topics = UNITS_PER_DOCUMENT // UNITS_PER_TOPIC
        preferred = generator.choice(len(WORDS), (n_topics, 1, 20)).repeat(UNITS_PER_TOPIC, axis=1)
        drawn = generator.integers(20, size=(n_topics, UNITS_PER_TOPIC, 12))
        words = np.take_along_axis(preferred, drawn, axis=2).reshape(UNITS_PER_DOCUMENT, 12)
        units = [
            f"{start + i} " + " ".join(WORDS[word] for word in row) for i, row in enumerate(words)
        ]
        cuts = np.sort(generator.choice(np.arange(1, UNITS_PER_DOCUMENT), n_topics - 1, False))
        random = np.diff([0, *cuts, UNITS_PER_DOCUMENT]).tolist()
        gold = [UNITS_PER_TOPIC] * n_topics
        yield {"id": f"d{start}", "units": units, "gold": gold, "systems": {"random": random}}


def write_corpus(folder: Path, n_units: int) -> None:
    """Write the documents, as shards of one folder."""
    folder.mkdir()
    lines = [json.dumps(document) for document in documents(n_units)]
    for i in range(N_SHARDS):
        (folder / f"part-{i:02}.jsonl").write_text("".join(f"{x}\n" for x in lines[i::N_SHARDS]))


def measured(
    name: str, arguments: list[str], interrupt_at: tuple[Path, int] | None = None
) -> dict[str, Any]:
    """Run a command; interrupt it when a folder holds so many bytes."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "reffree", *arguments],
            stdout=out,
            stderr=subprocess.DEVNULL,
            preexec_fn=_heed_interrupts,
        )
        if interrupt_at:
            folder, size = interrupt_at
            while process.poll() is None and _bytes_in(folder) < size:
                time.sleep(0.2)
            process.send_signal(signal.SIGINT)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        out.seek(0)
        printed = out.read()
    row = {
        "step": name,
        "exit_code": os.waitstatus_to_exitcode(status),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_gigabytes": round(used.ru_maxrss / 2**20, 2),
        "printed": printed,
    }
    print(row["step"], row["exit_code"], row["seconds"], row["peak_gigabytes"], file=sys.stderr)
    return row


def _heed_interrupts() -> None:
    """As in a terminal: what a shell starts in the background ignores them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def run_all(n_units: int) -> dict[str, Any]:
    """Run every step on a corpus and a cache of their own."""
    with tempfile.TemporaryDirectory(prefix="reffree-load-") as name:
        corpus, cache = Path(name) / "corpus", Path(name) / "cache"
        cache.mkdir()
        write_corpus(corpus, n_units)
        common = [*ENCODER, "--cache", str(cache)]
        fill = ["cache", "fill", str(corpus), *common]
        score = ["score", str(corpus), *common, *METRICS, "-f", "json"]
        a_third = n_units * 1100 // 3  # a row takes some 1,100 bytes
        rows = [
            measured("cache fill, interrupted", fill, (cache, a_third)),
            measured("cache fill, run again", fill),
            measured("cache fill, nothing left to do", fill),
            measured("score", score),
        ]
        if importlib.util.find_spec("ray"):
            rows.append(
                measured("score --device ray:actors=2", [*score, "--device", "ray:actors=2"])
            )
            rows[-1]["same_bytes"] = rows[-1]["printed"] == rows[3]["printed"]
        size = _bytes_in(cache)
    for row in rows:
        printed = row.pop("printed")
        if row["step"].startswith("cache fill") and row["exit_code"] == 0:
            cached, encoded = re.findall(r"([\d,]+) (?:cached|encoded)", printed)
            row |= {
                "cached": int(cached.replace(",", "")),
                "encoded": int(encoded.replace(",", "")),
            }
    return {
        "units": n_units,
        "documents": n_units // UNITS_PER_DOCUMENT,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "cache_gigabytes": round(size / 2**30, 2),
        "steps": rows,
    }


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    lines = [
        f"{results['units']:,} distinct units in {results['documents']:,} documents, gold and one "
        f"system, {results['cores']} cores; the cache takes {results['cache_gigabytes']} GB:",
        "",
        "| step | exit code | s | CPU s | peak GB | texts cached before | encoded |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in results["steps"]:
        counts = [f"{row[key]:,}" if key in row else "" for key in ("cached", "encoded")]
        lines.append(
            f"| {row['step']} | {row['exit_code']} | {row['seconds']:,.0f} | "
            f"{row['cpu_seconds']:,.0f} | {row['peak_gigabytes']:.2f} | {counts[0]} | {counts[1]} |"
        )
    same = [row["same_bytes"] for row in results["steps"] if "same_bytes" in row]
    if same:
        equal = "the same bytes as" if all(same) else "OTHER BYTES THAN"
        lines += [
            "",
            "Of Ray, time and memory of the driver alone are counted as CPU s and peak; "
            f"it printed {equal} one machine.",
        ]
    return "\n".join(lines)


def main() -> None:
    """Run everything, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--table", action="store_true", help="print the last results")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    results = run_all(arguments.units)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
