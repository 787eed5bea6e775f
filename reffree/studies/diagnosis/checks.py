"""The checks of one corpus: a value each, a verdict, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reffree.arrays import Floats
from reffree.corpus import Corpus
from reffree.encoders.embed import Embeddings
from reffree.encoders.unit_filter import is_backchannel
from reffree.errors import shorten
from reffree.progress import Progress
from reffree.scoring.evidence import Reading
from reffree.scoring.expected import ExpectedPk
from reffree.segmentation import Segmentation
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.diagnosis import rules
from reffree.studies.diagnosis.anisotropy import Shape, shape
from reffree.studies.diagnosis.damage_test import Noticing
from reffree.studies.diagnosis.directions import directions
from reffree.studies.diagnosis.near_duplicates import exact_twins, near_twins
from reffree.studies.diagnosis.returns import Returns, semantic_returns

SHOWN_TEXTS = 5
"""Repeated texts named for each corpus, the most frequent first."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at; the verdict is None where it cannot be judged."""

    check: str
    value: float | None
    unit: str
    verdict: rules.Verdict | None
    advice: str | None = None  # only where there is something to do
    ci: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What was counted in every document, for shares over the corpus."""

    exact: list[int]
    near: list[int]
    backchannels: list[int]
    returns: list[Returns]
    vectors: Shape
    information: list[tuple[float, float]]  # of the text, and by chance; none of short documents
    repeated: Counter[str] = field(default_factory=Counter)  # units with an exact twin, by text


def measure(
    corpus: Corpus,
    embedded: Embeddings,
    source: Sequence[Segmentation],
    threshold: float,
    seed: int,
    progress: Progress,
) -> Measured:
    """Go through the documents once."""
    measured = Measured([], [], [], [], shape(map(directions, embedded.vectors)), [])
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


def repeated_texts(measured: Measured) -> list[tuple[str, int]]:
    """Return the most frequent texts with exact twins in other segments, on one line each."""
    ordered = sorted(measured.repeated.items(), key=lambda item: (-item[1], item[0]))
    return [(shorten(" ".join(text.split())), n) for text, n in ordered[:SHOWN_TEXTS]]


def run_checks(
    corpus: Corpus,
    embedded: Embeddings,
    source: str,
    measured: Measured,
    noticed: Mapping[str, Noticing],
    bootstrap: DocumentBootstrap,
    threshold: float,
) -> list[Check]:
    """Judge everything that was measured."""
    return [
        *_unit_checks(corpus, embedded, measured, bootstrap, threshold),
        *_segment_checks(corpus.hypotheses[source], measured.returns, bootstrap),
        *_vector_checks(measured.vectors, bootstrap),
        _information_check(measured.information, bootstrap),
        *_size_checks(corpus, noticed),
        *_density_checks(corpus, source),
    ]


def densities(corpus: Corpus, source: str) -> dict[str, float]:
    """Segments of every other system for each segment of the source."""
    counts = {name: sum(map(len, made)) for name, made in corpus.hypotheses.items()}
    return {name: n / counts[source] for name, n in counts.items() if name != source}


def _unit_checks(
    corpus: Corpus,
    embedded: Embeddings,
    measured: Measured,
    bootstrap: DocumentBootstrap,
    threshold: float,
) -> Iterator[Check]:
    units = [len(document.units) for document in corpus]
    yield _share(
        ("exact twins", "of units, in another segment"),
        (measured.exact, units),
        rules.EXACT_TWINS,
        bootstrap,
        "compare with scores under --drop-repeats",
    )
    yield _share(
        ("near twins", f"of units, cosine {threshold:g} or more in another segment"),
        (measured.near, units),
        rules.NEAR_TWINS,
        bootstrap,
        "segments share what they say: trust only metrics that notice damage",
    )
    yield _share(
        ("backchannels", "of units"),
        (measured.backchannels, units),
        rules.BACKCHANNELS,
        bootstrap,
        "compare with scores under --drop-backchannels",
    )
    if embedded.spec.max_length is None:
        yield Check("truncated", None, "of units: not known of vectors as given", None)
        return
    value = embedded.n_truncated / corpus.n_units
    verdict = rules.TRUNCATED(value)
    advice = "use an encoder that reads longer texts, or split long units"
    yield Check("truncated", value, "of units", verdict, _if_bad(verdict, advice))


def _segment_checks(
    source: Sequence[Segmentation], returns: Sequence[Returns], bootstrap: DocumentBootstrap
) -> Iterator[Check]:
    found = [int(each.is_return.sum()) for each in returns]
    expected = [float(each.chance.sum()) for each in returns]
    possible = [len(each.margins) for each in returns]
    n = sum(possible)
    if n:
        chance = sum(expected) / n
        judged = rules.RETURNS(sum(found) / n - chance)
        yield _share(
            ("semantic returns", f"of {n:,} segments; {chance:.1%} by chance"),
            (found, possible),
            judged,
            bootstrap,
            "topics come back: no metric here looks beyond neighbouring segments",
        )
        margins = np.concatenate([each.margins for each in returns])
        yield Check("margin of returns", float(margins.mean()), "cosine, mean over segments", None)
    else:
        yield Check("semantic returns", None, "needs documents of 3 segments or more", None)
    yield _share(
        ("singletons", "of segments have one unit"),
        ([sum(m == 1 for m in each.masses) for each in source], [len(each) for each in source]),
        rules.SINGLETONS,
        bootstrap,
        "their scores are made up: prefer expected_pk, which needs none",
    )
    yield _share(
        ("unsegmented", "of documents have no boundary"),
        ([int(len(each) == 1) for each in source], [1] * len(source)),
        rules.UNSEGMENTED,
        bootstrap,
        "compare --unsegmented neutral with skip",
    )


def _vector_checks(vectors: Shape, bootstrap: DocumentBootstrap) -> Iterator[Check]:
    yield _plain(
        ("random cosine", "mean over all pairs of units"),
        vectors.random_cosine,
        rules.RANDOM_COSINE,
        "all vectors point one way: try another encoder, and raise --threshold",
    )
    gains = vectors.consecutive_gain
    defined = ~np.isnan(gains)
    gain = float(gains[defined].mean()) if defined.any() else None
    yield _plain(
        ("consecutive gain", "cosine of consecutive units over that of any two of a document"),
        gain,
        rules.CONSECUTIVE_GAIN,
        "units beside each other are hardly closer than others: try another encoder",
        bootstrap.interval(gain, gains),
    )
    yield _plain(
        ("effective dimension", "participation ratio of the vectors' covariance"),
        vectors.effective_dimension,
        rules.EFFECTIVE_DIMENSION,
        "too few directions to keep topics apart: try another encoder",
    )


def _information(
    metric: ExpectedPk, vectors: NDArray[np.generic], units: Sequence[str]
) -> tuple[float, float]:
    """Nats a boundary that the text adds to the prior, and that its units in random order add."""
    reading = Reading(units)
    facts = metric.facts(metric.posterior(vectors, reading), vectors, reading)
    return (0.0, 0.0) if facts is None else (facts.information, facts.chance_information)


def _information_check(
    information: Sequence[tuple[float, float]], bootstrap: DocumentBootstrap
) -> Check:
    names = ("information", "times what the units in random order would add to the prior")
    advice = (
        "expected errors rest on the prior, not on this text: try another encoder, or compare "
        "systems with gold"
    )
    pairs = np.array(information)  # (d, 2)
    if not pairs[:, 1].any():
        return Check(names[0], None, names[1], "problem", advice)
    value = float(_ratio(pairs.sum(0)))
    interval = bootstrap.pooled_interval(value, pairs, pairs[:, 1] > 0, _ratio)
    return _plain(names, value, rules.INFORMATION, advice, interval)


def _size_checks(corpus: Corpus, noticed: Mapping[str, Noticing]) -> Iterator[Check]:
    yield _plain(
        ("documents", "in the corpus"),
        len(corpus),
        rules.DOCUMENTS,
        "intervals over so few documents are rough: add some",
    )
    yield _plain(
        ("units", "in the median document"),
        float(np.median([len(document.units) for document in corpus])),
        rules.MEDIAN_UNITS,
        "scores of so short documents are unstable: read the corpus's only",
    )
    known = {name: each.resolution for name, each in noticed.items()}
    resolved = {name: value for name, value in known.items() if value is not None}
    if not resolved:
        advice = "no metric tells the source from random boundaries: do not rank systems"
        unit = "of the way from source to random"
        yield Check("resolution", None, unit, "problem", advice)
        return
    best = min(resolved, key=lambda name: (resolved[name], name))
    yield _plain(
        ("resolution", f"of the way from source to random, by {best}"),
        resolved[best],
        rules.RESOLUTION,
        "smaller differences between systems are noise: add documents",
    )


def _density_checks(corpus: Corpus, source: str) -> Iterator[Check]:
    ratios = densities(corpus, source)
    if not ratios:
        return
    worst = max(ratios, key=lambda name: abs(np.log(ratios[name])))
    factor = max(ratios[worst], 1 / ratios[worst])
    yield Check(
        "density",
        ratios[worst],
        f"segments of {worst!r} for each of {source!r}, the farthest of {len(ratios)}",
        rules.DENSITY(factor),
        _if_bad(
            rules.DENSITY(factor),
            "use expected_pk, with a length if you know it, or --null: losses move with density",
        ),
    )


def _share(
    names: tuple[str, str],
    counts: tuple[Sequence[int], Sequence[int]],
    rule: rules.Rule | rules.Verdict,
    bootstrap: DocumentBootstrap,
    advice: str,
) -> Check:
    """Share over the corpus, with an interval over documents."""
    check, unit = names
    pairs = np.array(counts, dtype=np.float64).T  # (d, 2)
    value = float(_ratio(pairs.sum(0)))
    verdict = rule(value) if isinstance(rule, rules.Rule) else rule
    interval = bootstrap.pooled_interval(value, pairs, pairs[:, 1] > 0, _ratio)
    return Check(check, value, unit, verdict, _if_bad(verdict, advice), interval)


def _plain(
    names: tuple[str, str],
    value: float | None,
    rule: rules.Rule,
    advice: str,
    ci: tuple[float, float] | None = None,
) -> Check:
    check, unit = names
    if value is None:
        return Check(check, None, unit, None)
    return Check(check, value, unit, rule(value), _if_bad(rule(value), advice), ci)


def _ratio(counts: Floats) -> Floats:
    part, whole = counts[..., 0], counts[..., 1]
    shares: Floats = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares


def _if_bad(verdict: rules.Verdict, advice: str) -> str | None:
    return None if verdict == "ok" else advice
