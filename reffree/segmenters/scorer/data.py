"""Examples to train on: gaps between units, seen through the windows on their two sides.

Units are rows of one table, all units of the corpus in order, so that examples are the same
whether the table holds vectors or texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats, Integers
from reffree.corpus import Corpus
from reffree.errors import InputError, counted
from reffree.seeds import rng_for
from reffree.segmentation import Segmentation
from reffree.segmenters.network_folder import Kind
from reffree.segmenters.scorer.description import Training

ABSENT = -1
"""Row of a unit before the beginning or after the end."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Units in order, and the boundaries to be found among them."""

    document: int  # where they come from; of a synthetic passage, its number
    rows: Integers
    segmentation: Segmentation


@dataclass(frozen=True, slots=True)
class Gaps:
    """Every gap of some passages, one after the other."""

    windows: Integers  # (g, 2 · window), in the order of the text
    labels: NDArray[np.float32]  # (g,), 1 for a boundary
    sizes: tuple[int, ...]  # gaps of every passage

    def __len__(self) -> int:
        """Return the number of gaps."""
        return len(self.labels)

    def by_passage(self, values: Floats) -> Iterator[Floats]:
        """Cut one value per gap into those of each passage."""
        yield from np.split(values, np.cumsum(self.sizes)[:-1])


@dataclass(frozen=True, slots=True)
class Examples:
    """What the stages learn from, and what they are measured on."""

    splices: tuple[Gaps, ...]  # other synthetic documents in every epoch
    gold: Gaps
    held_out: Gaps
    control: Gaps
    counts: dict[str, int]


def examples_of(corpus: Corpus, settings: Training) -> Examples:
    """Set documents aside and splice the others."""
    rng = rng_for(settings.seed, "scorer", "held out")
    training, held_out = hold_out(gold_passages(corpus), settings.held_out, rng)
    gold, measured = gaps_of(training, settings.window), gaps_of(held_out, settings.window)
    if not 0 < gold.labels.sum() < len(gold):
        raise InputError(
            "gold with a boundary in no gap, or in every gap, of the training documents",
            expected="gaps with a boundary and gaps without",
            remedy="give other documents",
        )
    n_training = len({p.document for p in training})
    spliced = (
        splice(training, settings.splices * n_training, rng_for(settings.seed, "splice", epoch))
        for epoch in range(settings.splice_epochs)
    )
    return Examples(
        splices=tuple(gaps_of(passages, settings.window) for passages in spliced),
        gold=gold,
        held_out=measured,
        control=gaps_of(single_segments(held_out), settings.window),
        counts={
            "training_documents": n_training,
            "training_gaps": len(gold),
            "training_boundaries": int(gold.labels.sum()),
            "held_out_documents": len({p.document for p in held_out}),
            "held_out_gaps": len(measured),
            "held_out_boundaries": int(measured.labels.sum()),
        },
    )


def gaps_of(passages: Sequence[Passage], window: int) -> Gaps:
    """All gaps with up to ``window`` units on either side (Coen §5.2: truncated at the ends)."""
    labels = [np.array(p.segmentation.to_labels("gap"), dtype=np.float32) for p in passages]
    empty = np.empty((0, 2 * window), dtype=np.int64)
    return Gaps(
        np.concatenate([empty, *(windows_of(p.rows, window) for p in passages)]),
        np.concatenate([np.empty(0, dtype=np.float32), *labels]),
        tuple(len(p.rows) - 1 for p in passages),
    )


def windows_of(rows: Integers, window: int) -> Integers:
    """Integers of the ``window`` units before and after each gap, `ABSENT` outside the passage.

    >>> windows_of(np.array([5, 6, 7]), 2).tolist()
    [[-1, 5, 6, 7], [5, 6, 7, -1]]
    """
    places = np.arange(1, len(rows))[:, None] + np.arange(-window, window)
    inside = (places >= 0) & (places < len(rows))
    return np.where(inside, rows[np.clip(places, 0, len(rows) - 1)], ABSENT)


def gold_passages(corpus: Corpus, kind: Kind = "scorer") -> list[Passage]:
    """Every document under every reference it has; refuses to go on without."""
    passages = []
    start = 0
    for index, document in enumerate(corpus.documents):
        rows = np.arange(start, start + len(document.units))
        start += len(document.units)
        if not document.references:
            raise InputError(
                f"no gold, which a {kind} is trained on",
                expected="gold in every document",
                remedy="leave such documents out, or segment with an untrained method",
                place=document.place,
            )
        passages += [Passage(index, rows, reference) for reference in document.references]
    return passages


def hold_out(
    passages: Sequence[Passage], share: float, rng: np.random.Generator
) -> tuple[list[Passage], list[Passage]]:
    """Set a share of the documents aside: two or more to train on, one or more to hold out."""
    documents = np.array(sorted({p.document for p in passages}))
    if len(documents) < 3:
        raise InputError(
            f"{counted(len(documents), 'document')} to train on",
            expected="three at least: two to train on, and one held out",
            remedy="give more documents with gold",
        )
    n_held_out = min(max(1, round(share * len(documents))), len(documents) - 2)
    aside = set(rng.permutation(documents)[:n_held_out].tolist())
    return (
        [p for p in passages if p.document not in aside],
        [p for p in passages if p.document in aside],
    )


def splice(passages: Sequence[Passage], n: int, rng: np.random.Generator) -> list[Passage]:
    """Make ``n`` synthetic documents: segments of different documents put end to end.

    Coen §5.3, stage 1: the splices are the boundaries. It says neither how many segments make a
    synthetic document nor what exactly is removed as a "boundary-local artifact (e.g., greetings)".
    Here there are as many segments as some document has, drawn at random, two at least, so that
    boundaries are about as frequent as in gold; neighbours come from different documents; and
    documents lose their first and last unit, where greetings are.
    """
    pieces = [(p.document, rows) for p in passages for rows in _segments(p, trimmed=True)]
    owners = np.array([document for document, _ in pieces])
    order = np.argsort(owners, kind="stable")
    owners = owners[order]
    if len(set(owners.tolist())) < 2:
        raise InputError(
            "fewer than two training documents with more than a greeting",
            expected="segments of two documents to splice",
            remedy="give more or longer documents, or leave out splices (splice_epochs=0)",
        )
    lengths = [max(2, len(p.segmentation)) for p in passages]
    made = []
    for number in range(n):
        drawn: list[Integers] = []
        first = last = 0  # pieces of the document drawn last
        for _ in range(lengths[rng.integers(len(lengths))]):
            at = int(rng.integers(len(owners) - (last - first)))
            at += (last - first) if at >= first else 0
            first, last = np.searchsorted(owners, [owners[at], owners[at] + 1]).tolist()
            drawn.append(pieces[order[at]][1])
        made.append(Passage(number, np.concatenate(drawn), Segmentation(tuple(map(len, drawn)))))
    return made


def single_segments(passages: Sequence[Passage]) -> list[Passage]:
    """Every segment on its own: the negative control, where any boundary is a false one."""
    return [
        Passage(p.document, rows, Segmentation((len(rows),)))
        for p in passages
        for rows in _segments(p, trimmed=False)
    ]


def _segments(passage: Passage, *, trimmed: bool) -> list[Integers]:
    """Integers of each segment; trimmed, without the first and the last unit of the document."""
    parts = np.split(passage.rows, passage.segmentation.boundaries)
    if trimmed:
        parts[0] = parts[0][1:]
        parts[-1] = parts[-1][:-1]
    return [part for part in parts if len(part)]
