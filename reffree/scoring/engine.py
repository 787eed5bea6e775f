"""Many documents, many hypotheses each, all metrics: batches in, raw scores out.

On CPUs a score depends on the document's vectors, the hypothesis, the metric and the seed alone, to
the last bit of one machine: not on the documents and hypotheses beside it, their order, threads,
memory, or whether segments are kept. On other devices documents are padded and scored together, and
between machines and devices processors add in different orders: there scores agree within
`TOLERANCE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Literal, cast, get_args

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch import Tensor

from reffree.errors import OptionError
from reffree.masses import Hypotheses, MadeMasses, Masses, hypothesis_width, mass_matrix
from reffree.scoring.batches import similar_documents, stack_hypotheses
from reffree.scoring.evidence import Reading
from reffree.scoring.expected import Expected, score_expected
from reffree.scoring.inputs import check_finite, check_matrix
from reffree.scoring.layout import Layout
from reffree.scoring.metrics import (
    COMPILED,
    WITHOUT_SEARCH,
    Metric,
    PairMetric,
    parse_metrics,
    spelling,
)
from reffree.scoring.pairs import TABLE_ELEMENTS, Units
from reffree.scoring.posterior import PosteriorFacts
from reffree.scoring.result import MetricScores
from reffree.scoring.sag import Sag
from reffree.scoring.search import COMPILED_DEVICES

if TYPE_CHECKING:
    from reffree.scoring.inputs import Array

Unsegmented = Literal["neutral", "skip", "worst"]
Progress = Callable[[int], None]

HYPOTHESIS_ELEMENTS = 1 << 20
"""Hypotheses × units scored at a time by torch, memory permitting."""

HYPOTHESIS_BYTES = 256
"""Bytes per hypothesis and unit that are alive at the peak: some thirty float64 arrays."""

COMPILED_HYPOTHESES = 1 << 16
"""Hypotheses laid out at a time for the compiled loop, memory permitting."""

MASS_BYTES = 32
"""Bytes per hypothesis and segment that are alive while hypotheses are laid out and compared."""

FEW_MASSES = 1 << 19
"""Masses that are laid out without asking how much memory there is (16 MiB)."""

TOLERANCE = 1e-9
"""Raw scores on two processors or devices differ by less, relative to 1 plus their size.

Measured on random corpora: 4e-14 between processors; 2.4e-10 between the compiled loop and torch,
where SegReFree divides by the distance of centroids that are nearly equal. What lies next to a
threshold (units or centroids that are equal but for rounding) may fall on either side of it.
"""


@dataclass(frozen=True, slots=True)
class RawScores:
    """One metric over all hypotheses of all documents, one tensor per document."""

    documents: list[Tensor]  # (hypotheses,) NaN where undefined
    weights: list[Tensor]  # (hypotheses,) what the document counts for in the corpus mean
    left_out: list[Tensor]  # (hypotheses,) infinite parts that were left out
    segments: list[Tensor]  # (hypotheses, segments) NaN in the padding; empty unless asked for
    spread: list[Tensor]  # (hypotheses,) of expected errors over draws; empty unless asked for
    facts: list[PosteriorFacts | None]  # behind expected errors; none unless asked for

    @classmethod
    def empty(cls, n_documents: int) -> RawScores:
        """Make room for documents' scores."""

        def nothing() -> list[Tensor]:
            return [torch.empty(0)] * n_documents

        return cls(nothing(), nothing(), nothing(), nothing(), nothing(), [None] * n_documents)


