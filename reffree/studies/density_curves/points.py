"""Segmentations by how dense they are and how good: points of one corpus, all scored at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from reffree.arrays import Floats
from reffree.corpus import GOLD, Corpus
from reffree.evaluate.scores import Scores
from reffree.reference.failure_modes import Thresholds
from reffree.segmentation import Segmentation
from reffree.segmenters.gap_scores import GapScores
from reffree.statistics.resampling import MIN_DOCUMENTS, Counts, percentile_interval

Kind = Literal["sweep", "own", "matched", "system", "gold"]
Matching = Literal["many_to_one", "one_to_one"]
MATCHINGS: tuple[Matching, ...] = get_args(Matching)

W_F1: dict[Matching, str] = {"many_to_one": "w_f1", "one_to_one": "w_f1_one_to_one"}
MEASURES = (*W_F1.values(), "f1", "bor", "purity", "coverage")

Regime = Literal["conservative", "balanced", "aggressive"]
REGIMES: tuple[Regime, ...] = get_args(Regime)
LIMITS = Thresholds()


def regime(bor: float) -> Regime:
    """Name the density (Coen §9 and Table 5): BOR below 1, about 1, or well above 1.

    What "about 1" means is settled in `reffree.reference.failure_modes`.
    """
    if bor < LIMITS.sparse_bor:
        return "conservative"
    return "aggressive" if bor > LIMITS.dense_bor else "balanced"


@dataclass(frozen=True, slots=True)
class Point:
    """One segmentation of every document."""

    name: str  # of the method or system
    kind: Kind
    threshold: float | None  # on a sweep or matched
    target: int | None  # boundaries a matched point was to have
    n_boundaries: int


@dataclass(frozen=True, slots=True)
class Plane:
    """The points of a corpus, and the corpus that has them as its systems."""

    corpus: Corpus
    points: tuple[Point, ...]  # the systems of the corpus, in their order
    n_gold: int  # boundaries; with several annotators their mean, rounded

    def find(self, name: str, kinds: Iterable[Kind], target: int | None = None) -> int | None:
        """Return the number of a point, None where there is none."""
        wanted = tuple(kinds)
        for i, point in enumerate(self.points):
            if point.name == name and point.kind in wanted and point.target == target:
                return i
        return None

    def sweep(self, name: str) -> list[int]:
        """Numbers of the points of a method's sweep, by threshold."""
        return [i for i, p in enumerate(self.points) if p.name == name and p.kind == "sweep"]

    @property
    def methods(self) -> list[str]:
        """Names of the methods with a sweep."""
        return list(dict.fromkeys(p.name for p in self.points if p.kind == "sweep"))

    @property
    def systems(self) -> list[str]:
        """Names of the systems the corpus came with, gold excepted."""
        return [point.name for point in self.points if point.kind == "system"]

    @property
    def n_gaps(self) -> int:
        """Places where a boundary can be."""
        return sum(len(document.units) - 1 for document in self.corpus.documents)


def build_plane(corpus: Corpus, methods: Sequence[GapScores], thresholds: Sequence[float]) -> Plane:
    """Lay out sweeps, operating points, matched points and the corpus's own systems."""
    n_gold = round(
        sum(
            sum(len(each) - 1 for each in document.references) / len(document.references)
            for document in corpus.documents
        )
    )
    given = corpus.hypotheses
    names = {each.name for each in methods}
    made: list[tuple[Point, tuple[Segmentation, ...]]] = []

    def add(
        name: str,
        kind: Kind,
        segmentations: tuple[Segmentation, ...],
        threshold: float | None = None,
        target: int | None = None,
    ) -> None:
        size = sum(len(each) - 1 for each in segmentations)
        made.append((Point(name, kind, threshold, target, size), segmentations))

    if GOLD in given:
        add(GOLD, "gold", given[GOLD])
    for name in (each for each in given if each != GOLD):
        add(f"{name} (given)" if name in names else name, "system", given[name])
    targets = {n_gold: None, **{p.n_boundaries: None for p, _ in made if p.kind == "system"}}
    for method in methods:
        for threshold in thresholds:
            add(method.name, "sweep", method.above(threshold), threshold)
        # Chance is a baseline at gold's density (Coen's Table 3), whatever that is.
        own = method.above(method.nearest(n_gold)) if method.own is None else method.own
        add(method.name, "own", own)
        for target in targets:
            threshold = method.nearest(target)
            shown = threshold if np.isfinite(threshold) else None
            add(method.name, "matched", method.above(threshold), shown, target)
    # Gold is a system of its own accord wherever it is complete, and then the first.
    rest = [pair for pair in made if pair[0].kind != "gold"]
    documents = tuple(
        replace(
            document,
            systems={f"point {i}": each[d] for i, (_, each) in enumerate(rest)},
        )
        for d, document in enumerate(corpus.documents)
    )
    return Plane(replace(corpus, documents=documents), tuple(point for point, _ in made), n_gold)


class Measured:
    """Every measure of every point, with resampled documents behind its intervals."""

    def __init__(self, plane: Plane, scored: Scores, counts: Counts) -> None:
        """Take values from scores; nothing is resampled until it is asked for."""
        self._scores = {name: scored.own_values(name) for name in scored.metrics.names}
        everything = np.ones((1, len(plane.corpus)))
        self.values = {name: scores.over(everything)[0] for name, scores in self._scores.items()}
        self._counts = counts
        self._drawn: dict[str, Floats] = {}

    def interval(self, measure: str, point: int, other: int | None = None) -> list[float] | None:
        """95 % over documents of a measure, or of its difference from that of another point."""
        scores = self._scores[measure]
        if (~np.isnan(scores.values[point])).sum() < MIN_DOCUMENTS:
            return None
        if measure not in self._drawn:
            self._drawn[measure] = scores.over(self._counts)  # (resamples, points)
        value, drawn = self.values[measure][point], self._drawn[measure][:, point]
        if other is not None:
            value = value - self.values[measure][other]
            drawn = drawn - self._drawn[measure][:, other]
        found = None if np.isnan(value) else percentile_interval(float(value), drawn)
        return None if found is None else list(found)


def spelt_range(thresholds: Sequence[float]) -> str | None:
    """First and last of thresholds, as a reader writes them.

    >>> spelt_range([0.05, 0.1, 0.15]), spelt_range([0.5]), spelt_range([])
    ('0.05–0.15', '0.5', None)
    """
    if not thresholds:
        return None
    low, high = f"{min(thresholds):g}", f"{max(thresholds):g}"
    return low if low == high else f"{low}–{high}"


def by_regime(thresholds: Sequence[float], bors: Sequence[float]) -> Mapping[Regime, list[float]]:
    """Thresholds of a sweep by the density they give."""
    found: dict[Regime, list[float]] = {name: [] for name in REGIMES}
    for threshold, bor in zip(thresholds, bors, strict=True):
        found[regime(bor)].append(threshold)
    return found
