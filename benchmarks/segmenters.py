"""Time the lexical segmenters on 1,000 synthetic documents of 75 sentences.

A sentence has 12 to 24 words, half of them stop words. The others follow Zipf's law, in an order of
the vocabulary that starts somewhere else for every topic; topics change after 3 to 11 sentences.
Methods run interleaved in one process and the best of several rounds counts; all read the texts
anew. Writes ``benchmarks/results/segmenters.json``; ``--table`` prints that file as markdown.

    python benchmarks/segmenters.py
    python benchmarks/segmenters.py --table
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from reffree.data.corpus import Corpus, Document
from reffree.metrics.gold.pairs import Pairs
from reffree.metrics.gold.windows import Pk
from reffree.segmenters.base import Inputs, Segmenter
from reffree.segmenters.c99 import C99
from reffree.segmenters.textseg import TextSeg
from reffree.segmenters.texttiling import TextTiling
from reffree.util.words import STOP_WORDS

RESULTS = Path(__file__).parent / "results" / "segmenters.json"
METHODS: dict[str, Segmenter] = {
    "texttiling": TextTiling(),
    "c99": C99(),
    "c99:k=gold": C99(k="gold"),
    "textseg": TextSeg(),
    "textseg:k=gold": TextSeg(k="gold"),
}
TERMS = "finding the terms"
SYLLABLES = [consonant + vowel for consonant in "bdfghklmnprstvz" for vowel in "aeiou"]


def synthetic_corpus(n_documents: int, n_units: int, n_words: int = 20_000) -> Corpus:
    """Documents whose topics prefer words of their own."""
    rng = np.random.default_rng(0)
    vocabulary = np.array(["".join(rng.choice(SYLLABLES, size=4)) for _ in range(n_words)])
    stop_words = np.array(STOP_WORDS["english"])
    up_to = np.cumsum(1 / np.arange(1, n_words + 1))
    documents = []
    for number in range(n_documents):
        masses: list[int] = []
        units: list[str] = []
        while sum(masses) < n_units:
            masses.append(min(int(rng.integers(3, 12)), n_units - sum(masses)))
            first = int(rng.integers(n_words))
            for _ in range(masses[-1]):
                half = int(rng.integers(6, 13))
                rank = np.searchsorted(up_to, rng.random(half) * up_to[-1])
                words = [*vocabulary[(first + rank) % n_words], *rng.choice(stop_words, size=half)]
                units.append(" ".join(words[i] for i in rng.permutation(2 * half)))
        documents.append(Document.build(f"synthetic/{number}", units, gold=masses))
    return Corpus(tuple(documents))


def measure(corpus: Corpus, rounds: int) -> list[dict[str, Any]]:
    """Seconds for the whole corpus, mean segments and mean Pk of every method."""
    inputs = Inputs(corpus)
    gold = [document.gold for document in corpus if document.gold is not None]
    seconds = dict.fromkeys([TERMS, *METHODS], np.inf)
    results: dict[str, dict[str, float]] = {TERMS: {}}
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in Inputs(corpus).terms("english"):
            pass
        seconds[TERMS] = min(seconds[TERMS], time.perf_counter() - start)
        for name, method in METHODS.items():
            start = time.perf_counter()
            found = method(inputs)
            seconds[name] = min(seconds[name], time.perf_counter() - start)
            pk = Pk().value(Pk().counts(Pairs.of(found, gold)))
            results[name] = {
                "segments": round(float(np.mean([len(segmentation) for segmentation in found])), 2),
                "pk": round(float(pk.mean()), 4),
            }
    return [
        {"method": name, "seconds": round(spent, 3), **results[name]}
        for name, spent in seconds.items()
    ]


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    lines = ["| method | seconds | ms per document | segments | Pk |", "|---|--:|--:|--:|--:|"]
    for row in results["rows"]:
        each = row["seconds"] * 1e3 / results["documents"]
        cells = [row["method"], f"{row['seconds']:.2f}", f"{each:.2f}"]
        cells += [row.get("segments", ""), row.get("pk", "")]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run everything, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="print the last results")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--documents", type=int, default=1000)
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    # Compile before anything is timed.
    measure(synthetic_corpus(2, 20), rounds=1)
    rows = measure(synthetic_corpus(arguments.documents, 75), arguments.rounds)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    results = {
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": version("numba"),
        "snowballstemmer": version("snowballstemmer"),
        "machine": platform.machine(),
        "documents": arguments.documents,
        "units": 75,
        "rows": rows,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
