"""The checks of one corpus: a value each, a verdict, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import Corpus
from reffree.data.filter import is_backchannel
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Embeddings
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.expected import INFORMED, ExpectedPk
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.diagnosis.damage_test import DamageTest
from reffree.studies.diagnosis.embedding_space import (
    Returns,
    VectorShape,
    directions,
    exact_twins,
    near_twins,
    semantic_returns,
)
from reffree.util.arrays import Floats
from reffree.util.errors import shorten
from reffree.util.progress import Progress

Verdict = Literal["ok", "watch", "problem"]

SHOWN_TEXTS = 5
"""Repeated texts named for each corpus, the most frequent first."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at; the verdict is None where it cannot be judged."""

    check: str
    value: float | None
    unit: str
    verdict: Verdict | None = None
    advice: str | None = None  # only where there is something to do
    ci: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """Two limits of a check; where ``watch`` is above ``problem``, low values are the bad ones."""

    check: str
    watch: float
    problem: float
    advice: str  # where the value is not ok

    def verdict(self, value: float) -> Verdict:
        """Judge a value.

        >>> Rule("high", 0.05, 0.2, "").verdict(0.1), Rule("low", 30, 10, "").verdict(9)
        ('watch', 'problem')
        """
        sign = 1 if self.watch <= self.problem else -1
        if sign * value >= sign * self.problem:
            return "problem"
        return "watch" if sign * value >= sign * self.watch else "ok"

    def judge(
        self,
        unit: str,
        value: float | None,
        ci: tuple[float, float] | None = None,
        *,
        by: float | None = None,
    ) -> Check:
        """Make a check of a value, judged ``by`` another one where that is given."""
        if value is None:
            return Check(self.check, None, unit)
        verdict = self.verdict(value if by is None else by)
        advice = None if verdict == "ok" else self.advice
        return Check(self.check, value, unit, verdict, advice, ci)


RULES = {
    # A segment of ten units then has two that are as much another segment's as its own.
    "exact_twins": Rule("exact twins", 0.05, 0.20, "compare with scores under --drop-repeats"),
    # As for exact ones: the embedding space makes no difference between the two.
    "near_twins": Rule(
        "near twins",
        0.05,
        0.20,
        "segments share what they say: trust only metrics that notice damage",
    ),
    # As for twins, which backchannels are of each other.
    "backchannels": Rule(
        "backchannels", 0.05, 0.20, "compare with scores under --drop-backchannels"
    ),
    # Share of returns beyond chance: one segment in twenty, or in seven, is turned back to.
    "returns": Rule(
        "semantic returns",
        0.05,
        0.15,
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
        "random cosine",
        0.30,
        0.60,
        "all vectors point one way: try another encoder, and raise --threshold",
    ),
    # At 0, the order of units says nothing about their vectors, so no boundary can show in them.
    "consecutive_gain": Rule(
        "consecutive gain",
        0.03,
        0.0,
        "units beside each other are hardly closer than others: try another encoder",
    ),
    # Fewer directions than topics in a document cannot keep its topics apart.
    "effective_dimension": Rule(
        "effective dimension", 10, 3, "too few directions to keep topics apart: try another encoder"
    ),
    # Below, the text says no more about where boundaries are than its units in random order would.
    "information": Rule(
        "information",
        1.4,
        INFORMED,
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
        "density",
        1.5,
        2.0,
        "use expected_pk, with a length if you know it, or --null: losses move with density",
    ),
}
"""From which value on each check is to be watched, or is a problem, and what to do then."""


