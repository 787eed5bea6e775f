"""Many documents, many hypotheses each, all metrics: vectors in, raw scores out.

On CPUs a document is scored alone, by compiled loops: a score depends on the document's vectors,
the hypothesis, the metric and the seed alone, to the last bit of one machine, whatever the memory
and the threads. On other devices torch scores documents of similar length together; between
machines and devices, scores agree within `TOLERANCE`. Torch is imported for other devices only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from reffree.data.masses import Hypotheses, MadeMasses, Masses, hypothesis_width, mass_matrix
from reffree.metrics.free.custom import CustomMetric, registered
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.expected import Expected, score_expected
from reffree.metrics.free.inputs import Given, check_finite, check_matrix
from reffree.metrics.free.result import (
    FreeMetric,
    Pooled,
    RawScores,
    Rule,
    Unsegmented,
    check_unsegmented,
    document_pool,
    pool_segments,
)
from reffree.metrics.names import COMPILED
from reffree.metrics.registry import WITHOUT_SEARCH, parse_metrics, spelling
from reffree.util.arrays import Booleans, Floats
from reffree.util.errors import Place, counted, mistake

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from reffree.metrics.free.inputs import Array

Progress = Callable[[int], None]
Results = dict[str, dict[int, RawScores]]
"""By metric and number of the document."""

COMPILED_HYPOTHESES = 1 << 16
"""Hypotheses laid out at a time for the compiled loop, memory permitting."""

MASS_BYTES = 32
"""Bytes per hypothesis and segment that are alive while hypotheses are laid out and compared."""

COMPILED_DEVICES = frozenset({"cpu", "mps"})
"""Whose documents are scored on the CPU; Metal has no float64."""

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
            Expected errors first make tables of the document.
        unsegmented: what a hypothesis without a boundary scores.
        seed: of the draws of expected errors.
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
    import torch

    given = WITHOUT_SEARCH if metrics is None else metrics
    asked = given if isinstance(given, str) else tuple(given)
    document = check_matrix(embeddings, "0")
    scores = score_documents(
        [document],
        [hypotheses],
        _parse(asked, seed, frozenset(registered().items())),
        unsegmented=unsegmented,
        memory=memory,
    )
    device = document.device
    return {name: torch.as_tensor(raw.documents, device=device) for name, (raw,) in scores.items()}


@lru_cache(maxsize=64)
def _parse(
    names: str | tuple[str, ...], seed: int, known: frozenset[tuple[str, str]]
) -> tuple[FreeMetric, ...]:
    """Read names once, for as long as the registered metrics stay the same."""
    return parse_metrics(names, seed)


def score_documents(
    embeddings: Sequence[Array | Given],
    hypotheses: Sequence[Hypotheses | MadeMasses],
    metrics: Sequence[FreeMetric],
    *,
    unsegmented: Unsegmented = "neutral",
    keep_segments: bool = False,
    keep_spread: bool = False,
    device: torch.device | str | None = None,
    names: Sequence[str] | None = None,
    readings: Sequence[Reading] | None = None,
    memory: int | None = None,
    progress: Progress = lambda done: None,
) -> dict[str, list[RawScores]]:
    """Score every hypothesis of every document: by metric, one `RawScores` per document.

    Scores of documents on CPUs are NumPy arrays; those that torch made elsewhere are tensors there
    (`RawScores.on_host`). ``progress`` is told how many hypotheses were just done.

    ``readings`` are the documents' texts and what trained scorers say of them, for expected errors;
    ``keep_spread`` asks for how far these are unsure, and for what they rest on.

    ``memory`` is in bytes, a quarter of what is free by default, on the device that a document is
    scored on, and covers what scoring makes and throws away: tables of pairs and hypotheses laid
    out. It does not cover the program itself, the embeddings and hypotheses given, one document's
    vectors in float64, nor the scores. A document takes at least some 200 bytes per unit. On CPUs
    less memory takes more time and changes no score. A document that has no place on another
    device is scored on the CPU.
    """
    check_unsegmented(unsegmented)
    labels = names or [str(i) for i in range(len(embeddings))]
    documents = [check_matrix(x, name) for x, name in zip(embeddings, labels, strict=True)]
    results: Results = {spelling(metric): {} for metric in metrics}
    task = Task(documents, hypotheses, labels, unsegmented, keep_segments, memory, results)
    expected = [m for m in metrics if isinstance(m, Expected)]
    custom = [m for m in metrics if isinstance(m, CustomMetric)]
    others = [m for m in metrics if not isinstance(m, Expected | CustomMetric)]
    for i in range(len(documents)):
        if expected:
            reading = Reading() if readings is None else readings[i]
            tell = _keep_quiet if custom or others else progress
            task.score_expected(i, reading, expected, keep_spread, tell)
        if custom:
            task.score_custom(i, custom)
            (_keep_quiet if others else progress)(len(hypotheses[i]))
    if others:
        task.score_pairs(others, device, progress)
    return {name: [found[i] for i in range(len(documents))] for name, found in results.items()}


def _keep_quiet(done: int) -> None:
    """Report nothing: these hypotheses are counted when the last metrics are done."""


@dataclass(frozen=True)
class Task:
    """What is to be scored, and within what memory."""

    documents: list[Given]
    hypotheses: Sequence[Hypotheses | MadeMasses]
    names: Sequence[str]
    unsegmented: Unsegmented
    keep_segments: bool
    limit: int | None
    results: Results  # filled as documents are scored

    @cached_property
    def memory(self) -> int:
        """Bytes of the host to stay within."""
        import psutil

        return self.limit or int(psutil.virtual_memory().available // 4)

    def masses(self, i: int, start: int, stop: int) -> Masses:
        """Lay out some of a document's hypotheses."""
        part = self.hypotheses[i][start:stop]
        return mass_matrix(part, len(self.documents[i]), self.names[i], first=start)

    def score_pairs(
        self, metrics: Sequence[FreeMetric], device: torch.device | str | None, progress: Progress
    ) -> None:
        """Score all documents by metrics made of pair sums."""
        compiled = [metric for metric in metrics if _column(metric) is not None]
        others = [metric for metric in metrics if _column(metric) is None]
        by_device: dict[str, list[int]] = {}
        for i, document in enumerate(self.documents):
            where = str(device or document.device)
            if where.partition(":")[0] not in COMPILED_DEVICES:
                by_device.setdefault(where, []).append(i)
                continue
            self.score_compiled(i, compiled, _keep_quiet if others else progress)
            if others:
                self.score_torch("cpu", [i], others, progress)
        for where, there in by_device.items():
            for i in self.score_torch(where, there, metrics, progress):
                self.score_compiled(i, metrics, progress)

    def score_torch(
        self, where: str, chosen: list[int], metrics: Sequence[FreeMetric], progress: Progress
    ) -> list[int]:
        """Score documents by torch; returns those that have no place on the device.

        They are refused unless all metrics can be had from the compiled loop.
        """
        import torch

        from reffree.metrics.free.on_devices import TorchTask

        left = set(chosen)
        for batch, scored in TorchTask(torch.device(where), self, metrics).score(chosen):
            for name, found in scored.items():
                self.results[name] |= zip(batch, found, strict=True)
            progress(sum(len(self.hypotheses[i]) for i in batch))
            left -= set(batch)
        if left and None in map(_column, metrics):
            i, expected = min(left), "a device with more free memory"
            units = counted(len(self.documents[i]), "unit")
            remedy = "end other programs that use it, or score with --device cpu"
            said = f"{units} that have no place in the memory of {where}"
            raise mistake(Place(document=self.names[i]), said, expected, remedy)
        return sorted(left)

    def score_compiled(self, i: int, metrics: Sequence[FreeMetric], progress: Progress) -> None:
        """Score one document by the compiled loop."""
        from reffree.metrics.free.fast.document import CompiledDocument

        document = CompiledDocument(self.documents[i], self.names[i])
        parts = [partial(self.masses, i, start, stop) for start, stop in self._steps(i)]
        needs_segments = any(isinstance(m, Pooled) and m.pool_n != "mean" for m in metrics)
        by_rule: dict[Rule, list[FreeMetric]] = {}
        for metric in metrics:
            by_rule.setdefault(getattr(metric, "rule", "released"), []).append(metric)
        for rule, ruled in by_rule.items():
            scores = document.score_all(
                parts,
                lambda: self.memory // 2,
                progress if rule == [*by_rule][-1] else _keep_quiet,
                keep_segments=self.keep_segments or needs_segments,
                rule=rule,
            )
            is_single = scores.n_segments == 1
            for metric in ruled:
                column = _column(metric)
                segments = scores.segments[:, column]
                raw = self._pool(i, metric, segments, scores.raw[:, column])
                found = self._finish(i, metric, raw, segments, is_single)
                if metric.name == "segrefree":
                    found = replace(found, left_out=scores.left_out.astype(np.float64))
                self.results[spelling(metric)][i] = found
        document.discard()

    def score_custom(self, i: int, metrics: Sequence[CustomMetric]) -> None:
        """Score one document by functions that users registered, segment by segment."""
        check_finite(self.documents[i], self.names[i])
        vectors = self.documents[i].on_host().astype(np.float64)
        masses = self.masses(i, 0, len(self.hypotheses[i]))
        is_single = (masses > 0).sum(1) == 1
        for metric in metrics:
            segments = metric.segments(vectors, masses, self.names[i])
            mean = pool_segments(segments, masses[:, : segments.shape[1]], "mean")
            raw = self._pool(i, metric, segments, mean)
            self.results[spelling(metric)][i] = self._finish(i, metric, raw, segments, is_single)

    def score_expected(
        self,
        i: int,
        reading: Reading,
        metrics: Sequence[Expected],
        keep_spread: bool,
        progress: Progress,
    ) -> None:
        """Score one document by expected errors, on the CPU."""
        check_finite(self.documents[i], self.names[i])
        scored = score_expected(
            self.documents[i].on_host(),
            reading,
            {spelling(metric): metric for metric in metrics},
            (self.masses(i, start, stop) for start, stop in self._steps(i)),
            progress,
            keep_spread=keep_spread,
        )
        width = hypothesis_width(self.hypotheses[i])
        for metric in metrics:
            found = scored[spelling(metric)]
            segments = np.full((len(found.documents), width if self.keep_segments else 0), np.nan)
            self.results[spelling(metric)][i] = replace(found, segments=segments)

    def _steps(self, i: int) -> Iterable[tuple[int, int]]:
        """Which hypotheses of a document are laid out at a time: from … to."""
        count, width = len(self.hypotheses[i]), hypothesis_width(self.hypotheses[i])
        step = COMPILED_HYPOTHESES
        if count * width > FEW_MASSES:
            step = max(1, min(step, self.memory // (4 * MASS_BYTES * width)))
        return [(start, start + step) for start in range(0, max(1, count), step)]

    def _pool(self, i: int, metric: FreeMetric, segments: Floats, mean: Floats) -> Floats:
        """Scores of a document's hypotheses: their segments' mean, unless otherwise pooled."""
        if not isinstance(metric, Pooled) or metric.pool_n == "mean":
            return mean
        masses = self.masses(i, 0, len(self.hypotheses[i]))[:, : segments.shape[1]]
        masses = np.pad(masses, ((0, 0), (0, segments.shape[1] - masses.shape[1])))
        return pool_segments(segments, masses, metric.pool_n)

    def _finish(
        self, i: int, metric: FreeMetric, raw: Floats, segments: Floats, is_single: Booleans
    ) -> RawScores:
        """Score hypotheses without a boundary by the policy, and weigh the document."""
        raw = np.where(is_single, metric.orientation.unsegmented(self.unsegmented), raw)
        weight = len(self.documents[i]) if document_pool(metric) == "length" else 1.0
        kept = segments if self.keep_segments else segments[:, :0]
        return RawScores(raw, np.full_like(raw, weight), np.zeros_like(raw), kept)


@lru_cache(maxsize=256)
def _column(metric: FreeMetric) -> int | None:
    """Place of a metric, whatever its poolings and rule, in the compiled loop; None without one."""
    usual: Mapping[str, str] = {"pool_n": "mean", "pool_d": "mean", "rule": "released"}
    plain = spelling(replace(metric, **{k: v for k, v in usual.items() if hasattr(metric, k)}))
    return COMPILED.index(plain) if plain in COMPILED else None
