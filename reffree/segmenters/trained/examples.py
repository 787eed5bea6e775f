"""Examples to train on: gaps between units, seen through the windows on their two sides.

Units are rows of one table, all units of all corpora in order, so that examples are the same
whether the table holds vectors or texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.segmenters.trained.settings import Kind, ScorerSettings
from reffree.util.arrays import Floats, Integers
from reffree.util.errors import InputError, counted
from reffree.util.seeds import rng_for

Stage = Literal["splices", "gold"]

ABSENT = -1
"""Row of a unit before the beginning or after the end."""


@dataclass(frozen=True, slots=True)
class TrainingCorpora:
    """What each stage learns from, by name (Coen Table 1).

    The paper splices training splits of its corpora, fine-tunes on those of two, and calibrates on
    the validation split of one. A corpus may serve splices and gold: the same of its documents are
    then held out of both.
    """

    gold: Mapping[str, Corpus]
    splices: Mapping[str, Corpus] = field(default_factory=dict)  # none: those of gold
    calibration: Mapping[str, Corpus] = field(default_factory=dict)  # none: gold's held-out part

    def __post_init__(self) -> None:
        if not self.gold:
            raise InputError(
                "no corpus to train on", expected="at least one", remedy="name one with gold"
            )
        for name in self.gold:
            if name in self.splices and self.gold[name] != self.splices[name]:
                raise InputError(
                    f"two corpora called {name!r}, one with gold and one to splice",
                    expected="a name of its own for every corpus",
                    remedy="rename one of them",
                )
        for name in self.calibration:
            if name in self.gold or name in self.splices:
                raise InputError(
                    f"the corpus {name!r} to calibrate on, which is trained on as well",
                    expected="documents that the scorer has not seen",
                    remedy="leave it out, to calibrate on documents held out of it",
                )

    @property
    def everything(self) -> dict[str, Corpus]:
        """Every corpus once: their units, in this order, are the rows."""
        return {**self.gold, **self.splices, **self.calibration}

    @property
    def roles(self) -> dict[str, tuple[str, ...]]:
        """Names of what each stage learns from, as they are written down."""
        spliced = tuple(self.splices or self.gold)
        return {"splices": spliced, "gold": (*self.gold,), "calibration": (*self.calibration,)}


@dataclass(frozen=True, slots=True)
class Passage:
    """Units in order, and the boundaries to be found among them."""

    document: int  # where they come from, over all corpora; of a synthetic passage, its number
    rows: Integers
    segmentation: Segmentation


@dataclass(frozen=True, slots=True)
class Gaps:
    """Every gap of some passages, one after the other."""

    windows: Integers  # (g, 2 · window), in the order of the text
    labels: NDArray[np.float32]  # (g,), 1 for a boundary
    sizes: tuple[int, ...]  # gaps of every passage

    def __len__(self) -> int:
        return len(self.labels)

    def by_passage(self, values: Floats) -> list[Floats]:
        """Cut one value per gap into those of each passage."""
        return np.split(values, np.cumsum(self.sizes)[:-1])


class HeldOut(NamedTuple):
    """What a stage is judged on."""

    corpora: Mapping[str, Gaps]  # by name; held-out splices are one
    together: Gaps  # of all corpora, one after the other
    control: Gaps  # their segments, each a document of its own: any boundary is a false one


class Examples(NamedTuple):
    """What the stages learn from, and what they are measured on."""

    splices: tuple[Gaps, ...]  # other synthetic documents in every epoch
    gold: Gaps
    held_out: Mapping[Stage, HeldOut]  # splices only where there are epochs of them
    calibration: Gaps
    counts: dict[str, int]


def examples_of(corpora: TrainingCorpora, settings: ScorerSettings) -> Examples:
    """Set documents of every corpus aside and splice the others."""
    window, seed = settings.window, settings.seed
    every: dict[str, list[Passage]] = {}
    document = row = 0
    for name, corpus in corpora.everything.items():
        is_taught = name in corpora.gold or name in corpora.calibration
        every[name] = passages_of(corpus, document, row, is_taught=is_taught)
        document, row = document + len(corpus), row + corpus.n_units
    training: dict[str, list[Passage]] = {}
    aside: dict[str, list[Passage]] = {}
    for name in {**corpora.gold, **corpora.splices}:
        rng = rng_for(seed, "scorer", "held out")
        training[name], aside[name] = hold_out(every[name], settings.held_out, rng)
    taught, judging = (_joined(parts, corpora.gold) for parts in (training, aside))
    check_teaches(taught)
    by_name = {name: gaps_of(aside[name], window) for name in corpora.gold}
    control = gaps_of(single_segments(judging), window)
    held_out: dict[Stage, HeldOut] = {"gold": HeldOut(by_name, gaps_of(judging, window), control)}
    epochs: list[Gaps] = []
    if settings.splice_epochs:
        spliced = corpora.splices or corpora.gold
        seen, unseen = (_joined(parts, spliced) for parts in (training, aside))
        n_made = settings.splices_per_document * n_documents(seen)
        for epoch in range(settings.splice_epochs):
            epochs.append(gaps_of(splice(seen, n_made, rng_for(seed, "splice", epoch)), window))
        n_made = settings.splices_per_document * n_documents(unseen)
        rng = rng_for(seed, "splice", "held out")
        gaps = gaps_of(splice(unseen, n_made, rng, "held-out"), window)
        control = gaps_of(single_segments(unseen), window)
        held_out["splices"] = HeldOut({"splices": gaps}, gaps, control)
    calibrating = _joined(every, corpora.calibration) or judging
    counts = counts_of(training=taught, held_out=judging, calibration=calibrating)
    learnt, calibration = gaps_of(taught, window), gaps_of(calibrating, window)
    return Examples(tuple(epochs), learnt, held_out, calibration, counts)


def _joined(passages: Mapping[str, list[Passage]], names: Iterable[str]) -> list[Passage]:
    return [passage for name in names for passage in passages[name]]


def n_documents(passages: Sequence[Passage]) -> int:
    """Documents that passages come from: one with several references has several passages."""
    return len({p.document for p in passages})


def counts_of(**parts: Sequence[Passage]) -> dict[str, int]:
    """Count documents, gaps and boundaries of the parts of a training, as they are written down."""
    counts = {}
    for name, passages in parts.items():
        counts[f"{name}_documents"] = n_documents(passages)
        counts[f"{name}_gaps"] = sum(len(p.rows) - 1 for p in passages)
        counts[f"{name}_boundaries"] = sum(len(p.segmentation) - 1 for p in passages)
    return counts


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
    """Rows of the ``window`` units before and after each gap, `ABSENT` outside the passage.

    >>> windows_of(np.array([5, 6, 7]), 2).tolist()
    [[-1, 5, 6, 7], [5, 6, 7, -1]]
    """
    places = np.arange(1, len(rows))[:, None] + np.arange(-window, window)
    inside = (places >= 0) & (places < len(rows))
    return np.where(inside, rows[np.clip(places, 0, len(rows) - 1)], ABSENT)


def passages_of(
    corpus: Corpus,
    document: int = 0,
    row: int = 0,
    *,
    is_taught: bool = True,
    kind: Kind = "scorer",
) -> list[Passage]:
    """Every document under every reference it has, from a document's and a unit's number on.

    What is taught must have gold. Of documents that are only spliced, one without is one segment.
    """
    passages = []
    for index, each in enumerate(corpus.documents, start=document):
        rows = np.arange(row, row + len(each.units))
        row += len(each.units)
        if is_taught and not each.references:
            raise InputError(
                f"no gold, which a {kind} is trained on",
                expected="gold in every document",
                remedy="leave such documents out, or segment with an untrained method",
                place=each.place,
            )
        references = each.references or (Segmentation((len(rows),)),)
        passages += [Passage(index, rows, reference) for reference in references]
    return passages


def hold_out(
    passages: Sequence[Passage], share: float, rng: np.random.Generator
) -> tuple[list[Passage], list[Passage]]:
    """Set a share of a corpus's documents aside: two or more to splice on either side."""
    documents = np.array(sorted({p.document for p in passages}))
    if len(documents) < 4:
        raise InputError(
            f"a corpus of {counted(len(documents), 'document')} to train on",
            expected="four at least: two to train on, and two held out",
            remedy="give more documents",
        )
    n_held_out = min(max(2, round(share * len(documents))), len(documents) - 2)
    aside = set(rng.permutation(documents)[:n_held_out].tolist())
    return (
        [p for p in passages if p.document not in aside],
        [p for p in passages if p.document in aside],
    )


