"""Time encoding against plain ``SentenceTransformer.encode(batch_size=32)``.

Both get the same units in one process, interleaved, and the best of several rounds counts. Of a
corpus whose units repeat, consecutive units are encoded, repeats and all: sentence-transformers
encodes every one, reffree every text once. Of others, a sample of distinct units. With one thread
(the default) CPU time is measured, which other programs on the machine disturb less; with more,
the clock. Writes ``benchmarks/results/encoding.json``; ``--table`` prints that file as markdown;
``--speeds`` measures the packaged encoders for ``reffree models`` instead.

    python benchmarks/encoding.py wiki50.jsonl qmsum_val.jsonl
    python benchmarks/encoding.py --table
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

import reffree
from reffree.encoders.aliases import PACKAGED, is_installed
from reffree.encoders.batching import make_batches
from reffree.encoders.embed import distinct_texts
from reffree.encoders.models import find_model
from reffree.encoders.sentence_transformer import SentenceTransformerEncoder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "encoding.json"
SPEEDS = HERE.parent / "reffree" / "resources" / "encoder_speeds.json"
CPU = torch.device("cpu")
PLAIN = "sentence-transformers, 32"
ARCHITECTURES = ("mpnet", "roberta", "falcon")
MANY_REPEATS = 0.1
"""Share of units from which on a corpus is taken with its repeats."""

Vectors = NDArray[np.float32]


def encode(encoder: SentenceTransformerEncoder, units: Sequence[str]) -> Vectors:
    """Encode as a corpus is: every distinct text once, in the units' order in the end."""
    texts = list(dict.fromkeys(units))
    row = {text: i for i, text in enumerate(texts)}
    parts = list(encoder.stream(texts))
    vectors = np.empty((len(texts), parts[0].vectors.shape[1]), dtype=np.float32)
    for part in parts:
        vectors[part.positions] = part.vectors
    return vectors[[row[unit] for unit in units]]


def plain_batches(model: SentenceTransformer, units: Sequence[str], limit: int) -> list[list[int]]:
    """Token lengths of the batches that sentence-transformers makes: by characters, 32 each."""
    ordered = sorted(units, key=len, reverse=True)
    ids = model.tokenizer(ordered, truncation=False, verbose=False)["input_ids"]
    lengths = [min(len(one), limit) for one in ids]
    return [lengths[i : i + 32] for i in range(0, len(lengths), 32)]


def own_batches(encoder: SentenceTransformerEncoder, units: Sequence[str]) -> list[list[int]]:
    """Token lengths of the batches that reffree makes."""
    limits = (encoder.batch_tokens, encoder.enough)
    texts = list(dict.fromkeys(units))
    batches = make_batches(texts, encoder._tokeniser, lambda: limits)
    return [[read.length for read in batch.reads] for batch in batches]


def waste(batches: list[list[int]]) -> float:
    """Share of the computed tokens that are padding."""
    computed = sum(max(batch) * len(batch) for batch in batches)
    return 1 - sum(map(sum, batches)) / computed


def sample(path: Path, n_distinct: int, n_consecutive: int) -> tuple[str, list[str]]:
    """Take units of a corpus, in the way that fits it."""
    corpus = reffree.load(path)
    units = [unit for document in corpus.documents for unit in document.units]
    distinct = distinct_texts(corpus)
    if 1 - len(distinct) / len(units) >= MANY_REPEATS:
        taken = units[:n_consecutive]
        repeats = 1 - len(set(taken)) / len(taken)
        return f"{len(taken):,} consecutive units, {repeats:.0%} of them repeats", taken
    chosen = np.random.default_rng(0).permutation(len(distinct))[:n_distinct]
    return f"{len(chosen):,} distinct units", [distinct[i] for i in chosen]


