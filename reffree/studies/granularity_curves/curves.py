"""Curves of expected errors along the assumed number of segments, and where they cross."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import GOLD, Corpus
from reffree.data.masses import mass_matrix
from reffree.evaluate.scores import Scores
from reffree.evaluate.table import CorpusScore
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.expected import FEWEST_UNITS, Expected
from reffree.metrics.free.posterior import FEWEST, assumed_segments, most_segments
from reffree.metrics.registry import spelling
from reffree.statistics.resampling import DocumentBootstrap
from reffree.util.arrays import Floats

POINTS = 12
"""Assumed numbers of segments at which all systems are compared."""

LOW, HIGH_AT_LEAST, UNITS_AT_MOST = 2.0, 4.0, 3.0
"""The numbers go from 2 segments a document to one in three units, 4 in short documents."""

HALVINGS = 60


@dataclass(frozen=True, slots=True)
class AssumedSegments:
    r"""Numbers of segments that annotators are assumed to make.

    A number is a mean over the documents of at least three units. Documents have their parts of it
    in proportion to the numbers :math:`p_d` that the metric would assume for them
    (`assumed_segments`: more for more units):

    .. math:: K_d = \min(\max(c \, p_d, 1.02), m_d - 0.5), \quad \overline{K_d} = number,

    with one factor :math:`c` for all, and :math:`m_d` the steps of a document, mostly its units.
    First come `POINTS` numbers, evenly spaced in the logarithm, from 2 to a third of the units;
    then the number of segments that each system has; then gold's, where there is gold. One that no
    :math:`c` gives is taken to be the nearest that one does.
    """

    numbers: Floats  # (x,) segments per document
    of_documents: Floats  # (x, documents) NaN where too short
    is_defined: NDArray[np.bool_]  # (documents,)
    gold: float | None  # segments per document that has gold

    @classmethod
    def of(cls, corpus: Corpus, length: float | None) -> AssumedSegments:
        """Lay out the numbers for a corpus with at least one document that is long enough."""
        units = np.array([len(document.units) for document in corpus], dtype=np.float64)
        is_defined = units >= FEWEST_UNITS
        most = np.array([most_segments(int(n)) for n in units])[is_defined]
        share = np.array([assumed_segments(int(n), length)[0] for n in units])[is_defined]
        highest = max(
            float(np.minimum(units[is_defined] / UNITS_AT_MOST, most).mean()),
            min(HIGH_AT_LEAST, float(most.mean())),
        )
        own = [
            float(np.mean([len(s) for s, kept in zip(each, is_defined, strict=True) if kept]))
            for each in corpus.hypotheses.values()
        ]
        golds = [
            float(np.mean([len(each) for each in document.references]))
            for document, kept in zip(corpus, is_defined, strict=True)
            if kept and document.references
        ]
        gold = float(np.mean(golds)) if golds else None
        grid = np.geomspace(min(LOW, highest / 2), highest, POINTS)
        numbers = np.array([*grid, *own, *([] if gold is None else [gold])])
        of_documents = np.full((len(numbers), len(units)), np.nan)
        of_documents[:, is_defined] = [parts_of(number, share, most) for number in numbers]
        return cls(numbers, of_documents, is_defined, gold)


def gold_name(metric: Expected) -> str:
    """Name of the gold-based metric whose expectation a metric is."""
    return metric.name.removeprefix("expected_")


def parts_of(number: float, share: Floats, most: Floats) -> Floats:
    """Numbers of segments of documents: in proportion to ``share``, within bounds, of that mean.

    >>> parts_of(3.0, np.array([1.0, 2.0]), np.array([50.0, 50.0])).round(6).tolist()
    [2.0, 4.0]
    >>> parts_of(3.0, np.array([1.0, 2.0]), np.array([50.0, 3.5])).round(6).tolist()
    [2.5, 3.5]
    """
    low, high = np.log(FEWEST / share.max()), np.log((most / share).max())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if np.clip(np.exp(middle) * share, FEWEST, most).mean() < number:
            low = middle
        else:
            high = middle
    parts: Floats = np.clip(np.exp(high) * share, FEWEST, most)
    return parts


@dataclass(frozen=True, slots=True)
class BestStretch:
    """A stretch of the grid, its ends included, on which one system is the best."""

    system: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two curves that cross: one system is the better below, another above.

    ``clear_to`` and ``clear_from`` are the numbers up to which, and from which on, the interval of
    the paired difference leaves zero out; None where it never does.
    """

    below: str
    above: str
    at: float
    start: float  # of the stretch on which the first is the best
    end: float  # of that on which the second is
    clear_to: float | None
    clear_from: float | None
    are_adjacent: bool  # whether no number of the grid lies between the two