@dataclass(frozen=True, slots=True)
class CorpusMeasurements:
    """What was counted in every document, for shares over the corpus."""

    shape: VectorShape
    exact: list[int] = field(default_factory=list)
    near: list[int] = field(default_factory=list)
    backchannels: list[int] = field(default_factory=list)
    returns: list[Returns] = field(default_factory=list)
    information: list[tuple[float, float]] = field(default_factory=list)  # see `_information`
    repeated: Counter[str] = field(default_factory=Counter)  # units with an exact twin, by text

    @property
    def repeated_texts(self) -> list[tuple[str, int]]:
        """The most frequent texts with exact twins in other segments, on one line each."""
        ordered = sorted(self.repeated.items(), key=lambda item: (-item[1], item[0]))
        return [(shorten(" ".join(text.split())), n) for text, n in ordered[:SHOWN_TEXTS]]


def measure(
    corpus: Corpus,
    embedded: Embeddings,
    source: Sequence[Segmentation],
    threshold: float,
    seed: int,
    progress: Progress,
) -> CorpusMeasurements:
    """Go through the documents once."""
    measured = CorpusMeasurements(VectorShape.of(map(directions, embedded.vectors)))
    expected = ExpectedPk(seed=seed)
    with progress("Diagnosing", len(corpus)) as advance:
        for document, x, segmentation in zip(corpus, embedded.vectors, source, strict=True):
            rows = directions(x)
            segment = np.array(segmentation.to_segment_ids())
            twins = exact_twins(document.units, segment)
            measured.exact.append(int(twins.sum()))
            measured.near.append(int(near_twins(rows, segment, threshold).sum()))
            measured.backchannels.append(sum(map(is_backchannel, document.units)))
            measured.returns.append(semantic_returns(rows, segmentation.masses))
            measured.information.append(_information(expected, x, document.units))
            measured.repeated.update(
                text for text, is_twin in zip(document.units, twins, strict=True) if is_twin
            )
            advance(1)
    return measured


def _information(
    metric: ExpectedPk, vectors: NDArray[np.generic], units: Sequence[str]
) -> tuple[float, float]:
    """Nats a boundary that the text adds to the prior, and that its units in random order add.

    Both are 0 in documents too short for a posterior.
    """
    facts = metric.posterior(vectors, Reading(units)).facts()
    return (0.0, 0.0) if facts is None else (facts.information, facts.chance_information)


def run_checks(
    corpus: Corpus,
    embedded: Embeddings,
    source: str,
    measured: CorpusMeasurements,
    damage_tests: Mapping[str, DamageTest],
    bootstrap: DocumentBootstrap,
    threshold: float,
) -> list[Check]:
    """Judge everything that was measured."""
    return [
        *_unit_checks(corpus, embedded, measured, bootstrap, threshold),
        *_segment_checks(corpus.hypotheses[source], measured.returns, bootstrap),
        *_vector_checks(measured, bootstrap),
        *_size_checks(corpus, damage_tests),
        *_density_checks(corpus, source),
    ]


def densities(corpus: Corpus, source: str) -> dict[str, float]:
    """Segments of every other system for each segment of the source."""
    counts = {name: sum(map(len, made)) for name, made in corpus.hypotheses.items()}
    return {name: n / counts[source] for name, n in counts.items() if name != source}


def _unit_checks(
    corpus: Corpus,
    embedded: Embeddings,
    measured: CorpusMeasurements,
    bootstrap: DocumentBootstrap,
    threshold: float,
) -> Iterator[Check]:
    units = [len(document.units) for document in corpus]
    for name, counts, unit in (
        ("exact_twins", measured.exact, "of units, in another segment"),
        ("near_twins", measured.near, f"of units, cosine {threshold:g} or more in another segment"),
        ("backchannels", measured.backchannels, "of units"),
    ):
        yield _share(RULES[name], unit, counts, units, bootstrap)
    if embedded.spec.max_length is None:
        yield RULES["truncated"].judge("of units: not known of vectors as given", None)
    else:
        yield RULES["truncated"].judge("of units", embedded.n_truncated / corpus.n_units)


