r"""Checks of a corpus: twins, returns to a topic, one direction for all vectors, sizes.

*Twins* are units with the same text, or nearly the same vector, in another segment of their
document: no segmentation can tell them apart.

*Semantic returns* are segments that come back to an earlier topic, or to one that is still to come:

.. math:: margin_i = \max_{|j - i| > 1} \cos(c_i, c_j) - \max_{|j - i| = 1} \cos(c_i, c_j)

over the centroids :math:`c` of a document's segments. A margin above 0 is a return: the segment is
closer to one that is no neighbour than to its neighbours. Metrics that hold a segment against its
neighbours never see that other segment.

*Anisotropy*: with unit vectors :math:`u`, the mean cosine over all pairs of different units is
exact without going through them, :math:`(\|\sum u\|^2 - \sum \|u\|^2) / (n (n - 1))`; drawing pairs
at random would only estimate it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import Corpus
from reffree.data.filter import is_backchannel
from reffree.encoders.embed import Embeddings
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.expected import INFORMED, ExpectedPk
from reffree.statistics.resampling import DocumentBootstrap, portions
from reffree.studies.study import StudySettings
from reffree.util.arrays import Booleans, Floats, Integers, mean_defined, ratio

THRESHOLD = 0.95
"""Cosine of a near twin. Sentence encoders put the same words with other punctuation or one other
function word above it, and paraphrases, which may well belong to one topic, below."""

EQUAL_COSINE = 1e-9
"""Cosines this little below the threshold have reached it: the rest is rounding."""

EQUAL_MARGIN = 1e-6
"""Margins up to this are ties: what vectors in single precision cannot tell apart."""

ALL_ALIKE = 1e-12
"""Variance of unit vectors up to this is rounding."""

NEAREST = 8
"""Segments asked for. Four hold one that is no neighbour: itself and two neighbours are the others.
The rest is for ties that are settled in double precision."""

ROWS_AT_ONCE = 256
"""Rows whose cosines with all others are held at a time, so that no table of all pairs is."""

Row = dict[str, Any]
Ends = tuple[float, float]


class Rule(NamedTuple):
    """Two limits of a check; where ``watch`` is above ``problem``, low values are the bad ones."""

    check: str
    watch: float
    problem: float
    advice: str  # where the value is not ok

    def verdict(self, value: float) -> str:
        """Judge a value.

        >>> Rule("high", 0.05, 0.2, "").verdict(0.1), Rule("low", 30, 10, "").verdict(9)
        ('watch', 'problem')
        """
        sign = 1 if self.watch <= self.problem else -1
        if sign * value >= sign * self.problem:
            return "problem"
        return "watch" if sign * value >= sign * self.watch else "ok"

    def judge(
        self, unit: str, value: float | None, ci: Ends | None = None, *, by: float | None = None
    ) -> Row:
        """Make a row of a value, judged ``by`` another one where that is given."""
        row: Row = {"check": self.check, "value": value, "unit": unit, "ci": ci}
        if value is None:
            return row
        verdict = self.verdict(value if by is None else by)
        return row | {"verdict": verdict} | ({} if verdict == "ok" else {"advice": self.advice})


RULES = {
    # A segment of ten units then has two that are as much another segment's as its own.
    "exact_twins": Rule("exact twins", 0.05, 0.20, "compare with scores under --drop repeats"),
    # As for exact ones: the embedding space makes no difference between the two.
    "near_twins": Rule(
        *("near twins", 0.05, 0.20),
        "segments share what they say: trust only metrics that notice damage",
    ),
    # As for twins, which backchannels are of each other.
    "backchannels": Rule(
        "backchannels", 0.05, 0.20, "compare with scores under --drop backchannels"
    ),
    # Share of returns beyond chance: one segment in twenty, or in seven, is turned back to.
    "returns": Rule(
        *("semantic returns", 0.05, 0.15),
        "topics come back: no metric here looks beyond neighbouring segments",
    ),
    # One-unit segments have no cohesion: every metric gives them a made-up value (a mean, or 0).
    "singletons": Rule(
        "singletons", 0.10, 0.33, "their scores are made up: prefer expected_pk, which needs none"
    ),
    # Such documents have the same loss whatever their text says; in a quarter, they set the score.
    "unsegmented": Rule("unsegmented", 0.05, 0.25, "compare --unsegmented neutral with skip"),
    # The model saw only the beginning of these units; one in ten shows in any mean over units.
    "truncated": Rule(
        "truncated", 0.01, 0.10, "use an encoder that reads longer texts, or split long units"
    ),
    # Beyond, most of a cosine is what all units share (Ethayarajh 2019: words in GPT-2, up to .99).
    "random_cosine": Rule(
        *("random cosine", 0.30, 0.60),
        "all vectors point one way: try another encoder, and raise --threshold",
    ),
    # At 0, the order of units says nothing about their vectors, so no boundary can show in them.
    "consecutive_gain": Rule(
        *("consecutive gain", 0.03, 0.0),
        "units beside each other are hardly closer than others: try another encoder",
    ),
    # Fewer directions than topics in a document cannot keep its topics apart.
    "effective_dimension": Rule(
        "effective dimension", 10, 3, "too few directions to keep topics apart: try another encoder"
    ),
    # Below, the text says no more about where boundaries are than its units in random order would.
    "information": Rule(
        *("information", 1.4, INFORMED),
        "expected errors rest on the prior, not on this text: try another encoder, or compare "
        "systems with gold",
    ),
    # Bootstrap intervals over fewer than ten documents are too narrow, below thirty still rough.
    "documents": Rule("documents", 29, 9, "intervals over so few documents are rough: add some"),
    # With fewer than five units a document has fewer than four places for a boundary.
    "median_units": Rule(
        "units", 9, 4, "scores of so short documents are unstable: read the corpus's only"
    ),
    # At 1, even the source cannot be told from random boundaries; systems differ by less than that.
    "resolution": Rule(
        "resolution", 0.33, 1.0, "smaller differences between systems are noise: add documents"
    ),
    # Losses move with the number of segments alone: raw Silhouette on drift, .25 at 3, .08 at 21.
    "density": Rule(
        *("density", 1.5, 2.0),
        "use expected_pk, with a length if you know it, or --null: losses move with density",
    ),
}
"""From which value on each check is to be watched, or is a problem, and what to do then."""


def check_corpus(
    corpus: Corpus,
    embedded: Embeddings,
    source: str,
    resolutions: Mapping[str, float | None],
    threshold: float,
    bootstrap: DocumentBootstrap,
    settings: StudySettings,
) -> tuple[list[Row], Counter[str]]:
    """Judge a corpus by all `RULES`; also return the texts of units with an exact twin.

    ``resolutions`` are the metrics', from how they notice damage to the ``source``.
    """
    segmentations = corpus.hypotheses[source]
    expected = ExpectedPk(seed=settings.seed)
    repeated: Counter[str] = Counter()
    measured: list[dict[str, float]] = []
    with settings.progress("Diagnosing", len(corpus)) as advance:
        for document, x, segmentation in zip(corpus, embedded.vectors, segmentations, strict=True):
            rows, segment = directions(x), np.array(segmentation.to_segment_ids())
            twins = exact_twins(document.units, segment)
            repeated.update(u for u, is_twin in zip(document.units, twins, strict=True) if is_twin)
            margins, chance = semantic_returns(rows, segmentation.masses)
            # Nats a boundary that the text adds to the prior, and its units in random order;
            # 0 in documents too short for a posterior.
            facts = expected.posterior(x, Reading(document.units)).facts()
            row = {
                **{"documents": 1, "units": len(document.units), "segments": len(segmentation)},
                "exact_twins": twins.sum(),
                "near_twins": near_twins(rows, segment, threshold).sum(),
                "backchannels": sum(map(is_backchannel, document.units)),
                "singletons": sum(mass == 1 for mass in segmentation.masses),
                "unsegmented": len(segmentation) == 1,
                **{"compared": len(margins), "margins": margins.sum(), "by_chance": chance.sum()},
                "returns": (margins > EQUAL_MARGIN).sum(),
                "information": 0.0 if facts is None else facts.information,
                "chance_information": 0.0 if facts is None else facts.chance_information,
            }
            measured.append(row)
            advance(1)
    counts = {name: np.array([row[name] for row in measured], np.float64) for name in measured[0]}
    checks = [
        *_text_checks(embedded, counts, bootstrap, threshold),
        *_size_checks(corpus, source, resolutions),
    ]
    return checks, repeated


def _text_checks(
    embedded: Embeddings,
    counts: Mapping[str, Floats],
    bootstrap: DocumentBootstrap,
    threshold: float,
) -> Iterator[Row]:
    """Yield what is wrong with units, segments and vectors; ``counts`` are by document."""

    def share(name: str, whole: str, unit: str, by: float | None = None) -> Row:
        """Judge the documents' parts together in their wholes, with an interval over documents."""
        pairs = np.stack([counts[name], counts[whole]], axis=1)  # (documents, 2)
        value = float(ratio(*pairs.sum(0)))
        interval = bootstrap.pooled_interval(value, pairs, pairs[:, 1] > 0, lambda x: ratio(*x.T))
        return RULES[name].judge(unit, value, interval, by=by)

    yield share("exact_twins", "units", "of units, in another segment")
    unit = f"of units, cosine {threshold:g} or more in another segment"
    yield share("near_twins", "units", unit)
    yield share("backchannels", "units", "of units")
    if embedded.spec.max_length is None:
        yield RULES["truncated"].judge("of units: not known of vectors as given", None)
    else:
        n_units = counts["units"].sum()
        yield RULES["truncated"].judge("of units", embedded.n_truncated / n_units)
    if n := int(counts["compared"].sum()):
        returns, chance, margin = (counts[x].sum() / n for x in ("returns", "by_chance", "margins"))
        unit = f"of {n:,} segments; {chance:.1%} by chance"
        yield share("returns", "compared", unit, by=returns - chance)
        yield {"check": "margin of returns", "value": margin, "unit": "cosine, mean over segments"}
    else:
        yield RULES["returns"].judge("needs documents of 3 segments or more", None)
    yield share("singletons", "segments", "of segments have one unit")
    yield share("unsegmented", "documents", "of documents have no boundary")
    shape = VectorShape.of(map(directions, embedded.vectors))
    yield RULES["random_cosine"].judge("mean over all pairs of units", shape.random_cosine)
    gains = shape.consecutive_gain
    gain = None if np.isnan(gains).all() else float(mean_defined(gains, 0))
    unit = "cosine of consecutive units over that of any two of a document"
    yield RULES["consecutive_gain"].judge(unit, gain, bootstrap.interval(gain, gains))
    unit = "participation ratio of the vectors' covariance"
    yield RULES["effective_dimension"].judge(unit, shape.effective_dimension)
    unit = "times what the units in random order would add to the prior"
    if counts["chance_information"].any():
        yield share("information", "chance_information", unit)
    else:
        rule = RULES["information"]
        yield rule.judge(unit, None) | {"verdict": "problem", "advice": rule.advice}


