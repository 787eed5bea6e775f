"""No blind cut may beat gold under the metric to judge by: even and random ones of any density."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation

DENSITIES = (2, 3, 4, 6, 9, 13, 20, 10**6)
"""Segments, up to a boundary in every third gap."""

DRAWS = 3


def even(n, k):
    return [i * n // k for i in range(1, k)]


def random(n, k, *seeds):
    gaps = np.random.default_rng([k, *seeds]).permutation(n - 1)[: k - 1] + 1
    return sorted(gaps.tolist())


def blind(n, d):
    """Even and random boundaries of every density."""
    made = {}
    for density in DENSITIES:
        k = max(2, min(density, n // 3))
        made[f"even {density}"] = even(n, k)
        made |= {f"random {density} {i}": random(n, k, d, i) for i in range(DRAWS)}
    return {name: Segmentation.from_boundaries(cuts, n) for name, cuts in made.items()}


def demo():
    return reffree.load(files("reffree") / "resources" / "demo.jsonl")


def joined(corpus, size):
    """Documents of several, one after the other: long texts that drift from topic to topic."""
    parts = [corpus.documents[i : i + size] for i in range(0, len(corpus), size)]
    return Corpus(
        tuple(
            Document.build(
                f"d{i}",
                [unit for document in part for unit in document.units],
                gold=[mass for document in part for mass in document.gold.masses],
            )
            for i, part in enumerate(parts)
        )
    )


def scores(corpus, metric, cache_dir):
    documents = [
        replace(document, systems=blind(len(document.units), d))
        for d, document in enumerate(corpus)
    ]
    table = reffree.score(
        Corpus(tuple(documents)), metrics=[metric], encoder="wordllama", cache=cache_dir
    )
    values = {row.system: row.metrics[metric].value for row in table.systems}
    gold = values.pop("gold")
    return gold, values


def test_no_blind_cut_beats_gold_under_expected_pk(cache_dir):
    gold, cuts = scores(demo(), "expected_pk", cache_dir)
    assert gold < min(cuts.values()), sorted(cuts, key=cuts.__getitem__)[:3]


@pytest.mark.parametrize("size", [1, 2, 4, 12])
def test_no_blind_cut_beats_gold_of_a_known_length(size, cache_dir):
    """Segments of six units in texts of a hundred or more are not what is assumed without it."""
    metric = "expected_pk:length=6"
    gold, cuts = scores(joined(demo(), size), metric, cache_dir)
    assert gold < min(cuts.values()), sorted(cuts, key=cuts.__getitem__)[:3]
