r"""What an annotator's segmentation of a document may be: a distribution over all of them.

For an assumed number of segments :math:`K`,

.. math:: P_K(S) \propto \prod_{segments} w \, L \, e^{evidence},

with the weight :math:`w` chosen so that :math:`K` segments are expected. The factor :math:`L`, a
segment's length, makes lengths more even than independent boundaries would (a Dirichlet
distribution with parameter 2; maximum likelihood on gold gives 0.7 for meetings, 1 for articles, 2
for chats and stories, 12 for Choi's artificial texts).

Topics nest, and how finely annotators cut is hardly in the text. So :math:`K` is an axis: scores
are averaged over `NODES`. Without a ``length`` these spread around
:math:`\exp(0.66 + 0.25 \log n)`, the mean number of segments of :math:`n` units in 15 public
corpora, with their standard deviation of 0.40 in the logarithm; the gain of the embedding at each
:math:`K` (`evidence`) counts with the weight `COUNT_EVIDENCE`. With a ``length`` they lie around
:math:`1 + (n - 1)/length`, with a standard deviation of 0.2.
"""

from __future__ import annotations

import math
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats, Integers
from reffree.masses import Masses, masses_from_gaps
from reffree.scoring.evidence import (
    Coherence,
    Reading,
    embedding_coherence,
    scorer_evidence,
    step_edges,
    word_coherence,
)
from reffree.scoring.fast.segmentations import (
    backward,
    draw_ends,
    expected_disagreement,
    forward,
    forward_without_evidence,
    least_disagreement,
    segment_sums,
    weight_for,
)

NODES = (-1.8, -1.2, -0.6, 0.0, 0.6, 1.2, 1.8)
"""Standard deviations from the assumed number of segments at which it is considered."""

INTERCEPT, SLOPE, SPREAD = 0.66, 0.25, 0.40
"""Of the log number of segments in the log number of units: 15 public corpora."""

SPREAD_OF_LENGTH = 0.2
"""Standard deviation of the log number of segments where a length is given."""

COUNT_EVIDENCE = 0.35
"""What the embedding's gain counts for among numbers of segments. It sees every level of topics, so
at full weight it chooses the finest; at none, clear cases such as Choi's texts are not seen. Of
0.1, 0.2, 0.3 and 0.4, correlations with Pk on any four of five corpora chose 0.3 or 0.4 (before
the part of long segments in `evidence` was settled); the value lies between."""

FEWEST = 1.02
"""The least number of segments that is considered: almost surely one."""


def assumed_segments(n_units: int, length: float | None) -> tuple[float, float]:
    """Segments that a document is assumed to have, and their standard deviation in the log."""
    if length is not None:
        return 1 + (n_units - 1) / length, SPREAD_OF_LENGTH
    return math.exp(INTERCEPT + SLOPE * math.log(n_units)), SPREAD


def most_segments(n_units: int) -> float:
    """The largest number of segments that is considered: almost surely every step is one."""
    return max(FEWEST, len(step_edges(n_units)) - 1.5)


class Node(NamedTuple):
    """The distribution over segmentations at one assumed number of segments."""

    segments: float  # expected
    weight: float  # of this node among all
    window: int  # of Pk and WindowDiff: half the mean segment
    boundaries: Floats  # (m - 1,) probability of each boundary between steps
    shared: Floats  # (n - window,) probability that units u and u + window share a segment
    information: float  # nats gained over the prior, in all
    log_weight: float


class PosteriorFacts(NamedTuple):
    """What a score that rests on a posterior is to be read with."""

    information: float  # nats that the document adds to the prior, per expected boundary
    chance_information: float  # nats that its steps in random order would add
    segments: float  # assumed