def _size_checks(
    corpus: Corpus, source: str, resolutions: Mapping[str, float | None]
) -> Iterator[Row]:
    yield RULES["documents"].judge("in the corpus", len(corpus))
    median = float(np.median([len(document.units) for document in corpus]))
    yield RULES["median_units"].judge("in the median document", median)
    resolved = {name: value for name, value in resolutions.items() if value is not None}
    unit = "of the way from source to random"
    if resolved:
        best = min(resolved, key=lambda name: (resolved[name], name))
        yield RULES["resolution"].judge(f"{unit}, by {best}", resolved[best])
    else:
        advice = "no metric tells the source from random boundaries: do not rank systems"
        yield RULES["resolution"].judge(unit, None) | {"verdict": "problem", "advice": advice}
    ratios = {name: ratio for name, ratio in densities(corpus, source).items() if name != source}
    if ratios:
        worst = max(ratios, key=lambda name: abs(np.log(ratios[name])))
        unit = f"segments of {worst!r} for each of {source!r}, the farthest of {len(ratios)}"
        factor = max(ratios[worst], 1 / ratios[worst])
        yield RULES["density"].judge(unit, ratios[worst], by=factor)


def densities(corpus: Corpus, source: str) -> dict[str, float]:
    """Segments of every system for each segment of the source."""
    counts = {name: sum(map(len, made)) for name, made in corpus.hypotheses.items()}
    return {name: n / counts[source] for name, n in counts.items()}