@dataclass(frozen=True)
class GranularityCurves:
    """One metric of all systems of a corpus, over assumed numbers of segments."""

    corpus_name: str
    metric: Expected
    corpus: Corpus
    assumed: AssumedSegments
    values: Floats  # (x, systems, documents)
    overall: Floats  # (systems, documents) of the metric as it is
    span: Floats  # (3, documents) fewest, mean and most segments that the metric assumes
    against_gold: Scores | None  # by the metrics whose expectations these are
    bootstrap: DocumentBootstrap

    @classmethod
    def of(
        cls,
        corpus_name: str,
        metric: Expected,
        corpus: Corpus,
        vectors: Sequence[NDArray[np.generic]],
        read: Sequence[Reading],
        against_gold: Scores | None,
        bootstrap: DocumentBootstrap,
        advance: Callable[[int], None],
    ) -> GranularityCurves:
        """Score every system of every document by its posterior; NaN where it is too short."""
        assumed = AssumedSegments.of(corpus, metric.length)
        n_systems, n_documents = len(corpus.hypotheses), len(corpus)
        values = np.full((len(assumed.numbers), n_systems, n_documents), np.nan)
        overall = np.full((n_systems, n_documents), np.nan)
        span = np.full((3, n_documents), np.nan)
        for d in range(n_documents):
            if assumed.is_defined[d]:
                masses = mass_matrix([each[d] for each in corpus.hypotheses.values()], None)
                posterior = metric.posterior(vectors[d], read[d])
                overall[:, d] = metric.scores(posterior, masses)
                segments = [node.segments for node in posterior.nodes]
                span[:, d] = min(segments), posterior.segments, max(segments)
                for i, number in enumerate(assumed.of_documents[:, d]):
                    values[i, :, d] = metric.scores(posterior.at(number), masses)
            advance(1)
        return cls(
            corpus_name, metric, corpus, assumed, values, overall, span, against_gold, bootstrap
        )

    @property
    def metric_name(self) -> str:
        """The metric with its options."""
        return spelling(self.metric)

    @property
    def systems(self) -> list[str]:
        """Their names, gold first where every document has it."""
        return list(self.corpus.hypotheses)

    @property
    def rivals(self) -> list[int]:
        """Systems among which the best is looked for: gold is none of them."""
        return [s for s, name in enumerate(self.systems) if name != GOLD]

    @property
    def grid(self) -> Floats:
        """Numbers of segments at which systems are compared."""
        return self.assumed.numbers[:POINTS]

    @property
    def own_numbers(self) -> Floats:
        """Segments per document of every system."""
        return self.assumed.numbers[POINTS : POINTS + len(self.systems)]

    @cached_property
    def means(self) -> Floats:
        """Mean over documents: (x, systems)."""
        means: Floats = np.nanmean(self.values, axis=2)
        return means

    @property
    def mean_span(self) -> list[float]:
        """Fewest, mean and most segments a document that the metric assumes."""
        return [float(np.nanmean(row)) for row in self.span]

    @property
    def losses(self) -> Floats:
        """Means turned so that lower is better."""
        return self.means * self.metric.orientation.slope

    def real(self, system: int) -> CorpusScore | None:
        """Score of a system against gold, where there is gold."""
        if self.against_gold is None:
            return None
        return self.against_gold.corpus_score(gold_name(self.metric), system, self.bootstrap)

    def interval(self, at: int, system: int) -> tuple[float, float] | None:
        """95 % over documents of a system at a number of segments."""
        return self.bootstrap.interval(float(self.means[at, system]), self.values[at, system])

    def own(self, system: int) -> int:
        """Place of a system's own number of segments among the numbers."""
        return POINTS + system

    def best(self, at: int) -> int | None:
        """System with the lowest loss at a number of segments; None without systems but gold."""
        return min(self.rivals, key=lambda s: float(self.losses[at, s]), default=None)

    def is_clear(self, at: int, better: int, worse: int) -> bool:
        """Whether the interval of the paired difference over documents says that one is better."""
        slope = self.metric.orientation.slope
        difference = slope * (self.values[at, better] - self.values[at, worse])
        interval = self.bootstrap.interval(float(np.nanmean(difference)), difference)
        return interval is not None and interval[1] < 0

    @cached_property
    def runs(self) -> list[BestStretch]:
        """Stretches of the grid by the system that is best there.

        One between two others that is nowhere clearly better than either of them is left out.
        """
        winners = [self.best(g) for g in range(POINTS)] if self.rivals else []
        places = groupby(range(len(winners)), key=lambda g: winners[g])
        stretches = [(system, list(part)) for system, part in places]
        runs = [BestStretch(s, part[0], part[-1]) for s, part in stretches if s is not None]
        while True:
            kept = _joined([run for i, run in enumerate(runs) if not self._is_passing(runs, i)])
            if len(kept) == len(runs):
                return runs
            runs = kept

    def _is_passing(self, runs: list[BestStretch], i: int) -> bool:
        if i in (0, len(runs) - 1):
            return False
        run = runs[i]
        return not any(
            self.is_clear(g, run.system, runs[j].system)
            for j in (i - 1, i + 1)
            for g in range(run.first, run.last + 1)
        )

    @cached_property
    def crossings(self) -> list[Crossing]:
        """Where the best system changes, from few segments to many."""
        return [self._crossing(*pair) for pair in zip(self.runs, self.runs[1:], strict=False)]

    def _crossing(self, a: BestStretch, b: BestStretch) -> Crossing:
        clear_a = [g for g in range(a.first, a.last + 1) if self.is_clear(g, a.system, b.system)]
        clear_b = [g for g in range(b.first, b.last + 1) if self.is_clear(g, b.system, a.system)]
        between = range(a.last, b.first + 1)
        gaps = np.array([self.losses[g, a.system] - self.losses[g, b.system] for g in between])
        logs = np.log(self.grid[a.last : b.first + 1])
        after = int(np.flatnonzero(gaps > 0)[0]) if (gaps > 0).any() else len(gaps) - 1
        rise = gaps[after] - gaps[after - 1]
        part = -gaps[after - 1] / rise if rise > 0 else 0.5
        at = np.exp(logs[after - 1] + part * (logs[after] - logs[after - 1]))
        return Crossing(
            below=self.systems[a.system],
            above=self.systems[b.system],
            at=float(at),
            start=float(self.grid[a.first]),
            end=float(self.grid[b.last]),
            clear_to=float(self.grid[clear_a[-1]]) if clear_a else None,
            clear_from=float(self.grid[clear_b[0]]) if clear_b else None,
            are_adjacent=bool(clear_a and clear_b) and clear_b[0] - clear_a[-1] == 1,
        )


def _joined(runs: list[BestStretch]) -> list[BestStretch]:
    """Make one of neighbours that are of one system."""
    joined: list[BestStretch] = []
    for run in runs:
        if joined and joined[-1].system == run.system:
            joined[-1] = BestStretch(run.system, joined[-1].first, run.last)
        else:
            joined.append(run)
    return joined
