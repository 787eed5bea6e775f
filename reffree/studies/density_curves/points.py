"""Segmentations of one corpus by how dense they are and how good: a point each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.data.segmentation import Segmentation
from reffree.metrics.gold.failure_modes import Thresholds, failure_mode
from reffree.segmenters.gap_scores import GapScores
from reffree.statistics.losses import SystemLosses
from reffree.statistics.resampling import MIN_DOCUMENTS, Counts, percentile_interval
from reffree.studies.study import StudiedCorpus
from reffree.util.arrays import Floats

PointKind = Literal["sweep", "own", "matched", "system", "gold"]
Matching = Literal["many_to_one", "one_to_one"]
MATCHINGS: tuple[Matching, ...] = get_args(Matching)

W_F1: dict[Matching, str] = {"many_to_one": "w_f1", "one_to_one": "w_f1_one_to_one"}
MEASURES = (*W_F1.values(), "f1", "bor", "purity", "coverage")

Regime = Literal["conservative", "balanced", "aggressive"]
REGIMES: tuple[Regime, ...] = get_args(Regime)
LIMITS = Thresholds()


def regime(bor: float) -> Regime:
    """Name the density (Coen §9 and Table 5): BOR below 1, about 1, or well above 1.

    What "about 1" means is settled in `reffree.metrics.gold.failure_modes`.
    """
    if bor < LIMITS.sparse_bor:
        return "conservative"
    return "aggressive" if bor > LIMITS.dense_bor else "balanced"


@dataclass(frozen=True, slots=True)
class Point:
    """One segmentation of every document."""

    name: str  # of the method or system
    kind: PointKind
    threshold: float | None  # on a sweep or matched
    target: int | None  # boundaries a matched point was to have
    n_boundaries: int


@dataclass(frozen=True, slots=True)
class PointLayout:
    """The points of a corpus, and the corpus that has them as its systems."""

    corpus: Corpus
    points: tuple[Point, ...]  # the systems of the corpus, in their order
    n_gold: int  # boundaries; with several annotators their mean, rounded

    def sweep(self, method: str) -> list[int]:
        """Numbers of the points of a method's sweep, by threshold."""
        return [i for i, p in enumerate(self.points) if p.name == method and p.kind == "sweep"]

    def own(self, name: str) -> int:
        """Number of a method's operating point, or of a system."""
        kinds = ("own", "system")
        return next(i for i, p in enumerate(self.points) if p.name == name and p.kind in kinds)

    def matched(self, first: str, second: str) -> tuple[str, int, int] | None:
        """Two methods at gold's density, or a method and a system at the system's.

        Returns:
            Whose density it is, and the numbers of the two points; None of two systems.
        """
        systems = [name for name in (first, second) if name in self.systems]
        if len(systems) == 2:
            return None
        target = self.points[self.own(systems[0])].n_boundaries if systems else self.n_gold
        a, b = (
            self.own(name)
            if name in systems
            else next(
                i
                for i, p in enumerate(self.points)
                if (p.name, p.kind, p.target) == (name, "matched", target)
            )
            for name in (first, second)
        )
        return f"{systems[0]}'s" if systems else "gold's", a, b

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


def lay_out_points(
    corpus: Corpus, methods: Sequence[GapScores], thresholds: Sequence[float]
) -> PointLayout:
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
        kind: PointKind,
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
        # Chance is a baseline at gold's density (Coen's Table 3), whatever that is; so are scores
        # on a scale of their own.
        own = method.above(method.nearest(n_gold)) if method.own is None else method.own
        add(method.name, "own", own)
        for target in targets:
            threshold = method.nearest(target)
            shown = threshold if np.isfinite(threshold) else None
            add(method.name, "matched", method.above(threshold), shown, target)
    # Gold is a system of its own accord wherever it is complete, and then the first.
    rest = [pair for pair in made if pair[0].kind != "gold"]
    documents = tuple(
        replace(document, systems={f"point {i}": each[d] for i, (_, each) in enumerate(rest)})
        for d, document in enumerate(corpus.documents)
    )
    points = tuple(point for point, _ in made)
    return PointLayout(Corpus.of_checked(documents, corpus.notes), points, n_gold)


@dataclass(frozen=True)
class DensityResult(StudiedCorpus):
    """One corpus and its points, scored by every measure."""

    layout: PointLayout
    scores: dict[str, SystemLosses]  # by measure: losses, but a gold-based metric's own values
    counts: Counts  # of documents in every resample
    metrics: tuple[str, ...]  # reference-free ones
    _drawn: dict[str, Floats] = field(default_factory=dict, init=False)

    @property
    def description(self) -> dict[str, Any]:
        """Its size, with the number of gold boundaries."""
        return {**super().description, "gold_boundaries": self.layout.n_gold}

    @cached_property
    def values(self) -> dict[str, Floats]:
        """Every measure of every point."""
        everything = np.ones((1, len(self.corpus)))
        return {name: scores.over(everything)[0] for name, scores in self.scores.items()}

    def value(self, measure: str, point: int) -> float:
        """Value of a measure at a point."""
        return float(self.values[measure][point])

    def interval(self, measure: str, point: int, other: int | None = None) -> list[float] | None:
        """95 % over documents of a measure, or of its difference from that of another point."""
        scores = self.scores[measure]
        if (~np.isnan(scores.values[point])).sum() < MIN_DOCUMENTS:
            return None
        if measure not in self._drawn:
            self._drawn[measure] = scores.over(self.counts)  # (resamples, points)
        value, drawn = self.values[measure][point], self._drawn[measure][:, point]
        if other is not None:
            value = value - self.values[measure][other]
            drawn = drawn - self._drawn[measure][:, other]
        found = None if np.isnan(value) else percentile_interval(float(value), drawn)
        return None if found is None else list(found)

    def best(self, method: str, measure: str) -> int:
        """Number of the point of a sweep with the highest value, of equals the sparsest."""
        return max(self.layout.sweep(method)[::-1], key=lambda i: self.value(measure, i))

    def spread(self, method: str, measure: str) -> float:
        """Highest minus lowest value on a sweep."""
        values = [self.value(measure, i) for i in self.layout.sweep(method)]
        return max(values) - min(values)

    def regime(self, point: int) -> Regime:
        """Name the density of a point."""
        return regime(self.value("bor", point))

    def failure_mode(self, measure: str, point: int) -> str:
        """Failure mode of a point (Coen's Table 2)."""
        w_f1, bor, purity, coverage = (
            self.value(each, point) for each in (measure, "bor", "purity", "coverage")
        )
        return failure_mode(w_f1, bor, purity, coverage).label