def directions(x: NDArray[np.generic]) -> Floats:
    """Rows scaled to length one, so that inner products are cosines; rows of zeros stay zeros.

    >>> directions(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    rows: Floats = x.astype(np.float64)
    # The largest entry is divided out first: squares of very large or small numbers overflow.
    largest = np.abs(rows).max(1, keepdims=True)
    np.divide(rows, largest, out=rows, where=largest > 0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, length, out=rows, where=length > 0)
    return rows


def exact_twins(units: Sequence[str], segment: Integers) -> Booleans:
    """Whether each unit's very text occurs in another segment as well."""
    segments: dict[str, set[int]] = {}
    for text, s in zip(units, segment.tolist(), strict=True):
        segments.setdefault(text, set()).add(s)
    return np.array([len(segments[text]) > 1 for text in units])


def near_twins(rows: Floats, segment: Integers, threshold: float = THRESHOLD) -> Booleans:
    """Whether each unit has one of cosine ``threshold`` or more in another segment.

    ``rows`` are `directions` of the units, ``segment`` the number of each unit's segment. Rows of
    zeros are nobody's twin, as the threshold is above 0.
    """
    found = np.zeros(len(rows), dtype=bool)
    for at in portions(len(rows), ROWS_AT_ONCE):
        is_elsewhere = segment[at, None] != segment
        found[at] = ((rows[at] @ rows.T >= threshold - EQUAL_COSINE) & is_elsewhere).any(1)
    return found


