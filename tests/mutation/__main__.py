"""Run the tests against small faults: ``python -m tests.mutation reffree/metrics/gold/windows.py``.

Each mutant runs in a process of its own over a copy of the tree; the tree itself is never written
to. A mutant that no test notices is named, unless ``judged.json`` says why no test could or should;
then the command's exit code is 1. What took too long counts as noticed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import click

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
JUDGED = Path(__file__).with_name("judged.json")
ALSO = {
    "reffree/metrics/registry": "metrics/gold/functions metrics/free/scoring evaluate/gold",
    "reffree/metrics/gold/": "metrics/gold/oracles metrics/gold/functions",
    "reffree/metrics/gold/boundary_edits": "metrics/gold/edits metrics/gold/oracles",
    "reffree/metrics/gold/sed": "metrics/gold/sed metrics/gold/oracles",
    "reffree/metrics/gold/metric": "metrics/gold/functions metrics/gold/windows",
    "reffree/metrics/gold/pairs": "metrics/gold/oracles metrics/gold/windows metrics/gold/sed",
    "reffree/metrics/free/": "metrics/free/scoring metrics/free/precision",
    "reffree/metrics/free/attribution": "metrics/free/attribution",
    "reffree/metrics/free/cues": "metrics/free/cues",
    "reffree/metrics/free/evidence": "metrics/free/expected",
    "reffree/metrics/free/expected": "metrics/free/expected",
    "reffree/metrics/free/posterior": "metrics/free/expected",
    "reffree/metrics/free/on_devices": "metrics/free/on_devices",
    "reffree/metrics/free/fast/": "metrics/free/fast/document metrics/free/scoring",
    "reffree/metrics/free/fast/segmentations": "metrics/free/expected",
    "reffree/statistics/": "statistics/meta_evaluation",
    "reffree/statistics/paired": "studies/compare",
    "reffree/statistics/resampling": "statistics/intervals evaluate/score",
    "reffree/encoders/cache": "encoders/cache/store",
    "reffree/formats/": "formats/source formats/jsonl formats/labels formats/dialogues",
    "reffree/formats/segeval": "formats/labels formats/save",
    "reffree/formats/shards": "evaluate/streamed",
    "reffree/formats/values": "formats/tables",
    "reffree/data/": "data/corpus data/segmentation",
    "reffree/data/masses": "data/perturbation segmenters/selection metrics/free/fast/document",
}
"""Tests that should notice beside those that have the module's name; the longest beginning of a
module's path counts. The module's own doctests are run as well."""

# Kernels run as Python where they have the fault; these are slow that way, and are compiled anew.
COMPILED = ("reffree/metrics/free/",)
LIBRARIES = ("numpy", "scipy.stats", "torch", "numba", "pytest")
SLOWER = 4  # times as long as without a fault is too long, and some seconds for the start
PATIENCE = 20.0


def files_for(module: str) -> list[str]:
    """Files for pytest: of ``reffree/a/b.py`` those of tests/a that are named for b, and more."""
    _, room, *_, name = Path(module).with_suffix("").parts
    own = (ROOT / "tests" / room).rglob(f"test_*{name}*.py")
    tests = [str(path.relative_to(ROOT)) for path in sorted(own)]
    beginning = max((key for key in ALSO if module.startswith(key)), key=len, default="")
    for each in ALSO.get(beginning, "").split():
        *folders, last = each.split("/")
        tests.append("/".join(["tests", *folders, f"test_{last}.py"]))
    if not tests:
        raise SystemExit(f"{module}: no tests have its name, nor does ALSO name any for it.")
    return [module, *dict.fromkeys(tests)]


def copied_tree(folder: Path) -> Path:
    """A copy of what the tests need, without what Python compiled."""
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("reffree", "tests", "benchmarks", "configs"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for path in ROOT.glob("*.*"):
        if path.is_file():
            shutil.copy(path, folder / path.name)
    return folder


def run_tests(tree: Path, tests: list[str], compiled: bool) -> None:
    """Be the process that runs the tests of a copied tree, in this copy of a process."""
    os.setsid()
    log = os.open(tree / "log.txt", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(tree)
    os.environ |= {
        "PYTHONPATH": str(tree),
        "PYTHONPYCACHEPREFIX": str(tree / "bytecode"),
        "REFFREE_CACHE_DIR": str(tree / "cache"),
        "XDG_CACHE_HOME": str(tree / "machine-code"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(tree / "bytecode")
    sys.path[:] = [str(tree), *(entry for entry in sys.path if entry not in ("", str(ROOT)))]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "reffree")]:
        del sys.modules[name]
    import numba
    import pytest

    if not compiled:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        numba.config.DISABLE_JIT = 1
    plugins = ["-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin"]
    os._exit(pytest.main(["-x", "-q", *plugins, "--hypothesis-seed=0", *tests]))


def passed(tree: Path, tests: list[str], compiled: bool, seconds: float) -> bool:
    """Whether every test passes in this many seconds."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            run_tests(tree, tests, compiled)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def write_module(tree: Path, path: Path, text: str) -> None:
    """Write a module, and remove its bytecode: Python sees a change by whole seconds and size."""
    path.write_text(text)
    for bytecode in tree.glob(f"bytecode/**/{path.stem}.*.pyc"):
        bytecode.unlink()