def one_corpus(
    name: str, described: str, units: list[str], encoders: dict[str, Any], rounds: int
) -> list[dict[str, Any]]:
    """Time every contestant on the same units."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    runs: dict[str, Callable[[], Vectors]] = {
        who: partial(encoder.encode, units, batch_size=32, show_progress_bar=False)
        if who == PLAIN
        else partial(encode, encoder, units)
        for who, encoder in encoders.items()
    }
    best = dict.fromkeys(runs, float("inf"))
    vectors: dict[str, Vectors] = {}
    for _ in range(rounds):
        for who, run in runs.items():
            start = clock()
            vectors[who] = run()
            best[who] = min(best[who], clock() - start)
    rows = []
    for who, encoder in encoders.items():
        batches = (
            plain_batches(encoder, units, encoder.max_seq_length)
            if who == PLAIN
            else own_batches(encoder, units)
        )
        rows.append(
            {
                "corpus": name,
                "units": described,
                "contestant": who,
                "units_per_second": round(len(units) / best[who], 1),
                "ratio": round(best[PLAIN] / best[who], 3),
                "padding": round(waste(batches), 4),
                "batches": len(batches),
                "largest_deviation": float(abs(vectors[who] - vectors[PLAIN]).max()),
            }
        )
    return rows


def tiny_plans(name: str, units: list[str]) -> Iterator[dict[str, Any]]:
    """Plan the batches of tiny checkpoints; their vectors in batches against one by one."""
    sys.path.insert(0, str(HERE.parent))
    checkpoints: Any = importlib.import_module("tests.checkpoints")
    texts = list(dict.fromkeys(units))
    for architecture in ARCHITECTURES:
        with tempfile.TemporaryDirectory() as folder:
            checkpoints.save_checkpoint(architecture, Path(folder))
            encoder = SentenceTransformerEncoder(find_model(folder), CPU)
            together = encode(encoder, texts)
            plans = {
                "plain": plain_batches(encoder._model, texts, encoder.spec.max_length or 0),
                "own": own_batches(encoder, texts),
            }
            alone = np.concatenate([encode(encoder, [text]) for text in texts[:100]])
            yield {
                "corpus": name,
                "architecture": architecture,
                "texts": len(texts),
                **{f"{who}_padding": round(waste(plan), 4) for who, plan in plans.items()},
                **{f"{who}_batches": len(plan) for who, plan in plans.items()},
                "largest_deviation": float(abs(together[:100] - alone).max()),
            }


def write_speeds(rounds: int) -> None:
    """Measure the packaged encoders on the demo's units, for ``reffree models``."""
    texts = distinct_texts(reffree.load(Path(reffree.__file__).parent / "resources" / "demo.jsonl"))
    speeds = json.loads(SPEEDS.read_text())
    for alias in PACKAGED:
        if not is_installed(alias):
            continue
        encoder = SentenceTransformerEncoder(find_model(alias), CPU)
        tokens = np.concatenate([part.tokens for part in encoder.stream(texts)])
        spent = []
        for _ in range(rounds):
            start = time.process_time()
            encode(encoder, texts)
            spent.append(time.process_time() - start)
        rate = len(texts) / min(spent)
        speeds[alias] = {
            "units_per_second": float(f"{rate:.2g}") if rate < 1 else int(float(f"{rate:.2g}")),
            "on": f"one core of {processor()} by CPU time, {len(texts)} units of "
            f"{tokens.mean():.0f} tokens (the demo's)",
        }
    SPEEDS.write_text(json.dumps(speeds, indent=2) + "\n")


def processor() -> str:
    """Name the make of the processor, without its model number."""
    information = Path("/proc/cpuinfo")
    text = information.read_text() if information.exists() else platform.processor()
    makes = {"Intel(R) Xeon": "an Intel Xeon", "EPYC": "an AMD EPYC", "Intel": "an Intel"}
    return next((name for make, name in makes.items() if make in text), "an unnamed processor")


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    how = "CPU time" if results["threads"] == 1 else "the clock"
    lines = [
        f"{results['model']}, {results['threads']} thread(s), by {how}; padding is the share of "
        "computed tokens; deviation is the largest difference of a number of a vector:",
        "",
        "| corpus | contestant | units/s | ratio | padding | batches | deviation |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in results["corpora"]:
        lines.append(
            f"| {row['corpus']}: {row['units']} | {row['contestant']} | "
            f"{row['units_per_second']:,.0f} | {row['ratio']:.2f} | {row['padding']:.1%} | "
            f"{row['batches']:,} | {row['largest_deviation']:.1e} |"
        )
    lines += [
        "",
        "Batch plans of tiny checkpoints (random weights, 32 tokens), sentence-transformers' 32 "
        "against reffree's; deviation of batches from texts one by one:",
        "",
        "| corpus | architecture | texts | padding, 32 | padding, reffree | batches, 32 | "
        "batches, reffree | deviation |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in results["plans"]:
        lines.append(
            f"| {row['corpus']} | {row['architecture']} | {row['texts']:,} | "
            f"{row['plain_padding']:.1%} | {row['own_padding']:.1%} | {row['plain_batches']:,} | "
            f"{row['own_batches']:,} | {row['largest_deviation']:.1e} |"
        )
    return "\n".join(lines)


def summary(results: dict[str, Any]) -> str:
    """Markdown of the contestants, without the plans of batches."""
    return table(results).split("\n\nBatch plans")[0]


def main() -> None:
    """Run everything, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", type=Path, help="files that reffree.load reads")
    parser.add_argument("--table", action="store_true", help="print the last results")
    parser.add_argument("--speeds", action="store_true", help="write the speeds of encoders")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--distinct", type=int, default=600, help="units of a sample")
    parser.add_argument("--consecutive", type=int, default=2000, help="units with repeats")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    torch.set_num_threads(arguments.threads)
    if arguments.speeds:
        write_speeds(arguments.rounds)
        return
    from sentence_transformers import SentenceTransformer

    model = find_model("minilm")
    encoders: dict[str, Any] = {PLAIN: SentenceTransformer(str(model.path), device="cpu")}
    encoders["reffree"] = SentenceTransformerEncoder(model, CPU)
    encode(encoders["reffree"], ["Load and warm up."])
    results: dict[str, Any] = {
        "model": model.spec.name,
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "sentence-transformers", "transformers")},
        "threads": arguments.threads,
        "machine": platform.machine(),
        "corpora": [],
        "plans": [],
    }
    for path in arguments.corpora:
        described, units = sample(path, arguments.distinct, arguments.consecutive)
        timed = one_corpus(path.stem, described, units, encoders, arguments.rounds)
        results["corpora"] += timed
        results["plans"] += tiny_plans(path.stem, units)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
