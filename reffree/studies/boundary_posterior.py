"""Where the text itself would have boundaries, and what systems' boundaries get from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import GOLD, Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import (
    Embeddings,
    Vectors,
    coming_spec,
    corpus_vectors,
    units_taking_part,
)
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.evaluate.corpus_counts import CorpusCounts
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.notes import dropped_notes
from reffree.evaluate.signature import Signature
from reffree.evaluate.table import rounded
from reffree.metrics.free.evidence import MOST_STEPS
from reffree.metrics.free.expected import ExpectedPk
from reffree.metrics.free.posterior import Posterior
from reffree.segmenters.base import Inputs
from reffree.segmenters.posterior import check_scorers, readings
from reffree.util.bounds import with_keywords
from reffree.util.errors import (
    InputError,
    OptionError,
    UnknownNameError,
    check_documents,
    counted,
)
from reffree.util.progress import Progress, no_progress

METRIC = ExpectedPk.name
UNRELATED = ("unsegmented", "aggregation", "interval", "seed")
"""Fields of a score's signature that do not touch boundaries."""


@dataclass(frozen=True, slots=True)
class SystemBoundaries:
    """A system's boundaries in one document."""

    system: str
    at: tuple[int, ...]  # units before each boundary
    probabilities: tuple[float, ...]  # of each; none where the document has no posterior
    expected_pk: float | None

    @property
    def probability(self) -> float | None:
        """Mean over its boundaries; None without any."""
        return _mean(self.probabilities)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "system": self.system,
            "boundaries": list(self.at),
            "probability": rounded(self.probability),
            "expected_pk": rounded(self.expected_pk),
        }


@dataclass(frozen=True, slots=True)
class DocumentBoundaries:
    """What the text of a document says of its gaps, and where systems have boundaries."""

    id: str
    units: tuple[str, ...]
    probabilities: tuple[float, ...] | None  # in each of the n - 1 gaps; None: no posterior
    mean_probability: float | None  # over the gaps that may have a boundary
    information: float | None  # nats that the text adds to the prior, per boundary
    assumed_segments: float | None
    systems: tuple[SystemBoundaries, ...]
    clocks: tuple[str, ...] = ()  # where units start in time, if that is known

    def __getitem__(self, system: str) -> SystemBoundaries:
        """Return a system's boundaries."""
        for each in self.systems:
            if each.system == system:
                return each
        raise UnknownNameError("system", system, [each.system for each in self.systems])

    @property
    def reason(self) -> str | None:
        """Why there is no posterior."""
        return ExpectedPk.undefined if self.probabilities is None else None

    @property
    def systems_at(self) -> tuple[tuple[str, ...], ...]:
        """Names of the systems with a boundary in each gap."""
        found: list[list[str]] = [[] for _ in self.units[1:]]
        for each in self.systems:
            for at in each.at:
                found[at - 1].append(each.system)
        return tuple(map(tuple, found))

    def probability_at(self, gap: int) -> float | None:
        """Probability of a boundary in a gap, counted from 0."""
        return None if self.probabilities is None else self.probabilities[gap]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        result: dict[str, Any] = {
            "id": self.id,
            "units": len(self.units),
            "assumed_segments": rounded(self.assumed_segments),
            "information": rounded(self.information),
            "mean_probability": rounded(self.mean_probability),
            "gaps": [
                {
                    "at": gap + 1,
                    "probability": rounded(self.probability_at(gap)),
                    "systems": list(names),
                    **({"time": self.clocks[gap + 1]} if self.clocks else {}),
                }
                for gap, names in enumerate(self.systems_at)
            ],
            "systems": [each.to_dict() for each in self.systems],
        }
        if self.reason is not None:
            result["reason"] = self.reason
        return result


@dataclass(frozen=True, slots=True)
class SystemSummary:
    """A system over all documents that have it."""

    system: str
    documents: int
    boundaries: int
    probability: float | None  # mean over its boundaries
    gap_probability: float | None  # mean over all gaps of the same documents
    expected_pk: float | None  # mean over documents

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = asdict(self).items()
        return {name: rounded(x) if isinstance(x, float) else x for name, x in values}


