"""Many documents, many hypotheses each, all metrics: batches in, raw scores out.

On CPUs a score depends on the document's vectors, the hypothesis, the metric and the seed alone, to
the last bit of one machine: not on the documents and hypotheses beside it, their order, threads,
memory, or whether segments are kept. On other devices documents are scored together, by sums that
have an order of their own (`arithmetic`): a score has the same bits twice, and whatever is beside
it unless memory is too small for its document's pairs. Between machines and devices, scores agree
within `TOLERANCE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, cast

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from reffree.data.masses import (
    Hypotheses,
    MadeMasses,
    Masses,
    hypothesis_width,
    mass_matrix,
    stack_masses,
)
from reffree.metrics.free.arithmetic import in_own_types
from reffree.metrics.free.batches import Budget, Told, by_document, score_batch, similar_documents
from reffree.metrics.free.custom import CustomMetric, registered
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.expected import Expected, score_expected
from reffree.metrics.free.fast.document import CompiledDocument
from reffree.metrics.free.inputs import check_all_finite, check_finite, check_matrix
from reffree.metrics.free.metrics import (
    COMPILED,
    WITHOUT_SEARCH,
    Metric,
    PairMetric,
    parse_metrics,
    spelling,
)
from reffree.metrics.free.pooling import (
    Pooled,
    by_means,
    document_pool,
    needs_segments,
    pool_segments,
)
from reffree.metrics.free.result import RawScores, Unsegmented, check_unsegmented
from reffree.metrics.free.sag import Sag
from reffree.util.arrays import Floats

if TYPE_CHECKING:
    from reffree.metrics.free.inputs import Array

Progress = Callable[[int], None]
Results = dict[str, dict[int, RawScores]]
"""By metric and number of the document."""

COMPILED_HYPOTHESES = 1 << 16
"""Hypotheses laid out at a time for the compiled loop, memory permitting."""

MASS_BYTES = 32
"""Bytes per hypothesis and segment that are alive while hypotheses are laid out and compared."""

COMPILED_DEVICES = frozenset({"cpu"})
"""Whose documents the compiled loop scores; torch scores those of all others."""

FEW_MASSES = 1 << 19
"""Masses that are laid out without asking how much memory there is (16 MiB)."""

TOLERANCE = 1e-9
"""Raw scores on two processors or devices differ by less, relative to 1 plus their size.

