"""Expected errors: what a gold-based metric would say, without gold.

The distribution of `posterior` stands for a crowd of annotators, and the expectation of a
gold-based metric over the crowd is a score in the metric's own unit and direction that punishes too
many boundaries and too few (docs/definitions.md, Expected errors). Pk has a closed form; the others
are means over seeded draws, the same for all hypotheses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from reffree.data.masses import Masses
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.posterior import Posterior, PosteriorFacts
from reffree.metrics.free.result import UNUSUAL, FreeMetric, Orientation, Pool, RawScores, pool_name
from reffree.metrics.gold.boundary_edits import BoundarySimilarity
from reffree.metrics.gold.granularity import WF1
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.gold.pairs import Pairs
from reffree.metrics.gold.windows import Pk, WindowDiff, Windowed
from reffree.util.arrays import Floats
from reffree.util.bounds import Bounds
from reffree.util.errors import InputError, shorten, visible
from reffree.util.seeds import rng_for

EVIDENCE = ("all", "embedding", "words", "cues")
"""Named sources; ``scorer:FOLDER`` is another."""

Source = Literal["vectors", "words", "cues"]
"""What systems may have read, and ``without=`` leaves out."""

FEWEST_UNITS = 3
"""Of a document with an expected error."""

INFORMED = 1.25
"""A corpus says something if its information is more than this many times what its units in random
order would give. Of 96 corpora of 8 to 20 documents with shuffled units, 95 % stay below 1.16 times
(both sources), 1.14 (embedding) and 1.21 (words); eight corpora as they are have 1.4 to 4.3."""

PAIRS = 1 << 18
"""Hypotheses × draws compared at a time."""

ERROR = Orientation(offset=0.0, slope=1.0, neutral=None, worst=1.0, in_own_unit=True)
AGREEMENT = Orientation(
    offset=1.0, slope=-1.0, neutral=None, worst=0.0, in_own_unit=True, direction="higher"
)


@dataclass(frozen=True, slots=True)
class Expected(FreeMetric):
    """What all expected metrics share.

    ``length`` is the number of units a segment is expected to have, where it is known. ``evidence``
    names what the posterior rests on: ``embedding``, ``words``, ``cues`` (questions, pronouns,
    connectives), a boundary scorer trained by ``reffree train scorer`` (``scorer:FOLDER``), or
    ``all`` that is at hand; ``without`` leaves one of them out, as a system that has read it cannot
    be judged by it. ``draws`` are those of the spread, and of all but Pk itself.
    """

    orientation: ClassVar[Orientation]
    name: ClassVar[str]
    undefined: ClassVar[str] = "fewer than three units"
    gold: ClassVar[type[GoldMetric]]  # the metric whose expectation this is

    length: Annotated[
        float | None, Bounds(1, remedy="write length=12 for segments of about twelve units")
    ] = None
    evidence: str = "all"
    draws: Annotated[int, Bounds(1, 100_000, remedy="leave it out for 200")] = 200
    seed: int = field(default=0, metadata={"option": False})
    pool_d: Pool = field(default="mean", metadata=UNUSUAL)
    without: Source | None = field(default=None, metadata=UNUSUAL)

    @property
    def aggregation(self) -> str:
        """How documents become the corpus's score."""
        return f"{pool_name(self.pool_d)}(documents)"

    def __post_init__(self) -> None:
        """Refuse lengths, draws and sources that cannot be."""
        FreeMetric.__post_init__(self)
        if self.evidence not in EVIDENCE and not self.scorer:
            raise InputError(
                f"evidence={visible(shorten(self.evidence))}",
                expected=", ".join([*EVIDENCE, "scorer:FOLDER"]),
                remedy="leave it out for all that is at hand",
            )
        if self.without and self.evidence != "all":
            raise InputError(
                f"evidence={visible(shorten(self.evidence))} without={self.without}",
                expected="one of the two",
                remedy="without= leaves a source out of all, evidence= takes one alone",
            )

    @property
    def rests_on(self) -> tuple[float | None, str, Source | None]:
        """What its posterior is made of: metrics of which it is the same share one."""
        return self.length, self.evidence, self.without

    @property
    def scorer(self) -> str:
        """Folder of the trained scorer that is asked for, if one is."""
        kind, _, folder = self.evidence.partition(":")
        return folder if kind == "scorer" else ""

    def posterior(self, embeddings: NDArray[np.generic], reading: Reading) -> Posterior:
        """Distribution over the segmentations of a document."""
        needs_text = self.evidence in ("words", "cues") or self.without == "vectors"
        if needs_text and reading.units is None:
            asked = f"evidence={self.evidence}" if self.without is None else "without=vectors"
            raise InputError(
                f"vectors without text for {asked}",
                expected="the text of the units",
                remedy=f"score a corpus, or leave {asked.partition('=')[0]} out",
            )
        if self.scorer and self.scorer not in reading.boundary_probabilities:
            raise InputError(
                f"no scores of {self.scorer}",
                expected="a corpus whose gaps the trained scorer has scored",
                remedy="use reffree score or reffree.score, which run it",
            )
        return Posterior(
            embeddings, reading, length=self.length, evidence=self.evidence, without=self.without
        )

    def gold_metric(self, window: int) -> GoldMetric:
        """Return the metric whose expectation this is, with this window if it has one."""
        return self.gold(k=window) if issubclass(self.gold, Windowed) else self.gold()

    def facts(self, posterior: Posterior) -> PosteriorFacts | None:
        """Return what scores are to be read with; None where there is nothing."""
        return posterior.facts()

    def scores(self, posterior: Posterior, masses: Masses) -> Floats:
        """Expected value for each hypothesis, (h, s) masses; NaN where undefined."""
        return self._moments(posterior, masses)[0]

    def spread(self, posterior: Posterior, masses: Masses) -> Floats:
        """Standard deviation over draws for each hypothesis: how far annotators may disagree."""
        return self._moments(posterior, masses)[1]

    def weighted_scores(self, posterior: Posterior, masses: Masses) -> tuple[Floats, Floats]:
        """Scores, and what the document counts for in the corpus's mean for each hypothesis."""
        weight = posterior.n_units if self.pool_d == "length" else 1.0
        return self.scores(posterior, masses), np.full(len(masses), float(weight))

    def _moments(self, posterior: Posterior, masses: Masses) -> tuple[Floats, Floats]:
        """Mean and standard deviation over draws, which follow from length and seed alone."""
        total, squares = np.zeros(len(masses)), np.zeros(len(masses))
        if not posterior.is_defined:
            return total + np.nan, total + np.nan
        rng = rng_for(self.seed, "expected", posterior.n_units)
        for node, drawn in posterior.draws(self.draws, rng):
            metric = self.gold_metric(node.window)
            step = max(1, PAIRS // len(drawn))
            for start in range(0, len(masses), step):
                part = masses[start : start + step]
                pairs = Pairs(np.repeat(part, len(drawn), axis=0), np.tile(drawn, (len(part), 1)))
                # (h, draws); undefined values count as 0
                values = np.nan_to_num(metric.value(metric.counts(pairs))).reshape(len(part), -1)
                total[start : start + step] += values.sum(1)
                squares[start : start + step] += np.square(values).sum(1)
        mean = total / self.draws
        return mean, np.sqrt(np.maximum(squares / self.draws - mean**2, 0.0))


class ExpectedPk(Expected):
    """Expected Pk. Range [0, 1], lower is better."""

    __slots__ = ()
    name: ClassVar[str] = "expected_pk"
    orientation: ClassVar[Orientation] = ERROR
    gold: ClassVar[type[GoldMetric]] = Pk

    def scores(self, posterior: Posterior, masses: Masses) -> Floats:
        """Expected Pk in closed form."""
        if not posterior.is_defined:
            return np.full(len(masses), np.nan)
        return posterior.expected_pk(masses)


class ExpectedWindowDiff(Expected):
    """Expected WindowDiff. Range [0, 1], lower is better."""

    __slots__ = ()
    name: ClassVar[str] = "expected_windowdiff"
    orientation: ClassVar[Orientation] = ERROR
    gold: ClassVar[type[GoldMetric]] = WindowDiff


class ExpectedBoundarySimilarity(Expected):
    """Expected boundary similarity B. Range [0, 1], higher is better."""

    __slots__ = ()
    name: ClassVar[str] = "expected_boundary_similarity"
    orientation: ClassVar[Orientation] = AGREEMENT
    gold: ClassVar[type[GoldMetric]] = BoundarySimilarity


class ExpectedWF1(Expected):
    """Expected W-F1. Range [0, 1], higher is better."""

    __slots__ = ()
    name: ClassVar[str] = "expected_w_f1"
    orientation: ClassVar[Orientation] = AGREEMENT
    gold: ClassVar[type[GoldMetric]] = WF1


EXPECTED = (ExpectedPk, ExpectedWindowDiff, ExpectedBoundarySimilarity, ExpectedWF1)


def score_expected(
    embeddings: NDArray[np.generic],
    reading: Reading,
    metrics: Mapping[str, Expected],
    hypotheses: Iterable[Masses],
    progress: Callable[[int], None],
    *,
    keep_spread: bool,
) -> dict[str, RawScores]:
    """Score one document's hypotheses, given a part at a time.

    Metrics that rest on the same share a posterior. Where asked for, spreads and what
    scores are to be read with are kept.
    """
    posteriors: dict[Any, Posterior] = {}
    told: dict[Any, PosteriorFacts | None] = {}
    for metric in metrics.values():
        key = metric.rests_on
        if key not in posteriors:
            posteriors[key] = metric.posterior(embeddings, reading)
        if (key, type(metric).facts) not in told:
            told[key, type(metric).facts] = metric.facts(posteriors[key]) if keep_spread else None
    parts: dict[str, list[tuple[Floats, Floats, Floats]]] = {name: [] for name in metrics}
    for masses in hypotheses:
        for name, metric in metrics.items():
            posterior = posteriors[metric.rests_on]
            spread = metric.spread(posterior, masses) if keep_spread else np.empty(0)
            scores, weights = metric.weighted_scores(posterior, masses)
            parts[name].append((scores, weights, spread))
        progress(len(masses))
    scored = {}
    for name, metric in metrics.items():
        values, weights, spread = (np.concatenate(part) for part in zip(*parts[name], strict=True))
        facts = told[metric.rests_on, type(metric).facts]
        none = np.empty((len(values), 0))
        scored[name] = RawScores(values, weights, np.zeros(len(values)), none, spread, facts)
    return scored