class Posterior:
    """P(S | document), for several assumed numbers of segments."""

    def __init__(
        self,
        embeddings: NDArray[np.generic],
        reading: Reading,
        *,
        length: float | None = None,
        evidence: str = "all",
        order: Integers | None = None,
    ) -> None:
        """Take the evidence that is named and at hand; ``all`` of a bare document is its vectors.

        Args:
            embeddings: one row per unit.
            reading: the text, and what trained scorers say.
            length: expected units per segment.
            evidence: ``embedding``, ``words``, ``scorer:FOLDER`` or ``all``.
            order: to put the steps in, their evidence tempered as in their own order: what there
                is to be found by chance.
        """
        self.n_units = len(embeddings)
        self.edges = step_edges(self.n_units)
        self._log_length = np.log(np.arange(1, len(self.edges)))
        kind, _, folder = evidence.partition(":")
        vectors = words = None
        if kind in ("all", "embedding"):
            vectors = embedding_coherence(embeddings, order)
        if kind in ("all", "words") and reading.units is not None:
            words = word_coherence(reading.units, order)
        self._coherences = [source for source in (vectors, words) if source is not None]
        known = reading.boundary_probabilities
        scorers = list(known.values()) if kind == "all" else [known[folder]] if folder else []
        odds = sum(
            (scorer_evidence(p, self.n_units) for p in scorers),
            start=np.zeros(len(self.edges) - 1),
        )
        self._log_odds = odds if order is None else odds[order]
        centre, spread = assumed_segments(self.n_units, length)
        counts = vectors if length is None else None
        self._take(self._make_nodes(counts, centre, spread, NODES))

    def at(self, segments: float) -> Posterior:
        """Return the same evidence at one assumed number of segments, without a prior of it.

        The number is taken to be at least `FEWEST`, and half a step below that of all steps at
        most.
        """
        alone = copy(self)
        alone._take(self._make_nodes(None, segments, 0.0, (0.0,)))
        return alone

    def _take(self, nodes: list[Node]) -> None:
        """Keep the distributions, and what follows from them."""
        self.nodes = nodes
        self.weights = np.array([node.weight for node in nodes])
        # Probability of a boundary in each of the n - 1 gaps; 0 inside a step.
        self.boundaries = np.zeros(self.n_units - 1)
        # What expected Pk is made of: see `expected_disagreement`.
        sums = np.zeros((len(nodes), self.n_units + 2))
        for row, node in zip(sums, nodes, strict=True):
            self.boundaries[self.edges[1:-1] - 1] += node.weight * node.boundaries
            row[1 : len(node.shared) + 1] = np.cumsum(1 - 2 * node.shared)
            row[-1] = node.shared.mean()
        windows = np.array([node.window for node in nodes], dtype=np.int64)
        self._window_sums = sums, windows, self.weights

    @property
    def is_defined(self) -> bool:
        """Whether any window fits into the document."""
        return bool(self.nodes)

    @property
    def segments(self) -> float:
        """Assumed number of segments: its mean in the logarithm."""
        logs = np.log([node.segments for node in self.nodes])
        return float(np.exp(self.weights @ logs))

    @property
    def information(self) -> float:
        """Nats that the document adds to the prior, per expected boundary."""
        return float(sum(n.weight * n.information / max(n.segments - 1, 1e-9) for n in self.nodes))

    def expected_pk(self, masses: Masses) -> Floats:
        """Expected Pk of every hypothesis, (h, s) masses padded with zeros."""
        rows = np.ascontiguousarray(masses, dtype=np.int64)
        scores: Floats = expected_disagreement(rows, *self._window_sums)
        return scores

    def best(self) -> Integers:
        """Masses of the segmentation with the least expected Pk."""
        found: Integers = least_disagreement(self.edges, *self._window_sums)
        return found

    def draws(self, count: int, rng: np.random.Generator) -> list[tuple[Node, Masses]]:
        """Draw segmentations: nodes by their weight, evenly, and (draws, s) masses from each."""
        reached = np.cumsum(self.weights)
        node_of = np.searchsorted(reached, (np.arange(count) + 0.5) / count * reached[-1])
        m = len(self.edges) - 1
        uniform = rng.random((count, m))
        sums = np.empty(m + 1)
        drawn = []
        for which, node in enumerate(self.nodes):
            rows = uniform[node_of == which]
            if len(rows):
                table = self._evidence(node.segments) + self._log_length
                forward(table, node.log_weight, sums)
                ends = draw_ends(table, sums, rows)
                gaps = np.zeros((len(rows), self.n_units - 1), dtype=np.bool_)
                gaps[:, self.edges[1:-1] - 1] = ends[:, :-1]
                drawn.append((node, masses_from_gaps(gaps)))
        return drawn

    def _evidence(self, segments: float) -> Floats:
        """Evidence of all sources, tempered for an assumed number of segments."""
        m = len(self.edges) - 1
        total = np.zeros((m, m)) + self._log_odds[:, None]
        for source in self._coherences:
            total += source.evidence(m / segments)
        return total

    def _make_nodes(
        self,
        counts: Coherence | None,
        centre: float,
        spread: float,
        deviations: tuple[float, ...],
    ) -> list[Node]:
        """Distributions at several standard deviations from the centre, in the logarithm.

        ``counts`` is the source whose gains say how many segments there are, if any does.
        """
        n, m = self.n_units, len(self.edges) - 1
        if m < 2:
            return []
        made: list[Node] = []
        scores: list[float] = []
        guess = prior_guess = gain_guess = 0.0
        none = np.empty((m, 0))
        sums = np.empty(m + 1)
        for z in deviations:
            segments = min(max(centre * math.exp(spread * z), FEWEST), most_segments(n))
            window = max(2, round(n / segments / 2))
            if window >= n:
                continue
            prior_guess = weight_for(none, segments, prior_guess, sums)
            prior = forward_without_evidence(m, prior_guess)
            score = -(z**2) / 2
            if counts is not None:
                gains = counts.gain(m / segments) + self._log_length
                gain_guess = weight_for(gains, segments, gain_guess, sums)
                found = forward(gains, gain_guess, sums)
                score += COUNT_EVIDENCE * (
                    _log_share(found, gain_guess) - _log_share(prior, prior_guess)
                )
            evidence = self._evidence(segments)
            guess = weight_for(evidence + self._log_length, segments, guess, sums)
            made.append(self._node(evidence, segments, window, guess, prior, prior_guess))
            scores.append(score)
        weights = np.exp(np.array(scores) - max(scores, default=0.0))
        weights /= weights.sum() if len(made) else 1.0
        return [node._replace(weight=float(w)) for node, w in zip(made, weights, strict=True)]

    def _node(
        self,
        evidence: Floats,
        segments: float,
        window: int,
        log_weight: float,
        prior: tuple[float, float, float],
        prior_weight: float,
    ) -> Node:
        m = len(self.edges) - 1
        before, after = np.empty(m + 1), np.empty(m + 1)
        table = evidence + self._log_length
        total, mean, _ = forward(table, log_weight, before)
        backward(table, log_weight, after)
        # Units a window apart are one of two numbers of steps apart.
        size = int(self.edges[1])
        lags = np.array([window // size, window // size + 1])
        boundary, shared, expected = segment_sums(table, evidence, log_weight, before, after, lags)
        first = np.arange(self.n_units - window)
        lag = (first + window) // size - first // size
        information = expected + (log_weight - prior_weight) * mean - (total - prior[0])
        return Node(
            segments=segments,
            weight=0.0,
            window=window,
            boundaries=boundary[:-1],
            shared=np.where(lag == 0, 1.0, shared[(lag == lags[1]).astype(int), first // size]),
            information=max(float(information), 0.0),
            log_weight=log_weight,
        )


def _log_share(found: tuple[float, float, float], log_weight: float) -> float:
    """Log of the sum over segmentations of just the expected number of segments (saddle point)."""
    total, mean, variance = found
    return total - mean * log_weight - 0.5 * math.log(max(variance, 0.05))