@dataclass(frozen=True, slots=True)
class BoundaryMap:
    """Everything `reffree boundaries` shows, in one value."""

    signature: str
    corpus: dict[str, int]
    documents: tuple[DocumentBoundaries, ...]
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every system of any document, in order."""
        return tuple(dict.fromkeys(s.system for d in self.documents for s in d.systems))

    @property
    def systems(self) -> tuple[SystemSummary, ...]:
        """Every system over its documents."""
        return tuple(self._summary(name) for name in self.names)

    def _summary(self, name: str) -> SystemSummary:
        having = [d for d in self.documents if any(s.system == name for s in d.systems)]
        own = [document[name] for document in having]
        # Every gap counts once, as every boundary does.
        gaps = [(d.mean_probability, len(d.units) - 1) for d in having]
        known = [(mean, n) for mean, n in gaps if mean is not None]
        n_gaps = sum(n for _, n in known)
        return SystemSummary(
            system=name,
            documents=len(having),
            boundaries=sum(len(each.at) for each in own),
            probability=_mean([p for each in own for p in each.probabilities]),
            gap_probability=math.fsum(mean * n for mean, n in known) / n_gaps if known else None,
            expected_pk=_mean([each.expected_pk for each in own if each.expected_pk is not None]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the structure of the JSON output."""
        return {
            "signature": self.signature,
            "corpus": dict(self.corpus),
            "systems": [each.to_dict() for each in self.systems],
            "documents": [each.to_dict() for each in self.documents],
            "notes": list(self.notes),
        }


