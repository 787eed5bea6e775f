"""Where the text itself would have boundaries, and what systems' boundaries get from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Unpack

import numpy as np

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
from reffree.evaluate.corpus_counts import CorpusCounts, dropped_notes
from reffree.evaluate.metric_set import MetricSet, check_scorers, readings, with_scorers_encoder
from reffree.evaluate.result import DocumentText, Field, Result, Table, columns
from reffree.evaluate.scores import corpus_mean, opening_scores
from reffree.evaluate.signature import Signature
from reffree.evaluate.table import CorpusScore
from reffree.evaluate.verdict import describe, rank
from reffree.metrics.free.evidence import MOST_STEPS
from reffree.metrics.free.expected import ExpectedPk
from reffree.metrics.free.placement import Granularity, Placement, allowed_segments
from reffree.metrics.free.posterior import Posterior
from reffree.segmenters.base import Inputs
from reffree.statistics.resampling import DocumentBootstrap
from reffree.util.declare import Option, declared
from reffree.util.errors import (
    InputError,
    OptionError,
    UnknownNameError,
    check_documents,
    counted,
    mistake,
)
from reffree.util.grid import Row
from reffree.util.progress import Progress, no_progress

METRIC, PLACED, DENSE = SCORED = ExpectedPk.name, Placement.name, Granularity.name
UNRELATED = ("unsegmented", "aggregation", "interval", "seed")
"""Fields of a score's signature that do not touch boundaries."""

GAPS = (
    *columns("text", "document"),
    *columns("count", at="units before"),
    *columns("number", "probability"),
)
"""Columns of the table of gaps; beside them stands a column for every system."""

OWN_GAPS = (
    *columns("text", "document", "system"),
    *columns("count", "boundaries"),
    *columns("number", "placement", "granularity", "probability"),
    Field("expected_pk", "expected_pk", best="low"),
)
SYSTEMS = (
    *columns("text", "system"),
    *columns("count", "documents", "boundaries"),
    *(Field("placement", "placement", best="high"), *columns("number", "granularity")),
    *columns("number", probability="probability", gap_probability="of any gap"),
    Field("expected_pk", "expected_pk", best="low"),
)
DOCUMENTS = (
    *columns("text", "document"),
    *columns("count", "units"),
    *columns("number", "assumed_segments", "information", "mean_probability"),
    *columns("text", reason="why there is no posterior"),
)
LEGEND = (
    " placement: where boundaries are, 0 chance and 1 the best of as many; granularity: how many, "
    "1 as the text suggests; probability: mean over a system's boundaries. expected_pk: the Pk "
    "that the text lets one expect; lower is better, the best are marked."
)


