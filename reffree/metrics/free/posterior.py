"""What an annotator's segmentation of a document may be: a distribution over all of them.

The formulas are in docs/definitions.md (Expected errors). The factor ``L`` of a segment's length is
that of a Dirichlet distribution with parameter 2; maximum likelihood on gold gives 0.7 for
meetings, 1 for articles, 2 for chats and stories, 12 for Choi's artificial texts.

The weights were chosen on twelve corpora (those of ``benchmarks/truth.py``) by correlation with Pk
over systems that read no vectors, that seek coherence in them, and all. Vectors were tried at 0.35
to 1, words at 1 to 3, gains at 0.2 to 1: of most of these the mean correlation lies between .845
and .857. `LEVEL_STEPS` and `SPREAD` were chosen on eighteen, some spliced from these: tried were
deviations of 0.4 to 0.8 and steps of 8 to 30. `TALK` was tried at 0, 0.2 and 0.3 on Wikipedia
articles, chats, meetings and Choi's texts: of 15 units 4.6 segments instead of 3.8 are best for
chats, and as many for articles cost them .03.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reffree.data.masses import Masses, masses_from_gaps
from reffree.metrics.free.cues import cue_evidence, share_of_talk
from reffree.metrics.free.evidence import (
    Coherence,
    Reading,
    embedding_coherence,
    scorer_evidence,
    step_edges,
    step_odds,
    word_coherence,
)
from reffree.metrics.free.fast.segmentations import (
    draw_ends,
    expected_disagreement,
    forward,
    inside_over_orders,
    least_disagreement,
    least_of_counts,
    segment_sums,
    weight_for,
)
from reffree.util.arrays import Floats, Integers
from reffree.util.seeds import rng_for

NODES = (-1.8, -1.2, -0.6, 0.0, 0.6, 1.2, 1.8)
"""Standard deviations from the assumed number of segments at which it is considered."""

LEVELS = (NODES[0], NODES[3], NODES[-1])
"""Those at which the sources are asked for the number of segments."""

INTERCEPT, SLOPE, TALK, SPREAD = 0.66, 0.25, 0.20, 0.50
"""Of the log number of segments in the log number of units, and in the share of talk."""

SPREAD_OF_LENGTH = 0.2
"""Standard deviation of the log number of segments where a length is given."""

VECTORS_BESIDE_TEXT, WORDS = 0.6, 1.5
"""What sources count for. Vectors alone, cues and trained scorers count in full."""

STEPS_BY_CHANCE = 900
"""Steps in all the random orders that a document is compared with: three orders at most, one at
least."""

LEVEL_STEPS = 20
"""Gains of longer documents count as of so many steps among numbers of segments."""

STEPS_OF_MANY, POWER_OF_MANY, GAIN_OF_MANY, STEEPNESS = 8, 0.88, 0.25, 60.0
"""A chain of many short texts is taken to have a segment in eight steps. What its segments gain
grows with their number (power 0.94 to 1.13 in chains of Choi's texts, 0.75 to 1.06 of chats); one
long text has its own coarse topics, and so many segments gain little more than few (0.16 to 0.90 in
manuals, but for one of 34 sections, handbooks, novels, meetings, articles). Both are as likely at
`POWER_OF_MANY`, and a chain is less likely where its segments gain less than `GAIN_OF_MANY` nats a
step."""

FACTOR_OF_MANY = 3.0
"""Fewer than so many times the segments assumed are no more than the text's own range."""

NODES_OF_MANY = (-1.2, 0.0, 1.2)
"""Standard deviations from that number at which such a chain is considered."""

LEAST_ODDS = 0.01
"""Below these a chain is not considered."""

FEWEST = 1.02
"""The least number of segments that is considered: almost surely one."""


def assumed_segments(n_units: int, length: float | None, talk: float = 0.0) -> tuple[float, float]:
    """Segments that a document is assumed to have, and their standard deviation in the log.

    Args:
        n_units: of the document.
        length: units a segment, if that is known.
        talk: how much of a conversation it is (`share_of_talk`): people cut talk more finely.
    """
    if length is not None:
        return 1 + (n_units - 1) / length, SPREAD_OF_LENGTH
    return math.exp(INTERCEPT + SLOPE * math.log(n_units) + TALK * talk), SPREAD


def most_segments(n_units: int) -> float:
    """The largest number of segments that is considered: almost surely every step is one."""
    return max(FEWEST, len(step_edges(n_units)) - 1.5)


class Node(NamedTuple):
    """The distribution over segmentations at one assumed number of segments."""

    segments: float  # expected
    deviation: float  # from the number that is likeliest beforehand, in standard deviations
    weight: float  # of this node among all
    window: int  # of Pk and WindowDiff: half the mean segment
    boundaries: Floats  # (m - 1,) probability of each boundary between steps
    shared: Floats  # (n - window,) probability that units u and u + window share a segment
    log_weight: float


class PosteriorFacts(NamedTuple):
    """What a score that rests on a posterior is to be read with."""

    information: float  # nats that vectors and words add to the prior, per expected boundary
    chance_information: float  # nats that they would add were the steps in a random order
    segments: float  # assumed
    fewest: float = math.nan  # segments that the text allows
    most: float = math.nan


class WeighedCoherence(NamedTuple):
    """What vectors or words see in a document, and in its steps in random orders."""

    name: str
    weight: float
    own: Coherence
    by_chance: tuple[Coherence, ...]


class Posterior:
    """P(S | document), for several assumed numbers of segments."""

    def __init__(
        self,
        embeddings: NDArray[np.generic],
        reading: Reading,
        *,
        length: float | None = None,
        evidence: str = "all",
        without: str | None = None,
    ) -> None:
        """Take the evidence that is named and at hand; ``all`` of a bare document is its vectors.

        Args:
            embeddings: one row per unit.
            reading: the text, and what trained scorers say.
            length: expected units per segment.
            evidence: ``embedding``, ``words``, ``cues``, ``scorer:FOLDER`` or ``all``.
            without: ``vectors`` (and the trained scorers that read them), ``words`` or ``cues``,
                which then say how many segments there are, and nothing of where.
        """
        self.n_units, self.units = len(embeddings), reading.units
        self._rooms: dict[int, tuple[Posterior, float]] = {}
        self._chances: dict[bytes, float] = {}
        self.edges = step_edges(self.n_units)
        m = len(self.edges) - 1
        self._log_length = np.log(np.arange(1, m + 1))
        # Room for the table of what segments weigh, and for what `weight_for` makes of it.
        self._tables = np.empty((m, m)), np.empty((m, m))
        rng = rng_for(0, "by chance", self.n_units)
        self.orders = [rng.permutation(m) for _ in range(max(1, min(3, STEPS_BY_CHANCE // m)))]
        kind, _, folder = evidence.partition(":")
        text = None if kind in ("embedding", "scorer") else reading.units
        found = []
        if kind in ("all", "embedding"):
            weight = 1.0 if text is None else VECTORS_BESIDE_TEXT
            found.append(("vectors", weight, embedding_coherence(embeddings)))
        if kind in ("all", "words") and text is not None:
            found.append(("words", WORDS, word_coherence(text)))
        self._sources = [
            WeighedCoherence(
                name,
                0.0 if name == without else weight,
                own,
                tuple(own.reordered(order) for order in self.orders),
            )
            for name, weight, own in found
            if own is not None
        ]
        self._log_odds = np.zeros(m)
        talk = 0.0
        if kind in ("all", "cues") and text is not None:
            talk = share_of_talk(text)
            if without != "cues":
                self._log_odds += step_odds(cue_evidence(text), self.n_units)
        known = {} if without == "vectors" else reading.boundary_probabilities
        for p in known.values() if kind == "all" else [known[folder]] if folder else []:
            self._log_odds += scorer_evidence(p, self.n_units)
        centre, spread = assumed_segments(self.n_units, length, talk)
        nodes = self._make_nodes(centre, spread, NODES)
        self._take(self._weighed(nodes, centre, spread) if length is None else nodes)

    def at(self, segments: float) -> Posterior:
        """Return the same evidence at one assumed number of segments, without a prior of it.

        The number is taken to be at least `FEWEST`, and half a step below that of all steps at
        most.
        """
        alone = copy(self)
        alone._chances = {}
        alone._take(self._make_nodes(segments, 0.0, (0.0,)))
        return alone

    def read_by(self, *sources: str) -> Posterior | None:
        """Return what some of the sources alone say of where, at the number that all suggest.

        None where they say nothing. Whatever `room_at` is asked for stays at that number.
        """
        alone = copy(self)
        alone._rooms = {}
        alone._sources = [source for source in self._sources if source.name in sources]
        if "cues" not in sources:
            alone._log_odds = np.zeros_like(self._log_odds)
        has_said = bool(alone._sources) or bool(alone._log_odds.any())
        return alone.at(self.segments) if has_said and self.is_defined else None

    def room_at(self, count: int) -> tuple[Posterior, float]:
        """Return the evidence at a number of segments, and the least expected Pk of so many.

        The least is infinite where the steps of a long document are fewer.
        """
        if count not in self._rooms:
            at = self if len(self.nodes) == 1 else self.at(count)
            least = math.inf
            if at.is_defined:
                (node,) = at.nodes
                (sums,), _, _ = at._window_sums
                n_windows = self.n_units - node.window
                costs = sums[: n_windows + 1]
                least = least_of_counts(self.edges, costs, node.window, count)[count] / n_windows
            self._rooms[count] = at, least + (at._window_sums[0][0, -1] if at.is_defined else 0.0)
        return self._rooms[count]

    def mean_over_orders(self, lengths: Masses, points: Floats, weights: Floats) -> float:
        """Mean expected Pk of segments of these lengths over all their orders, at one number.

        ``points`` and ``weights`` are Gauss's rule up to 1/2: see `inside_over_orders`.
        """
        key = lengths.tobytes()
        if key not in self._chances:
            (sums,), (window,), _ = self._window_sums
            n_windows = self.n_units - window
            inside = inside_over_orders(lengths, points, weights, sums[: n_windows + 1], window)
            self._chances[key] = inside / n_windows + sums[-1]
        return self._chances[key]

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

    def facts(self) -> PosteriorFacts | None:
        """What to read scores with; None where there are none."""
        if not self.is_defined:
            return None
        segments = self.segments
        if not any(source.weight for source in self._sources):
            return PosteriorFacts(self._information(self._table(segments)), 0.0, segments)
        odds = np.zeros_like(self._log_odds)
        every = zip(*((each.own, *each.by_chance) for each in self._sources), strict=True)
        own, *by_chance = [
            self._information(self._table_of(segments, odds, coherences)) for coherences in every
        ]
        return PosteriorFacts(own, float(np.mean(by_chance)), segments)

    def _table(self, segments: float) -> Floats:
        """What segments weigh by all sources, tempered for an assumed number of segments."""
        return self._table_of(segments, self._log_odds, [each.own for each in self._sources])

    def _table_of(self, segments: float, odds: Floats, coherences: Sequence[Coherence]) -> Floats:
        """What segments weigh by odds after steps and these coherences of the sources."""
        table: Floats = np.add(odds[:, None], self._log_length, out=self._tables[0])
        for source, coherence in zip(self._sources, coherences, strict=True):
            coherence.add_evidence(table, len(table) / segments, source.weight)
        return table

    def _information(self, table: Floats) -> float:
        """KL of posterior and prior per expected boundary, at the assumed number of segments."""
        segments, m = self.segments, len(self.edges) - 1
        sums, none = np.empty(m + 1), np.empty((m, 0))
        no_lags = np.empty(0, dtype=np.int64)
        prior_weight, prior, *_ = weight_for(none, segments, 0.0, sums, none)
        weight, total, mean, _ = weight_for(table, segments, prior_weight, sums, self._tables[1])
        expected = segment_sums(table, self._log_length, weight, sums, no_lags)[2]
        gained = expected + (weight - prior_weight) * mean - (total - prior)
        return max(float(gained), 0.0) / max(segments - 1, 1e-9)

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
        sums, shares = np.empty(m + 1), self._tables[1]
        drawn = []
        for which, node in enumerate(self.nodes):
            rows = uniform[node_of == which]
            if len(rows):
                table = self._table(node.segments)
                forward(table, node.log_weight, sums, shares)
                ends = draw_ends(shares, rows)
                gaps = np.zeros((len(rows), self.n_units - 1), dtype=np.bool_)
                gaps[:, self.edges[1:-1] - 1] = ends[:, :-1]
                drawn.append((node, masses_from_gaps(gaps)))
        return drawn

    def _make_nodes(
        self, centre: float, spread: float, deviations: tuple[float, ...]
    ) -> list[Node]:
        """Distributions at several standard deviations from the centre, in the logarithm."""
        made: list[Node] = []
        guess = 0.0
        sums = np.empty(len(self.edges))
        for z in deviations if len(self.edges) > 2 else ():
            segments = self._segments(centre, spread, z)
            window = max(2, round(self.n_units / segments / 2))
            if window < self.n_units:
                table = self._table(segments)
                guess = weight_for(table, segments, guess, sums, self._tables[1])[0]
                node = self._node(table, sums, segments, window, guess)
                made.append(node._replace(deviation=z, weight=math.exp(-(z**2) / 2)))
        return _normalised(made)

    def _segments(self, centre: float, spread: float, deviation: float) -> float:
        """Number of segments at some standard deviations from the centre, within its bounds."""
        wanted = centre * math.exp(spread * deviation)
        return min(max(wanted, FEWEST), most_segments(self.n_units))

    def _weighed(self, nodes: list[Node], centre: float, spread: float) -> list[Node]:
        """Nodes weighed by what sources gain there over chance: a parabola through three.

        Where the text may be a chain of many short ones, there are nodes for these, too.
        """
        if not self._sources or not nodes:
            return nodes
        m = len(self.edges) - 1
        points = [self._segments(centre, spread, z) for z in LEVELS]
        many = m / STEPS_OF_MANY
        is_long = many > FACTOR_OF_MANY * points[1]
        gained = self._gained_over_chance([*points, many] if is_long else points)
        low, middle, high = gained[:3] * min(1.0, LEVEL_STEPS / m)
        t = np.array([node.deviation for node in nodes]) / LEVELS[-1]
        level = (high - low) / 2 * t + (high + low - 2 * middle) / 2 * t**2
        scales = np.exp(level - level.max())
        few = _normalised(
            [node._replace(weight=node.weight * x) for node, x in zip(nodes, scales, strict=True)]
        )
        if not is_long:
            return few
        power = math.log(max(gained[3], 1.0) / max(gained[1], 1.0)) / math.log(many / points[1])
        lacking = min(0.0, (gained[3] - gained[1]) / m - GAIN_OF_MANY)
        odds = math.exp(min(STEEPNESS * (power - POWER_OF_MANY + lacking), 100.0))
        if odds < LEAST_ODDS:
            return few
        chained = [
            node._replace(weight=odds * node.weight)
            for node in self._make_nodes(many, spread, NODES_OF_MANY)
        ]
        return _normalised(sorted([*few, *chained]))

    def _gained_over_chance(self, counts: list[float]) -> Floats:
        """What the sources gain over random orders at these numbers of segments."""
        gained = np.zeros(len(counts))
        for source in self._sources:
            by_chance = [self._gains(each, counts) for each in source.by_chance]
            gained += self._gains(source.own, counts) - np.mean(by_chance, axis=0)
        return gained

    def _gains(self, coherence: Coherence, counts: list[float]) -> Floats:
        """Log of the sum over segmentations into each number of segments, by gain."""
        m = len(self.edges) - 1
        sums, (table, shares) = np.empty(m + 1), self._tables
        found = []
        guess = 0.0
        for segments in counts:
            table[:] = self._log_length
            coherence.add_gain(table, m / segments)
            guess, total, mean, variance = weight_for(table, segments, guess, sums, shares)
            # Of segmentations of just the expected number of segments (saddle point).
            found.append(total - mean * guess - 0.5 * math.log(max(variance, 0.05)))
        return np.array(found)

    def _node(
        self, table: Floats, sums: Floats, segments: float, window: int, log_weight: float
    ) -> Node:
        # Units a window apart are one of two numbers of steps apart.
        size = int(self.edges[1])
        lags = np.array([window // size, window // size + 1])
        boundary, shared, _ = segment_sums(table, self._log_length, log_weight, sums, lags)
        first = np.arange(self.n_units - window)
        lag = (first + window) // size - first // size
        return Node(
            segments=segments,
            deviation=0.0,
            weight=1.0,
            window=window,
            boundaries=boundary[:-1],
            shared=np.where(lag == 0, 1.0, shared[(lag == lags[1]).astype(int), first // size]),
            log_weight=log_weight,
        )


def _normalised(nodes: list[Node]) -> list[Node]:
    """Nodes whose weights sum to 1."""
    total = sum(node.weight for node in nodes)
    return [node._replace(weight=node.weight / total) for node in nodes]