@with_keywords(Encoding)
def boundaries(
    corpus: Corpus,
    *,
    length: float | None = None,
    evidence: str = "all",
    documents: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    embeddings: Vectors | None = None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> BoundaryMap:
    """Give every gap the posterior probability of a boundary, and see what systems make of it.

    The posterior is that of ``expected_pk``: no gold is needed, and where there is one it is shown
    as a system is, every annotator's as ``gold:NAME``. A corpus without systems is fine.

    Args:
        corpus: from `reffree.load`.
        length: expected units per segment, where it is known.
        evidence: what the posterior rests on: ``embedding``, ``words``, ``scorer:FOLDER`` or
            ``all`` that is at hand.
        documents: ids of the only documents to look at, in this order.
        systems: names of the only systems to show, in this order.
        embeddings: one array per document, in corpus order or by id, instead of an encoder.
        progress: called as stages start.
        **encoding: which encoder, and how: see `EncoderOptions`.
    """
    metric = _metric(length, evidence)
    options = EncoderOptions(**encoding)
    part, given = units_taking_part(corpus, embeddings, options)
    shown = _shown(part.corpus, systems)
    positions = _positions(part.corpus, documents)
    check_scorers([metric], coming_spec(given, options))
    corpus, embedded = _encoded(part.corpus, given, positions, options, progress)
    inputs = Inputs(
        corpus, embeddings=embedded.vectors, encoder=embedded.spec, device=options.device
    )
    vectors, read = inputs.vectors("boundaries"), readings(inputs, [metric])
    found = []
    with progress("Looking for boundaries", len(corpus)) as advance:
        for document, x, reading in zip(corpus, vectors, read, strict=True):
            found.append(_document(document, metric, metric.posterior(x, reading), shown))
            advance(1)
    counts = CorpusCounts.of(corpus)
    metrics = MetricSet((METRIC,), {METRIC: metric}, {})
    scored = Signature.of(metrics, counts, embedded, seed=0, dropped=options.dropped)
    signature = Signature({k: v for k, v in scored.fields.items() if k not in UNRELATED})
    return BoundaryMap(
        str(signature),
        counts.to_dict(embedded),
        tuple(found),
        (*corpus.notes, *dropped_notes(counts, embedded), *_notes(found)),
    )


def _metric(length: float | None, evidence: str) -> ExpectedPk:
    """Make the metric whose posterior is shown; refuse what it refuses, and no trained scorer."""
    try:
        metric = ExpectedPk(length=length, evidence=evidence)
    except InputError as error:
        raise OptionError(error.found, expected=error.expected, remedy=error.remedy) from None
    return metric


def _shown(corpus: Corpus, systems: Sequence[str] | None) -> tuple[str, ...]:
    """Names of what is shown of each document, as far as it has them."""
    known = tuple(dict.fromkeys(name for document in corpus for name in _segmentations(document)))
    for name in systems or ():
        if name not in known:
            raise UnknownNameError("system", name, known)
    return known if systems is None else tuple(dict.fromkeys(systems))


def _segmentations(document: Document) -> dict[str, Segmentation]:
    """Gold, every annotator's gold, and the systems of a document."""
    golds = {} if document.gold is None else {GOLD: document.gold}
    golds |= {f"{GOLD}:{name}": given for name, given in document.golds.items()}
    for name in golds:
        if name in document.systems:
            raise InputError(
                f"a system called {name!r}, as an annotator's gold is here",
                expected="another name",
                remedy="rename the system",
                place=document.place,
            )
    return {**golds, **document.systems}


def _positions(corpus: Corpus, ids: Sequence[str] | None) -> list[int]:
    """Where the documents that are asked for stand in the corpus."""
    known = {document.id: d for d, document in enumerate(corpus)}
    if ids is None:
        return list(known.values())
    check_documents(ids, known)
    return [known[id] for id in dict.fromkeys(ids)]


def _encoded(
    corpus: Corpus,
    given: Vectors | None,
    positions: Sequence[int],
    options: EncoderOptions,
    progress: Progress,
) -> tuple[Corpus, Embeddings]:
    """Take the documents that are asked for, and their vectors; no others are encoded."""
    if not positions:
        raise OptionError(
            "no document", expected="at least one", remedy="leave documents out for all"
        )
    chosen = replace(corpus, documents=tuple(corpus[d] for d in positions))
    if given is None:
        return chosen, corpus_vectors(chosen, None, options, progress)
    every = corpus_vectors(corpus, given, options, progress)
    return chosen, replace(every, vectors=[every.vectors[d] for d in positions])


def _document(
    document: Document, metric: ExpectedPk, posterior: Posterior, shown: Sequence[str]
) -> DocumentBoundaries:
    segmentations = _segmentations(document)
    is_defined = posterior.is_defined
    ends = posterior.edges[1:-1]  # of steps: gaps that may have a boundary
    placed = []
    for name in shown:
        if name in segmentations:
            masses = np.array([segmentations[name].masses])
            value = float(metric.scores(posterior, masses)[0])
            at = segmentations[name].boundaries
            nearest = _nearest(ends, at) if is_defined else []
            placed.append(
                SystemBoundaries(
                    name,
                    tuple(at),
                    tuple(float(posterior.boundaries[end - 1]) for end in nearest),
                    None if math.isnan(value) else value,
                )
            )
    facts = posterior.facts()
    return DocumentBoundaries(
        document.id,
        document.units,
        tuple(posterior.boundaries.tolist()) if is_defined else None,
        float(posterior.boundaries[ends - 1].mean()) if is_defined else None,
        None if facts is None else facts.information,
        None if facts is None else facts.segments,
        tuple(placed),
        document.clocks,
    )


def _nearest(ends: NDArray[np.int64], at: Sequence[int]) -> list[int]:
    """Return the step's end that is nearest to each boundary: itself where steps are units."""
    between = (ends[1:] + ends[:-1]) / 2
    found: list[int] = ends[np.searchsorted(between, np.asarray(at, dtype=np.float64))].tolist()
    return found


def _notes(documents: Sequence[DocumentBoundaries]) -> list[str]:
    """Say which documents have no posterior, and which are read in steps of several units."""
    notes = []
    without = sum(document.probabilities is None for document in documents)
    if without:
        notes.append(f"{counted(without, 'document')} without a posterior: {ExpectedPk.undefined}.")
    long = sum(len(document.units) > MOST_STEPS for document in documents)
    if long:
        notes.append(
            f"{counted(long, 'document')} of more than {MOST_STEPS:,} units read in steps of "
            "several: probabilities stand at their ends, and a system's boundary has that of the "
            "nearest."
        )
    return notes


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