def score_document(
    embeddings: Array,
    hypotheses: Hypotheses,
    metrics: Sequence[str] | None = None,
    *,
    unsegmented: Unsegmented = "neutral",
    seed: int = 0,
    memory: int | None = None,
) -> dict[str, Tensor]:
    """Raw scores of many segmentations of one document, for training and search loops.

    Args:
        embeddings: one row per unit, any floating dtype, on any device; it is not changed, and no
            gradient flows through the scores.
        hypotheses: one list of masses (or `Segmentation`) each, or an integer matrix of masses
            with a row per hypothesis, padded with zeros.
        metrics: reference-free names as for ``reffree score -m``; by default the published ones.
            Expected errors first make tables of the document, ``sag`` searches it.
        unsegmented: what a hypothesis without a boundary scores.
        seed: of the draws of expected errors, and of the shuffles of ``sag``.
        memory: see `score_documents`.

    Returns:
        Metric → float64 tensor, one raw score per hypothesis on the embeddings' device; NaN where
        the score is undefined. On CPUs a score is the same to the last bit whatever other
        hypotheses are given.

    >>> import numpy as np
    >>> units = np.array([[1, 0], [1, 0.2], [0.9, 0.1], [0, 1], [0.1, 1], [0.2, 0.9], [0.5, 0.5]])
    >>> scores = score_document(units, [[3, 4], [2, 5]], ["arp_pair"])
    >>> [round(score, 6) for score in scores["arp_pair"].tolist()]
    [0.966064, -0.675615]
    """
    given = WITHOUT_SEARCH if metrics is None else metrics
    names = given if isinstance(given, str) else tuple(given)
    scores = score_documents(
        [embeddings],
        [hypotheses],
        _parsed(names, seed),
        unsegmented=unsegmented,
        memory=memory,
    )
    return {name: raw.documents[0] for name, raw in scores.items()}


def score_documents(
    embeddings: Sequence[Array],
    hypotheses: Sequence[Hypotheses | MadeMasses],
    metrics: Sequence[Metric],
    *,
    unsegmented: Unsegmented = "neutral",
    keep_segments: bool = False,
    keep_spread: bool = False,
    device: torch.device | None = None,
    names: Sequence[str] | None = None,
    readings: Sequence[Reading] | None = None,
    memory: int | None = None,
    progress: Progress = lambda done: None,
) -> dict[str, RawScores]:
    """Score every hypothesis of every document; ``progress`` is told how many were just done.

    ``readings`` are the documents' texts and what trained scorers say of them, for expected errors;
    ``keep_spread`` asks for how far these are unsure, and for what they rest on.

    Documents on CPUs go through the compiled loop, one at a time; those on other devices through
    torch, in batches of documents of similar length.

    ``memory`` is in bytes, a quarter of what is free by default, and covers what scoring makes and
    throws away: tables of pairs and hypotheses laid out. It does not cover the program itself, the
    embeddings and hypotheses given, one document's vectors in float64, nor the scores. A document
    takes at least some 200 bytes per unit, and ``sag`` 64 MiB per thread beside that. On CPUs less
    memory takes more time and changes no score.
    """
    if unsegmented not in get_args(Unsegmented):
        raise OptionError(
            f"the policy {unsegmented!r} for documents without a boundary",
            expected=" or ".join(get_args(Unsegmented)),
            remedy="leave it out for neutral",
        )
    labels = names or [str(i) for i in range(len(embeddings))]
    documents = [check_matrix(x, name) for x, name in zip(embeddings, labels, strict=True)]
    task = _Task(documents, hypotheses, labels, unsegmented, keep_segments, device, memory)
    named = {spelling(metric): metric for metric in metrics}
    results = {name: RawScores.empty(len(documents)) for name in named}
    expected = {name: m for name, m in named.items() if isinstance(m, Expected)}
    others = {name: cast("PairMetric", m) for name, m in named.items() if name not in expected}
    for i in range(len(documents)) if expected else []:
        told = _silent if others else progress
        reading = Reading() if readings is None else readings[i]
        task.run_expected(i, reading, expected, results, told, keep_spread=keep_spread)
    if others:
        task.run_pairs(others, results, progress)
    return results


@dataclass(frozen=True)
class _Task:
    """What is to be scored, and within what memory."""

    documents: list[Tensor]
    hypotheses: Sequence[Hypotheses | MadeMasses]
    names: Sequence[str]
    unsegmented: Unsegmented
    keep_segments: bool
    device: torch.device | None
    limit: int | None

    @cached_property
    def memory(self) -> int:
        """Bytes to stay within."""
        return self.limit or psutil.virtual_memory().available // 4

    def device_of(self, i: int) -> torch.device:
        return self.device or self.documents[i].device

    def masses(self, i: int, start: int, stop: int) -> Masses:
        part = self.hypotheses[i][start:stop]
        return mass_matrix(part, len(self.documents[i]), self.names[i], first=start)

    def run_pairs(
        self, metrics: dict[str, PairMetric], results: dict[str, RawScores], progress: Progress
    ) -> None:
        """Score all documents by metrics made of pair sums."""
        compiled = {
            name: m for name, m in metrics.items() if name in COMPILED or isinstance(m, Sag)
        }
        other = [metric for name, metric in metrics.items() if name not in compiled]
        elsewhere = []
        for i in range(len(self.documents)):
            if self.device_of(i).type not in COMPILED_DEVICES:
                elsewhere.append(i)
                continue
            if compiled:
                self.run_compiled(i, compiled, results, progress)
            if other:
                self.run_torch([i], other, results, _silent if compiled else progress)
        for batch in similar_documents(self.documents, elsewhere):
            self.run_torch(batch, list(metrics.values()), results, progress)

    def run_expected(
        self,
        i: int,
        reading: Reading,
        metrics: dict[str, Expected],
        results: dict[str, RawScores],
        progress: Progress,
        *,
        keep_spread: bool,
    ) -> None:
        """Score one document by expected errors, on the CPU."""
        document = self.documents[i]
        check_finite(document, self.names[i])
        step = self._step(i)
        starts = range(0, max(1, len(self.hypotheses[i])), step)
        scored = score_expected(
            document.detach().double().cpu().numpy(),
            reading,
            metrics,
            (self.masses(i, start, start + step) for start in starts),
            progress,
            keep_spread=keep_spread,
        )
        device = self.device_of(i)
        for name, (raw, spread, facts) in scored.items():
            result = results[name]
            result.documents[i] = torch.from_numpy(raw).to(device)
            result.spread[i] = torch.from_numpy(spread).to(device)
            result.weights[i] = torch.ones_like(result.documents[i])
            result.left_out[i] = torch.zeros_like(result.documents[i])
            result.facts[i] = facts
            if self.keep_segments:
                width = hypothesis_width(self.hypotheses[i])
                result.segments[i] = torch.full((len(raw), width), torch.nan, dtype=torch.float64)

    def run_compiled(
        self,
        i: int,
        metrics: dict[str, PairMetric],
        results: dict[str, RawScores],
        progress: Progress,
    ) -> None:
        """Score one document by the compiled loop."""
        from reffree.scoring.compiled import CompiledDocument

        document = CompiledDocument(self.documents[i], self.names[i])
        step = self._step(i)
        starts = range(0, max(1, len(self.hypotheses[i])), step)
        scores = document.score_all(
            [partial(self.masses, i, start, start + step) for start in starts],
            lambda: self.memory // 2,
            progress,
            keep_segments=self.keep_segments,
        )
        is_single = scores.n_segments == 1
        equal = torch.from_numpy(np.ones(len(is_single)))
        none = torch.from_numpy(np.zeros(len(is_single)))
        for name, metric in metrics.items():
            result = results[name]
            result.weights[i], result.left_out[i] = equal, none
            if isinstance(metric, Sag):
                raw, weights = metric.of_sums(document.vectors, scores.n_segments, scores.within)
                segments = np.full_like(scores.segments[:, 0], np.nan)
                result.weights[i] = torch.from_numpy(weights)
            else:
                column = COMPILED.index(name)
                raw, segments = scores.raw[:, column], scores.segments[:, column]
            if metric.name == "segrefree":
                result.left_out[i] = torch.from_numpy(scores.left_out).double()
            raw = np.where(is_single, _unsegmented_raw(metric, self.unsegmented), raw)
            result.documents[i] = torch.from_numpy(raw)
            if self.keep_segments:
                result.segments[i] = torch.from_numpy(segments)
        document.discard()

    def _step(self, i: int) -> int:
        """Hypotheses of a document that are laid out at a time."""
        count, width = len(self.hypotheses[i]), hypothesis_width(self.hypotheses[i])
        if count * width <= FEW_MASSES:
            return COMPILED_HYPOTHESES
        return max(1, min(COMPILED_HYPOTHESES, self.memory // (4 * MASS_BYTES * width)))

    def run_torch(
        self,
        batch: list[int],
        metrics: Sequence[PairMetric],
        results: dict[str, RawScores],
        progress: Progress,
    ) -> None:
        """Score some documents together by torch."""
        for i in batch:
            check_finite(self.documents[i], self.names[i])
        device = self.device_of(batch[0])
        table_elements = min(TABLE_ELEMENTS, max(1, self.memory // 256))
        units = Units([self.documents[i] for i in batch], device, table_elements)
        fitting = self.memory // (2 * HYPOTHESIS_BYTES)
        step = max(1, min(HYPOTHESIS_ELEMENTS, fitting) // units.n_units)
        parts: dict[str, list[MetricScores]] = {spelling(metric): [] for metric in metrics}
        for slots, masses in self._chunks(batch, step):
            layout = Layout.pack(slots, masses, units.n_units, device)
            requests = chain.from_iterable(metric.requests for metric in metrics)
            sums = units.row_sums(layout, requests)
            is_single = layout.n_segments == 1
            for metric in metrics:
                scores = metric(units, layout, sums)
                settled = _settle_unsegmented(scores, is_single, metric, self.unsegmented)
                parts[spelling(metric)].append(settled)
            progress(len(slots))
        counts = [len(self.hypotheses[i]) for i in batch]
        for name, pieces in parts.items():
            _file(results[name], batch, counts, pieces, keep_segments=self.keep_segments)

    def _chunks(self, batch: list[int], step: int) -> Iterator[tuple[NDArray[np.int64], Masses]]:
        """At most ``step`` hypotheses at a time, in the order of documents and hypotheses."""
        pending: list[tuple[int, Masses]] = []
        for slot, i in enumerate(batch):
            for start in range(0, len(self.hypotheses[i]), step):
                masses = self.masses(i, start, start + step)
                if sum(len(m) for _, m in pending) + len(masses) > step and pending:
                    yield stack_hypotheses(pending)
                    pending = []
                pending.append((slot, masses))
        if pending:
            yield stack_hypotheses(pending)


def _silent(done: int) -> None:
    """Tell nobody: these hypotheses have been counted."""


def _file(
    result: RawScores,
    batch: list[int],
    counts: list[int],
    pieces: list[MetricScores],
    *,
    keep_segments: bool,
) -> None:
    """Hand a batch's flat results back to the documents they belong to."""
    for target, name in (
        (result.documents, "documents"),
        (result.weights, "weights"),
        (result.left_out, "left_out"),
    ):
        if len(batch) == len(pieces) == 1:
            target[batch[0]] = getattr(pieces[0], name)
            continue
        empty = [torch.empty(0, dtype=torch.float64)]
        flat = torch.cat([getattr(piece, name) for piece in pieces] or empty)
        for i, values in zip(batch, torch.split(flat, counts), strict=True):
            target[i] = values
    if keep_segments and pieces:
        width = max(piece.segments.shape[1] for piece in pieces)
        padded = [
            torch.nn.functional.pad(x, (0, width - x.shape[1]), value=torch.nan)
            for x in (piece.segments for piece in pieces)
        ]
        for i, rows in zip(batch, torch.split(torch.cat(padded), counts), strict=True):
            result.segments[i] = rows


@lru_cache(maxsize=64)
def _parsed(names: str | tuple[str, ...], seed: int) -> tuple[Metric, ...]:
    return parse_metrics([names] if isinstance(names, str) else names, seed)


def _settle_unsegmented(
    scores: MetricScores, is_single: Tensor, metric: Metric, unsegmented: Unsegmented
) -> MetricScores:
    """Give hypotheses without a boundary what the policy says."""
    settled = _unsegmented_raw(metric, unsegmented)
    return replace(scores, documents=torch.where(is_single, settled, scores.documents))


def _unsegmented_raw(metric: Metric, unsegmented: Unsegmented) -> float:
    """Return the raw score of a document without a boundary: NaN, undefined, under ``skip``."""
    orientation = metric.orientation
    value = {"neutral": orientation.neutral, "skip": None, "worst": orientation.worst}[unsegmented]
    return math.nan if value is None else value