def _segment_checks(
    source: Sequence[Segmentation], returns: Sequence[Returns], bootstrap: DocumentBootstrap
) -> Iterator[Check]:
    found = [int(each.is_return.sum()) for each in returns]
    possible = [len(each.margins) for each in returns]
    n = sum(possible)
    if n:
        chance = sum(float(each.chance.sum()) for each in returns) / n
        unit = f"of {n:,} segments; {chance:.1%} by chance"
        excess = sum(found) / n - chance
        yield _share(RULES["returns"], unit, found, possible, bootstrap, by=excess)
        margins = np.concatenate([each.margins for each in returns])
        yield Check("margin of returns", float(margins.mean()), "cosine, mean over segments")
    else:
        yield RULES["returns"].judge("needs documents of 3 segments or more", None)
    singletons = [sum(m == 1 for m in each.masses) for each in source]
    sizes = [len(each) for each in source]
    yield _share(RULES["singletons"], "of segments have one unit", singletons, sizes, bootstrap)
    bare = [int(size == 1) for size in sizes]
    unit = "of documents have no boundary"
    yield _share(RULES["unsegmented"], unit, bare, [1] * len(source), bootstrap)


def _vector_checks(measured: CorpusMeasurements, bootstrap: DocumentBootstrap) -> Iterator[Check]:
    shape = measured.shape
    yield RULES["random_cosine"].judge("mean over all pairs of units", shape.random_cosine)
    gains = shape.consecutive_gain
    defined = ~np.isnan(gains)
    gain = float(gains[defined].mean()) if defined.any() else None
    unit = "cosine of consecutive units over that of any two of a document"
    yield RULES["consecutive_gain"].judge(unit, gain, bootstrap.interval(gain, gains))
    unit = "participation ratio of the vectors' covariance"
    yield RULES["effective_dimension"].judge(unit, shape.effective_dimension)
    rule = RULES["information"]
    unit = "times what the units in random order would add to the prior"
    of_text, by_chance = zip(*measured.information, strict=True)
    if any(by_chance):
        yield _share(rule, unit, of_text, by_chance, bootstrap)
    else:
        yield Check(rule.check, None, unit, "problem", rule.advice)


def _size_checks(corpus: Corpus, damage_tests: Mapping[str, DamageTest]) -> Iterator[Check]:
    yield RULES["documents"].judge("in the corpus", len(corpus))
    median = float(np.median([len(document.units) for document in corpus]))
    yield RULES["median_units"].judge("in the median document", median)
    known = {name: each.resolution for name, each in damage_tests.items()}
    resolved = {name: value for name, value in known.items() if value is not None}
    unit = "of the way from source to random"
    if resolved:
        best = min(resolved, key=lambda name: (resolved[name], name))
        yield RULES["resolution"].judge(f"{unit}, by {best}", resolved[best])
    else:
        advice = "no metric tells the source from random boundaries: do not rank systems"
        yield Check("resolution", None, unit, "problem", advice)


def _density_checks(corpus: Corpus, source: str) -> Iterator[Check]:
    ratios = densities(corpus, source)
    if ratios:
        worst = max(ratios, key=lambda name: abs(np.log(ratios[name])))
        unit = f"segments of {worst!r} for each of {source!r}, the farthest of {len(ratios)}"
        factor = max(ratios[worst], 1 / ratios[worst])
        yield RULES["density"].judge(unit, ratios[worst], by=factor)


def _share(
    rule: Rule,
    unit: str,
    parts: Sequence[float],
    wholes: Sequence[float],
    bootstrap: DocumentBootstrap,
    *,
    by: float | None = None,
) -> Check:
    """Judge the documents' parts together in their wholes, with an interval over documents."""
    pairs = np.array(list(zip(parts, wholes, strict=True)), dtype=np.float64)  # (d, 2)
    value = float(_ratio(pairs.sum(0)))
    interval = bootstrap.pooled_interval(value, pairs, pairs[:, 1] > 0, _ratio)
    return rule.judge(unit, value, interval, by=by)


def _ratio(counts: Floats) -> Floats:
    part, whole = counts[..., 0], counts[..., 1]
    shares: Floats = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares
