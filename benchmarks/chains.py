"""Does a cut into a few pieces come before gold in long chains of short texts?

Documents of a corpus with gold are put one after the other until they have some 900 units. Gold is
their own segments (``segments``), or the documents (``documents``), or their segments in random
order (``shuffled``). Writes expected Pk of gold, of gold moved by one unit, and of the best cut
into 1 to 160 even pieces, means over four such chains, to ``benchmarks/results/chains.json``.

    python benchmarks/chains.py choi.jsonl tiage.jsonl --encoder wordllama
"""

from __future__ import annotations

import argparse
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import reffree
from reffree.data.corpus import Document
from reffree.encoders.embed import corpus_vectors
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.posterior import Posterior
from reffree.studies.correlate_pool import CaseSettings
from reffree.util.progress import no_progress

RESULTS = Path(__file__).parent / "results" / "chains.json"
PIECES = (1, 2, 3, 4, 6, 8, 12, 20, 40, 80, 160)

Segments = list[list[str]]


def segments_of(document: Document) -> Segments:
    """Text of the segments of the first annotator."""
    edges = np.cumsum([0, *document.references[0].masses]).tolist()
    return [list(document.units[a:b]) for a, b in pairwise(edges)]


def chains(parts: list[Segments], units: int, count: int) -> list[Segments]:
    """Put parts one after the other until there are so many units, so many times."""
    made: list[Segments] = [[]]
    for part in parts:
        if sum(map(len, made[-1])) >= units:
            made.append([])
        made[-1] += part
    return [chain for chain in made if sum(map(len, chain)) >= units][:count]


def row(name: str, texts: list[Segments], encoder: str) -> dict[str, Any]:
    """Expected Pk of gold and of blind cuts, and numbers of segments."""
    corpus = reffree.load([[unit for segment in text for unit in segment] for text in texts])
    settings = CaseSettings(metrics=("expected_pk",), encoder=encoder)
    vectors = corpus_vectors(corpus, None, settings, no_progress).vectors
    gold, moved, assumed = [], [], []
    even: dict[int, list[float]] = {pieces: [] for pieces in PIECES}
    for text, document, x in zip(texts, corpus, vectors, strict=True):
        posterior, n = Posterior(x, Reading(document.units)), len(document.units)
        assumed.append(posterior.segments)
        masses = np.array([len(segment) for segment in text])
        gold.append(posterior.expected_pk(masses[None])[0])
        joints = np.unique(np.minimum(np.cumsum(masses)[:-1] + 1, n - 1))
        moved.append(posterior.expected_pk(np.diff(joints, prepend=0, append=n)[None])[0])
        for pieces, values in even.items():
            ends = np.linspace(0, n, pieces + 1).round().astype(int)
            values.append(posterior.expected_pk(np.diff(ends)[None])[0])
    pieces = min(PIECES, key=lambda each: np.mean(even[each]))
    return {
        "chains": name,
        "encoder": encoder,
        "segments": round(float(np.mean([len(text) for text in texts]))),
        "assumed": round(float(np.mean(assumed))),
        "gold": round(float(np.mean(gold)), 4),
        "moved": round(float(np.mean(moved)), 4),
        "even": round(float(np.mean(even[pieces])), 4),
        "pieces": pieces,
    }


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    lines = [
        "| chains | encoder | gold segments | assumed | gold | moved | best even cut | into |",
        "|:--|:--|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {r['chains']} | {r['encoder']} | {r['segments']} | {r['assumed']} | {r['gold']:.3f} "
        f"| {r['moved']:.3f} | {r['even']:.3f} | {r['pieces']} |"
        for r in results["rows"]
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure every corpus, kind of gold and encoder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="+", help="corpus files with gold")
    parser.add_argument("--encoder", action="append", help="may be repeated; wordllama")
    parser.add_argument("--units", type=int, default=900)
    arguments = parser.parse_args()
    rows = []
    for path in arguments.corpora:
        parts = [segments_of(document) for document in reffree.load(path)]
        whole = [[[unit for segment in part for unit in segment]] for part in parts]
        shuffled = [[segment] for part in parts for segment in part]
        random.Random(0).shuffle(shuffled)
        for kind, each in (("segments", parts), ("documents", whole), ("shuffled", shuffled)):
            texts = chains(each, arguments.units, 4)
            for encoder in arguments.encoder or ["wordllama"] if texts else []:
                rows.append(row(f"{Path(path).stem}, {kind}", texts, encoder))
    results = {"version": reffree.__version__, "rows": rows}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