def check_teaches(passages: Sequence[Passage]) -> None:
    """Refuse passages that have a boundary in no gap, or in every one."""
    n_gaps = sum(len(p.rows) - 1 for p in passages)
    if not 0 < sum(len(p.segmentation) - 1 for p in passages) < n_gaps:
        raise InputError(
            "gold with a boundary in no gap, or in every gap, of the training documents",
            expected="gaps with a boundary and gaps without",
            remedy="give other documents",
        )


def splice(
    passages: Sequence[Passage], n: int, rng: np.random.Generator, kind: str = "training"
) -> list[Passage]:
    """Make ``n`` synthetic documents: segments of different documents put end to end.

    Coen §5.3, stage 1, says neither how many segments make a synthetic document nor what is removed
    as a "boundary-local artifact (e.g., greetings)". Here there are as many as some document has,
    drawn at random, two at least, so that boundaries are about as frequent as in gold; neighbours
    come from different documents; documents lose their first and last unit, where greetings are.
    """
    pieces = [(p.document, rows) for p in passages for rows in _segments(p, trim=1)]
    owners = np.array([document for document, _ in pieces])
    order = np.argsort(owners, kind="stable")
    owners = owners[order]
    if len(set(owners.tolist())) < 2:
        raise InputError(
            f"fewer than two {kind} documents with more than a greeting",
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
    """Every segment on its own."""
    pairs = [(p.document, rows) for p in passages for rows in _segments(p)]
    return [Passage(document, rows, Segmentation((len(rows),))) for document, rows in pairs]


def _segments(passage: Passage, trim: int = 0) -> list[Integers]:
    """Rows of each segment, without so many units at both ends of the document."""
    parts = np.split(passage.rows, passage.segmentation.boundaries)
    parts[0] = parts[0][trim:]
    parts[-1] = parts[-1][: len(parts[-1]) - trim]
    return [part for part in parts if len(part)]
