"""What a command costs before it does anything, and where the time goes: CPU seconds a process.

Every command runs in a process of its own on the demo's corpus, whose vectors are in the cache; the
best of several rounds counts. ``--before TREE`` runs each on another checkout of reffree as well,
in turn. Files named on the command line get a correlation study of their own, in one round. Vectors
are cached in a folder of the run, or in ``REFFREE_CACHE_DIR``. Writes
``benchmarks/results/start.json``; ``--table`` prints that file as markdown.

    python benchmarks/start.py corpora/*.jsonl --before ../reffree-of-last-month
    python benchmarks/start.py --table
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "start.json"
RUN = "import sys; from reffree.cli import main; main(sys.argv[1:])"
COMMANDS = {
    "--help": ["--help"],
    "score --help": ["score", "--help"],
    "score -m pk": ["score", "corpus.jsonl", "-m", "pk"],
    "score": ["score", "corpus.jsonl"],
    "score -m arp_pair": ["score", "corpus.jsonl", "-m", "arp_pair"],
    "compare": ["compare", "corpus.jsonl"],
    "boundaries": ["boundaries", "corpus.jsonl"],
    "chunks, one text, one splitter": [
        *("chunks", "book.txt", "--chunker", "langchain:recursive,chunk_size=500"),
    ],
    "study correlate": ["study", "correlate", "corpus.jsonl", "-m", "expected_pk", "-m", "pk"],
}
IMPORTED = re.compile(r"^import time: +(\d+) \| +\d+ \| +(\S+)$", re.MULTILINE)
LIBRARIES = ("torch", "numba", "scipy", "numpy", "sentence_transformers", "transformers", "faiss")


def run(tree: Path, arguments: list[str], folder: Path, *options: str) -> tuple[float, str]:
    """Run reffree of a tree; return CPU seconds and what was printed on standard error."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *options, "-c", RUN, *arguments],
        cwd=folder,
        env={"REFFREE_CACHE_DIR": str(folder / "cache"), **os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, done.stderr


def imports(stderr: str) -> dict[str, Any]:
    """Count reffree's modules, and add up seconds of imports: its own and each library's."""
    found = [(int(own) / 1e6, name) for own, name in IMPORTED.findall(stderr)]
    packages = {name: 0.0 for name in ("reffree", *LIBRARIES)}
    for seconds, name in found:
        package = name.split(".")[0]
        if package in packages:
            packages[package] += seconds
    modules = sum(name.startswith("reffree.") for _, name in found)
    heavy = {name: round(spent, 2) for name, spent in packages.items() if spent >= 0.05}
    return {"modules": modules, "imports": round(sum(s for s, _ in found), 2), "of": heavy}


def measure(trees: list[Path], corpora: list[Path], rounds: int) -> list[dict[str, Any]]:
    """Run every command on every tree in turn."""
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in ("corpus.jsonl", "book.txt"):
            run(trees[-1], ["demo", "--save", name], folder)
        commands = dict(COMMANDS)
        if corpora:
            found = [str(path.resolve()) for path in corpora]
            commands[f"study correlate, {len(found)} corpora"] = ["study", "correlate", *found]
        for name, arguments in commands.items():
            for tree in trees:
                run(tree, arguments, folder)  # fills the cache, compiles
            times = 1 if name.endswith("corpora") else rounds
            spent = {
                tree: min(run(tree, arguments, folder)[0] for _ in range(times)) for tree in trees
            }
            _, stderr = run(trees[-1], arguments, folder, "-X", "importtime")
            row = {"command": name, "now": round(spent[trees[-1]], 2), **imports(stderr)}
            if len(trees) > 1:
                row["before"] = round(spent[trees[0]], 2)
            rows.append(row)
            print(row, flush=True)
    return rows


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    lines = [
        "| command | before, CPU s | now, CPU s | of it imports | of these | reffree modules |",
        "|:--|--:|--:|--:|:--|--:|",
    ]
    for row in results["rows"]:
        heavy = ", ".join(f"{name} {spent:g}" for name, spent in row["of"].items())
        before = f"{row['before']:.2f}" if "before" in row else ""
        cells = [row["command"], before, f"{row['now']:.2f}", f"{row['imports']:.2f}", heavy]
        lines.append(f"| {' | '.join([*cells, str(row['modules'])])} |")
    return "\n".join(lines)


def main() -> None:
    """Run everything, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", type=Path, help="corpora with gold, for a study")
    parser.add_argument("--before", type=Path, help="another checkout of reffree")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print the last results")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    trees = [arguments.before.resolve()] if arguments.before else []
    rows = measure([*trees, HERE.parent], arguments.corpora, arguments.rounds)
    results = {"cores": os.cpu_count(), "rows": rows}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