Measured on random corpora: 4e-14 between processors; 2.4e-10 between the compiled loop and torch,
where SegReFree divides by the distance of centroids that are nearly equal. What lies next to a
threshold (units or centroids that are equal but for rounding) may fall on either side of it, and
where centroids are so near that SegReFree is in the thousands its own digits are lost.
"""


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

    Examples:
        >>> import numpy as np
        >>> units = np.array([[1, 0], [1, 0.2], [0.9, 0.1], [0, 1], [0.1, 1], [0.2, 0.9]])
        >>> scores = score_document(units, [[3, 3], [2, 4]], ["arp_pair"])
        >>> [round(score, 4) for score in scores["arp_pair"].tolist()]
        [0.9661, -0.6756]
    """
    given = WITHOUT_SEARCH if metrics is None else metrics
    names = given if isinstance(given, str) else tuple(given)
    scores = score_documents(
        [embeddings],
        [hypotheses],
        _parsed(names, seed, frozenset(registered().items())),
        unsegmented=unsegmented,
        memory=memory,
    )
    return {name: raw.documents for name, (raw,) in scores.items()}


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
) -> dict[str, list[RawScores]]:
    """Score every hypothesis of every document: by metric, one `RawScores` per document.

    ``progress`` is told how many hypotheses were just done.

    ``readings`` are the documents' texts and what trained scorers say of them, for expected errors;
    ``keep_spread`` asks for how far these are unsure, and for what they rest on.

    Documents on CPUs go through the compiled loop, one at a time; those on other devices through
    torch, in batches of documents of similar length.

    ``memory`` is in bytes, a quarter of what is free by default, on the device that a document is
    scored on, and covers what scoring makes and throws away: tables of pairs and hypotheses laid
    out. It does not cover the program itself, the embeddings and hypotheses given, one document's
    vectors in float64, nor the scores. A document takes at least some 200 bytes per unit, and
    ``sag`` 64 MiB per thread beside that. On CPUs less memory takes more time and changes no score.
    Where the memory of another device is full all the same, half as much is tried, and so on.
    """
    check_unsegmented(unsegmented)
    labels = names or [str(i) for i in range(len(embeddings))]
    given = [check_matrix(x, name) for x, name in zip(embeddings, labels, strict=True)]
    documents = [x.cpu() if x.is_mps else x for x in given]  # where there is float64
    named = {spelling(metric): metric for metric in metrics}
    results: Results = {name: {} for name in named}
    task = _Task(documents, hypotheses, labels, unsegmented, keep_segments, device, memory, results)
    expected = {name: m for name, m in named.items() if isinstance(m, Expected)}
    custom = {name: m for name, m in named.items() if isinstance(m, CustomMetric)}
    others = {
        name: cast("PairMetric", m)
        for name, m in named.items()
        if name not in expected and name not in custom
    }
    for i in range(len(documents)) if expected else []:
        told = _silent if others or custom else progress
        reading = Reading() if readings is None else readings[i]
        task.run_expected(i, reading, expected, told, keep_spread=keep_spread)
    for i in range(len(documents)) if custom else []:
        task.run_custom(i, custom, _silent if others else progress)
    if others:
        task.run_pairs(others, progress)
    return {name: [found[i] for i in range(len(documents))] for name, found in results.items()}


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
    results: Results  # filled as documents are scored
    budgets: dict[torch.device, Budget] = field(default_factory=dict)  # of devices torch runs on

    @cached_property
    def memory(self) -> int:
        """Bytes to stay within."""
        return self.limit or psutil.virtual_memory().available // 4

    def budget(self, device: torch.device) -> Budget:
        """What may be taken on a device."""
        if device not in self.budgets:
            self.budgets[device] = Budget.of(device, self.limit)
        return self.budgets[device]

    def device_of(self, i: int) -> torch.device:
        """Where a document is scored: not on Metal, which has no float64."""
        device = self.device or self.documents[i].device
        return torch.device("cpu") if device.type == "mps" else device

    def masses(self, i: int, start: int, stop: int) -> Masses:
        part = self.hypotheses[i][start:stop]
        return mass_matrix(part, len(self.documents[i]), self.names[i], first=start)

    def run_pairs(self, metrics: dict[str, PairMetric], progress: Progress) -> None:
        """Score all documents by metrics made of pair sums."""
        elsewhere = []
        columns = {
            name: column for name, m in metrics.items() if (column := _column(m)) is not None
        }
        for i in range(len(self.documents)):
            is_here = self.device_of(i).type in COMPILED_DEVICES
            compiled = {
                name: metric
                for name, metric in metrics.items()
                if isinstance(metric, Sag) or (is_here and name in columns)
            }
            other = [metric for name, metric in metrics.items() if name not in compiled]
            if compiled:
                self.run_compiled(i, compiled, columns, _silent if other else progress)
            if other and is_here:
                self.run_torch([i], other, progress)
            elif other:
                elsewhere.append(i)
        by_torch = [metric for metric in metrics.values() if not isinstance(metric, Sag)]
        for device in dict.fromkeys(map(self.device_of, elsewhere)):
            there = [i for i in elsewhere if self.device_of(i) == device]
            for batch in similar_documents(self.documents, there, self.budget(device)):
                self.run_torch(batch, by_torch, progress)

    def run_custom(self, i: int, metrics: dict[str, CustomMetric], progress: Progress) -> None:
        """Score one document by functions that users registered, segment by segment."""
        check_finite(self.documents[i], self.names[i])
        vectors = self.documents[i].detach().double().cpu().numpy()
        masses = np.asarray(self.masses(i, 0, len(self.hypotheses[i])))
        device, is_single = self.device_of(i), (masses > 0).sum(1) == 1
        for name, metric in metrics.items():
            segments = metric.segments(vectors, masses, self.names[i])
            raw = self._pooled(i, segments, metric)
            raw = np.where(is_single, metric.orientation.unsegmented(self.unsegmented), raw)
            weight = float(len(vectors)) if metric.pool_d == "length" else 1.0
            found = RawScores.equally_weighted(
                torch.from_numpy(raw).to(device),
                torch.from_numpy(segments[:, : None if self.keep_segments else 0]).to(device),
            )
            self.results[name][i] = replace(found, weights=torch.full_like(found.weights, weight))
        progress(len(masses))

    def run_expected(
        self,
        i: int,
        reading: Reading,
        metrics: dict[str, Expected],
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
        width = hypothesis_width(self.hypotheses[i]) if self.keep_segments else 0
        for name, (raw, spread, facts) in scored.items():
            none = torch.full((len(raw), width), torch.nan, dtype=torch.float64)
            found = RawScores.equally_weighted(torch.from_numpy(raw).to(device), none)
            if metrics[name].pool_d == "length":
                found = replace(found, weights=torch.full_like(found.weights, len(document)))
            spread_there = torch.from_numpy(spread).to(device)
            self.results[name][i] = replace(found, spread=spread_there, facts=facts)

    def run_compiled(
        self, i: int, metrics: dict[str, PairMetric], columns: Mapping[str, int], progress: Progress
    ) -> None:
        """Score one document by the compiled loop; ``columns`` are its metrics' places there."""
        document = CompiledDocument(self.documents[i], self.names[i])
        step = self._step(i)
        starts = range(0, max(1, len(self.hypotheses[i])), step)
        scores = document.score_all(
            [partial(self.masses, i, start, start + step) for start in starts],
            lambda: self.memory // 2,
            progress,
            keep_segments=self.keep_segments or any(map(needs_segments, metrics.values())),
        )
        device, is_single = self.device_of(i), scores.n_segments == 1
        for name, metric in metrics.items():
            weights, left_out = np.ones(len(is_single)), np.zeros(len(is_single))
            if isinstance(metric, Sag):
                raw, weights = metric.scores(document, scores)
                segments = np.full_like(scores.segments[:, 0], np.nan)
            else:
                column = columns[name]
                raw, segments = scores.raw[:, column], scores.segments[:, column]
                if needs_segments(metric):
                    raw = self._pooled(i, segments, cast(Pooled, metric))
                if document_pool(metric) == "length":
                    weights = np.full(len(is_single), float(len(self.documents[i])))
                if not self.keep_segments:
                    segments = segments[:0]
            if metric.name == "segrefree":
                left_out = scores.left_out.astype(np.float64)
            raw = np.where(is_single, metric.orientation.unsegmented(self.unsegmented), raw)
            self.results[name][i] = RawScores(
                documents=torch.from_numpy(raw).to(device),
                weights=torch.from_numpy(weights).to(device),
                left_out=torch.from_numpy(left_out).to(device),
                segments=torch.from_numpy(segments).to(device),
            )
        document.discard()

    def _pooled(self, i: int, segments: Floats, metric: Pooled) -> Floats:
        """Scores of a document's hypotheses from those of their segments."""
        masses = torch.as_tensor(self.masses(i, 0, len(self.hypotheses[i])))
        width = segments.shape[1]
        masses = pad(masses, (0, width - masses.shape[1]))  # or cut, where there is nothing
        made: Floats = pool_segments(torch.from_numpy(segments), masses, metric.pool_n).numpy()
        return made

    def _step(self, i: int) -> int:
        """Hypotheses of a document that are laid out at a time."""
        count, width = len(self.hypotheses[i]), hypothesis_width(self.hypotheses[i])
        if count * width <= FEW_MASSES:
            return COMPILED_HYPOTHESES
        return max(1, min(COMPILED_HYPOTHESES, self.memory // (4 * MASS_BYTES * width)))

    def run_torch(
        self, batch: list[int], metrics: Sequence[PairMetric], progress: Progress
    ) -> None:
        """Score some documents together by torch; where memory runs out, with half as much."""
        check_all_finite([self.documents[i] for i in batch], [self.names[i] for i in batch])
        budget = self.budget(self.device_of(batch[0]))
        pending, tell = [batch], Told(progress)
        while pending:
            batch = pending.pop(0)
            scored = self._tried(batch, metrics, budget, tell)
            if scored is None:
                longest = max(batch, key=lambda i: len(self.documents[i]))
                budget.halve(len(self.documents[longest]), self.names[longest])
                half = len(batch) // 2
                pending[:0] = [part for part in (batch[:half], batch[half:]) if part]
                tell.again()
                continue
            tell.kept()
            counts = [len(self.hypotheses[i]) for i in batch]
            for name, pieces in scored.items():
                found = by_document(pieces, counts, budget.device)
                self.results[name] |= zip(batch, found, strict=True)

    def _tried(
        self, batch: list[int], metrics: Sequence[PairMetric], budget: Budget, tell: Progress
    ) -> dict[str, list[RawScores]] | None:
        """Scores of a batch in pieces; None if the device's memory does not hold it."""
        try:
            with in_own_types(budget.device):
                return score_batch(
                    [self.documents[i] for i in batch],
                    lambda step: self._chunks(batch, step),
                    max(hypothesis_width(self.hypotheses[i]) for i in batch),
                    metrics,
                    budget,
                    unsegmented=self.unsegmented,
                    keep_segments=self.keep_segments,
                    progress=tell,
                )
        except torch.OutOfMemoryError:
            return None  # outside of what holds the tensors that were made

    def _chunks(self, batch: list[int], step: int) -> Iterator[tuple[NDArray[np.int64], Masses]]:
        """At most ``step`` hypotheses at a time, in the order of documents and hypotheses."""
        pending: list[tuple[int, Masses]] = []
        for slot, i in enumerate(batch):
            for start in range(0, len(self.hypotheses[i]), step):
                masses = self.masses(i, start, start + step)
                if sum(len(m) for _, m in pending) + len(masses) > step and pending:
                    yield _stacked(pending)
                    pending = []
                pending.append((slot, masses))
        if pending:
            yield _stacked(pending)


def _stacked(parts: list[tuple[int, Masses]]) -> tuple[NDArray[np.int64], Masses]:
    """Put masses of several documents under one another, with each row's document."""
    slots = np.concatenate([np.full(len(masses), slot, dtype=np.int64) for slot, masses in parts])
    return slots, stack_masses([masses for _, masses in parts])


def _silent(done: int) -> None:
    """Tell nobody: these hypotheses have been counted."""


@lru_cache(maxsize=256)
def _column(metric: PairMetric) -> int | None:
    """Place of a metric, whatever its poolings, in the compiled loop; None without one."""
    plain = spelling(cast("PairMetric", by_means(metric)))
    return COMPILED.index(plain) if plain in COMPILED else None


@lru_cache(maxsize=64)
def _parsed(
    names: str | tuple[str, ...], seed: int, known: frozenset[tuple[str, str]]
) -> tuple[Metric, ...]:
    """Read names once, for as long as the registered metrics stay the same."""
    return parse_metrics([names] if isinstance(names, str) else names, seed)