@declared
def boundaries(
    corpus: Corpus,
    *,
    length: Annotated[
        float | None,
        Option(
            "Units a segment is expected to have.",
            metavar="UNITS",
            default="as in 15 public corpora, and by the text",
        ),
    ] = None,
    evidence: Annotated[
        str,
        Option(
            "What the probabilities rest on: embedding, words, cues, scorer:FOLDER, or all at "
            "hand.",
            metavar="SOURCE",
        ),
    ] = "all",
    documents: Annotated[
        Sequence[str] | None,
        Option(
            "Only this document; may be repeated.",
            "--document",
            "ID",
            default="all; in a terminal the first are drawn",
        ),
    ] = None,
    systems: Annotated[
        Sequence[str] | None,
        Option("Only this system, or gold; may be repeated.", "--only", "NAME", default="all"),
    ] = None,
    embeddings: Vectors | None = None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> Result:
    """How likely a boundary is in every gap of the text, and which systems have one there.

    The probabilities are those behind the expected errors of reffree score: the text's own, no gold
    is needed. For every system, and for gold, every annotator's as ``gold:NAME``: the mean
    probability of its boundaries, and its expected Pk. A corpus without systems is fine.
    """
    try:
        metric = ExpectedPk(length=length, evidence=evidence)
    except InputError as error:
        raise OptionError(error.found, expected=error.expected, remedy=error.remedy) from None
    options = EncoderOptions(**encoding)
    if embeddings is None:
        options = with_scorers_encoder([metric], options)
    part, given = units_taking_part(corpus, embeddings, options)
    known = tuple(dict.fromkeys(name for each in part.corpus for name in _segmentations(each)))
    for name in systems or ():
        if name not in known:
            raise UnknownNameError("system", name, known)
    shown = known if systems is None else tuple(dict.fromkeys(systems))
    check_scorers([metric], coming_spec(given, options))
    corpus, embedded = _encoded(part.corpus, given, documents, options, progress)
    vectors = Inputs(corpus, embeddings=embedded.vectors).vectors("boundaries")
    read = readings(corpus, [metric], embedded.vectors, embedded.spec, options.device)
    found = []
    with progress("Looking for boundaries", len(corpus)) as advance:
        for document, x, reading in zip(corpus, vectors, read, strict=True):
            found.append(_Document(document, metric, metric.posterior(x, reading), shown))
            advance(1)
    counts = CorpusCounts.of(corpus)
    metrics = MetricSet((METRIC,), {METRIC: metric}, {})
    scored = Signature.of(metrics, counts, embedded, seed=0, dropped=options.dropped)
    signature = Signature({k: v for k, v in scored.fields.items() if k not in UNRELATED})
    having = {name: [each for each in found if name in each.segmentations] for name in shown}
    scores: dict[str, dict[str, CorpusScore]] = {}
    sums = [_sum_up(name, some, scores) for name, some in having.items() if some]
    if systems is None:  # best first
        sums.sort(key=lambda row: math.inf if row[METRIC] is None else row[METRIC])
    names = tuple(row["system"] for row in sums)
    size = f"{counted(counts.n_documents, 'document')}, {counted(counts.n_units, 'unit')}."
    of_systems = [
        (
            *(each.document.id, name, len(given.boundaries)),
            *(each.value(metric, name) for metric in (PLACED, DENSE)),
            *(_mean(each.own[name]), each.value(METRIC, name)),
        )
        for each in found
        for name, given in each.in_order(names).items()
    ]
    title = "Mean posterior probability of each system's boundaries, over all documents"
    rests_on = "What each document's posterior rests on"
    rows = [each.row() for each in found]
    return Result(
        command="boundaries",
        question="Where does the text itself have boundaries?",
        verdict=_verdict(found, sums, scores),
        signature=str(signature),
        settings={},
        corpora=(counts.to_dict(embedded),),
        tables=(
            Table.of("systems", title, SYSTEMS, sums),
            _gaps(found, names),
            Table.of("own", "Systems of each document", OWN_GAPS, of_systems, shown=False),
            Table.of("documents", rests_on, DOCUMENTS, rows, shown=False),
        ),
        notes=(*corpus.notes, *dropped_notes(counts, embedded), *_notes(found)),
        legend=(size + (LEGEND if names else ""),),
        texts=tuple(each.text(names) for each in found),
    )


class _Document:
    """What the text of a document says of its gaps, and where systems have boundaries."""

    def __init__(
        self, document: Document, metric: ExpectedPk, posterior: Posterior, shown: Sequence[str]
    ) -> None:
        given = _segmentations(document)
        self.document = document
        self.segmentations = {name: given[name] for name in shown if name in given}
        self.facts = posterior.facts()
        self.probabilities: list[float] | None = None
        self.mean: float | None = None
        self.allowed = np.full(2, np.nan)  # the least and the most granularity
        ends = posterior.edges[1:-1]  # of steps: gaps that may have a boundary
        if posterior.is_defined:
            self.probabilities = posterior.boundaries.tolist()
            self.mean = float(posterior.boundaries[ends - 1].mean())
            self.allowed = np.array(allowed_segments(posterior)) / posterior.segments
        self.scores: dict[tuple[str, str], tuple[float, float]] = {}  # with their weights
        metrics = (Placement(evidence=metric.evidence), Granularity(), metric)
        self.own = {}
        for name, segmentation in self.segmentations.items():
            masses = np.array([segmentation.masses])
            for each in metrics:
                (value,), (weight,) = each.weighted_scores(posterior, masses)
                self.scores[each.name, name] = float(value), float(weight)
            # Of the nearest end of a step: the boundary itself where steps are units.
            at = np.asarray(segmentation.boundaries, dtype=np.float64)
            nearest = np.searchsorted((ends[1:] + ends[:-1]) / 2, at)
            is_known = posterior.is_defined
            self.own[name] = posterior.boundaries[ends[nearest] - 1].tolist() if is_known else []

    def value(self, metric: str, system: str) -> float | None:
        """Return a score of a system as tables show it."""
        value = self.scores[metric, system][0]
        if math.isnan(value):
            return None
        return math.exp(value) if metric == DENSE else value

    def row(self) -> tuple[Any, ...]:
        """Return what the posterior rests on."""
        known = (self.facts.segments, self.facts.information) if self.facts else (None, None)
        reason = ExpectedPk.undefined if self.probabilities is None else None
        return (self.document.id, len(self.document.units), *known, self.mean, reason)

    def in_order(self, names: Sequence[str]) -> dict[str, Segmentation]:
        """Return the systems' segmentations in the order of the names."""
        return {name: self.segmentations[name] for name in names if name in self.segmentations}

    def text(self, names: Sequence[str]) -> DocumentText:
        """Return the units and the systems' masses, to be drawn in the order of the names."""
        masses = {name: each.masses for name, each in self.in_order(names).items()}
        document = self.document
        return DocumentText("", document.id, document.units, masses, document.clocks)


def _gaps(documents: Sequence[_Document], names: Sequence[str]) -> Table:
    """Make a row of every gap: how likely a boundary is, and which systems have one."""
    taken = {each.name for each in GAPS}
    marks = {name: f"system:{name}" if name in taken else name for name in names}
    rows = []
    for each in documents:
        at = {marks[name]: set(given.boundaries) for name, given in each.segmentations.items()}
        for gap in range(1, len(each.document.units)):
            probability = each.probabilities[gap - 1] if each.probabilities else None
            row = {"document": each.document.id, "at": gap, "probability": probability}
            rows.append(row | {mark: int(gap in places) for mark, places in at.items()})
    fields = (*GAPS, *(Field(column, name, "count") for name, column in marks.items()))
    return Table.of("gaps", "Every gap between two units", fields, rows, shown=False)


def _sum_up(
    name: str, having: Sequence[_Document], scores: dict[str, dict[str, CorpusScore]]
) -> Row:
    """Return a system's row over the documents that have it, and add its scores to the others."""
    of = {metric: np.array([each.scores[metric, name] for each in having]).T for metric in SCORED}
    bootstrap = DocumentBootstrap(len(having), np.random.default_rng(0))
    allowed = np.array([each.allowed for each in having])
    (placed, room), factors, error = of[PLACED], of[DENSE][0], corpus_mean(*of[METRIC])
    own = opening_scores(placed, room, factors, allowed, bootstrap)
    scores[name] = own | {METRIC: CorpusScore(error, error)}
    # Every gap counts once, as every boundary does.
    known = [(d.mean, len(d.document.units) - 1) for d in having if d.mean is not None]
    n_gaps = sum(n for _, n in known)
    row: Row = {"system": name, "documents": len(having)}
    row["boundaries"] = sum(len(d.segmentations[name].boundaries) for d in having)
    row |= {each: score.value for each, score in scores[name].items()}
    row["probability"] = _mean([p for d in having for p in d.own[name]])
    gap_probability = math.fsum(mean * n for mean, n in known) / n_gaps if known else None
    return {**row, "gap_probability": gap_probability}


def _verdict(
    documents: Sequence[_Document],
    sums: Sequence[Row],
    scores: Mapping[str, Mapping[str, CorpusScore]],
) -> tuple[str, ...]:
    """Say how well the best system sits, and whose boundaries are likeliest.

    Where there are no systems, say how many gaps are likely ones.
    """
    known = [row for row in sums if row["probability"] is not None]
    if not known:
        likely = sum(p >= 0.5 for d in documents for p in d.probabilities or ())
        n_gaps = sum(len(d.document.units) - 1 for d in documents)
        return (f"A boundary is more likely than not in {likely:,} of {counted(n_gaps, 'gap')}.",)
    rivals = rank(METRIC, "lower", {row["system"]: row[METRIC] for row in sums})
    opening = describe(rivals.best or known[0]["system"], scores)
    if len(rivals.values) > 1:
        opening.append(f"It has the lowest {METRIC} of {len(rivals.values)} systems.")
    best = max(known, key=lambda row: row["probability"])
    of = f" are likeliest of {len(known)} systems" if len(known) > 1 else ""
    return (
        *opening,
        f"The boundaries of {best['system']}{of}: probability {best['probability']:.3f} on "
        f"average, where any gap of the same documents has {best['gap_probability']:.3f}.",
    )


def _segmentations(document: Document) -> dict[str, Segmentation]:
    """Gold, every annotator's gold, and the systems of a document."""
    golds = {} if document.gold is None else {GOLD: document.gold}
    golds |= {f"{GOLD}:{name}": given for name, given in document.golds.items()}
    for name in golds:
        if name in document.systems:
            found = f"a system called {name!r}, as an annotator's gold is here"
            raise mistake(document.place, found, "another name", "rename the system")
    return {**golds, **document.systems}


def _encoded(
    corpus: Corpus,
    given: Vectors | None,
    ids: Sequence[str] | None,
    options: EncoderOptions,
    progress: Progress,
) -> tuple[Corpus, Embeddings]:
    """Take the documents that are asked for, and their vectors; no others are encoded."""
    places = {document.id: d for d, document in enumerate(corpus)}
    check_documents(ids or (), places)
    positions = list(places.values()) if ids is None else [places[id] for id in dict.fromkeys(ids)]
    if not positions:
        remedy = "leave documents out for all"
        raise OptionError("no document", expected="at least one", remedy=remedy)
    chosen = replace(corpus, documents=tuple(corpus[d] for d in positions))
    if given is None:
        return chosen, corpus_vectors(chosen, None, options, progress)
    every = corpus_vectors(corpus, given, options, progress)
    return chosen, replace(every, vectors=[every.vectors[d] for d in positions])


def _notes(documents: Sequence[_Document]) -> list[str]:
    """Say which documents have no posterior, and which are read in steps of several units."""
    notes = []
    without = sum(each.probabilities is None for each in documents)
    if without:
        notes.append(f"{counted(without, 'document')} without a posterior: {ExpectedPk.undefined}.")
    long = sum(len(each.document.units) > MOST_STEPS for each in documents)
    if long:
        notes.append(
            f"{counted(long, 'document')} of more than {MOST_STEPS:,} units read in steps of "
            "several: probabilities stand at their ends, and a system's boundary has that of the "
            "nearest."
        )
    return notes


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
