"""The expected error of a segmentation without gold, written out literally.

Every segmentation of the document is tried, so it has at most twelve steps. A *step* is ``b``
consecutive units (one, unless the document has more than 1024 units; the last may be shorter); the
tests may choose ``b`` to have several units per step in a short document. n counts units, m steps.

A *table* maps a stretch of steps ``(start, stop)``, counted from 0, stop not included, to a number.
A *posterior* maps step masses to their probability. *Nodes* are the assumed numbers of segments as
``(K, weight, k)``, k the window in units; a *mixture* has ``(weight, k, posterior)`` for each node.
An *order* is a permutation of the steps: ``order[i]`` is the step that stands at place i then; the
document is compared with itself in several *orders*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import ceil, exp, inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tests.oracles import cues, reference_based

MOST_STEPS = 12
"""Documents with more steps than this have too many segmentations to try them all."""

Masses = tuple[int, ...]
Table = dict[tuple[int, int], float]
Posterior = dict[Masses, float]
Node = tuple[float, float, int]
Mixture = list[tuple[float, int, Posterior]]
Metric = Callable[[Sequence[int], Sequence[int], int], float]
Order = Sequence[int]
Evidence = Table | Callable[[float], Table]


# Segmentations and steps ----------------------------------------------------------------------


@cache
def every_segmentation(n: int) -> list[Masses]:
    """The masses of all 2^(n - 1) segmentations."""
    if n > MOST_STEPS:
        raise ValueError(f"{n} steps have too many segmentations; at most {MOST_STEPS}")
    return (
        [()]
        if n == 0
        else [(first, *rest) for first in range(n, 0, -1) for rest in every_segmentation(n - first)]
    )


@cache
def stretches(masses: Masses) -> list[tuple[int, int]]:
    """Where each segment starts and stops."""
    return [(sum(masses[:i]), sum(masses[: i + 1])) for i in range(len(masses))]


def every_stretch(m: int) -> list[tuple[int, int]]:
    return [(start, stop) for start in range(m) for stop in range(start + 1, m + 1)]


def units_per_step(n: int) -> int:
    return ceil(n / 1024)


def steps_of(units: NDArray[np.float64], b: int | None) -> NDArray[np.float64]:
    """The mean of every b unit vectors; the last step has what is left."""
    b = units_per_step(len(units)) if b is None else b
    return np.array([units[i : i + b].mean(axis=0) for i in range(0, len(units), b)])


def unit_masses(masses: Masses, n: int, b: int) -> Masses:
    """Step masses → unit masses of a document of n units."""
    return tuple(min(stop * b, n) - start * b for start, stop in stretches(masses))


# Evidence -------------------------------------------------------------------------------------


def embedding_steps(embeddings: ArrayLike, b: int | None = None) -> NDArray[np.float64]:
    """Step vectors of the source ``embedding``: means of unit vectors scaled to length 1."""
    units = np.array(embeddings, dtype=np.float64)
    for unit in units:
        length = sqrt(float(unit @ unit))
        if length > 0:
            unit /= length
    return steps_of(units, b)


def word_steps(units: Sequence[Sequence[str]], b: int | None = None) -> NDArray[np.float64]:
    """Step vectors of the source ``words`` from the terms of every unit.

    A term counts log((n + 1) / df) however often it stands in the unit; a unit's vector is divided
    by the square root of its length.
    """
    n = len(units)
    vocabulary = sorted({term for unit in units for term in unit})
    vectors = np.zeros((n, len(vocabulary)))
    for column, term in enumerate(vocabulary):
        holders = [i for i in range(n) if term in units[i]]
        for i in holders:
            vectors[i, column] = log((n + 1) / len(holders))
    for vector in vectors:
        length = sqrt(float(vector @ vector))
        if length > 0:
            vector /= sqrt(length)
    return steps_of(vectors, b)


def source_parameters(y: ArrayLike) -> tuple[float, float, list[float]] | None:
    """(v, D, c): variance, effective dimension, correlations; None if the source says nothing.

    ``y`` has one row per step.
    """
    y = np.array(y, dtype=np.float64)
    m = len(y)
    x = y - y.mean(axis=0)
    n2 = sum(float(row @ row) for row in x)
    v = n2 / m
    if v <= 1e-12 * sum(float(row @ row) for row in y) / m:
        return None
    participation = n2**2 / sum(float(x[i] @ x[j]) ** 2 for i in range(m) for j in range(m))
    dimension = 1 / max(1 / participation - 1 / m, 1 / 2000)
    correlations = []
    for lag in range(1, min(max(2, m // 4), m)):
        products = [float(x[i] @ x[i + lag]) for i in range(m - lag)]
        c = sum(products) / len(products) / v + 1 / m
        if c <= 1e-9:
            break
        correlations.append(c)
    return v, dimension, correlations


def autocorrelation(correlations: Sequence[float], length: float) -> float:
    """T: 1 + 2 * the correlations that segments of about ``length`` steps leave unexplained.

    Steps l apart share a segment with probability exp(-2 l / length) (1 + l / length); segments
    explain as much as fits under the correlations up to half a segment apart, nothing if those are
    not known that far.
    """
    lags = range(1, len(correlations) + 1)
    shared = [exp(-2 * lag / length) * (1 + lag / length) for lag in lags]
    near = max(1, round(length / 2))
    explained = 0.0
    if len(correlations) >= near:
        explained = min(correlations[i] / shared[i] for i in range(near))
    left = [max(0.0, c - explained * s) for c, s in zip(correlations, shared, strict=True)]
    return 1 + 2 * sum(left)


def gain_table(y: ArrayLike, K: float, order: Order | None = None) -> Table:
    """The log Bayes factor of a common mean for every stretch, tempered for K segments.

    With an ``order`` the stretches are those of the reordered steps; variance, dimension and
    autocorrelation stay those of the steps as they are.
    """
    y = np.array(y, dtype=np.float64)
    parameters = source_parameters(y)
    if parameters is None:
        return flat_table(len(y))
    v, dimension, correlations = parameters
    x = y - y.mean(axis=0)
    if order is not None:
        x = np.array([x[step] for step in order])
    gain = {}
    for start, stop in every_stretch(len(y)):
        length = stop - start
        total = x[start:stop].sum(axis=0)
        coherence = float(total @ total) / (length * v)
        gain[start, stop] = (sqrt(dimension / 2) / autocorrelation(correlations, len(y) / K)) * (
            length / (length + 2) * coherence - 2 / 3 * log(1 + length / 2)
        )
    return gain


def evidence_table(y: ArrayLike, K: float, order: Order | None = None) -> Table:
    """Gain less the mean gain of the stretches of the same length, both in the same order.

    Where segments have more than four steps on average, that less 2 stands for 2 in L / (L + 2).
    """
    gain = gain_table(y, K, order)
    within = max(2.0, len(gain_lengths(gain)) / K - 2)
    evidence = {}
    for start, stop in gain:
        length = stop - start
        same_length = [value for (i, j), value in gain.items() if j - i == length]
        over_mean = gain[start, stop] - sum(same_length) / len(same_length)
        evidence[start, stop] = over_mean * (length + 2) / (length + within)
    return evidence


def gain_lengths(table: Table) -> set[int]:
    """Every length of a stretch: as many as there are steps."""
    return {stop - start for start, stop in table}


def edge_table(gaps: Sequence[float], b: int = 1) -> Table:
    """The value of the gap each stretch ends at, 0 at the document's end.

    ``gaps[g - 1]`` belongs to the gap in front of unit g. With several units per step it is the
    largest of the gaps at most b // 2 away from the edge.
    """
    n = len(gaps) + 1
    values = []
    for edge in range(b, n, b):
        values.append(max(gaps[g - 1] for g in range(1, n) if abs(g - edge) <= b // 2))
    values.append(0.0)
    return {(start, stop): values[stop - 1] for start, stop in every_stretch(len(values))}


def scorer_table(probabilities: Sequence[float], b: int = 1) -> Table:
    """logit(p) of the gap each stretch ends at."""
    bounded = [min(max(p, 1e-6), 1 - 1e-6) for p in probabilities]
    return edge_table([log(p / (1 - p)) for p in bounded], b)


def cue_table(units: Sequence[str], b: int = 1) -> Table:
    """The cue of the gap each stretch ends at."""
    return edge_table(cues.gap_cues(units), b)


def flat_table(m: int) -> Table:
    """No evidence."""
    return dict.fromkeys(every_stretch(m), 0.0)


def added(m: int, weighted: Sequence[tuple[float, Table]]) -> Table:
    """The evidence of several sources, each with its weight."""
    return {
        stretch: sum(weight * table[stretch] for weight, table in weighted)
        for stretch in every_stretch(m)
    }


def gain_sources(
    embeddings: ArrayLike | None,
    terms: Sequence[Sequence[str]] | None,
    units: Sequence[str] | None,
    b: int,
) -> list[tuple[float, NDArray[np.float64]]]:
    """(weight, step vectors) of the vectors and words given, those that say something."""
    has_text = terms is not None or units is not None
    sources = []
    if embeddings is not None:
        sources.append((0.6 if has_text else 1.0, embedding_steps(embeddings, b)))
    if terms is not None:
        sources.append((1.5, word_steps(terms, b)))
    return [(weight, y) for weight, y in sources if source_parameters(y) is not None]


def edge_sources(
    probabilities: Sequence[float] | None, units: Sequence[str] | None, b: int
) -> list[tuple[float, Table]]:
    """(weight, table) of the scorer and cues given."""
    sources = []
    if probabilities is not None:
        sources.append((1.0, scorer_table(probabilities, b)))
    if units is not None:
        sources.append((1.0, cue_table(units, b)))
    return sources


# Posterior for one number of segments ---------------------------------------------------------


def bounded(K: float, m: int) -> float:
    return max(1.02, min(K, m - 0.5))


def log_weight(masses: Masses, table: Table) -> float:
    """log of the product of L * exp(table) over the segments, without w."""
    return sum(log(stop - start) + table[start, stop] for start, stop in stretches(masses))


def at_weight(table: Table, m: int, log_w: float) -> tuple[float, Posterior]:
    """log Z and the probability of every segmentation, at a given w."""
    logs = {s: len(s) * log_w + log_weight(s, table) for s in every_segmentation(m)}
    largest = max(logs.values())
    log_z = largest + log(sum(exp(value - largest) for value in logs.values()))
    return log_z, {masses: exp(value - log_z) for masses, value in logs.items()}


def count_moments(posterior: Posterior) -> tuple[float, float]:
    """Mean and variance of the number of segments."""
    mean = sum(p * len(masses) for masses, p in posterior.items())
    return mean, sum(p * (len(masses) - mean) ** 2 for masses, p in posterior.items())


def solved_log_w(table: Table, m: int, K: float) -> float:
    """The log w at which K segments are expected, by bisection; K is brought into its bounds."""
    K = bounded(K, m)
    if m < 2:
        raise ValueError(f"{m} steps have one segment, whatever w is")
    by_count: dict[int, float] = {}
    for masses in every_segmentation(m):
        by_count[len(masses)] = float(
            np.logaddexp(by_count.get(len(masses), -inf), log_weight(masses, table))
        )

    def mean_count(log_w: float) -> float:
        logs = {count: count * log_w + value for count, value in by_count.items()}
        largest = max(logs.values())
        weights = {count: exp(value - largest) for count, value in logs.items()}
        return sum(count * p for count, p in weights.items()) / sum(weights.values())

    low, high = -1.0, 1.0
    while mean_count(low) > K:
        low *= 2
    while mean_count(high) < K:
        high *= 2
    while high - low > 1e-12:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if mean_count(middle) < K:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def posterior(evidence: Table, m: int, K: float) -> Posterior:
    """P_K of every segmentation of m steps."""
    return at_weight(evidence, m, solved_log_w(evidence, m, K))[1]


def prior(m: int, K: float) -> Posterior:
    """P_K without evidence."""
    return posterior(flat_table(m), m, K)


def gap_probabilities(probabilities: Posterior, n: int, b: int = 1) -> list[float]:
    """Probability of a boundary in front of unit 1, ..., n - 1."""
    gaps = [0.0] * (n - 1)
    for masses, p in probabilities.items():
        for boundary in reference_based.boundaries(unit_masses(masses, n, b)):
            gaps[boundary - 1] += p
    return gaps


def same_segment(probabilities: Posterior, n: int, k: int, b: int = 1) -> list[float]:
    """q: probability that units u and u + k share a segment, u = 0, ..., n - k - 1."""
    labelled = [
        (reference_based.labels(unit_masses(masses, n, b)), p)
        for masses, p in probabilities.items()
    ]
    return [sum(p for labels, p in labelled if labels[u] == labels[u + k]) for u in range(n - k)]


# How many segments ----------------------------------------------------------------------------


def count_constant(table: Table, m: int, K: float) -> float:
    """C(K) = log Z - K log w - log(max(var, 0.05)) / 2 at the w of K segments."""
    log_w = solved_log_w(table, m, K)
    log_z, probabilities = at_weight(table, m, log_w)
    mean, variance = count_moments(probabilities)
    return log_z - mean * log_w - log(max(variance, 0.05)) / 2


def count_factor(m: int) -> float:
    """How much of the evidence for K counts: documents of more than 20 steps have 20 of them."""
    return min(1.0, 20 / m)


def count_evidence(gains: Sequence[tuple[Table, Sequence[Table]]], m: int, K: float) -> float:
    """A(K): the log evidence for K segments, over that of the steps in other orders.

    ``gains`` has, for each source, its gain table and those of the reordered steps.
    """
    over = []
    for own, reordered in gains:
        by_chance = [count_constant(table, m, K) for table in reordered]
        over.append(count_constant(own, m, K) - sum(by_chance) / len(by_chance))
    return count_factor(m) * sum(over)


def parabola(points: Sequence[tuple[float, float]], z: float) -> float:
    """The value at z of the parabola through three points (z, value)."""
    (a, at_a), (b, at_b), (c, at_c) = points
    return (
        at_a * (z - b) * (z - c) / ((a - b) * (a - c))
        + at_b * (z - a) * (z - c) / ((b - a) * (b - c))
        + at_c * (z - a) * (z - b) / ((c - a) * (c - b))
    )


def nodes(
    n: int,
    m: int,
    length: float | None = None,
    A: Callable[[float], float] | None = None,
    talk: float = 0.0,
) -> list[Node] | None:
    """Seven (K, weight, k); the weights sum to 1, and are 0 where k >= n. None if all are.

    ``A`` gives a K its log evidence (none: 0). It is asked at three deviations z, whether or not
    they have a window, and between them on the parabola through these; it does not count if
    ``length`` is given. ``talk`` is how much of a conversation the document is, where cues count.
    """

    def count(z: float) -> float:
        if length is None:
            return bounded(exp(0.66 + 0.20 * talk + 0.50 * z) * n**0.25, m)
        return bounded((1 + (n - 1) / length) * exp(0.2 * z), m)

    asked = A is not None and length is None
    levels = [(z, A(count(z)) if asked else 0.0) for z in (-1.8, 0.0, 1.8)]
    logs = []
    for z in (-1.8, -1.2, -0.6, 0.0, 0.6, 1.2, 1.8):
        K = count(z)
        k = max(2, round(n / K / 2))
        logs.append((K, -inf if k >= n else -(z**2) / 2 + parabola(levels, z), k))
    largest = max(value for _, value, _ in logs)
    if largest == -inf:
        return None
    total = sum(exp(value - largest) for _, value, _ in logs)
    few = [(K, exp(value - largest) / total, k) for K, value, k in logs]
    odds = chain_odds(A, m, count(0.0)) if A is not None and length is None else 0.0
    if odds == 0:
        return few
    many = [(m / 8 * exp(0.50 * z), exp(-(z**2) / 2)) for z in (-1.2, 0.0, 1.2)]
    shares = [odds * weight / sum(weight for _, weight in many) for _, weight in many]
    chain = [
        (K, share, max(2, round(n / K / 2))) for (K, _), share in zip(many, shares, strict=True)
    ]
    return sorted((K, weight / (1 + odds), k) for K, weight, k in [*few, *chain])


def chain_odds(A: Callable[[float], float], m: int, K: float) -> float:
    """How much likelier a chain of many short texts is than one text of about K segments.

    The chain has a segment in eight steps. What ``A`` counts in full grows with the number of
    segments to some power: 1 where every segment gains as much, however many there are.
    """
    if m / 8 <= 3 * K:
        return 0.0
    few, many = A(K) / count_factor(m), A(m / 8) / count_factor(m)
    power = log(max(many, 1.0) / max(few, 1.0)) / log(m / 8 / K)
    odds = exp(min(100.0, 60 * (power - 0.88 + min(0.0, (many - few) / m - 0.25))))
    return odds if odds >= 0.01 else 0.0


def evidence_and_nodes(
    embeddings: ArrayLike | None = None,
    terms: Sequence[Sequence[str]] | None = None,
    probabilities: Sequence[float] | None = None,
    *,
    units: Sequence[str] | None = None,
    orders: Sequence[Order] = (),
    n: int,
    length: float | None = None,
    b: int = 1,
) -> tuple[Evidence, list[Node] | None]:
    """All sources given, put together for a document of n units: evidence by K, and nodes.

    ``units`` are the texts, given where cues count. The evidence is that of the document as it is;
    ``orders`` matter to the nodes, which need them if ``length`` is None and there are embeddings
    or terms.
    """
    m = ceil(n / b)
    if len(orders) == 0 and length is None and (embeddings is not None or terms is not None):
        raise ValueError("the number of segments needs orders of the steps")
    for order in orders:
        if sorted(order) != list(range(m)):
            raise ValueError(f"{order} is no order of {m} steps")
    gains = gain_sources(embeddings, terms, units, b)
    edges = edge_sources(probabilities, units, b)

    def evidence(K: float) -> Table:
        return added(m, [(weight, evidence_table(y, K)) for weight, y in gains] + edges)

    def A(K: float) -> float:
        tables = [(gain_table(y, K), [gain_table(y, K, o) for o in orders]) for _, y in gains]
        return count_evidence(tables, m, K)

    talk = cues.talk(units) if units else 0.0
    return evidence, nodes(n, m, length, A if gains else None, talk)


def mixture(evidence: Evidence, m: int, counts: Sequence[Node]) -> Mixture:
    """The posterior of every node that has a weight."""
    return [(weight, k, posterior(at(evidence, K), m, K)) for K, weight, k in counts if weight > 0]


def at(evidence: Evidence, K: float) -> Table:
    """Evidence for K segments."""
    return evidence if isinstance(evidence, dict) else evidence(K)


# Scores ---------------------------------------------------------------------------------------


METRICS: dict[str, Metric] = {
    "pk": lambda h, s, k: float(reference_based.pk(h, s, k)),
    "windowdiff": lambda h, s, k: float(reference_based.windowdiff(h, s, k)),
    "boundary_similarity": lambda h, s, k: float(reference_based.boundary_similarity(h, s)),
    "w_f1": lambda h, s, k: float(reference_based.w_f1(h, s)),
}
"""Gold-based metrics of (hypothesis, segmentation as gold, window)."""


def expected_pk(hypothesis: Sequence[int], mixed: Mixture, b: int = 1) -> float:
    """From the probabilities that two units share a segment; ``hypothesis`` has unit masses."""
    n = sum(hypothesis)
    tables = [(weight, k, same_segment(p, n, k, b)) for weight, k, p in mixed]
    return pk_from_same_segment(hypothesis, tables)


def pk_from_same_segment(
    hypothesis: Sequence[int], tables: Sequence[tuple[float, int, list[float]]]
) -> float:
    """Expected Pk from (weight, k, q of every window) of the nodes."""
    labels = reference_based.labels(hypothesis)
    total = 0.0
    for weight, k, q in tables:
        wrong = [1 - q[u] if labels[u] == labels[u + k] else q[u] for u in range(len(labels) - k)]
        total += weight * sum(wrong) / len(wrong)
    return total


def metric_outcomes(
    metric: Metric, hypothesis: Sequence[int], mixed: Mixture, b: int = 1
) -> list[tuple[float, float]]:
    """(probability, value) of every node and segmentation."""
    n = sum(hypothesis)
    return [
        (weight * p, metric(hypothesis, unit_masses(masses, n, b), k))
        for weight, k, probabilities in mixed
        for masses, p in probabilities.items()
    ]


def expected_metric(metric: Metric, hypothesis: Sequence[int], mixed: Mixture, b: int = 1) -> float:
    """Exact expectation of ``metric`` with the segmentations as gold."""
    return sum(p * value for p, value in metric_outcomes(metric, hypothesis, mixed, b))


def spread(metric: Metric, hypothesis: Sequence[int], mixed: Mixture, b: int = 1) -> float:
    """Exact standard deviation of ``metric`` with the segmentations as gold."""
    outcomes = metric_outcomes(metric, hypothesis, mixed, b)
    mean = sum(p * value for p, value in outcomes)
    return sqrt(sum(p * (value - mean) ** 2 for p, value in outcomes))


def boundary_probabilities(mixed: Mixture, n: int, b: int = 1) -> list[float]:
    """Probability of a boundary in front of unit 1, ..., n - 1 over all nodes."""
    by_node = [(weight, gap_probabilities(p, n, b)) for weight, _, p in mixed]
    return [sum(weight * p[gap] for weight, p in by_node) for gap in range(n - 1)]


def typical_count(counts: Sequence[Node]) -> float:
    """K*: the geometric mean of the numbers of segments, by their weights."""
    return exp(sum(weight * log(K) for K, weight, _ in counts))


def boundary_information(evidence: Table, m: int, K: float) -> float:
    """KL of posterior and prior at K segments, in nats per expected boundary."""
    before, after = prior(m, K), posterior(evidence, m, K)
    return sum(p * log(p / before[masses]) for masses, p in after.items() if p > 0) / (K - 1)


def information(
    embeddings: ArrayLike | None = None,
    terms: Sequence[Sequence[str]] | None = None,
    probabilities: Sequence[float] | None = None,
    *,
    units: Sequence[str] | None = None,
    orders: Sequence[Order] = (),
    n: int,
    length: float | None = None,
    b: int = 1,
) -> float:
    """What vectors and words tell at K*; what cues and scorers tell if those say nothing."""
    m = ceil(n / b)
    sources = (embeddings, terms, probabilities)
    _, counts = evidence_and_nodes(*sources, units=units, orders=orders, n=n, length=length, b=b)
    if counts is None:
        raise ValueError(f"{n} units have no window")
    K = typical_count(counts)
    gains = gain_sources(embeddings, terms, units, b)
    if gains:
        evidence = added(m, [(weight, evidence_table(y, K)) for weight, y in gains])
    else:
        evidence = added(m, edge_sources(probabilities, units, b))
    return boundary_information(evidence, m, K)


def chance_information(
    embeddings: ArrayLike | None = None,
    terms: Sequence[Sequence[str]] | None = None,
    probabilities: Sequence[float] | None = None,
    *,
    units: Sequence[str] | None = None,
    orders: Sequence[Order] = (),
    n: int,
    length: float | None = None,
    b: int = 1,
) -> float:
    """What vectors and words tell of the reordered steps at the document's K*: mean over orders.

    0 where vectors and words say nothing.
    """
    m = ceil(n / b)
    sources = (embeddings, terms, probabilities)
    _, counts = evidence_and_nodes(*sources, units=units, orders=orders, n=n, length=length, b=b)
    if counts is None:
        raise ValueError(f"{n} units have no window")
    gains = gain_sources(embeddings, terms, units, b)
    if not gains:
        return 0.0
    if len(orders) == 0:
        raise ValueError("chance information needs orders of the steps")
    K = typical_count(counts)
    values = []
    for order in orders:
        reordered = added(m, [(weight, evidence_table(y, K, order)) for weight, y in gains])
        values.append(boundary_information(reordered, m, K))
    return sum(values) / len(values)


def best_segmentation(mixed: Mixture, n: int, b: int = 1) -> tuple[Masses, float]:
    """Unit masses with the least expected Pk, and that; one of them if several have it.

    Only what has its boundaries between steps is tried.
    """
    tables = [(weight, k, same_segment(p, n, k, b)) for weight, k, p in mixed]
    values = {
        masses: pk_from_same_segment(masses, tables)
        for masses in (unit_masses(s, n, b) for s in every_segmentation(ceil(n / b)))
    }
    best = min(values, key=lambda masses: values[masses])
    return best, values[best]
