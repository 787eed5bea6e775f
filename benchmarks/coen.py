"""Two corpora that the rows of Coen in ``benchmarks/papers.md`` need, from dialogues with gold.

    python benchmarks/coen.py splice tiage_train.jsonl -o spliced.jsonl
    python benchmarks/coen.py baselines tiage_dev.jsonl

``splice`` puts 3 to 6 segments of three units or more, each of another dialogue, end to end, as
DialSeg711 is made of whole dialogues. ``baselines`` prints W-F1, BOR, purity and coverage of the
baselines of Table 3, against gold and against gold without each dialogue's first, or last,
boundary: the paper counts 2,042 boundaries in the 711 dialogues of DialSeg711, whose published
files have 4.9 segments a dialogue, one boundary more.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.metrics.gold.granularity import WF1, Coverage, Purity
from reffree.util.seeds import rng_for

Masses = list[int]


def splice(corpus: Corpus, n: int, seed: int) -> Corpus:
    """Make ``n`` dialogues of segments of different dialogues."""
    rng = rng_for(seed, "splices")
    pieces = [
        (document.id, piece)
        for document in corpus.documents
        for piece in np.split(np.array(document.units), document.references[0].boundaries)
        if len(piece) >= 3
    ]
    made = []
    for number in range(n):
        drawn: dict[str, list[str]] = {}
        wanted = int(rng.integers(3, 7))
        while len(drawn) < wanted:
            name, piece = pieces[rng.integers(len(pieces))]
            drawn.setdefault(name, piece.tolist())
        units = [unit for piece in drawn.values() for unit in piece]
        gold = [len(piece) for piece in drawn.values()]
        made.append(Document.build(f"spliced-{number}", units, gold=gold))
    return Corpus(tuple(made))


def periodic(n: int, period: int) -> Masses:
    """Cut after every ``period`` units."""
    whole = [period] * ((n - 1) // period)
    return [*whole, n - sum(whole)]


def without_first(gold: Masses) -> Masses:
    """Leave the first boundary out."""
    return gold if len(gold) < 2 else [gold[0] + gold[1], *gold[2:]]


def without_last(gold: Masses) -> Masses:
    """Leave the last boundary out."""
    return without_first(gold[::-1])[::-1]


def print_baselines(corpus: Corpus) -> None:
    """Print a row for every baseline, by what is left of gold."""
    rng = rng_for(0, "orders")
    made: dict[str, Callable[[Masses], Masses]] = {
        "none": lambda gold: [sum(gold)],
        "periodic, ⌈n/segments⌉": lambda gold: periodic(
            sum(gold), math.ceil(sum(gold) / len(gold))
        ),
        "gold's lengths, any order": lambda gold: rng.permutation(gold).tolist(),
        "gold's number, anywhere": lambda gold: np.diff(
            [0, *np.sort(1 + rng.choice(sum(gold) - 1, len(gold) - 1, replace=False)), sum(gold)]
        ).tolist(),
    }
    rules: dict[str, Callable[[Masses], Masses]] = {
        "gold": list,
        "without first": without_first,
        "without last": without_last,
    }
    whole = [list(document.references[0].masses) for document in corpus.documents]
    for rule, leave in rules.items():
        golds = [leave(gold) for gold in whole]
        print(f"{rule}: {sum(map(len, golds)) - len(golds)} boundaries")
        for name, make in made.items():
            found = [make(gold) for gold in golds]
            pairs = (
                [reffree.Segmentation(tuple(f)) for f in found],
                [reffree.Segmentation(tuple(g)) for g in golds],
            )
            figures = {
                metric.name: float(np.nanmean(np.asarray(metric(*pairs), dtype=np.float64)))
                for metric in (WF1(), Purity(), Coverage())
            }
            bor = (sum(map(len, found)) - len(found)) / (sum(map(len, golds)) - len(golds))
            print(f"  {name:26}", *(f"{k} {v:.3f}" for k, v in figures.items()), f"bor {bor:.2f}")


def main() -> None:
    """Splice, or print baselines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("splice", "baselines"))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("-n", type=int, default=400, help="dialogues to splice")
    arguments = parser.parse_args()
    corpus = reffree.load(arguments.corpus)
    if arguments.what == "baselines":
        print_baselines(corpus)
    else:
        reffree.save(splice(corpus, arguments.n, seed=0), arguments.output)


if __name__ == "__main__":
    main()
