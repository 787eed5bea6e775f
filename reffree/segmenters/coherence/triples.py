"""Examples to train coherence on: what follows a unit, what does not, what is from elsewhere.

Xing and Carenini (2021), §3.1: a unit goes with the next one better than with another of its own
dialogue, and with that better than with one of another dialogue. The paper keeps to pairs whose
dialogue acts go together (question and answer, directive and reply), and to other dialogues with
another topic; corpora here have neither label, so that all neighbours are pairs, and any other
document is another dialogue.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reffree.util.arrays import Integers
from reffree.util.errors import InputError, counted

NEXT, SAME, OTHER = range(3)
"""Columns of a triple, after the unit itself."""


def triples_of(documents: Sequence[Integers], rng: np.random.Generator) -> Integers:
    """Draw a triple for every pair of neighbours: unit, next, same document, other; (t, 4).

    Documents are the rows of their units. The third is no neighbour of the unit, so that pairs
    without such a one, in documents of up to three units, are left out; the fourth is any unit of
    any other document, all documents alike.
    """
    found = []
    for d, rows in enumerate(documents):
        n = len(rows)
        for i in range(n - 1):
            apart = [j for j in range(n) if abs(j - i) > 1]
            if apart:
                other = int(rng.integers(len(documents) - 1))
                elsewhere = documents[other + (other >= d)]
                same = rows[apart[int(rng.integers(len(apart)))]]
                found.append(
                    [rows[i], rows[i + 1], same, elsewhere[int(rng.integers(len(elsewhere)))]]
                )
    return np.array(found, dtype=np.int64).reshape(-1, 4)


def hold_out_documents(
    documents: Sequence[Integers], share: float, rng: np.random.Generator
) -> tuple[list[Integers], list[Integers]]:
    """Set a share of the documents aside: two or more to learn from, two or more held out."""
    if len(documents) < 4:
        raise InputError(
            f"{counted(len(documents), 'document')} to train on",
            expected="four at least: two to learn from, and two held out",
            remedy="give more documents; they need no gold",
        )
    n_held_out = min(max(2, round(share * len(documents))), len(documents) - 2)
    aside = set(rng.permutation(len(documents))[:n_held_out].tolist())
    return (
        [rows for d, rows in enumerate(documents) if d not in aside],
        [rows for d, rows in enumerate(documents) if d in aside],
    )