def is_kernel(text: str) -> bool:
    """Whether a module's functions are compiled."""
    return "njit" in text or "intrinsic" in text


def first_failure(tree: Path) -> str:
    """The test that noticed, as pytest's log names it."""
    lines = (tree / "log.txt").read_text(errors="replace").splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return failed[0].partition(" - ")[0].partition(" ")[2] if failed else "took too long or crashed"


def chosen(tree: Path, module: str, sample: int | None, seed: int) -> list[Mutant]:
    """The mutants of a module, or a sample in which each is in or out by its own digest.

    So a change elsewhere in the module hardly changes the sample.
    """
    every = mutants((tree / module).read_text())
    names: Counter[str] = Counter()
    digests = []
    for fault in every:
        names[fault.name] += 1
        digests.append(hashlib.sha256(f"{seed} {fault.name} {names[fault.name]}".encode()).digest())
    limit = sorted(digests)[:sample][-1] if every else b""
    return [fault for fault, digest in zip(every, digests, strict=True) if digest <= limit]


def examined(module: str, tree: Path, faults: list[Mutant]) -> list[dict[str, object]]:
    """What happens to each mutant of a module."""
    tests, path = files_for(module), tree / module
    text = path.read_text()
    compiled = not is_kernel(text) or module.startswith(COMPILED)
    began = time.monotonic()
    if not passed(tree, tests, compiled, 900.0):
        click.echo((tree / "log.txt").read_text(errors="replace"), err=True)
        raise SystemExit(f"{module}: {first_failure(tree)} fails without a fault.")
    seconds = PATIENCE + SLOWER * (time.monotonic() - began)
    rows: list[dict[str, object]] = []
    judged = json.loads(JUDGED.read_text()).get(module, {})
    for fault in faults:
        write_module(tree, path, fault.source())
        survived = passed(tree, tests, compiled, seconds)
        end = judged.get(fault.label, "survived") if survived else "killed"
        by = None if survived else first_failure(tree)
        row = {"module": module, "line": fault.line, "mutant": fault.label, "end": end, "by": by}
        rows.append(row)
        click.echo(f"{module}:{fault.line}  {end if survived else by}  {fault.label}")
    write_module(tree, path, text)
    return rows


def table(rows: list[dict[str, object]]) -> str:
    """A Markdown table: one line a module, of how its mutants ended."""
    ends = ("killed", "equivalent", "speed only", "survived")
    lines = [f"| module | mutants | {' | '.join(ends)} |", "|---|" + "--:|" * (len(ends) + 1)]
    modules = dict.fromkeys(str(row["module"]) for row in rows)
    for module in [*modules, "all"]:
        own = [row for row in rows if module in (row["module"], "all")]
        counts = Counter(str(row["end"]).partition(":")[0] for row in own)
        cells = [len(own), *(counts[end] for end in ends)]
        lines.append(f"| {module} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> int:
    """Read the command line, examine the modules and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="+", help="modules or folders of reffree")
    parser.add_argument("--sample", type=int, help="at most so many mutants of a module")
    parser.add_argument("--seed", type=int, default=0, help="another sample (default: 0)")
    parser.add_argument("--again", type=Path, help="only the survivors of such a JSON")
    parser.add_argument("-o", "--output", type=Path, help="where to write every mutant, as JSON")
    options = parser.parse_args()
    for name in LIBRARIES:
        __import__(name)
    rows: list[dict[str, object]] = []
    before = json.loads(options.again.read_text()) if options.again else []
    survivors = {(row["module"], row["mutant"]) for row in before if row["end"] == "survived"}
    modules: list[Path] = []
    for path in map(Path, options.paths):
        modules += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    with tempfile.TemporaryDirectory() as folder:
        tree = copied_tree(Path(folder))
        for file in modules:
            module = str(file.resolve().relative_to(ROOT))
            faults = chosen(tree, module, options.sample, options.seed)
            if options.again:
                faults = [fault for fault in faults if (module, fault.label) in survivors]
            if faults:
                rows += examined(module, tree, faults)
            if options.output:
                options.output.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    click.echo(table(rows))
    return int(any(row["end"] == "survived" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