def nearest_rows(rows: Floats, count: int) -> Integers:
    """Places of the rows with the largest products with each row, itself among them.

    One thread: on macOS the threads of faiss and of torch can bring down the process.
    """
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        index = faiss.IndexFlatIP(rows.shape[1])
        index.add(rows.astype(np.float32))
        found: Integers = index.search(rows.astype(np.float32), count)[1]
    finally:
        faiss.omp_set_num_threads(threads)
    return found


def semantic_returns(rows: Floats, masses: Sequence[int]) -> tuple[Floats, Floats]:
    """Compare every segment's nearest non-neighbour with its nearest neighbour.

    Of segments with a neighbour and a segment that is none: from 3 segments on, then all but one.

    Args:
        rows: `directions` of the units: every unit counts alike in its centroid.
        masses: of the document's segments.

    Returns:
        Their margins, returns above `EQUAL_MARGIN`; and the probability that the nearest segment is
        no neighbour if the order of segments says nothing, 1 - neighbours/(N - 1).
    """
    n = len(masses)
    if n < 3:
        return np.empty(0), np.empty(0)
    starts = np.cumsum([0, *masses[:-1]])
    sums = np.add.reduceat(rows, starts)
    # What is left of vectors that cancel out is rounding, not a direction.
    is_zero = np.linalg.norm(sums, axis=1) <= 1e-12 * np.array(masses)
    centroids = directions(np.where(is_zero[:, None], 0.0, sums))
    at = np.arange(n)
    nearest = nearest_rows(centroids, min(n, NEAREST))
    cosines = np.einsum("id,ikd->ik", centroids, centroids[nearest])
    farther = np.where(np.abs(nearest - at[:, None]) > 1, cosines, -np.inf).max(1)
    beside = np.einsum("id,id->i", centroids[1:], centroids[:-1])
    neighbour = np.maximum(np.append(-np.inf, beside), np.append(beside, -np.inf))
    has_both = np.isfinite(farther)
    neighbours = np.where((at == 0) | (at == n - 1), 1, 2)
    return (farther - neighbour)[has_both], (1 - neighbours / (n - 1))[has_both]


@dataclass(frozen=True, slots=True)
class VectorShape:
    r"""Cosines and dimensions of a corpus's vectors.

    Attributes:
        random_cosine: mean cosine of two different units of the corpus, None with one unit.
        consecutive_gain: per document, mean cosine of consecutive units minus that of any two
            units of the document; NaN below 3 units, where both are the same.
        effective_dimension: participation ratio :math:`(\sum λ)^2 / \sum λ^2` of the eigenvalues
            of the unit vectors' covariance, from 1 to the number of dimensions; None where all
            units are alike.
    """

    random_cosine: float | None
    consecutive_gain: Floats
    effective_dimension: float | None

    @classmethod
    def of(cls, documents: Iterable[Floats]) -> VectorShape:
        """Describe the `directions` of all documents' units, which are gone through once."""
        n, total, moments = 0, np.zeros(1), np.zeros((1, 1))
        gains = []
        for rows in documents:
            n += len(rows)
            total = total + rows.sum(0)
            moments = moments + rows.T @ rows  # (d, d)
            gain = np.nan
            if len(rows) > 2:
                consecutive = float(np.einsum("id,id->", rows[1:], rows[:-1])) / (len(rows) - 1)
                gain = consecutive - _mean_cosine(rows.sum(0), float((rows**2).sum()), len(rows))
            gains.append(gain)
        covariance = moments / n - np.outer(total / n, total / n)
        variance = float(np.trace(covariance))
        return cls(
            _mean_cosine(total, float(np.trace(moments)), n) if n > 1 else None,
            np.array(gains),
            # Without eigenvalues: their sum is the trace, that of their squares the squared norm.
            variance**2 / float((covariance**2).sum()) if variance > ALL_ALIKE else None,
        )


def _mean_cosine(total: Floats, squares: float, n: int) -> float:
    return (float(total @ total) - squares) / (n * (n - 1))
